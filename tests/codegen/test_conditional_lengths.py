"""Lists of dims whose length hangs on a bool attribute (`length_if`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from gradsmith_codegen import formula_data, spelling, words
from gradsmith_codegen.cli import main
from gradsmith_codegen.formula_dims import named_dims
from gradsmith_codegen.formula_schedule import schedule
from gradsmith_codegen.loader import source_of
from gradsmith_codegen.model import LengthIf
from gradsmith_codegen.reader import read_document
from gradsmith_codegen.schema_changes import changes
from schemas import edited, ids, op_of

A = "A: {length: 1, length_if: {coerced: [1, 8]}}"
F = "F: {length: [0, 7], length_if: {coerced: 0}}"
SHARE = (Path(__file__).parent / "bad/G339_no_attribute.yaml").read_text().replace("{coerce: 0}", "{coerced: 0}")
CASE = "{name: plain, X: [2, 3], coerced: true}"


def test_what_is_read() -> None:
    symbols = {symbol.name: symbol for symbol in op_of(SHARE).symbols}
    assert symbols["A"].length_if == LengthIf("coerced", 1, 8)
    assert symbols["F"].length_if == LengthIf("coerced", 0, 0)
    assert (symbols["A"].lengths(condition=False), symbols["A"].lengths(condition=True)) == ((1, 1), (1, 8))
    assert symbols["F"].all_lengths == (0, 7)
    assert symbols["B"].length_if is None


def test_a_symbol_of_the_same_length_has_it_both_ways() -> None:
    text = edited(
        SHARE,
        ('shape: ["*B", "*A", "*F"]}', 'shape: ["*B", "*A", "*F"]}\n      W: {type: T, shape: ["*W"]}'),
        ("X / sum(X, A)", "X / sum(X, A) + sum(W, W)"),
        ("B: {length: axis}", "B: {length: axis}\n      W: {length: A}"),
    )
    document, _ = read_document(source_of("ops.yaml", text))
    assert document
    declared = document.drafts[0].declared
    assert declared["W"].length_of == "A"
    assert declared["W"].length_if == LengthIf("coerced", 1, 8)


@pytest.mark.parametrize(
    ("case", "fits"),
    [
        ("X: [2, 3, 4], axis: 1", True),
        ("X: [2, 3, 4], axis: 0, coerced: true", True),
        ("X: [2, 3, 4], axis: -1, coerced: true", True),
        ("X: [1, 2, 1, 2, 1, 2, 1, 2], axis: 0, coerced: true", True),
        ("X: [1, 2, 1, 2, 1, 2, 1, 2], axis: 0", True),
        ("X: [], coerced: true", False),
    ],
)
def test_cases(case: str, fits: bool) -> None:
    assert (ids(edited(SHARE, (CASE, f"{{name: plain, {case}}}"))) == []) is fits


def test_lists_end_somewhere_either_way() -> None:
    assert ids(edited(SHARE, (A, "A: {length: [1, 8], length_if: {coerced: 1}}"))) == ["G316"]
    # No length hangs on the attribute any more.
    assert ids(edited(SHARE, (A, "A: {length: 1}"), (F, "F: {length: [0, 7]}"))) == ["G818"]


def test_the_kernel_is_told_by_the_attribute() -> None:
    op = op_of(SHARE)
    lengths = dict(named_dims(op, [schedule(op)]).named_lengths)
    assert lengths["B"] == "internal::AxisFromStart(given.axis, inputs[0].rank())"
    assert lengths["A"] == "given.coerced ? internal::NamedDims::kRest : 1"
    assert lengths["F"] == "given.coerced ? 0 : internal::NamedDims::kRest"


def test_so_is_the_oracle() -> None:
    op = op_of(SHARE)
    lengths = formula_data.named(op, None, ("B", "A", "F")).lengths
    assert [(one.symbol, one.attribute, one.length, one.condition, one.where) for one in lengths] == [
        ("B", "axis", 0, "", False),
        ("A", "", 1, "coerced", False),
        ("F", "", 0, "coerced", True),
    ]


def test_in_words_and_spelled() -> None:
    symbols = {symbol.name: symbol for symbol in op_of(SHARE).symbols}
    assert words.symbol_length(symbols["A"]) == "1; 1 to 8 where `coerced`"
    assert words.symbol_length(symbols["F"]) == "0 to 7; 0 where `coerced`"
    assert spelling.symbol(symbols["A"]) == A.removeprefix("A: ")
    assert spelling.symbol(symbols["F"]) == F.removeprefix("F: ")


def test_a_gradient_that_new_op_writes_has_the_attribute(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = tmp_path / "my_ops.yaml"
    schema.write_text(SHARE)
    formula = ["--formula", "dX: dY - sum(dY, A)"]
    assert main(["new-op", "ShareGrad", "--schema", str(schema), *formula]) == 0
    out = capsys.readouterr().out
    assert f"      {A}\n      {F}\n" in out
    assert "      coerced: {type: bool, default: false}\n" in out


# ----------------------------------------------------------------------------------------------------
# What a change of it does to callers


@pytest.mark.parametrize(
    ("edit", "message", "effect"),
    [
        (("[1, 8]}}", "[0, 8]}}"), "'A' where 'coerced' is true is [0, 8], was [1, 8]", "compatible"),
        (("[1, 8]}}", "[2, 8]}}"), "'A' where 'coerced' is true is [2, 8], was [1, 8]", "breaking"),
        ((", length_if: {coerced: 0}", ""), "'F' where 'coerced' is true is [0, 7], was [0, 0]", "compatible"),
        ((A, A.replace("coerced", "flat")), "'A' hangs on 'flat', was on 'coerced'", "breaking"),
    ],
)
def test_changes(edit: tuple[str, str], message: str, effect: str) -> None:
    old, new = (read_document(source_of("ops.yaml", text))[0] for text in (SHARE, edited(SHARE, edit)))
    assert old
    assert new
    found = [(one.message, one.effect.value) for one in changes(old, new)]
    assert found == [(f"length of symbol {message}", effect)]


POOL = """\
schema_version: 1
domain: com.example
since_version: 1
ops:
  - name: Pool
    doc: The mean of each window.
    kernel: pool::AveragePool
    backends: [cpu]
    inputs:
      X: {type: T, shape: [N, C, "*D"]}
    outputs:
      Y: {type: T, shape: [N, C, "*O"]}
    dims:
      D: {length: [1, 2], length_if: {ceil_mode: 3}}
      O: {length: D, rule: "pool::PooledSpatial(D)"}
    attributes:
      ceil_mode: {type: bool, default: false}
      kernel_shape: {type: ints, default: [], min: 1, length: D}
    rows:
      float: {T: float}
    cases:
      - {name: plain, X: [2, 3, 4], kernel_shape: [2]}
"""


def test_a_kernel_takes_each_length_that_there_may_be() -> None:
    assert ids(POOL) == []
    assert ids(edited(POOL, ("{ceil_mode: 3}", "{ceil_mode: 4}"))) == ["G324"]


def test_a_default_fits_each_length_that_there_may_be() -> None:
    default = ("kernel_shape: {type: ints, default: []", "kernel_shape: {type: ints, default: [2]")
    assert ids(edited(POOL, ("D: {length: [1, 2]", "D: {length: 1"), default)) == ["G407"]
    assert ids(edited(POOL, ("D: {length: [1, 2], length_if: {ceil_mode: 3}}", "D: {length: 1}"), default)) == []
