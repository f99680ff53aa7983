"""Which outputs of formulas that name dims one pass over memory gives: all of them where a pattern computes
them together, else those that reduce over the same dims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from . import formula_schedule, formula_slots
from .formula_misfit import Misfit, of_entry
from .formula_schedule import Schedule
from .formula_slots import Slots
from .formula_tree import names
from .model import Op, Tensor

Pass = tuple[Schedule, Slots]


def passes_of(op: Op) -> list[Pass]:
    """In the order in which they are computed. Raises Misfit."""
    try:
        return [pass_of(op)]
    except Misfit as misfit:
        if len(op.outputs) == 1:
            raise
        groups = _groups(op)
        found = [pass_of(_giving(op, group)) for group in groups]
        if any(schedule.is_map for schedule, _ in found):
            raise misfit from None
    _check_together(groups, found)
    _share_counts(op, [schedule for schedule, _ in found])
    return found


def pass_of(op: Op) -> Pass:
    """All outputs by one. Raises Misfit."""
    schedule = formula_schedule.schedule(op)
    return schedule, formula_slots.slots_of(schedule)


def _fits(op: Op) -> bool:
    try:
        pass_of(op)
    except Misfit:
        return False
    return True


def _groups(op: Op) -> list[list[Tensor]]:
    """Each output joins the first pass that can give it too. What takes an input's place comes last, when
    nothing else reads that."""
    groups: list[list[Tensor]] = []
    for output in op.outputs:
        pass_of(_giving(op, [output]))  # or says what is wrong with it
        group = next((one for one in groups if _fits(_giving(op, [*one, output]))), None)
        if group is None:
            groups.append([output])
        else:
            group.append(output)
    return sorted(groups, key=_is_in_place)


def _is_in_place(group: Sequence[Tensor]) -> bool:
    return any(tensor.in_place_of for tensor in group)


def _giving(op: Op, outputs: Sequence[Tensor]) -> Op:
    """The operator that has these outputs alone, and what they are made of."""
    wanted = {tensor.name for tensor in outputs}
    for formula in reversed(op.formulas):
        if formula.name in wanted:
            wanted |= {name.name for name in names(formula.tree)}
    return replace(
        op,
        inputs=tuple([one for one in op.inputs if one.name in wanted or one.shape_only]),
        outputs=tuple([one for one in op.outputs if one in outputs]),
        formulas=tuple([one for one in op.formulas if one.name in wanted]),
    )


def _check_together(groups: Sequence[Sequence[Tensor]], found: Sequence[Pass]) -> None:
    for group, (schedule, _) in zip(groups, found, strict=True):
        if schedule.whole != found[0][0].whole:
            message = f"'{group[0].name}' needs a pass of its own, which reads no tensor with all dims"
            raise of_entry(f"{message} in their order", group[0].span)
    in_place = [one for group in groups if _is_in_place(group) for one in group if one.in_place_of]
    if sum(map(_is_in_place, groups)) > 1:
        message = (
            f"'{in_place[-1].name}' needs a pass of its own, which may read the input whose place "
            f"'{in_place[0].name}' takes"
        )
        raise of_entry(message, in_place[-1].at("in_place_of"))


def _share_counts(op: Op, schedules: Sequence[Schedule]) -> None:
    """All passes are given the same numbers."""
    counts = sorted({one for schedule in schedules for one in schedule.counts})
    formula_schedule.check_scalars(op, counts)
    for schedule in schedules:
        schedule.counts = counts
