"""How a kernel pattern computes formulas: by aligned dims where a map does so, else by the dims' names."""

from __future__ import annotations

from dataclasses import dataclass

from . import formula_dims, formula_map, formula_schedule, formula_slots
from .formula_dims import NamedDims
from .formula_graph import symbols
from .formula_misfit import Misfit
from .formula_schedule import Role, Schedule
from .formula_slots import Slots
from .model import Op


@dataclass(frozen=True, slots=True)
class Steps:
    """Of formulas whose tensors have dims by name."""

    schedule: Schedule
    slots: Slots
    dims: NamedDims


def steps_of(op: Op) -> Steps | None:
    """None where a map has the formulas with dims aligned. Raises Misfit."""
    problems = formula_map.problems(op)
    if not problems and not _sums_columns(op):
        return None
    if not formula_schedule.names_dims(op) and not _has_parts(op):
        raise Misfit(problems)
    schedule = formula_schedule.schedule(op)
    return Steps(schedule, formula_slots.slots_of(schedule), formula_dims.named_dims(op, schedule))


def _sums_columns(op: Op) -> bool:
    """Sums over the rows, by the names of their dims: rows make them in one pass, quicker than a map."""
    if not formula_schedule.names_dims(op):
        return False
    try:
        return bool(formula_schedule.schedule(op).outputs[Role.COLUMN])
    except Misfit:
        return False


def _has_parts(op: Op) -> bool:
    """There is a tensor that has the dims of all others, and formulas sum nothing."""
    if op.has_sums:
        return False
    shapes = [symbols(tensor.shape) for tensor in (*op.inputs, *op.outputs)]
    every = frozenset().union(*shapes)
    return every in shapes and any(own != every for own in shapes)
