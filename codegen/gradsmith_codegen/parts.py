"""The parts of an operator's entry, from nodes to the model."""

from __future__ import annotations

from dataclasses import replace

from . import faults, grammar, vocabulary
from .loader import Node, Scalar, Sequence
from .model import (
    TYPE_ALIASES,
    Attribute,
    AttributeKind,
    AttributeValue,
    Backend,
    Case,
    DataType,
    Dim,
    Layout,
    LengthRule,
    Row,
    ShapeRule,
    Span,
    Symbol,
    Tensor,
)
from .values import Entries, NodeSpans, ValueReader, describe
from .vocabulary import Keys


class PartReader(ValueReader):
    """`owner` is who is spoken of in messages. A part that several operators share is read once."""

    # -- Tensors ---

    def inputs(self, node: Node, owner: str) -> tuple[Tensor, ...]:
        return self.once(("inputs", id(node)), lambda: self._tensors(node, owner, "input", vocabulary.INPUT))

    def outputs(self, node: Node, owner: str) -> tuple[Tensor, ...]:
        return self.once(
            ("outputs", id(node)), lambda: self._tensors(node, owner, "output", vocabulary.OUTPUT)
        )

    def _tensors(self, node: Node, owner: str, role: str, keys: Keys) -> tuple[Tensor, ...]:
        before = self.fault_count
        entries = self.entries(node, f"'{role}s' of {owner}")
        if not entries and self.fault_count == before:
            self.report(faults.nothing_there(node.span, owner, role))
        return tuple(self._tensor(key, value, role, keys) for key, value in entries.values())

    def _tensor(self, key: Scalar, node: Node, role: str, keys: Keys) -> Tensor:
        owner = f"{role} '{key.value}'"
        span = key.span
        before = self.fault_count
        entries = self.entries(node, owner)
        if self.fault_count == before:
            self._tensor_keys(entries, owner, span, keys)

        def word(name: str) -> str:
            return self.text(entries[name][1], f"'{name}' of {owner}", "a name") if name in entries else ""

        type_name = word("type")
        alias = TYPE_ALIASES.get(type_name)
        return Tensor(
            name=key.value,
            type=alias.value if alias else type_name,
            shape=self._shape(entries["shape"][1], owner) if "shape" in entries else (),
            span=span,
            doc=self.doc(entries),
            optional="optional" in entries and self.boolean(entries["optional"][1], f"'optional' of {owner}"),
            like=word("like"),
            gradient_of=word("gradient_of"),
            in_place_of=word("in_place_of"),
            spans=NodeSpans(entries),
        )

    def _tensor_keys(self, entries: Entries, owner: str, span: Span, keys: Keys) -> None:
        absent = self.known_keys(entries, owner, span, keys)
        if "shape" in entries and "like" in entries:
            remedy = "'like' already gives the shape"
            self.report(faults.key_not_for_kind(entries["shape"][0].span, "shape", owner, remedy))
        elif entries.keys() & set(keys.all) and not (entries.keys() | absent) & {"shape", "like"}:
            self.report(faults.missing_key(span, ["shape"], owner))

    def doc(self, entries: Entries) -> str:
        return self.sentence(entries["doc"][1]) if "doc" in entries else ""

    def _shape(self, node: Node, owner: str) -> tuple[Dim, ...]:
        return self.once(("shape", id(node)), lambda: self._read_shape(node, owner))

    def _read_shape(self, node: Node, owner: str) -> tuple[Dim, ...]:
        dims = [self._dim(item, owner) for item in self.items(node, f"'shape' of {owner}", "a list")]
        return tuple(dim for dim in dims if dim)

    def _dim(self, node: Node, owner: str) -> Dim | None:
        if type(node) is Scalar and node.plain and node.value.isdecimal():
            size = self.integer(node, f"a size in the shape of {owner}")
            text = str(size) if size is not None else ""
        else:
            text = self.text(node, f"an entry in the shape of {owner}", "a symbol or a number")
        if not text:
            return None
        dim = grammar.dim(text, node.span)
        if not dim:
            self.report(faults.bad_dim(node.span, text))
        return dim

    # -- Symbols ---

    def dims(self, node: Node, owner: str) -> dict[str, Symbol]:
        return self.once(("dims", id(node)), lambda: self._read_dims(node, owner))

    def _read_dims(self, node: Node, owner: str) -> dict[str, Symbol]:
        entries = self.entries(node, f"'dims' of {owner}")
        symbols = {name: self._symbol(key, value) for name, (key, value) in entries.items()}
        return {name: _with_length_of_root(symbol, symbols) for name, symbol in symbols.items()}

    def _symbol(self, key: Scalar, node: Node) -> Symbol:
        owner = f"symbol '{key.value}'"
        span = key.span
        entries = self.entries(node, owner)
        self.known_keys(entries, owner, span, vocabulary.SYMBOL)
        minimum, maximum, length_of = 0, grammar.MAX_RANK, ""
        if "length" in entries:
            minimum, maximum, length_of = self._symbol_length(entries["length"][1], owner)
        return Symbol(
            name=key.value,
            is_list="length" in entries,
            span=span,
            min_length=minimum,
            max_length=maximum,
            length_of=length_of,
            multiple_of=self._multiple_of(entries, owner),
            rule=self._rule(entries["rule"][1], owner) if "rule" in entries else None,
            doc=self.doc(entries),
            spans=NodeSpans(entries),
        )

    def _symbol_length(self, node: Node, owner: str) -> tuple[int, int, str]:
        anything = (0, grammar.MAX_RANK, "")
        expected = f"a number, [min, max] within 0 and {grammar.MAX_RANK}, or a list symbol"
        if type(node) is Scalar and not (node.plain and node.value[:1].isdecimal() and " " not in node.value):
            name = self.text(node, f"'length' of {owner}", expected)
            if name and not grammar.is_identifier(name):
                self.report(faults.bad_length(node.span, name, expected))
                return anything
            return (0, grammar.MAX_RANK, name)
        if type(node) is Sequence:
            bounds = self.integers(node, f"'length' of {owner}")
        else:
            length = self.integer(node, f"'length' of {owner}")
            bounds = None if length is None else (length, length)
        if bounds is None:
            return anything
        if len(bounds) != 2 or not 0 <= bounds[0] <= bounds[1] <= grammar.MAX_RANK:
            text = describe(node).strip("'") if type(node) is Scalar else str(list(bounds))
            self.report(faults.bad_length(node.span, text, expected))
            return anything
        return (bounds[0], bounds[1], "")

    def _multiple_of(self, entries: Entries, owner: str) -> str:
        if "multiple_of" not in entries:
            return ""
        return self.text(entries["multiple_of"][1], f"'multiple_of' of {owner}", "the name of an attribute")

    def _rule(self, node: Node, owner: str) -> ShapeRule | None:
        text = self.text(node, f"'rule' of {owner}")
        rule = grammar.shape_rule(text, node.span) if text else None
        if text and not rule:
            self.report(faults.bad_rule(node.span, text))
        return rule

    # -- Attributes ---

    def attributes(self, node: Node, owner: str) -> tuple[Attribute, ...]:
        return self.once(("attributes", id(node)), lambda: self._read_attributes(node, owner))

    def _read_attributes(self, node: Node, owner: str) -> tuple[Attribute, ...]:
        entries = self.entries(node, f"'attributes' of {owner}")
        attributes = [self._attribute(key, value) for key, value in entries.values()]
        return tuple(attribute for attribute in attributes if attribute)

    def _attribute(self, key: Scalar, node: Node) -> Attribute | None:
        return self.once(("attribute", id(key), id(node)), lambda: self._read_attribute(key, node))

    def _read_attribute(self, key: Scalar, node: Node) -> Attribute | None:
        owner = f"attribute '{key.value}'"
        before = self.fault_count
        entries = self.entries(node, owner)
        if self.fault_count == before:
            self.known_keys(entries, owner, key.span, vocabulary.ATTRIBUTE)
        kind = self._attribute_kind(entries, owner)
        if not kind or not self._has_keys_of_kind(entries, owner, key.span, kind):
            return None
        read_bound = self.number if kind is AttributeKind.FLOAT else self.integer
        minimum = read_bound(entries["min"][1], f"'min' of {owner}") if "min" in entries else None
        maximum = read_bound(entries["max"][1], f"'max' of {owner}") if "max" in entries else None
        default = (
            self.value(entries["default"][1], f"the default of {owner}", kind)
            if "default" in entries
            else None
        )
        choices = self.words(entries["choices"][1], f"'choices' of {owner}") if "choices" in entries else []
        return Attribute(
            name=key.value,
            kind=kind,
            default=default if default is not None else 0,
            span=key.span,
            minimum=minimum,
            maximum=maximum,
            choices=tuple(choice for choice, _ in choices),
            enum=self.text(entries["enum"][1], f"'enum' of {owner}", "a name") if "enum" in entries else "",
            length=self._attribute_length(entries["length"][1], owner) if "length" in entries else None,
            doc=self.doc(entries),
            spans=NodeSpans(entries),
        )

    def _attribute_kind(self, entries: Entries, owner: str) -> AttributeKind | None:
        if "type" not in entries:
            return None
        node = entries["type"][1]
        name = self.text(node, f"'type' of {owner}", "a name")
        kind = vocabulary.ATTRIBUTE_KINDS.get(name)
        if name and not kind:
            self.report(faults.unknown_attribute_type(node.span, name, vocabulary.ATTRIBUTE_KINDS))
        return kind

    def _has_keys_of_kind(self, entries: Entries, owner: str, span: Span, kind: AttributeKind) -> bool:
        """Reports keys that only other kinds of attributes have, and those that this kind must have."""
        keys = vocabulary.ATTRIBUTE_KIND_KEYS[kind]
        before = self.fault_count
        for key in vocabulary.ATTRIBUTE_OF_SOME_KINDS:
            if key in entries and key not in keys:
                kinds = [
                    other.value for other, theirs in vocabulary.ATTRIBUTE_KIND_KEYS.items() if key in theirs
                ]
                remedy = f"it is for attributes of type {faults.either(kinds)}"
                key_span = entries[key][0].span
                self.report(faults.key_not_for_kind(key_span, key, f"the {kind.value} {owner}", remedy))
        missing = [key for key in keys.required if key not in entries]
        if missing:
            self.report(faults.missing_key(span, missing, owner))
        return self.fault_count == before

    def _attribute_length(self, node: Node, owner: str) -> LengthRule | None:
        text = self.text(node, f"'length' of {owner}", "a list symbol or a multiple of one")
        rule = grammar.length_rule(text) if text else None
        if text and not rule:
            self.report(faults.bad_length(node.span, text, "a list symbol, D, or a multiple of one, 2 * D"))
        return rule

    def value(self, node: Node, owner: str, kind: AttributeKind) -> AttributeValue | None:
        """An attribute's value, as a default or in a case."""
        if kind is AttributeKind.INTS:
            return self.integers(node, owner, faults.wrong_value_type)
        if kind is AttributeKind.INT:
            return self.integer(node, owner, faults.wrong_value_type)
        if kind is AttributeKind.FLOAT:
            number = self.number(node, owner, faults.wrong_value_type)
            return None if number is None else float(number)
        if type(node) is Scalar and (node.value or not node.plain):
            return self.text(node, owner) or None
        self.report_value(node, owner, "one of its choices")
        return None

    def report_value(self, node: Node, owner: str, expected: str) -> None:
        if isinstance(node, (Scalar, Sequence)) or node.kind == "a mapping":
            self.report(faults.wrong_value_type(node.span, owner, expected, describe(node)))
        else:
            self.fault_count += 1

    # -- Rows ---

    def rows(self, node: Node, owner: str) -> tuple[Row, ...]:
        return self.once(("rows", id(node)), lambda: self._read_rows(node, owner))

    def _read_rows(self, node: Node, owner: str) -> tuple[Row, ...]:
        before = self.fault_count
        entries = self.entries(node, f"'rows' of {owner}")
        if not entries and self.fault_count == before:
            self.report(faults.nothing_there(node.span, owner, "row"))
        return tuple(self._row(key, value) for key, value in entries.values())

    def _row(self, key: Scalar, node: Node) -> Row:
        return self.once(("row", id(key), id(node)), lambda: self._read_row(key, node))

    def _read_row(self, key: Scalar, node: Node) -> Row:
        entries = self.entries(node, f"row '{key.value}'")
        types = []
        for parameter, (_, value) in entries.items():
            data_type = self._data_type(value, f"'{parameter}' of row '{key.value}'")
            if data_type:
                types.append((parameter, data_type))
        return Row(key.value, tuple(types), key.span, NodeSpans(entries))

    def _data_type(self, node: Node, owner: str) -> DataType | None:
        name = self.text(node, owner, "an element type")
        data_type = vocabulary.TYPES.get(name)
        if name and not data_type:
            self.report(faults.unknown_type(node.span, name, vocabulary.TYPES))
        return data_type

    # -- Cases ---

    def cases(
        self, node: Node, owner: str, tensors: tuple[str, ...], attributes: tuple[Attribute, ...]
    ) -> tuple[Case, ...]:
        """The cases of an op with these tensors and attributes. A case with a fault is left out."""

        def read() -> tuple[Case, ...]:
            items = self.items(node, f"'cases' of {owner}", "a list of test cases")
            if type(node) is Sequence and not items:
                self.report(faults.nothing_there(node.span, owner, "case"))
            kinds = {a.name: a.kind for a in attributes if a.name not in tensors}
            keys = Keys(vocabulary.CASE.required, (*vocabulary.CASE.optional, *tensors, *kinds))
            shaped = set(tensors).difference(vocabulary.CASE.all)
            cases = [self._case(item, owner, keys, kinds, shaped) for item in items]
            return tuple(case for case in cases if case)

        return self.once(("cases", id(node), tensors, id(attributes)), read)

    def _case(
        self, node: Node, op: str, keys: Keys, kinds: dict[str, AttributeKind], shaped: set[str]
    ) -> Case | None:
        before = self.fault_count
        entries = self.entries(node, "a case")
        name, span = "", Span(node.start.line + 1, node.start.column + 1)
        if "name" in entries:
            name, span = self.text(entries["name"][1], "'name' of a case", "a name"), entries["name"][1].span
        if self.fault_count == before:
            self.known_keys(entries, f"case '{name}' of {op}" if name else f"a case of {op}", span, keys)
        layout = self._layout(entries["layout"][1]) if "layout" in entries else Layout.CONTIGUOUS
        shapes: list[tuple[str, tuple[int, ...]]] = []
        values: list[tuple[str, AttributeValue]] = []
        for key, (_, value_node) in entries.items():
            if key in kinds:
                values.append((key, self.value(value_node, f"'{key}'", kinds[key]) or 0))
            elif key in shaped:
                shapes.append((key, self.integers(value_node, f"the shape of '{key}'") or ()))
        if self.fault_count != before:
            return None
        return Case(name, tuple(shapes), tuple(values), layout, span, (), NodeSpans(entries))

    def _layout(self, node: Node) -> Layout:
        name = self.text(node, "'layout'", "a name")
        if name and name not in vocabulary.LAYOUTS:
            self.report(faults.unknown_layout(node.span, name, vocabulary.LAYOUTS))
        return vocabulary.LAYOUTS.get(name, Layout.CONTIGUOUS)

    # -- Single values of an op ---

    def kernel(self, node: Node, owner: str) -> str:
        text = self.text(node, f"'kernel' of {owner}", "a name")
        if text and not grammar.is_kernel(text):
            self.report(faults.bad_kernel(node.span, text))
        return text

    def backends(self, node: Node, owner: str) -> tuple[Backend, ...]:
        return self.once(("backends", id(node)), lambda: self._read_backends(node, owner))

    def _read_backends(self, node: Node, owner: str) -> tuple[Backend, ...]:
        words = self.words(node, f"'backends' of {owner}")
        if type(node) is Sequence and not node.items:
            self.report(faults.nothing_there(node.span, owner, "backend"))
        for name, span in words:
            if name not in vocabulary.BACKENDS:
                self.report(faults.unknown_backend(span, name, vocabulary.BACKENDS))
        return tuple(vocabulary.BACKENDS[name] for name, _ in words if name in vocabulary.BACKENDS)

    def forward(self, node: Node, owner: str) -> str:
        return self.text(node, f"'gradient_of' of {owner}", "the name of an operator")


def _with_length_of_root(symbol: Symbol, symbols: dict[str, Symbol]) -> Symbol:
    """`M: {length: L}`, `L: {length: K}`: M has K's length, and K's bounds. A circle stays as it is."""
    root, seen = symbol, {symbol.name}
    while root.length_of in symbols:
        if root.length_of in seen:
            return symbol
        seen.add(root.length_of)
        root = symbols[root.length_of]
    if root is symbol:
        return symbol
    return replace(
        symbol, length_of=root.length_of or root.name, min_length=root.min_length, max_length=root.max_length
    )
