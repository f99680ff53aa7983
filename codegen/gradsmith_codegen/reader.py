"""From YAML nodes to the model: each function reads one noun and reports what is wrong with its text.

Reading goes on after a fault, so that one run reports them all. The part of an operator that has a fault is
`broken`; checks that would need it keep quiet, so that one fault is one diagnostic. What several operators
share by aliases is read once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any, TypeVar

from . import faults, grammar, vocabulary
from .checks import check
from .diagnostics import Diagnostic, Source, has_errors, in_order
from .draft import Document, Draft
from .loader import PARSER, Node, Scalar, Sequence, compose, paused_collector, read_source
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
    Op,
    Row,
    Schema,
    ShapeRule,
    Span,
    Symbol,
    Tensor,
)
from .values import Entries, NodeSpans, ValueReader, describe

T = TypeVar("T")

_TYPE_PARAMETER = re.compile(r"T[0-9]*\Z")


def load_schema(path: Path) -> tuple[Schema | None, list[Diagnostic]]:
    """Reads and checks a schema. It is None where there are errors; warnings may come with it."""
    source, diagnostics = read_source(path)
    return (None, diagnostics) if diagnostics else load_source(source)


def load_source(source: Source, parser: Any = PARSER) -> tuple[Schema | None, list[Diagnostic]]:
    """Reads and checks a schema's text."""
    with paused_collector():
        root, diagnostics = compose(source, parser)
        if root is None and diagnostics:
            return None, in_order(diagnostics)
        reader = _Reader()
        document = reader.document(root, PurePath(source.path).name)
        diagnostics += reader.diagnostics
        schema = None
        if document:
            schema, findings = check(document)
            diagnostics += findings
        diagnostics = in_order(diagnostics)
        return (None if has_errors(diagnostics) else schema), diagnostics


class _Reader(ValueReader):
    def document(self, root: Node | None, name: str) -> Document | None:
        """None where the top level is not that of a schema, or of another version's."""
        if root is None or (isinstance(root, Scalar) and not root.value):
            self.report(faults.empty_document(root.span if root else None))
            return None
        entries = self.entries(root, "the schema")
        if not entries:
            return None
        version = self._version(entries)
        if version not in (None, vocabulary.SCHEMA_VERSION):
            return None
        self.known_keys(
            entries, "the schema", Span(root.start.line + 1, root.start.column + 1), vocabulary.SCHEMA
        )
        drafts = self._ops(entries["ops"][1]) if "ops" in entries else []
        return Document(name, version or 0, self._domain(entries), self._since_version(entries), drafts)

    def _version(self, entries: Entries) -> int | None:
        if "schema_version" not in entries:
            return None
        node = entries["schema_version"][1]
        version = self.integer(node, "'schema_version'")
        if version not in (None, vocabulary.SCHEMA_VERSION):
            self.report(faults.unsupported_version(node.span, version, vocabulary.SCHEMA_VERSION))
        return version

    def _domain(self, entries: Entries) -> str:
        if "domain" not in entries:
            return ""
        node = entries["domain"][1]
        domain = self.text(node, "'domain'")
        if domain and not grammar.is_domain(domain):
            self.report(faults.bad_domain(node.span, domain))
        return domain

    def _since_version(self, entries: Entries) -> int:
        if "since_version" not in entries:
            return 0
        node = entries["since_version"][1]
        version = self.integer(node, "'since_version'")
        if version is not None and not 1 <= version < 2**31:
            expected = f"an integer from 1 to {2**31 - 1}"
            self.report(faults.bad_number(node.span, "'since_version'", expected, str(version)))
        return version or 0

    def _ops(self, node: Node) -> list[Draft]:
        items = self.items(node, "'ops'", "a list of operators")
        if type(node) is Sequence and not items:
            self.report(faults.nothing_there(node.span, "the schema", "operator"))
        drafts = [self._op(item) for item in items]
        return [draft for draft in drafts if draft]

    def _op(self, node: Node) -> Draft | None:
        entries = self.entries(node, "an operator")
        return _OpReader(self, node, entries).draft() if entries else None

    # -- Tensors ---

    def inputs(self, node: Node, owner: str) -> tuple[Tensor, ...]:
        return self.once(("inputs", id(node)), lambda: self._tensors(node, owner, "input", vocabulary.INPUT))

    def outputs(self, node: Node, owner: str) -> tuple[Tensor, ...]:
        return self.once(
            ("outputs", id(node)), lambda: self._tensors(node, owner, "output", vocabulary.OUTPUT)
        )

    def _tensors(self, node: Node, owner: str, role: str, keys: vocabulary.Keys) -> tuple[Tensor, ...]:
        before = self.fault_count
        entries = self.entries(node, f"'{role}s' of {owner}")
        if not entries and self.fault_count == before:
            self.report(faults.nothing_there(node.span, owner, role))
        return tuple(self._tensor(key, value, role, keys) for key, value in entries.values())

    def _tensor(self, key: Scalar, node: Node, role: str, keys: vocabulary.Keys) -> Tensor:
        owner = f"{role} '{key.value}'"
        before = self.fault_count
        entries = self.entries(node, owner)
        if self.fault_count == before:
            self._tensor_keys(entries, owner, key.span, keys)

        def word(name: str) -> str:
            return self.text(entries[name][1], f"'{name}' of {owner}", "a name") if name in entries else ""

        type_name = word("type")
        alias = TYPE_ALIASES.get(type_name)
        return Tensor(
            name=key.value,
            type=alias.value if alias else type_name,
            shape=self._shape(entries["shape"][1], owner) if "shape" in entries else (),
            span=key.span,
            doc=self.doc(entries),
            optional="optional" in entries and self.boolean(entries["optional"][1], f"'optional' of {owner}"),
            like=word("like"),
            gradient_of=word("gradient_of"),
            in_place_of=word("in_place_of"),
            spans=NodeSpans(entries),
        )

    def _tensor_keys(self, entries: Entries, owner: str, span: Span, keys: vocabulary.Keys) -> None:
        absent = self.known_keys(entries, owner, span, keys)
        if "shape" in entries and "like" in entries:
            remedy = "'like' already gives the shape"
            self.report(faults.key_not_for_kind(entries["shape"][0].span, "shape", owner, remedy))
        elif not entries.keys() & {"shape", "like"} and not absent & {"shape", "like"}:
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
        entries = self.entries(node, owner)
        self.known_keys(entries, owner, key.span, vocabulary.SYMBOL)
        minimum, maximum, length_of = 0, grammar.MAX_RANK, ""
        if "length" in entries:
            minimum, maximum, length_of = self._symbol_length(entries["length"][1], owner)
        return Symbol(
            name=key.value,
            is_list="length" in entries,
            span=key.span,
            min_length=minimum,
            max_length=maximum,
            length_of=length_of,
            rule=self._rule(entries["rule"][1], owner) if "rule" in entries else None,
            doc=self.doc(entries),
            spans=NodeSpans(entries),
        )

    def _symbol_length(self, node: Node, owner: str) -> tuple[int, int, str]:
        anything = (0, grammar.MAX_RANK, "")
        expected = f"a number, [min, max] within 0 and {grammar.MAX_RANK}, or a list symbol"
        if type(node) is Scalar and not (node.plain and node.value[:1].isdecimal()):
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
        if not kind:
            return None
        self._attribute_kind_keys(entries, owner, key.span, kind)
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

    def _attribute_kind_keys(self, entries: Entries, owner: str, span: Span, kind: AttributeKind) -> None:
        """Reports keys that other kinds of attributes have, and those that this kind must have."""
        keys = vocabulary.ATTRIBUTE_KIND_KEYS[kind]
        for key in ("min", "max", "length", "enum", "choices"):
            if key in entries and key not in keys.all:
                whose = [
                    other.value
                    for other, theirs in vocabulary.ATTRIBUTE_KIND_KEYS.items()
                    if key in theirs.all
                ]
                remedy = f"it is for attributes of type {faults.either(whose)}"
                self.report(
                    faults.key_not_for_kind(entries[key][0].span, key, f"the {kind.value} {owner}", remedy)
                )
        missing = [key for key in keys.required if key not in entries]
        if missing:
            self.report(faults.missing_key(span, missing, owner))

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
            kinds = {attribute.name: attribute.kind for attribute in attributes}
            cases = [self._case(item, owner, tensors, kinds) for item in items]
            return tuple(case for case in cases if case)

        return self.once(("cases", id(node), tensors, id(attributes)), read)

    def _case(
        self, node: Node, op: str, tensors: tuple[str, ...], kinds: dict[str, AttributeKind]
    ) -> Case | None:
        before = self.fault_count
        entries = self.entries(node, "a case")
        name, span = "", Span(node.start.line + 1, node.start.column + 1)
        if "name" in entries:
            name, span = self.text(entries["name"][1], "'name' of a case", "a name"), entries["name"][1].span
        elif self.fault_count == before:
            self.report(faults.missing_key(span, ["name"], "a case"))
        owner = f"case '{name}' of {op}" if name else f"a case of {op}"
        layout = self._layout(entries["layout"][1]) if "layout" in entries else Layout.CONTIGUOUS
        shapes: list[tuple[str, tuple[int, ...]]] = []
        values: list[tuple[str, AttributeValue]] = []
        for key, (key_node, value_node) in entries.items():
            if key in tensors:
                shapes.append((key, self.integers(value_node, f"the shape of '{key}'") or ()))
            elif key in kinds:
                values.append((key, self.value(value_node, f"'{key}'", kinds[key]) or 0))
            elif key not in vocabulary.CASE.all:
                known = [word for word in (*vocabulary.CASE.all, *tensors, *kinds) if word not in entries]
                self.report(faults.unknown_key(key_node.span, key, owner, known))
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


class _OpReader:
    """Reads one operator's entry, and notes which of its parts have faults."""

    def __init__(self, reader: _Reader, node: Node, entries: Entries) -> None:
        self._reader = reader
        self._node = node
        self._entries = entries
        self._broken: set[str] = set()
        self._owner = "this operator"
        self._span = Span(node.start.line + 1, node.start.column + 1)

    def draft(self) -> Draft:
        reader, part = self._reader, self._part
        name = part("name", lambda node, _: reader.text(node, "'name' of an operator", "a name"), "")
        if name:
            self._owner = f"operator '{name}'"
            self._span = self._entries["name"][1].span
        self._broken |= reader.known_keys(self._entries, self._owner, self._span, vocabulary.OP)
        no_tensors: tuple[Tensor, ...] = ()
        inputs = part("inputs", reader.inputs, no_tensors)
        outputs = part("outputs", reader.outputs, no_tensors)
        inputs, outputs = _with_like_shapes(inputs, outputs)
        no_symbols: dict[str, Symbol] = {}
        declared = part("dims", reader.dims, no_symbols)
        no_attributes: tuple[Attribute, ...] = ()
        attributes = part("attributes", reader.attributes, no_attributes)
        no_rows: tuple[Row, ...] = ()
        rows = part("rows", reader.rows, no_rows)
        self._check_types(inputs + outputs, rows)
        op = Op(
            name=name,
            doc=part("doc", lambda node, _: reader.sentence(node), ""),
            span=self._span,
            line=self._node.start.line + 1,
            kernel=part("kernel", reader.kernel, ""),
            backends=part("backends", reader.backends, ()),
            inputs=inputs,
            outputs=outputs,
            symbols=_symbols(inputs + outputs, declared),
            attributes=attributes,
            rows=rows,
            cases=self._cases(inputs + outputs, attributes),
            gradient_of=part("gradient_of", reader.forward, ""),
            spans=NodeSpans(self._entries),
        )
        return Draft(_with_ordered_rows(op), self._broken, declared)

    def _part(self, key: str, read: Callable[[Node, str], T], default: T) -> T:
        if key not in self._entries:
            return default
        before = self._reader.fault_count
        value = read(self._entries[key][1], self._owner)
        if self._reader.fault_count != before:
            self._broken.add(key)
        return value

    def _check_types(self, tensors: tuple[Tensor, ...], rows: tuple[Row, ...]) -> None:
        """A type is an element type, or a parameter: some row binds it, or it looks like one."""
        if "rows" in self._broken:
            return
        known = {parameter for row in rows for parameter, _ in row.types} | vocabulary.TYPES.keys()
        for tensor in tensors:
            if tensor.type and tensor.type not in known and not _TYPE_PARAMETER.match(tensor.type):
                self._reader.report(faults.unknown_type(tensor.at("type"), tensor.type, known))
                self._broken.add("types")

    def _cases(self, tensors: tuple[Tensor, ...], attributes: tuple[Attribute, ...]) -> tuple[Case, ...]:
        """Not read where it is not sure which keys a case may have."""
        if self._broken & {"inputs", "outputs", "attributes"}:
            return ()
        names = tuple(dict.fromkeys(tensor.name for tensor in tensors))
        return self._part("cases", lambda node, owner: self._reader.cases(node, owner, names, attributes), ())


def _with_ordered_rows(op: Op) -> Op:
    """The rows get their types in the order of the op's type parameters; what is none of them comes last."""
    parameters = op.type_parameters
    if all(tuple(name for name, _ in row.types) == parameters for row in op.rows):
        return op
    rank = {name: index for index, name in enumerate(parameters)}

    def ordered(row: Row) -> Row:
        return replace(row, types=tuple(sorted(row.types, key=lambda entry: rank.get(entry[0], len(rank)))))

    return replace(op, rows=tuple(map(ordered, op.rows)))


def _with_like_shapes(
    inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Gives each tensor that is `like` another the other's shape; none where there is no such tensor."""
    tensors = inputs + outputs
    if not any(tensor.like for tensor in tensors):
        return inputs, outputs
    by_name = {tensor.name: tensor for tensor in reversed(tensors)}

    def shaped(tensor: Tensor) -> Tensor:
        origin, steps = tensor, 0
        while origin.like and origin.like in by_name and steps < len(tensors):
            origin, steps = by_name[origin.like], steps + 1
        return replace(tensor, shape=origin.shape) if tensor.like else tensor

    return tuple(map(shaped, inputs)), tuple(map(shaped, outputs))


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


def _symbols(tensors: tuple[Tensor, ...], declared: dict[str, Symbol]) -> tuple[Symbol, ...]:
    """In order of first use; a scalar symbol needs no declaration."""
    symbols: dict[str, Symbol] = {}
    for tensor in tensors:
        for dim in tensor.shape:
            if dim.symbol and dim.symbol not in symbols:
                known = declared.get(dim.symbol)
                symbols[dim.symbol] = known or Symbol(dim.symbol, dim.is_list, dim.span)
    return tuple(symbols.values())
