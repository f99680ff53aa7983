"""Which kernel pattern computes formulas that name dims, and in what steps: `rows` where they reduce
(runtime/patterns/rows.h), else `map`, to which inputs are spread along the dims that they lack.

Of the dims of a call's largest tensor those that are reduced make a row. Each input then has an element for
each of a row's (and so for each column), for each row, or for each element of each row. A row of all dims of
which nothing is reduced is flat: a map that has something once for all elements beside it, such as a flag.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

from . import formula_graph
from .data_types import DataType
from .formula_graph import INPUT, LOOKUP, MAX, MEAN, SUM, VARIANCE, Graph, symbols
from .formula_misfit import MAX_MAP_TENSORS, MAX_ROWS_TENSORS, MAX_SCALARS, Misfit, apart, misfit, of_entry
from .formula_tree import COUNT, Index, Lookup, Reduce, parts
from .model import Op, Tensor
from .shapes import DimKind
from .suggestions import listing
from .vocabulary import TYPES

# Results of a phase that kernels across rows have place for (runtime/patterns/cuda/rows_team.cuh).
MAX_RESULTS = 2
# Types that rows have side by side where they differ (VisitRowsTypes).
PAIRS = (
    (DataType.MLFLOAT16, DataType.FLOAT),
    (DataType.BFLOAT16, DataType.FLOAT),
    (DataType.FLOAT, DataType.MLFLOAT16),
)


class Role(Enum):
    """What a tensor has elements for."""

    ELEMENT = "element"
    COLUMN = "column"
    ROW = "row"
    INTEGER = "integer"  # of a row
    TABLE = "table"  # of which rows look up elements


@dataclass(slots=True)
class Reduction:
    """A node that a phase finds."""

    node: int
    phase: int
    # Deviations are taken from this mean, which then may be found near the first element of an input.
    is_center: bool = False
    has_pivot: bool = False


@dataclass(slots=True)
class Schedule:
    graph: Graph
    lead: Tensor  # has all dims
    whole: tuple[str, ...]  # the symbols of its dims, in order
    over: frozenset[str]  # what rows are made of; empty where the pattern is `map`
    spreads: bool = False  # inputs that have some of a row's dims alone are spread along the others
    inputs: dict[Role, list[Tensor]] = field(default_factory=dict)
    outputs: dict[Role, list[Tensor]] = field(default_factory=dict)
    reductions: list[Reduction] = field(default_factory=list)
    counts: list[tuple[str, ...]] = field(default_factory=list)  # places of dims, given like attributes
    second: str = ""  # the type parameter that rows have beside the lead's
    first: str = ""

    @property
    def is_map(self) -> bool:
        return not self.over

    @property
    def is_flat(self) -> bool:
        """There is one row, and elements are made of those at their place and of what there is once."""
        others = [role for role in (Role.COLUMN, Role.TABLE) if self.inputs[role] or self.outputs[role]]
        return self.over == frozenset(self.whole) and not self.is_map and not self.reductions and not others

    @property
    def has_rows_of_many_dims(self) -> bool:
        """Other dims lie between those that make a row, or an input lacks some of them, so that no one stride
        serves it."""
        places = [place for place, dim in enumerate(self.whole) if dim in self.over]
        is_whole = all(self.over <= symbols(one.shape) for one in self.inputs.get(Role.ELEMENT, ()))
        return bool(places) and (places[-1] - places[0] >= len(places) or not is_whole)

    @property
    def operands(self) -> list[Tensor]:
        """In the order in which the pattern has them."""
        return [tensor for group in (self.inputs, self.outputs) for role in Role for tensor in group[role]]

    @property
    def phases(self) -> int:
        return max([one.phase + 1 for one in self.reductions], default=0)


def names_dims(op: Op) -> bool:
    """A formula says over which dims it reduces, what it counts, or of what it tells the place."""
    every = [part for one in op.formulas for part in parts(one.tree)]
    return any((isinstance(one, Reduce) and one.dims) or isinstance(one, Index | Lookup) for one in every)


def schedule(op: Op, over: frozenset[str] | None = None, *, spreads: bool = False) -> Schedule:
    """That whose rows are made of the dims `over` where nothing is reduced: else such formulas are a map.
    Raises Misfit."""
    return _Scheduler(op).schedule(over or frozenset(), spreads)


class _Scheduler:
    def __init__(self, op: Op) -> None:
        self._op = op
        self._graph = formula_graph.graph_of(op)
        self._live = self._graph.below(list(self._graph.outputs.values()))
        nodes = [self._graph.nodes[node] for node in self._live]
        self._tables = {node.name for node in nodes if node.operation == LOOKUP}
        self._read = {node.name for node in nodes if node.operation == INPUT}
        self._places = [node for node in sorted(self._live) if self._place_of(node)]

    def schedule(self, otherwise: frozenset[str], spreads: bool) -> Schedule:
        for tensor in (*self._op.inputs, *self._op.outputs):
            self._check_tensor(tensor)
        lead = self._lead()
        whole = tuple([dim.symbol for dim in lead.shape if dim.symbol])
        over = self._over(frozenset(whole)) or otherwise
        found = Schedule(self._graph, lead, whole, over, spreads)
        found.inputs = _by_role([(one, self._role(one, found)) for one in self._op.read_inputs])
        found.outputs = _by_role([(one, self._output_role(one, found)) for one in self._op.outputs])
        found.reductions = self._reductions(found)
        found.counts = self._counts(found)
        self._check_lead(found)
        self._check_types(found)
        self._check_limits(found)
        return found

    # -- Tensors ---

    def _check_tensor(self, tensor: Tensor) -> None:
        problem = ""
        if tensor.list:
            problem = f"a pattern has single tensors, and '{tensor.name}' is a list"
        elif tensor.may_be_on_host:
            problem = f"a pattern reads its inputs on the device, and '{tensor.name}' may lie on the host"
        elif not tensor.shape_only and self._has_no_numbers(tensor):
            types = [one.value for one in self._op.types_of(tensor)]
            what = "a pattern computes floating numbers"
            what = "what is an integer in one row is so in all" if len(types) > 1 else what
            problem = f"{what}, and '{tensor.name}' is {listing(types)}"
        for dim in tensor.shape:
            if dim.kind is not DimKind.SYMBOL and dim.text != "1":
                problem = problem or (
                    f"dims that formulas name are symbols, or 1, and '{tensor.name}' has {dim.text}"
                )
        repeated = [one.symbol for one in tensor.shape if one.symbol]
        if not problem and len(set(repeated)) != len(repeated):
            problem = f"'{tensor.name}' has a dim twice, so that its name does not say which"
        if problem:
            raise of_entry(problem, tensor.span)

    def _has_no_numbers(self, tensor: Tensor) -> bool:
        """Outputs are floating or bool, and inputs floating or whole in all rows."""
        are_floating = [one.is_floating for one in self._op.types_of(tensor)]
        is_number = tensor in self._op.outputs and not tensor.is_mask
        return not all(are_floating) and (is_number or any(are_floating))

    def _lead(self) -> Tensor:
        """The tensor that has all dims; an input that formulas read, if one has."""
        tensors = [*self._op.inputs, *self._op.outputs]
        every = frozenset().union(*[symbols(one.shape) for one in tensors])
        leads = [one for one in tensors if symbols(one.shape) == every]
        read = [one for one in leads if one in self._op.read_inputs and one.tells_dims]
        if not leads:
            some = listing(sorted(every))
            raise of_entry(f"no tensor has all of the dims {some}", self._op.at("formulas"))
        return next(iter([*read, *[one for one in leads if one.tells_dims], *leads]))

    def _role(self, tensor: Tensor, found: Schedule) -> Role:
        dims = symbols(tensor.shape)
        if self._op.is_whole(tensor):
            return self._role_of_integers(tensor, found)
        if tensor.name in self._tables:
            if tensor.name in self._read:
                message = f"'{tensor.name}' is looked up and read at its place; one pattern does not do both"
                raise of_entry(message, tensor.span)
            return Role.TABLE
        is_whole = dims == frozenset(found.whole)
        is_spread = found.spreads and bool(dims)
        if found.is_map or is_whole or is_spread or (dims & found.over and dims - found.over):
            role = Role.ELEMENT
        else:
            role = Role.COLUMN if dims else Role.ROW
            role = role if dims <= found.over else Role.ROW
        return role

    def _role_of_integers(self, tensor: Tensor, found: Schedule) -> Role:
        if found.is_map or symbols(tensor.shape) & found.over:
            kind = self._op.types_of(tensor)[0].value
            message = f"'{tensor.name}' is {kind}, and such an input has an element for each row"
            raise of_entry(message, tensor.span)
        return Role.INTEGER

    def _output_role(self, tensor: Tensor, found: Schedule) -> Role:
        node = self._graph.outputs[tensor.name]
        own, value = symbols(tensor.shape), self._graph.dims[node]
        if tensor.is_mask and (found.is_map or own & found.over):
            raise of_entry(f"'{tensor.name}' is bool, and such an output is of a row", tensor.span)
        if value - own:
            more = listing(sorted(value - own))
            message = f"'{tensor.name}' of {tensor.shape_text} lacks {more}, which its formula has"
            raise misfit(f"{message}; reduce over it: 'sum(..., {min(value - own)})'", self._graph.span(node))
        is_sum_of_column = self._is_reduced_over(node, frozenset(found.whole) - found.over)
        if own == frozenset(found.whole) and not is_sum_of_column:
            return Role.ELEMENT
        if is_sum_of_column and own == found.over:
            self._check_column_sum(node)
            return Role.COLUMN
        if own == frozenset(found.whole) - found.over and found.over:
            return Role.ROW
        message = f"'{tensor.name}' of {tensor.shape_text} is no output of theirs"
        if found.is_map:
            message += f": a map's have all of the dims {listing(found.whole)}"
        else:
            rest = [one for one in found.whole if one not in found.over]
            row = [one for one in found.whole if one in found.over]
            message += f": rows along {listing(row)} give outputs with all dims"
            message += f", with {listing(rest)}, or sums over these" if rest else ", or with none"
        raise of_entry(message, tensor.span)

    def _check_column_sum(self, node: int) -> None:
        operation = self._graph.nodes[node].operation
        if operation != SUM:
            rest = listing(sorted(self._graph.nodes[node].over))
            message = f"over the rows, {rest}, no pattern computes '{operation}'; only 'sum'"
            raise misfit(message, self._graph.span(node))

    def _check_lead(self, found: Schedule) -> None:
        elements = found.inputs[Role.ELEMENT]
        if not found.is_map and (found.lead not in elements or not found.lead.tells_dims):
            message = f"no input has all of the dims {listing(found.whole)}, of which rows are cut"
            other = next((one for one in elements if len(symbols(one.shape)) == len(found.whole)), None)
            if other and other.optional:
                message += f", and is always there: '{other.name}' is optional"
            elif other:
                message += f", in every call: '{other.name}' lacks some where an attribute says so"
            raise of_entry(message, (other or found.lead).span)
        if not found.is_map:  # the first, which tells the pattern the dims
            elements.sort(key=lambda tensor: tensor is not found.lead)
        for tensor in found.outputs[Role.ELEMENT] if found.outputs[Role.COLUMN] else ():
            if tensor.in_place_of:
                raise apart(tensor.at("in_place_of"))  # which sums over the rows read as well

    # -- Reductions ---

    def _is_reduced_over(self, node: int, dims: frozenset[str]) -> bool:
        one = self._graph.nodes[node]
        return one.is_reduction and frozenset(one.over) == dims

    def _all_reductions(self) -> list[int]:
        return [node for node in sorted(self._live) if self._graph.nodes[node].is_reduction]

    def _over(self, whole: frozenset[str]) -> frozenset[str]:
        """The dims that make a row. What is used within formulas says which, or else all that is reduced;
        where these differ, that of the dims behind."""
        nodes = self._graph.nodes
        used = {below for node in self._live for below in nodes[node].arguments}
        within = [node for node in self._all_reductions() if node in used]
        self._check_reduced()
        candidates = within or self._all_reductions()
        if self._places:
            return self._over_places(candidates)
        if not candidates:
            return frozenset()
        first = candidates[0] if within else max(candidates, key=self._depth)
        over = frozenset(nodes[first].over)
        if not within and self._are_sums_of_columns(over):
            over = whole - over
        rest = whole - over
        for node in self._all_reductions():
            own = frozenset(nodes[node].over)
            if own == over or (own == rest and node not in used):
                continue
            here = f"'{nodes[node].operation}' over {listing(nodes[node].over)}"
            others = f"rows are made of {listing(sorted(over))} by another reduction"
            message = f"no pattern computes {here} beside them: {others}"
            if own == rest:
                message += ", and a sum over the rows is an output as it is"
            raise misfit(message, self._graph.span(node))
        return over

    def _place_of(self, node: int) -> frozenset[str]:
        return formula_graph.places(self._op, self._graph.nodes[node])

    def _over_places(self, reductions: Sequence[int]) -> frozenset[str]:
        """The one dim that makes a row where formulas tell places along it."""
        over = self._place_of(self._places[0])
        lists = {symbol.name for symbol in self._op.symbols if symbol.is_list}
        for node in self._places:
            own = self._place_of(node)
            if own & lists:
                message = f"places are told along a single dim, and {listing(sorted(own))} may be several"
                raise misfit(message, self._graph.span(node))
            if own != over:
                here, others = listing(sorted(own)), listing(sorted(over))
                message = f"no pattern tells places along {here} beside those along {others}"
                message += ", of which rows are made"
                raise misfit(message, self._graph.span(node))
        for node in reductions:
            if frozenset(self._graph.nodes[node].over) != over:
                raise apart(self._graph.span(node))
        return over

    def _are_sums_of_columns(self, over: frozenset[str]) -> bool:
        """All reductions are sums over the same dims, and the others lie behind these: they make rows that
        are whole in memory, whose columns are summed in the pass that writes what has all dims."""
        order = [dim.symbol for dim in self._lead().shape if dim.symbol]
        lie_ahead = 0 < len(over) < len(order) and frozenset(order[: len(over)]) == over
        return lie_ahead and all(
            self._graph.nodes[node].operation == SUM and frozenset(self._graph.nodes[node].over) == over
            for node in self._all_reductions()
        )

    def _check_reduced(self) -> None:
        for node in sorted(self._live):
            one = self._graph.nodes[node]
            if one.operation in (SUM, MEAN, MAX, VARIANCE) and not one.function and not one.over:
                message = f"'{one.operation}' reduces nothing: its output has all dims"
                raise misfit(message, self._graph.span(node))

    def _depth(self, node: int) -> int:
        """How far behind in the largest tensor the reduced dims are."""
        order = [dim.symbol for dim in self._lead().shape if dim.symbol]
        return max(order.index(one) for one in self._graph.nodes[node].over)

    def _reductions(self, found: Schedule) -> list[Reduction]:
        phases: dict[int, int] = {}
        nodes = self._graph.nodes
        for node in self._all_reductions():
            if frozenset(nodes[node].over) == found.over:
                below = self._graph.below(nodes[node].arguments) & phases.keys()
                phases[node] = max([phases[one] + 1 for one in below], default=0)
        reductions = {node: Reduction(node, phase) for node, phase in phases.items()}
        pivots = [tensor.name for tensor in found.inputs[Role.ELEMENT] if tensor.tells_dims]
        pivot = ""
        for node in phases:
            if nodes[node].operation == VARIANCE:
                argument, mean = nodes[node].arguments
                reductions[mean].is_center = True
                name = nodes[argument].name
                if name in pivots and pivot in ("", name):
                    reductions[mean].has_pivot, pivot = True, name
        return list(reductions.values())

    def _counts(self, found: Schedule) -> list[tuple[str, ...]]:
        counted = {nodes.over for nodes in self._graph.nodes if nodes.operation == COUNT}
        return sorted(one for one in counted if frozenset(one) != found.over)

    # -- Types and limits ---

    def _check_types(self, found: Schedule) -> None:
        typed = [one for one in found.operands if found.is_map or not self._has_any_type(one, found)]
        kinds = list(dict.fromkeys(tensor.type for tensor in typed))
        found.first = found.lead.type
        others = [kind for kind in kinds if kind != found.first]
        if found.is_map and others:
            raise self._misfit_of_type(typed, others[0], "a map has one element type")
        if len(others) > 1:
            raise self._misfit_of_type(typed, others[1], "rows have two element types at most")
        self._check_told(found, typed, others)
        if others:
            self._order_types(found, others[0], typed)

    def _check_told(self, found: Schedule, typed: Sequence[Tensor], others: Sequence[str]) -> None:
        """Kernels are found by the types of what a call has."""
        inputs = found.inputs[Role.ELEMENT]
        for kind in others:
            of_kind = [one for one in typed if one.type == kind]
            if all(one.optional and one in inputs for one in of_kind):
                first = of_kind[0]
                message = f"'{first.name}' is optional, and nothing that is always there has its type, {kind}"
                raise of_entry(message, first.span)

    def _misfit_of_type(self, typed: Sequence[Tensor], kind: str, limit: str) -> Misfit:
        tensor = next(one for one in typed if one.type == kind)
        first = typed[0]
        message = f"{limit}, and '{tensor.name}' is {tensor.type}, '{first.name}' {first.type}"
        return of_entry(message, tensor.span)

    def _order_types(self, found: Schedule, other: str, typed: Sequence[Tensor]) -> None:
        """Which of the two is the pattern's first: whichever lets it compute all rows."""
        pairs = [(bound_type(row, found.first), bound_type(row, other)) for row in self._rows_types()]
        mixed = [pair for pair in pairs if pair[0] is not pair[1]]
        if all(pair in PAIRS for pair in mixed):
            found.second = other
        elif all((second, first) in PAIRS for first, second in mixed):
            found.first, found.second = other, found.first
        else:
            raise self._misfit_of_type(
                typed, other, "rows have half or bf16 beside float, and no other types"
            )

    def _rows_types(self) -> Iterator[dict[str, DataType]]:
        return (dict(row.types) for row in self._op.rows)

    @staticmethod
    def _has_any_type(tensor: Tensor, found: Schedule) -> bool:
        of_any_type = (Role.ROW, Role.INTEGER, Role.TABLE)
        return any(tensor in found.inputs[role] or tensor in found.outputs[role] for role in of_any_type)

    def _check_limits(self, found: Schedule) -> None:
        count = len(found.operands)
        pattern, most = ("a map has", MAX_MAP_TENSORS) if found.is_map else ("rows have", MAX_ROWS_TENSORS)
        if count > most:
            raise of_entry(f"{pattern} {most} tensors at most, not {count}", self._op.at("formulas"))
        check_scalars(self._op, found.counts)


def check_scalars(op: Op, counts: Sequence[tuple[str, ...]]) -> None:
    scalars = len(op.scalars) + len(counts) + len(op.givens)
    if scalars > MAX_SCALARS:
        message = f"the formulas read {scalars} attributes and counts; {MAX_SCALARS} are given at most"
        raise misfit(message, op.at("formulas"))


def _by_role(roles: Sequence[tuple[Tensor, Role]]) -> dict[Role, list[Tensor]]:
    return {role: [tensor for tensor, own in roles if own is role] for role in Role}


def bound_type(types: dict[str, DataType], kind: str) -> DataType:
    return types[kind] if kind in types else TYPES[kind]
