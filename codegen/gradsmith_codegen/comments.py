"""The comments of a schema's text, which neither its nodes nor its pieces know of."""

from __future__ import annotations

from collections import Counter
from itertools import takewhile

from .diagnostics import Source
from .layout import Piece, pieces_of

Gap = list[tuple[int, str]]  # columns and comments; blank lines are empty


class Comments:
    def __init__(self, source: Source, root: Piece) -> None:
        self._lines = source.lines
        self._within_text = _columns_of_texts(root)
        self._begin = {
            line: begin for line in range(len(source.lines)) if (begin := self._find(line)) is not None
        }

    def _find(self, line: int) -> int | None:
        """The column where the line's comment begins."""
        text = self._lines[line]
        if "#" not in text:
            return None
        spans = self._within_text.get(line, ())
        for column, character in enumerate(text):
            is_outside = not any(begin <= column < end for begin, end in spans)
            if character == "#" and is_outside and (column == 0 or text[column - 1] in " \t"):
                return column
        return None

    def _text(self, line: int) -> str:
        return self._lines[line][self._begin[line] :].rstrip() if line in self._begin else ""

    def _is_alone(self, line: int) -> bool:
        """Nothing stands on the line but a comment, or nothing at all."""
        if line in self._within_text:
            return False
        begin = self._begin.get(line, len(self._lines[line]))
        return not self._lines[line][:begin].strip()

    def before(self, line: int) -> Gap:
        """The lines of comments, and the blank ones, that stand before a line."""
        numbers = list(takewhile(self._is_alone, range(line - 1, -1, -1)))
        return [self._gap_line(number) for number in reversed(numbers)]

    def after(self, line: int) -> Gap:
        """Those behind it."""
        return [
            self._gap_line(number) for number in takewhile(self._is_alone, range(line + 1, len(self._lines)))
        ]

    def _gap_line(self, line: int) -> tuple[int, str]:
        return self._begin.get(line, 0), self._text(line)

    def column_of_line(self, line: int) -> int:
        text = self._lines[line]
        return len(text) - len(text.lstrip(" "))

    def behind(self, piece: Piece) -> str:
        """On the line where a piece ends."""
        begin = self._begin.get(piece.end.line, -1)
        return self._text(piece.end.line) if begin >= piece.end.column else ""

    def on(self, line: int) -> str:
        """The comment of a line; empty where there is none."""
        return self._text(line)

    def are_within(self, piece: Piece, header: int) -> bool:
        """A comment stands between its entries; or, where it is a block, behind one of them or on the line of
        its header."""
        if not piece.items:
            return False
        lines = (
            range(piece.start.line, piece.end.line) if piece.is_flow else range(header, piece.end.line + 1)
        )
        return any(line in self._begin for line in lines)

    def lost_in(self, new: Source) -> tuple[int, str] | None:
        """The line and the text of a comment that another text lacks."""
        kept = Counter(comment for _, comment in Comments(new, pieces_of(new)).all())
        for line, comment in self.all():
            if not kept[comment]:
                return line, comment
            kept[comment] -= 1
        return None

    def all(self) -> Gap:
        return [(line + 1, self._text(line)) for line in self._begin]


def _columns_of_texts(root: Piece) -> dict[int, list[tuple[int, int]]]:
    """By lines, from where to where texts go, in which no comment begins."""
    spans: dict[int, list[tuple[int, int]]] = {}
    for part in root.parts():
        if part.items:
            continue
        for line in range(part.start.line, part.end.line + 1):
            begin = part.start.column if line == part.start.line else 0
            end = part.end.column if line == part.end.line else 1 << 30
            spans.setdefault(line, []).append((begin, end))
    return spans
