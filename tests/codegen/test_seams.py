"""Seams: what the page, `explain` and the generated tests make of them. What they say is looked at by
test_derivatives.py, and by the generated tests."""

from __future__ import annotations

from gradsmith_codegen import render
from gradsmith_codegen.artefacts import artefacts
from gradsmith_codegen.explain_verb import words_of
from gradsmith_codegen.explanation import explanation
from gradsmith_codegen.loader import source_of
from gradsmith_codegen.plan import make_plan
from gradsmith_codegen.reader import read_document
from gradsmith_codegen.schema_changes import changes
from schemas import edited, load

CLAMP = """\
schema_version: 1
domain: com.example
since_version: 1
ops:
  - name: Clamp
    doc: X between low and 1.
    formulas: {Y: "max(low, min(X, 1))"}
    seams:
      - {at: {X: low}, gives: {Y: low}}
      - {at: {X: -inf}, gives: {Y: low / 1}}
      - {at: {X: nan}, gives: {Y: nan}}
    backends: [cpu]
    inputs:
      X: {type: T, shape: ["*D"]}
    outputs:
      Y: {type: T, like: X}
    dims:
      D: {length: [0, 3]}
    attributes:
      low: {type: float, default: -1.0}
    rows:
      double: {T: double}
    cases:
      - {name: plain, X: [2, 3]}
"""


def test_page_and_tests_have_them() -> None:
    schema, diagnostics = load(CLAMP)
    assert diagnostics == []
    assert schema
    files = dict(render.render(artefacts(make_plan(schema, 1))))
    assert "| `X = -inf` | `Y = low / 1` |" in files["docs/Clamp.md"]
    tests = files["tests/generated_tests_0.cc"]
    assert tests.count(".text = ") == 3
    assert '.text = "X = -inf"' in tests
    assert ".seams = kSeams" in tests
    without, _ = load(edited(CLAMP, ("    seams:\n", ""), *[(f"      - {one}\n", "") for one in lines()]))
    assert without
    files = dict(render.render(artefacts(make_plan(without, 1))))
    assert "kSeam" not in files["tests/generated_tests_0.cc"]
    assert "seams" not in files["docs/Clamp.md"]


def lines() -> list[str]:
    return [line.removeprefix("      - ") for line in CLAMP.splitlines() if "gives" in line]


def test_explained() -> None:
    schema, _ = load(CLAMP)
    assert schema
    plan = make_plan(schema, 1)
    found = explanation(plan.ops[0], plan)
    assert found.data()["seams"][1] == {"at": {"X": "-inf"}, "gives": {"Y": "low / 1"}}
    assert "  where X = -inf: Y = low / 1" in list(words_of(found))


def test_others_are_a_compatible_change() -> None:
    documents = [read_document(source_of("ops.yaml", text))[0] for text in (CLAMP, CLAMP.replace("low / 1", "low"))]
    old, new = documents
    assert old
    assert new
    assert [(one.effect.value, one.message) for one in changes(old, new)] == [("compatible", "seams changed")]
