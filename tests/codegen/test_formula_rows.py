"""Formulas that reduce over dims: how they are scheduled, and what functors they become."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from gradsmith_codegen import formula_kernels, formula_rows_cpp
from gradsmith_codegen.formula_kernels import FunctorNames
from gradsmith_codegen.formula_rows_cpp import Functor
from gradsmith_codegen.formula_schedule import Role, Schedule
from gradsmith_codegen.formula_steps import Step, Steps, steps_of
from gradsmith_codegen.model import Op
from schemas import load

ENTRY = """\
schema_version: 1
domain: com.example
since_version: 1
ops:
  - name: Rows
    doc: Rows of X.
    backends: [cpu]
    formulas:
%s
    inputs:
      X: {type: T, shape: ["*P", "*S"]}
%s
    outputs:
%s
    dims:
      P: {length: axis}
      S: {length: [1, 8]}
    attributes:
      axis: {type: int, default: -1, axis_of: X}
      epsilon: {type: float, default: 0.5}
    rows:
      half_float: {T: MLFloat16%s}
    cases:
      - {name: plain, X: [2, 3]}
"""
Y = "Y: {type: T, like: X}"
OF_ROW = 'Z: {type: T, shape: ["*P"]}'
OF_COLUMN = 'W: {type: T, shape: ["*S"]}'
OF_COLUMN_TOO = 'U: {type: T, shape: ["*S"]}'
SCALE = 'scale: {type: T, shape: ["*S"]}'
OF_ALL = 'V: {type: T, shape: ["*P", "*S"]}'
ALSO_ALL = 'A: {type: T, shape: ["*P", "*S"]}'
MEAN = 'm: {type: T, shape: ["*P"]}'


OF_CALL = "flag: {type: bool, shape: [], optional: true}"


def without_attributes(text: str) -> str:
    return re.sub(r"    attributes:\n(?:      .*\n)+", "", text)


def indented(lines: tuple[str, ...]) -> str:
    return "\n".join(f"      {line}" for line in lines)


def entry(formulas: tuple[str, ...], outputs: tuple[str, ...], inputs: tuple[str, ...] = (), types: str = "") -> str:
    reads_epsilon = any("epsilon" in formula for formula in formulas)
    text = ENTRY if reads_epsilon else ENTRY.replace("      epsilon: {type: float, default: 0.5}\n", "")
    return text % (indented(formulas), indented(inputs), indented(outputs), types)


def problems(formulas: tuple[str, ...], outputs: tuple[str, ...], inputs: tuple[str, ...] = ()) -> list[str]:
    _, diagnostics = load(entry(formulas, outputs, inputs))
    return [f"{one.id} {one.message}" for one in diagnostics]


def op_of(formulas: tuple[str, ...], outputs: tuple[str, ...], inputs: tuple[str, ...] = (), types: str = "") -> Op:
    schema, diagnostics = load(entry(formulas, outputs, inputs, types))
    assert diagnostics == []
    assert schema
    return schema.ops[0]


def all_steps(op: Op) -> Steps:
    found = steps_of(op)
    assert found
    return found


def steps(op: Op) -> Step:
    (found,) = all_steps(op).passes
    return found


def functor(op: Op) -> Functor:
    return functor_of(op, steps(op))


def functor_of(op: Op, step: Step) -> Functor:
    return formula_rows_cpp.functor(op, step.op, step.schedule, step.slots)


def operands(op: Op) -> list[list[str]]:
    """Those of each pass."""
    return [[one.tensor.name for one in each.operands] for each in all_steps(op).passes]


def lines(made: Functor, name: str) -> list[str]:
    method = next((one for one in made.methods if f" {name}(" in one.head), None)
    return [line.strip() for line in method.lines if not line.strip().startswith("//")] if method else []


def test_a_reduction_of_another_is_a_later_phase() -> None:
    op = op_of(("largest: max(X, S)", "Y: exp(X - largest) / sum(exp(X - largest), S)"), (Y,))
    assert [one.phase for one in steps(op).schedule.reductions] == [0, 1]
    made = functor(op)
    assert lines(made, "IsMax") == ["return result == 0;"]
    assert lines(made, "Map") == ["out[0] = Math::Quotient(Math::Exp(in[0] - row.results[0]), row.results[1]);"]
    assert lines(made, "Finish") == []


def test_rows_know_whether_other_dims_lie_between_theirs() -> None:
    text = entry(("Y: X - mean(X, N, D)",), (Y,)).replace('"*P", "*S"', 'N, C, "*D"')
    text = text.replace("P: {length: axis}", "C: {}").replace("S: {length: [1, 8]}", "N: {}\n      D: {length: [0, 6]}")
    schema, diagnostics = load(without_attributes(text))
    assert schema, diagnostics
    constant = "static constexpr bool kRowsOfManyDims = true;"
    assert constant in functor(schema.ops[0]).constants
    assert constant not in functor(op_of(("Y: X - mean(X, S)",), (Y,))).constants


def test_reductions_of_one_phase_share_a_pass() -> None:
    op = op_of(("Y: X - mean(X, S) * sum(X * X, S)",), (Y,))
    assert [one.phase for one in steps(op).schedule.reductions] == [0, 0]
    made = functor(op)
    assert lines(made, "Terms") == ["terms[0] = in[0];", "terms[1] = in[0] * in[0];"]
    assert lines(made, "Finish") == ["results[0] /= row.length;", "results[0] = results[0] * results[1];"]


def test_what_is_written_twice_is_reduced_once() -> None:
    op = op_of(("s: sum(X, S)", "Y: X / sum(X, S) + s"), (Y,))
    assert len(steps(op).schedule.reductions) == 1


def test_what_is_the_same_for_a_row_is_computed_once() -> None:
    op = op_of(("Y: X * rsqrt(mean(X * X, S) + epsilon)",), (Y,))
    made = functor(op)
    assert lines(made, "Finish") == [
        "results[0] /= row.length;",
        "results[0] = formula::Rsqrt(results[0] + row.scalars[0]);",
    ]
    assert lines(made, "Map") == ["out[0] = in[0] * row.results[0];"]


def test_a_result_that_something_else_reads_keeps_its_place() -> None:
    op = op_of(("s: sum(X * X, S)", "Y: X / sqrt(s) + s"), (Y,))
    found = steps(op)
    assert [slot.phase for slot in found.slots.slots] == [0, -1]
    assert lines(functor(op), "Finish") == ["results[1] = formula::Sqrt(results[0]);"]


def test_a_condition_of_a_row_is_no_result() -> None:
    op = op_of(("n: sqrt(sum(X * X, S))", "Y: where(n == 0, 0, X / n)"), (Y,))
    assert lines(functor(op), "Finish") == ["results[0] = formula::Sqrt(results[0]);"]
    quotient = "Math::Quotient(in[0], row.results[0])"
    assert lines(functor(op), "Map")[-1] == f"out[0] = row.results[0] == A{{0}} ? A{{0}} : {quotient};"


def test_roles_of_operands() -> None:
    formulas = ("g: X * scale", "Y: g - m * mean(g, S)", "Z: sum(X, S)", "W: sum(X * m, P)")
    op = op_of(formulas, (Y, OF_ROW, OF_COLUMN), (SCALE, MEAN))
    schedule = steps(op).schedule
    names = {role: [one.name for one in schedule.inputs[role]] for role in Role if schedule.inputs[role]}
    assert names == {Role.ELEMENT: ["X"], Role.COLUMN: ["scale"], Role.ROW: ["m"]}
    names = {role: [one.name for one in schedule.outputs[role]] for role in Role if schedule.outputs[role]}
    assert names == {Role.ELEMENT: ["Y"], Role.COLUMN: ["W"], Role.ROW: ["Z"]}
    made = functor(op)
    assert lines(made, "ColumnTerms") == ["terms[0] = in[0] * row.inputs[0];"]


def test_sums_over_the_rows_of_what_was_found_of_each() -> None:
    op = op_of(("Y: X - mean(X, S)", "W: sum(X - mean(X, S), P)", "U: sum(X, P)"), (Y, OF_COLUMN, OF_COLUMN_TOO))
    assert operands(op) == [["X", "Y", "W", "U"]]
    made = functor(op)
    assert "static constexpr unsigned kSumsOfResults = 0b1;" in made.constants
    assert lines(made, "ColumnTerms") == ["terms[0] = in[0] - row.results[0];", "terms[1] = in[0];"]
    assert lines(made, "OutputOf") == ["if (sum == 0) {", "return 0;", "}", "return -1;"]
    op = op_of(("Y: X - mean(X, S)", "W: sum(X, P)"), (Y, OF_COLUMN))
    assert not any("kSumsOfResults" in one for one in functor(op).constants)


def test_a_variance_is_of_deviations_that_cost_no_digits() -> None:
    op = op_of(("c: mean(X, S)", "Y: (X - c) * rsqrt(variance(X, S) + epsilon)", "Z: c"), (Y, OF_ROW))
    made = functor(op)
    assert "static constexpr int kPivot = 0;" in made.constants
    assert lines(made, "Terms")[1] == "terms[0] = in[0] - row.pivot;"
    assert "const A v0 = in[0] - row.pivot - row.results[0];" in lines(made, "Terms")
    assert "results[0] += results[1];" in lines(made, "Finish")
    assert lines(made, "Map") == ["out[0] = (in[0] - row.pivot - row.results[0]) * row.results[2];"]
    assert lines(made, "RowOutputs") == ["outputs[0] = row.pivot + row.results[0];"]


def test_types_that_differ() -> None:
    op = op_of(("Y: X * scale - mean(X, S)",), (Y,), ('scale: {type: T1, shape: ["*S"]}',), types=", T1: float")
    schedule = steps(op).schedule
    assert (schedule.first, schedule.second) == ("T", "T1")
    assert kernels(op, op, schedule) == [("GRADSMITH_ROWS_KERNELS_OF_COLUMNS", "F", ("f16_f32", "__half", "float"))]
    op = op_of(("Y: X * m - mean(X, S)",), (Y,), ("m: {type: T1, like: X}",), types=", T1: float")
    assert kernels(op, op, steps(op).schedule) == [
        ("GRADSMITH_ROWS_KERNELS_OF_TWO", "F", ("f16_f32", "__half", "float"))
    ]


def test_types_differ_in_one_way_in_all_rows() -> None:
    text = entry(("Y: X * m - mean(X, S)",), (Y,), ("m: {type: T1, like: X}",))
    for row, is_fit in (("half: {T: float, T1: half}", True), ("double: {T: double, T1: float}", False)):
        schema, diagnostics = load(
            text.replace("half_float: {T: MLFloat16}", f"bf16: {{T: float, T1: bf16}}\n      {row}")
        )
        told = "rows have half or bf16 beside float, and no other types, and 'm' is T1, 'X' T"
        assert [one.message.removeprefix("the formulas fit no pattern: ") for one in diagnostics] == [told] * (
            not is_fit
        )
        if schema and is_fit:
            schedule = steps(schema.ops[0]).schedule
            assert (schedule.first, schedule.second) == ("T1", "T")


def test_what_has_no_data_has_any_types() -> None:
    shape_only = "A: {type: T1, like: X, shape_only: true}"
    types = ", T1: int64}\n      wide: {T: float, T1: float"
    assert operands(op_of(("Y: X - mean(X, S)",), (Y,), (shape_only,), types)) == [["X", "Y"]]


def test_counts_are_given() -> None:
    op = op_of(("Y: X - sum(X, S) / count(S) / count(P)",), (Y,))
    assert steps(op).schedule.counts == [("P",)]
    assert lines(functor(op), "Finish") == [
        "const A v0 = formula::Precise::Quotient(results[0], row.length);",
        "results[0] = formula::Precise::Quotient(v0, row.scalars[0]);",
    ]


def test_outputs_that_reduce_over_other_dims_have_passes_of_their_own() -> None:
    op = op_of(("Y: X - mean(X, S)", "W: max(X, P)", "Z: sum(X, S)", "V: X * 2"), (Y, OF_COLUMN, OF_ROW, OF_ALL))
    assert operands(op) == [["X", "Y", "V", "Z"], ["X", "W"]]
    assert [each.schedule.over for each in all_steps(op).passes] == [{"S"}, {"P"}]
    assert not all_steps(op).temporaries


def test_a_pass_that_writes_in_place_comes_last() -> None:
    in_place = "Y: {type: T, like: X, in_place_of: X}"
    op = op_of(("Y: X - mean(X, S)", "W: max(X, P)"), (in_place, OF_COLUMN))
    assert operands(op) == [["X", "W"], ["X", "Y"]]
    found = problems(
        ("Y: A + X - mean(X, S)", "V: X + A - mean(A, P)"),
        (in_place, OF_ALL.replace("}", ", in_place_of: A}")),
        (ALSO_ALL,),
    )
    assert found == [
        "G810 the formulas fit no pattern: 'V' needs a pass of its own, which may read the input whose place 'Y' takes"
    ]


def test_a_pass_leaves_reductions_to_those_over_other_dims() -> None:
    op = op_of(("Y: X - mean(X, S) - mean(X, P)",), (Y,))
    assert operands(op) == [["X", "Y_1"], ["X", "Y_1", "Y"]]
    assert [each.schedule.over for each in all_steps(op).passes] == [{"S"}, {"P"}]
    assert [(tensor.name, tensor.shape_text) for tensor, _ in all_steps(op).temporaries] == [("Y_1", "[*P]")]
    first, second = all_steps(op).passes
    assert lines(functor_of(op, first), "RowOutputs") == ["outputs[0] = row.results[0];"]
    assert lines(functor_of(op, second), "Map") == ["out[0] = in[0] - columns[0] - row.results[0];"]


def test_what_is_the_same_for_a_row_is_left_as_it_is_read() -> None:
    op = op_of(("m: max(X, S)", "s: sqrt(m) + 1", "W: max(X * s, P)", "Z: m"), (OF_COLUMN, OF_ROW))
    assert operands(op) == [["X", "Z", "s"], ["X", "s", "W"]]
    assert lines(functor_of(op, all_steps(op).passes[0]), "RowOutputs")[-1].startswith("outputs[1] = formula::Sqrt(")


def test_a_sum_of_sums_reads_those_alone() -> None:
    scalar = "Z: {type: T, shape: []}"
    op = op_of(("s: sum(X, S)", "W: sum(X, P)", "Z: max(s, P)"), (OF_COLUMN, scalar))
    assert operands(op) == [["X", "W", "s"], ["s", "Z"]]
    assert [each.whole for each in all_steps(op).passes] == ["0b11", "0b1"]


def test_temporaries_are_as_wide_as_sums() -> None:
    text = entry(("Y: X - mean(X, S) - mean(X, P)",), (Y,)).replace("half_float:", "wide: {T: double}\n      narrow:")
    schema, _ = load(text)
    assert schema
    _, second = all_steps(schema.ops[0]).passes
    assert kernels(schema.ops[0], second.op, second.schedule) == [
        ("GRADSMITH_ROWS_KERNELS_OF_COLUMNS", "F", ("f64", "double", "double")),
        ("GRADSMITH_ROWS_KERNELS_OF_COLUMNS", "F", ("f16_f32", "__half", "float")),
    ]


def kernels(op: Op, part: Op, schedule: Schedule) -> list[tuple[str, str, tuple[str, ...]]]:
    """Macros, functors and types of an operator without functions that may be approximate."""
    found = formula_kernels.of_rows(op, part, schedule, FunctorNames("F", False))
    return [(macro.name, macro.functor, macro.types) for macro in found]


def test_functions_are_approximate_where_all_results_are_rounded_to_16_bits() -> None:
    def functors(types: str, y: str, rows: str = "half_float:") -> list[str]:
        schema, _ = load(entry(("Y: exp(X - max(X, S))",), (y,), types=types).replace("half_float:", rows))
        assert schema
        op = schema.ops[0]
        return [one.functor for one in formula_kernels.of_rows(op, op, steps(op).schedule, FunctorNames("F", True))]

    fast, precise = "FOf<::gradsmith::formula::Fast>", "FOf<::gradsmith::formula::Device>"
    of_other_type = 'Y: {type: T1, shape: ["*P", "*S"]}'
    assert functors("", Y) == [fast]
    assert functors("", Y, "wide: {T: float}\n      narrow:") == [precise, fast]
    assert functors(", T1: float", of_other_type) == [precise]


def test_what_no_pass_finds_together_is_left_one_by_one() -> None:
    scalar = "Z: {type: T, shape: []}"
    op = op_of(("Z: max(sum(X, S), P) / sum(max(X, P), S)",), (scalar,))
    assert [[tensor.shape_text for tensor, _ in all_steps(op).temporaries]] == [["[*P]", "[]", "[*S]"]]
    assert [each.schedule.over for each in all_steps(op).passes] == [{"S"}, {"P"}, {"P"}, {"S"}]


def test_temporaries_have_the_type_of_a_parameter_that_is_as_wide() -> None:
    other = 'V: {type: T1, shape: ["*P", "*S"]}'
    op = op_of(("V: X - mean(X, S) - mean(X, P)",), (other,), types=", T1: float")
    assert [tensor.type for tensor, _ in all_steps(op).temporaries] == ["T1"]


def test_passes_have_limits_together() -> None:
    many = [f"W{number}" for number in range(16)]
    formulas = ("Y: X - mean(X, S)", *(f"{name}: max(X * {place}, P)" for place, name in enumerate(many)))
    outputs = (Y, *(OF_COLUMN.replace("W:", f"{name}:") for name in many))
    assert problems(formulas, outputs) == [
        "G810 the formulas fit no pattern: all passes together have 16 inputs and outputs at most, not 18"
    ]
    chain = [f"v{number}: sum(X * v{number - 1}, {'SP'[number % 2]})" for number in range(1, 12)]
    assert problems(("v0: sum(X, S)", *chain, "Y: X * v11"), (Y,)) == [
        "G810 the formulas fit no pattern: all passes together have 8 temporaries at most, not 11"
    ]


def test_formulas_that_each_read_the_last_twice_are_looked_at_once() -> None:
    chain = [f"v{number}: v{number - 1} + v{number - 1}" for number in range(1, 40)]
    op = op_of(("v0: mean(X, S)", *chain, "Y: X - v39 - mean(X, P)"), (Y,))
    assert operands(op) == [["X", "v39"], ["X", "v39", "Y"]]


def test_places_alone_make_rows() -> None:
    text = entry(("Y: X * index(S)",), (Y,)).replace('"*P", "*S"', "P, S").replace("P: {length: axis}", "P: {}")
    schema, diagnostics = load(without_attributes(text.replace("S: {length: [1, 8]}", "S: {}")))
    assert diagnostics == []
    assert schema
    assert all_steps(schema.ops[0]).passes[0].schedule.over == {"S"}


def test_a_name_that_is_taken_is_told_alone() -> None:
    found = problems(("X: max(X, P)", "Y: X - mean(X, S)"), (Y,))
    assert [one.partition(" ")[0] for one in found] == ["G811"]


def test_what_tells_places_is_left_to_sums_over_others() -> None:
    op = labeled("Y: X * sum(where(is_used, weight[label], 0), N)")
    assert operands(op) == [["X", "label", "is_used", "weight", "Y_1"], ["X", "Y_1", "Y"]]
    assert [each.schedule.over for each in all_steps(op).passes] == [{"C"}, {"N"}]


def test_passes_are_given_the_same_counts() -> None:
    op = op_of(("Y: X - sum(X, S) / count(P)", "W: max(X, P) * count(S)"), (Y, OF_COLUMN))
    assert [each.schedule.counts for each in all_steps(op).passes] == [[("P",), ("S",)]] * 2


def test_a_pass_reads_a_tensor_with_all_dims() -> None:
    turned = 'A: {type: T, shape: ["*S", "*P"]}'
    assert problems(("Y: X - mean(X, S)", "W: max(A, P)"), (Y, OF_COLUMN), (turned,)) == [
        "G810 the formulas fit no pattern: 'A' has the dims 'S' and 'P' in another order than 'X', and needs a pass of "
        "its own"
    ]


def test_what_fits_no_pattern() -> None:
    assert problems(("Z: X * 2",), (OF_ROW,)) == [
        "G810 'Z' of [*P] lacks 'S', which its formula has; reduce over it: 'sum(..., S)'"
    ]
    assert problems(("Y: X - mean(X, Q)",), (Y,))[0].startswith("G809 nothing in 'mean' has the dim 'Q'")
    assert problems(("Y: X - count(Q)",), (Y,))[0].startswith("G809 no tensor has the dim 'Q'")


OPTIONAL = "A: {type: T, like: X, optional: true}"


def test_elements_may_be_absent() -> None:
    made = functor(op_of(("Y: X + A - mean(X + A, S)",), (Y,), (OPTIONAL,)))
    assert "static constexpr unsigned kOptionalInputs = 0b10;" in made.constants
    assert not any("kOptional" in one for one in functor(op_of(("Y: X - mean(X, S)",), (Y,))).constants)


def test_what_may_be_absent_comes_behind_what_tells_the_dims() -> None:
    text = entry(("Y: where(given(A), A, 0) + X - mean(X, S)",), (Y,), (OPTIONAL,))
    turned = text.replace('      X: {type: T, shape: ["*P", "*S"]}\n', "").replace(
        f"      {OPTIONAL}\n", f'      {ALSO_ALL[:-1]}, optional: true}}\n      X: {{type: T, shape: ["*P", "*S"]}}\n'
    )
    schema, diagnostics = load(turned)
    assert diagnostics == [] and schema
    assert [one.name for one in steps(schema.ops[0]).schedule.inputs[Role.ELEMENT]] == ["X", "A"]


def test_deviations_are_not_taken_from_near_what_may_be_absent() -> None:
    made = functor(op_of(("Y: X * rsqrt(variance(A, S) + 1)",), (Y,), (OPTIONAL,)))
    assert not any("kPivot" in one for one in made.constants)


def test_a_pass_reads_what_is_always_there_to_know_its_dims() -> None:
    op = op_of(("Y: X - mean(X, S)", "V: A - mean(A, P)"), (Y, OF_ALL), (OPTIONAL,))
    assert operands(op) == [["X", "Y"], ["X", "A", "V"]]


LABELED = """schema_version: 1
domain: com.example
since_version: 1
ops:
  - name: Labeled
    doc: Rows with labels.
    backends: [cpu]
    formulas:
%s
    inputs:
      X: {type: T, shape: [N, C]}
      label: {type: Tind, shape: [N]}
      is_used: {type: bool, shape: [N]}
      weight: {type: T, shape: [C], optional: true}
    outputs:
      Y: {type: T, like: X}
    attributes:
      ignored: {type: int, optional: true}
    rows:
      wide: {T: float, Tind: int64}
      narrow: {T: float, Tind: uint8}
    cases:
      - {name: plain, X: [2, 3]}
"""


def labeled(*formulas: str) -> Op:
    text = LABELED % indented(formulas)
    schema, diagnostics = load(text if "ignored" in " ".join(formulas) else without_attributes(text))
    assert diagnostics == []
    assert schema
    return schema.ops[0]


def test_integers_are_compared_as_they_are_and_tables_looked_up() -> None:
    formulas = (
        "counts: is_used and label < count(C) and not (given(ignored) and label == ignored)",
        "Y: where(counts and index(C) == label, X * where(given(weight), weight[label], 1), label + X)",
    )
    made = functor(labeled(*formulas))
    wanted = ("kRowInputs", "kIntegerInputs", "kTables", "kLookups")
    constants = [one.split("int ")[1] for one in made.constants if any(word in one for word in wanted)]
    assert constants == ["kIntegerInputs = 2;", "kTables = 1;", "kLookups = 1;"]
    assert lines(made, "LookupAt") == ["return {0, 0};"]
    text = " ".join(lines(made, "Map"))
    for part in (
        "row.integers[1] != 0",
        "row.integers[0] < row.exact_length",
        "row.integers[0] == static_cast<std::int64_t>(row.exact_scalars[0])",
        "row.scalars[1] != A{0}",
        "row.index == row.integers[0]",
        "row.scalars[2] != A{0} ? row.lookups[0] : A{1}",
        "static_cast<A>(row.integers[0]) + in[0]",
    ):
        assert part in text, part


EXACT = 2**53 - 1  # as large as whole numbers may be


@pytest.mark.parametrize(
    ("condition", "cpp"),
    [
        ("label == -100000000", "row.integers[0] == -100000000"),
        ("-100000000 != label", "-100000000 != row.integers[0]"),
        ("label > -(-3)", "row.integers[0] > 3"),
        ("index(C) >= -1", "row.index >= -1"),
        ("lowest <= label", "-7 <= row.integers[0]"),
        (f"label < {EXACT}", f"row.integers[0] < {EXACT}"),
        (f"label >= -{EXACT}", f"row.integers[0] >= -{EXACT}"),
        ("label == -0.5", "static_cast<A>(row.integers[0]) == -A{0.5}"),
        ("label == count(C)", "row.integers[0] == row.exact_length"),
        ("label == count(N)", "static_cast<A>(row.integers[0]) == row.scalars[0]"),
    ],
)
def test_whole_numbers_are_compared_as_they_are(condition: str, cpp: str) -> None:
    named = ("lowest: -7",) if "lowest" in condition else ()
    made = functor(labeled(*named, f"Y: where(is_used and {condition}, X * where(given(weight), weight[label], 1), 0)"))
    assert f"{cpp} " in " ".join([*lines(made, "Map"), ""]).replace(";", " ")


@pytest.mark.parametrize(
    ("condition", "types", "unfit"),
    [
        ("label == 20000000000000000000", "int64 uint8", "20000000000000000000"),
        ("1e30 != label", "int64", "1e30"),
        ("label < -1e30", "int64", "1e30"),
        ("label == large", "int64", "large"),
        (f"label > {EXACT + 1}", "int64", f"{EXACT + 1}"),
        ("index(C) == 1e30", "int64", "1e30"),
        ("label == 2147483648", "int32", "2147483648"),
        ("label == -2147483649", "int32 uint8", "2147483649"),
        ("label == 256", "uint8", "256"),
        ("label == -1", "uint8", "1"),
        ("label == 4294967296", "uint32", "4294967296"),
    ],
)
def test_numbers_that_integers_cannot_be_are_refused(condition: str, types: str, unfit: str) -> None:
    ranges = {
        "int64": (-EXACT, EXACT),
        "int32": (-(2**31), 2**31 - 1),
        "uint8": (0, 255),
        "uint32": (0, 2**32 - 1),
    }
    kinds = types.split()
    what = "index(C)" if "index" in condition else "label"
    named = "      large: 1e30\n" if "large" in condition else ""
    formula = f"Y: where(is_used and {condition}, X * where(given(weight), weight[label], 1), 0)"
    text = without_attributes(LABELED % f"{named}      {formula}")
    text = text.replace("float, Tind: uint8", f"double, Tind: {kinds[-1]}").replace(
        "Tind: int64", f"Tind: {kinds[0]}", 1
    )
    (found,) = load(text)[1]
    least, most = ranges[kinds[0]]
    told = f"{' and '.join(map(repr, kinds))}, and compared with whole numbers from {least} to {most} alone"
    assert (found.id, found.message) == ("G810", f"'{what}' is {told}")
    assert found.span
    line = text.splitlines()[found.span.line - 1]
    assert line[found.span.column - 1 :].startswith(unfit)


def test_rows_without_columns_find_two_results_at_once() -> None:
    two, three = "sum(X, S) * max(X, S)", "sum(X, S) * max(X, S) * sum(X * X, S)"
    assert operands(op_of((f"Y: X - {two}",), (Y,))) == [["X", "Y"]]
    op = op_of((f"Y: X - {three}",), (Y,))
    assert operands(op) == [["X", "Y_1"], ["X", "Y_1", "Y"]]
    assert [len(each.slots.slots) for each in all_steps(op).passes] == [1, 2]
    assert operands(op_of((f"Y: X * scale - {three}",), (Y,), (SCALE,))) == [["X", "scale", "Y"]]


def test_the_page_s_example_of_labels_is_sound(repository: Path) -> None:
    page = (repository / "docs/schema.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^  - name: OthersGrad\n.*?(?=^```)", page, re.DOTALL | re.MULTILINE)
    rest = """    doc: Gradient of half the sum of the squares of all but the label's.
    backends: [cpu]
    rows: {double: {T: double, Tind: int64}}
    cases: [{name: plain, X: [2, 3]}]
"""
    forward = """  - name: Others
    doc: Half the sum of the squares of all but the label's.
    backends: [cpu]
    formulas: {Y: "sum(where(index(C) == label, 0, X * X / 2 * where(given(weight), weight[label], 1)), C)"}
    inputs:
      X: {type: T, shape: [N, C]}
      label: {type: Tind, shape: [N]}
      weight: {type: T, shape: [C], optional: true}
    outputs: {Y: {type: T, shape: [N]}}
    rows: {double: {T: double, Tind: int64}}
    cases: [{name: plain, X: [2, 3]}]
"""
    head = "schema_version: 1\ndomain: com.example\nsince_version: 1\nops:\n"
    _, diagnostics = load(head + forward + example + rest)
    assert diagnostics == []


def test_what_reduces_nothing_and_is_no_map_is_a_row_of_all_dims() -> None:
    formulas = ("Y: where(flag, W, X + W)", "Z: not flag")
    outputs = (Y, "Z: {type: bool, shape: []}")
    op = op_of(formulas, outputs, ('W: {type: T1, shape: ["*P", "*S"]}', OF_CALL), ", T1: float")
    assert steps(op).schedule.over == {"P", "S"}
    assert operands(op) == [["X", "W", "flag", "Y", "Z"]]
    made = functor(op)
    assert lines(made, "Map") == ["out[0] = row.integers[0] != 0 ? in[1] : in[0] + in[1];"]
    assert lines(made, "RowOutputs") == ["outputs[0] = !(row.integers[0] != 0) ? A{1} : A{0};"]


FLAT = "static constexpr bool kIsFlat = true;"


def test_a_row_of_all_dims_of_which_nothing_is_reduced_is_flat() -> None:
    inputs = ('A: {type: T1, shape: ["*P", "*S"]}', OF_CALL)
    op = op_of(("Y: where(flag, A, X + A)", "Z: not flag"), (Y, "Z: {type: bool, shape: []}"), inputs, ", T1: float")
    assert FLAT in functor(op).constants
    assert kernels(op, op, steps(op).schedule) == [
        ("GRADSMITH_ROWS_KERNELS_OF_FLAT", "F", ("f16_f32", "__half", "float"))
    ]
    op = op_of(("Y: where(flag, X, 0)", "Z: not flag"), (Y, "Z: {type: bool, shape: []}"), (OF_CALL,))
    assert kernels(op, op, steps(op).schedule) == [("GRADSMITH_ROWS_KERNELS_OF_FLAT", "F", ("f16", "__half", "__half"))]


def test_along_a_flat_row_inputs_that_lack_dims_are_spread() -> None:
    op = op_of(
        ("Y: where(flag, X * scale + m, X)", "Z: flag"), (Y, "Z: {type: bool, shape: []}"), (SCALE, MEAN, OF_CALL)
    )
    schedule = steps(op).schedule
    assert schedule.over == {"P", "S"}
    assert [one.name for one in schedule.inputs[Role.ELEMENT]] == ["X", "scale", "m"]
    made = functor(op)
    assert FLAT in made.constants
    assert not any("kRowsOfManyDims" in one for one in made.constants)
    assert lines(made, "Map") == ["out[0] = row.integers[0] != 0 ? in[0] * in[1] + in[2] : in[0];"]


def test_the_page_s_example_of_a_flat_row_is_one(repository: Path) -> None:
    page = (repository / "docs/schema.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^  - name: Accumulate\n.*?(?=^```)", page, re.DOTALL | re.MULTILINE)
    example = re.sub(r"(: \{type: [^}]*)\}", r"\1, doc: a tensor}", example)
    rest = """    doc: Adds to what there is.
    backends: [cpu]
    dims: {D: {length: [0, 7], doc: further dims}}
    rows: {float_half: {T: float, T1: MLFloat16}}
    cases: [{name: plain, X: [2, 3]}]
"""
    head = "schema_version: 1\ndomain: com.example\nsince_version: 1\nops:\n"
    schema, diagnostics = load(head + example + rest)
    assert diagnostics == []
    assert schema
    assert FLAT in functor(schema.ops[0]).constants


def test_rows_that_are_several_or_reduced_are_not_flat() -> None:
    of_row = 'Z: {type: bool, shape: ["*P"]}'
    of_call = "Z: {type: bool, shape: []}"
    for formulas, outputs, inputs in (
        (("Y: X + m", "Z: m > 0"), (Y, of_row), (MEAN,)),
        (("most: max(X, P, S)", "Y: X - most", "Z: most > 0"), (Y, of_call), ()),
    ):
        op = op_of(formulas, outputs, inputs)
        assert FLAT not in functor(op).constants
        assert [one for one, _, _ in kernels(op, op, steps(op).schedule)] == ["GRADSMITH_ROWS_KERNELS_OF"]


def test_what_there_is_once_is_not_made_of_elements() -> None:
    of_call = "Z: {type: bool, shape: []}"
    assert problems(("Y: X + scale", "Z: scale > 0"), (Y, of_call), (SCALE,)) == [
        "G810 the formulas fit no pattern: 'Z' is bool, and such an output is of a row"
    ]
    assert problems(("Y: X + scale", "V: scale"), (Y, "V: {type: T, shape: []}"), (SCALE,)) == [
        "G810 'V' of [] lacks 'S', which its formula has; reduce over it: 'sum(..., S)'"
    ]
    # Beside an output that has some of the dims, nothing is flat.
    assert problems(("Y: X + scale + m", "Z: m > 0"), (Y, 'Z: {type: bool, shape: ["*P"]}'), (SCALE, MEAN)) == [
        "G810 the formulas fit no pattern: 'Z' is bool, and such an output is of a row"
    ]


def test_a_truth_value_is_of_a_row() -> None:
    formulas = ("most: max(X, S)", "Y: X == most", "Z: most > 0")
    assert problems(formulas, ("Y: {type: bool, like: X}", 'Z: {type: bool, shape: ["*P"]}')) == [
        "G810 the formulas fit no pattern: 'Y' is bool, and such an output is of a row"
    ]
    assert lines(functor(op_of((formulas[0], formulas[2]), ('Z: {type: bool, shape: ["*P"]}',))), "RowOutputs") == [
        "outputs[0] = row.results[0] > A{0} ? A{1} : A{0};"
    ]


def test_a_label_of_an_unknown_type_is_told(repository: Path, tmp_path: Path) -> None:
    """What it looks up is not asked for its type, which no row says."""
    schema = tmp_path / "ops.yaml"
    schema.write_text(
        "schema_version: 1\ndomain: com.example\nsince_version: 1\nops:\n  - name: Pick\n    doc: Looks up.\n"
        "    formulas: {Y: 'X * weight[label]'}\n    backends: [cpu]\n"
        "    inputs:\n      X: {type: T, shape: [N, C]}\n      label: {type: '*K', shape: [N]}\n"
        "      weight: {type: T, shape: [C]}\n    outputs:\n      Y: {type: T, like: X}\n"
        "    rows:\n      float: {T: float, Tind: int64}\n    cases:\n      - {name: plain, X: [2, 3], label: [2]}\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(repository / "codegen")}
    command = [sys.executable, "-m", "gradsmith_codegen", "check", str(schema)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 1 and "'*K'" in done.stderr, done.stderr
