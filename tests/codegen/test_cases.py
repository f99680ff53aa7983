"""Shapes of test cases, against values worked out by hand from the ONNX formulas."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from gradsmith_codegen.checks.evaluation import CaseEvaluator
from gradsmith_codegen.grammar import shape_rule
from gradsmith_codegen.model import AttributeValue
from gradsmith_codegen.reader import load_schema
from gradsmith_codegen.shape_rules import Dims, ImpossibleShape, SymbolValue, apply
from gradsmith_codegen.shapes import ShapeRule
from schemas import CONVOLVE, HEADERS, SCALE, edited, load, op_of

Attributes = dict[str, AttributeValue]


def rule_of(text: str) -> ShapeRule:
    """As an entry has it: with the formula of its family's header."""
    rule = shape_rule(text)
    assert rule
    return replace(rule, formula=HEADERS.rule_formula(rule.function))


CONV = rule_of("conv::OutputSpatial(D, K)")
TRANSPOSED = rule_of("conv::TransposedOutputSpatial(D, K)")
POOL = rule_of("pool::PooledSpatial(D)")
GLOBAL = rule_of("pool::GlobalSpatial(D)")


@pytest.mark.parametrize(
    ("attributes", "dims", "kernel", "output"),
    [
        ({}, (5, 6), (3, 2), (3, 5)),
        ({"strides": (2, 3)}, (9, 8), (2, 1), (4, 3)),
        # eff = (3 - 1) * 1 + 1 = 3 and (2 - 1) * 2 + 1 = 3; (9 + 0 + 1 - 3) / 2 + 1, (11 + 2 + 1 - 3) / 3 + 1
        ({"pads": (0, 2, 1, 1), "strides": (2, 3), "dilations": (1, 2)}, (9, 11), (3, 2), (4, 4)),
        ({"auto_pad": "SAME_UPPER", "strides": (2, 3)}, (7, 8), (4, 3), (4, 3)),
        ({"auto_pad": "SAME_LOWER", "strides": (2, 3)}, (7, 8), (4, 3), (4, 3)),
        ({"auto_pad": "VALID", "dilations": (2, 1)}, (7, 8), (4, 3), (1, 6)),
        ({"auto_pad": "SAME_UPPER"}, (2,), (9,), (2,)),
        ({}, (0,), (3,), (0,)),
        ({"pads": (2, 1)}, (0,), (3,), (1,)),
        ({"kernel_shape": (3, 2)}, (5, 6), (3, 2), (3, 5)),
    ],
)
def test_conv(attributes: Attributes, dims: Dims, kernel: Dims, output: Dims) -> None:
    assert apply(CONV, attributes, (dims, kernel)) == output


@pytest.mark.parametrize(
    ("attributes", "dims", "output"),
    [
        ({"kernel_shape": (3, 2)}, (9, 11), (7, 10)),
        ({"kernel_shape": (3,), "strides": (2,)}, (6,), (2,)),
        ({"kernel_shape": (3,), "strides": (2,), "ceil_mode": True}, (6,), (3,)),
        ({"kernel_shape": (3,), "strides": (2,), "ceil_mode": True}, (5,), (2,)),
        # The last window would begin in the pads at the end.
        ({"kernel_shape": (2,), "strides": (2,), "pads": (1, 1), "ceil_mode": True}, (7,), (4,)),
        ({"kernel_shape": (3,), "strides": (2,), "ceil_mode": True}, (2,), (1,)),
        ({"kernel_shape": (3,), "strides": (2,), "ceil_mode": True, "auto_pad": "VALID"}, (6,), (2,)),
        ({"kernel_shape": (4, 3), "strides": (2, 3), "auto_pad": "SAME_LOWER"}, (7, 8), (4, 3)),
        ({"kernel_shape": (3,)}, (0,), (0,)),
        ({"kernel_shape": (3,), "strides": (2,), "pads": (2, 2), "ceil_mode": True}, (0,), (1,)),
    ],
)
def test_pool(attributes: Attributes, dims: Dims, output: Dims) -> None:
    assert apply(POOL, attributes, (dims,)) == output
    assert apply(GLOBAL, {}, (dims,)) == (1,) * len(dims)


@pytest.mark.parametrize(
    ("attributes", "dims", "message"),
    [
        ({}, (5,), re.escape("attribute kernel_shape is []; expected the window's dims")),
        ({"kernel_shape": (3,)}, (5, 5), "'kernel_shape' must have 2 entries"),
        (
            {"kernel_shape": (9,), "strides": (2,), "ceil_mode": True},
            (4,),
            "has 4 positions .4 and pads 0, 0.; expected at least the 9",
        ),
        (
            {"kernel_shape": (1,), "pads": (0, 1), "auto_pad": "VALID"},
            (4,),
            "expected none, or zeros, where auto_pad is VALID",
        ),
    ],
)
def test_impossible_pool(attributes: Attributes, dims: Dims, message: str) -> None:
    with pytest.raises(ImpossibleShape, match=message):
        apply(POOL, attributes, (dims,))


@pytest.mark.parametrize(
    ("attributes", "dims", "kernel", "message"),
    [
        ({}, (2,), (3,), "at least the 3 that the window spans"),
        ({"dilations": (4,)}, (4,), (2,), "at least the 5 that the window spans"),
        ({"kernel_shape": (2,)}, (4,), (3,), "kernel_shape is .2.; expected W's spatial dims .3."),
        ({"auto_pad": "VALID", "pads": (1, 0)}, (4,), (3,), "expected none, or zeros, where auto_pad is VALID"),
        ({}, (4,), (0,), "has size 0; expected 1 or more"),
    ],
)
def test_impossible_conv(attributes: Attributes, dims: Dims, kernel: Dims, message: str) -> None:
    with pytest.raises(ImpossibleShape, match=message):
        apply(CONV, attributes, (dims, kernel))


@pytest.mark.parametrize(
    ("attributes", "dims", "kernel", "output"),
    [
        ({}, (4, 5), (3, 2), (6, 6)),
        # 2 * 3 + 3 - 0 - 1 = 8; 3 * 4 + 3 - 2 - 1 = 12
        ({"pads": (0, 2, 1, 1), "strides": (2, 3), "dilations": (1, 2)}, (4, 5), (3, 2), (8, 12)),
        # 2 * 3 + 1 + 3 - 2 = 8; 3 * 4 + 2 + 3 - 1 = 16
        ({"strides": (2, 3), "pads": (1, 0, 1, 1), "output_padding": (1, 2)}, (4, 5), (3, 3), (8, 16)),
        ({"strides": (2, 2), "output_shape": (8, 10)}, (4, 5), (3, 3), (8, 10)),
        ({"auto_pad": "SAME_UPPER", "strides": (2, 2)}, (4, 3), (4, 3), (8, 6)),
        ({"auto_pad": "VALID", "strides": (2, 1)}, (4, 3), (3, 2), (9, 4)),
        ({"strides": (4, 3)}, (3, 2), (2, 1), (10, 4)),
        ({}, (0,), (3,), (0,)),
        ({"output_shape": (4,)}, (0,), (3,), (4,)),
    ],
)
def test_conv_transpose(attributes: Attributes, dims: Dims, kernel: Dims, output: Dims) -> None:
    assert apply(TRANSPOSED, attributes, (dims, kernel)) == output


@pytest.mark.parametrize(
    ("attributes", "dims", "kernel", "message"),
    [
        ({"output_padding": (1,)}, (4,), (3,), "spatial axis 0: output_padding is 1; expected less than 1"),
        ({"pads": (2, 2)}, (2,), (2,), "cut from an output of 3 positions"),
        ({"output_shape": (4,), "pads": (1, 0)}, (4,), (3,), "output_shape sets the pads"),
        (
            {"output_shape": (4,), "auto_pad": "VALID"},
            (4,),
            (3,),
            "output_shape is given; expected none where auto_pad is VALID",
        ),
        ({"auto_pad": "SAME_LOWER", "pads": (0, 1)}, (4,), (3,), "where auto_pad is SAME_LOWER"),
        ({}, (4,), (0,), "has size 0; expected 1 or more"),
    ],
)
def test_impossible_conv_transpose(attributes: Attributes, dims: Dims, kernel: Dims, message: str) -> None:
    with pytest.raises(ImpossibleShape, match=message):
        apply(TRANSPOSED, attributes, (dims, kernel))


def test_output_padding_may_be_less_than_the_dilation() -> None:
    attributes: Attributes = {"output_padding": (2,), "dilations": (3,)}
    assert apply(TRANSPOSED, attributes, ((4,), (2,))) == (9,)


@pytest.mark.parametrize(
    ("op", "case", "shapes"),
    [
        ("Conv", "grouped", {"X": (2, 6, 5, 7), "W": (4, 3, 2, 3), "B": (4,), "Y": (2, 4, 5, 4)}),
        (
            "ConvGrad",
            "one_axis",
            # dilation 2 of 3 taps covers 5; (11 + 3 - 5) / 2 + 1 = 5
            {"dY": (3, 4, 5), "X": (3, 2, 11), "W": (4, 2, 3), "dX": (3, 2, 11), "dW": (4, 2, 3), "dB": (4,)},
        ),
        (
            "ConvTransposeGrad",
            "depthwise",
            # M = 2 * group 4; 2 * 2 + 3 - 2 = 5, 4 + 3 - 2 = 5
            {
                "dY": (2, 8, 5, 5),
                "X": (2, 4, 3, 5),
                "W": (4, 2, 3, 3),
                "dX": (2, 4, 3, 5),
                "dW": (4, 2, 3, 3),
                "dB": (8,),
            },
        ),
        (
            "BatchNormalizationGrad",
            "no_axis",
            {"dY": (8, 5), "X": (8, 5), "scale": (5,), "saved_mean": (5,), "saved_inv_std": (5,)}
            | {"dX": (8, 5), "dScale": (5,), "dBias": (5,)},
        ),
    ],
)
def test_all_shapes_of_cases(ops_yaml: Path, op: str, case: str, shapes: dict[str, Dims]) -> None:
    schema, _ = load_schema(ops_yaml)
    assert schema
    found = next(c for o in schema.ops if o.name == op for c in o.cases if c.name == case)
    assert list(dict(found.all_shapes).items()) == list(shapes.items())


def test_an_operator_that_reads_what_it_writes_lists_the_tensor_twice(ops_yaml: Path) -> None:
    schema, _ = load_schema(ops_yaml)
    assert schema
    op = next(op for op in schema.ops if op.name == "BatchNormalization")
    names = [name for name, _ in op.cases[0].all_shapes]
    assert names == [tensor.name for tensor in op.inputs + op.outputs]


def test_a_rule_that_python_does_not_know_needs_the_shapes_it_would_give() -> None:
    text = edited(
        SCALE,
        ("Y: {type: T, like: X}", 'Y: {type: T, shape: [N, "*O"]}'),
        (
            "      D: {length: [0, 3]}",
            '      D: {length: [0, 3]}\n      O: {length: D, rule: "scale::Larger(D)"}',
        ),
    )
    schema, (fault,) = load(text)
    assert schema is None
    assert fault.id == "G609"
    assert "scale::Larger(D)" in fault.message
    assert [note.message for note in fault.notes] == ["case 'plain' gives none"]
    schema, diagnostics = load(edited(text, ("X: [2, 3]}", "X: [2, 3], Y: [2, 6]}")))
    assert diagnostics == []
    assert schema
    assert schema.ops[0].cases[0].all_shapes == (("X", (2, 3)), ("Y", (2, 6)))


def test_a_misspelt_rule_is_one_fault_for_each_place_where_it_stands() -> None:
    (op,) = re.findall(r"  - name: Convolve\n.*", CONVOLVE, re.DOTALL)
    text = edited(CONVOLVE, ("OutputSpatial", "OutputSpatail")) + edited(
        op, ("OutputSpatial", "OutputSpatail"), ("name: Convolve", "name: Convolve2")
    )
    text = text.replace("    cases:\n", "    cases:\n      - {name: other, X: [1, 4, 7, 6], W: [6, 4, 3, 2]}\n")
    assert text.count("name: other") == 2
    _, diagnostics = load(text)
    lines = [number for number, line in enumerate(text.splitlines(), 1) if "OutputSpatail" in line]
    assert [(fault.id, fault.span and fault.span.line) for fault in diagnostics] == [("G321", n) for n in lines]
    assert all(fault.message.endswith("; did you mean 'conv::OutputSpatial'?") for fault in diagnostics)


@pytest.mark.parametrize(
    ("case", "rule"),
    [
        ("X: [2]", None),
        ("X: []", "G604"),
        ("X: [1, 2, 3, 4, 5]", "G604"),
        ("X: [2, 3], Y: [2, 4]", "G605"),
        ("X: [65536, 65536]", "G610"),
        ("X: [2147483647]", None),
        ("X: [9223372036854775807, 0]", None),
        ("factor: 2.0", "G609"),
    ],
)
def test_shapes_of_a_simple_case(case: str, rule: str | None) -> None:
    faults = [fault.id for fault in load(edited(SCALE, ("X: [2, 3]", case)))[1]]
    assert faults == ([rule] if rule else [])


@pytest.mark.parametrize(
    ("shape", "case", "rule"),
    [
        ("[N, 3]", "X: [2, 3]", None),
        ("[N, 3]", "X: [2, 4]", "G605"),
        ("[N, N]", "X: [3, 3]", None),
        ("[N, N]", "X: [3, 4]", "G605"),
    ],
)
def test_sizes_that_the_schema_fixes(shape: str, case: str, rule: str | None) -> None:
    text = edited(SCALE, ('[N, "*D"]', shape), ("    dims:\n      D: {length: [0, 3]}\n", ""), ("X: [2, 3]", case))
    faults = [fault.id for fault in load(text)[1]]
    assert faults == ([rule] if rule else [])


@pytest.mark.parametrize(
    ("edits", "rule", "strides", "kernel", "words"),
    [
        (
            [("K: {length: D}", "K: {length: 1}"), ("W: [6, 4, 3, 2]", "W: [6, 4, 3]")],
            *("G324", (), (3,), "one length; D has 2 and K has 1"),
        ),
        (
            [("min: 1, length: D", "min: 1"), ("3, 2]}", "3, 2], strides: [1]}")],
            *("G409", (1,), (3, 2), "must have 2 entries, not 1"),
        ),
        (
            [("min: 1, length: D", "length: D"), ("3, 2]}", "3, 2], strides: [1, 0]}")],
            *("G409", (1, 0), (3, 2), "divides by 0; expected 1 or more"),
        ),
    ],
)
def test_a_schema_that_gives_a_rule_what_it_cannot_take(
    edits: list[tuple[str, str]], rule: str, strides: Dims, kernel: Dims, words: str
) -> None:
    """It is told what the kernel takes; the rule itself refuses it too, for kernels that do not say."""
    assert load(CONVOLVE)[1] == []
    (fault,) = load(edited(CONVOLVE, *edits))[1]
    assert fault.id == rule
    with pytest.raises(ImpossibleShape, match=words):
        apply(CONV, {"strides": strides}, ((5, 6), kernel))


@pytest.mark.parametrize("arguments", [((5, 6),), ((5, 6), 2)])
def test_a_rule_that_is_not_given_two_lists(arguments: tuple[SymbolValue, ...]) -> None:
    with pytest.raises(ImpossibleShape, match="takes lists of dims alone, D and K"):
        apply(CONV, {}, arguments)


def test_a_rule_that_is_given_a_number_where_it_takes_a_list() -> None:
    """As by an operator of a kernel whose header says nothing of its attributes."""
    with pytest.raises(ImpossibleShape, match="a list of integers as 'strides'"):
        apply(CONV, {"strides": 1}, ((5, 6), (3, 2)))


def test_a_default_that_cannot_be_is_not_worked_with() -> None:
    text = edited(CONVOLVE, ("group: {type: int, default: 1", "group: {type: int, default: 0"))
    assert [fault.id for fault in load(text)[1]] == ["G404"]


@pytest.mark.parametrize(
    ("case", "first", "second", "rule"),
    [
        ("X: [2, 4, 5, 6], W: [6, 4, 3, 2]", (), ("default: 1, min", "default: 2, min"), "G605"),
        ("X: [2, 4, 5, 6], W: [6, 4, 3, 2]", (), ("length: [1, 3]", "length: [1, 1]"), "G604"),
    ],
)
def test_ops_that_differ_in_what_shapes_depend_on_are_worked_out_apart(
    case: str, first: tuple[str, str], second: tuple[str, str], rule: str
) -> None:
    text = edited(CONVOLVE, ("X: [2, 4, 5, 6], W: [6, 4, 3, 2]", case))
    op = edited(text[text.index("  - name: Convolve") :], ("name: Convolve", "name: Second"), second)
    forward = edited(text, first) if first else text
    (fault,) = load(forward + op)[1]
    assert fault.id == rule
    assert fault.span and fault.span.line > forward.count("\n")


BROADCAST = edited(
    SCALE,
    ('X: {type: T, shape: [N, "*D"]}', 'X: {type: T, shape: ["*D"]}\n      W: {type: T, shape: ["*S"]}'),
    ("D: {length: [0, 3]}", "D: {length: [0, 3]}\n      S: {length: [0, 3]}"),
    ("X: [2, 3]", "X: [2, 3], W: [2]"),
)
GIVEN = edited(
    SCALE,
    ("Y: {type: T, like: X}", "Y: {type: T, shape: [N, O]}"),
    ("D: {length: [0, 3]}", "D: {length: [0, 3]}\n      O: {given_by: outer}"),
    (
        "factor: {type: float, default: 1.0}",
        "outer: {type: int, default: 5, min: 1}\n      inner: {type: int, default: 7, min: 1}",
    ),
    ("X: [2, 3]", "X: [2, 3], Y: [2, 5]"),
)
AXIS = edited(
    SCALE,
    ('X: {type: T, shape: [N, "*D"]}', 'X: {type: T, shape: [N, "*D"]}\n      W: {type: T, shape: [M]}'),
    ("factor: {type: float, default: 1.0}", "axis: {type: int, default: 0, axis_of: X}"),
    ("X: [2, 3]", "X: [2, 3], W: [4], axis: 1"),
)
CONDITION = edited(
    SCALE,
    ("D: {length: [0, 3]}", "D: {length: [0, 3], length_if: {flat: 1}}"),
    ("factor: {type: float, default: 1.0}", "flat: {type: bool, default: false}"),
    ("X: [2, 3]", "X: [2, 3], flat: true"),
)


@pytest.mark.parametrize(
    ("text", "edit", "rule"),
    [
        (BROADCAST, ("S: {length: [0, 3]", "S: {length: [0, 3], broadcast_to: D"), "G605"),
        (GIVEN, ("given_by: outer", "given_by: inner"), "G605"),
        (AXIS, ("axis_of: X", "axis_of: W"), "G611"),
        (CONDITION, ("{flat: 1}", "{flat: 2}"), "G604"),
    ],
)
def test_each_thing_that_shapes_depend_on_tells_ops_apart(text: str, edit: tuple[str, str], rule: str) -> None:
    """One after another, as what is worked out of the first is kept."""
    assert load(text)[1] == []
    second = edited(text[text.index("  - name: Scale") :], ("name: Scale", "name: Second"), edit)
    (fault,) = load(text + second)[1]
    assert fault.id == rule
    assert fault.span and fault.span.line > text.count("\n")


def test_what_an_attribute_may_be_tells_ops_apart() -> None:
    """Of a value that an attribute may not have nothing is worked out."""
    op = op_of(edited(CONVOLVE, ("W: [6, 4, 3, 2]", "W: [6, 4, 3, 2], auto_pad: VALID")))
    choices = [one.choices[:-1] if one.name == "auto_pad" else one.choices for one in op.attributes]
    attributes = tuple(replace(one, choices=two) for one, two in zip(op.attributes, choices, strict=True))
    evaluator = CaseEvaluator()
    assert evaluator.evaluate(replace(op, attributes=attributes)).cases[0].all_shapes == ()
    assert dict(evaluator.evaluate(op).cases[0].all_shapes)["Y"] == (2, 6, 3, 5)


@pytest.mark.parametrize(
    ("shape", "dims", "right"),
    [
        ('["*D"]', "      D: {length: [0, 3]}\n", True),
        ("[]", "", True),
        ('["*D"]', "      D: {length: [1, 3]}\n", False),
        ('[N, "*D"]', "      D: {length: [0, 3]}\n", False),
        ("[N]", "", False),
        ("[1]", "", False),
    ],
)
def test_a_scalar_is_right_where_the_shape_allows_it(shape: str, dims: str, right: bool) -> None:
    text = edited(SCALE, ('[N, "*D"]', shape), ("      D: {length: [0, 3]}\n", dims), ("X: [2, 3]", "X: []"))
    text = text if dims else edited(text, ("    dims:\n", ""))
    schema, faults = load(text)
    assert [fault.id for fault in faults] == ([] if right else ["G604"])
    assert not schema or dict(schema.ops[0].cases[0].all_shapes) == {"X": (), "Y": ()}
