"""What rows keep while they are reduced: the results of a functor, one slot each (runtime/patterns/rows.h).

A slot is reduced in one phase. What follows from the results and is the same for a whole row is computed
once, when the phase is finished, and takes the place of a result that nothing else reads, or a slot of its
own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from .formula_graph import MAX, VARIANCE
from .formula_misfit import misfit
from .formula_schedule import MAX_RESULTS, Reduction, Role, Schedule
from .formula_tree import Kind


@dataclass(frozen=True, slots=True)
class Slot:
    node: int
    phase: int  # -1 where nothing is reduced into it
    is_max: bool = False


@dataclass(slots=True)
class Slots:
    slots: list[Slot] = field(default_factory=list)
    # A variance has two slots: the sums of the deviations, which correct the mean, and of their squares.
    of_reduction: dict[int, tuple[int, ...]] = field(default_factory=dict)
    of_value: dict[int, int] = field(default_factory=dict)
    finished_in: dict[int, int] = field(default_factory=dict)  # the phase after which a value is known


def slots_of(schedule: Schedule) -> Slots:
    """Raises Misfit where a phase finds more than kernels exchange."""
    found = _Planner(schedule).plan()
    has_columns = schedule.inputs[Role.COLUMN] or schedule.outputs[Role.COLUMN]
    for phase in range(0 if has_columns else schedule.phases):
        own = [slot.node for slot in found.slots if slot.phase == phase]
        if len(own) > MAX_RESULTS:
            message = f"rows without columns find {MAX_RESULTS} results at once, and this is one more"
            raise misfit(f"{message}; a variance is two", schedule.graph.span(own[MAX_RESULTS]))
    return found


class _Planner:
    def __init__(self, schedule: Schedule) -> None:
        self._graph = schedule.graph
        self._schedule = schedule
        self._live = self._graph.below(list(self._graph.outputs.values()))
        self._phases = {one.node: one.phase for one in schedule.reductions}
        self._parents: dict[int, list[int]] = {node: [] for node in self._live}
        for node in self._live:
            for argument in self._graph.nodes[node].arguments:
                self._parents[argument].append(node)
        self._found = Slots()

    def plan(self) -> Slots:
        for reduction in sorted(self._schedule.reductions, key=lambda one: (one.phase, one.node)):
            self._reduce(reduction)
        values = [node for node in sorted(self._live) if self._is_value(node)]
        taken: set[int] = set()
        for node in values:
            self._found.finished_in[node] = self._finished_in(node)
        for node in values:
            slot = next((one for one in self._vacated_by(node) if one not in taken), None)
            if slot is None:
                slot = len(self._found.slots)
                self._found.slots.append(Slot(node, -1))
            taken.add(slot)
            self._found.of_value[node] = slot
        return self._found

    def _reduce(self, reduction: Reduction) -> None:
        node = self._graph.nodes[reduction.node]
        slot = Slot(reduction.node, reduction.phase, node.operation == MAX)
        count = 2 if node.operation == VARIANCE else 1
        first = len(self._found.slots)
        self._found.slots += [slot] * count
        self._found.of_reduction[reduction.node] = tuple(range(first, first + count))

    def _is_of_row(self, node: int) -> bool:
        """A function of what is the same for all elements of a row, and of results."""
        is_function = self._graph.nodes[node].function is not None
        return is_function and not self._graph.dims[node] & self._schedule.over and self._uses_results(node)

    def _uses_results(self, node: int) -> bool:
        return not self._phases.keys().isdisjoint(self._graph.below([node]))

    def _is_value(self, node: int) -> bool:
        """Elements read it. Truth values are cheap, and no results."""
        is_number = not self._is_truth(node)
        return is_number and self._is_of_row(node) and self._is_read_by_elements(node)

    def _is_truth(self, node: int) -> bool:
        function = self._graph.nodes[node].function
        return function is not None and function.result is Kind.TRUTH

    def _is_read_by_elements(self, node: int) -> bool:
        if node in self._element_outputs():
            return True
        return any(
            self._graph.nodes[parent].is_reduction
            or self._graph.dims[parent] & self._schedule.over
            or (self._is_truth(parent) and self._is_read_by_elements(parent))
            for parent in self._parents[node]
        )

    def _element_outputs(self) -> set[int]:
        elements = self._schedule.outputs[Role.ELEMENT]
        return {self._graph.outputs[tensor.name] for tensor in elements}

    def _finished_in(self, node: int) -> int:
        return max(self._phases[one] for one in self._graph.below([node]) if one in self._phases)

    def _vacated_by(self, value: int) -> Iterator[int]:
        """The slots of results that the value alone reads, of the phase after which it is computed."""
        centers = {one.node for one in self._schedule.reductions if one.is_center}
        for node in sorted(self._graph.below([value])):
            in_phase = self._phases.get(node) == self._found.finished_in[value]
            if in_phase and node not in centers and self._readers(node) == {value}:
                yield self._found.of_reduction[node][-1]

    def _readers(self, node: int) -> set[int]:
        """The values that read a result, whether or not through others that have no slot; -1 stands for all
        else that does."""
        found: set[int] = set()
        outputs = set(self._graph.outputs.values())
        waiting = [node]
        while waiting:
            one = waiting.pop()
            if one in outputs:
                found.add(-1)
            for parent in self._parents[one]:
                if parent in self._found.finished_in:
                    found.add(parent)
                elif self._is_of_row(parent):
                    waiting.append(parent)
                else:
                    found.add(-1)
        return found
