"""From a graph of formulas to C++: what each of its nodes is within a functor of the pattern `rows`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .formula_cpp import MATH, Body, Code, applied, chosen, constants, kept_short, number, scalar
from .formula_graph import ATTRIBUTE, CONSTANT, INPUT, LOOKUP, NUMBER, VARIANCE
from .formula_integers import COMPARISONS, whole_number
from .formula_schedule import Role, Schedule
from .formula_slots import Slots
from .formula_tree import CHOSEN, COUNT, GIVEN, INDEX, OPERATORS, Kind, Precedence
from .model import Attribute, AttributeKind, Op
from .text import Text, cpp_comment

LAST = 1 << 30  # behind all phases

_SUBTRACT = OPERATORS["-"]
# A functor finds its inputs here.
_PLACES = (
    (Role.ELEMENT, "in[{}]"),
    (Role.COLUMN, "columns[{}]"),
    (Role.ROW, "row.inputs[{}]"),
    (Role.INTEGER, "row.integers[{}]"),
)


class RowNodes:
    """The nodes of a schedule, as functions of its functor find or compute them."""

    def __init__(self, op: Op, schedule: Schedule, slots: Slots) -> None:
        self._op = op
        self._schedule = schedule
        self._slots = slots
        self.graph = schedule.graph
        self.reductions = {one.node: one for one in schedule.reductions}
        self._inputs = {
            tensor.name: text.format(index)
            for role, text in _PLACES
            for index, tensor in enumerate(schedule.inputs[role])
        }
        self.integers = {tensor.name: tensor for tensor in schedule.inputs[Role.INTEGER]}
        nodes = [self.graph.nodes[one] for one in range(len(self.graph.nodes))]
        self.lookups = [node for node, one in enumerate(nodes) if one.operation == LOOKUP]
        self._variance_of = {
            self.graph.nodes[node].arguments[1]: node
            for node in self.reductions
            if self.graph.nodes[node].operation == VARIANCE
        }

    def input_of(self, node: int) -> str:
        return self._inputs[self.graph.nodes[node].name]

    def leaf(self, node: int) -> Code | None:
        """A node that is made of no others; None where it is, as a function or a reduction."""
        one = self.graph.nodes[node]
        if self._compares_integers(node):
            return self._comparison(node)
        if one.function or one.is_reduction:
            return None
        made: dict[str, Callable[[], Code]] = {
            NUMBER: lambda: number(one.number),
            INPUT: lambda: self._input(one.name),
            LOOKUP: lambda: Code(f"row.lookups[{self.lookups.index(node)}]", Precedence.CALL),
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
        if name not in self.integers:
            return Code(place, Precedence.CALL)
        if self.integers[name].is_mask:
            return Code(f"{place} != 0", Precedence.COMPARISON, Kind.TRUTH)
        return Code(f"static_cast<A>({place})", Precedence.CALL)

    def _compares_integers(self, node: int) -> bool:
        """Both are whole, and one of them is an integer of the row or a place in it."""
        one = self.graph.nodes[node]
        if one.function not in COMPARISONS or not all(self._integer(part) for part in one.arguments):
            return False
        return any(self.graph.nodes[part].operation in (INPUT, INDEX) for part in one.arguments)

    def _comparison(self, node: int) -> Code:
        one = self.graph.nodes[node]
        integers = [Code(self._integer(part), Precedence.CALL) for part in one.arguments]
        return applied(one.function, integers) if one.function else integers[0]

    def _integer(self, node: int) -> str:
        """A whole number as it is; empty where the node is none."""
        one = self.graph.nodes[node]
        if one.operation == INPUT and one.name in self.integers and not self.integers[one.name].is_mask:
            return self._inputs[one.name]
        if one.operation == INDEX:
            return "row.index"
        if one.operation == COUNT and frozenset(one.over) == self._schedule.over:
            return "row.exact_length"
        whole = whole_number(self.graph, node)
        if whole is not None:
            return str(whole)
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
        if node in self.reductions:
            return self._mean(node, results) or Code(
                f"{results}[{self._slots.of_reduction[node][-1]}]", Precedence.CALL
            )
        if self._slots.finished_in.get(node, LAST) < phase:
            return Code(f"{results}[{self._slots.of_value[node]}]", Precedence.CALL)
        return None

    def _mean(self, node: int, results: str) -> Code | None:
        """The two parts of a mean from which deviations are taken; None for other nodes."""
        if not self.reductions[node].is_center:
            return None
        return Code(" + ".join(self._center(node, results)), Precedence.SUM)

    def _center(self, node: int, results: str, phase: int = LAST) -> list[str]:
        own = f"{results}[{self._slots.of_reduction[node][0]}]"
        if self.reductions[node].has_pivot:
            return ["row.pivot", own]
        variance = self._variance_of[node]
        if phase <= self.reductions[variance].phase:
            return [own]
        return [own, f"{results}[{self._slots.of_reduction[variance][0]}]"]

    def deviation(self, value: Code, mean: int, results: str, phase: int) -> Code:
        return Code(" - ".join([value.text, *self._center(mean, results, phase)]), Precedence.SUM)

    def is_deviation(self, node: int) -> bool:
        """A value less its own mean, which is found for that."""
        one = self.graph.nodes[node]
        if one.function is not _SUBTRACT:
            return False
        value, mean = one.arguments
        is_center = mean in self.reductions and self.reductions[mean].is_center
        return is_center and self.graph.nodes[mean].arguments[0] == value

    def arguments_in(self, node: int, phase: int, results: str) -> tuple[int, ...]:
        """The nodes that a node's code is made of."""
        if self.leaf(node) or self.found(node, phase, results):
            return ()
        arguments = self.graph.nodes[node].arguments
        return arguments[:1] if self.is_deviation(node) else arguments

    def comment(self, node: int) -> str:
        formula = self.graph.named.get(node)
        return cpp_comment(Text(formula.name, " = ", formula.text)) if formula else ""

    def arguments(self, node: int) -> tuple[int, ...]:
        return self.graph.nodes[node].arguments

    def apply(self, node: int, arguments: list[Code], body: Body) -> Code:
        function = self.graph.nodes[node].function
        if function is None:
            raise ValueError(f"node {node} is no function")
        return kept_short(function, arguments, body)


class Emitter:
    """Statements of one function: values that are used twice, or that formulas name, get names."""

    def __init__(self, nodes: RowNodes, phase: int, results: str = "row.results", math: str = MATH) -> None:
        self.body = Body({}, math)
        self._nodes = nodes
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
                waiting += self._nodes.arguments_in(node, self._phase, self._results)

    def code(self, node: int) -> Code:
        if node not in self._known:
            self._known[node] = self._made(node)
        return self._known[node]

    def _made(self, node: int) -> Code:
        known = self._nodes.leaf(node) or self._nodes.found(node, self._phase, self._results)
        if known:
            return known
        code = self._applied(node)
        comment = self._nodes.comment(node)
        if self._uses.get(node, 0) < 2 and not comment:
            return code
        if comment:
            self.body.lines.append(comment)
        return self.body.keep(code)

    def assign(self, place: str, node: int) -> None:
        """Sets the place to the value of a node, which stands there from now on."""
        comment = self._nodes.comment(node)
        if comment:
            self.body.lines.append(comment)
        self.set(place, self._applied(node))
        self._known[node] = Code(place, Precedence.CALL)

    def _applied(self, node: int) -> Code:
        if self._nodes.is_deviation(node):
            return self.deviation(*self._nodes.arguments(node))
        arguments = [self.code(one) for one in self._nodes.arguments(node)]
        return self._nodes.apply(node, arguments, self.body)

    def deviation(self, value: int, mean: int) -> Code:
        return self._nodes.deviation(self.code(value), mean, self._results, self._phase)

    def set(self, place: str, code: Code) -> None:
        if place != code.text:
            self.body.lines.append(f"{place} = {code.text};")
