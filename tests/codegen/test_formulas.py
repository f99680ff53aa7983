"""Formulas: how they read, and what C++ they become."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from gradsmith_codegen import formula_cpp, formula_data, formula_kernels, formula_parser
from gradsmith_codegen.formula_kernels import FunctorNames
from gradsmith_codegen.formula_misfit import (
    MAX_MAP_TENSORS,
    MAX_ROWS_ARGUMENTS,
    MAX_ROWS_TEMPORARIES,
    MAX_ROWS_TENSORS,
    MAX_SCALARS,
)
from gradsmith_codegen.formula_steps import steps_of
from gradsmith_codegen.formula_tree import FUNCTIONS, REDUCTIONS, Apply, Lookup, Reduce, parts
from gradsmith_codegen.model import Op
from schemas import SCALE, edited, ids, load

WITH_FORMULA = edited(SCALE, ("kernel: scale::Scale", "formulas: {Y: '%s'}"))
ATTRIBUTES = "    attributes:\n      factor: {type: float, default: 1.0}\n"


def scale(formula: str) -> Op:
    text = WITH_FORMULA if "factor" in formula else edited(WITH_FORMULA, (ATTRIBUTES, ""))
    schema, diagnostics = load(text % formula)
    assert diagnostics == []
    assert schema
    return schema.ops[0]


def statements(formula: str) -> list[str]:
    return formula_cpp.functor_body(scale(formula))[1:]


@pytest.mark.parametrize(
    ("formula", "cpp"),
    [
        ("X - factor - 1", "in[0] - scalars[0] - A{1}"),
        ("X - (factor - 1)", "in[0] - (scalars[0] - A{1})"),
        ("X * factor + 1 / X", "in[0] * scalars[0] + Math::Quotient(A{1}, in[0])"),
        ("X / (factor * X)", "Math::Quotient(in[0], scalars[0] * in[0])"),
        ("-X * -factor", "-in[0] * -scalars[0]"),
        ("- - X", "-(-in[0])"),
        ("-(X + 1)", "-(in[0] + A{1})"),
        ("where(not X > 0 and X < 1 or X < 2, X, 1)",
         "(!(in[0] > A{0}) && in[0] < A{1}) || in[0] < A{2} ? in[0] : A{1}"),
        ("max(min(X, 1), 2e-3)", "formula::Max(formula::Min(in[0], A{1}), A{0.002})"),
        ("pi * X", "formula::kPi<A> * in[0]"),
        ("X * (2 / pi)", "in[0] * formula::Precise::Quotient(A{2}, formula::kPi<A>)"),
    ],
)  # fmt: skip
def test_cpp(formula: str, cpp: str) -> None:
    assert statements(formula) == [f"out[0] = {cpp};"]


def test_half_and_bf16_share_the_kernels_of_what_sums_nothing() -> None:
    def found(types: dict[str, str], has_sums: bool = False) -> list[tuple[str, tuple[str, ...]]]:
        rows = "".join(f"      {name}: {{T: {one}}}\n" for name, one in types.items())
        schema, _ = load(re.sub(r"    rows:\n(?:      .*\n)+", f"    rows:\n{rows}", WITH_FORMULA % "X * factor"))
        assert schema
        macros = formula_kernels.of_map(schema.ops[0], has_sums, FunctorNames("F", True))
        return [(macro.functor, macro.types) for macro in macros]

    fast, precise = "FOf<::gradsmith::formula::Fast>", "FOf<::gradsmith::formula::Device>"
    both = {"float": "float", "half": "MLFloat16", "bf16": "BFloat16"}
    shared = (fast, ("short", "gradsmith::cuda::ShortFloat"))
    assert found(both) == [(precise, ("f32", "float")), shared]
    assert found({"half": "MLFloat16"}) == [(fast, ("f16", "__half"))]
    assert found(both, has_sums=True) == [
        (precise, ("f32", "float")),
        (fast, ("f16", "__half")),
        (fast, ("bf16", "__nv_bfloat16")),
    ]


def test_what_is_long_becomes_values() -> None:
    lines = statements(" + ".join(["exp(X * factor) * (1 + X)"] * 6))
    assert len(lines) > 2
    assert max(map(len, lines)) < 96
    assert lines[-1].startswith("out[0] = ")


def test_a_choice_within_an_expression_becomes_a_value() -> None:
    assert statements("2 * where(X == 0, 1, X)") == [
        "const A v0 = in[0] == A{0} ? A{1} : in[0];",
        "out[0] = A{2} * v0;",
    ]


def test_truth_values_are_kept_as_such() -> None:
    lines = statements(f"where({' and '.join(['X > factor * X + 1'] * 6)}, X, 0)")
    assert any(line.startswith("const bool v") for line in lines)


ENUM = "reduction: {type: enum, enum: LossReduction, choices: [mean, sum, none], default: sum}"
WITH_ENUM = edited(WITH_FORMULA, ("attributes:\n", f"attributes:\n      {ENUM}\n"))


@pytest.mark.parametrize(
    ("formula", "cpp"),
    [
        ("where(reduction == sum, X, factor)", "scalars[0] == A{1} ? in[0] : scalars[1]"),
        ("where(mean == reduction, X, factor)", "scalars[0] == A{0} ? in[0] : scalars[1]"),
        ("where(reduction != sum and X > 1, X, factor)",
         "!(scalars[0] == A{1}) && in[0] > A{1} ? in[0] : scalars[1]"),
    ],
)  # fmt: skip
def test_an_enum_is_compared_with_its_values(formula: str, cpp: str) -> None:
    schema, diagnostics = load(WITH_ENUM % formula)
    assert diagnostics == []
    assert schema
    assert formula_cpp.functor_body(schema.ops[0])[1:] == [f"out[0] = {cpp};"]


@pytest.mark.parametrize(
    ("formula", "fault"),
    [
        ("where(reduction == men, X, factor)", "G816 7:39 'men' is no value of 'reduction'; did you mean 'mean'?"),
        ("where(reduction == factor, X, 1)", "G816 7:39 'factor' is no value of 'reduction'; expected one of"),
        ("where(reduction == reduction, X, factor)", "G816 7:39 'reduction' is no value of 'reduction'; expected"),
        ("where(reduction == 1, X, factor)", "G812 7:26 no formula can read attribute 'reduction', which is of"),
        ("where(reduction < sum, X, factor)", "G805 7:38 'sum' is no input, attribute or formula; a value of"),
        ("where(reduction, X, factor)", "G812 7:26 no formula can read attribute 'reduction'"),
        ("factor * X + reduction", "G812 7:33 no formula can read attribute 'reduction'"),
        ("where(factor == sum, X, 1)", "G805 7:36 'sum' is no input, attribute or formula; a value of 'reduction' is"),
    ],
)  # fmt: skip
def test_what_is_no_comparison_of_an_enum(formula: str, fault: str) -> None:
    _, diagnostics = load(WITH_ENUM % formula)
    found = [f"{one.id} {one.span.line}:{one.span.column} {one.message}" for one in diagnostics if one.span]
    assert found[0].startswith(fault)


@pytest.mark.parametrize("word", ["cdf", "where", "count", "variance"])
def test_a_function_that_is_not_called_is_told_how(word: str) -> None:
    _, diagnostics = load(WITH_FORMULA % f"factor * X * {word}")
    assert [one.message for one in diagnostics] == [f"'{word}' is a function, and no value; write '{word}(...)'"]
    own = WITH_FORMULA.replace("factor: {", "cdf: {")
    assert ids(own % "cdf * X") == []


@pytest.mark.parametrize(
    ("formulas", "whole"),
    [
        ("Y: max(X, factor)", "max(X, factor)"),
        ("Y: 'where(X < factor, 0, 0)', z: where(X < 0, 0, 0)", "where(X < 0, 0, 0)"),
        ("z: min(max(X, 0), 1) * X, Y: z", "min(max(X, 0), 1) * X"),
        ("Y: X * factor}\n    seams: [{at: {X: max(0, 1)}, gives: {Y: X}}]\n    repeatable: {cpu: always", "max(0, 1)"),
    ],
)
def test_a_formula_that_a_comma_ended_is_told_so(formulas: str, whole: str) -> None:
    _, diagnostics = load(edited(SCALE, ("kernel: scale::Scale", f"formulas: {{{formulas}}}")))
    name = formulas[formulas.index(whole) - 3]
    told = f"a comma ends a formula within {{ }} that is not quoted; write '{name}: \"{whole}\"'"
    assert [one.message for one in diagnostics] == [told]


def test_a_map_may_lack_inputs() -> None:
    bias = "      bias: {type: T, shape: [N, '*D'], optional: true}\n    outputs:"
    text = edited(WITH_FORMULA, (ATTRIBUTES, ""), ("    outputs:", bias))
    schema, diagnostics = load(text % "X + where(given(bias), bias, 1)")
    assert diagnostics == [] and schema
    (op,) = schema.ops
    assert steps_of(op) is None
    assert formula_cpp.functor_body(op)[1:] == [
        "const A v0 = scalars[0] != A{0} ? in[1] : A{1};",
        "out[0] = in[0] + v0;",
    ]


BITS = """\
    formulas: {Y: "%s"}
    backends: [cpu]
    inputs:
      mask: {type: uint32, shape: [ceil(D / 32)]}
      X: {type: T, shape: ["*D"]}
"""
WITH_BITS = edited(
    SCALE,
    ('    kernel: scale::Scale\n    backends: [cpu]\n    inputs:\n      X: {type: T, shape: [N, "*D"]}\n', BITS),
    ("X: [2, 3]", "X: [2, 3, 7]"),
)


def test_bits_are_truth_values() -> None:
    schema, diagnostics = load(WITH_BITS % "where(bit(mask, D) and X > 1, X, factor)")
    assert diagnostics == []
    assert schema
    (op,) = schema.ops
    assert [one.name for one in op.bits] == ["mask"]
    assert dict(op.cases[0].all_shapes)["mask"] == (2,)
    assert formula_cpp.functor_body(op)[1:] == ["out[0] = in[0] != A{0} && in[1] > A{1} ? in[1] : scalars[0];"]
    data = formula_data.of(op, None)
    assert (data.bits, data.broadcast) == (["mask"], [])


@pytest.mark.parametrize(
    ("formula", "fault"),
    [
        ("X * bit(mask, D)", "G804"),
        ("where(bit(mask), X, 1)", "G803"),
        ("where(bit(mask, 1), X, 1)", "G801"),
        ("where(bit(X, D), X, mask)", "G817"),
        ("where(bit(mask, N), X, 1)", "G817"),
        ("sum(where(bit(mask, D), X, 1), D)", "G810"),
    ],
)
def test_what_reads_no_bits(formula: str, fault: str) -> None:
    _, diagnostics = load(WITH_BITS % formula)
    assert diagnostics[0].id == fault


def test_a_max_of_dims_is_a_reduction() -> None:
    assert isinstance(formula_parser.parse("max(X, N)", {"N"}), Reduce)
    assert not isinstance(formula_parser.parse("max(X, Z)", {"N"}), Reduce)


def test_a_min_of_dims_is_a_max_of_what_is_negated() -> None:
    least, largest = (values_of("Y", text) for text in ("min(X + 1, N)", "-max(-(X + 1), N)"))
    assert least == largest
    assert values_of("Y", "min(X, 1)") != values_of("Y", "-max(-X, -1)")  # which are of two numbers
    text = edited(WITH_FORMULA, (ATTRIBUTES, ""), ("Y: {type: T, like: X}", 'Y: {type: T, shape: ["*D"]}'))
    schema, diagnostics = load(text % "min(X, N)")
    assert diagnostics == []
    assert schema


@pytest.mark.parametrize("word", ["max", "min"])
def test_a_dim_in_the_first_place_makes_no_reduction(word: str) -> None:
    tree = formula_parser.parse(f"{word}(N, X)", {"N"})
    assert isinstance(tree, Apply)
    assert tree.function is FUNCTIONS[word]


def test_a_lookup_ends_behind_its_bracket() -> None:
    tree = formula_parser.parse("2 * weight[ label ] + 1", ())
    (lookup,) = [part for part in parts(tree) if isinstance(part, Lookup)]
    assert (lookup.start, lookup.end) == (4, len("2 * weight[ label ]"))


def values_of(name: str, text: str) -> str:
    """The expression, but for where its parts stand."""
    return re.sub(r"(start|end)=\d+", "", f"{name}: {formula_parser.parse(text, {'N'})}")


def test_an_unknown_function_is_told_all_that_there_are() -> None:
    listed = unparsed("frobnicate(X)").partition("; there are ")[2].split(", ")
    assert sorted(listed) == sorted({*FUNCTIONS, *REDUCTIONS, "count", "index", "given", "bit"})


@pytest.mark.parametrize("formula", ["(" * 40 + "X" + ")" * 40, "-" * 40 + "X", "X" + " + X" * 1000])
def test_what_is_nested_or_long_is_refused(formula: str) -> None:
    _, diagnostics = load(WITH_FORMULA % formula)
    assert [one.id for one in diagnostics] == ["G801"]


@pytest.mark.parametrize(
    ("fits", "one_more", "message"),
    [
        ("(" * 32 + "X" + ")" * 32, "(" * 33 + "X" + ")" * 33, "nested more than 32 levels deep"),
        ("-" * 32 + "X", "-" * 33 + "X", "nested more than 32 levels deep"),
        ("not " * 32 + "X", "not " * 33 + "X", "nested more than 32 levels deep"),
        ("exp(" * 32 + "X" + ")" * 32, "exp(" * 33 + "X" + ")" * 33, "nested more than 32 levels deep"),
        ("-X" + " + X" * 149, "- -X" + " + X" * 149, "a formula has 300 words and marks at most"),
        ("3.4e38", "3.41e38", "3.41e38 is larger than any float"),
        ("1.0e-400", "1.0e+400", "1.0e+400 is larger than any float"),
    ],
)
def test_what_just_fits_and_what_does_not(fits: str, one_more: str, message: str) -> None:
    assert formula_parser.parse(fits, ())
    assert unparsed(one_more).startswith(message)


@pytest.mark.parametrize(("one", "mark"), [("exp(X)", "+"), ("(X)", "+"), ("-X", "*"), ("not X", "and")])
def test_what_stands_side_by_side_is_not_nested(one: str, mark: str) -> None:
    assert formula_parser.parse(f" {mark} ".join([one] * 33), ())


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("X\u00e4 * 2", "'\u00e4' has no meaning in a formula"),
        ("\u00e4", "'\u00e4' has no meaning in a formula"),
        ("X * \u0663", "'\u0663' has no meaning in a formula"),
        ("X * 1\u0663", "'\u0663' has no meaning in a formula"),
        *((f"weight[{word}]", "'weight' is looked up by the name of an integer input") for word in ("and", "not", "1")),
    ],
)
def test_what_is_no_name_and_no_number(formula: str, message: str) -> None:
    assert unparsed(formula) == message


def unparsed(formula: str) -> str:
    with pytest.raises(formula_parser.Unparsed) as fault:
        formula_parser.parse(formula, ())
    return fault.value.diagnose(None).message


def test_inputs_that_broadcast_together(repository: Path) -> None:
    """The oracle is told which; a functor is not given those whose shape alone counts."""
    schema, _ = load((repository / "ops.yaml").read_text(encoding="utf-8"))
    assert schema
    ops = {op.name: op for op in schema.ops}
    for name in ("Mul", "MulGrad"):
        data = formula_data.of(ops[name], None)
        assert (data.broadcast, data.joined) == (["A", "B"], ["A", "B"])
    assert formula_data.of(ops["MulGrad"], None).outputs[1][2] == "B"
    assert formula_data.of(ops["PReluGrad"], None).joined == []
    assert formula_cpp.functor_body(ops["SubGrad"])[-1] == "out[1] = -in[0];"


def test_functions_and_limits_are_the_runtimes(repository: Path) -> None:
    text = (repository / "runtime/patterns/formula_math.h").read_text(encoding="utf-8")
    known = set(re.findall(r"GRADSMITH_FUNCTOR (?:static )?A (\w+)\(", text)) - {"Name"}
    known |= set(re.findall(r"^GRADSMITH_FORMULA_FUNCTION\((\w+),", text, re.MULTILINE))
    known -= {"RestOfProduct"}  # of others
    assert known == {name.capitalize() for name in FUNCTIONS} - {"Where"} | {"Quotient", "QuotientByCount"}
    fast = (repository / "runtime/patterns/cuda/fast_math.cuh").read_text(encoding="utf-8")
    of_math = {one.name.capitalize() for one in FUNCTIONS.values() if one.is_of_math}
    of_math |= {"Quotient", "QuotientByCount"}
    assert set(re.findall(r"static GRADSMITH_FUNCTOR float (\w+)\(", fast)) == of_math
    device = (repository / "runtime/patterns/cuda/kernel_math.cuh").read_text(encoding="utf-8")
    assert set(re.findall(r"static GRADSMITH_FUNCTOR A (\w+)\(", device)) <= of_math
    for task, word, tensors in (("map_task", "Map", MAX_MAP_TENSORS), ("rows_task", "Rows", MAX_ROWS_TENSORS)):
        limits = (repository / f"runtime/patterns/{task}.h").read_text(encoding="utf-8")
        found = dict(re.findall(rf"constexpr int kMax{word}(\w+) = (\d+);", limits))
        assert (found["Tensors"], found["Scalars"]) == (str(tensors), str(MAX_SCALARS))
    passes = (repository / "runtime/patterns/rows_passes.h").read_text(encoding="utf-8")
    found = dict(re.findall(r"constexpr int kMaxRows(\w+) = (\d+);", passes))
    assert (found["Arguments"], found["Temporaries"]) == (str(MAX_ROWS_ARGUMENTS), str(MAX_ROWS_TEMPORARIES))


def test_oracle_knows_every_reduction(repository: Path) -> None:
    text = (repository / "tests/reference/named_formula.cc").read_text(encoding="utf-8")
    assert {*REDUCTIONS, "count"} <= set(re.findall(r'operation [=!]= "(\w+)"', text))


def test_oracle_knows_every_function(repository: Path) -> None:
    text = (repository / "tests/reference/formula.cc").read_text(encoding="utf-8")
    assert set(FUNCTIONS) <= set(re.findall(r'Entry\{"(\w+)"', text))
