"""How a kernel pattern computes formulas: by aligned dims where a map does so, else by the dims' names."""

from __future__ import annotations

from dataclasses import dataclass

from . import formula_dims, formula_map, formula_passes, formula_schedule
from .formula_dims import NamedDims
from .formula_graph import symbols
from .formula_misfit import Misfit, Problem
from .formula_passes import Pass
from .formula_schedule import Role, Schedule
from .formula_slots import Slots
from .formula_splits import unfolded
from .model import Op


@dataclass(frozen=True, slots=True)
class Steps:
    """A pass over memory that computes outputs of formulas whose tensors have dims by name."""

    schedule: Schedule
    slots: Slots
    dims: NamedDims


def steps_of(op: Op) -> tuple[Steps, ...]:
    """The passes, in order; none where a map has the formulas with dims aligned. Raises Misfit."""
    op = unfolded(op)
    problems = formula_map.problems(op)
    passes = _passes(op, problems) if problems else _pass_with_columns(op)
    return tuple([Steps(one, slots, formula_dims.named_dims(op, one)) for one, slots in passes])


def _passes(op: Op, problems: list[Problem]) -> list[Pass]:
    """Those of formulas that are no map by aligned dims, for these reasons. Raises Misfit."""
    if not formula_schedule.names_dims(op) and not _has_parts(op):
        raise Misfit(problems)
    return formula_passes.passes_of(op)


def _pass_with_columns(op: Op) -> list[Pass]:
    """That of formulas with sums over the rows, by the names of their dims: rows make these in one pass,
    quicker than a map, which is left to all others."""
    if not formula_schedule.names_dims(op):
        return []
    try:
        found = formula_passes.pass_of(op)
    except Misfit:
        return []
    return [found] if found[0].outputs[Role.COLUMN] else []


def _has_parts(op: Op) -> bool:
    """There is a tensor that has the dims of all others, and formulas sum nothing."""
    if op.has_sums:
        return False
    shapes = [symbols(tensor.shape) for tensor in (*op.inputs, *op.outputs)]
    every = frozenset().union(*shapes)
    return every in shapes and any(own != every for own in shapes)
