"""The entries of the schema, as what they declare knows them."""

from __future__ import annotations

import sys

from .loader import Mapping, Node, Scalar
from .spans import Span, Spanned

Entries = dict[str, tuple[Scalar, Node]]  # a mapping's: the key's node and the value's


class Entry:
    """The `Origin` of a noun: the node of its name, and what its entry holds.

    The line is kept, not asked of the node: processes that render would otherwise look at most nodes, and
    each get a copy of the memory that holds them.
    """

    __slots__ = ("_entries", "_name", "line")

    def __init__(self, name: Spanned, entries: Entries) -> None:
        self._name = name
        self._entries = entries
        self.line = name.line

    @property
    def span(self) -> Span:
        return self._name.span

    def at(self, key: str) -> Span:
        return self._entries[key][1].span if key in self._entries else self.span


class Nameless(Entry):
    """An entry that lacks a name; the node is all of it."""

    __slots__ = ("_node",)

    def __init__(self, node: Node, entries: Entries) -> None:
        super().__init__(node, entries)
        self._node = node

    @property
    def span(self) -> Span:
        return self._node.first


class _Brought(Entry):
    """An entry some of whose values stand before it, brought by `<<` or an alias: what is said of those is
    said of where it stands itself."""

    __slots__ = ("_begins", "_place")

    def __init__(self, place: Span, begins: Span, entries: Entries) -> None:
        self._place = place
        self._begins = begins
        self._entries = entries
        self.line = place.line

    @property
    def span(self) -> Span:
        return self._place

    def at(self, key: str) -> Span:
        for node in self._entries[key][::-1] if key in self._entries else ():
            if node.first >= self._begins:
                return node.span
        return self.span


def _repeats(node: Node) -> bool:
    """Parts of the mapping may stand elsewhere."""
    if type(node) is not Mapping or node.aliases:
        return True
    return any(type(key) is Scalar and key.value == "<<" for key in node.items[::2])


def entry_of(node: Node, entries: Entries, alias: Span | None) -> Entry:
    """The origin of what has its name in its entry, which an alias may repeat, or parts of it."""
    if alias:
        return _Brought(alias, Span(sys.maxsize, 0), entries)
    name, begins = entries["name"][1] if "name" in entries else None, node.first
    if not _repeats(node) or all(value.first >= begins for _, value in entries.values()):
        return Entry(name, entries) if name else Nameless(node, entries)
    is_own = name is not None and name.first >= begins
    return _Brought(name.span if name and is_own else begins, begins, entries)
