"""How a call's dims are told apart by their names: what the registration stub of formulas that name dims says
(runtime/patterns/named_dims.h)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .formula_misfit import of_entry
from .formula_schedule import Role, Schedule
from .model import Op, Symbol, Tensor
from .shapes import Shape
from .suggestions import listing

MAX_NAMES = 8  # IntList::kCapacity of the runtime
_REST = "internal::NamedDims::kRest"


@dataclass(frozen=True, slots=True)
class NamedOperand:
    """An operand of the pattern: which argument it is, and the numbers of its shape's names."""

    tensor: Tensor
    argument: int
    is_output: bool
    names: tuple[int, ...]  # -1 for a dim of 1 that has none

    @property
    def listed(self) -> str:
        return ", ".join(map(str, self.names))


@dataclass(frozen=True, slots=True)
class NamedDims:
    names: tuple[str, ...]
    lead: str  # the argument whose dims they are
    lead_operand: int  # its number among inputs and outputs
    lengths: list[str]  # in C++
    counts: list[tuple[str, str]]  # of places: the dims, and their set in C++

    @property
    def named_lengths(self) -> list[tuple[str, str]]:
        return list(zip(self.names, self.lengths, strict=True))

    @property
    def reads_attributes(self) -> bool:
        return any("given." in length for length in self.lengths)

    def listed(self, shape: Shape) -> str:
        """The numbers of the names of a shape's dims, in C++."""
        return ", ".join([str(self.names.index(dim.symbol) if dim.symbol else -1) for dim in shape])

    def set_of(self, dims: Iterable[str]) -> str:
        """In C++."""
        return _set(dims, self.names)


def named_dims(op: Op, schedules: Sequence[Schedule]) -> NamedDims:
    """Of an operator's passes, one of which reads a tensor with all dims. Raises Misfit."""
    of_arguments = [one for one in schedules if one.lead in (*op.inputs, *op.outputs)]
    largest = max(of_arguments, key=lambda one: len(one.whole))
    whole = largest.whole
    for schedule in schedules:
        if not set(schedule.whole) <= set(whole):
            every = listing(sorted({dim for one in schedules for dim in one.whole}))
            raise of_entry(f"no tensor has all of the dims {every}", op.at("formulas"))
        if schedule.whole != tuple([one for one in whole if one in schedule.whole]):
            message = f"'{schedule.lead.name}' has the dims {listing(schedule.whole)} in another order than"
            message += f" '{largest.lead.name}', and needs a pass of its own"
            raise of_entry(message, schedule.lead.span)
    for tensor in (*op.inputs, *op.outputs):
        order = [dim.symbol for dim in tensor.shape if dim.symbol]
        if order != [one for one in whole if one in order]:
            dims = f"{listing(order)}, and '{largest.lead.name}' {listing(whole)}"
            message = f"all tensors have their dims in one order, but '{tensor.name}' has {dims}"
            raise of_entry(message, tensor.span)
    if len(whole) > MAX_NAMES:
        raise of_entry(f"their dims have {MAX_NAMES} names at most, not {len(whole)}", op.at("formulas"))
    is_input = largest.lead in op.inputs
    arguments = op.inputs if is_input else op.outputs
    place = _place(largest.lead, arguments)
    lead = f"{'inputs' if is_input else 'outputs'}[{place}]"
    counts = [(", ".join(dims), _set(dims, whole)) for dims in largest.counts]
    return NamedDims(whole, lead, place + (0 if is_input else len(op.inputs)), _lengths(op, largest), counts)


def named_operands(
    op: Op, schedule: Schedule, temporaries: Sequence[Tensor], whole: tuple[str, ...]
) -> list[NamedOperand]:
    """Of a pass. Temporaries are numbered behind the arguments."""
    found = []
    for is_output, arguments in ((False, op.inputs), (True, op.outputs)):
        every = {one.name: place for place, one in enumerate((*arguments, *temporaries))}
        tensors = schedule.outputs if is_output else schedule.inputs
        found += [
            NamedOperand(one, every[one.name], is_output, _names(one, whole))
            for role in Role
            for one in tensors[role]
        ]
    return found


def listed_names(tensor: Tensor, whole: tuple[str, ...]) -> str:
    """The numbers of the names of its dims."""
    return ", ".join(map(str, _names(tensor, whole)))


def _place(tensor: Tensor, tensors: tuple[Tensor, ...]) -> int:
    return next(index for index, one in enumerate(tensors) if one is tensor)


def _names(tensor: Tensor, whole: tuple[str, ...]) -> tuple[int, ...]:
    return tuple([whole.index(dim.symbol) if dim.symbol else -1 for dim in tensor.shape])


def _set(dims: Iterable[str], whole: tuple[str, ...]) -> str:
    return bin(sum(1 << whole.index(dim) for dim in dims))


def _lengths(op: Op, schedule: Schedule) -> list[str]:
    """How many dims each name has, which may hang on an attribute."""
    if not op.length_condition:
        return _lengths_where(op, schedule, condition=False)
    either = zip(*(_lengths_where(op, schedule, condition=one) for one in (True, False)), strict=True)
    given = f"given.{op.length_condition}"
    return [
        if_true if if_true == if_false else f"{given} ? {if_true} : {if_false}"
        for if_true, if_false in either
    ]


def _lengths_where(op: Op, schedule: Schedule, *, condition: bool) -> list[str]:
    """One, what its symbol says, what an input's rank leaves, or the rest."""
    by_name = {symbol.name: symbol for symbol in op.symbols}
    known = {name: length for name in schedule.whole if (length := _said(op, by_name[name], condition))}
    inputs = [tensor for tensor in op.inputs if tensor.tells_dims]
    while len(schedule.whole) - len(known) > 1:
        before = len(known)
        for tensor in inputs:
            unknown = [dim.symbol for dim in tensor.shape if dim.symbol and dim.symbol not in known]
            if len(unknown) == 1:
                others = [known.get(dim.symbol, "1") for dim in tensor.shape if dim.symbol != unknown[0]]
                rank = f"inputs[{_place(tensor, op.inputs)}].rank()"
                known[unknown[0]] = " - ".join([rank, *[f"({one})" if " " in one else one for one in others]])
        if len(known) == before:
            raise NotImplementedError("lists of dims whose ends nothing tells")  # the checks refuse them
    for name in schedule.whole:
        length_of = by_name[name].length_of
        if name not in known and length_of in known:
            known[name] = known[length_of]
    return [known.get(name, _REST) for name in schedule.whole]


def _said(op: Op, symbol: Symbol, condition: bool) -> str:
    if not symbol.is_list:
        return "1"
    if symbol.length_axis:
        attribute = next(one for one in op.attributes if one.name == symbol.length_axis)
        place = next(index for index, one in enumerate(op.inputs) if one.name == attribute.axis_of)
        return f"internal::AxisFromStart(given.{attribute.name}, inputs[{place}].rank())"
    fixed = symbol.fixed_length(condition)
    return "" if fixed is None else str(fixed)
