"""Integers that formulas compare with each other as they are: inputs, places along dims, whole numbers."""

from __future__ import annotations

from collections.abc import Iterator

from .data_types import DataType
from .formula_graph import INPUT, NUMBER, Graph, Node, graph_of
from .formula_misfit import Misfit, Problem
from .formula_tree import INDEX, OPERATORS, Apply, parts
from .model import Op
from .spans import Span
from .suggestions import listing

COMPARISONS = [OPERATORS[mark] for mark in ("<", "<=", ">", ">=", "==", "!=")]
_NEGATE = OPERATORS["- "]
# A formula's numbers are doubles, which hold each whole number below 2^53.
_EXACT = 2**53 - 1


def whole_number(graph: Graph, node: int) -> int | None:
    """The value of a number without a fraction, or of one with its sign changed; None of all else."""
    one = graph.nodes[node]
    if one.function is _NEGATE:
        value = whole_number(graph, one.arguments[0])
        return None if value is None else -value
    return int(one.number) if one.operation == NUMBER and one.number == int(one.number) else None


def check_numbers(op: Op) -> None:
    """Raises Misfit where integers are compared with a number that none of them can be."""
    problems = list(dict.fromkeys(_problems(op, graph_of(op))))
    if problems:
        raise Misfit(problems)


def _problems(op: Op, graph: Graph) -> Iterator[Problem]:
    for node, one in enumerate(graph.nodes):
        if one.function not in COMPARISONS:
            continue
        for place, other in enumerate(reversed(one.arguments)):
            number = whole_number(graph, one.arguments[place])
            sentence = "" if number is None else _unfit(op, number, graph.nodes[other])
            if sentence:
                yield sentence, _place(graph, node, place)


def _unfit(op: Op, number: int, other: Node) -> str:
    """Why the number is not compared with what another node gives; empty where it is."""
    types = _types(op, other)
    least = max(-_EXACT, min([one.whole_numbers[0] for one in types], default=number))
    most = min(_EXACT, max([one.whole_numbers[1] for one in types], default=number))
    if not types or least <= number <= most:
        return ""
    what = f"index({other.name})" if other.operation == INDEX else other.name
    kinds = listing([one.value for one in types])
    return f"'{what}' is {kinds}, and compared with whole numbers from {least} to {most} alone"


def _place(graph: Graph, node: int, argument: int) -> Span:
    """That of the number which a comparison is given, without signs, or of the name that it has."""
    formula, tree = graph.places[node]
    *_, last = parts(tree.arguments[argument] if isinstance(tree, Apply) else tree)
    return formula.place(last)


def _types(op: Op, node: Node) -> list[DataType]:
    """Those of integers that are compared as they are; none of all else."""
    if node.operation == INDEX:
        return [DataType.INT64]
    tensor = next((one for one in op.inputs if node.operation == INPUT and one.name == node.name), None)
    return op.types_of(tensor) if tensor and op.is_whole(tensor) and not tensor.is_mask else []
