"""The attributes of an operator's entry and their values, from nodes to the model."""

from __future__ import annotations

from . import faults, grammar, scalars, vocabulary
from .entries import Entries, Entry
from .loader import Node, Scalar, Sequence
from .model import Attribute, AttributeKind, AttributeValue, LengthRule
from .spans import Spanned
from .suggestions import either, nearest
from .values import ValueReader, describe


class AttributeReader(ValueReader):
    """Reads attributes, and values of them."""

    def attributes(self, node: Node, owner: str) -> tuple[Attribute, ...]:
        return self.once("attributes", node, self._read_attributes, owner)

    def _read_attributes(self, node: Node, owner: str) -> tuple[Attribute, ...]:
        entries = self.entries(node, f"'attributes' of {owner}")
        attributes = [
            self.once(("attribute", id(key)), value, self._attribute, key) for key, value in entries.values()
        ]
        return tuple([attribute for attribute in attributes if attribute])

    def _attribute(self, node: Node, key: Scalar) -> Attribute | None:
        owner = f"attribute '{key.value}'"
        before = self.fault_count
        entries = self.entries(node, owner)
        if self.fault_count == before:
            self.known_keys(entries, owner, key, vocabulary.ATTRIBUTE)
        kind = self._attribute_kind(entries, owner)
        if not kind or not self._has_keys_of_kind(entries, owner, key, kind):
            return None
        is_optional = "optional" in entries and self.boolean(entries["optional"][1], f"'optional' of {owner}")
        if not self._has_default_or_is_optional(entries, owner, key, is_optional):
            return None
        read_bound = self.extended_number if kind.is_real else self.integer
        minimum = read_bound(entries["min"][1], f"'min' of {owner}") if "min" in entries else None
        maximum = read_bound(entries["max"][1], f"'max' of {owner}") if "max" in entries else None
        default = (
            self.value(entries["default"][1], f"the default of {owner}", kind)
            if "default" in entries
            else None
        )
        choices = self.words(entries["choices"][1], f"'choices' of {owner}") if "choices" in entries else {}
        return Attribute(
            name=key.value,
            kind=kind,
            default=default if default is not None or is_optional else 0,
            origin=Entry(key, entries),
            minimum=minimum,
            maximum=maximum,
            choices=tuple(choices),
            enum=self.word_at("enum", entries, owner),
            length=self._attribute_length(entries["length"][1], owner) if "length" in entries else None,
            axis_of=self.word_at("axis_of", entries, owner, "the name of an input"),
            doc=self.doc(entries),
        )

    def _has_default_or_is_optional(
        self, entries: Entries, owner: str, place: Spanned, is_optional: bool
    ) -> bool:
        """One of the two, and not both: only what has no default may be absent."""
        before = self.fault_count
        if is_optional and "default" in entries:
            remedy = "an attribute that has a default is never absent"
            span = entries["default"][0].span
            self.report(faults.key_not_for_kind(span, "default", f"the optional {owner}", remedy))
        elif not is_optional and "default" not in entries:
            unknown = [key for key in entries if key not in vocabulary.ATTRIBUTE]
            if any(nearest(key, ["default", "optional"]) for key in unknown):
                return False  # which has been told
            self.report(faults.missing_key(place.span, ["default"], owner))
        return self.fault_count == before

    def _attribute_kind(self, entries: Entries, owner: str) -> AttributeKind | None:
        if "type" not in entries:
            return None
        node = entries["type"][1]
        name = self.text(node, f"'type' of {owner}", "a name")
        kind = vocabulary.ATTRIBUTE_KINDS.get(name)
        if name and not kind:
            self.report(faults.unknown_attribute_type(node.span, name, vocabulary.ATTRIBUTE_KINDS))
        return kind

    def _has_keys_of_kind(self, entries: Entries, owner: str, place: Spanned, kind: AttributeKind) -> bool:
        """Reports keys that only other kinds of attributes have, and those that this kind must have."""
        keys = vocabulary.ATTRIBUTE_KIND_KEYS[kind]
        before = self.fault_count
        for key in vocabulary.ATTRIBUTE_OF_SOME_KINDS:
            if key in entries and key not in keys:
                kinds = [
                    other.value for other, theirs in vocabulary.ATTRIBUTE_KIND_KEYS.items() if key in theirs
                ]
                remedy = f"it is for attributes of type {either(kinds)}"
                key_span = entries[key][0].span
                self.report(faults.key_not_for_kind(key_span, key, f"the {kind.value} {owner}", remedy))
        missing = [key for key in keys.required if key not in entries]
        if missing:
            self.report(faults.missing_key(place.span, missing, owner))
        return self.fault_count == before

    def _attribute_length(self, node: Node, owner: str) -> LengthRule | None:
        if type(node) is Scalar and scalars.is_number(node.value):
            text = node.value  # in quotes it would be no length either
        else:
            text = self.text(node, f"'length' of {owner}", "a list symbol or a multiple of one")
        rule = grammar.length_rule(text) if text else None
        if text and not rule:
            self.report(faults.bad_length(node.span, text, "a list symbol, D, or a multiple of one, 2 * D"))
        return rule

    def value(self, node: Node, owner: str, kind: AttributeKind) -> AttributeValue | None:
        """An attribute's value, as a default or in a case."""
        if kind is AttributeKind.INTS:
            return self.integers(node, owner, faults.wrong_value_type)
        if kind is AttributeKind.FLOATS:
            return self.numbers(node, owner, faults.wrong_value_type)
        if kind is AttributeKind.INT:
            return self.integer(node, owner, faults.wrong_value_type)
        if kind is AttributeKind.FLOAT:
            number = self.extended_number(node, owner, faults.wrong_value_type)
            return None if number is None else float(number)
        return self._word_value(node, owner, kind)

    def _word_value(self, node: Node, owner: str, kind: AttributeKind) -> AttributeValue | None:
        """A value that is no number."""
        if kind is AttributeKind.BOOL:
            return self._truth(node, owner)
        if kind is AttributeKind.STRING:
            return self._string(node, owner)
        if isinstance(node, Scalar) and (node.value or not node.plain):
            return self.text(node, owner) or None
        self.report_value(node, owner, "one of its choices")
        return None

    def _truth(self, node: Node, owner: str) -> bool | None:
        """True or false; None, and a fault, where it is neither."""
        if type(node) is Scalar and node.value in ("true", "false"):
            return node.value == "true"
        if type(node) is Scalar and scalars.is_old_boolean(node.value):
            self.boolean(node, owner)
        else:
            self.report_value(node, owner, "true or false")
        return None

    def _string(self, node: Node, owner: str) -> str | None:
        """A text, which may be empty; None, and a fault, where it is none."""
        if isinstance(node, Scalar) and not node.plain:
            return node.value
        if isinstance(node, Scalar) and node.value:
            return self.text(node, owner) or None
        self.report_value(node, owner, "a text")
        return None

    def report_value(self, node: Node, owner: str, expected: str) -> None:
        if isinstance(node, (Scalar, Sequence)) or node.kind == "a mapping":
            self.report(faults.wrong_value_type(node.span, owner, expected, describe(node)))
        else:
            self.fault_count += 1
