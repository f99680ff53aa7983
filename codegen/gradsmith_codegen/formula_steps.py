"""How a kernel pattern computes formulas: by aligned dims where a map does so, else by the dims' names."""

from __future__ import annotations

from dataclasses import dataclass

from . import formula_dims, formula_map, formula_schedule, formula_slots
from .formula_dims import NamedDims
from .formula_graph import symbols
from .formula_misfit import Misfit, Problem
from .formula_schedule import Role, Schedule
from .formula_slots import Slots
from .model import Op


@dataclass(frozen=True, slots=True)
class Steps:
    """How formulas are computed whose tensors have dims by name."""

    schedule: Schedule
    slots: Slots
    dims: NamedDims


def steps_of(op: Op) -> Steps | None:
    """None where a map has the formulas with dims aligned. Raises Misfit."""
    problems = formula_map.problems(op)
    schedule = _scheduled(op, problems) if problems else _schedule_of_columns(op)
    if schedule is None:
        return None
    return Steps(schedule, formula_slots.slots_of(schedule), formula_dims.named_dims(op, schedule))


def _scheduled(op: Op, problems: list[Problem]) -> Schedule:
    """The schedule of formulas that are no map by aligned dims, for these reasons. Raises Misfit."""
    if not formula_schedule.names_dims(op) and not _has_parts(op):
        raise Misfit(problems)
    return formula_schedule.schedule(op)


def _schedule_of_columns(op: Op) -> Schedule | None:
    """That of formulas with sums over the rows, by the names of their dims: rows make these in one pass,
    quicker than a map, which is left to all others."""
    if not formula_schedule.names_dims(op):
        return None
    try:
        schedule = formula_schedule.schedule(op)
    except Misfit:
        return None
    return schedule if schedule.outputs[Role.COLUMN] else None


def _has_parts(op: Op) -> bool:
    """There is a tensor that has the dims of all others, and formulas sum nothing."""
    if op.has_sums:
        return False
    shapes = [symbols(tensor.shape) for tensor in (*op.inputs, *op.outputs)]
    every = frozenset().union(*shapes)
    return every in shapes and any(own != every for own in shapes)
