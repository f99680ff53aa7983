"""What differs between two schemas, and whether it breaks callers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gradsmith_codegen.changes import Change, Effect
from gradsmith_codegen.cli import main
from gradsmith_codegen.loader import source_of
from gradsmith_codegen.reader import read_document
from gradsmith_codegen.schema_changes import changes
from schemas import CONVOLVE, SCALE, edited

B = "B: {type: T, shape: [M], optional: true}"
Z = "Z: {type: T, like: Y, optional: true}"
W = 'W: {type: T, shape: [M, C / group, "*K"]}'
Y = 'Y: {type: T, shape: [N, M, "*O"], in_place_of: X}'
AXIS = "axis: {type: int, default: -1, axis_of: X}"
GROUP = "group: {type: int, default: 1, min: 1}"
LIMIT = "limit: {type: float, default: 1.0, min: 0, max: 6}"
BIAS = "bias: {type: float, optional: true}"
ENUM = "choices: [NOTSET, SAME_UPPER, SAME_LOWER, VALID]"

# RICH has what CONVOLVE lacks. No kernel has such arguments: what is compared need not be of a kernel that is there.
RICH = edited(
    CONVOLVE,
    ("backends: [cpu]", "backends: [cpu, cuda]\n    repeatable: policy"),
    (W, f"{W}\n      {B}"),
    ('Y: {type: T, shape: [N, M, "*O"]}', f"{Y}\n      {Z}"),
    (GROUP, f"{GROUP}\n      {AXIS}\n      {LIMIT}\n      {BIAS}"),
    ("float: {T: float}", "float: {T: float}\n      half: {T: half}"),
)

COMPATIBLE = [
    ((B, f"{B}\n      S: {{type: T, shape: [M], optional: true}}"), "optional input 'S' was added at the end"),
    ((Z, f"{Z}\n      S: {{type: T, shape: [M], optional: true}}"), "optional output 'S' was added at the end"),
    ((W, W.replace("}", ", optional: true}")), "input 'W' is optional"),
    ((W, W.replace("}", ", shape_only: true}")), "input 'W' is shape_only"),
    ((B, B.replace("}", ", may_be_on_host: true}")), "input 'B' is may_be_on_host"),
    ((Z, Z.replace("}", ", in_place_of: W}")), "in_place_of of output 'Z' is W, was not there"),
    ((Z, Z.replace("}", ", gradient_of: W}")), "gradient_of of output 'Z' is W, was not there"),
    ((Z, Z.replace("}", ", gradient_of: [X, W]}")), "gradient_of of output 'Z' is X, W, was not there"),
    ((B, B.replace("}", ", doc: the bias}")), "doc of input 'B' changed"),
    ((AXIS, f"{AXIS}\n      size: {{type: int, default: 1}}"), "attribute 'size' was added"),
    ((AXIS, AXIS.replace(", axis_of: X", "")), "axis_of of attribute 'axis' is gone, was X"),
    ((AXIS, AXIS.replace("}", ", doc: an axis}")), "doc of attribute 'axis' changed"),
    (("min: 0, max: 6", "min: -1, max: 7"), "range of attribute 'limit' is [-1, 7], was [0, 6]"),
    (("min: 0, max: 6", "min: 0"), "range of attribute 'limit' is [0, any], was [0, 6]"),
    (("min: 0, max: 6", "min: 0, max: .inf"), "range of attribute 'limit' is [0, inf], was [0, 6]"),
    ((ENUM, ENUM.replace("]", ", FULL]")), "choice 'FULL' of attribute 'auto_pad' was added"),
    (("min: 1, length: D}", "min: 1}"), "length of attribute 'strides' is gone, was 1 * D"),
    (("length: [1, 3]", "length: [0, 4]"), "length of symbol 'D' is [0, 4], was [1, 3]"),
    (("M: {multiple_of: group}", "M: {doc: channels}"), "multiple_of of symbol 'M' is gone, was group"),
    (("multiple_of: group}", "multiple_of: group, split: [G, L]}"), "split of symbol 'M' changed"),
    (("half: {T: half}", "half: {T: half}\n      bf16: {T: bf16}"), "row 'bf16' (T = BFloat16) was added"),
    (("repeatable: policy", "repeatable: always"), "repeatable on cpu and cuda is 'always', was 'policy'"),
    (("repeatable: policy", "repeatable: {cuda: always}"), "repeatable on cuda is 'always', was 'policy'"),
    (("{name: plain", "{name: other, X: [1, 4, 5, 6]}\n      - {name: plain"), "case 'other' was added"),
    (("X: [2, 4, 5, 6]", "X: [3, 4, 5, 6]"), "case 'plain' changed"),
    (("name: plain", "name: smooth"), "case 'plain' is gone"),
    (("doc: Convolution of X with W.", "doc: Another sentence."), "doc changed"),
    (("kernel: conv::Conv", "kernel: conv::Faster"), "is computed by conv::Faster, was by conv::Conv"),
    (("cases:", "operations: 2 * N\n    cases:"), "operations changed"),
    (("    kernel:", "    special_values:\n      - {what: NaN, test: one}\n    kernel:"), "special_values changed"),
    (("    kernel:", "    history:\n      - {version: 1, change: it came}\n    kernel:"), "history changed"),
]

BREAKING = [
    ((f"      {B}\n", ""), "input 'B' is gone"),
    ((B, f"C: {B[3:]}"), "input 'B' is called 'C' now"),
    ((B, f"S: {{type: T, shape: [M], optional: true}}\n      {B}"), "optional input 'S' was added before others"),
    ((B, f"{B}\n      S: {{type: T, shape: [M]}}"), "input 'S' was added at the end"),
    ((Z, f"{Z}\n      S: {{type: T, shape: [M]}}"), "output 'S' was added at the end"),
    ((f"{W}\n      {B}", f"{B}\n      {W}"), "the order of inputs is X, B, W, was X, W, B"),
    ((B, B.replace("type: T", "type: float")), "type of input 'B' is float, was T"),
    ((B, B.replace("type: T", "type: T, list: n")), "input 'B' is a list of tensors, was one tensor"),
    ((B, B.replace("[M]", "[M, N]")), "shape of 'B' is [M, N], was [M]"),
    ((B, B.replace("[M]", "[N]")), "shape of 'B' is [N], was [M]"),
    ((W, W.replace("C / group", "C")), 'shape of \'W\' is [M, C, *K], was [M, C / group, *K]'),
    ((B, B.replace(", optional: true", "")), "input 'B' is no longer optional"),
    ((Z, Z.replace(", optional: true", "")), "output 'Z' is no longer optional"),
    ((W, W.replace("}", ", outside: refused}")), "outside of input 'W' is refused, was ignored"),
    ((Y, Y.replace(", in_place_of: X", "")), "in_place_of of output 'Y' is gone, was X"),
    ((f"      {AXIS}\n", ""), "attribute 'axis' is gone"),
    ((AXIS, f"dim: {AXIS[6:]}"), "attribute 'axis' is called 'dim' now"),
    ((f"{GROUP}\n      {AXIS}", f"{AXIS}\n      {GROUP}"), "the order of attributes is strides, pads, axis, group"),
    ((AXIS, AXIS.replace("-1", "1")), "default of attribute 'axis' is 1, was -1"),
    ((LIMIT, LIMIT.replace("default: 1.0", "optional: true")), "default of attribute 'limit' is not there, was 1.0"),
    ((AXIS, "axis: {type: float, default: -1.0}"), "type of attribute 'axis' is float, was int"),
    (("strides: {type: ints, default: []", "strides: {type: ints, default: [1]"),
     "default of attribute 'strides' is [1], was []"),
    (("min: 0, max: 6", "min: 1, max: 6"), "range of attribute 'limit' is [1, 6], was [0, 6]"),
    (("min: 0, max: 6", "min: -1, max: 5"), "range of attribute 'limit' is [-1, 5], was [0, 6]"),
    ((ENUM, ENUM.replace(", VALID", "")), "choice 'VALID' of attribute 'auto_pad' is gone"),
    (("length: 2 * D", "length: D"), "length of attribute 'pads' is 1 * D, was 2 * D"),
    (("length: [1, 3]", "length: [1, 2]"), "length of symbol 'D' is [1, 2], was [1, 3]"),
    (("K: {length: D}", "K: {length: D, broadcast_to: D}"), "broadcast_to of symbol 'K' is D, was not there"),
    (("::OutputSpatial", "::TransposedOutputSpatial"), "rule of symbol 'O' is conv::Transposed"),
    (("      half: {T: half}\n", ""), "row 'half' (T = MLFloat16) is gone"),
    (("half: {T: half}", "fp16: {T: half}"), "row 'half' is called 'fp16' now"),
    (("[cpu, cuda]", "[cpu]"), "backend 'cuda' is gone"),
    (("repeatable: policy", "repeatable: {cuda: never}"), "repeatable on cuda is 'never', was 'policy'"),
    (("name: Convolve", "name: Convolution"), "operator is called 'Convolution' now"),
    (("domain: com.example", "domain: org.example"), "domain is 'org.example', was 'com.example'"),
    (("since_version: 1", "since_version: 2"), "since_version is 2, was 1"),
    (("repeatable: policy", "repeatable: policy\n    since_version: 2"), "since_version is 2, was the file's"),
]  # fmt: skip


def _changes(old: str, new: str) -> list[Change]:
    documents = [read_document(source_of("ops.yaml", text))[0] for text in (old, new)]
    assert documents[0]
    assert documents[1]
    return changes(documents[0], documents[1])


@pytest.mark.parametrize(("edit", "message"), COMPATIBLE, ids=[message for _, message in COMPATIBLE])
def test_what_callers_do_not_notice(edit: tuple[str, str], message: str) -> None:
    found = _changes(RICH, edited(RICH, edit))
    assert any(change.message.startswith(message) for change in found)
    assert {change.effect for change in found} == {Effect.COMPATIBLE}


@pytest.mark.parametrize(("edit", "message"), BREAKING, ids=[message for _, message in BREAKING])
def test_what_breaks_callers(edit: tuple[str, str], message: str) -> None:
    found = _changes(RICH, edited(RICH, edit))
    assert any(change.message.startswith(message) for change in found if change.effect is Effect.BREAKING)


def test_what_is_called_otherwise_is_not_new() -> None:
    for edit, message in BREAKING:
        if " is called " in message:
            assert [change.message for change in _changes(RICH, edited(RICH, edit))] == [message]


@pytest.mark.parametrize(("edit", "message"), [*COMPATIBLE, *BREAKING], ids=[m for _, m in [*COMPATIBLE, *BREAKING]])
def test_each_way_something_is_told(edit: tuple[str, str], message: str) -> None:
    """What is compatible in one direction need not be in the other, but it is a change there too."""
    assert _changes(edited(RICH, edit), RICH)


# What neither RICH nor RICH with an edit shows: a place, and what the old and the new schema have there.
TWO_LISTS = edited(RICH, ("K: {length: D}", "K: {length: D}\n      L: {}"), (B, B.replace("[M]", '["*L"]')))
L, OF_OP = "L: {}", "repeatable: policy"
PAIRS = [
    (L, "L: {length: axis}", "L: {length: group}", "breaking: length_axis of symbol 'L' is group, was axis"),
    (L, "L: {length: axis}", "L: {length: [0, 8]}", "breaking: length_axis of symbol 'L' is gone, was axis"),
    (L, "L: {length: 2}", "L: {length: D}", "breaking: length_of of symbol 'L' is D, was not there"),
    (L, "L: {length: D}", "L: {length: [0, 4]}", "compatible: length_of of symbol 'L' is gone, was D"),
    (L, "L: {length: D}", "L: {length: 2}", "breaking: length of symbol 'L' is [2, 2], was [1, 3]"),
    (L, "L: {length: 2, given_by: pads}", "L: {length: 2, given_by: strides}",
     "breaking: given_by of symbol 'L' is strides, was pads"),
    (L, "L: {length: 2}", "L: {length: 2, given_by: pads}", "breaking: given_by of symbol 'L' is pads, was not there"),
    ('B: {type: T, shape: ["*L"]', 'B: {type: T, shape: ["*L"]', "B: {type: T, shape_of: Y",
     "breaking: shape_of of input 'B' is Y, was not there"),
    ("enum: AutoPad", "enum: AutoPad", "enum: LossReduction",
     "breaking: type of attribute 'auto_pad' is LossReduction, was AutoPad"),
    (OF_OP, "since_version: 2", "since_version: 3", "breaking: since_version is 3, was 2"),
    (OF_OP, "gradient_of: One", "gradient_of: Other", "breaking: gradient_of is 'Other', was 'One'"),
    (OF_OP, "gradient_of: One", OF_OP, "breaking: gradient_of is '', was 'One'"),
    (OF_OP, OF_OP, "gradient_of: One", "compatible: gradient_of is 'One', was ''"),
]  # fmt: skip


@pytest.mark.parametrize(("place", "was", "now", "told"), PAIRS, ids=[told for *_, told in PAIRS])
def test_what_each_schema_has_in_a_place(place: str, was: str, now: str, told: str) -> None:
    found = _changes(edited(TWO_LISTS, (place, was)), edited(TWO_LISTS, (place, now)))
    assert told in [f"{change.effect.value}: {change.message}" for change in found]


def test_nothing_changed() -> None:
    assert _changes(RICH, RICH) == []
    assert _changes(RICH, "# A comment.\n" + RICH.replace("[cpu, cuda]", "[ cpu, cuda ]")) == []


def test_a_symbol_may_be_called_otherwise() -> None:
    renamed = RICH.replace("*D", "*S").replace("D: {length: [", "S: {length: [").replace("length: D", "length: S")
    renamed = renamed.replace("* D", "* S").replace("(D, K)", "(S, K)")
    (change,) = _changes(RICH, renamed)
    assert (change.effect, change.message) == (Effect.COMPATIBLE, "symbol 'D' is called 'S' now")


def test_what_broadcasts_to_a_symbol_may_call_it_otherwise() -> None:
    old = edited(SCALE, ("    outputs:", '      A: {type: T, shape: ["*S"]}\n    outputs:'))
    old = edited(old, ("D: {length: [0, 3]}", "D: {length: [0, 3]}\n      S: {length: [0, 3], broadcast_to: D}"))
    new = edited(old, ("*D", "*E"), ("D: {", "E: {"), ("broadcast_to: D", "broadcast_to: E"))
    (change,) = _changes(old, new)
    assert (change.effect, change.message) == (Effect.COMPATIBLE, "symbol 'D' is called 'E' now")


def test_two_symbols_that_are_one_now_are_another_shape() -> None:
    found = _changes(SCALE, edited(SCALE, ("like: X", 'shape: [N, "*D"]')))
    assert found == []
    two = edited(SCALE, ("Y: {type: T, like: X}", "Y: {type: T, like: X}\n      Z: {type: T, shape: [M]}"))
    (change,) = _changes(two, edited(two, ("[M]", "[N]")))
    assert (change.effect, change.message) == (Effect.BREAKING, "shape of 'Z' is [N], was [M]")


def test_a_kernel_in_place_of_formulas_is_compatible() -> None:
    formulas = edited(SCALE, ("kernel: scale::Scale", "formulas: {Y: X * factor}"))
    repeats, change = _changes(SCALE, formulas)
    assert (repeats.effect, repeats.message) == (Effect.COMPATIBLE, "repeatable on cpu is 'always', was 'policy'")
    assert (change.effect, change.message) == (Effect.COMPATIBLE, "is computed by formulas::Scale, was by scale::Scale")


MORE = "more: {type: T, like: X, optional: true}"
PRODUCT = edited(SCALE, ("kernel: scale::Scale", 'formulas: {z: factor * X, Y: z * z + 1, Z: "sum(X, N)"}'))
WRITTEN_OTHERWISE = [
    ([("z * z + 1", "(z * z) + 1.0")], "formulas are written otherwise, and give the same: Y"),
    ([("{z: factor * X, Y: z * z", "{w: X, q: factor * w, Y: q * q")],
     "formulas are written otherwise, and give the same: w, q, Y, z"),
    ([('{z: factor * X, Y: z * z + 1, Z: "sum(X, N)"}', '{Z: "sum(X, N)", z: factor * X, Y: z * z + 1}')],
     "formulas are written otherwise, and give the same"),
    ([("factor * X", "X * factor")], "formulas are written otherwise, and give the same: z"),
    ([("z * z + 1", "1 + z * z")], "formulas are written otherwise, and give the same: Y"),
]  # fmt: skip
COMPUTED_OTHERWISE = [
    (("z * z + 1", "z * z + 2"), ["output 'Y' is computed otherwise: z * z + 2, was z * z + 1"]),
    (("factor * X", "factor + X"), ["output 'Y' is computed otherwise, by the formulas that it reads"]),
    (("sum(X, N)", "max(X, N)"), ["output 'Z' is computed otherwise: max(X, N), was sum(X, N)"]),
    (("sum(X, N)", "sum(X, D)"), ["output 'Z' is computed otherwise: sum(X, D), was sum(X, N)"]),
    (('z * z + 1, Z: "sum(X, N)"', 'z, Z: "count(N)"'),
     ["output 'Y' is computed otherwise: z, was z * z + 1",
      "output 'Z' is computed otherwise: count(N), was sum(X, N)"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("edits", "message"), WRITTEN_OTHERWISE, ids=["brackets", "names", "order", "factors", "summands"]
)
def test_formulas_that_are_written_otherwise(edits: list[tuple[str, str]], message: str) -> None:
    old = edited(PRODUCT, ("Y: {type: T, like: X}", 'Y: {type: T, like: X}\n      Z: {type: T, shape: ["*D"]}'))
    (change,) = _changes(old, edited(old, *edits))
    assert (change.effect, change.message) == (Effect.COMPATIBLE, message)


@pytest.mark.parametrize(("edit", "messages"), COMPUTED_OTHERWISE)
def test_formulas_that_give_something_else(edit: tuple[str, str], messages: list[str]) -> None:
    old = edited(PRODUCT, ("Y: {type: T, like: X}", 'Y: {type: T, like: X}\n      Z: {type: T, shape: ["*D"]}'))
    found = _changes(old, edited(old, edit))
    assert [(change.effect, change.message) for change in found] == [(Effect.BREAKING, one) for one in messages]


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("X * factor", "X * factor + more", True),
        ("X * factor", "more + X * factor", True),
        ("X * factor", "X * factor - more", True),
        ("-X", "more - X", True),
        ("exp(X)", "exp(X + 2 * -more)", True),
        ("X", "X + sum(more, N)", True),
        ("X", "X + mul0(more, X)", True),
        ("X", "where(given(more) and X > 0, X * more, X)", True),
        ("X", "where(not given(more) or X > 0, X, more)", True),
        ("X * factor", "X * factor * more", False),
        ("X", "X + X * more", False),  # which is NaN where X is infinite
        ("X", "X + mul0(X, more)", False),
        ("X", "X + exp(more)", False),
        ("X", "X + div0(X, more)", False),
        ("X", "where(given(more), X, 1)", False),
        ("X", "where(not (not given(more)), 1, X)", True),
        ("X", "where(more > 0, X + 1, X)", False),
        ("X + 1", "X + factor + more", False),
    ],
)
def test_a_new_optional_input_is_absent_in_calls_there_were(one: str, other: str, is_same: bool) -> None:
    old, new = (edited(SCALE, ("kernel: scale::Scale", f'formulas: {{Y: "{text}"}}')) for text in (one, other))
    new = edited(new, ("    outputs:", f"      {MORE}\n    outputs:"))
    messages = {change.message: change.effect for change in _changes(old, new)}
    assert messages.pop("optional input 'more' was added at the end") is Effect.COMPATIBLE
    same = "formulas are written otherwise, and give the same without 'more': Y"
    now = (
        (same, Effect.COMPATIBLE)
        if is_same
        else (f"output 'Y' is computed otherwise: {other}, was {one}", Effect.BREAKING)
    )
    assert list(messages.items()) == [now]


def test_a_new_input_that_calls_need_is_not_absent() -> None:
    old = edited(SCALE, ("kernel: scale::Scale", "formulas: {Y: X}"))
    needed = MORE.replace(", optional: true", "")
    new = edited(old, ("Y: X}", "Y: X + more}"), ("    outputs:", f"      {needed}\n    outputs:"))
    messages = [change.message for change in _changes(old, new) if change.effect is Effect.BREAKING]
    assert messages == ["input 'more' was added at the end", "output 'Y' is computed otherwise: X + more, was X"]


def test_an_input_that_calls_give_is_not_absent() -> None:
    two = edited(SCALE, ("kernel: scale::Scale", "formulas: {Y: X}"), ("    outputs:", f"      {MORE}\n    outputs:"))
    (change,) = _changes(two, edited(two, ("Y: X}", "Y: X + more}")))
    assert (change.effect, change.message) == (Effect.BREAKING, "output 'Y' is computed otherwise: X + more, was X")


def test_a_part_of_a_new_optional_input_may_be_called_anything() -> None:
    """As SkipLayerNormalizationGrad had it before it took dTotal."""
    old = edited(SCALE, ("kernel: scale::Scale", 'formulas: {g: X * factor, Y: "g - mean(g, N)"}'))
    renamed = ('{g: X * factor, Y: "g - mean(g, N)"}', '{h: factor * X, back: "h - mean(h, N) + more", Y: back}')
    new = edited(old, renamed, ("    outputs:", f"      {MORE}\n    outputs:"))
    assert {change.effect for change in _changes(old, new)} == {Effect.COMPATIBLE}
    breaking = edited(new, ("+ more", "* more"))
    messages = [change.message for change in _changes(old, breaking) if change.effect is Effect.BREAKING]
    assert messages == ["output 'Y' is computed otherwise: back, was g - mean(g, N)"]


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("X * 2", "2 * X", True),
        ("X + factor", "factor + X", True),
        ("(X + factor) + exp(X)", "exp(X) + (factor + X)", True),
        ("(X + 1) * exp(X)", "exp(X) * (1 + X)", True),
        ("(X + factor) + (X - 1)", "(X - 1) + (X + factor)", True),
        ("X - factor", "factor - X", False),
        ("X / factor", "factor / X", False),
        ("mul0(X, factor)", "mul0(factor, X)", False),
        ("(X + factor) + 1", "X + (factor + 1)", False),
        ("(X * factor) * 3", "X * (factor * 3)", False),
        ("sum(X, N, D)", "sum(X, D, N)", True),
        # Either product may be fused with the sum, and is not rounded then.
        ("X * factor + X * X", "X * X + X * factor", False),
        ("X * factor + exp(X)", "exp(X) + X * factor", False),
        ("X * factor + -(X * X)", "-(X * X) + X * factor", False),
        ("(X * X - 1) + X * factor", "X * factor + (X * X - 1)", False),
        ("sum(X, N) + X * X", "X * X + sum(X, N)", False),
    ],
)
def test_factors_and_summands_have_no_order(one: str, other: str, is_same: bool) -> None:
    old, new = (edited(SCALE, ("kernel: scale::Scale", f'formulas: {{Y: "{text}"}}')) for text in (one, other))
    (change,) = _changes(old, new)
    assert change.effect is (Effect.COMPATIBLE if is_same else Effect.BREAKING)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("X[i]", "X[j]"),
        ("X[i]", "Z[i]"),
        ("where(reduction == none, X, 1)", "where(reduction == sum, X, 1)"),
        ("where(reduction == none, X, 1)", "where(other == none, X, 1)"),
        ("where(bit(mask, D), X, 1)", "where(bit(flags, D), X, 1)"),
        ("where(bit(mask, D), X, 1)", "where(bit(mask, N), X, 1)"),
        ("X * index(D)", "X * index(N)"),
        ("where(given(bias), X, 1)", "where(given(mask), X, 1)"),
    ],
)
def test_what_formulas_name_counts(one: str, other: str) -> None:
    enum = "{type: enum, enum: LossReduction, choices: [mean, sum, none], default: sum}"
    enums = edited(SCALE, ("attributes:\n", f"attributes:\n      reduction: {enum}\n      other: {enum}\n"))
    old, new = (edited(enums, ("kernel: scale::Scale", f'formulas: {{Y: "{text}"}}')) for text in (one, other))
    (change,) = _changes(old, new)
    assert (change.effect, change.message) == (
        Effect.BREAKING,
        f"output 'Y' is computed otherwise: {other}, was {one}",
    )


def test_parts_of_a_dim_may_be_called_otherwise() -> None:
    old = edited(
        SCALE,
        ("kernel: scale::Scale", 'formulas: {Y: "X - mean(X, K) * factor"}'),
        ("D: {length: [0, 3]}", "D: {length: [0, 3]}\n      N: {multiple_of: groups, split: [G, K]}"),
        ("factor: {", "groups: {type: int, default: 1, min: 1}\n      factor: {"),
    )
    split, same = _changes(old, edited(old, ("mean(X, K)", "mean(X, B)"), ("[G, K]", "[A, B]")))
    assert (split.effect, split.message) == (Effect.COMPATIBLE, "split of symbol 'N' changed")
    told = "formulas are written otherwise, and give the same: Y"
    assert (same.effect, same.message) == (Effect.COMPATIBLE, told)
    found = _changes(old, edited(old, ("mean(X, K)", "mean(X, A)"), ("[G, K]", "[A, B]")))
    assert Effect.BREAKING in {change.effect for change in found}


def test_summands_that_have_names_are_products_too() -> None:
    old = edited(SCALE, ("kernel: scale::Scale", "formulas: {a: X * X, b: X * factor, Y: a + b}"))
    (change,) = _changes(old, edited(old, ("Y: a + b", "Y: b + a")))
    assert change.effect is Effect.BREAKING


def test_formulas_of_what_has_another_name_give_the_same() -> None:
    old = edited(SCALE, ("kernel: scale::Scale", 'formulas: {Y: "X * factor", Z: "sum(X, N)"}'))
    old = edited(old, ("Y: {type: T, like: X}", 'Y: {type: T, like: X}\n      Z: {type: T, shape: ["*D"]}'))
    for new, message in (
        (old.replace("X", "A"), "input 'X' is called 'A' now"),
        (old.replace("[N", "[M").replace(", N)", ", M)"), "symbol 'N' is called 'M' now"),
        (old.replace("factor", "scale"), "attribute 'factor' is called 'scale' now"),
    ):
        messages = [change.message for change in _changes(old, new)]
        assert message in messages
        assert "formulas are written otherwise, and give the same: " in "\n".join(messages)


def test_all_formulas_of_the_schema_are_told_apart(ops_yaml: Path) -> None:
    """None is taken for changed that is not, whatever it has in it."""
    text = ops_yaml.read_text(encoding="utf-8")
    found = _changes(text, text.replace(" + ", "+"))
    assert sum("formulas are written otherwise, and give the same" in change.message for change in found) > 20
    assert {change.effect for change in found} == {Effect.COMPATIBLE}


def test_operators_that_come_and_go() -> None:
    both = SCALE + edited(SCALE[SCALE.index("  - name") :], ("Scale", "Other"), ("doc: Y", "doc: Other Y"), ("N, ", ""))
    (change,) = _changes(SCALE, both)
    assert (change.effect, change.op, change.message, change.is_of_old) == (
        Effect.COMPATIBLE,
        "Other",
        "operator was added",
        False,
    )
    (change,) = _changes(both, SCALE)
    line = both.split("\n").index("  - name: Other") + 1
    assert (change.effect, change.message, change.is_of_old, change.line) == (
        Effect.BREAKING,
        "operator is gone",
        True,
        line,
    )


def test_a_gradient_of_what_has_another_name_is_no_change_of_its_own(ops_yaml: Path) -> None:
    text = ops_yaml.read_text(encoding="utf-8")
    renamed = text.replace("name: Tanh\n", "name: HyperbolicTangent\n").replace(
        "gradient_of: Tanh\n", "gradient_of: HyperbolicTangent\n"
    )
    (change,) = _changes(text, renamed)
    assert (change.op, change.message) == ("Tanh", "operator is called 'HyperbolicTangent' now")


# -- The verb ---


SOUND = edited(RICH, (", in_place_of: X", ""))  # passes the check, but against kernels


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.yaml").write_text(SOUND, encoding="utf-8")
    return tmp_path


def _line_of(text: str) -> int:
    return next(number for number, line in enumerate(SOUND.split("\n"), 1) if text in line)


def test_the_verb_names_file_and_line(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = edited(SOUND, ("      half: {T: half}\n", ""), ("[cpu, cuda]", "[cpu]"), ("length: [1, 3]", "length: [0, 3]"))
    (files / "new.yaml").write_text(new, encoding="utf-8")
    assert main(["diff", "old.yaml", "new.yaml"]) == 1
    told = capsys.readouterr()
    assert told.err == ""
    assert told.out == (
        f"new.yaml:{_line_of('backends')}: breaking: Convolve: backend 'cuda' is gone\n"
        f"old.yaml:{_line_of('half: {')}: breaking: Convolve: row 'half' (T = MLFloat16) is gone\n"
        f"new.yaml:{_line_of('length: [1, 3]')}: compatible: Convolve: length of symbol 'D' is [0, 3], was [1, 3]\n"
        "3 changes: 2 breaking, 1 compatible\n"
    )


def test_the_verb_as_json(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "new.yaml").write_text(edited(SOUND, ("length: [1, 3]", "length: [0, 3]")), encoding="utf-8")
    assert main(["diff", "old.yaml", "new.yaml", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {
            "effect": "compatible",
            "op": "Convolve",
            "message": "length of symbol 'D' is [0, 3], was [1, 3]",
            "file": "new.yaml",
            "line": _line_of("length: [1, 3]"),
        }
    ]
    assert main(["diff", "old.yaml", "old.yaml", "--json"]) == 0
    assert capsys.readouterr().out == "[]\n"


def test_no_changes(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "old.yaml", "old.yaml"]) == 0
    assert capsys.readouterr().out == "no changes\n"


def test_what_operators_share_is_told_once(ops_yaml: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = ops_yaml.read_text(encoding="utf-8")
    new = tmp_path / "new.yaml"
    new.write_text(edited(text, ("      half: {T: MLFloat16}\n", "")), encoding="utf-8")
    assert main(["diff", str(ops_yaml), str(new)]) == 1
    first, *others = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{ops_yaml}:") and ": breaking: Conv, ConvGrad, ConvTranspose and " in first
    assert first.endswith(" more: row 'half' (T = MLFloat16) is gone")
    assert len(others) == 1


def test_a_file_that_does_not_read(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "bad.yaml").write_text(edited(SOUND, ("{T: half}", "{T: hlaf}")), encoding="utf-8")
    for arguments in (["bad.yaml", "old.yaml"], ["old.yaml", "bad.yaml"]):
        assert main(["diff", *arguments]) == 2
        told = capsys.readouterr()
        assert told.out == ""
        assert f"bad.yaml:{_line_of('half: {')}:17: error[G014]: unknown type 'hlaf'" in told.err
    (files / "bad.yaml").write_text(edited(SOUND, ("kernel: conv::Conv", "formulas: {Y: X * q}")), encoding="utf-8")
    assert main(["diff", "bad.yaml", "old.yaml"]) == 2  # it reads, and does not pass the check
    assert f"bad.yaml:{_line_of('kernel: ')}:23: error[G805]: 'q' is no input" in capsys.readouterr().err
    assert main(["diff", "old.yaml", "none.yaml", "--json"]) == 2
    told = capsys.readouterr()
    assert (told.out, json.loads(told.err)["error"]) == ("", "none.yaml: 1 error")
