"""What of a document's nodes does not mean what it looks like, told before the reader takes it for more.

An alias may repeat something of another kind than is meant where it stands; a character may only look like
the one that is meant; a pair may lack the blank after its ':'. Each is told once, where it stands. What such
an alias repeats is then invalid; the others are read as what was meant.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field
from typing import NamedTuple

from . import faults, lookalikes
from .diagnostics import Diagnostic
from .grammar import REFERENCE
from .includes import LoadedFile
from .loader import Invalid, Mapping, Node, Scalar, Sequence
from .spans import Span


@dataclass(frozen=True, eq=False, slots=True)
class Form:
    """What may stand in a place. Two forms are alike where they are one object, or have no name."""

    name: str = ""  # as in "repeats the rows of operator 'Conv'"
    kind: type[Node] | None = None  # None: any
    keys: MappingOf[str, Form] = field(default_factory=dict)  # of a mapping's values, by their keys
    each: Form | None = None  # of all others, and of a list's items


_ANY = Form()
_TEXT = Form(kind=Scalar)
_WORDS = Form(kind=Sequence, each=_TEXT)
_TENSOR = Form("a tensor", Mapping, {"shape": _WORDS, "gradient_of": _ANY}, _TEXT)
_TENSORS = Form("tensors", Mapping, each=_TENSOR)
_SYMBOL = Form("a symbol", Mapping, {"length": _ANY, "length_if": _ANY}, _TEXT)
_ATTRIBUTE = Form("an attribute", Mapping, {"default": _ANY, "choices": _WORDS}, _TEXT)
_ROW = Form("a row", Mapping, each=_TEXT)
_CASE = Form("a case", Mapping, {"name": _TEXT, "layout": _TEXT}, _ANY)
_VALUES = Form(kind=Mapping, each=_TEXT)
_OP = Form(
    "an operator",
    Mapping,
    {
        "inputs": _TENSORS,
        "outputs": _TENSORS,
        "dims": Form("dims", Mapping, each=_SYMBOL),
        "attributes": Form("attributes", Mapping, each=_ATTRIBUTE),
        "formulas": Form("formulas", Mapping, each=_TEXT),
        "rows": Form("rows", Mapping, each=_ROW),
        "seams": Form("seams", Sequence, each=Form("a seam", Mapping, each=_VALUES)),
        "cases": Form("cases", Sequence, each=_CASE),
        "backends": _WORDS,
        "history": Form("a history", Sequence, each=Form("a change of a history", Mapping, each=_TEXT)),
        "special_values": Form("special values", Sequence, each=Form("a special value", Mapping, each=_TEXT)),
    },
    _TEXT,
)
_SCHEMA = Form(
    "the schema",
    Mapping,
    {
        "include": Form(kind=Sequence, each=_TEXT),
        "shared": Form("shared parts", Mapping, each=_ANY),
        "ops": Form("operators", Sequence, each=_OP),
    },
    _TEXT,
)


class _Place(NamedTuple):
    """Where a node stands, itself or by an alias."""

    form: Form  # what may stand there
    key: str  # empty in a list
    node: Node
    outer: _Place | None

    @property
    def text(self) -> str:
        """`'rows' of operator 'Conv'`."""
        if self.outer is None:
            return "the schema"
        if self.form is _OP:
            name = _name_of(self.node)
            return f"operator '{name}'" if name else "an operator"
        return f"'{self.key}' of {self.outer.text}" if self.key else f"an entry of {self.outer.text}"


@dataclass(frozen=True, slots=True)
class _Alias:
    place: _Place
    span: Span
    parent: Mapping | Sequence
    index: int  # among the parent's items


def outline(files: Iterable[LoadedFile]) -> list[Diagnostic]:
    """Goes through all nodes once, puts what is referred to in the place of references, and mends what is at
    fault."""
    return _Outline().run(files)


class _Outline:
    def __init__(self) -> None:
        self._diagnostics: list[Diagnostic] = []
        self._meant: dict[
            int, _Place
        ] = {}  # where nodes that an alias may repeat stand themselves, by their ids
        self._open: list[_Place] = []
        self._aliases: list[_Alias] = []
        self._included: MappingOf[str, LoadedFile] = {}  # by the file whose nodes are gone through

    def run(self, files: Iterable[LoadedFile]) -> list[Diagnostic]:
        for file in files:
            if file.root:
                self._included = file.included
                self._file(file.root)
        for alias in self._aliases:
            self._check(alias)
        return self._diagnostics

    def _file(self, root: Node) -> None:
        self._open.append(_Place(_SCHEMA, "", root, None))
        while self._open:
            place = self._open.pop()
            node = place.node
            if node.shared:
                self._meant[id(node)] = place
            if type(node) is Mapping:
                self._mapping(node, place)
            elif type(node) is Sequence:
                self._sequence(node, place, place.form.each or _ANY)

    def _sequence(self, node: Sequence, place: _Place, form: Form) -> None:
        for index in range(len(node.items)):
            self._item(node, index, form, "", place)

    def _mapping(self, node: Mapping, place: _Place) -> None:
        items, keys, each = node.items, place.form.keys, place.form.each or _ANY
        for index in range(0, len(items) - 1, 2):
            key = items[index]
            if not isinstance(key, Scalar):
                continue
            self._mend_key(node, index, key)
            name, value = key.value, items[index + 1]
            if name != "<<":
                self._item(node, index + 1, keys.get(name, each), name, place)
            elif type(value) is Sequence and index + 1 not in node.aliases:
                for at in range(len(value.items)):
                    self._item(value, at, place.form, place.key, place.outer)
            else:
                self._item(node, index + 1, place.form, place.key, place.outer)

    def _item(
        self, parent: Mapping | Sequence, index: int, form: Form, key: str, outer: _Place | None
    ) -> None:
        node = parent.items[index]
        if index in parent.aliases:
            place = _Place(form, key, node, outer)
            self._aliases.append(_Alias(place, parent.aliases[index], parent, index))
        elif not isinstance(node, Scalar):
            self._open.append(_Place(form, key, node, outer))
        elif form.kind in (Mapping, Sequence) and node.plain and REFERENCE.match(node.value):
            self._refer(parent, index, _Place(form, key, node, outer), node)
        elif key != "doc" and not node.value.isascii():
            self._mend_word(node)

    # -- Aliases ---

    def _refer(self, parent: Mapping | Sequence, index: int, place: _Place, reference: Scalar) -> None:
        """Makes an alias of a reference to a part of an included file."""
        name, _, anchor = reference.value.partition(".")
        file = self._included.get(name)
        if file and anchor in file.anchors:
            node = parent.items[index] = file.anchors[anchor].node
            parent.alias(index, reference.span)
            self._aliases.append(_Alias(place._replace(node=node), reference.span, parent, index))
            return
        known = [f"{name}.{anchor}" for name, file in self._included.items() for anchor in file.anchors]
        self._diagnostics.append(faults.unknown_part(reference.span, reference.value, self._included, known))
        parent.items[index] = Invalid(reference.source, reference.start, reference.end)

    def _check(self, alias: _Alias) -> None:
        node, form = alias.place.node, alias.place.form
        if isinstance(node, Invalid):
            return
        meant = self._meant.get(id(node))
        wrong_kind = form.kind is not None and not isinstance(node, form.kind)
        wrong_form = meant is not None and bool(form.name and meant.form.name) and meant.form is not form
        if wrong_kind or wrong_form:
            expected = form.name or (form.kind.kind if form.kind else "")
            what = meant.text if meant else node.kind
            told = faults.wrong_alias(alias.span, alias.place.text, expected, what)
            self._diagnostics.append(told.noting("which stands here", node.span))
            alias.parent.items[alias.index] = Invalid(node.source, node.start, node.end)

    # -- Words ---

    def _mend_key(self, node: Mapping, index: int, key: Scalar) -> None:
        """And the value, where that has been taken for a part of the key."""
        text, value = key.value, node.items[index + 1]
        is_pair = key.plain and type(value) is Scalar and not value.value
        pair = lookalikes.pair(text) if is_pair else None
        if pair:
            self._diagnostics.append(
                faults.no_blank(key.span, text, pair)
                if text.isascii()
                else faults.lookalike(key.span, text, f"{pair[0]}: {pair[1]}")
            )
            key.value = pair[0]
            node.items[index + 1] = Scalar(key.source, key.start, key.end, pair[1])
        elif not text.isascii():
            self._mend_word(key)

    def _mend_word(self, node: Scalar) -> None:
        meant = lookalikes.meant(node.value)
        if meant:
            self._diagnostics.append(faults.lookalike(node.span, node.value, lookalikes.seen(node.value)))
            node.value = meant


def _name_of(node: Node) -> str:
    items = node.items if type(node) is Mapping else []
    for key, value in zip(items[::2], items[1::2], strict=True):
        if isinstance(key, Scalar) and key.value == "name" and isinstance(value, Scalar):
            return value.value
    return ""
