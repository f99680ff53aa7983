"""Writes a C++ source that includes a file of kernels and adds each of them to those of the emulated GPU.

list_kernels.py <source> <output> -- <compiler and its flags>
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path


def main(arguments: list[str]) -> int:
    source, output, _, *compiler = arguments
    listed = subprocess.run(
        [*compiler, "-DEMULATED_GPU_LISTS_KERNELS", "-E", "-P", source, "-MD", "-MF", f"{output}.d", "-MT", output],
        check=True,
        text=True,
        stdout=subprocess.PIPE,
    )
    kernels = list(find_kernels(listed.stdout))  # a shard of formulas may be empty
    lines = [f'#include "{source}"', '#include "emulated_gpu/kernel.h"', ""]
    for name, threads in kernels:
        lines.append(f'static const bool kHas_{name} = emulated_gpu::AddKernel<&{name}>("{name}", {threads});')
    Path(output).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


def find_kernels(text: str) -> Iterator[tuple[str, str]]:
    """The name of each kernel, and its launch bounds: the most threads of a block first."""
    for found in re.finditer(r"\bemulated_gpu_kernel\s+void\s+(emulated_gpu_bounds\s*)?", text):
        at, threads = found.end(), "emulated_gpu::kMostThreads"
        if found[1]:
            at = end_of_brackets(text, at)
            threads = text[found.end() + 1 : at - 1]
        name = re.compile(r"\s*(\w+)\s*\(").match(text, at)
        if name is None:
            raise ValueError(f"what kernel is this: {text[found.start() : at + 80]}")
        yield name[1], " ".join(threads.split())


def end_of_brackets(text: str, at: int) -> int:
    depth = 0
    for i in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return i + 1
    raise ValueError(f"a bracket is not closed: {text[at : at + 80]}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
