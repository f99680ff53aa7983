"""How a kernel pattern computes formulas: by aligned dims where a map does so, else by the dims' names."""

from __future__ import annotations

from dataclasses import dataclass

from . import (
    formula_conditions,
    formula_dims,
    formula_integers,
    formula_map,
    formula_passes,
    formula_schedule,
)
from .formula_dims import NamedDims, NamedOperand
from .formula_graph import symbols
from .formula_misfit import Misfit, Problem
from .formula_passes import Passes
from .formula_schedule import Role, Schedule
from .formula_slots import Slots
from .formula_splits import unfolded
from .model import Op, Tensor


@dataclass(frozen=True, slots=True)
class Step:
    """A pass over memory that computes outputs of formulas whose tensors have dims by name."""

    op: Op  # the part of the operator that it computes
    schedule: Schedule
    slots: Slots
    whole: str  # the names of the dims of its largest tensor, as a set in C++
    of_row: str  # of those that make a row
    operands: list[NamedOperand]


@dataclass(frozen=True, slots=True)
class Steps:
    """All of an operator's passes, in order."""

    dims: NamedDims
    passes: tuple[Step, ...]
    temporaries: tuple[tuple[Tensor, str], ...]  # with the numbers of the dims' names

    @property
    def is_map(self) -> bool:
        return self.passes[0].schedule.is_map


def steps_of(op: Op) -> Steps | None:
    """None where a map has the formulas with dims aligned. Raises Misfit."""
    unfit = list(formula_conditions.problems(op))
    if unfit:
        raise Misfit(unfit)
    declared, op = op, unfolded(op)
    problems = formula_map.problems(op)
    if problems and op.bits:  # which a map alone reads
        raise Misfit(problems)
    if declared.condition:
        return _steps(op, _passes_of_both(declared, op))
    found = _passes(op, problems) if problems else _pass_with_columns(op)
    return _steps(op, found) if found else None


def _passes_of_both(declared: Op, op: Op) -> Passes:
    """Those of formulas that are read twice, as dims hang on an attribute. Raises Misfit."""
    try:
        found = formula_passes.passes_of(op)
    except Misfit as misfit:
        hang = declared.condition.text if declared.condition else ""
        why = f"; formulas must fit with and without the dims that hang on '{hang}'"
        raise Misfit([(f"{message}{why}", span) for message, span in misfit.problems]) from None
    formula_schedule.check_scalars(declared, found.passes[0].schedule.counts)
    return found


def _steps(op: Op, found: Passes) -> Steps:
    """Raises Misfit where integers are compared with what they cannot be."""
    formula_integers.check_numbers(op)
    schedules = [one.schedule for one in found.passes]
    dims = formula_dims.named_dims(op, schedules)
    steps = [
        Step(
            one.op,
            one.schedule,
            one.slots,
            dims.set_of(one.schedule.whole),
            dims.set_of(one.schedule.over),
            formula_dims.named_operands(op, one.schedule, found.temporaries, dims.names),
        )
        for one in found.passes
    ]
    temporaries = [(one, formula_dims.listed_names(one, dims.names)) for one in found.temporaries]
    return Steps(dims, tuple(steps), tuple(temporaries))


def _passes(op: Op, problems: list[Problem]) -> Passes:
    """Those of formulas that are no map by aligned dims, for these reasons. Raises Misfit."""
    if not formula_schedule.names_dims(op) and not _has_parts(op):
        raise Misfit(problems)
    return formula_passes.passes_of(op)


def _pass_with_columns(op: Op) -> Passes | None:
    """That of formulas with sums over the rows, by the names of their dims: rows make these in one pass,
    quicker than a map, which is left to all others."""
    if not formula_schedule.names_dims(op):
        return None
    try:
        found = formula_passes.pass_of(op)
    except Misfit:
        return None
    return Passes((found,)) if found.schedule.outputs[Role.COLUMN] else None


def _has_parts(op: Op) -> bool:
    """There is a tensor that has the dims of all others, and formulas sum nothing."""
    if op.has_sums:
        return False
    shapes = [symbols(tensor.shape) for tensor in (*op.inputs, *op.outputs)]
    every = frozenset().union(*shapes)
    return every in shapes and any(own != every for own in shapes)
