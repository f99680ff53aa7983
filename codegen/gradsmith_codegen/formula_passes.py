"""Which passes over memory compute formulas that name dims: one where a pattern computes all outputs
together. Else a pass reduces over the dims of one reduction, and gives the outputs that need no other; what
later passes need of its reductions it leaves in temporaries."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from . import formula_schedule, formula_slots
from .data_types import DataType
from .formula_graph import symbols
from .formula_misfit import MAX_ROWS_ARGUMENTS, MAX_ROWS_TEMPORARIES, Misfit, of_entry
from .formula_named import Named, named_reductions
from .formula_schedule import Schedule
from .formula_slots import Slots
from .formula_tree import names
from .model import Op, Row, Tensor
from .shapes import Shape

# The type parameter of temporaries, which is float, or double where a row has doubles, unless another is. It
# is no name that a schema can have.
ACCUMULATED = "accumulated"


@dataclass(frozen=True, slots=True)
class Pass:
    """A part of an operator. Temporaries are inputs and outputs of it like others."""

    op: Op
    schedule: Schedule
    slots: Slots


@dataclass(frozen=True, slots=True)
class Passes:
    """In the order in which they are computed."""

    passes: tuple[Pass, ...]
    temporaries: tuple[Tensor, ...] = ()


def passes_of(op: Op) -> Passes:
    """Raises Misfit."""
    try:
        return Passes((pass_of(op),))
    except Misfit as misfit:
        found = _rows_of_all(op) or _flat_row(op) or _Stager(op, misfit).passes()
    _check_limits(op, found)
    _share_counts(op, [one.schedule for one in found.passes])
    return found


def pass_of(op: Op, over: frozenset[str] | None = None, *, spreads: bool = False) -> Pass:
    """All outputs by one, whose rows are made of the dims `over` if nothing is reduced. Raises Misfit."""
    schedule = formula_schedule.schedule(op, over, spreads=spreads)
    return Pass(op, schedule, formula_slots.slots_of(schedule))


def _rows_of_all(op: Op) -> Passes | None:
    """Of formulas that reduce nothing and are no map: a row of what only tensors with all dims have. Rows may
    have two types, and what is of a row may be absent and of any type."""
    shapes = [symbols(tensor.shape) for tensor in (*op.inputs, *op.outputs)]
    whole = frozenset().union(*shapes)
    try:
        found = pass_of(op, whole.difference(*[one for one in shapes if one != whole]))
    except Misfit:
        return None
    return None if found.schedule.reductions else Passes((found,))


def _flat_row(op: Op) -> Passes | None:
    """Of formulas that reduce nothing and have something once for all elements: a row of all dims, and inputs
    that lack some are spread along these."""
    whole = frozenset().union(*[symbols(tensor.shape) for tensor in (*op.inputs, *op.outputs)])
    try:
        found = pass_of(op, whole, spreads=True)
    except Misfit:
        return None
    return Passes((found,)) if found.schedule.is_flat else None


class _Stager:
    def __init__(self, op: Op, misfit: Misfit) -> None:
        self._misfit = misfit
        self._named: Named = named_reductions(op)
        wide = tuple([_accumulated(row) for row in op.rows])
        self._wide = next((one for one in op.type_parameters if _binds(op, one) == wide), ACCUMULATED)
        rows = tuple([_with_accumulated(row, kind) for row, kind in zip(op.rows, wide, strict=True)])
        self._op = replace(self._named.op, rows=rows)
        self._why = misfit  # the last pass that did not fit
        self._kept: dict[str, Tensor] = {}  # temporaries by the names of formulas
        self._found: list[Pass] = []

    def passes(self) -> Passes:
        left = list(self._op.outputs)
        while left:
            given = self._next(left)
            left = [one for one in left if one.name not in given]
        if len(self._found) == 1:
            raise self._misfit
        return Passes(tuple(self._in_order()), tuple(self._kept.values()))

    def _next(self, left: Sequence[Tensor]) -> set[str]:
        """Adds a pass, and returns which of the outputs that are left it gives."""
        reductions = [one for one in self._open(left) if self._is_ready(one)]
        if not reductions and not self._found:
            raise self._misfit
        over = self._named.over[reductions[0]] if reductions else self._over_of_maps(left)
        within = {name for name in reductions if self._named.over[name] == over}
        given: list[Tensor] = []
        found = self._pass(left, given, within, over)
        for output in left:
            if self._needs(output.name) <= within:
                tried = self._pass(left, [*given, output], within, over)
                if tried is not None:
                    found, given = tried, [*given, output]
        if found is None:  # not together: one at a time
            alone = (self._pass(left, [], {one}, over) for one in reductions if one in within)
            found = next((one for one in alone if one is not None), None)
        if found is None:
            is_of_one = len(set(self._named.over.values())) < 2
            raise self._misfit_of(left) if is_of_one else self._why
        self._found.append(found)
        self._kept |= {one.name: one for one in found.op.outputs if one not in given}
        return {one.name for one in given}

    def _misfit_of(self, left: Sequence[Tensor]) -> Misfit:
        """What is wrong with the first output, if it is that alone."""
        for output in left if len(self._op.outputs) > 1 else ():
            try:
                pass_of(self._part([output]))
            except Misfit as misfit:
                return misfit
        return self._misfit

    # -- What is reduced ---

    def _made_of(self, roots: Iterable[str], ends: Container[str] = ()) -> set[str]:
        """The formulas among the roots and all that these are made of, but for what a pass has left, and no
        further than `ends`."""
        found: set[str] = set()
        waiting = list(roots)
        while waiting:
            name = waiting.pop()
            if name in self._named.formulas and name not in self._kept and name not in found:
                found.add(name)
                waiting += [] if name in ends else self._reads(name)
        return found

    def _reads(self, name: str) -> list[str]:
        return [part.name for part in names(self._named.formulas[name].tree)]

    def _open(self, outputs: Sequence[Tensor]) -> list[str]:
        """The reductions that outputs need and that no pass has left, in their order."""
        every = self._made_of([one.name for one in outputs])
        return [one.name for one in self._op.formulas if one.name in every and one.name in self._named.over]

    def _needs(self, name: str) -> set[str]:
        """Those that a formula is made of, without itself."""
        return self._made_of(self._reads(name)) & self._named.over.keys()

    def _is_ready(self, name: str) -> bool:
        """It is made of no other reduction than of those over the same dims."""
        over = self._named.over
        return all(over[one] == over[name] for one in self._needs(name))

    def _over_of_maps(self, left: Sequence[Tensor]) -> frozenset[str]:
        """The dims that make a row where nothing is reduced: those that only tensors with all dims have."""
        tensors = self._part(left).read_inputs
        whole = frozenset().union(*[symbols(one.shape) for one in (*tensors, *left)])
        some = [symbols(one.shape) for one in tensors if symbols(one.shape) != whole]
        return whole.difference(*some) or self._found[0].schedule.over

    # -- Parts ---

    def _pass(
        self, left: Sequence[Tensor], given: Sequence[Tensor], within: set[str], over: frozenset[str]
    ) -> Pass | None:
        """That which gives outputs and what those that it does not give need of `within`; None where no
        pattern computes it."""
        others = [one.name for one in left if one not in given]
        needed = self._needed(others, within, over)
        if not given and not needed:
            return None
        try:
            return pass_of(self._part([*given, *map(self._temporary, needed)]), over)
        except Misfit as misfit:
            self._why = misfit
            return None

    def _needed(self, outputs: Collection[str], within: set[str], over: frozenset[str]) -> list[str]:
        """What a pass leaves to outputs: reductions of `within` and what is made of them and is the same for
        a row, if they are not made of it by way of others. An output is given as it is."""
        roots = [name for name in outputs if name not in within]
        below = self._made_of(roots) - set(outputs)
        ends = {name for name in below if name in within or self._is_of_row(name, within, over)}
        found = self._made_of(roots, ends) & ends
        return [one.name for one in self._op.formulas if one.name in found]

    def _is_of_row(self, name: str, within: set[str], over: frozenset[str]) -> bool:
        """It is a function of reductions of `within`, and of no other."""
        needs = self._needs(name)
        is_function = name not in self._named.over and not self._named.dims[name] & over
        return is_function and bool(needs) and needs <= within

    def _temporary(self, name: str) -> Tensor:
        dims = self._named.dims[name]
        largest = max((*self._op.inputs, *self._op.outputs), key=lambda one: len(symbols(one.shape)))
        shape = Shape([dim for dim in largest.shape if dim.symbol in dims])
        origin = self._named.formulas[name].origin
        return Tensor(name, self._wide, shape, (origin,) * len(shape), origin)

    def _part(self, outputs: Sequence[Tensor]) -> Op:
        """The operator that has these outputs alone, and what they are made of."""
        wanted = {one.name for one in outputs}
        for formula in reversed(self._op.formulas):
            if formula.name in wanted and formula.name not in self._kept:
                wanted |= {part.name for part in names(formula.tree)}
        kept = [tensor for name, tensor in self._kept.items() if name in wanted]
        inputs = [one for one in self._op.inputs if one.name in wanted or one.shape_only]
        return replace(
            self._op,
            inputs=(*self._lead(outputs, [*inputs, *kept]), *inputs, *kept),
            outputs=tuple(outputs),
            formulas=tuple(
                [one for one in self._op.formulas if one.name in wanted and one.name not in self._kept]
            ),
        )

    def _lead(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> list[Tensor]:
        """An input that nothing reads and that has all dims, where no other that is always there has."""
        whole = frozenset().union(*[symbols(one.shape) for one in (*inputs, *outputs)])
        if any(symbols(one.shape) == whole and one.tells_dims for one in inputs):
            return []
        every = [one for one in self._op.inputs if not one.shape_only and one.tells_dims]
        return [one for one in every if symbols(one.shape) == whole][:1]

    # -- The order ---

    def _in_order(self) -> Iterator[Pass]:
        """What takes an input's place comes last, when nothing else reads that."""
        waiting = list(self._found)
        while waiting:
            made = {one.name for each in waiting for one in each.op.outputs}
            ready = [each for each in waiting if made.isdisjoint([one.name for one in each.op.inputs])]
            found = next((each for each in ready if not self._spoiled(each, waiting)), ready[0])
            waiting.remove(found)
            for tensor, other in self._spoiled(found, waiting):
                message = f"'{other.name}' needs a pass of its own, which may read the input whose place"
                raise of_entry(f"{message} '{tensor.name}' takes", tensor.at("in_place_of"))
            yield found

    @staticmethod
    def _spoiled(found: Pass, others: Sequence[Pass]) -> list[tuple[Tensor, Tensor]]:
        """Outputs that take the place of what another pass reads, with one of its outputs."""
        taken = [tensor for tensor in found.op.outputs if tensor.in_place_of]
        return [
            (tensor, each.op.outputs[0])
            for tensor in taken
            for each in others
            if each is not found and tensor.in_place_of in [one.name for one in each.op.inputs]
        ]


def _accumulated(row: Row) -> DataType:
    """The type of a row's temporaries."""
    return DataType.DOUBLE if DataType.DOUBLE in dict(row.types).values() else DataType.FLOAT


def _binds(op: Op, parameter: str) -> tuple[DataType, ...]:
    """What a type parameter is in each row."""
    return tuple([dict(row.types)[parameter] for row in op.rows])


def _with_accumulated(row: Row, kind: DataType) -> Row:
    return replace(row, types=(*row.types, (ACCUMULATED, kind)))


def _check_limits(op: Op, found: Passes) -> None:
    arguments, temporaries = len(op.inputs) + len(op.outputs), len(found.temporaries)
    for what, count, most in (
        ("inputs and outputs", arguments, MAX_ROWS_ARGUMENTS),
        ("temporaries", temporaries, MAX_ROWS_TEMPORARIES),
    ):
        if count > most:
            raise of_entry(f"all passes together have {most} {what} at most, not {count}", op.at("formulas"))


def _share_counts(op: Op, schedules: Sequence[Schedule]) -> None:
    """All passes are given the same numbers."""
    counts = sorted({one for schedule in schedules for one in schedule.counts})
    formula_schedule.check_scalars(op, counts)
    for schedule in schedules:
        schedule.counts = counts
