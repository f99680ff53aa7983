"""Writes a C++ source that includes a file of kernels and adds each of them to those of the emulated GPU.

list_kernels.py <source> <output> -- <compiler and its flags>
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    source, output, _, *compiler = arguments
    listed = subprocess.run(
        [*compiler, "-DEMULATED_GPU_LISTS_KERNELS", "-E", "-P", source, "-MD", "-MF", f"{output}.d", "-MT", output],
        check=True,
        text=True,
        stdout=subprocess.PIPE,
    )
    names = re.findall(r"\bemulated_gpu_kernel\s+void\s+(\w+)\s*\(", listed.stdout)
    if not names:
        print(f"{source} has no kernels", file=sys.stderr)
        return 1
    lines = [f'#include "{source}"', '#include "emulated_gpu/kernel.h"', ""]
    lines += [f'static const bool kHas_{name} = emulated_gpu::AddKernel<&{name}>("{name}");' for name in names]
    Path(output).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
