"""Optional inputs beside what else may be said of tensors: what they tell is told otherwise where they are absent."""

from __future__ import annotations

import pytest
from gradsmith_codegen import render
from gradsmith_codegen.artefacts import artefacts
from gradsmith_codegen.plan import make_plan
from schemas import SCALE, edited, load

X = 'X: {type: T, shape: [N, "*D"]}'
BEFORE = 'before: {type: T, shape: [N, "*D"], optional: true}'
ADDED = ("kernel: scale::Scale", "formulas: {Y: factor * X + before}")
LIKE_X = "Y: {type: T, like: X}"


def told(*edits: tuple[str, str]) -> list[str]:
    return [one.message for one in load(edited(SCALE, *edits))[1]]


@pytest.mark.parametrize(
    ("inputs", "output"),
    [
        (f"{BEFORE}\n      {X}", "Y: {type: T, like: before}"),
        (f"{X}\n      {BEFORE}", "Y: {type: T, like: before, in_place_of: before}"),
        (f"{BEFORE}\n      X: {{type: T, like: before}}", "Y: {type: T, like: before, in_place_of: before}"),
    ],
)
def test_shapes_and_memory_of_an_optional_input(inputs: str, output: str) -> None:
    assert told(ADDED, (X, inputs), (LIKE_X, output)) == []


def test_an_output_may_be_written_to_the_memory_of_an_optional_input() -> None:
    schema, _ = load(edited(SCALE, ADDED, (X, f"{X}\n      {BEFORE}"), ("like: X}", "like: X, in_place_of: before}")))
    assert schema
    files = dict(render.render(artefacts(make_plan(schema, 1))))
    assert "        .in_place_of = 1,\n" in files["src/ops_shard_0.cc"]
    assert "may be written in place of input `before`" in files["docs/Scale.md"]


def test_dims_that_an_optional_input_alone_has_are_known_in_no_call_without_it() -> None:
    alone = (X, f"{X}\n      B: {{type: T, shape: [M], optional: true}}")
    (message,) = told(alone, (LIKE_X, "Y: {type: T, like: B}"))
    assert message == "'M' in the shape of output 'Y' is bound only by 'B', which may be absent"


def test_the_caller_may_give_them() -> None:
    alone = (X, f"{X}\n      B: {{type: T, shape: [M], optional: true}}")
    given = ("D: {length: [0, 3]}", "D: {length: [0, 3]}\n      M: {given_by: outputs}")
    case = ("X: [2, 3]}", "X: [2, 3], B: [4]}")
    assert told(alone, given, case, (LIKE_X, "Y: {type: T, like: B}")) == []
