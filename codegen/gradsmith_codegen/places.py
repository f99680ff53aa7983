"""Where the schema says what is planned: lines, told from the entries that hold them."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

from . import model
from .cpp_names import stub_of
from .text import Text, cpp_comment


@dataclass(frozen=True)
class Place:
    """A line of the schema, told from the entry that holds it.

    Entry-relative, so that an edit of one entry leaves the text generated for the others as it is.
    """

    entry: str
    offset: int  # lines below the entry's first
    text: Text

    @cached_property
    def comment(self) -> str:
        return cpp_comment(self.text)

    @cached_property
    def stub(self) -> str:
        """The namespace of the operator whose entry it is."""
        return stub_of(self.entry)


class PlaceFinder(dict[int, Place]):
    """Tells which op's entry a line lies in; aliases point into entries other than their user's."""

    def __init__(self, schema: model.Schema) -> None:
        super().__init__()
        self._files = schema.files
        ops = schema.all_ops or schema.ops
        self._lines = [op.line for op in ops]
        self._names = [op.name for op in ops]

    def __missing__(self, line: int) -> Place:
        index = max(0, bisect_right(self._lines, line) - 1)
        entry, offset = self._names[index], line - self._lines[index]
        text = Text(self._files.at(line).name, f": {entry}, line {offset + 1} of the entry")
        self[line] = place = Place(entry, offset, text)
        return place

    def of(self, op: model.Op) -> PlaceFinder | OwnPlaces:
        """The places of what an op has."""
        return self if self._files.is_of_entries else OwnPlaces(self, op)

    def is_in_entry(self, line: int, op: model.Op) -> bool:
        """The line is of an entry of the op's file, and not of parts that no entry has or of another file."""
        index = bisect_right(self._lines, line) - 1
        file = self._files.at(op.line)
        return index >= 0 and self._files.at(line) is file and self._files.at(self._lines[index]) is file


class OwnPlaces:
    """Places of an op that has parts which are in no entry of its file: these have the place of its own."""

    def __init__(self, places: PlaceFinder, op: model.Op) -> None:
        self._places = places
        self._op = op

    def __getitem__(self, line: int) -> Place:
        return self._places[line if self._places.is_in_entry(line, self._op) else self._op.line]
