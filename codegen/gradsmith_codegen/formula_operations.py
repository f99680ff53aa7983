"""How many operations of arithmetic a call of an entry with formulas makes. Each node of its graph counts
once for each element that it has.

An operator of arithmetic, a comparison and a function are one operation; a change of sign, `where`, `not`,
`and`, `or`, and what reads an element are none. A sum and a maximum are one for each element that they take
in. A mean is a sum and, for each result, a quotient; a variance takes three operations for each element
beside its mean, and a quotient. What has no dims, such as a number made of attributes, counts nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from . import formula_graph
from .formula_graph import MAX, MEAN, SUM, VARIANCE, Node
from .formula_splits import unfolded
from .formula_tree import OPERATORS, Apply, Bit, Given, Kind, Name, Number, Reduce, Tree
from .model import Op, Symbol, Tensor
from .shapes import Dim, Shape

_OF_ELEMENTS = {SUM: 1, MAX: 1, MEAN: 1, VARIANCE: 3}
_OF_RESULTS = {MEAN: 1, VARIANCE: 1}
_UNCOUNTED = frozenset(("where", "negate"))

Dims = frozenset[str]


def counted(op: Op) -> Tree | None:
    """Returns a sum of products of dims. None where nothing is counted, and where dims hang on an attribute:
    on that hangs then what is computed."""
    if not op.formulas or op.condition:
        return None
    counts = _counts(_broadcast(unfolded(op)))
    order = [symbol.name for symbol in op.symbols]
    terms = sorted(counts, key=lambda dims: (-len(dims), sorted(dims)))
    products = [_product(counts[dims], _factors(op, dims, order)) for dims in terms]
    return _joined("+", products) if products else None


def _counts(op: Op) -> Mapping[Dims, int]:
    """How many operations each element of what has some dims takes."""
    formulas = tuple([replace(one, tree=_without_bits(one.tree)) for one in op.formulas])
    graph = formula_graph.graph_of(replace(op, formulas=formulas))
    found: Counter[Dims] = Counter()
    for number in sorted(graph.below(graph.outputs.values())):
        node, dims = graph.nodes[number], graph.dims[number]
        if node.function:
            found[dims] += _is_counted(node)
        elif node.operation in _OF_ELEMENTS and node.arguments:
            found[graph.dims[node.arguments[0]]] += _OF_ELEMENTS[node.operation]
            found[dims] += _OF_RESULTS.get(node.operation, 0)
    return {dims: count for dims, count in found.items() if count and dims}


def _is_counted(node: Node) -> bool:
    """Truth values are made of numbers by an operation, and of truth values by none."""
    takes_numbers = node.function is not None and Kind.TRUTH not in node.function.parameters
    return takes_numbers and node.operation not in _UNCOUNTED


def _without_bits(tree: Tree) -> Tree:
    """A bit is read, which is no operation; the graph knows none."""
    if isinstance(tree, Bit):
        return Given(tree.words, tree.start, tree.end)
    if isinstance(tree, Apply):
        return replace(tree, arguments=tuple([_without_bits(one) for one in tree.arguments]))
    return replace(tree, argument=_without_bits(tree.argument)) if isinstance(tree, Reduce) else tree


def _broadcast(op: Op) -> Op:
    """With the dims that lists broadcast to in the place of these."""
    wider = {symbol.name: symbol.broadcast_to for symbol in op.symbols if symbol.broadcast_to}
    for symbol in op.symbols:
        if symbol.rule and symbol.rule.is_broadcast:
            wider.update(dict.fromkeys(symbol.rule.arguments, symbol.name))
    if not wider:
        return op
    return replace(
        op,
        inputs=tuple([_widened(tensor, wider) for tensor in op.inputs]),
        outputs=tuple([_widened(tensor, wider) for tensor in op.outputs]),
    )


def _widened(tensor: Tensor, wider: Mapping[str, str]) -> Tensor:
    return replace(tensor, shape=Shape([_wide(dim, wider) for dim in tensor.shape]))


def _wide(dim: Dim, wider: Mapping[str, str]) -> Dim:
    symbol = dim.symbol
    while symbol in wider:
        symbol = wider[symbol]
    return dim if symbol == dim.symbol else replace(dim, text=f"*{symbol}", symbol=symbol)


def _factors(op: Op, dims: Dims, order: list[str]) -> list[Tree]:
    """The dims in the order of the shapes; one that is two to formulas is one where both are there."""
    left, factors = set(dims), []
    for symbol in op.symbols:
        if symbol.split and not left.isdisjoint(symbol.split):
            factors.append((order.index(symbol.name), _part(symbol, left)))
            left -= set(symbol.split)
    factors += [(order.index(name), _name(name)) for name in left]
    return [factor for _, factor in sorted(factors, key=lambda one: one[0])]


def _part(symbol: Symbol, dims: Iterable[str]) -> Tree:
    whole, first = _name(symbol.name), _name(symbol.multiple_of)
    has_first, has_second = [name in dims for name in symbol.split]
    if has_first and has_second:
        return whole
    return first if has_first else _joined("/", [whole, first])


def _product(count: int, factors: list[Tree]) -> Tree:
    return _joined("*", [Number(count, 0, 0), *factors] if count > 1 else factors)


def _joined(mark: str, trees: list[Tree]) -> Tree:
    tree = trees[0]
    for one in trees[1:]:
        tree = Apply(OPERATORS[mark], (tree, one), 0, 0)
    return tree


def _name(name: str) -> Name:
    return Name(name, 0, 0)
