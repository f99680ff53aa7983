"""Facts of an operator that are data: whether its calls are repeatable, and which inputs are needed for their shape
alone."""

from __future__ import annotations

import pytest
from gradsmith_codegen import render
from gradsmith_codegen.plan import make_plan
from schemas import SCALE, edited, load
from test_axes import of_pick

KERNEL = "    kernel: scale::Scale"


def written(text: str) -> dict[str, str]:
    schema, diagnostics = load(text)
    assert diagnostics == []
    assert schema
    return dict(render.render(render.artefacts(make_plan(schema, 1))))


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
