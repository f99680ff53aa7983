"""What shape rules compute, so that a test case that cannot be is found in the schema.

A rule of a family is evaluated by its formula, which stands in the family's `kernels.h`. One without one
is no error: cases then give all their shapes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from . import scalars
from .formula_tree import Apply, Chosen, Given, Name, Number, Tree
from .model import AttributeValue
from .rule_formula import AXIS, ENTRIES, ROUNDED, VALUE, Expectation, RuleFormula
from .shapes import ShapeRule

Attributes = Mapping[str, AttributeValue]
Dims = tuple[int, ...]
SymbolValue = int | Dims


class ImpossibleShape(Exception):
    """No output can have a shape; the argument says why. `attribute` names the culprit where it is one."""

    def __init__(self, message: str, attribute: str = "") -> None:
        super().__init__(message)
        self.attribute = attribute


def knows(rule: ShapeRule) -> bool:
    return rule.formula is not None or not rule.is_of_family


def apply(rule: ShapeRule, attributes: Attributes, arguments: Sequence[SymbolValue]) -> SymbolValue:
    """What a rule that is known computes from its symbols."""
    dims = [argument for argument in arguments if isinstance(argument, tuple)]
    if rule.is_sum:
        return sum([argument for argument in arguments if isinstance(argument, int)])
    if rule.is_broadcast or rule.formula is None:
        return broadcast(*dims)
    taken = rule.formula.symbols
    if len(dims) != len(taken) or len(arguments) != len(taken):
        raise ImpossibleShape(f"{rule.function} takes lists of dims alone, {' and '.join(taken)}")
    return evaluated(rule.formula, attributes, dims)


def broadcast(*lists: Dims) -> Dims:
    """The dims to which all lists broadcast: aligned at the last, and those of 1 take any size."""
    whole: list[int] = []
    for dims in lists:
        whole = [1] * (len(dims) - len(whole)) + whole
        for axis, size in enumerate(dims, start=len(whole) - len(dims)):
            if 1 not in (size, whole[axis]) and size != whole[axis]:
                message = f"dim {axis} would be both {whole[axis]} and {size}"
                raise ImpossibleShape(
                    f"{_listed(lists)} do not broadcast: {message}; expected equal dims, or 1"
                )
            whole[axis] = size if whole[axis] == 1 else whole[axis]
    return tuple(whole)


def _listed(lists: Sequence[Dims]) -> str:
    return " and ".join([str(list(dims)) for dims in lists])


# ----------------------------------------------------------------------------------------------------
# Formulas


def evaluated(formula: RuleFormula, attributes: Attributes, lists: Sequence[Dims]) -> Dims:
    """The sizes along all axes of lists that have the same length."""
    symbols = dict(zip(formula.symbols, lists, strict=True))
    lengths = {name: len(dims) for name, dims in symbols.items()}
    if len(set(lengths.values())) > 1:
        told = " and ".join([f"{name} has {length}" for name, length in lengths.items()])
        raise ImpossibleShape(f"lists of dims that go together have one length; {told}")
    rank = next(iter(lengths.values()), 0)
    return tuple([_Axis(formula, attributes, symbols, axis).size() for axis in range(rank)])


class _Axis:
    def __init__(
        self, formula: RuleFormula, attributes: Attributes, symbols: Mapping[str, Dims], axis: int
    ) -> None:
        self._formula = formula
        self._attributes = attributes
        self._symbols = symbols
        self._axis = axis
        self._values: dict[str, int] = {}  # truth values are 0 and 1

    def size(self) -> int:
        for statement in self._formula.statements:
            value = self._value(statement.tree)
            if not isinstance(statement, Expectation):
                self._values[statement.name] = value
            elif not value:
                raise ImpossibleShape(self._words(statement), self._culprit(statement))
        return self._values[VALUE]

    def _words(self, expectation: Expectation) -> str:
        return "".join([self._shown(one) if i % 2 else one for i, one in enumerate(expectation.words)])

    def _culprit(self, expectation: Expectation) -> str:
        return expectation.culprit if expectation.culprit in self._attributes else ""

    def _shown(self, name: str) -> str:
        if name == AXIS:
            return str(self._axis)
        value = self._values.get(name, self._symbols.get(name, self._attributes.get(name, ())))
        return scalars.list_text(cast(Dims, value)) if isinstance(value, tuple) else str(value)

    def _value(self, tree: Tree) -> int:
        if isinstance(tree, Number):
            return int(tree.value)
        if isinstance(tree, Name):
            return self._named(tree.name)
        if isinstance(tree, Given):
            return bool(self._list(tree.name.name))
        if isinstance(tree, Chosen):
            return self._attributes.get(tree.attribute.name) == tree.value.name
        return self._applied(cast(Apply, tree))

    def _named(self, name: str) -> int:
        if name in self._values:
            return self._values[name]
        if name in self._symbols:
            return self._symbols[name][self._axis]
        value = self._attributes.get(name, False)
        if not isinstance(value, int):
            raise ImpossibleShape(f"the rule takes a number as '{name}'", name)
        return value

    def _applied(self, tree: Apply) -> int:
        name, arguments = tree.function.name, tree.arguments
        if name == "where":  # which looks at no more than what it chooses
            return self._value(arguments[1 if self._value(arguments[0]) else 2])
        if name in ENTRIES:
            return self._entry(name, cast(Name, arguments[0]).name, self._value(arguments[1]))
        if name in ROUNDED:
            dividend, divisor = [self._value(one) for one in cast(Apply, arguments[0]).arguments]
            if divisor < 1:
                raise ImpossibleShape(f"the rule divides by {divisor}; expected 1 or more")
            return dividend // divisor if name == "floor" else -(-dividend // divisor)
        return int(_OPERATIONS[name](*[self._value(argument) for argument in arguments]))

    def _entry(self, function: str, name: str, otherwise: int) -> int:
        """The number of a list attribute for this axis. `begin` and `end` are of two for each."""
        numbers = self._list(name)
        rank = len(next(iter(self._symbols.values())))
        expected = rank if function == "entry" else 2 * rank
        if len(numbers) not in (0, expected):
            raise ImpossibleShape(f"'{name}' must have {expected} entries, not {len(numbers)}", name)
        place = self._axis + (rank if function == "end" else 0)
        return numbers[place] if numbers else otherwise

    def _list(self, name: str) -> Dims:
        value = self._attributes.get(name, ())
        if not isinstance(value, tuple):
            raise ImpossibleShape(f"the rule takes a list of integers as '{name}'", name)
        return cast(Dims, value)


_OPERATIONS: Mapping[str, Callable[..., int]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "and": operator.and_,
    "or": operator.or_,
    "not": operator.not_,
    "negate": operator.neg,
    "min": min,
    "max": max,
}
