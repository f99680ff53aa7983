"""Where the text of a schema says what: pieces of its lines, and the nouns that know theirs."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Span(NamedTuple):
    """A piece of one line: 1-based line and column, and how many characters a caret underlines."""

    line: int
    column: int
    length: int = 1


class Spanned(Protocol):
    """Has a place in the text. The span is worked out when it is asked for: few ever are."""

    @property
    def span(self) -> Span: ...

    @property
    def line(self) -> int:
        """The line of the span."""


class Origin(Spanned, Protocol):
    """What declares a noun: an entry of the schema, or its mere name."""

    def at(self, key: str) -> Span:
        """Where the value of `key` stands; the span where the entry does not give it."""


class Passage(Protocol):
    """A text within the schema's, of which each part has a place."""

    def part(self, start: int, end: int) -> Span: ...


class Located:
    """A noun that an entry of the schema declares."""

    __slots__ = ()

    origin: Origin

    @property
    def span(self) -> Span:
        """The place of the noun's name."""
        return self.origin.span

    def at(self, key: str) -> Span:
        return self.origin.at(key)
