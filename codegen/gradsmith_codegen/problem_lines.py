"""Problems, in lines as `tune` and `bench` read them and programs record them: an operator, a row, dims."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .model import Op, Row
from .suggestions import instead, nearest
from .text import printable
from .verbs import Refused

_DIMS_OF_ONE = r"(?:scalar|-?[0-9]+(?:x-?[0-9]+)*)"  # the numbers of a shape may be negative
_DIMS = re.compile(rf"{_DIMS_OF_ONE}(?:,{_DIMS_OF_ONE})*")  # of a list of tensors those of each
_OF_ANOTHER_LIBRARY = (
    "recording holds the operators of all libraries of a program; lines of other libraries can be removed"
)


@dataclass(frozen=True, slots=True)
class Problem:
    """A line. What it says is compared with a schema when its row is looked for."""

    place: str  # file and line
    op: str
    row: str
    arguments: tuple[str, ...]  # `X=2x3x9`, `pads=1,1,1,1`

    def find(self, ops: Mapping[str, Op]) -> tuple[Op, Row]:
        """Of these operators the one that is meant, and its row."""
        if self.op not in ops:
            near = nearest(self.op, ops)
            hint = f"; did you mean '{near}'? A" if near else "; a"
            raise self._refused(f"there is no operator '{printable(self.op)}'{hint} {_OF_ANOTHER_LIBRARY}")
        op = ops[self.op]
        rows = {row.name: row for row in op.rows}
        if self.row not in rows:
            named = f"there is no row of operator '{op.name}' called '{printable(self.row)}'"
            raise self._refused(named + instead(self.row, rows))
        inputs = {tensor.name for tensor in op.inputs}
        for argument in self.arguments:
            name, _, value = argument.partition("=")
            if name in inputs and not _DIMS.fullmatch(value):
                raise self._refused(
                    f"'{printable(argument)}' has no dims; expected some such as {name}=2x3x9"
                )
        return op, rows[self.row]

    def _refused(self, message: str) -> Refused:
        return Refused(f"{self.place}: {message}")


def read_problems(path: Path) -> list[Problem]:
    """Those of a file, of which there is at least one."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise Refused(f"{printable(str(path))} is no text in UTF-8: byte {error.start} is none") from None
    problems = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        place = f"{printable(str(path))}:{number}"
        if len(words) == 1:
            raise Refused(
                f"{place}: '{printable(words[0])}' names no row; expected an operator, a row, and dims"
            )
        if words:
            problems.append(Problem(place, words[0], words[1], tuple(words[2:])))
    if not problems:
        raise Refused(f"{printable(str(path))} has no problems, so that nothing would be selected")
    return problems
