"""Shapes with several lists of dims: what tells where one ends, and what a kernel takes of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from gradsmith_codegen.kernel_headers import RUNTIME, KernelHeaders
from gradsmith_codegen.loader import source_of
from gradsmith_codegen.reader import load_source
from schemas import SCALE, edited, ids, load

KERNELS = Path(__file__).resolve().parents[1] / "kernels"
PICK = (KERNELS / "ops.yaml").read_text(encoding="utf-8")
HEADERS = KernelHeaders([KERNELS, RUNTIME])
SPLIT = edited(
    SCALE,
    ('X: {type: T, shape: [N, "*D"]}', 'X: {type: T, shape: ["*P", "*S"]}\n      mean: {type: T, shape: ["*P"]}'),
    ("D: {length: [0, 3]}", "P: {length: [0, 8]}\n      S: {length: [0, 8]}"),
    ("X: [2, 3]}", "X: [2, 3, 4], mean: [2, 3]}"),
)


def of_pick(*edits: tuple[str, str]) -> list[str]:
    """What is wrong with the tests' operators after some edits."""
    _, diagnostics = load_source(source_of("ops.yaml", edited(PICK, *edits)), headers=HEADERS)
    return [f"{diagnostic.id}: {diagnostic.message}" for diagnostic in diagnostics]


def test_an_input_tells_where_a_list_ends() -> None:
    schema, diagnostics = load(SPLIT)
    assert diagnostics == []
    assert schema
    assert dict(schema.ops[0].cases[0].all_shapes) == {"X": (2, 3, 4), "mean": (2, 3), "Y": (2, 3, 4)}


def test_the_order_of_inputs_does_not_matter() -> None:
    x = '      X: {type: T, shape: ["*P", "*S"]}\n'
    mean = '      mean: {type: T, shape: ["*P"]}\n'
    assert ids(edited(SPLIT, (x + mean, mean + x))) == []


def test_an_optional_input_does_not_tell() -> None:
    mean = 'mean: {type: T, shape: ["*P"]'
    assert ids(edited(SPLIT, (mean, f"{mean}, optional: true"))) == ["G316"]


def test_a_length_that_is_one_number_tells() -> None:
    without_mean = edited(SPLIT, ('\n      mean: {type: T, shape: ["*P"]}', ""), (", mean: [2, 3]", ""))
    assert ids(without_mean) == ["G316"]
    assert ids(edited(without_mean, ("S: {length: [0, 8]}", "S: {length: 1}"))) == []


def test_lists_of_one_length_tell_each_other() -> None:
    """X: [*P, *S] where S has the length of P, and mean has P."""
    assert ids(edited(SPLIT, ("S: {length: [0, 8]}", "S: {length: P}"), ("X: [2, 3, 4]", "X: [2, 3, 4, 5]"))) == []


BESIDE = edited(
    SCALE,
    ('[N, "*D"]', '["*A", C, "*B"]'),
    ("      D: {length: [0, 3]}", "      A: {length: axis}\n      B: {length: [0, 7]}"),
    ("factor: {type: float, default: 1.0}", "axis: {type: int, default: -1, axis_of: X}"),
)
RANGE = "G611: case 'plain': 'axis' is {}; it is an axis of 'X', from -2 to 1"


@pytest.mark.parametrize("given", ["X", "Y"])
@pytest.mark.parametrize(("axis", "fits"), [(-3, False), (-2, True), (1, True), (2, False)])
def test_an_axis_is_one_of_the_input(given: str, axis: int, fits: bool) -> None:
    """Whose dims a tensor of the same shape has."""
    schema, diagnostics = load(edited(BESIDE, ("X: [2, 3]", f"{given}: [2, 3], axis: {axis}")))
    told = [f"{diagnostic.id}: {diagnostic.message}" for diagnostic in diagnostics]
    assert [one.startswith(RANGE.format(axis)) for one in told] == ([] if fits else [True])
    assert not schema or dict(schema.ops[0].cases[0].all_shapes) == {"X": (2, 3), "Y": (2, 3)}


def test_a_tensor_of_another_shape_tells_no_rank() -> None:
    another = ('"*B"]}\n', '"*B"]}\n      W: {type: T, shape: [K]}\n')
    assert ids(edited(BESIDE, another, ("X: [2, 3]", "W: [5], Y: [2, 3], axis: 1"))) == []


@pytest.mark.parametrize(("axis", "rows"), [(0, (3, 4)), (1, (2, 4)), (2, (2, 3)), (-1, (2, 3)), (-3, (3, 4))])
def test_the_shapes_of_cases_go_by_the_axis(axis: int, rows: tuple[int, ...]) -> None:
    text = edited(PICK, ("{name: vector, X: [6], ignore_index: -100}", f"{{name: vector, X: [2, 3, 4], axis: {axis}}}"))
    schema, diagnostics = load_source(source_of("ops.yaml", text), headers=HEADERS)
    assert diagnostics == []
    assert schema
    for op in schema.ops[:2]:
        case = next(case for case in op.cases if case.name == "vector")
        assert dict(case.all_shapes)["index"] == rows


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (
            ("type: int, default: -1, axis_of: X,", "type: int, default: 0,"),
            "G325: 'A' has the length of 'axis', which is no axis of an input; it lacks 'axis_of'",
        ),
        (
            ("A: {length: axis,", "A: {length: 1,"),
            "G324: 'A' need not be the dims before 'axis', as kernel sample::Pick takes it; write 'length: axis'",
        ),
        (
            ('index: {type: int64, shape: ["*A", "*B"]', 'index: {type: int64, shape: ["*B", "*A"]'),
            "G323: 'index' is [*B, *A]; kernel sample::Pick takes [*A, *B]",
        ),
        (
            ('X: {type: T, shape: ["*A", C, "*B"]', 'X: {type: T, shape: ["*A", "*B", C]'),
            "G323: 'X' is [*A, *B, C]; kernel sample::Pick takes [*A, C, *B]",
        ),
        (
            ("index: {type: int64", "index: {type: int32"),
            "G705: 'index' is int32 in row 'float'; kernel sample::Pick takes int64 on cpu",
        ),
        (
            ("bias: {type: float, optional: true", "bias: {type: float, default: 0.0"),
            "",
        ),
        (
            ("negate: {type: bool, default: false", "negate: {type: bool, optional: true"),
            "G408: attribute 'negate' must have a default for kernel sample::Pick: its field is a bool, and no "
            "std::optional of it",
        ),
        (
            ("limit: {type: float, default: .inf, min: 0, max: .inf", "limit: {type: float, default: .inf, max: .inf"),
            "G409: attribute 'limit' may be less than 0, which is the least that kernel sample::Pick takes; "
            "write 'min: 0'",
        ),
        (
            ("float: {T: float}", "float: {T: int32}"),
            "G512: row 'float' makes 'dY', a gradient, int32; expected float, double, MLFloat16 or BFloat16",
        ),
    ],
)
def test_what_the_kernel_does_not_take(edit: tuple[str, str], expected: str) -> None:
    found = of_pick(edit)
    assert (expected in found) if expected else not found, found
