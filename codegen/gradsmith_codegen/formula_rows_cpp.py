"""From formulas to C++: the functor of the pattern `rows` (runtime/patterns/rows.h)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from .formula_cpp import MATH, PRECISE, Body, Code, applied, chosen, constants, kept_short, number, scalar
from .formula_graph import ATTRIBUTE, CONSTANT, INPUT, LOOKUP, MEAN, NUMBER, VARIANCE
from .formula_schedule import Role, Schedule
from .formula_slots import Slots
from .formula_tree import CHOSEN, COUNT, GIVEN, INDEX, OPERATORS, Kind, Precedence
from .model import Attribute, AttributeKind, Op, Tensor
from .text import Text, cpp_comment
from .wrapping import COLUMN_LIMIT

_SUBTRACT = OPERATORS["-"]
_LAST = 1 << 30  # behind all phases
_ROW = "const RowValues<A>& row"
# Where a functor finds the inputs.
_PLACES = (
    (Role.ELEMENT, "in[{}]"),
    (Role.COLUMN, "columns[{}]"),
    (Role.ROW, "row.inputs[{}]"),
    (Role.INTEGER, "row.integers[{}]"),
)
_COMPARISONS = [OPERATORS[mark] for mark in ("<", "<=", ">", ">=", "==", "!=")]


@dataclass(frozen=True, slots=True)
class Method:
    """A member function of a functor, within its struct."""

    head: str
    lines: list[str]
    is_template: bool = True

    @property
    def text(self) -> str:
        """Its lines as they are written."""
        if len(self.lines) < 2:
            line = f"  {self.head} {{ {''.join(self.lines)} }}".replace("{  }", "{}")
            if len(line) <= COLUMN_LIMIT and "//" not in "".join(self.lines):
                return line
        first = f"  {self.head} {{"
        end = "}" if not self.lines else ""
        if len(first + end) > COLUMN_LIMIT:
            before, name = self.head.split(" void ", 1)
            first = f"  {before} void\n  {name} {{"
            if len(f"  {name} {{{end}") > COLUMN_LIMIT:
                opening, parameters = self.head.removesuffix(")").split("(", 1)
                each = parameters.replace(", ", ",\n      ")
                first = f"  {opening}(\n      {each}) {{"
        return f"{first}{end}" if end else "\n".join([first, *[f"    {line}" for line in self.lines], "  }"])


@dataclass(frozen=True, slots=True)
class Functor:
    """A struct's constants, each with a comment or none, and its functions."""

    constants: list[str]
    methods: list[Method]


def functor(op: Op, part: Op, schedule: Schedule, slots: Slots) -> Functor:
    """That of a part of an operator."""
    return _Writer(op, part, schedule, slots).functor()


class _Writer:
    def __init__(self, op: Op, part: Op, schedule: Schedule, slots: Slots) -> None:
        self._op = op
        self._formulas = {one.name: one for one in part.formulas}
        self._schedule = schedule
        self._slots = slots
        self._graph = schedule.graph
        self._reductions = {one.node: one for one in schedule.reductions}
        self._inputs = {
            tensor.name: text.format(index)
            for role, text in _PLACES
            for index, tensor in enumerate(schedule.inputs[role])
        }
        self._whole = {tensor.name: tensor for tensor in schedule.inputs[Role.INTEGER]}
        nodes = [self._graph.nodes[one] for one in range(len(self._graph.nodes))]
        self._lookups = [node for node, one in enumerate(nodes) if one.operation == LOOKUP]
        self._variance_of = {
            self._graph.nodes[node].arguments[1]: node
            for node in self._reductions
            if self._graph.nodes[node].operation == VARIANCE
        }

    def functor(self) -> Functor:
        methods = []
        if self._schedule.phases:
            methods += [self._phase_of(), *self._is_max(), self._terms(), *self._finish()]
        else:
            methods += [self._phase_of(), self._no_terms()]
        if self._lookups:
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
        if self._lookups:
            yield f"static constexpr int kLookups = {len(self._lookups)};"
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
        if self._schedule.has_rows_of_many_dims:
            yield "static constexpr bool kRowsOfManyDims = true;"
        yield f"static constexpr int kPhases = {self._schedule.phases};"
        yield f"static constexpr int kResults = {len(self._slots.slots)};"

    def _lookup_at(self) -> Method:
        """The table of each lookup, and the integer by which it is."""
        tables = [tensor.name for tensor in self._schedule.inputs[Role.TABLE]]
        integers = list(self._whole)
        found = []
        for lookup in self._lookups:
            node = self._graph.nodes[lookup]
            integer = self._graph.nodes[node.arguments[0]].name
            found.append(f"{{{tables.index(node.name)}, {integers.index(integer)}}}")
        return _constant_method("RowsLookup LookupAt", found, "lookup")

    # -- Results ---

    def _phase_of(self) -> Method:
        phases = [slot.phase for slot in self._slots.slots]
        return _constant_method("int PhaseOf", phases)

    def _is_max(self) -> list[Method]:
        are_max = [slot.is_max for slot in self._slots.slots]
        return [_constant_method("bool IsMax", are_max)] if any(are_max) else []

    def _no_terms(self) -> Method:
        return self._method("Terms", ["int phase", _ROW, "const A* in", "const A* columns", "A* terms"], [])

    def _terms(self) -> Method:
        by_phase = [self._terms_of(phase) for phase in range(self._schedule.phases)]
        return self._method(
            "Terms", ["int phase", _ROW, "const A* in", "const A* columns", "A* terms"], _branches(by_phase)
        )

    def _terms_of(self, phase: int) -> list[str]:
        emitter = _Emitter(self, phase)
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
                emitter.set(f"terms[{first}]", Code(f"{self.input_of(argument)} - row.pivot", Precedence.SUM))
            else:
                emitter.set(f"terms[{first}]", emitter.code(argument))
        return emitter.body.lines

    def _finish(self) -> list[Method]:
        by_phase = [self._finish_of(phase) for phase in range(self._schedule.phases)]
        if not any(by_phase):
            return []
        return [self._method("Finish", ["int phase", _ROW, "A* results"], _branches(by_phase))]

    def _finish_of(self, phase: int) -> list[str]:
        """Means first, then variances, then what follows from both. It is made once for a row: nothing is
        approximate."""
        emitter = _Emitter(self, phase, results="results", math=PRECISE)
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
        return self._method("Map", [_ROW, "const A* in", "const A* columns", "A* out"], lines)

    def _row_outputs(self, tensors: Sequence[Tensor]) -> Method:
        lines = self._assignments("outputs", tensors, math=PRECISE)
        return self._method("RowOutputs", [_ROW, "A* outputs"], lines)

    def _output_of(self, outputs: dict[Role, list[Tensor]]) -> Iterable[Method]:
        """Which sums over the rows are of an output."""
        elements = [self._graph.outputs[tensor.name] for tensor in outputs[Role.ELEMENT]]
        terms = [
            self._graph.nodes[self._graph.outputs[tensor.name]].arguments[0]
            for tensor in outputs[Role.COLUMN]
        ]
        places = [elements.index(node) if node in elements else -1 for node in terms]
        if any(place >= 0 for place in places):
            yield _constant_method("int OutputOf", places, "sum")

    def _column_terms(self, tensors: Sequence[Tensor]) -> Method:
        lines = self._assignments("terms", tensors, are_sums=True)
        return self._method("ColumnTerms", [_ROW, "const A* in", "const A* columns", "A* terms"], lines)

    def _assignments(
        self, to: str, tensors: Sequence[Tensor], are_sums: bool = False, math: str = MATH
    ) -> list[str]:
        emitter = _Emitter(self, _LAST, math=math)
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

    @staticmethod
    def _method(name: str, parameters: Sequence[str], lines: list[str]) -> Method:
        """Parameters that the lines do not read have no names."""
        text = " ".join(line for line in lines if not line.startswith("//"))
        shown = []
        for parameter in parameters:
            kind, _, own = parameter.rpartition(" ")
            is_read = any(f"{own}{mark}" in text for mark in (".", "[", " =="))
            shown.append(parameter if is_read else f"{kind} /*{own}*/")
        return Method(f"GRADSMITH_FUNCTOR static void {name}({', '.join(shown)})", lines)

    # -- What emitters ask ---

    def input_of(self, node: int) -> str:
        return self._inputs[self._graph.nodes[node].name]

    def leaf(self, node: int) -> Code | None:
        one = self._graph.nodes[node]
        if self._compares_integers(node):
            return self._comparison(node)
        if one.function or one.is_reduction:
            return None
        made: dict[str, Callable[[], Code]] = {
            NUMBER: lambda: number(one.number),
            INPUT: lambda: self._input(one.name),
            LOOKUP: lambda: Code(f"row.lookups[{self._lookups.index(node)}]", Precedence.CALL),
            INDEX: lambda: Code("static_cast<A>(row.index)", Precedence.CALL),
            COUNT: lambda: self._count(one.over),
            GIVEN: lambda: self._given(one.name),
            ATTRIBUTE: lambda: self._attribute(one.name),
            CHOSEN: lambda: self._chosen(one.name, one.value),
            CONSTANT: lambda: constants()[one.name],
        }
        return made[one.operation]()

    def _given(self, name: str) -> Code:
        before = len(self._op.scalars) + len(self._schedule.counts)
        return scalar(f"row.scalars[{before + self._op.givens.index(name)}]", True)

    def _attribute(self, name: str) -> Code:
        place, attribute = self._scalar(name)
        return scalar(place, attribute.kind is AttributeKind.BOOL)

    def _chosen(self, name: str, value: str) -> Code:
        place, attribute = self._scalar(name)
        return chosen(place, attribute, value)

    def _scalar(self, name: str) -> tuple[str, Attribute]:
        """Where functors find an attribute."""
        places = {one.name: (f"row.scalars[{index}]", one) for index, one in enumerate(self._op.scalars)}
        return places[name]

    def _input(self, name: str) -> Code:
        place = self._inputs[name]
        if name not in self._whole:
            return Code(place, Precedence.CALL)
        if self._whole[name].is_mask:
            return Code(f"{place} != 0", Precedence.COMPARISON, Kind.TRUTH)
        return Code(f"static_cast<A>({place})", Precedence.CALL)

    def _compares_integers(self, node: int) -> bool:
        """Both are whole, and one of them is an integer of the row or a place in it."""
        one = self._graph.nodes[node]
        if one.function not in _COMPARISONS or not all(self._integer(part) for part in one.arguments):
            return False
        return any(self._graph.nodes[part].operation in (INPUT, INDEX) for part in one.arguments)

    def _comparison(self, node: int) -> Code:
        one = self._graph.nodes[node]
        integers = [Code(self._integer(part), Precedence.CALL) for part in one.arguments]
        return applied(one.function, integers) if one.function else integers[0]

    def _integer(self, node: int) -> str:
        """A whole number as it is; empty where the node is none."""
        one = self._graph.nodes[node]
        if one.operation == INPUT and one.name in self._whole and not self._whole[one.name].is_mask:
            return self._inputs[one.name]
        if one.operation == INDEX:
            return "row.index"
        if one.operation == COUNT and frozenset(one.over) == self._schedule.over:
            return "row.exact_length"
        if one.operation == NUMBER and one.number == int(one.number):
            return str(int(one.number))
        if one.operation == ATTRIBUTE:
            for index, attribute in enumerate(self._op.scalars):
                if attribute.name == one.name and attribute.kind is AttributeKind.INT:
                    return f"static_cast<std::int64_t>(row.exact_scalars[{index}])"
        return ""

    def _count(self, over: tuple[str, ...]) -> Code:
        if frozenset(over) == self._schedule.over:
            return Code("row.length", Precedence.CALL)
        place = len(self._op.scalars) + self._schedule.counts.index(over)
        return scalar(f"row.scalars[{place}]", False)

    def found(self, node: int, phase: int, results: str) -> Code | None:
        """What a reduction gave, or a value that has a slot, if it is known before this phase."""
        if node in self._reductions:
            return self._mean(node, results) or Code(
                f"{results}[{self._slots.of_reduction[node][-1]}]", Precedence.CALL
            )
        if self._slots.finished_in.get(node, _LAST) < phase:
            return Code(f"{results}[{self._slots.of_value[node]}]", Precedence.CALL)
        return None

    def _mean(self, node: int, results: str) -> Code | None:
        """Of a mean from which deviations are taken the two parts of which it is made."""
        if not self._reductions[node].is_center:
            return None
        return Code(" + ".join(self._center(node, results)), Precedence.SUM)

    def _center(self, node: int, results: str, phase: int = _LAST) -> list[str]:
        own = f"{results}[{self._slots.of_reduction[node][0]}]"
        if self._reductions[node].has_pivot:
            return ["row.pivot", own]
        variance = self._variance_of[node]
        if phase <= self._reductions[variance].phase:
            return [own]
        return [own, f"{results}[{self._slots.of_reduction[variance][0]}]"]

    def deviation(self, value: Code, mean: int, results: str, phase: int) -> Code:
        return Code(" - ".join([value.text, *self._center(mean, results, phase)]), Precedence.SUM)

    def is_deviation(self, node: int) -> bool:
        """A value less its own mean, which is found for that."""
        one = self._graph.nodes[node]
        if one.function is not _SUBTRACT:
            return False
        value, mean = one.arguments
        is_center = mean in self._reductions and self._reductions[mean].is_center
        return is_center and self._graph.nodes[mean].arguments[0] == value

    def arguments_in(self, node: int, phase: int, results: str) -> tuple[int, ...]:
        """The nodes that a node's code is made of."""
        if self.leaf(node) or self.found(node, phase, results):
            return ()
        arguments = self._graph.nodes[node].arguments
        return arguments[:1] if self.is_deviation(node) else arguments

    def comment(self, node: int) -> str:
        formula = self._graph.named.get(node)
        return cpp_comment(Text(formula.name, " = ", formula.text)) if formula else ""

    def function(self, node: int) -> tuple[int, ...]:
        return self._graph.nodes[node].arguments

    def apply(self, node: int, arguments: list[Code], body: Body) -> Code:
        function = self._graph.nodes[node].function
        if function is None:
            raise ValueError(f"node {node} is no function")
        return kept_short(function, arguments, body)


class _Emitter:
    """Statements of one function: values that are used twice, or that formulas name, get names."""

    def __init__(
        self, writer: _Writer, phase: int, results: str = "row.results", math: str = MATH
    ) -> None:
        self.body = Body({}, math)
        self._writer = writer
        self._phase = phase
        self._results = results
        self._uses: dict[int, int] = {}
        self._known: dict[int, Code] = {}

    def prepare(self, roots: Sequence[int]) -> None:
        """Counts how often what is below the roots is used."""
        waiting = list(roots)
        while waiting:
            node = waiting.pop()
            self._uses[node] = self._uses.get(node, 0) + 1
            if self._uses[node] == 1:
                waiting += self._writer.arguments_in(node, self._phase, self._results)

    def code(self, node: int) -> Code:
        if node not in self._known:
            self._known[node] = self._made(node)
        return self._known[node]

    def _made(self, node: int) -> Code:
        known = self._writer.leaf(node) or self._writer.found(node, self._phase, self._results)
        if known:
            return known
        code = self._applied(node)
        comment = self._writer.comment(node)
        if self._uses.get(node, 0) < 2 and not comment:
            return code
        if comment:
            self.body.lines.append(comment)
        return self.body.keep(code)

    def assign(self, place: str, node: int) -> None:
        """Sets the place to the value of a node, which stands there from now on."""
        comment = self._writer.comment(node)
        if comment:
            self.body.lines.append(comment)
        self.set(place, self._applied(node))
        self._known[node] = Code(place, Precedence.CALL)

    def _applied(self, node: int) -> Code:
        if self._writer.is_deviation(node):
            return self.deviation(*self._writer.function(node))
        arguments = [self.code(one) for one in self._writer.function(node)]
        return self._writer.apply(node, arguments, self.body)

    def deviation(self, value: int, mean: int) -> Code:
        return self._writer.deviation(self.code(value), mean, self._results, self._phase)

    def set(self, place: str, code: Code) -> None:
        if place != code.text:
            self.body.lines.append(f"{place} = {code.text};")


def _as_number(code: Code) -> Code:
    if code.kind is Kind.NUMBER:
        return code
    return Code(f"{code.text} ? A{{1}} : A{{0}}", Precedence.SELECTION)


def _branches(by_phase: Sequence[list[str]]) -> list[str]:
    """Those of a single phase as they are, else each within its own condition."""
    if len(by_phase) == 1:
        return by_phase[0]
    lines: list[str] = []
    filled = [(phase, body) for phase, body in enumerate(by_phase) if body]
    for place, (phase, body) in enumerate(filled):
        is_else = place > 0 and place == len(by_phase) - 1
        condition = (
            "else" if is_else else f"else if (phase == {phase})" if place else f"if (phase == {phase})"
        )
        lines += [f"{'} ' if place else ''}{condition} {{", *[f"  {line}" for line in body]]
    return [*lines, "}"] if lines else []


def _constant_method(head: str, values: Sequence[int | bool | str], parameter: str = "result") -> Method:
    """A function of a number: of a slot's, or of what else the parameter says."""
    signature = f"GRADSMITH_FUNCTOR static constexpr {head}"
    distinct = list(dict.fromkeys(values)) or [0]
    if len(distinct) == 1:
        return Method(f"{signature}(int /*{parameter}*/)", [f"return {str(distinct[0]).lower()};"], False)
    if isinstance(distinct[0], bool):
        places = [place for place, value in enumerate(values) if value]
        condition = " || ".join(f"{parameter} == {place}" for place in places)
        return Method(f"{signature}(int {parameter})", [f"return {condition};"], False)
    *cases, last = distinct
    lines: list[str] = []
    for value in cases:
        condition = " || ".join(f"{parameter} == {place}" for place, one in enumerate(values) if one == value)
        lines += [f"if ({condition}) {{", f"  return {value};", "}"]
    return Method(f"{signature}(int {parameter})", [*lines, f"return {last};"], False)
