"""The parts of an operator's entry, from nodes to the model: here rows, formulas and single values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

from . import faults, formula_faults, formula_parser, grammar, vocabulary
from .case_reader import CaseReader
from .data_types import DataType
from .entries import Entries, Entry, Nameless
from .formula_tree import Tree
from .loader import Mapping, Node, Scalar, Sequence
from .model import (
    Attribute,
    AttributeKind,
    Backend,
    Formula,
    Repeatable,
    Revision,
    Row,
    Seam,
    SpecialValue,
    Symbol,
    Tensor,
)
from .passages import ScalarPassage
from .symbol_reader import SymbolReader
from .tensor_reader import TensorReader
from .text import NO_TEXT, Text
from .values import quick_text
from .vocabulary import Keys

Read = TypeVar("Read")


def _cut_off(node: Mapping) -> Iterator[tuple[str, Scalar, list[str]]]:
    """Formulas within { } that YAML ends at a comma between their brackets: their names and first parts, and
    what YAML takes for names of nothing."""
    first: tuple[str, Scalar] | None = None
    rest: list[str] = []
    open_brackets = 0
    for key, value in zip(node.items[::2], node.items[1::2], strict=True):
        if not (isinstance(key, Scalar) and isinstance(value, Scalar) and value.plain):
            open_brackets = 0
        elif first and open_brackets > 0 and not value.value.strip():
            rest.append(key.value)
            open_brackets += _open_brackets(key.value)
            continue
        else:
            if first and rest:
                yield (*first, rest)
            first, rest, open_brackets = (key.value, value), [], _open_brackets(value.value)
    if first and rest:
        yield (*first, rest)


def _open_brackets(text: str) -> int:
    return text.count("(") - text.count(")")


class PartReader(SymbolReader, TensorReader, CaseReader):
    """Reads all parts. `owner` is who is spoken of in messages. A part that several operators share is read
    once."""

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
        entries = self._expressions(node, f"'formulas' of {owner}")
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

    def seams(self, node: Node, owner: str) -> tuple[Seam, ...]:
        return self.once("seams", node, self._read_seams, owner)

    def _read_seams(self, node: Node, owner: str) -> tuple[Seam, ...]:
        items = self.items(node, f"'seams' of {owner}", "a list of places and what each gives")
        return self._each(items, node, owner, "seam", self._seam)

    def _seam(self, node: Node, owner: str) -> Seam | None:
        before = self.fault_count
        entries = self.entries(node, "a seam")
        origin = Nameless(node, entries)
        if self.fault_count == before:
            self.known_keys(entries, f"a seam of {owner}", origin, vocabulary.SEAM)
        parse = partial(formula_parser.parse, dims=())
        found: dict[str, tuple[Formula, ...]] = {}
        for part in vocabulary.SEAM.all if self.fault_count == before else ():
            values = self._expressions(entries[part][1], f"'{part}' of a seam")
            if not values and self.fault_count == before:
                noun = "input" if part == "at" else "output"
                self.report(faults.nothing_there(entries[part][1].span, "a seam", noun))
            expressions = [
                self._expression(value, f"'{key.value}' of a seam", parse, key.value, Entry(key, {}))
                for key, value in values.values()
            ]
            found[part] = tuple([one for one in expressions if one])
        return Seam(found["at"], found["gives"], origin) if self.fault_count == before else None

    def operations(self, node: Node, owner: str) -> Formula | None:
        parse = formula_parser.parse_count
        return self._expression(node, f"'operations' of {owner}", parse, "operations", Nameless(node, {}))

    def _expressions(self, node: Node, owner: str) -> Entries:
        """A mapping's entries; none where a comma has ended one of them."""
        cut_off = list(_cut_off(node)) if type(node) is Mapping else []
        for name, value, rest in cut_off:
            self.report(formula_faults.cut_off(value.span, name, ", ".join([value.value, *rest])))
        return {} if cut_off else self.entries(node, owner)

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
        return self._each(items, node, owner, "version", self._revision)

    def _revision(self, node: Node, owner: str) -> Revision | None:
        before = self.fault_count
        entries = self.entries(node, "a version of a history")
        origin = Nameless(node, entries)
        if self.fault_count == before:
            self.known_keys(entries, f"a version of the history of {owner}", origin, vocabulary.REVISION)
        version = self._number_of_version(entries["version"][1], "'version'") if "version" in entries else 0
        change = self.sentence(entries["change"][1]) if "change" in entries else NO_TEXT
        return Revision(version, change, origin) if self.fault_count == before else None

    def special_values(self, node: Node, owner: str) -> tuple[SpecialValue, ...]:
        expected = "a list of what comes of special values"
        items = self.items(node, f"'special_values' of {owner}", expected)
        return self._each(items, node, owner, "special value", self._special_value)

    def _each(
        self, items: list[Node], node: Node, owner: str, member: str, read: Callable[[Node, str], Read | None]
    ) -> tuple[Read, ...]:
        """What `read` finds in the members of a list, which has some."""
        if type(node) is Sequence and not items:
            self.report(faults.nothing_there(node.span, owner, member))
        return tuple([found for found in [read(item, owner) for item in items] if found])

    def _special_value(self, node: Node, owner: str) -> SpecialValue | None:
        before = self.fault_count
        entries = self.entries(node, "a special value")
        origin = Nameless(node, entries)
        if self.fault_count == before:
            self.known_keys(entries, f"a special value of {owner}", origin, vocabulary.SPECIAL_VALUE)
        what = self.sentence(entries["what"][1]) if "what" in entries else NO_TEXT
        test = self.sentence(entries["test"][1]) if "test" in entries else NO_TEXT
        return SpecialValue(what, test, origin) if self.fault_count == before else None

    def forward(self, node: Node, owner: str) -> str:
        """Empty where there is none, as an entry may say."""
        word = self.text(node, f"'gradient_of' of {owner}", "the name of an operator")
        return "" if word == vocabulary.NO_FORWARD else word
