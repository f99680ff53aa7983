"""What of a document's nodes does not mean what it looks like, told before the reader takes it for more.

An alias may repeat something of another kind than is meant where it stands; a character may only look like
the one that is meant; a pair may lack the blank after its ':'. Each is told once, where it stands. What such
an alias repeats is then invalid; the others are read as what was meant.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field

from . import faults, lookalikes
from .diagnostics import Diagnostic
from .loader import Invalid, Mapping, Node, Quoted, Scalar, Sequence
from .model import Span


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
_TENSOR = Form("a tensor", Mapping, {"shape": _WORDS}, _TEXT)
_TENSORS = Form("tensors", Mapping, each=_TENSOR)
_SYMBOL = Form("a symbol", Mapping, {"length": _ANY}, _TEXT)
_ATTRIBUTE = Form("an attribute", Mapping, {"default": _ANY, "choices": _WORDS}, _TEXT)
_ROW = Form("a row", Mapping, each=_TEXT)
_CASE = Form("a case", Mapping, {"name": _TEXT, "layout": _TEXT}, _ANY)
_OP = Form(
    "an operator",
    Mapping,
    {
        "inputs": _TENSORS,
        "outputs": _TENSORS,
        "dims": Form("dims", Mapping, each=_SYMBOL),
        "attributes": Form("attributes", Mapping, each=_ATTRIBUTE),
        "rows": Form("rows", Mapping, each=_ROW),
        "cases": Form("cases", Sequence, each=_CASE),
        "backends": _WORDS,
    },
    _TEXT,
)
_SCHEMA = Form("the schema", Mapping, {"ops": Form("operators", Sequence, each=_OP)}, _TEXT)


@dataclass(frozen=True, slots=True)
class _Use:
    """A node where it stands, itself or by an alias."""

    node: Node
    form: Form
    owner: str  # "'rows' of operator 'Conv'"
    parent: Mapping | Sequence
    index: int  # among the parent's items
    alias: Span | None


def outline(root: Node) -> list[Diagnostic]:
    """Goes through all nodes once, and mends those that are at fault."""
    return _Outline().run(root)


class _Outline:
    def __init__(self) -> None:
        self._diagnostics: list[Diagnostic] = []
        self._meant: dict[int, _Use] = {}  # where nodes stand themselves, by their ids
        self._aliased: list[_Use] = []

    def run(self, root: Node) -> list[Diagnostic]:
        open_nodes: list[tuple[Node, Form, str]] = [(root, _SCHEMA, "the schema")]
        while open_nodes:
            node, form, owner = open_nodes.pop()
            if isinstance(node, Mapping):
                self._mend_pairs(node)
            for use in _uses(node, form, owner):
                if use.alias:
                    self._aliased.append(use)
                elif isinstance(use.node, (Mapping, Sequence)):
                    self._meant[id(use.node)] = use
                    open_nodes.append((use.node, use.form, use.owner))
                elif type(node) is Sequence:
                    self._mend_word(use.node)
        for use in self._aliased:
            self._check_alias(use)
        return self._diagnostics

    # -- Aliases ---

    def _check_alias(self, use: _Use) -> None:
        node, form = use.node, use.form
        if isinstance(node, Invalid):
            return
        meant = self._meant.get(id(node))
        wrong_kind = form.kind is not None and not isinstance(node, form.kind)
        wrong_form = meant is not None and bool(form.name and meant.form.name) and meant.form is not form
        if not wrong_kind and not wrong_form:
            return
        what = meant.owner if meant and meant.owner else node.kind
        told = faults.wrong_alias(use.alias, use.owner, form.name or _kind(form), what)
        self._diagnostics.append(told.noting("which stands here", node.span))
        use.parent.items[use.index] = Invalid(node.source, node.start, node.end)

    # -- Words ---

    def _mend_pairs(self, node: Mapping) -> None:
        items = node.items
        for index in range(0, len(items) - 1, 2):
            key, value = items[index], items[index + 1]
            if not isinstance(key, Scalar):
                continue
            pair = lookalikes.pair(key.value) if key.plain and _is_nothing(value) else None
            if pair:
                self._diagnostics.append(
                    faults.no_blank(key.span, key.value, pair)
                    if key.value.isascii()
                    else faults.lookalike(key.span, key.value, f"{pair[0]}: {pair[1]}")
                )
                items[index], items[index + 1] = _word(key, pair[0]), _word(key, pair[1])
                continue
            self._mend_word(key)
            if key.value != "doc":
                self._mend_word(value)

    def _mend_word(self, node: Node) -> None:
        if isinstance(node, Scalar) and not node.value.isascii():
            meant = lookalikes.meant(node.value)
            if meant:
                self._diagnostics.append(faults.lookalike(node.span, node.value, lookalikes.seen(node.value)))
                node.value = meant


def _uses(node: Node, form: Form, owner: str) -> Iterator[_Use]:
    if type(node) is Sequence:
        for index, item in enumerate(node.items):
            each = form.each or _ANY
            yield _Use(item, each, _owner(each, item, "", owner), node, index, node.aliases.get(index))
    elif type(node) is Mapping:
        for index in range(0, len(node.items) - 1, 2):
            yield from _value_uses(node, index, form, owner)


def _value_uses(node: Mapping, index: int, form: Form, owner: str) -> Iterator[_Use]:
    key, value = node.items[index], node.items[index + 1]
    alias = node.aliases.get(index + 1)
    text = key.value if isinstance(key, Scalar) else ""
    if text != "<<":
        of_key = form.keys.get(text) or form.each or _ANY
        yield _Use(value, of_key, _owner(of_key, value, text, owner), node, index + 1, alias)
    elif type(value) is Sequence and not alias:
        for place, item in enumerate(value.items):
            yield _Use(item, form, owner, value, place, value.aliases.get(place))
    else:
        yield _Use(value, form, owner, node, index + 1, alias)


def _owner(form: Form, node: Node, key: str, owner: str) -> str:
    """How the reader calls what stands there."""
    if form is _OP:
        name = _name_of(node)
        return f"operator '{name}'" if name else "an operator"
    return f"'{key}' of {owner}" if key else f"an entry of {owner}"


def _name_of(node: Node) -> str:
    items = node.items if type(node) is Mapping else []
    for key, value in zip(items[::2], items[1::2], strict=True):
        if isinstance(key, Scalar) and key.value == "name" and isinstance(value, Scalar):
            return value.value
    return ""


def _kind(form: Form) -> str:
    return form.kind.kind if form.kind else ""


def _is_nothing(node: Node) -> bool:
    return type(node) is Scalar and not node.value


def _word(key: Scalar, text: str) -> Scalar:
    return (Scalar if text else Quoted)(key.source, key.start, key.end, text)
