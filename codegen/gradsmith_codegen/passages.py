"""Where the parts of a scalar stand: YAML folds lines, and has quotes and escapes around text."""

from __future__ import annotations

from .loader import Quoted, Scalar
from .spans import Span


class ScalarPassage:
    """The `Passage` of a scalar's value. Blanks count for nothing."""

    __slots__ = ("_node",)

    def __init__(self, node: Scalar) -> None:
        self._node = node

    def part(self, start: int, end: int) -> Span:
        """The first line of a part; all of the scalar where that is written with escapes."""
        node = self._node
        value, lines = node.value, node.source.lines
        line, column = self._begin()
        first = place = None
        for index in range(end):
            if value[index].isspace():
                continue
            while line < len(lines) and lines[line][column:].strip() == "":
                line, column = line + 1, 0
            if line == len(lines):
                return node.span
            column += len(lines[line][column:]) - len(lines[line][column:].lstrip())
            if lines[line][column] != value[index]:
                return node.span
            place = (line, column)
            first = first or (place if index >= start else None)
            column += 1
        if first is None or place is None:
            return node.span
        ends_on_line = place[0] == first[0]
        length = place[1] + 1 - first[1] if ends_on_line else len(lines[first[0]].rstrip()) - first[1]
        return Span(node.source.base + first[0] + 1, first[1] + 1, length)

    def _begin(self) -> tuple[int, int]:
        """Line and column, from 0, of the value's first character: behind a quote, or on the line after that
        of a block's mark."""
        span = self._node.span
        line, column = span.line - self._node.source.base - 1, span.column - 1
        if type(self._node) is not Quoted:
            return line, column
        mark = self._node.source.lines[line][column : column + 1]
        return (line + 1, 0) if mark in ("|", ">") else (line, column + 1)
