"""Facts of an operator that are data: whether its calls are repeatable, which inputs are needed for their shape alone,
and how many operations a call makes."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from gradsmith_codegen import operation_count, render
from gradsmith_codegen.artefacts import artefacts
from gradsmith_codegen.loader import source_of
from gradsmith_codegen.plan import make_plan
from gradsmith_codegen.reader import check_document, load_schema
from gradsmith_codegen.text import Text, plain
from schemas import SCALE, edited, load, op_of
from test_axes import of_pick

KERNEL = "    kernel: scale::Scale"
# What the module of the functions has by names of its own: an operator's function may be called `sum` or `len`.
COUNTING = {"_prod": math.prod, "_sum": sum, "_len": len, "_range": range, "__builtins__": {}}
_schema, _ = load_schema(Path(__file__).resolve().parents[2] / "ops.yaml")
OPERATORS = {op.name: op for op in (_schema.ops if _schema else ())}


def written(text: str) -> dict[str, str]:
    schema, diagnostics = load(text)
    assert diagnostics == []
    assert schema
    return dict(render.render(artefacts(make_plan(schema, 1))))


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("always", ["kAlways", "kAlways"]),
        ("never", ["kNever", "kNever"]),
        ("policy", []),
        ("{cpu: always, cuda: never}", ["kAlways", "kNever"]),
        ("{cuda: never}", ["kNever"]),
    ],
)
def test_whether_rows_are_repeatable(said: str, expected: list[str]) -> None:
    both = ("backends: [cpu]", "backends: [cpu, cuda]")
    shard = written(edited(SCALE, both, (KERNEL, f"    repeatable: {said}\n{KERNEL}")))["src/ops_shard_0.cc"]
    found = [line.strip() for line in shard.splitlines() if ".repeatable" in line]
    assert found == [f".repeatable = Repeatable::{word}," for word in expected]


def test_what_formulas_compute_is_always_repeatable() -> None:
    files = written(edited(SCALE, (KERNEL, "    formulas: {Y: factor * X}"), ("[cpu]", "[cpu, cuda]")))
    assert files["src/ops_shard_0.cc"].count(".repeatable = Repeatable::kAlways,") == 2
    assert "| Two calls give the same bits on cuda | always |" in files["docs/Scale.md"]


def test_what_the_operators_of_the_library_say_of_being_repeatable() -> None:
    """Only convolutions, and batch normalization on CUDA, choose between kernels that add up otherwise."""
    rows = [(op, backend) for op in OPERATORS.values() for backend in op.backends]
    said = {(op.name, backend.value): op.repeatable_on(backend).value for op, backend in rows}
    chosen = {key for key, word in said.items() if word != "always"}
    norms = {(name, "cuda") for name in OPERATORS if name.startswith("BatchNormalization")}
    convolutions = {(name, backend) for name, backend in said if name.startswith("Conv")}
    assert chosen == norms | convolutions
    assert {said[key] for key in chosen} == {"policy"}


def test_an_input_that_is_not_read() -> None:
    x = 'X: {type: T, shape: [N, "*D"]'
    files = written(edited(SCALE, (x, f"{x}, shape_only: true")))
    assert "        .shape_only = true,\n" in files["src/ops_shard_0.cc"]
    assert "only its shape is needed" in files["docs/Scale.md"]
    assert ".shape_only" not in written(SCALE)["src/ops_shard_0.cc"]


def test_a_kernel_says_what_it_does_not_read() -> None:
    number = "number: {type: T, shape: []"
    expected = "G709: kernel sample::Spread may read the data of 'number': its kLimits lack 'number shape_only'"
    assert of_pick((number, f"{number}, shape_only: true")) == [expected]


def python_count(text: str) -> Callable[..., float]:
    """What Python counts by, from the dims of tensors and what attributes are given."""
    files = written(text)
    (line,) = [line for line in files["python/gradsmith/_ops/__init__.py"].splitlines() if "lambda" in line]
    function: Callable[..., float] = eval(line.partition(": ")[2].rstrip(","), COUNTING)
    return function


@pytest.mark.parametrize(
    "counted",
    ["2 * N * D", "7 - (N - 2) * -D / (3 + N) - (N - 1)", "N - (D - N) / (D / N)", "-(N + D) * 0.5", "N / D / 2"],
)
def test_how_many_operations_a_call_makes(counted: str) -> None:
    text = edited(SCALE, (KERNEL, f"    operations: {counted}\n{KERNEL}"))
    count = python_count(text)
    assert count({"X": (5, 3, 4)}, {}) == eval(counted, {"N": 5, "D": 12})
    assert f"| Operations of a call | `{counted}` |" in written(text)["docs/Scale.md"]


def test_the_numbers_of_an_attribute_are_multiplied() -> None:
    text = edited(
        SCALE,
        ("factor: {type: float, default: 1.0}", "sizes: {type: ints, default: [2, 5]}"),
        (KERNEL, "    operations: N * prod(sizes) - 1\n" + KERNEL),
    )
    count = python_count(text)
    assert count({"X": (5, 3, 4)}, {}) == 5 * 10 - 1
    assert count({"X": (5, 3, 4)}, {"sizes": (2, 3, 7)}) == 5 * 42 - 1
    assert count({"X": (5, 3, 4)}, {"sizes": ()}) == 5 * 1 - 1


def listed(operations: str) -> str:
    return edited(
        SCALE,
        ('X: {type: T, shape: [N, "*D"]}', 'X: {type: T, list: n, shape: [N, "*D"]}\n      r: {type: T, shape: [M]}'),
        ("Y: {type: T, like: X}", "Y: {type: T, list: n, like: X}"),
        ("X: [2, 3]}", "X: [[2, 3]], r: [4]}"),
        (KERNEL, f"    operations: {operations}\n" + KERNEL),
    )


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ("N * D + 1", (2 * 12 + 1) + (5 * 1 + 1)),  # of each place of the lists
        ("M * n", 7 * 2),
        ("N * M", 2 * 7 + 5 * 7),
        ("(n - 1) * D", 12 + 1),
    ],
)
def test_operations_on_lists_are_those_of_all_places(operations: str, expected: int) -> None:
    document, diagnostics = check_document(source_of("ops.yaml", listed(operations)))
    assert document, [one.message for one in diagnostics]
    expression = operation_count.expression(document.drafts[0].op)
    count = eval(f"lambda dims, given: {expression}", COUNTING)
    assert count({"X": [(2, 3, 4), (5,)], "r": (7,), "Y": [(2, 3, 4), (5,)]}, {}) == expected


def counted(operator: str) -> str:
    """What the operations of one of ops.yaml's operators are said to be."""
    return plain(operation_count.counted(OPERATORS[operator]) or Text("none"))


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("Sigmoid", "D"),
        ("ReluGrad", "D"),  # the comparison; what it selects is no operation
        ("MulGrad", "4 * D"),  # two products, two sums over what was broadcast
        # xhat 2, of_xhat 2, of_y 1, xhat * of_xhat and + and / and - and a product; scale * inv_std; dScale; dB
        ("InstanceNormalizationGrad", "10 * N * C * D + 3 * N * C"),
        ("SoftmaxGrad", "4 * B * A * F"),  # dY * Y, its sum, the difference, the product
        ("ReduceMean", "B * A * F + B * F"),  # the sum, and a quotient for each result
        ("ReduceSumGrad", "none"),  # copies
        ("SoftmaxCrossEntropyLoss", "7 * N * C * D + 9 * N * D"),  # which it says itself: dims hang on an attribute
        ("AveragePool", "N * C * O * prod(kernel_shape) + N * C * O"),
        ("BatchNormalization", "8 * N * C * D"),  # which it says itself
    ],
)
def test_operations_follow_from_formulas(operator: str, expected: str) -> None:
    assert counted(operator) == expected


def test_what_is_said_of_operations_counts_before_formulas() -> None:
    squared = (KERNEL, "    formulas: {Y: factor * X * X}")
    assert plain(operation_count.counted(op_of(edited(SCALE, squared))) or Text()) == "2 * N * D"
    said = edited(SCALE, (KERNEL, "    operations: 7 * N\n    formulas: {Y: factor * X * X}"))
    assert plain(operation_count.counted(op_of(said)) or Text()) == "7 * N"


@pytest.mark.parametrize(("attributes", "row"), [({}, 5), ({"axis": 1}, 3), ({"axis": 1, "coerced": True}, 15)])
def test_dims_beside_an_axis_are_those_of_the_call(attributes: dict[str, object], row: int) -> None:
    found = operation_count.operands(OPERATORS["SoftmaxGrad"])
    known = {"dims": {"dY": (2, 3, 5)}, "given": attributes, **COUNTING}
    assert eval(found["A"], known) == row
    assert eval(f"{found['B']} * {found['A']} * {found['F']}", known) == 2 * 3 * 5


@pytest.mark.parametrize("operator", [op.name for op in OPERATORS.values() if operation_count.counted(op)])
def test_every_call_shows_what_operations_are_counted_by(operator: str) -> None:
    assert operation_count.expression(OPERATORS[operator])


def test_dims_behind_a_list_and_attributes_are_counted() -> None:
    text = edited(
        SCALE,
        ('shape: [N, "*D"]', 'shape: ["*D", N, C]'),
        ("factor: {type: float, default: 1.0}", "times: {type: int, default: 3}"),
        ("X: [2, 3]}", "X: [2, 3, 4]}"),
        (KERNEL, "    operations: N * times + C * 100 + D * 10000\n" + KERNEL),
    )
    count = python_count(text)
    assert count({"X": (2, 3, 4, 5)}, {}) == 4 * 3 + 500 + 60000
    assert count({"X": (2, 3, 4, 5)}, {"times": 1}) == 4 + 500 + 60000
