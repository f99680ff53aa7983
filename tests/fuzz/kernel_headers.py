"""Whatever stands in a kernels.h, it is read to its end: what is not in the form of these headers is left out."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from fuzzing import REPOSITORY, bytes_changed, lines_changed, main
from gradsmith_codegen.kernel_headers import read_header
from gradsmith_codegen.kernel_terms import Kernel

SNIPPETS = [
    *("};", "{", "}", "struct ", "struct A : B {", "struct B : A {", "struct A : A {", "struct A final {", "namespace"),
    *("using A = B;", "using A = A;", "/*", "*/", "//", '"', "'", "\\", "kShapes = ", "A::kShapes;", "*"),
    *('"X [', "Attributes", "Inputs", "Outputs", "RequiredInput X = nullptr;", "const TensorRef* Y = nullptr;", "::"),
    *("IntList a = {};", "static Status RunCpu(", "Result<Dims> Rule(const Attributes& a);", "<", ">", "(", ")", ";"),
    *('"X [N, *D]"', "\x00", "\udcff"),
]


def one_input(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        header = Path(folder) / "family" / "kernels.h"
        header.parent.mkdir()
        header.write_bytes(data)
        family = read_header("family", header)
    assert all(name.startswith("family::") for name in (*family.kernel_names, *family.rules))
    for kernel in map(family.kernel, family.kernel_names):
        assert kernel is not None
        _check(kernel)
    assert sum(map(len, family.kernel_names)) <= 100 * (len(data) + 1), "more was read than there is"


def _check(kernel: Kernel) -> None:
    for arguments in (kernel.inputs, kernel.outputs):
        assert arguments is None or all(isinstance(required, bool) for required in arguments.values())
    assert all(run.startswith("Run") for run in kernel.runs)


MUTATORS = [lines_changed(SNIPPETS), lines_changed(SNIPPETS), bytes_changed]
SEEDS = [path.read_bytes() for path in sorted((REPOSITORY / "runtime").glob("*/kernels.h"))]

if __name__ == "__main__":
    sys.exit(main("kernel_headers", one_input, MUTATORS, 1000, SEEDS))
