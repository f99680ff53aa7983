"""From formulas to C++: the functor of the pattern `rows` (runtime/patterns/rows.h)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .formula_cpp import MATH, PRECISE, Body, Code
from .formula_graph import MEAN, VARIANCE
from .formula_rows_nodes import LAST, Emitter, RowNodes
from .formula_schedule import Role, Schedule
from .formula_slots import Slots
from .formula_tree import Kind, Precedence
from .functor_text import Method, branches, constant_method, functor_method
from .model import Op, Tensor
from .text import Text, cpp_comment

_ROW = "const RowValues<A>& row"


@dataclass(frozen=True, slots=True)
class Functor:
    """A struct's constants, each with a comment or none, and its functions."""

    constants: list[str]
    methods: list[Method]


def functor(op: Op, part: Op, schedule: Schedule, slots: Slots) -> Functor:
    """The functor of a part of an operator."""
    return _Writer(op, part, schedule, slots).functor()


class _Writer:
    def __init__(self, op: Op, part: Op, schedule: Schedule, slots: Slots) -> None:
        self._op = op
        self._formulas = {one.name: one for one in part.formulas}
        self._schedule = schedule
        self._slots = slots
        self._nodes = RowNodes(op, schedule, slots)
        self._graph = self._nodes.graph
        self._reductions = self._nodes.reductions

    def functor(self) -> Functor:
        methods = []
        if self._schedule.phases:
            methods += [self._phase_of(), *self._is_max(), self._terms(), *self._finish()]
        else:
            methods += [self._phase_of(), self._no_terms()]
        if self._nodes.lookups:
            methods.insert(0, self._lookup_at())
        outputs = self._schedule.outputs
        methods.append(self._map(outputs[Role.ELEMENT]))
        if outputs[Role.ROW]:
            methods.append(self._row_outputs(outputs[Role.ROW]))
        if outputs[Role.COLUMN]:
            methods += [*self._output_of(outputs), self._column_terms(outputs[Role.COLUMN])]
        return Functor(list(self._constants()), methods)

    # -- Constants ---

    def _constants(self) -> Iterable[str]:
        inputs, outputs = self._schedule.inputs, self._schedule.outputs
        for name, tensors in (
            ("kInputs", inputs[Role.ELEMENT]),
            ("kColumnInputs", inputs[Role.COLUMN]),
            ("kRowInputs", inputs[Role.ROW]),
            ("kIntegerInputs", inputs[Role.INTEGER]),
            ("kTables", inputs[Role.TABLE]),
            ("kOutputs", outputs[Role.ELEMENT]),
            ("kColumnSums", outputs[Role.COLUMN]),
            ("kRowOutputs", outputs[Role.ROW]),
        ):
            if tensors or name in ("kInputs", "kOutputs"):
                yield f"static constexpr int {name} = {len(tensors)};"
        if self._nodes.lookups:
            yield f"static constexpr int kLookups = {len(self._nodes.lookups)};"
        second = [
            1 << place
            for place, one in enumerate(self._schedule.operands)
            if one.type == self._schedule.second
        ]
        if second and self._schedule.second:
            yield f"static constexpr unsigned kSecondTypes = {bin(sum(second))};"
        optional = [1 << place for place, one in enumerate(inputs[Role.ELEMENT]) if one.optional]
        if optional:
            yield f"static constexpr unsigned kOptionalInputs = {bin(sum(optional))};"
        pivot = next((one.node for one in self._schedule.reductions if one.has_pivot), None)
        if pivot is not None:
            name = self._graph.nodes[self._graph.nodes[pivot].arguments[0]].name
            names = [tensor.name for tensor in inputs[Role.ELEMENT]]
            yield f"static constexpr int kPivot = {names.index(name)};"
        if self._schedule.is_flat:
            yield "static constexpr bool kIsFlat = true;"
        elif self._schedule.has_rows_of_many_dims:
            yield "static constexpr bool kRowsOfManyDims = true;"
        of_results = [1 << place for place, one in enumerate(outputs[Role.COLUMN]) if self._sums_results(one)]
        if of_results:
            yield f"static constexpr unsigned kSumsOfResults = {bin(sum(of_results))};"
        yield f"static constexpr int kPhases = {self._schedule.phases};"
        yield f"static constexpr int kResults = {len(self._slots.slots)};"

    def _lookup_at(self) -> Method:
        """The table of each lookup, the integer by which it is, and whether one outside is refused."""
        tables = [tensor.name for tensor in self._schedule.inputs[Role.TABLE]]
        integers = list(self._nodes.integers)
        found = []
        for lookup in self._nodes.lookups:
            node = self._graph.nodes[lookup]
            integer = self._graph.nodes[node.arguments[0]].name
            refuses = ", true" if self._nodes.integers[integer].refuses_outside else ""
            found.append(f"{{{tables.index(node.name)}, {integers.index(integer)}{refuses}}}")
        return constant_method("RowsLookup LookupAt", found, "lookup")

    # -- Results ---

    def _phase_of(self) -> Method:
        phases = [slot.phase for slot in self._slots.slots]
        return constant_method("int PhaseOf", phases)

    def _is_max(self) -> list[Method]:
        are_max = [slot.is_max for slot in self._slots.slots]
        return [constant_method("bool IsMax", are_max)] if any(are_max) else []

    def _no_terms(self) -> Method:
        return functor_method("Terms", ["int phase", _ROW, "const A* in", "const A* columns", "A* terms"], [])

    def _terms(self) -> Method:
        by_phase = [self._terms_of(phase) for phase in range(self._schedule.phases)]
        return functor_method(
            "Terms", ["int phase", _ROW, "const A* in", "const A* columns", "A* terms"], branches(by_phase)
        )

    def _terms_of(self, phase: int) -> list[str]:
        emitter = Emitter(self._nodes, phase)
        nodes = [one for one in self._reductions.values() if one.phase == phase]
        emitter.prepare([self._graph.nodes[one.node].arguments[0] for one in nodes])
        for one in nodes:
            argument = self._graph.nodes[one.node].arguments[0]
            first, *squares = self._slots.of_reduction[one.node]
            if squares:
                code = emitter.body.keep(
                    emitter.deviation(argument, self._graph.nodes[one.node].arguments[1])
                )
                emitter.set(f"terms[{first}]", code)
                emitter.set(f"terms[{squares[0]}]", Code(f"{code.text} * {code.text}", Precedence.PRODUCT))
            elif one.has_pivot:
                value = self._nodes.input_of(argument)
                emitter.set(f"terms[{first}]", Code(f"{value} - row.pivot", Precedence.SUM))
            else:
                emitter.set(f"terms[{first}]", emitter.code(argument))
        return emitter.body.lines

    def _finish(self) -> list[Method]:
        by_phase = [self._finish_of(phase) for phase in range(self._schedule.phases)]
        if not any(by_phase):
            return []
        return [functor_method("Finish", ["int phase", _ROW, "A* results"], branches(by_phase))]

    def _finish_of(self, phase: int) -> list[str]:
        """Means first, then variances, then what follows from both. It is made once for a row: nothing is
        approximate."""
        emitter = Emitter(self._nodes, phase, results="results", math=PRECISE)
        for one in self._reductions.values():
            operation = self._graph.nodes[one.node].operation
            slots = self._slots.of_reduction[one.node]
            if one.phase == phase and operation == MEAN:
                emitter.body.lines.append(f"results[{slots[0]}] /= row.length;")
            elif one.phase == phase and operation == VARIANCE:
                self._finish_variance(self._graph.nodes[one.node].arguments[1], slots, emitter.body)
        values = [node for node, last in self._slots.finished_in.items() if last == phase]
        emitter.prepare(values)
        for node in values:
            emitter.assign(f"results[{self._slots.of_value[node]}]", node)
        return emitter.body.lines

    def _finish_variance(self, mean: int, slots: tuple[int, ...], body: Body) -> None:
        """The mean of the deviations says by how much the mean is off."""
        correction, squares = slots
        center = self._slots.of_reduction[mean][0]
        body.lines += [f"results[{correction}] /= row.length;"]
        squared = f"results[{correction}] * results[{correction}]"
        name = body.keep(Code(f"results[{squares}] / row.length - {squared}", Precedence.SUM)).text
        if self._reductions[mean].has_pivot:
            body.lines.append(f"results[{center}] += results[{correction}];")
        body.lines += ["// NaN stays.", f"results[{squares}] = {name} < 0 ? A{{0}} : {name};"]

    # -- Outputs ---

    def _map(self, tensors: Sequence[Tensor]) -> Method:
        lines = self._assignments("out", tensors)
        return functor_method("Map", [_ROW, "const A* in", "const A* columns", "A* out"], lines)

    def _row_outputs(self, tensors: Sequence[Tensor]) -> Method:
        lines = self._assignments("outputs", tensors, math=PRECISE)
        return functor_method("RowOutputs", [_ROW, "A* outputs"], lines)

    def _output_of(self, outputs: dict[Role, list[Tensor]]) -> Iterable[Method]:
        """Which sums over the rows are of an output."""
        elements = [self._graph.outputs[tensor.name] for tensor in outputs[Role.ELEMENT]]
        terms = [
            self._graph.nodes[self._graph.outputs[tensor.name]].arguments[0]
            for tensor in outputs[Role.COLUMN]
        ]
        places = [elements.index(node) if node in elements else -1 for node in terms]
        if any(place >= 0 for place in places):
            yield constant_method("int OutputOf", places, "sum")

    def _sums_results(self, tensor: Tensor) -> bool:
        """What a sum over the rows adds up is made of what was found of each."""
        node = self._graph.nodes[self._graph.outputs[tensor.name]]
        return not self._graph.below(node.arguments).isdisjoint(self._reductions)

    def _column_terms(self, tensors: Sequence[Tensor]) -> Method:
        lines = self._assignments("terms", tensors, are_sums=True)
        return functor_method("ColumnTerms", [_ROW, "const A* in", "const A* columns", "A* terms"], lines)

    def _assignments(
        self, to: str, tensors: Sequence[Tensor], are_sums: bool = False, math: str = MATH
    ) -> list[str]:
        emitter = Emitter(self._nodes, LAST, math=math)
        nodes = [self._graph.outputs[tensor.name] for tensor in tensors]
        nodes = [self._graph.nodes[node].arguments[0] if are_sums else node for node in nodes]
        emitter.prepare(nodes)
        for place, (tensor, node) in enumerate(zip(tensors, nodes, strict=True)):
            code = emitter.code(node)
            if tensor.name in [one.name for one in self._op.outputs]:
                text = Text(tensor.name, " = ", self._formulas[tensor.name].text)
                emitter.body.lines.append(cpp_comment(text))
            emitter.set(f"{to}[{place}]", _as_number(code))
        return emitter.body.lines


def _as_number(code: Code) -> Code:
    if code.kind is Kind.NUMBER:
        return code
    return Code(f"{code.text} ? A{{1}} : A{{0}}", Precedence.SELECTION)
