"""From text to the model, and which faults are reported how often."""

from __future__ import annotations

from pathlib import Path

import pytest
from gradsmith_codegen.data_types import DataType
from gradsmith_codegen.model import AttributeKind, Backend, Layout, LengthRule, Op, Schema
from gradsmith_codegen.reader import load_schema
from gradsmith_codegen.shapes import Dim, DimKind
from gradsmith_codegen.spans import Span
from gradsmith_codegen.text import Text
from schemas import SCALE, edited, errors, load


def _clean(text: str) -> Schema:
    schema, diagnostics = load(text)
    assert not diagnostics
    assert schema
    return schema


def _faults(text: str) -> list[tuple[str, int]]:
    """The id and the line of each diagnostic."""
    return [(fault.id, fault.span.line if fault.span else 0) for fault in load(text)[1]]


def _messages(text: str) -> list[str]:
    return [fault.message for fault in load(text)[1]]


def test_ops_yaml_is_clean(ops_yaml: Path) -> None:
    schema, diagnostics = load_schema(ops_yaml)
    assert diagnostics == []
    assert schema
    assert schema.file == Text("ops.yaml")
    assert {"Conv", "ConvGrad", "ConvTranspose", "ConvTransposeGrad"} <= {op.name for op in schema.ops}
    assert {"BatchNormalization", "BatchNormalizationGrad"} <= {op.name for op in schema.ops}
    assert all(case.all_shapes for op in schema.ops for case in op.cases)


@pytest.fixture(scope="module")
def ops(ops_yaml: Path) -> dict[str, Op]:
    schema, _ = load_schema(ops_yaml)
    assert schema
    return {op.name: op for op in schema.ops}


def test_an_operator_has_all_that_its_entry_says() -> None:
    schema = _clean(SCALE)
    (op,) = schema.ops
    assert (schema.version, schema.domain, schema.since_version) == (1, "com.example", 1)
    assert (op.name, op.doc, op.kernel) == ("Scale", Text("Y is X times factor."), "scale::Scale")
    assert (op.backends, op.gradient_of, op.type_parameters) == ((Backend.CPU,), "", ("T",))
    assert (op.line, op.span) == (5, Span(5, 11, 5))
    assert [(row.name, row.types) for row in op.rows] == [("float", (("T", DataType.FLOAT),))]
    (case,) = op.cases
    assert (case.name, case.shapes, case.attributes) == ("plain", (("X", (2, 3)),), ())
    assert case.layout is Layout.CONTIGUOUS
    assert case.all_shapes == (("X", (2, 3)), ("Y", (2, 3)))


def test_shapes(ops: dict[str, Op]) -> None:
    dims = ops["Conv"].inputs[1].shape
    assert [dim.text for dim in dims] == ["M", "C / group", "*K"]
    assert dims == (
        Dim(DimKind.SYMBOL, "M", symbol="M"),
        Dim(DimKind.QUOTIENT, "C / group", symbol="C", divisor="group"),
        Dim(DimKind.SYMBOL, "*K", symbol="K", is_list=True),
    )


def test_a_size_can_be_a_number() -> None:
    op = _clean(edited(SCALE, ('[N, "*D"]', "[N, 3]"), ("    dims:\n      D: {length: [0, 3]}\n", ""))).ops[0]
    assert [(dim.kind, dim.constant) for dim in op.inputs[0].shape] == [
        (DimKind.SYMBOL, 0),
        (DimKind.CONSTANT, 3),
    ]


def test_a_tensor_like_another_has_its_shape(ops: dict[str, Op]) -> None:
    grad = ops["ConvGrad"]
    assert grad.outputs[0].shape == grad.inputs[1].shape
    assert grad.outputs[0].shape_text == "[N, C, *D]"


def test_symbols_stand_in_order_of_first_use(ops: dict[str, Op]) -> None:
    symbols = {symbol.name: symbol for symbol in ops["ConvGrad"].symbols}
    assert list(symbols) == ["N", "M", "O", "C", "D", "K"]
    assert not symbols["N"].is_list
    assert (symbols["D"].min_length, symbols["D"].max_length) == (1, 3)
    assert (symbols["K"].length_of, symbols["K"].min_length, symbols["K"].max_length) == ("D", 1, 3)
    rule = symbols["O"].rule
    assert rule
    assert (rule.function, rule.arguments) == ("conv::OutputSpatial", ("D", "K"))


def test_attributes(ops: dict[str, Op]) -> None:
    attributes = {attribute.name: attribute for attribute in ops["Conv"].attributes}
    assert attributes["pads"].kind is AttributeKind.INTS
    assert attributes["pads"].length == LengthRule(2, "D")
    assert (attributes["group"].default, attributes["group"].minimum, attributes["group"].maximum) == (
        1,
        1,
        None,
    )
    assert attributes["auto_pad"].enum == "AutoPad"
    assert attributes["auto_pad"].choices == ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
    epsilon = ops["BatchNormalization"].attributes[0]
    assert (epsilon.kind, epsilon.default) == (AttributeKind.FLOAT, 1e-5)


def test_merged_entries_come_first_and_can_be_overridden(ops: dict[str, Op]) -> None:
    conv = [attribute.name for attribute in ops["Conv"].attributes]
    transpose = [attribute.name for attribute in ops["ConvTranspose"].attributes]
    assert transpose == [*conv, "output_padding", "output_shape"]
    text = edited(
        SCALE,
        ("attributes:\n", "attributes:\n      <<: [{factor: {type: float, default: 5.0}}, {factor: {}}]\n"),
    )
    assert _clean(text).ops[0].attributes[0].default == 1.0
    without_own = edited(text, ("      factor: {type: float, default: 1.0}\n", ""))
    assert _clean(without_own).ops[0].attributes[0].default == 5.0


def test_rows_take_the_order_of_the_type_parameters() -> None:
    text = edited(SCALE, ("Y: {type: T, like", "Y: {type: T1, like"), ("{T: float}", "{T1: half, T: bf16}"))
    assert _clean(text).ops[0].rows[0].types == (("T", DataType.BFLOAT16), ("T1", DataType.MLFLOAT16))


def test_element_types_have_their_own_names() -> None:
    op = _clean(edited(SCALE, ("Y: {type: T,", "Y: {type: half,"))).ops[0]
    assert op.outputs[0].type == "MLFloat16"
    assert op.type_parameters == ("T",)


def test_values_know_where_they_stand() -> None:
    op = _clean(SCALE).ops[0]
    assert op.at("kernel") == Span(7, 13, 12)
    assert op.attributes[0].at("default") == Span(16, 38, 3)
    assert op.attributes[0].at("min") == op.attributes[0].span == Span(16, 7, 6)
    assert op.cases[0].at("X") == Span(20, 26, 6)


def test_comments_and_places_do_not_change_what_a_schema_says() -> None:
    def names(schema: Schema) -> list[tuple[str, tuple[str, ...]]]:
        return [(op.name, tuple(row.name for row in op.rows)) for op in schema.ops]

    moved = _clean("# a comment\n\n" + SCALE)
    assert names(moved) == names(_clean(SCALE))
    assert moved.ops[0].line == 7
    assert moved.ops[0].rows == _clean(SCALE).ops[0].rows


# -- Faults ---


def test_all_faults_are_reported_in_one_run_in_order() -> None:
    text = edited(
        SCALE,
        ("com.example", "no"),
        ("doc: Y is X times factor.", "doc: ''"),
        ("scale::Scale", "Scale"),
        ("[cpu]", "[gpu]"),
        ("type: T,", "typ: T,"),
        ("[0, 3]", "9"),
        ("default: 1.0", "default: many"),
        ("{T: float}", "{T: flaot}"),
    )
    assert _faults(text) == [
        ("G011", 2),
        ("G024", 6),
        ("G029", 7),
        ("G015", 8),
        ("G008", 10),
        ("G027", 14),
        ("G401", 16),
        ("G014", 18),
    ]


def test_a_misspelt_key_is_not_missing_too() -> None:
    assert _messages(edited(SCALE, ("    rows:", "    row:"))) == [
        "unknown key 'row' in operator 'Scale'; did you mean 'rows'?"
    ]


def test_a_misspelt_optional_key_has_no_consequences() -> None:
    text = edited(SCALE, ("attributes:", "atributes:"), ("X: [2, 3]}", "X: [2, 3], factor: 2.0}"))
    assert _messages(text) == ["unknown key 'atributes' in operator 'Scale'; did you mean 'attributes'?"]


def test_an_unknown_key_without_a_near_one_is_told_what_can_be_there() -> None:
    (message,) = _messages(edited(SCALE, ("      D: {length", "      D: {xyz: 1, length")))
    keys = "length_if, rule, broadcast_to, given_by, multiple_of, split, doc"
    assert message == f"unknown key 'xyz' in symbol 'D'; expected one of {keys}"


def test_a_faulty_type_does_not_make_rows_wrong() -> None:
    text = edited(SCALE, ("X: {type: T,", "X: {type: flaot,"), ("Y: {type: T,", "Y: {type: float,"))
    assert _messages(text) == ["unknown type 'flaot'; did you mean 'float'?"]


def _two_scales(shared: str) -> str:
    """Two operators, the second with the first's value of a key."""
    second = SCALE[SCALE.index("  - name") :].replace("name: Scale", "name: Stretch")
    lines = second.splitlines(keepends=True)
    start = next(i for i, line in enumerate(lines) if line.strip().startswith(f"{shared}:"))
    end = next(i for i in range(start + 1, len(lines) + 1) if i == len(lines) or not lines[i].startswith("      "))
    lines[start:end] = [f"    {shared}: *shared\n"]
    return edited(SCALE, (f"    {shared}:", f"    {shared}: &shared")) + "".join(lines)


@pytest.mark.parametrize(
    ("shared", "old", "new", "rule"),
    [
        ("rows", "{T: float}", "{T: flaot}", "G014"),
        ("rows", "{T: float}", "{T: float, T1: half}", "G202"),
        ("cases", "[2, 3]}", "[2, x]}", "G012"),
        ("cases", "X: [2, 3]}", "X: [2, 3, 4, 5, 6]}", "G604"),
        ("cases", "X: [2, 3]}", "X: [2, 3], factro: 1.0}", "G008"),
        ("attributes", "default: 1.0", "default: 1.0, max: 0", "G404"),
        ("dims", "{length: [0, 3]}", "{length: E}", "G309"),
        ("inputs", '[N, "*D"]', '["*D", "*D"]', "G316"),
    ],
)
def test_what_is_shared_is_reported_once(shared: str, old: str, new: str, rule: str) -> None:
    text = _two_scales(shared)
    assert _faults(text) == []
    assert [fault.id for fault in load(edited(text, (old, new)))[1]] == [rule]


def test_what_only_another_operator_makes_wrong_tells_which() -> None:
    text = _two_scales("rows")
    own, other = text[: text.index("  - name: Stretch")], text[text.index("  - name: Stretch") :]
    own = edited(own, ("{T: float}", "{T: float, T1: half}"), ("Y: {type: T,", "Y: {type: T1,"))
    (fault,) = load(own + other)[1]
    assert (fault.id, fault.span and fault.span.line) == ("G202", 18)
    assert [(note.message, note.span.line) for note in fault.notes] == [("used by operator 'Stretch'", 21)]


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "---\n"])
def test_nothing_is_no_schema(text: str) -> None:
    assert [fault.id for fault in load(text)[1]] == ["G004"]


@pytest.mark.parametrize("text", ["a", "- a", "3", "'text'", "[]", "~"])
def test_only_a_mapping_is_a_schema(text: str) -> None:
    assert [fault.id for fault in load(text)[1]] == ["G010"]


def test_a_fault_on_the_last_line_of_an_entry_is_not_said_to_be_used_by_it() -> None:
    op = SCALE[SCALE.index("  - name: Scale") :]
    text = edited(SCALE, ("X: [2, 3]", "X: []")) + edited(op, ("name: Scale", "name: Second"))
    (fault,) = load(text)[1]
    assert (fault.id, fault.notes) == ("G604", ())


GRADIENT_OP = """\
  - name: ScaleGrad
    doc: The gradient of Scale.
    gradient_of: Scale
    kernel: scale::ScaleGrad
    backends: [cpu]
    inputs:
      dY: {type: T, shape: [N, M], gradient_of: Y}
      factor: {type: T1, shape: [N]}
    outputs:
      dX: {type: T, shape: [N, M], gradient_of: X}
    rows:
      float: {T: float, T1: float}
    cases:
      - {name: plain, dY: [2, 2]}
"""

SCALE_BY_TENSOR = edited(
    SCALE,
    ('[N, "*D"]}\n', "[N, C]}\n      factor: {type: T1, shape: [N]}\n"),
    ("    dims:\n      D: {length: [0, 3]}\n    attributes:\n      factor: {type: float, default: 1.0}\n", ""),
    ("{T: float}", "{T: float, T1: float}"),
)


@pytest.mark.parametrize(
    ("forward", "gradient", "rule"),
    [
        ((), (), None),
        ((), (("T1: float", "T1: double"),), "G506"),
        ((("[N, C]", "[N, N]"), ("X: [2, 3]", "X: [2, 2]")), (), "G507"),
    ],
)
def test_a_gradient_fits_its_forward_in_every_type_and_every_symbol(
    forward: tuple[tuple[str, str], ...], gradient: tuple[tuple[str, str], ...], rule: str | None
) -> None:
    diagnostics = errors(load(edited(SCALE_BY_TENSOR, *forward) + edited(GRADIENT_OP, *gradient))[1])
    assert list(dict.fromkeys(fault.id for fault in diagnostics)) == ([rule] if rule else [])
