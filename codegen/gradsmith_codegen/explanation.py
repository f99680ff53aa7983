"""What there is to know of an operator, worked out from its entry: for the verb `explain` and for the pages.

All of it is plain data, texts without any markup. Shapes and formulas are spelled as in the schema.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from . import model, special_values, words
from .formula_graph import VARIANCE
from .formula_schedule import Role, Schedule
from .formula_steps import Step
from .formula_tree import Reduce
from .plan import OpPlan, Plan
from .special_values import SpecialValues
from .text import plain
from .words import unmarked


@dataclass(frozen=True)
class Argument:
    name: str
    type: str
    shape: str
    remarks: str
    doc: str
    gradient_of: list[str]  # the forward operator's tensor, or the inputs that share it


@dataclass(frozen=True)
class Dims:
    name: str
    how_many: str
    rule: str
    doc: str
    formula: list[str]  # what the rule computes along each axis


@dataclass(frozen=True)
class Attribute:
    name: str
    kind: str
    default: Any  # null: absent; infinities are texts
    range: str
    entries: str
    doc: str


@dataclass(frozen=True)
class Row:
    name: str
    types: dict[str, str]
    declared_at: str
    bytes: str  # that a call moves at least


@dataclass(frozen=True)
class Revision:
    version: int
    change: str


@dataclass(frozen=True)
class Remark:
    """What comes of special values, and the test that holds it."""

    what: str
    test: str


@dataclass(frozen=True)
class Seam:
    """Expressions by inputs, and by outputs."""

    at: dict[str, str]
    gives: dict[str, str]


@dataclass(frozen=True)
class Phase:
    """A sweep over a row that ends in reductions."""

    reductions: list[str]


@dataclass(frozen=True)
class Pass:
    """One reading of the inputs that gives some outputs."""

    pattern: str
    along: list[str]  # the dims that make a row; none of a map
    phases: list[Phase]
    reads: list[str]
    writes: list[str]
    sums: list[str]  # the outputs that are summed over rows, or over what was broadcast


@dataclass(frozen=True)
class Explanation:
    op: str
    doc: str
    declared_at: str
    header: str
    domain: str
    since_version: int
    history: list[Revision]  # of versions, the first first; none where the schema does not say
    kernel: str  # empty where there are formulas
    formulas: dict[str, str]
    seams: list[Seam]
    gradient_of: str
    gradients: list[str]
    inputs: list[Argument]
    outputs: list[Argument]
    dims: list[Dims]
    attributes: list[Attribute]
    backends: list[str]
    rows: list[Row]
    repeatable: dict[str, str]
    patterns: list[str]
    passes: list[Pass]
    schedule: list[str]  # the passes in words
    sources: dict[str, str]
    operations: str  # empty where neither the schema nor formulas say
    special_values: SpecialValues | None
    remarks: list[Remark]  # on special values, as the schema has them
    notes: list[str]  # on NaN and zeros

    def data(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def explanation(op: OpPlan, plan: Plan, row: str = "", patterns: Sequence[str] = ()) -> Explanation:
    """Of all rows, or of one. `patterns` are those that a handwritten kernel's sources include."""
    one, files = op.op, plan.schema.files
    passes = list(_passes(op))
    return Explanation(
        op=one.name,
        doc=plain(one.doc),
        declared_at=plain(files.place(one.line)),
        header=f"{op.library.name}/ops/{op.snake}.h",
        domain=op.schema.domain,
        since_version=op.since_version,
        history=[Revision(each.version, plain(each.change)) for each in one.history],
        kernel=one.kernel,
        formulas=_expressions(one.formulas),
        seams=[Seam(*map(_expressions, (each.places, each.gives))) for each in one.seams],
        gradient_of=one.gradient_of,
        gradients=[gradient.name for gradient in plan.gradients_of(op)],
        inputs=[_argument(tensor, words.input_shape, words.input_remarks) for tensor in one.inputs],
        outputs=[_argument(tensor, words.output_shape, words.output_remarks) for tensor in one.outputs],
        dims=[
            Dims(
                symbol.name,
                unmarked(words.symbol_length(symbol)),
                unmarked(words.symbol_rule(symbol)),
                plain(symbol.doc),
                words.rule_lines(symbol),
            )
            for symbol in one.symbols
        ],
        attributes=[_attribute(attribute) for attribute in one.attributes],
        backends=[backend.value for backend in one.backends],
        rows=[
            Row(
                each.name, _types(each.row), plain(files.place(each.row.origin.line)), bytes_of(one, each.row)
            )
            for each in op.rows
            if row in ("", each.name)
        ],
        repeatable={backend.value: words.repeatable(op.repeatable_on(backend)) for backend in one.backends},
        patterns=list(dict.fromkeys(each.pattern for each in passes)) or list(patterns),
        passes=passes,
        schedule=list(_schedule(passes)),
        sources={backend.value: _source(op, patterns) for backend in one.backends},
        operations=plain(op.operations) if op.operations else "",
        special_values=special_values.of(one),
        remarks=[Remark(plain(each.what), plain(each.test)) for each in one.special_values],
        notes=[unmarked(note) for note in special_values.notes(one)],
    )


_Words = Callable[[model.Tensor], str]


def _argument(tensor: model.Tensor, shape: _Words, remarks: _Words) -> Argument:
    told = unmarked(shape(tensor)), unmarked(remarks(tensor))
    return Argument(tensor.name, tensor.type, *told, plain(tensor.doc), list(tensor.gradient_of))


def _attribute(attribute: model.Attribute) -> Attribute:
    default: Any = attribute.default
    if isinstance(default, tuple):
        default = list(default)
    elif isinstance(default, float) and math.isinf(default):
        default = str(default)
    return Attribute(
        attribute.name,
        attribute.kind.value,
        default,
        words.attribute_range(attribute),
        words.attribute_entries(attribute),
        plain(attribute.doc),
    )


def _expressions(formulas: Sequence[model.Formula]) -> dict[str, str]:
    return {formula.name: plain(formula.text) for formula in formulas}


def _types(row: model.Row) -> dict[str, str]:
    return {parameter: data_type.value for parameter, data_type in row.types}


def _source(op: OpPlan, patterns: Sequence[str]) -> str:
    if op.has_formulas:
        kinds = " and ".join(dict.fromkeys(each.pattern for each in _passes(op)))
        return f"generated from the formulas, on the pattern {kinds}"
    on = f", on the pattern {' and '.join(patterns)}" if patterns else ""
    return f"the handwritten kernel {op.kernel_namespace}::{op.kernel_struct}{on}"


# ----------------------------------------------------------------------------------------------------
# Schedules


def _passes(op: OpPlan) -> Iterator[Pass]:
    """Those of formulas."""
    if not op.has_formulas:
        return
    if not op.steps:
        reads = [tensor.name for tensor in op.op.read_inputs]
        writes = [tensor.name for tensor in op.op.outputs]
        sums = [one.name for one in op.op.formulas if isinstance(one.tree, Reduce) and one.name in writes]
        yield Pass("map", [], [], reads, writes, sums)
    for step in op.steps.passes if op.steps else ():
        yield _pass(step)


def _schedule(passes: Sequence[Pass]) -> Iterator[str]:
    """What each pass over memory does."""
    for number, one in enumerate(passes, start=1):
        which = f"pass {number} of {len(passes)}" if len(passes) > 1 else "one pass"
        along = f" along {', '.join(one.along)}" if one.along else ""
        yield f"{which}, {one.pattern}{along}: reads {', '.join(one.reads)}; writes {', '.join(one.writes)}"
        for place, phase in enumerate(one.phases, start=1):
            yield f"  phase {place}: {'; '.join(phase.reductions)}"
        if one.sums:
            over = "the rows" if one.pattern == "rows" else "what was broadcast"
            yield f"  summed over {over}: {', '.join(one.sums)}"


def _pass(step: Step) -> Pass:
    schedule = step.schedule
    inputs = {tensor.name for role in schedule.inputs.values() for tensor in role}
    return Pass(
        "map" if schedule.is_map else "rows",
        [dim for dim in schedule.whole if dim in schedule.over],
        [Phase(_reductions(schedule, phase)) for phase in range(schedule.phases)],
        [tensor.name for tensor in schedule.operands if tensor.name in inputs],
        [tensor.name for tensor in schedule.operands if tensor.name not in inputs],
        [tensor.name for tensor in schedule.outputs[Role.COLUMN]],
    )


def _reductions(schedule: Schedule, phase: int) -> list[str]:
    """As the formulas have them; what a variance needs besides is no formula's."""
    graph = schedule.graph
    found: Counter[str] = Counter()
    for one in schedule.reductions:
        if one.phase == phase and not (one.is_center and _is_implied(schedule, one.node)):
            node, (formula, _) = graph.nodes[one.node], graph.places[one.node]
            dims = ", ".join([dim for dim in schedule.whole if dim in node.over])
            found[f"{node.operation} over {dims} in {formula.name}"] += 1
    return [f"{told}, {count} of them" if count > 1 else told for told, count in found.items()]


def _is_implied(schedule: Schedule, node: int) -> bool:
    """A mean that stands in the graph for its variance alone."""
    nodes = schedule.graph.nodes
    users = [one for one in nodes if node in one.arguments]
    return (
        bool(users) and all(one.operation == VARIANCE for one in users) and node not in schedule.graph.named
    )


# ----------------------------------------------------------------------------------------------------
# Bytes


def bytes_of(op: model.Op, row: model.Row) -> str:
    """How many bytes a call moves at least that gives all outputs, each input that is not optional read once
    and each output written once. `4 * (2 * N * D + N)`: a list of dims is the product of them. Dims that hang
    on an attribute are left out."""
    by_size: dict[int, list[str]] = {}
    bound = dict(row.types)
    for tensor in (*op.inputs, *op.outputs):
        is_read = tensor in op.outputs or not (tensor.optional or tensor.shape_only or tensor.shape_of)
        if is_read:
            data_type = bound.get(tensor.type) or op.types_of(tensor)[0]
            by_size.setdefault(data_type.size, []).append(_elements(tensor))
    return " + ".join([_product(size, _sum(terms)) for size, terms in by_size.items()])


def _elements(tensor: model.Tensor) -> str:
    dims = [f"({dim.text})" if "/" in dim.text else dim.text.lstrip("*") for dim in tensor.shape.where(False)]
    dims = [dim for dim in dims if dim != "1"]
    return " * ".join(([tensor.list] if tensor.list else []) + dims) or "1"


def _sum(terms: Sequence[str]) -> list[str]:
    """Equal ones together, in order."""
    counts = {term: terms.count(term) for term in terms}
    return [
        term if count == 1 else str(count) if term == "1" else f"{count} * {term}"
        for term, count in counts.items()
    ]


def _product(size: int, terms: list[str]) -> str:
    text = " + ".join(terms)
    if size == 1:
        return text
    return f"{size} * ({text})" if len(terms) > 1 else f"{size} * {text}"
