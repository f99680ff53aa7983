"""The files of a schema. Their lines count through: those of a file that is included come before those of the
one that includes it, so that one number tells of any line where it is and what comes before it.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

from .text import Text


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One of them."""

    name: Text  # as the schema's own file would include it: generated text must not depend on where that lies
    path: str  # as it is opened
    base: int = 0  # how many lines come before its first
    has_shared: bool = False  # parts that are in no operator's entry


@dataclass(frozen=True)
class SourceFiles:
    """All files of a schema, in the order of their lines: its own is the last."""

    files: tuple[SourceFile, ...]

    @cached_property
    def _bases(self) -> list[int]:
        return [file.base for file in self.files]

    @property
    def own(self) -> SourceFile:
        return self.files[-1]

    @property
    def included(self) -> tuple[SourceFile, ...]:
        return self.files[:-1]

    @property
    def is_of_entries(self) -> bool:
        """All that operators have stands in an entry of the one file there is."""
        return not self.included and not self.own.has_shared

    def at(self, line: int) -> SourceFile:
        """The file that a line is of."""
        return self.files[max(0, bisect_left(self._bases, line) - 1)]

    def line(self, line: int) -> int:
        """The line's number within its file."""
        return line - self.at(line).base

    def place(self, line: int) -> Text:
        """`ops.yaml:12`."""
        return Text(self.at(line).name, f":{self.line(line)}")
