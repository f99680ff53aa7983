"""Formulas as a graph: names stand no more for other formulas, and what is written twice is one node.

Here values have dims by their names, whatever the order in which a tensor's shape lists them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .formula_tree import (
    CHOSEN,
    COUNT,
    GIVEN,
    INDEX,
    Bit,
    Chosen,
    Function,
    Given,
    Index,
    Lookup,
    Name,
    Number,
    Reduce,
    Tree,
)
from .model import Formula, Op
from .shapes import Shape
from .spans import Span

MEAN, VARIANCE, SUM, MAX = "mean", "variance", "sum", "max"
INPUT, ATTRIBUTE, NUMBER, CONSTANT, LOOKUP = "input", "attribute", "number", "constant", "lookup"


@dataclass(frozen=True, slots=True)
class Node:
    """A function of nodes, a reduction of the first one over dims, what a table that is named has at the
    integer of the first one, or a leaf by its name or number."""

    operation: str
    arguments: tuple[int, ...] = ()
    over: tuple[str, ...] = ()  # in order
    name: str = ""
    number: float = 0
    value: str = ""  # that an enum attribute may have
    function: Function | None = None

    @property
    def is_reduction(self) -> bool:
        return bool(self.over) and self.operation != COUNT


@dataclass(slots=True)
class Graph:
    """Nodes stand behind those that they are made of."""

    nodes: list[Node] = field(default_factory=list)
    dims: list[frozenset[str]] = field(default_factory=list)  # of each node's value
    places: list[tuple[Formula, Tree]] = field(default_factory=list)  # where each stands first
    outputs: dict[str, int] = field(default_factory=dict)
    named: dict[int, Formula] = field(default_factory=dict)  # what formulas that are no outputs give
    known: dict[str, int] = field(default_factory=dict)  # what each formula gives

    def span(self, node: int) -> Span:
        formula, tree = self.places[node]
        return formula.place(tree)

    def below(self, roots: Iterable[int]) -> set[int]:
        """The roots and all that they are made of."""
        found: set[int] = set()
        waiting = list(roots)
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                waiting += self.nodes[node].arguments
        return found


def places(op: Op, node: Node) -> frozenset[str]:
    """The dims along which a node tells or looks up a place."""
    if node.operation == INDEX:
        return frozenset({node.name})
    tables = {tensor.name: symbols(tensor.shape) for tensor in op.inputs}
    return tables[node.name] if node.operation == LOOKUP else frozenset()


def symbols(shape: Shape) -> frozenset[str]:
    return frozenset(dim.symbol for dim in shape if dim.symbol)


def graph_of(op: Op) -> Graph:
    """Returns the graph of formulas that have passed the checks that look at each by itself."""
    return _Builder(op).graph


class _Builder:
    def __init__(self, op: Op) -> None:
        self.graph = Graph()
        self._numbers: dict[Node, int] = {}
        self._inputs = {tensor.name: symbols(tensor.shape) for tensor in op.inputs}
        self._attributes = {attribute.name for attribute in op.attributes}
        outputs = {tensor.name: symbols(tensor.shape) for tensor in op.outputs}
        for formula in op.formulas:
            node = self._node(formula, formula.tree, outputs.get(formula.name, frozenset()))
            self.graph.known[formula.name] = node
            if formula.name in outputs:
                self.graph.outputs[formula.name] = node
            else:
                self.graph.named.setdefault(node, formula)

    def _node(self, formula: Formula, tree: Tree, kept: frozenset[str]) -> int:
        """`kept` are the dims that a sum over none leaves."""
        if isinstance(tree, Number):
            return self._add(Node(NUMBER, number=tree.value), formula, tree, frozenset())
        if isinstance(tree, Name):
            return self._named(formula, tree)
        if isinstance(tree, Reduce):
            return self._reduction(formula, tree, kept)
        if isinstance(tree, Bit):
            raise NotImplementedError("bits by the names of dims")  # a map alone reads them
        if isinstance(tree, Chosen):
            node = Node(CHOSEN, name=tree.attribute.name, value=tree.value.name)
            return self._add(node, formula, tree, frozenset())
        if isinstance(tree, Index | Given | Lookup):
            return self._place(formula, tree)
        arguments = tuple([self._node(formula, one, frozenset()) for one in tree.arguments])
        dims = frozenset().union(*[self.graph.dims[one] for one in arguments])
        node = Node(tree.function.name, arguments, function=tree.function)
        return self._add(node, formula, tree, dims)

    def _named(self, formula: Formula, tree: Name) -> int:
        if tree.name in self.graph.known:
            return self.graph.known[tree.name]
        if tree.name in self._inputs:
            return self._add(Node(INPUT, name=tree.name), formula, tree, self._inputs[tree.name])
        kind = ATTRIBUTE if tree.name in self._attributes else CONSTANT
        return self._add(Node(kind, name=tree.name), formula, tree, frozenset())

    def _place(self, formula: Formula, tree: Index | Given | Lookup) -> int:
        if isinstance(tree, Index):
            return self._add(Node(INDEX, name=tree.dim.name), formula, tree, frozenset({tree.dim.name}))
        if isinstance(tree, Given):
            return self._add(Node(GIVEN, name=tree.name.name), formula, tree, frozenset())
        integer = self._named(formula, tree.integer)
        node = Node(LOOKUP, (integer,), name=tree.table.name)
        return self._add(node, formula, tree, self.graph.dims[integer])

    def _reduction(self, formula: Formula, tree: Reduce, kept: frozenset[str]) -> int:
        over = {dim.name for dim in tree.dims}
        if tree.operation == COUNT:
            return self._add(Node(COUNT, over=tuple(sorted(over))), formula, tree, frozenset())
        argument = self._node(formula, tree.argument, frozenset())
        dims = self.graph.dims[argument]
        reduced = tuple(sorted(over or dims - kept))
        arguments: tuple[int, ...] = (argument,)
        if tree.operation == VARIANCE:  # its deviations are from the mean
            arguments += (self._add(Node(MEAN, (argument,), reduced), formula, tree, dims - set(reduced)),)
        return self._add(Node(tree.operation, arguments, reduced), formula, tree, dims - set(reduced))

    def _add(self, node: Node, formula: Formula, tree: Tree, dims: frozenset[str]) -> int:
        number = self._numbers.setdefault(node, len(self._numbers))
        if number == len(self.graph.nodes):
            self.graph.nodes.append(node)
            self.graph.dims.append(dims)
            self.graph.places.append((formula, tree))
        return number
