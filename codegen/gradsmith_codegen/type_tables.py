"""What the runtime's headers say of the element types, made of the table in data_types.py.

`pytest tests/codegen --refresh` writes it into the headers, and a test compares them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .data_types import DataType
from .wrapping import wrapped

TYPES_HEADER = "include/gradsmith/types.h"
KERNELS_HEADER = "cuda/kernels/element.cuh"
HEADERS = (TYPES_HEADER, KERNELS_HEADER)


def refreshed(header: str, text: str) -> str:
    """The text of a header of `HEADERS`, with its tables made anew."""
    if header == KERNELS_HEADER:
        text = _with_macro(text, "GRADSMITH_FLOATING_TYPES_OF_KERNELS", _of_kernels(is_floating=True))
        text = _with_macro(text, "GRADSMITH_INTEGER_TYPES_OF_KERNELS", _of_kernels(is_floating=False))
        number = list(DataType).index(DataType.BOOL)
        return re.sub(r"(int kTypeOfTruthValues = )\d+;", rf"\g<1>{number};", text, count=1)
    return _with_message(_with_macro(text, "GRADSMITH_ELEMENT_TYPES", _of_the_runtime()))


def _of_the_runtime() -> Iterable[str]:
    for one in DataType:
        yield f'{one.cpp_enumerator}, {one.cpp_type}, "{one.value}", {one.dlpack_code}, {one.torch_number}'


def _of_kernels(*, is_floating: bool) -> Iterable[str]:
    for number, one in enumerate(DataType):
        if one.is_floating is is_floating:
            yield f"{number}, {one.kernel_type}"


def _with_macro(text: str, name: str, entries: Iterable[str]) -> str:
    """As clang-format has it: each line ends in a backslash in the column of the longest."""
    lines = [f"#define {name}(X)", *[f"  X({entry})" for entry in entries]]
    width = max(map(len, lines)) + 1
    macro = "\n".join([*[f"{line:{width}}\\" for line in lines[:-1]], lines[-1]])
    return re.sub(rf"#define {name}\(X\) *\\\n(?:.*\\\n)*.*", lambda _: macro, text, count=1)


def _with_message(text: str) -> str:
    """What is told of a C++ type that is none of them."""
    *names, last = [one.cpp_type for one in DataType]
    message = f"gradsmith: a tensor holds {', '.join(names)} or {last}"
    lines = wrapped(message, "      ").split("\n")
    quoted = [f'      "{line.strip()} "' for line in lines[:-1]]
    quoted.append(f'      "{lines[-1].strip()}");')
    return re.sub(r' *"gradsmith: a tensor holds [^;]*;', lambda _: "\n".join(quoted), text, count=1)
