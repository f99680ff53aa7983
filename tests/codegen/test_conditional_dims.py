"""Dims that are there only where an attribute has a value: `N if reduction == none`."""

from __future__ import annotations

from pathlib import Path

import pytest
from gradsmith_codegen import formula_data, grammar, spelling
from gradsmith_codegen.cli import main
from gradsmith_codegen.formula_conditions import unconditional
from gradsmith_codegen.formula_schedule import Role
from gradsmith_codegen.formula_steps import steps_of
from gradsmith_codegen.loader import source_of
from gradsmith_codegen.reader import read_document
from gradsmith_codegen.schema_changes import changes
from gradsmith_codegen.shapes import Condition, Dim
from schemas import edited, ids, op_of
from test_conditional_lengths import POOL

NONE = Condition("reduction", "none")
FORMULA = "where(reduction == none, X * X, sum(X * X, D))"
SHAPE = 'shape: ["*D if reduction == none"]'
X = '      X: {type: T, shape: ["*D"]}\n'
ERRORS = edited(
    (Path(__file__).parent / "bad/G340_no_attribute.yaml").read_text(), ("reduce == none", "reduction == none")
)


def dim(text: str) -> Dim:
    found = grammar.dim(text)
    assert found
    return found


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("N if reduction == none", NONE),
        ("*D  if  reduction==none", NONE),
        ("C / group if keepdims", Condition("keepdims")),
        ("ceil(N / 32) if keepdims", Condition("keepdims")),
        ("1 if keepdims", Condition("keepdims")),
    ],
)
def test_what_is_read(text: str, condition: Condition) -> None:
    found = dim(text)
    always = dim(text.partition(" if ")[0].strip())
    assert found.condition == condition
    assert found.without_condition == always
    assert found.text == f"{always.text} if {condition.text}"


@pytest.mark.parametrize(
    "text", ["N if", "if keepdims", "N if a if b", "N if a == b == c", "N if not keepdims", "N + 1 if a"]
)
def test_what_is_not(text: str) -> None:
    assert grammar.dim(text) is None


def test_a_shape_is_spelled_as_it_is_read() -> None:
    shape = op_of(ERRORS).outputs[0].shape
    assert spelling.shape(one.text for one in shape) == SHAPE.removeprefix("shape: ")


@pytest.mark.parametrize(
    ("case", "expected"),
    [("X: [2, 3]", ()), ("X: [2, 3], reduction: mean", ()), ("X: [2, 3], reduction: none", (2, 3))],
)
def test_cases(case: str, expected: tuple[int, ...]) -> None:
    op = op_of(edited(ERRORS, ("X: [2, 3]", case)))
    assert dict(op.cases[0].all_shapes)["Y"] == expected


def test_a_case_that_gives_the_shape_of_another_value() -> None:
    assert ids(edited(ERRORS, ("X: [2, 3]", "X: [2, 3], Y: [2, 3]"))) == ["G604"]


def test_an_output_is_two_of_which_each_has_its_part_of_the_formula() -> None:
    assert [one.name for one in unconditional(op_of(ERRORS)).formulas] == ["Y", "Y_none"]
    (step,) = steps_of(op_of(ERRORS)).passes  # type: ignore[union-attr]
    outputs = step.schedule.outputs
    assert [one.name for one in outputs[Role.ROW]] == ["Y"]
    assert [one.name for one in outputs[Role.ELEMENT]] == ["Y_none"]


@pytest.mark.parametrize(
    ("condition", "both"),
    [
        ("reduction == none", ("X", "sum")),
        ("reduction != none", ("sum", "X")),
        ("not reduction != none", ("X", "sum")),
        ("reduction == none and reduction == none", ("X", "sum")),
        ("reduction == mean or reduction == none", ("X", "sum")),
    ],
)
def test_choices_that_the_condition_decides(condition: str, both: tuple[str, str]) -> None:
    first, second = ("X", "sum(X, D)") if both[0] == "X" else ("sum(X, D)", "X")
    text = edited(ERRORS, (FORMULA, f"where({condition}, {first}, {second})"))
    if condition.startswith("reduction == mean"):  # where it is not decided, the choice is left
        assert ids(text) == ["G810"]
        return
    op = op_of(text)
    (step,) = steps_of(op).passes  # type: ignore[union-attr]
    assert [one.name for one in step.schedule.outputs[Role.ELEMENT]] == ["Y_none"]


GRADIENT = edited(
    ERRORS,
    (FORMULA, "where(reduction == none, dY * X, dY * X * 2)"),
    (X, f"      dY: {{type: T, {SHAPE}}}\n{X}"),
    (SHAPE + "}\n    dims", 'shape: ["*D"]}\n    dims'),
    ("X: [2, 3]", "X: [2, 3], reduction: none"),
)


def test_an_input_has_all_dims_to_formulas_and_tells_none() -> None:
    op = op_of(GRADIENT)
    seen = unconditional(op)
    assert seen.inputs[0].shape.text == "[*D]"
    assert not seen.inputs[0].tells_dims
    steps = steps_of(op)
    assert steps
    assert steps.dims.lead == "inputs[1]"


def test_the_oracle_knows_both() -> None:
    data = formula_data.named(op_of(ERRORS), None, ("D",))
    assert data.condition == NONE
    assert (data.shapes, data.shapes_if) == ([("X", ["D"]), ("Y", [])], [("Y", ["D"])])
    assert [name for name, _ in data.outputs + data.outputs_if] == ["Y", "Y"]
    assert data.outputs != data.outputs_if


def test_a_kernel_takes_no_such_dims() -> None:
    text = edited(POOL, ('Y: {type: T, shape: [N, C, "*O"]}', 'Y: {type: T, shape: [N if ceil_mode, C, "*O"]}'))
    assert ids(text) == ["G323"]


def test_the_gradient_has_the_same_conditions() -> None:
    forward = edited(ERRORS, ("cases:", "cases: &cases"))
    gradient = """\
  - name: ErrorsGrad
    doc: Gradient of Errors.
    gradient_of: Errors
    formulas: {dX: 2 * dY * X}
    backends: [cpu]
    inputs:
      dY: {type: T, shape: [%s], gradient_of: Y}
      X: {type: T, shape: ["*D"]}
    outputs:
      dX: {type: T, like: X, gradient_of: X}
    dims:
      D: {length: [0, 8]}
    attributes:
      reduction: {type: enum, enum: LossReduction, choices: [mean, sum, none], default: sum}
    rows:
      float: {T: float}
    cases: *cases
"""
    assert ids(forward + gradient % '"*D if reduction == none"') == ["G513"]
    assert "G507" in ids(forward + gradient % '"*D if reduction == sum"')
    assert "G507" in ids(forward + gradient % "")


def test_a_gradient_that_new_op_writes_has_the_condition(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = tmp_path / "my_ops.yaml"
    schema.write_text(ERRORS)
    formula = ["--formula", "dX: 2 * dY * X"]
    assert main(["new-op", "ErrorsGrad", "--schema", str(schema), *formula]) == 0
    out = capsys.readouterr().out
    assert SHAPE in out
    assert "reduction: {type: enum" in out


def test_changes() -> None:
    changed = edited(ERRORS, (SHAPE, "shape: []"), (FORMULA, "sum(X * X * where(reduction == sum, 1, 2), D)"))
    old, new = (read_document(source_of("ops.yaml", text))[0] for text in (changed, ERRORS))
    assert old
    assert new
    found = [(one.message, one.effect.value) for one in changes(old, new)]
    assert ("shape of 'Y' is [*D if reduction == none], was []", "breaking") in found
