"""Whether formulas of two versions of an operator give the same: as their expressions are, whatever these are
spelled like and whatever names stand for parts of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .formula_tree import Apply, Bit, Chosen, Given, Index, Lookup, Name, Number, Reduce, Tree
from .model import Formula

Leaf = Number | Name | Index | Given | Chosen | Bit | Lookup


class Values:
    """A number for each expression, of several sets of formulas: the same for those that are equal."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}

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
            key: tuple[object, ...] = (tree.function.name, *arguments)
        elif isinstance(tree, Reduce):
            over = frozenset([_called(dim, renamed) for dim in tree.dims])
            key = (Reduce, tree.operation, self._of(tree.argument, known, renamed), over)
        else:
            key = _leaf(tree, renamed)
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
