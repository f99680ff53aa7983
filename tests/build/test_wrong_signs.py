"""Formulas of each gradient with a wrong sign: the generated tests of every one of them fail.

All of them are one library, built once: of doubles, for the CPU, with two cases each. A gradient is there once, and
which of its formulas and of their signs is wrong differs; with GRADSMITH_ALL_WRONG_SIGNS it is there for each of its
formulas, which takes minutes. test_derivatives.py and its like in tests/codegen plant every one there is, and build
nothing.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from build_tree import REPOSITORY, build, run_generator
from formula_language import OPS, is_condition, with_wrong_signs

BUILD = Path(os.environ.get("GRADSMITH_BUILD_DIR", REPOSITORY / "build/default"))
PROGRAM = BUILD / "tests/gradsmith_wrong_sign_tests"
# They compare with something else than these formulas.
CHECKS = "*.Gradient/*:*.Definition/*"

OF_FORMULAS = {name: op for name, op in OPS.items() if "formulas" in op}
# The last two belong to gradients, and are the gradient of no operator that has formulas.
GRADIENTS = [name for name, op in OF_FORMULAS.items() if op.get("gradient_of") in OF_FORMULAS]
GRADIENTS += ["InPlaceAccumulatorV2", "SoftmaxCrossEntropyLossInternalGrad"]

RIGHT = {**OPS["SigmoidGrad"], "name": "RightSigmoidGrad"}  # whose tests pass beside them


def with_wrong_formulas(op: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """The entry with a sign of one formula wrong, for each of its formulas that have signs; another by another number.
    The first keeps its name."""
    texts = {name: str(text) for name, text in op["formulas"].items() if not is_condition(str(text))}
    found = []
    for place, (name, text) in enumerate(texts.items()):
        others = with_wrong_signs(text)
        wrong = others[(number + place) % len(others)]
        ast.parse(wrong.strip(), mode="eval")
        copy = op["name"] + (str(place + 1) if place else "")
        found.append({**op, "name": copy, "formulas": {**op["formulas"], name: wrong}})
    return found


WRONG = {
    one["name"]: one
    for number, (name, op) in enumerate(OPS.items())
    if name in GRADIENTS
    for one in with_wrong_formulas(op, number)
}


def one_of_each() -> list[str]:
    """A name for each gradient: that of its first wrong formula, its second, and so on."""
    of_each: dict[str, list[str]] = {}
    for name in WRONG:
        of_each.setdefault(name.rstrip("0123456789") if name not in GRADIENTS else name, []).append(name)
    return [names[number % len(names)] for number, names in enumerate(of_each.values())]


BUILT = list(WRONG) if os.environ.get("GRADSMITH_ALL_WRONG_SIGNS") else one_of_each()


def of_doubles(op: dict[str, Any]) -> dict[str, Any]:
    """The entry with its first row that has no other floating types, and its first cases, for the CPU."""
    shorter = {"float", "MLFloat16", "BFloat16"}
    rows = [(name, types) for name, types in op["rows"].items() if not shorter & set(types.values())]
    return {**op, "rows": dict(rows[:1]), "cases": op["cases"][:2], "backends": ["cpu"]}


def schema() -> str:
    right = [op for name, op in OPS.items() if name not in GRADIENTS and "formulas" in op]
    head = {"schema_version": 1, "domain": "com.example", "since_version": 1}
    entries = [of_doubles(op) for op in (*right, *(WRONG[name] for name in BUILT), RIGHT)]
    return yaml.safe_dump({**head, "ops": entries}, sort_keys=False)


@pytest.fixture(scope="module")
def failed() -> set[str]:
    """The operators of which a test fails, among those of all of them."""
    folder = BUILD / "tests/wrong_signs"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ops.yaml").write_text(schema())
    only = [part for name in (*BUILT, RIGHT["name"]) for part in ("--only", name)]
    what = ["--library", "wrong_signs", "--shards", "1", "--without", "docs", "--without", "python"]
    run_generator("generate", "--schema", str(folder / "ops.yaml"), "--out", str(folder), *what, *only)
    build(BUILD, PROGRAM.name)
    command = [str(PROGRAM), "--gtest_brief=1", f"--gtest_filter={CHECKS}"]
    told = subprocess.run(command, check=False, text=True, capture_output=True).stdout
    assert f"from {len(BUILT) + 1} test suites ran" in told, told
    return set(re.findall(r"\[  FAILED  \] (\w+)\.", told))


def test_every_formula_has_a_wrong_sign() -> None:
    assert len(GRADIENTS) >= 65
    assert len(WRONG) >= 145
    for name in GRADIENTS:
        texts = OPS[name]["formulas"]
        changed = [
            key for one in with_wrong_formulas(OPS[name], 0) for key in texts if one["formulas"][key] != texts[key]
        ]
        assert changed == [key for key in texts if not is_condition(str(texts[key]))]


def test_there_is_one_of_each_gradient() -> None:
    assert len({name if name in GRADIENTS else name.rstrip("0123456789") for name in BUILT}) == len(GRADIENTS)


@pytest.mark.parametrize("name", WRONG)
def test_the_generated_tests_notice_it(name: str, request: pytest.FixtureRequest) -> None:
    if name not in BUILT:
        pytest.skip("another formula of the gradient is built with a wrong sign: set GRADSMITH_ALL_WRONG_SIGNS for all")
    failed: set[str] = request.getfixturevalue("failed")
    assert name in failed


def test_they_pass_where_no_sign_is_wrong(failed: set[str]) -> None:
    assert RIGHT["name"] not in failed
