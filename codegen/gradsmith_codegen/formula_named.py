"""Formulas in which every reduction has a name, so that a pass over memory can leave it to the next."""

from __future__ import annotations

from dataclasses import dataclass, replace

from . import formula_graph
from .formula_graph import Graph
from .formula_tree import COUNT, Apply, Index, Lookup, Name, Reduce, Tree, names, parts
from .model import Formula, Op


@dataclass(frozen=True, slots=True)
class Named:
    op: Op
    formulas: dict[str, Formula]
    # A pass can leave the values of these formulas to others; each has the dims that then make a row. They
    # are the reductions, and what tells places along one dim and is reduced over others.
    over: dict[str, frozenset[str]]
    dims: dict[str, frozenset[str]]  # of each of these formulas' values


def named_reductions(op: Op) -> Named:
    """Of formulas that have passed the checks."""
    named = replace(op, formulas=tuple(_Namer(op).formulas()))
    graph = formula_graph.graph_of(named)
    formulas = {one.name: one for one in named.formulas}
    nodes = {name: graph.known[name] for name in formulas}
    over = {
        name: frozenset(graph.nodes[node].over)
        for name, node in nodes.items()
        if graph.nodes[node].is_reduction
    }
    over |= {name: _places(op, graph, nodes[name]) for name in _summed_places(op, graph, named, over)}
    return Named(named, formulas, over, {name: graph.dims[node] for name, node in nodes.items()})


def _summed_places(op: Op, graph: Graph, named: Op, over: dict[str, frozenset[str]]) -> list[str]:
    """The formulas that reductions are of over other dims than those along which these tell places."""
    found = []
    for formula in named.formulas:
        if (
            formula.name in over
            and isinstance(formula.tree, Reduce)
            and isinstance(formula.tree.argument, Name)
        ):
            name = formula.tree.argument.name
            node = graph.known.get(name)
            places = frozenset() if node is None else _places(op, graph, node)
            if places and places != over[formula.name]:
                found.append(name)
    return found


def _places(op: Op, graph: Graph, node: int) -> frozenset[str]:
    """Those along which a formula or what it is made of tells places."""
    return frozenset().union(*[formula_graph.places(op, graph.nodes[one]) for one in graph.below([node])])


class _Namer:
    def __init__(self, op: Op) -> None:
        self._op = op
        self._taken = {one.name for one in (*op.inputs, *op.outputs)}
        self._taken |= {one.name for one in op.attributes} | {one.name for one in op.symbols}
        self._taken |= {one.name for one in op.formulas}
        self._tells_places: set[str] = set()
        self._found: list[Formula] = []

    def formulas(self) -> list[Formula]:
        for formula in self._op.formulas:
            tree = formula.tree
            if isinstance(tree, Reduce):
                tree = replace(tree, argument=self._argument(formula, tree))
            else:
                tree = self._without_reductions(formula, tree)
            self._add(replace(formula, tree=tree))
        return self._found

    def _add(self, formula: Formula) -> None:
        if self._tells(formula.tree):
            self._tells_places.add(formula.name)
        self._found.append(formula)

    def _tells(self, tree: Tree) -> bool:
        """It tells a place, or a formula does that it reads."""
        is_place = any(isinstance(part, Index | Lookup) for part in parts(tree))
        return is_place or not self._tells_places.isdisjoint([one.name for one in names(tree)])

    def _without_reductions(self, formula: Formula, tree: Tree) -> Tree:
        """The tree with names in the place of reductions."""
        if isinstance(tree, Apply):
            return replace(
                tree, arguments=tuple([self._without_reductions(formula, one) for one in tree.arguments])
            )
        if not isinstance(tree, Reduce) or tree.operation == COUNT:
            return tree
        return self._named(formula, replace(tree, argument=self._argument(formula, tree)))

    def _argument(self, formula: Formula, tree: Reduce) -> Tree:
        argument = self._without_reductions(formula, tree.argument)
        is_left = self._tells(argument) and not isinstance(argument, Name)
        return self._named(formula, argument) if is_left else argument

    def _named(self, formula: Formula, tree: Tree) -> Name:
        number = 1
        while f"{formula.name}_{number}" in self._taken:
            number += 1
        name = f"{formula.name}_{number}"
        self._taken.add(name)
        self._add(replace(formula, name=name, tree=tree))
        return Name(name, tree.start, tree.end)
