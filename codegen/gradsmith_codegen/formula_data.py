"""From formulas to the data of the tests' oracle (tests/reference/formula.h, named_formula.h): the nodes of
the trees in a row, arguments before what they are given to."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from . import broadcasting, formula_conditions
from .data_types import DataType
from .formula_graph import CONSTANT, INPUT, LOOKUP, Node, graph_of, symbols
from .formula_splits import unfolded
from .formula_tree import (
    BIT,
    CHOSEN,
    GIVEN,
    INDEX,
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
from .model import Attribute, AttributeKind, Formula, Op, Symbol, Tensor
from .shapes import Condition, Dim
from .text import Text

EXACT = 0.5  # of attributes that are no short binary numbers, so that integers give exact results


@dataclass(frozen=True, slots=True)
class DataNode:
    """An operation by its name and the numbers of its arguments, or a number, an input or an attribute."""

    operation: str
    arguments: tuple[int, ...] = ()
    number: float = 0
    name: str = ""
    over: tuple[str, ...] = ()  # the dims that it reduces or counts
    value: str = ""  # that an enum attribute may have

    @property
    def initializer(self) -> str:
        if self.over:
            over = ", ".join(f'"{dim}"' for dim in self.over)
            arguments = ", ".join(map(str, self.arguments))
            return f'.operation = "{self.operation}", .arguments = {{{arguments}}}, .over = {{{over}}}'
        if self.operation == "number":
            return f'.operation = "number", .number = {self.number!r}'
        if not self.arguments and not self.name:
            return f'.operation = "{self.operation}"'
        if self.name and not self.arguments:
            value = f', .value = "{self.value}"' if self.value else ""
            return f'.operation = "{self.operation}", .name = "{self.name}"{value}'
        listed = ", ".join(map(str, self.arguments))
        named = f', .name = "{self.name}"' if self.name else ""
        return f'.operation = "{self.operation}", .arguments = {{{listed}}}{named}'


@dataclass(slots=True)
class FormulaData:
    nodes: list[DataNode] = field(default_factory=list)
    # The node of each output, and of a sum the input whose shape it has.
    outputs: list[tuple[str, int, str]] = field(default_factory=list)
    broadcast: list[str] = field(default_factory=list)  # inputs
    # Inputs that broadcast together to the dims of all places.
    joined: list[str] = field(default_factory=list)
    masks: list[str] = field(default_factory=list)
    bits: list[str] = field(default_factory=list)  # inputs of words, of which bits are read
    # Nodes of the operator that this one is the gradient of: what it gives must be a number.
    domain: list[int] = field(default_factory=list)
    exact_attributes: list[tuple[str, float]] = field(default_factory=list)


def of(op: Op, forward: Op | None) -> FormulaData:
    """`forward` is the operator of which `op` computes the gradient."""
    data = FormulaData(exact_attributes=[(one.name, EXACT) for one in op.scalars if not _is_short(one)])
    numbers: dict[DataNode, int] = {}
    outputs = {tensor.name: tensor for tensor in op.outputs}
    sums = {formula.name for formula in op.formulas if isinstance(formula.tree, Reduce)}
    like = {tensor.shape: tensor.name for tensor in reversed(op.inputs)}
    data.outputs = [
        (name, node, like[outputs[name].shape] if name in sums else "")
        for name, node in _values(op, numbers)
        if name in outputs
    ]
    whole = broadcasting.lead(op).shape
    data.bits = [tensor.name for tensor in op.bits]
    data.broadcast = [
        tensor.name for tensor in op.inputs if tensor.shape != whole and tensor.name not in data.bits
    ]
    together = broadcasting.joined(op, whole)
    data.joined = [one.name for one in op.inputs if len(one.shape) == 1 and one.shape[0].symbol in together]
    data.masks = [tensor.name for tensor in op.masks]
    inputs = {tensor.name for tensor in op.inputs}
    if forward and {tensor.name for tensor in forward.inputs} <= inputs:
        results = {tensor.name for tensor in forward.outputs}
        data.domain = [node for name, node in _values(forward, numbers) if name in results]
    data.nodes = list(numbers)
    return data


@dataclass(slots=True)
class ListLength:
    """What says how many dims a list symbol has: a number, or an axis of an input."""

    symbol: str
    length: int = 0
    attribute: str = ""
    axis_of: str = ""
    condition: str = ""  # the bool attribute that must be so for the number to hold
    where: bool = False


@dataclass(slots=True)
class Integers:
    """What an input of integers is drawn from: places along a dim, and a few beyond unless these are refused,
    or truth values."""

    input: str
    dim: str = ""
    is_truth: bool = False
    is_signed: bool = False
    is_within: bool = False


@dataclass(slots=True)
class NamedFormulaData:
    """What the oracle of formulas that name dims is made of."""

    names: tuple[str, ...] = ()
    lists: list[str] = field(default_factory=list)  # the names that have other than one dim
    lengths: list[ListLength] = field(default_factory=list)  # of those of them that are known by themselves
    shapes: list[tuple[str, list[str]]] = field(default_factory=list)  # of tensors, by names; "1" has none
    outputs: list[tuple[str, int]] = field(default_factory=list)
    nodes: list[DataNode] = field(default_factory=list)
    domain: list[int] = field(default_factory=list)
    exact_attributes: list[tuple[str, float]] = field(default_factory=list)
    # The first of two dims that are one to tensors, and the attribute that says how many it has.
    firsts: list[tuple[str, str]] = field(default_factory=list)
    integers: list[Integers] = field(default_factory=list)
    # What decides whether dims are there, and what tensors and outputs are where it holds.
    condition: Condition | None = None
    shapes_if: list[tuple[str, list[str]]] = field(default_factory=list)
    outputs_if: list[tuple[str, int]] = field(default_factory=list)


def named(op: Op, forward: Op | None, names: tuple[str, ...]) -> NamedFormulaData:
    """`names` are those of the largest tensor's dims."""
    condition, declared = op.condition, (*op.inputs, *op.outputs)
    hanging = [tensor for tensor in declared if tensor.shape.condition]
    whole = {formula_conditions.whole_name(op, one): one.name for one in hanging if one in op.outputs}
    lacking = {one.name: one.shape.where(False) for one in hanging}
    firsts = {one.split[0]: one.multiple_of for one in op.symbols if one.split}
    seconds = {one.split[1] for one in op.symbols if one.split}
    op, forward = unfolded(op), unfolded(forward) if forward else None
    numbers: dict[DataNode, int] = {}
    lists = [one for one in op.symbols if one.is_list]
    found = _graph_outputs(op, numbers)
    data = NamedFormulaData(
        names=names,
        lists=[one.name for one in lists],
        lengths=[length for one in lists for length in _lengths(op, one)],
        shapes=[
            (one.name, [_entry(dim, seconds) for dim in lacking.get(one.name, one.shape)])
            for one in (*op.inputs, *op.outputs)
            if one.name not in whole
        ],
        outputs=[(name, node) for name, node in found if name not in whole],
        exact_attributes=[(one.name, EXACT) for one in op.scalars if not _is_short(one)],
        firsts=list(firsts.items()),
        integers=[_integers(op, one) for one in op.read_inputs if op.is_whole(one)],
        condition=condition,
        shapes_if=[(one.name, [_entry(dim, seconds) for dim in one.shape.where(True)]) for one in hanging],
        outputs_if=[(whole[name], node) for name, node in found if name in whole],
    )
    own = {tensor.name: tensor.shape for tensor in op.inputs}
    if forward and forward.formulas and all(own.get(one.name) == one.shape for one in forward.inputs):
        data.domain = [node for _, node in _graph_outputs(forward, numbers)]
    data.nodes = list(numbers)
    return data


@dataclass(frozen=True, slots=True)
class SeamNodes:
    """A seam in words, and the nodes of its values by tensors."""

    text: Text
    at: list[tuple[str, int]]
    gives: list[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class SeamData:
    nodes: list[DataNode]
    seams: list[SeamNodes]


def of_seams(op: Op) -> SeamData:
    """What generated tests know of the places at which formulas have seams."""
    numbers: dict[DataNode, int] = {}
    writer = _Writer(numbers, {}, op)
    seams = [
        SeamNodes(
            _equations(seam.places),
            [(one.name, writer.node(one.tree)) for one in seam.places],
            [(one.name, writer.node(one.tree)) for one in seam.gives],
        )
        for seam in op.seams
    ]
    return SeamData(list(numbers), seams)


def _equations(formulas: tuple[Formula, ...]) -> Text:
    parts = [part for one in formulas for part in (", ", one.name, " = ", one.text)]
    return Text(*parts[1:])


def _entry(dim: Dim, seconds: set[str]) -> str:
    """What is one dim with the entry before it begins with an asterisk."""
    return f"*{dim.symbol}" if dim.symbol in seconds else dim.symbol or dim.text


def _integers(op: Op, tensor: Tensor) -> Integers:
    signed = (DataType.INT32, DataType.INT64)
    is_signed = all(one in signed for one in op.types_of(tensor))
    return Integers(tensor.name, _dim_of(op, tensor), tensor.is_mask, is_signed, tensor.refuses_outside)


def _dim_of(op: Op, tensor: Tensor) -> str:
    """The dim along which an input tells places: that of the table which it looks up, or of the place that
    it is compared with; empty where there is none."""
    graph = graph_of(op)
    tables = {one.name: symbols(one.shape) for one in op.inputs}
    of_tensor = Node(INPUT, name=tensor.name)
    for node in graph.nodes:
        arguments = [graph.nodes[one] for one in node.arguments]
        if of_tensor in arguments and node.operation == LOOKUP:
            return min(tables[node.name], default="")
        places = [one.name for one in arguments if one.operation == INDEX]
        if of_tensor in arguments and places:
            return places[0]
    return ""


def _lengths(op: Op, symbol: Symbol) -> Iterator[ListLength]:
    condition = symbol.length_if.attribute if symbol.length_if else ""
    if symbol.length_axis:
        attribute = next(one for one in op.attributes if one.name == symbol.length_axis)
        yield ListLength(symbol.name, attribute=attribute.name, axis_of=attribute.axis_of)
        return
    for where in (False, True) if condition else (False,):
        fixed = symbol.fixed_length(where)
        if fixed is not None:
            yield ListLength(symbol.name, fixed, condition=condition, where=where)


def _graph_outputs(op: Op, numbers: dict[DataNode, int]) -> list[tuple[str, int]]:
    graph = graph_of(op)
    places: list[int] = []
    for node in graph.nodes:
        arguments = tuple([places[one] for one in node.arguments[: 1 if node.over else None]])
        operation = node.name if node.operation == CONSTANT else node.operation
        name = "" if node.operation == CONSTANT else node.name
        made = DataNode(operation, arguments, node.number, name, node.over, node.value)
        places.append(numbers.setdefault(made, len(numbers)))
    return [(name, places[node]) for name, node in graph.outputs.items()]


def _is_short(attribute: Attribute) -> bool:
    """Its default is a float of few digits."""
    default = attribute.default
    if attribute.kind is not AttributeKind.FLOAT or not isinstance(default, int | float):
        return True
    (rounded,) = struct.unpack("<f", struct.pack("<f", default))
    return bool(rounded == default)


def _values(op: Op, numbers: dict[DataNode, int]) -> list[tuple[str, int]]:
    """The node of each formula's value. `numbers` are those of the nodes, in order."""
    known: dict[str, int] = {}
    writer = _Writer(numbers, known, op)
    found: list[tuple[str, int]] = []
    outputs = {tensor.name for tensor in op.outputs}
    for formula in op.formulas:
        tree = formula.tree
        node = writer.node(tree.argument if isinstance(tree, Reduce) else tree)
        found.append((formula.name, node))
        if formula.name not in outputs:
            known[formula.name] = node
    return found


class _Writer:
    def __init__(self, numbers: dict[DataNode, int], known: dict[str, int], op: Op) -> None:
        self._numbers = numbers
        self._known = known
        self._kinds = {one.name: "attribute" for one in op.attributes} | {
            one.name: "input" for one in op.inputs
        }

    def node(self, tree: Tree) -> int:
        """The number of the node that the tree becomes. What is there already is not written again."""
        if isinstance(tree, Name) and tree.name in self._known:
            return self._known[tree.name]
        node = self._made(tree)  # which numbers its arguments first
        return self._numbers.setdefault(node, len(self._numbers))

    def _made(self, tree: Tree) -> DataNode:
        if isinstance(tree, Number):
            return DataNode("number", number=tree.value)
        if isinstance(tree, Name):
            kind = self._kinds.get(tree.name)
            return DataNode(kind, name=tree.name) if kind else DataNode(tree.name)  # a constant
        if isinstance(tree, Reduce):
            raise NotImplementedError(f"'{tree.operation}' within an expression")  # the checks refuse it
        if isinstance(tree, Given):
            return DataNode(GIVEN, name=tree.name.name)
        if isinstance(tree, Bit):
            return DataNode(BIT, name=tree.words.name)
        if isinstance(tree, Chosen):
            return DataNode(CHOSEN, name=tree.attribute.name, value=tree.value.name)
        if isinstance(tree, Index | Lookup):
            raise NotImplementedError("places in a map")  # such formulas are no map
        return DataNode(tree.function.name, tuple([self.node(one) for one in tree.arguments]))
