"""Whether formulas of two versions of an operator give the same: as their expressions are, whatever these are
spelled like and whatever names stand for parts of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .formula_tree import OPERATORS, Apply, Bit, Chosen, Given, Index, Lookup, Name, Number, Reduce, Tree
from .model import Formula

Leaf = Number | Name | Index | Given | Chosen | Bit | Lookup

_ADD, _SUBTRACT, _MULTIPLY = (OPERATORS[mark].name for mark in "+-*")


class Values:
    """A number for each expression, of several sets of formulas: the same where they give the same bits."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._fusable: set[int] = set()  # what may end in a multiplication

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
            number = self._number((Reduce, tree.operation, self._of(tree.argument, known, renamed), over))
            self._fusable.add(number)
            return number
        return self._number(_leaf(tree, renamed))

    def _applied(self, function: str, arguments: list[int]) -> int:
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
