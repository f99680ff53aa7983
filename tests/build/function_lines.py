"""The functions of C++ and CUDA sources, and how many lines each takes.

A function is what braces hold after a list of parameters, outside of other functions: a lambda counts with the function
that it is in. Its lines are those from its signature to the brace that closes it. The sources are taken to be laid out
as clang-format does it; what directives hold, such as macros, is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

UNREAD = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>\w*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\''
    r"|^[ \t]*#(?:\\\n|[^\n])*",
    re.DOTALL | re.MULTILINE,
)
NO_SIGNATURE = re.compile(r"(?:inline )?(?:namespace|class|struct|union|enum|extern)\b[^()]*$")
INITIALISER = re.compile(r"(?<!operator)(?<![=!<>])=(?!=)\s*[^=()]*$")
# Uses of macros that are no statement, and the beginnings of templates.
BEFORE_SIGNATURE = re.compile(r"\s*(?:[A-Z][A-Z0-9_]+\([^()]*\)(?=\s*\n\s*\S)|template <.*?>(?=\n))", re.DOTALL)


class Function(NamedTuple):
    line: int
    signature: str
    lines: int


def functions_of(text: str) -> Iterator[Function]:
    """The functions of a source, in their order."""
    read = UNREAD.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    scopes: list[tuple[int | None, int | None]] = []  # where the function begins whose body it is; where to go on from
    begin = 0
    for found in re.finditer(r"[{};]|\b(?:public|protected|private):", read):
        next_begin = found.end()
        if found[0] == "{":
            start = start_of_signature(read, begin, found.start())
            is_value = not read[found.start() - 1].isspace()  # member_{value}
            within = any(function is not None for function, _ in scopes)
            is_function = not within and not is_value and is_signature(read[start : found.start()])
            scopes.append((start if is_function else None, begin if is_value else None))
        elif found[0] == "}" and scopes:  # a test of the generator has a header with one too many
            start_of_function, of_value = scopes.pop()
            if of_value is not None:
                next_begin = of_value
            if start_of_function is not None:
                signature = " ".join(read[start_of_function : read.index("{", start_of_function)].split())
                line = text.count("\n", 0, start_of_function) + 1
                yield Function(line, signature, text.count("\n", start_of_function, found.start()) + 1)
        begin = next_begin


def start_of_signature(read: str, begin: int, end: int) -> int:
    while (before := BEFORE_SIGNATURE.match(read, begin, end)) is not None:
        begin = before.end()
    return begin + len(read[begin:end]) - len(read[begin:end].lstrip())


def is_signature(text: str) -> bool:
    return "(" in text and not NO_SIGNATURE.match(text) and not INITIALISER.search(text)
