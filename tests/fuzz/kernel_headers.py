"""Whatever stands in a kernels.h, it is read to its end, whatever blanks and comments stand between; and what a kernel
says of itself holds, or is at fault."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from fuzzing import REPOSITORY, bytes_changed, lines_changed, main
from gradsmith_codegen.kernel_headers import Family, read_header
from gradsmith_codegen.kernel_terms import Kernel

SNIPPETS = [
    *("};", "{", "}", "struct ", "struct A : B {", "struct B : A {", "struct A : A {", "struct A final {", "namespace"),
    *("using A = B;", "using A = A;", "/*", "*/", "//", '"', "'", "\\", "kShapes = ", "A::kShapes;", "*"),
    *('"X [', "Attributes", "Inputs", "Outputs", "RequiredInput X = nullptr;", "const TensorRef* Y = nullptr;", "::"),
    *("IntList a = {};", "static Status RunCpu(", "Result<Dims> Rule(const Attributes& a);", "<", ">", "(", ")", ";"),
    *('static constexpr std::string_view kLimits = "N min 1";', "struct A : Missing {"),
    *("kLimit = ", "kTypes =", '"any";'),
    *('"X [N, *D]"', "\x00", "\udcff"),
]


COMMENT = b'\n \t\n// }; { struct A : B "\n'


def one_input(data: bytes) -> None:
    family = _read(data)
    kernels = _kernels(family)
    text = data.decode(errors="replace")
    for name, kernel in kernels.items():
        _check(kernel)
        if not family.fault and not kernel.faults and "kLimits" in _beginning(text, name.partition("::")[2]):
            assert kernel.limits.of, f"the limits of {name} are not read, and nothing says so"
    if b"\\" not in data and b'R"' not in data:  # a line that goes on in the next, or a string of several lines
        commented = _read(data.replace(b"\n", COMMENT))
        assert bool(commented.fault) is bool(family.fault)
        assert _kernels(commented) == kernels, "blanks and comments change what is read"
        assert commented.rules == family.rules


def _read(data: bytes) -> Family:
    with tempfile.TemporaryDirectory() as folder:
        header = Path(folder) / "family" / "kernels.h"
        header.parent.mkdir()
        header.write_bytes(data)
        return read_header("family", header)


def _kernels(family: Family) -> dict[str, Kernel]:
    assert all(name.startswith("family::") for name in (*family.kernel_names, *family.rules))
    kernels: dict[str, Kernel] = {}
    for name in family.kernel_names:
        kernel = family.kernel(name)
        assert kernel
        kernels[name] = kernel
    return kernels


def _check(kernel: Kernel) -> None:
    """What is without a fault says what it takes, or that it takes any."""
    says = dict(kernel.says)
    for constant, read in (("kShapes", kernel.shapes), ("kTypes", kernel.types)):
        assert kernel.faults or says[constant] == "any" or read
    assert kernel.faults or "kGradientOf" not in says or kernel.gradients
    if kernel.shapes and not kernel.faults:
        assert kernel.shapes.tensors.keys() == kernel.tensors.keys()


def _beginning(text: str, name: str) -> str:
    """What stands in a struct before its first brace, without comments; nothing where that is not sure."""
    text = re.sub(r"//[^\n]*", "", text)
    heads = [*re.finditer(rf"\bstruct\s+{name}\b[^;{{}}]*{{([^{{}}]*)", text)]
    plain = len(heads) == 1 and not re.search(r"[#'\\]|/\*|R\"", heads[0][1])
    return heads[0][1] if plain else ""


MUTATORS = [lines_changed(SNIPPETS), lines_changed(SNIPPETS), bytes_changed]
SEEDS = [
    path.read_bytes().replace(path.parent.name.encode() + b"::", b"family::")
    for path in sorted((REPOSITORY / "runtime").glob("*/kernels.h"))
]

if __name__ == "__main__":
    sys.exit(main("kernel_headers", one_input, MUTATORS, 1000, SEEDS))
