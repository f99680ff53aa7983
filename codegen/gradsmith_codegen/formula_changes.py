"""Whether formulas of two versions of an operator give the same: as their expressions are, whatever these are
spelled like and whatever names stand for parts of them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

from .formula_graph import SUM
from .formula_tree import (
    FUNCTIONS,
    OPERATORS,
    Apply,
    Bit,
    Chosen,
    Given,
    Index,
    Lookup,
    Name,
    Number,
    Reduce,
    Tree,
)
from .model import Formula

Leaf = Number | Name | Index | Given | Chosen | Bit | Lookup

_ADD, _SUBTRACT, _MULTIPLY, _NEGATE = (OPERATORS[mark].name for mark in ("+", "-", "*", "- "))
_AND, _OR, _NOT = (OPERATORS[word].name for word in ("and", "or", "not"))
_MUL0, _DIV0, _WHERE = (FUNCTIONS[name].name for name in ("mul0", "div0", "where"))
# What an absent input is, and whether it is there; no expression's key.
_ZERO, _FALSE, _TRUE = ("absent", "zero"), ("absent", "false"), ("absent", "true")


class Values:
    """A number for each expression, of several sets of formulas: the same where they give the same bits in
    calls that lack the inputs `absent`, of which a zero's sign is no part."""

    def __init__(self, absent: Collection[str] = ()) -> None:
        self._absent = absent
        self._numbers: dict[object, int] = {}
        self._fusable: set[int] = set()  # what may end in a multiplication
        self._finite: set[int] = set()  # numbers as they are written, and zero
        self._zero, self._false, self._true = map(self._number, (_ZERO, _FALSE, _TRUE))
        self._finite.add(self._zero)

    def of_formulas(self, formulas: Iterable[Formula], renamed: Mapping[str, str]) -> dict[str, int]:
        """By the formulas' names. `renamed` are the names that inputs, attributes and dims have elsewhere."""
        known: dict[str, int] = {}
        for formula in formulas:
            known[formula.name] = self._of(formula.tree, known, renamed)
        return known

    def of_tree(self, formula: Formula, renamed: Mapping[str, str]) -> int:
        """Of one formula as it stands, in which a name is that name."""
        return self._of(formula.tree, {}, renamed)

    def _of(self, tree: Tree, known: Mapping[str, int], renamed: Mapping[str, str]) -> int:
        if isinstance(tree, Name) and tree.name in known:
            return known[tree.name]
        if isinstance(tree, Apply):
            arguments = [self._of(one, known, renamed) for one in tree.arguments]
            return self._applied(tree.function.name, arguments)
        if isinstance(tree, Reduce):
            over = frozenset([_called(dim, renamed) for dim in tree.dims])
            argument = self._of(tree.argument, known, renamed)
            if tree.operation == SUM and argument == self._zero:
                return self._zero
            number = self._number((Reduce, tree.operation, argument, over))
            self._fusable.add(number)
            return number
        return self._of_leaf(tree, renamed)

    def _of_leaf(self, tree: Leaf, renamed: Mapping[str, str]) -> int:
        if isinstance(tree, Name) and _called(tree, renamed) in self._absent:
            return self._zero
        if isinstance(tree, Given) and _called(tree.name, renamed) in self._absent:
            return self._false
        number = self._number(_leaf(tree, renamed))
        if isinstance(tree, Number) and math.isfinite(tree.value):
            self._finite.add(number)
        return number

    def _applied(self, function: str, arguments: list[int]) -> int:
        without = self._without(function, arguments)
        return self._made(function, arguments) if without is None else without

    def _without(self, function: str, arguments: list[int]) -> int | None:
        """What is left of it without what is absent; None where it is no simpler. Zero times what need not be
        finite is not zero."""
        zero, first, last = self._zero, arguments[0], arguments[-1]
        if function in (_ADD, _SUBTRACT) and last == zero:
            return first
        if function == _ADD and first == zero:
            return last
        if function == _SUBTRACT and first == zero:
            return self._made(_NEGATE, [last])
        is_zero = function in (_NEGATE, _MUL0, _DIV0) and first == zero
        if is_zero or (function == _MULTIPLY and zero in arguments and self._finite.issuperset(arguments)):
            return zero
        return self._chosen(function, arguments)

    def _chosen(self, function: str, arguments: list[int]) -> int | None:
        """What is left where an input is asked for that is absent."""
        constants = {self._false: False, self._true: True}
        first, last = arguments[0], arguments[-1]
        if function == _NOT and first in constants:
            return self._false if constants[first] else self._true
        if function == _WHERE and first in constants:
            return arguments[1] if constants[first] else last
        if function in (_AND, _OR):
            for one, other in ((first, last), (last, first)):
                if one in constants:
                    return one if constants[one] == (function == _OR) else other
        return None

    def _made(self, function: str, arguments: list[int]) -> int:
        """Factors and summands have no order. But a compiler may fuse a product and the sum it is in, and
        so leave out a rounding; where both summands may be products, their order can tell which is fused."""
        fusable = self._fusable.intersection(arguments)
        both = len(arguments) > 1 and fusable.issuperset(arguments)
        has_order = function != _MULTIPLY and (function != _ADD or both)
        number = self._number((function, *(arguments if has_order else sorted(arguments))))
        if fusable or function not in (_ADD, _SUBTRACT):
            self._fusable.add(number)
        return number

    def _number(self, key: tuple[object, ...]) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


def _leaf(tree: Leaf, renamed: Mapping[str, str]) -> tuple[object, ...]:
    if isinstance(tree, Number | Name):
        return (tree.value if isinstance(tree, Number) else _called(tree, renamed),)
    if isinstance(tree, Index):
        return (Index, _called(tree.dim, renamed))
    if isinstance(tree, Given):
        return (Given, _called(tree.name, renamed))
    if isinstance(tree, Chosen):
        return (Chosen, _called(tree.attribute, renamed), tree.value.name)
    if isinstance(tree, Bit):
        return (Bit, _called(tree.words, renamed), _called(tree.dims, renamed))
    return (Lookup, _called(tree.table, renamed), _called(tree.integer, renamed))


def _called(name: Name, renamed: Mapping[str, str]) -> str:
    return renamed.get(name.name, name.name)
