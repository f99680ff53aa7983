"""A schema's text as it is written: where each piece begins and ends, in which style, with which anchor.

The loader's nodes say what is meant; whoever writes to a file wants to leave the rest of it alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from yaml.events import AliasEvent, CollectionEndEvent, MappingStartEvent, ScalarEvent, SequenceStartEvent

from .diagnostics import Source
from .loader import PARSER

_ANCHOR = re.compile(r"&(\S+)[ \t]*")


class Place(NamedTuple):
    """Line and column, from 0."""

    line: int
    column: int


class Kind(Enum):
    SCALAR = "scalar"
    ALIAS = "alias"
    LIST = "list"
    MAPPING = "mapping"


@dataclass(slots=True, eq=False)
class Piece:
    """A node as it is written. `end` is where its last character ends; of nothing, where it begins."""

    kind: Kind
    start: Place  # of its anchor, where it has one
    end: Place
    anchor: str = ""
    is_flow: bool = False  # in [ ] or { }
    items: list[Piece] = field(default_factory=list)  # a mapping's alternate between keys and values
    text: str = ""  # of a scalar or an alias, as it is spelled; its lines are joined by "\n"

    @property
    def pairs(self) -> list[tuple[Piece, Piece]]:
        return list(zip(self.items[::2], self.items[1::2], strict=True))

    def value(self, key: str) -> Piece | None:
        """Of a mapping's own entries; None where it has none of this name."""
        return next((value for name, value in self.pairs if name.word == key), None)

    @property
    def word(self) -> str:
        """What a scalar of one line says."""
        quoted = len(self.text) > 1 and self.text[0] in "'\"" and self.text[-1] == self.text[0]
        return self.text[1:-1] if quoted else self.text

    def parts(self) -> Iterator[Piece]:
        """It and all within it, in the order of the text."""
        yield self
        for item in self.items:
            yield from item.parts()


def pieces_of(source: Source) -> Piece:
    """The root of a text that the loader has found to be one YAML document."""
    parser = PARSER(source.text)
    try:
        return _root(source, parser)
    finally:
        parser.dispose()


def _root(source: Source, parser: Any) -> Piece:
    top = Piece(Kind.LIST, Place(0, 0), Place(0, 0))
    open_pieces = [top]
    while parser.check_event():
        event = parser.get_event()
        if isinstance(event, CollectionEndEvent):
            piece = open_pieces.pop()
            piece.end = _place(event.end_mark) if piece.is_flow else piece.items[-1].end
        elif isinstance(event, (ScalarEvent, AliasEvent)):
            open_pieces[-1].items.append(_leaf(source, event))
        elif isinstance(event, (SequenceStartEvent, MappingStartEvent)):
            kind = Kind.LIST if isinstance(event, SequenceStartEvent) else Kind.MAPPING
            start, is_flow = _place(event.start_mark), bool(event.flow_style)
            piece = Piece(kind, start, start, event.anchor or "", is_flow)
            open_pieces[-1].items.append(piece)
            open_pieces.append(piece)
    return top.items[0]


def _leaf(source: Source, event: Any) -> Piece:
    kind = Kind.SCALAR if isinstance(event, ScalarEvent) else Kind.ALIAS
    start, end = _place(event.start_mark), _place(event.end_mark)
    text = between(source, start, end)
    anchor = (event.anchor or "") if kind is Kind.SCALAR else ""
    if kind is Kind.SCALAR and event.style in ("|", ">"):
        end = _end_of_block(source, end)
        text = between(source, start, end)
    if anchor:
        text = _ANCHOR.sub("", text, count=1)
    return Piece(kind, start, end, anchor, text=text)


def _end_of_block(source: Source, end: Place) -> Place:
    """A block of text ends with its last line; the parser says that it ends where the next thing begins."""
    line = end.line - 1 if end.column == 0 or end.line >= len(source.lines) else end.line
    while line > 0 and not source.lines[line].strip():
        line -= 1
    return Place(line, len(source.lines[line]))


def _place(mark: Any) -> Place:
    return Place(mark.line, mark.column)


def between(source: Source, start: Place, end: Place) -> str:
    """The text from one place to another."""
    if start.line == end.line:
        return source.lines[start.line][start.column : end.column] if start.line < len(source.lines) else ""
    inner = source.lines[start.line + 1 : end.line]
    last = source.lines[end.line][: end.column] if end.line < len(source.lines) else ""
    return "\n".join([source.lines[start.line][start.column :], *inner, last])


def lines_with_ends(source: Source) -> list[str]:
    """The text's lines, each with what ends it."""
    lines, at = [], 0
    for line in source.lines:
        stop = at + len(line)
        stop += 2 if source.text.startswith("\r\n", stop) else 1
        lines.append(source.text[at:stop])
        at = stop
    return lines if lines[-1] else lines[:-1]
