"""The parts of an operator's entry, from nodes to the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from . import chains, faults, formula_parser, grammar, scalars, vocabulary
from .diagnostics import Diagnostic, counted
from .formula_tree import Tree
from .kernel_headers import KernelHeaders
from .lists import element
from .loader import Mapping, Node, Scalar, Sequence
from .model import (
    BROADCAST,
    SUM,
    TYPE_ALIASES,
    Attribute,
    AttributeKind,
    AttributeValue,
    Backend,
    Case,
    DataType,
    Dim,
    Formula,
    Layout,
    LengthIf,
    LengthRule,
    Repeatable,
    Revision,
    Row,
    Shape,
    ShapeRule,
    Span,
    Spanned,
    Symbol,
    Tensor,
)
from .passages import ScalarPassage
from .text import NO_TEXT, Text
from .values import (
    Alike,
    Entries,
    Entry,
    Nameless,
    ValueReader,
    describe,
    entry_of,
    quick_integers,
    quick_text,
)
from .vocabulary import Keys

PlacedShape = tuple[Shape, list[Node]]  # and the nodes of its dims


class SymbolLength(NamedTuple):
    """How many dims a list symbol has."""

    least: int = 0
    most: int = grammar.MAX_RANK
    length_of: str = ""  # the list symbol that has the same
    length_if: LengthIf | None = None


_NO_SHAPE: PlacedShape = (Shape(), [])
_ANY_LENGTH = SymbolLength()
_BOUNDS = f"a number or [min, max] within 0 and {grammar.MAX_RANK}"


@dataclass(frozen=True, slots=True)
class _CaseForm:
    """What the cases of a list may hold, and the unknown keys that they do."""

    keys: Keys
    kinds: dict[str, AttributeKind]  # of the attributes
    shaped: set[str]  # the tensors
    lists: frozenset[str]  # those that are lists
    unknown_keys: Alike


class PartReader(ValueReader):
    """`owner` is who is spoken of in messages. A part that several operators share is read once."""

    def __init__(self, headers: KernelHeaders) -> None:
        super().__init__()
        self.headers = headers

    # -- Tensors ---

    def inputs(self, node: Node, owner: str) -> tuple[Tensor, ...]:
        return self.once("inputs", node, self._tensors, owner, "input", vocabulary.INPUT)

    def outputs(self, node: Node, owner: str) -> tuple[Tensor, ...]:
        return self.once("outputs", node, self._tensors, owner, "output", vocabulary.OUTPUT)

    def _tensors(self, node: Node, owner: str, role: str, keys: Keys) -> tuple[Tensor, ...]:
        before = self.fault_count
        entries = self.entries(node, f"'{role}s' of {owner}")
        if not entries and self.fault_count == before:
            self.report(faults.nothing_there(node.span, owner, role))
        return tuple([self._tensor(key, value, role, keys) for key, value in entries.values()])

    def _tensor(self, key: Scalar, node: Node, role: str, keys: Keys) -> Tensor:
        owner = f"{role} '{key.value}'"
        before = self.fault_count
        entries = self.entries(node, owner)
        if self.fault_count == before:
            self._tensor_keys(entries, owner, key, keys)
        type_name = self.word_at("type", entries, owner)
        alias = TYPE_ALIASES.get(type_name)
        shape, dim_places = self._shape(entries["shape"][1], owner) if "shape" in entries else _NO_SHAPE
        return Tensor(
            name=key.value,
            type=alias.value if alias else type_name,
            shape=shape,
            dim_places=dim_places,
            origin=Entry(key, entries),
            doc=self.doc(entries),
            optional=self._flag("optional", entries, owner),
            like=self.word_at("like", entries, owner),
            gradient_of=self.word_at("gradient_of", entries, owner),
            in_place_of=self.word_at("in_place_of", entries, owner),
            shape_only=self._flag("shape_only", entries, owner),
            shape_of=self.word_at("shape_of", entries, owner, "the name of an output"),
            list=self._list(entries, owner),
            may_be_on_host=self._flag("may_be_on_host", entries, owner),
        )

    def _flag(self, key: str, entries: Entries, owner: str) -> bool:
        return key in entries and self.boolean(entries[key][1], f"'{key}' of {owner}")

    def _list(self, entries: Entries, owner: str) -> str:
        """What the list's length is called."""
        expected = "a name for the list's length"
        name = self.word_at("list", entries, owner, expected)
        if name and not grammar.is_identifier(name):
            self.report(
                faults.wrong_kind(entries["list"][1].span, f"'list' of {owner}", expected, f"'{name}'")
            )
        return name

    def _tensor_keys(self, entries: Entries, owner: str, place: Spanned, keys: Keys) -> None:
        absent = self.known_keys(entries, owner, place, keys)
        sources: list[str] = [key for key in ("shape_of", "like", "shape") if key in entries]
        for key in sources[1:]:
            remedy = f"'{sources[0]}' already gives the shape"
            self.report(faults.key_not_for_kind(entries[key][0].span, key, owner, remedy))
        if not sources and not absent & {"shape", "like"} and any(key in keys for key in entries):
            self.report(faults.missing_key(place.span, ["shape"], owner))
        for key in ("shape_only", "gradient_of", "list", "may_be_on_host") if "shape_of" in entries else ():
            if key in entries:
                remedy = "an input with 'shape_of' holds dims, which are read on the host and are no gradient"
                self.report(faults.key_not_for_kind(entries[key][0].span, key, owner, remedy))

    def doc(self, entries: Entries) -> Text:
        return self.sentence(entries["doc"][1]) if "doc" in entries else NO_TEXT

    def _shape(self, node: Node, owner: str) -> PlacedShape:
        return self.once("shape", node, self._read_shape, owner)

    def _read_shape(self, node: Node, owner: str) -> PlacedShape:
        """A dim with a fault is left out."""
        items = self.items(node, f"'shape' of {owner}")
        shape = grammar.shape(tuple(map(quick_text, items)))
        if shape is None:
            dims = [self._dim(item, owner) for item in items]
            shape = Shape([dim for dim in dims if dim])
        return shape, items

    def _dim(self, node: Node, owner: str) -> Dim | None:
        if type(node) is Scalar and node.value.isdecimal():
            size = self.integer(node, f"a size in the shape of {owner}")
            text = str(size) if size is not None else ""
        else:
            text = self.text(node, f"an entry in the shape of {owner}", "a symbol or a number")
        if not text:
            return None
        dim = grammar.dim(text)
        if not dim:
            self.report(faults.bad_dim(node.span, text))
        return dim

    # -- Symbols ---

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
        return rule

    # -- Attributes ---

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
            if any(faults.nearest(key, ["default", "optional"]) for key in unknown):
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
                remedy = f"it is for attributes of type {faults.either(kinds)}"
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

    # -- Rows ---

    def rows(self, node: Node, owner: str) -> tuple[Row, ...]:
        return self.once("rows", node, self._read_rows, owner)

    def _read_rows(self, node: Node, owner: str) -> tuple[Row, ...]:
        before = self.fault_count
        entries = self.entries(node, f"'rows' of {owner}")
        if not entries and self.fault_count == before:
            self.report(faults.nothing_there(node.span, owner, "row"))
        return tuple([self.once(("row", id(key)), value, self._row, key) for key, value in entries.values()])

    def _row(self, node: Node, key: Scalar) -> Row:
        entries = self.entries(node, f"row '{key.value}'")
        types = []
        for parameter, (_, value) in entries.items():
            data_type = self._data_type(value, f"'{parameter}' of row '{key.value}'")
            if data_type:
                types.append((parameter, data_type))
        return Row(key.value, tuple(types), Entry(key, entries))

    def _data_type(self, node: Node, owner: str) -> DataType | None:
        name = self.text(node, owner, "an element type")
        data_type = vocabulary.TYPES.get(name)
        if name and not data_type:
            self.report(faults.unknown_type(node.span, name, vocabulary.TYPES))
        return data_type

    # -- Cases ---

    def cases(
        self,
        node: Node,
        owner: str,
        tensors: tuple[str, ...],
        lists: frozenset[str],
        attributes: tuple[Attribute, ...],
    ) -> tuple[Case, ...]:
        """The cases of an op with these tensors, of which some are lists, and attributes. A case with a fault
        is left out."""
        what = ("cases", tensors, lists, id(attributes))
        return self.once(what, node, self._read_cases, owner, tensors, lists, attributes)

    def _read_cases(
        self,
        node: Node,
        owner: str,
        tensors: tuple[str, ...],
        lists: frozenset[str],
        attributes: tuple[Attribute, ...],
    ) -> tuple[Case, ...]:
        items = self.items(node, f"'cases' of {owner}", "a list of test cases")
        if type(node) is Sequence and not items:
            self.report(faults.nothing_there(node.span, owner, "case"))
        kinds = {a.name: a.kind for a in attributes if a.name not in tensors}
        keys = Keys(vocabulary.CASE.required, (*vocabulary.CASE.optional, *tensors, *kinds))
        shaped = set(tensors).difference(vocabulary.CASE.all)
        form = _CaseForm(keys, kinds, shaped, lists, {})
        aliases = node.aliases if type(node) is Sequence else {}
        cases = [self._case(item, owner, form, aliases.get(index)) for index, item in enumerate(items)]
        self.diagnostics += [_in_cases(found) for found in form.unknown_keys.values()]
        return tuple([case for case in cases if case])

    def _case(self, node: Node, op: str, form: _CaseForm, alias: Span | None) -> Case | None:
        before = self.fault_count
        entries = self.entries(node, "a case")
        name = self.word_at("name", entries, "a case")
        origin = entry_of(node, entries, alias)
        if self.fault_count == before:
            owner = f"case '{name}' of {op}" if name else f"a case of {op}"
            self.known_keys(entries, owner, origin, form.keys, form.unknown_keys)
        layout = self._layout(entries["layout"][1]) if "layout" in entries else Layout.CONTIGUOUS
        shapes: list[tuple[str, tuple[int, ...]]] = []
        values: list[tuple[str, AttributeValue]] = []
        for key, (_, value_node) in entries.items():
            if key in form.kinds:
                values.append((key, self._case_value(value_node, key, form.kinds[key])))
            elif key in form.lists:
                shapes += self._case_list(value_node, key)
            elif key in form.shaped:
                shapes.append((key, self._case_shape(value_node, key)))
        if self.fault_count != before:
            return None
        return Case(name, tuple(shapes), tuple(values), layout, origin)

    def _case_list(self, node: Node, key: str) -> list[tuple[str, tuple[int, ...]]]:
        """The shapes of a list's tensors, by names such as `X[0]`."""
        items = self.items(node, f"'{key}' of a case", "a list of shapes, one for each tensor")
        if type(node) is Sequence and not items:
            self.report(faults.nothing_there(node.span, f"'{key}'", "shape"))
        if items and all(isinstance(item, Scalar) for item in items):
            expected = "a list of shapes, one for each tensor"
            self.report(faults.wrong_kind(node.span, f"'{key}' of a case", expected, "one shape"))
            return []
        names = [element(key, place) for place in range(len(items))]
        return [(name, self._case_shape(item, name)) for name, item in zip(names, items, strict=True)]

    def _case_shape(self, node: Node, key: str) -> tuple[int, ...]:
        dims = quick_integers(node)
        return dims if dims is not None else self.integers(node, f"the shape of '{key}'") or ()

    def _case_value(self, node: Node, key: str, kind: AttributeKind) -> AttributeValue:
        """The value of an attribute; after a fault any."""
        quick = quick_integers(node) if kind is AttributeKind.INTS else None
        value = self.value(node, f"'{key}'", kind) if quick is None else quick
        return 0 if value is None else value

    def _layout(self, node: Node) -> Layout:
        name = self.text(node, "'layout'", "a name")
        if name and name not in vocabulary.LAYOUTS:
            self.report(faults.unknown_layout(node.span, name, vocabulary.LAYOUTS))
        return vocabulary.LAYOUTS.get(name, Layout.CONTIGUOUS)

    # -- Single values of an op ---

    def name(self, node: Node, _owner: str) -> str:
        return quick_text(node) or self.text(node, "'name' of an operator", "a name")

    def op_doc(self, node: Node, _owner: str) -> Text:
        return self.sentence(node)

    def kernel(self, node: Node, owner: str) -> str:
        text = self.text(node, f"'kernel' of {owner}", "a name")
        if text and not grammar.is_kernel(text):
            self.report(faults.bad_kernel(node.span, text, self.headers.kernel_names()))
        return text

    def formulas(
        self,
        node: Node,
        owner: str,
        tensors: tuple[Tensor, ...],
        declared: dict[str, Symbol],
        attributes: tuple[Attribute, ...],
    ) -> tuple[Formula, ...]:
        entries = self.entries(node, f"'formulas' of {owner}")
        if type(node) is Mapping and not node.items:
            self.report(faults.nothing_there(node.span, owner, "formula"))
        dims = frozenset().union(*[tensor.shape.symbols for tensor in tensors])
        dims = dims.union(*[symbol.split for symbol in declared.values()])
        dims -= {tensor.name for tensor in tensors}
        enums = frozenset(one.name for one in attributes if one.kind is AttributeKind.ENUM)
        parse = partial(formula_parser.parse, dims=dims, enums=enums)
        found = [
            self._expression(value, f"formula '{key.value}'", parse, key.value, Entry(key, {}))
            for key, value in entries.values()
        ]
        return tuple([formula for formula in found if formula])

    def operations(self, node: Node, owner: str) -> Formula | None:
        parse = partial(formula_parser.parse, dims=())
        return self._expression(
            node, f"'operations' of {owner}", parse, "operations", Nameless(node, {})
        )

    def _expression(
        self, node: Node, owner: str, parse: Callable[[str], Tree], name: str, origin: Entry
    ) -> Formula | None:
        if not isinstance(node, Scalar) or not node.value.strip():
            self.report_kind(node, owner, "an expression")
            return None
        passage = ScalarPassage(node)
        try:
            tree = parse(node.value)
        except formula_parser.Unparsed as fault:
            self.report(fault.diagnose(passage.part(fault.start, fault.end)))
            return None
        return Formula(name, Text(" ".join(node.value.split())), tree, passage, origin)

    def backends(self, node: Node, owner: str) -> tuple[Backend, ...]:
        return self.once("backends", node, self._read_backends, owner)

    def _read_backends(self, node: Node, owner: str) -> tuple[Backend, ...]:
        words = self.words(node, f"'backends' of {owner}")
        if type(node) is Sequence and not node.items:
            self.report(faults.nothing_there(node.span, owner, "backend"))
        for name, item in words.items():
            if name not in vocabulary.BACKENDS:
                self.report(faults.unknown_backend(item.span, name, vocabulary.BACKENDS))
        return tuple([vocabulary.BACKENDS[name] for name in words if name in vocabulary.BACKENDS])

    def repeatable(self, node: Node, owner: str) -> tuple[tuple[Backend, Repeatable], ...]:
        """A word for all backends, or one for each of some."""
        subject = f"'repeatable' of {owner}"
        if isinstance(node, Scalar):
            word = self._repeatable(node, subject)
            return tuple([(backend, word) for backend in Backend]) if word else ()
        entries = self.entries(node, subject)
        self.known_keys(entries, subject, node, Keys((), tuple(vocabulary.BACKENDS)))
        words = [(key, self._repeatable(value, subject)) for key, (_, value) in entries.items()]
        known = vocabulary.BACKENDS
        return tuple([(known[key], word) for key, word in words if word and key in known])

    def _repeatable(self, node: Node, subject: str) -> Repeatable | None:
        name = self.text(node, subject, "a word")
        if name and name not in vocabulary.REPEATABLE:
            self.report(faults.unknown_repeatable(node.span, name, vocabulary.REPEATABLE))
        return vocabulary.REPEATABLE.get(name)

    def since_version(self, node: Node, _owner: str) -> int:
        return self._number_of_version(node, "'since_version'")

    def _number_of_version(self, node: Node, what: str) -> int:
        version = self.integer(node, what)
        if version is not None and not 1 <= version < 2**31:
            expected = f"an integer from 1 to {2**31 - 1}"
            self.report(faults.bad_number(node.span, what, expected, str(version)))
        return version or 0

    def history(self, node: Node, owner: str) -> tuple[Revision, ...]:
        items = self.items(node, f"'history' of {owner}", "a list of versions and what changed in each")
        if type(node) is Sequence and not items:
            self.report(faults.nothing_there(node.span, owner, "version"))
        return tuple([found for found in [self._revision(item, owner) for item in items] if found])

    def _revision(self, node: Node, owner: str) -> Revision | None:
        before = self.fault_count
        entries = self.entries(node, "a version of a history")
        origin = Nameless(node, entries)
        if self.fault_count == before:
            self.known_keys(entries, f"a version of the history of {owner}", origin, vocabulary.REVISION)
        version = self._number_of_version(entries["version"][1], "'version'") if "version" in entries else 0
        change = self.sentence(entries["change"][1]) if "change" in entries else NO_TEXT
        return Revision(version, change, origin) if self.fault_count == before else None

    def forward(self, node: Node, owner: str) -> str:
        return self.text(node, f"'gradient_of' of {owner}", "the name of an operator")


def _in_cases(found: list[Diagnostic]) -> Diagnostic:
    """A tensor that has another name now is unknown in every case: that is told at the first."""
    first, *others = found
    if not others or others[0].span is None:
        return first
    return first.noting(f"the same in {counted(len(others), 'other case')}", others[0].span)


def _lengths_of_roots(lengths: dict[str, SymbolLength]) -> dict[str, SymbolLength]:
    """`M: {length: L}`, `L: {length: K}`: M has K's length, and K's bounds. A circle stays as it is."""
    others = {name: length.length_of for name, length in lengths.items() if length.length_of in lengths}
    ends = chains.ends(others)

    def of_root(name: str) -> SymbolLength:
        root = ends.get(name, name)
        length = lengths[root]
        return length._replace(length_of=length.length_of or root) if root != name else length

    return {name: of_root(name) for name in lengths}
