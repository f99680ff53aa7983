"""The symbols of an operator's shapes, from nodes to the model."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from . import chains, faults, grammar, scalars, vocabulary
from .entries import Entries, Entry
from .kernel_headers import KernelHeaders
from .loader import Node, Scalar, Sequence
from .model import LengthIf, Symbol
from .shapes import BROADCAST, SUM, ShapeRule
from .values import ValueReader, describe, quick_text


class SymbolLength(NamedTuple):
    """How many dims a list symbol has."""

    least: int = 0
    most: int = grammar.MAX_RANK
    length_of: str = ""  # the list symbol that has the same
    length_if: LengthIf | None = None


_ANY_LENGTH = SymbolLength()
_BOUNDS = f"a number or [min, max] within 0 and {grammar.MAX_RANK}"


class SymbolReader(ValueReader):
    """Reads what `dims` says of symbols: lengths, rules and where dims come from."""

    def __init__(self, headers: KernelHeaders) -> None:
        super().__init__()
        self.headers = headers

    def dims(self, node: Node, owner: str) -> dict[str, Symbol]:
        return self.once("dims", node, self._read_dims, owner)

    def _read_dims(self, node: Node, owner: str) -> dict[str, Symbol]:
        symbols = self.entries(node, f"'dims' of {owner}")
        entries = {name: self._symbol_entries(key, value) for name, (key, value) in symbols.items()}
        lengths = _lengths_of_roots({name: self._symbol_length(entries[name], name) for name in symbols})
        return {name: self._symbol(key, entries[name], lengths[name]) for name, (key, _) in symbols.items()}

    def _symbol_entries(self, key: Scalar, node: Node) -> Entries:
        owner = f"symbol '{key.value}'"
        entries = self.entries(node, owner)
        self.known_keys(entries, owner, key, vocabulary.SYMBOL)
        return entries

    def _symbol(self, key: Scalar, entries: Entries, length: SymbolLength) -> Symbol:
        owner = f"symbol '{key.value}'"
        return Symbol(
            name=key.value,
            is_list="length" in entries,
            origin=Entry(key, entries),
            min_length=length.least,
            max_length=length.most,
            length_if=length.length_if,
            length_of=length.length_of,
            broadcast_to=self.word_at("broadcast_to", entries, owner, "the name of a list symbol"),
            given_by=self.word_at("given_by", entries, owner, "the name of an attribute"),
            multiple_of=self.word_at("multiple_of", entries, owner, "the name of an attribute"),
            split=tuple(self.words(entries["split"][1], f"'split' of {owner}")) if "split" in entries else (),
            rule=self._rule(entries["rule"][1], owner) if "rule" in entries else None,
            doc=self.doc(entries),
        )

    def _symbol_length(self, entries: Entries, name: str) -> SymbolLength:
        owner = f"symbol '{name}'"
        length = self._own_length(entries, owner)
        if "length_if" not in entries:
            return length
        if "length" not in entries or length.length_of:
            remedy = "it stands beside a 'length' that is a number or [min, max]"
            self.report(faults.key_not_for_kind(entries["length_if"][0].span, "length_if", owner, remedy))
            return length
        return length._replace(length_if=self._length_if(entries["length_if"][1], f"'length_if' of {owner}"))

    def _own_length(self, entries: Entries, owner: str) -> SymbolLength:
        if "length" not in entries:
            return _ANY_LENGTH
        node = entries["length"][1]
        other = quick_text(node)
        if grammar.is_identifier(other):
            return SymbolLength(length_of=other)
        return self._read_symbol_length(node, f"'length' of {owner}")

    def _read_symbol_length(self, node: Node, owner: str) -> SymbolLength:
        expected = f"a number, [min, max] within 0 and {grammar.MAX_RANK}, or a list symbol"
        if isinstance(node, Scalar) and not (
            node.plain and node.value[:1].isdecimal() and " " not in node.value
        ):
            name = self.text(node, owner, expected)
            if name and not grammar.is_identifier(name):
                self.report(faults.bad_length(node.span, name, expected))
                return _ANY_LENGTH
            return SymbolLength(length_of=name)
        bounds = self._length_bounds(node, owner, expected)
        return SymbolLength(*bounds) if bounds else _ANY_LENGTH

    def _length_if(self, node: Node, owner: str) -> LengthIf | None:
        before = self.fault_count
        entries = self.entries(node, owner)
        if not entries:
            if self.fault_count == before:
                self.report(faults.nothing_there(node.span, owner, "attribute"))
            return None
        (attribute, (_, value)), *others = entries.items()
        for name, (key, _) in others:
            remedy = f"it hangs on '{attribute}' alone"
            self.report(faults.key_not_for_kind(key.span, name, owner, remedy))
        bounds = self._length_bounds(value, f"'{attribute}' in {owner}", _BOUNDS)
        return LengthIf(attribute, *bounds) if bounds else None

    def _length_bounds(self, node: Node, owner: str, expected: str) -> tuple[int, int] | None:
        if type(node) is Sequence:
            bounds = self.integers(node, owner)
        else:
            length = self.integer(node, owner)
            bounds = None if length is None else (length, length)
        if bounds is None:
            return None
        if len(bounds) != 2 or not 0 <= bounds[0] <= bounds[1] <= grammar.MAX_RANK:
            text = describe(node).strip("'") if isinstance(node, Scalar) else scalars.list_text(bounds)
            self.report(faults.bad_length(node.span, text, expected))
            return None
        return bounds[0], bounds[1]

    def _rule(self, node: Node, owner: str) -> ShapeRule | None:
        text = self.text(node, f"'rule' of {owner}")
        rule = grammar.shape_rule(text) if text else None
        if text and not rule:
            self.report(faults.bad_rule(node.span, text, [*self.headers.rule_names(), BROADCAST, SUM]))
        if rule is None or not rule.is_of_family:
            return rule
        return replace(rule, formula=self.headers.rule_formula(rule.function))


def _lengths_of_roots(lengths: dict[str, SymbolLength]) -> dict[str, SymbolLength]:
    """`M: {length: L}`, `L: {length: K}`: M has K's length, and K's bounds. A circle stays as it is."""
    others = {name: length.length_of for name, length in lengths.items() if length.length_of in lengths}
    ends = chains.ends(others)

    def of_root(name: str) -> SymbolLength:
        root = ends.get(name, name)
        length = lengths[root]
        return length._replace(length_of=length.length_of or root) if root != name else length

    return {name: of_root(name) for name in lengths}
