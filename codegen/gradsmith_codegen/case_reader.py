"""The test cases of an operator's entry, from nodes to the model."""

from __future__ import annotations

from dataclasses import dataclass

from . import faults, vocabulary
from .attribute_reader import AttributeReader
from .diagnostics import Diagnostic, counted
from .entries import entry_of
from .lists import element
from .loader import Node, Scalar, Sequence
from .model import Attribute, AttributeKind, AttributeValue, Case, Layout
from .spans import Span
from .values import Alike, quick_integers
from .vocabulary import Keys


@dataclass(frozen=True, slots=True)
class _CaseForm:
    """What the cases of a list may hold, and the unknown keys that they do."""

    keys: Keys
    kinds: dict[str, AttributeKind]  # of the attributes
    shaped: set[str]  # the tensors
    lists: frozenset[str]  # those that are lists
    unknown_keys: Alike


class CaseReader(AttributeReader):
    """Reads cases, which give shapes and values of attributes."""

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


def _in_cases(found: list[Diagnostic]) -> Diagnostic:
    """A tensor that has another name now is unknown in every case: that is told at the first."""
    first, *others = found
    if not others or others[0].span is None:
        return first
    return first.noting(f"the same in {counted(len(others), 'other case')}", others[0].span)
