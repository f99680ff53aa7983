"""From a file to YAML nodes that know where they stand.

PyYAML parses, we compose: its own composer recurses (deep nesting overflows the C stack), forgets where
aliases stand, and decides what `no` or `010` mean. Here a scalar is its source text; what that means is for
the reader to judge, who knows what is wanted. An aliased node is one object however often it is used, so
identity tells what is shared.
"""

from __future__ import annotations

import codecs
import gc
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from . import faults
from .diagnostics import Diagnostic, Source
from .spans import Span
from .syntax import syntax_error

PARSER: Any = yaml.CBaseLoader if yaml.__with_libyaml__ else yaml.BaseLoader

MAX_DEPTH = 64

# What YAML itself takes for a line's end, and the characters that it forbids.
_LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_RARE_LINE_BREAKS = "\r\x85\u2028\u2029"
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_NODE_PROPERTIES = re.compile(r"(?:[&!]\S*[ \t]+)+")


class Node:
    """A piece of the document. `start` and `end` are PyYAML's marks, which count from 0."""

    __slots__ = ("end", "source", "start")

    kind = ""  # as in "must be a list, not a mapping"
    shared = False  # an alias may repeat it, or what it is part of

    def __init__(self, source: Source, start: Any, end: Any) -> None:
        self.source = source
        self.start = start
        self.end = end

    @property
    def span(self) -> Span:
        """What a caret underlines: the node, as far as it is on its first line, without anchor and tag."""
        start, end = self.start, self.end
        line, column = start.line, start.column
        if line == len(self.source.lines):
            return self.first
        text = self.source.lines[line]
        if text.startswith(("&", "!"), column):
            properties = _NODE_PROPERTIES.match(text, column)
            column = properties.end() if properties else column
        length = (end.column if end.line == line else len(text.rstrip())) - column
        return Span(self.source.base + line + 1, column + 1, length if length > 0 else 1)

    @property
    def line(self) -> int:
        return self.source.base + int(self.start.line) + 1

    @property
    def first(self) -> Span:
        """Its first character; for nothing at the end of a text without a last line's end, that end, which
        libyaml counts as a line more."""
        if self.start.line == len(self.source.lines):
            return shifted(_end_of(self.source.text), self.source.base)
        return Span(self.source.base + self.start.line + 1, self.start.column + 1)


class Scalar(Node):
    """A plain one; `type(node) is Scalar` tells it from quoted text."""

    __slots__ = ("value",)

    kind = "a value"
    plain = True

    def __init__(self, source: Source, start: Any, end: Any, value: str) -> None:
        self.source = source
        self.start = start
        self.end = end
        self.value = value


class Quoted(Scalar):
    """A scalar in quotes, or a block of text."""

    __slots__ = ()

    plain = False


_NO_ALIASES: dict[int, Span] = {}


class _Collection(Node):
    """`aliases` has the places of those items that repeat what stands elsewhere, by their indices."""

    __slots__ = ("aliases", "items", "shared")

    def __init__(self, source: Source, start: Any, shared: bool) -> None:
        self.source = source
        self.start = self.end = start
        self.shared = shared
        self.items: list[Node] = []
        self.aliases: dict[int, Span] = _NO_ALIASES

    def alias(self, index: int, place: Span) -> None:
        self.aliases = {} if self.aliases is _NO_ALIASES else self.aliases
        self.aliases[index] = place


class Sequence(_Collection):
    __slots__ = ()

    kind = "a list"


class Mapping(_Collection):
    """`items` alternates between keys and values, as they stand in the text."""

    __slots__ = ()

    kind = "a mapping"


class Invalid(Node):
    """Stands where something was that has been reported already."""

    __slots__ = ()


def read_source(path: Path) -> tuple[Source, list[Diagnostic]]:
    """Reads the file. The text is empty where there is a diagnostic."""
    nothing = Source(os.fspath(path), "")
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return nothing, [faults.unreadable(None, reason)]
    try:
        text = data.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        readable = data[: error.start].decode("utf-8")
        source = source_of(nothing.path, data.decode("utf-8", "replace"))
        problem = f"byte 0x{data[error.start]:02x} is not UTF-8"
        return source, [faults.bad_text(_end_of(readable), problem)]
    return source_of(nothing.path, text), []


def source_of(path: str, text: str) -> Source:
    """A text as if it had been read from a file."""
    return Source(path, text, _lines(text))


def _lines(text: str) -> list[str]:
    if any(character in text for character in _RARE_LINE_BREAKS):
        return _LINE_BREAK.split(text)
    return text.split("\n")


def _end_of(text: str) -> Span:
    lines = _lines(text)
    return Span(len(lines), len(lines[-1]) + 1)


@dataclass(slots=True)
class Anchor:
    """What aliases repeat."""

    node: Node
    span: Span
    used: bool = False
    open: bool = True  # its node is still being read


class Composed(NamedTuple):
    """A document's root node, None where the text is no single YAML document; and its anchors."""

    root: Node | None
    anchors: dict[str, Anchor]
    diagnostics: list[Diagnostic]


def compose(source: Source, parser: Any = PARSER) -> Composed:
    """Makes nodes of a text."""
    forbidden = _FORBIDDEN.search(source.text)
    if forbidden:
        problem = f"character U+{ord(forbidden.group()):04X} is not allowed in YAML"
        place = shifted(_end_of(source.text[: forbidden.start()]), source.base)
        return Composed(None, {}, [faults.bad_text(place, problem)])
    composer = _Composer(source)
    try:
        with paused_collector():
            composer.run(parser(source.text))
    except yaml.MarkedYAMLError as error:
        found = shifted_diagnostic(syntax_error(error, source), source.base)
        return Composed(None, {}, [*composer.diagnostics, found])
    except _Abandoned:
        return Composed(None, {}, composer.diagnostics)
    return Composed(composer.root, composer.anchors, composer.diagnostics)


def unused_anchors(anchors: dict[str, Anchor]) -> Iterator[Diagnostic]:
    for name, anchor in anchors.items():
        if not anchor.used:
            yield faults.unused_anchor(anchor.span, name)


def shifted(span: Span, lines: int) -> Span:
    """The span so many lines further down."""
    return span._replace(line=span.line + lines)


def shifted_diagnostic(diagnostic: Diagnostic, lines: int) -> Diagnostic:
    notes = tuple([replace(note, span=shifted(note.span, lines)) for note in diagnostic.notes])
    return replace(diagnostic, span=diagnostic.span and shifted(diagnostic.span, lines), notes=notes)


@contextmanager
def paused_collector() -> Iterator[None]:
    """Nodes and model make no cycles, and a hundred thousand new objects would have the collector look at all
    of them again and again: two thirds of the loading time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class _Abandoned(Exception):
    """The rest of the document is not worth reading; why has been reported."""


def _key_of(current: list[Node], outer: list[list[Node]]) -> str:
    """The key whose value comes next, or has the next item; empty where there is none."""
    items, count, level = current, len(current), len(outer) - 1
    if level > 0 and isinstance(outer[level][-1], Sequence):
        items, count, level = outer[level], len(outer[level]) - 1, level - 1
    is_value = level > 0 and isinstance(outer[level][-1], Mapping) and count % 2 == 1
    key = items[count - 1] if is_value else None
    return key.value if isinstance(key, Scalar) else ""


class _Composer:
    """Builds nodes from the parser's events, without recursion."""

    def __init__(self, source: Source) -> None:
        self.root: Node | None = None
        self.diagnostics: list[Diagnostic] = []
        self._source = source
        self.anchors: dict[str, Anchor] = {}
        self._open_anchors: list[Anchor | None] = []  # for each open collection
        self._shared = 0  # how many of these there are

    def run(self, parser: Any) -> None:
        """`parser` is a PyYAML loader; only its events are used."""
        try:
            self._run(parser)
        finally:
            parser.dispose()

    def _run(self, parser: Any) -> None:
        source, next_event = self._source, parser.get_event
        top: list[Node] = []
        current, outer = top, [top]
        while True:
            event = next_event()
            kind = type(event)
            if kind is ScalarEvent:
                scalar_kind = Quoted if event.style else Scalar
                scalar = scalar_kind(source, event.start_mark, event.end_mark, event.value)
                current.append(scalar)
                if event.anchor is not None or event.tag is not None:
                    self._properties(event, scalar, is_open=False)
            elif kind is SequenceStartEvent or kind is MappingStartEvent:
                node = self._open(event)
                current.append(node)
                outer.append(current)
                current = node.items
            elif kind is SequenceEndEvent or kind is MappingEndEvent:
                current = outer.pop()
                current[-1].end = event.end_mark
                anchor = self._open_anchors.pop()
                if anchor:
                    anchor.open = False
                    self._shared -= 1
            elif kind is AliasEvent:
                self._repeat(event, current, outer)
            elif kind is DocumentStartEvent and top:
                self.diagnostics.append(faults.several_documents(self._span(event)))
                raise _Abandoned
            elif kind is StreamEndEvent:
                self.root = top[0] if top else None
                return

    def _open(self, event: Any) -> Sequence | Mapping:
        kind = Sequence if type(event) is SequenceStartEvent else Mapping
        node = kind(self._source, event.start_mark, self._shared > 0)
        anchor = None
        if event.anchor is not None or event.tag is not None:
            anchor = self._properties(event, node, is_open=True)
        if anchor:
            self._shared += 1
            node.shared = True
        self._open_anchors.append(anchor)
        if len(self._open_anchors) > MAX_DEPTH:
            self.diagnostics.append(faults.too_deep(self._span(event), MAX_DEPTH))
            raise _Abandoned
        return node

    def _properties(self, event: Any, node: Node, is_open: bool) -> Anchor | None:
        if event.tag is not None:
            text = event.tag.replace("tag:yaml.org,2002:", "!!")
            self.diagnostics.append(faults.tag(self._span(event), text))
        if event.anchor is None:
            return None
        span = self._span(event)._replace(length=len(event.anchor) + 1)
        first = self.anchors.get(event.anchor)
        if first:
            first.used = True  # which of the two an alias means is for the author to say
            duplicate = faults.duplicate_anchor(span, event.anchor)
            self.diagnostics.append(duplicate.noting("first declared here", first.span))
            return None
        anchor = self.anchors[event.anchor] = Anchor(node, span, open=is_open)
        return anchor

    def _repeat(self, event: Any, current: list[Node], outer: list[list[Node]]) -> None:
        if len(outer) > 1:  # in a collection
            cast(_Collection, outer[-1][-1]).alias(len(current), self._span(event))
        current.append(self._alias(event, _key_of(current, outer)))

    def _alias(self, event: Any, key: str) -> Node:
        anchor = self.anchors.get(event.anchor)
        if anchor and not anchor.open:
            anchor.used = True
            return anchor.node
        if anchor:
            anchor.used = True
            recursive = faults.recursive_alias(self._span(event), event.anchor)
            self.diagnostics.append(recursive.noting("which starts here", anchor.span))
        else:
            self.diagnostics.append(
                faults.undefined_alias(self._span(event), event.anchor, self.anchors, key)
            )
        return Invalid(self._source, event.start_mark, event.end_mark)

    def _span(self, event: Any) -> Span:
        start, end = event.start_mark, event.end_mark
        length = end.column - start.column if end.line == start.line else 1
        return Span(self._source.base + start.line + 1, start.column + 1, max(1, length))
