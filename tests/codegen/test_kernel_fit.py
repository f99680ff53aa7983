"""Types, lengths, ranges and gradients of operators against what kernels say of themselves."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest
from gradsmith_codegen.diagnostics import Diagnostic
from gradsmith_codegen.kernel_headers import RUNTIME, KernelHeaders
from gradsmith_codegen.loader import source_of
from gradsmith_codegen.reader import load_source
from schemas import CONVOLVE, edited, errors, load
from test_kernel_shapes import GRADIENT, NORMALIZE

ONE_TYPE = "'X', 'W' and 'Y'"


def told(text: str, headers: KernelHeaders | None = None) -> list[str]:
    _, found = load_source(source_of("ops.yaml", text), headers=headers) if headers else load(text)
    return [f"{one.id} {one.span.line if one.span else 0}: {one.message}" for one in errors(found)]


def places(found: list[Diagnostic]) -> list[tuple[str, int]]:
    return [(one.id, one.span.line if one.span else 0) for one in found]


# ----------------------------------------------------------------------------------------------------
# Types


@pytest.mark.parametrize("wrong", ["X", "W", "Y"])
@pytest.mark.parametrize("name", ["half", "bf16", "double", "MLFloat16"])
def test_a_fixed_type_is_not_that_of_a_row(wrong: str, name: str) -> None:
    text = edited(CONVOLVE, (f"{wrong}: {{type: T,", f"{wrong}: {{type: {name},"))
    line = text[: text.index(f"{wrong}: {{type: {name}")].count("\n") + 1
    (fault,) = told(text)
    assert fault.startswith(f"G705 {line}: '{wrong}' is ")
    assert fault.endswith(f"kernel conv::Conv takes one type for {ONE_TYPE}")


def test_a_fixed_type_is_right_where_rows_bind_it() -> None:
    assert told(edited(CONVOLVE, ("W: {type: T,", "W: {type: float,"))) == []


def test_every_row_is_compared() -> None:
    fixed = edited(CONVOLVE, ("W: {type: T,", "W: {type: float,"), ("      float: {T: float}\n", ROWS))
    assert [fault[:10] for fault in told(fixed)] == ["G705 11: '"]
    two = edited(CONVOLVE, ("W: {type: T,", "W: {type: T1,"), ("      float: {T: float}\n", MIXED))
    message = f"'W' is double in row 'mixed', and 'X' float; kernel conv::Conv takes one type for {ONE_TYPE}"
    assert told(two) == [f"G705 26: {message}"]


ROWS = "      float: {T: float}\n      half: {T: half}\n      double: {T: double}\n"
MIXED = "      float: {T: float, T1: float}\n      mixed: {T: float, T1: double}\n"


@pytest.mark.parametrize("types", list(product(["float", "half"], repeat=3)))
def test_every_mix_of_three_types_of_a_batch_normalization(types: tuple[str, ...]) -> None:
    text = NORMALIZE
    for tensor, name in (("scale", "T1"), ("B", "T1"), ("running_mean", "T2"), ("running_var", "T2")):
        text = edited(text, (f"{tensor}: {{type: T,", f"{tensor}: {{type: {name},"))
    text = edited(text, ("saved_mean: {type: T,", "saved_mean: {type: T2,"))
    row = ", ".join(f"{name}: {bound}" for name, bound in zip(("T", "T1", "T2"), types, strict=True))
    assert told(edited(text, ("{T: float}", f"{{{row}}}"))) == []
    wrong = edited(text, ("B: {type: T1", "B: {type: T2"), ("{T: float}", f"{{{row}}}"))
    assert [fault[:4] for fault in told(wrong)] == ([] if types[1] == types[2] else ["G705"])


def test_a_type_unlike_the_forwards_is_told_once() -> None:
    wrong = CONVOLVE + edited(GRADIENT, ("W: {type: T,", "W: {type: half,"))
    assert [fault[:4] for fault in told(wrong)] == ["G507"]


def kernels(tmp_path: Path, *edits: tuple[str, str]) -> KernelHeaders:
    """The convolutions' header, edited."""
    (tmp_path / "conv").mkdir(exist_ok=True)
    text = (RUNTIME / "conv/kernels.h").read_text(encoding="utf-8")
    (tmp_path / "conv/kernels.h").write_text(edited(text, *edits), encoding="utf-8")
    return KernelHeaders([tmp_path])


LIMITS = "static constexpr std::string_view kLimits ="
TYPES = '"X T, W T, B T, Y T"'
THREE_ROWS = edited(CONVOLVE, ("      float: {T: float}\n", ROWS))


@pytest.mark.parametrize(
    ("types", "backends", "expected"),
    [
        ("X T, W T, B T, Y T, T = float | half", "[cpu]", ["G705 27: 'X' is double in row 'double'"]),
        ("X T, W T, B T, Y T, T = float | half on cuda", "[cpu]", []),
        ("X T, W T, B T, Y T, T = float | half on cuda", "[cpu, cuda]", ["G705 27: 'X' is double in row 'double'"]),
        ("X T, W T, B T, Y double", "[cpu]", ["G705 13: 'Y' is float in row 'float'"] * 2),
    ],
)
def test_a_kernel_of_fewer_types(tmp_path: Path, types: str, backends: str, expected: list[str]) -> None:
    headers = kernels(tmp_path, (TYPES, f'"{types}"'))
    text = edited(THREE_ROWS, ("[cpu]", backends))
    found = told(text, headers)
    if "Y double" in types:
        assert [fault.partition(" is ")[0] for fault in found] == ["G705 25: 'Y'", "G705 26: 'Y'"]
        assert told(edited(text, ("Y: {type: T,", "Y: {type: double,")), headers) == []
    else:
        assert [fault.partition(";")[0] for fault in found] == expected


# ----------------------------------------------------------------------------------------------------
# Lengths, multiples, ranges


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("D: {length: [1, 3]}", "D: {length: [1, 4]}", "G324 15: 'D' has 1 to 4 dims"),
        ("D: {length: [1, 3]}", "D: {length: [0, 3]}", "G324 15: 'D' has 0 to 3 dims"),
        ("D: {length: [1, 3]}", "D: {length: 4}", "G324 15: 'D' has 4 dims"),
        ("D: {length: [1, 3]}", "D: {length: 2}", ""),
        ("K: {length: D}", "K: {length: [1, 3]}", "G324 16: 'K' need not have as many dims as 'D'"),
        ("O: {length: D,", "O: {length: 2,", "G324 18: 'O' need not have as many dims as 'D'"),
        ("O: {length: D,", "O: {length: K,", ""),
        ("      M: {multiple_of: group}\n", "", "G324 11: 'M' need not be a multiple of 'group'"),
        ("M: {multiple_of: group}", "M: {doc: rows}", "G324 17: 'M' need not be a multiple of 'group'"),
        ("ints, default: [], min: 1", "ints, default: []", "G409 20: attribute 'strides' may be less than 1"),
        ("ints, default: [], min: 1", "ints, default: [], min: 0", "G409 20: attribute 'strides' may be less than 1"),
        ("ints, default: [], min: 1", "ints, default: [], min: 2", ""),
        ("min: 0, length: 2 * D", "min: -1, length: 2 * D", "G409 21: attribute 'pads' may be less than 0"),
        ("length: 2 * D", "length: D", "G409 21: attribute 'pads' has the length D; kernel conv::Conv takes 2 * D"),
        ("length: 2 * D", "length: 2 * K", ""),
        (", length: 2 * D", "", "G409 21: attribute 'pads' has no length, and kernel conv::Conv takes 2 * D"),
        ("min: 1, length: D", "min: 1, length: 2 * D", "G409 20: attribute 'strides' has the length 2 * D"),
    ],
)
def test_limits_of_a_convolution(old: str, new: str, expected: str) -> None:
    found = told(edited(CONVOLVE, (old, new)))
    assert [fault[: len(expected)] for fault in found] == ([expected] if expected else [])


def test_the_least_that_is_said_can_be_written(tmp_path: Path) -> None:
    headers = any_kernel(tmp_path, f'{LIMITS} "epsilon min 1e-5";', ("std::int64_t group = 1;", "double epsilon = 1;"))
    group = "group: {type: int, default: 1, min: 1}"
    text = edited(CONVOLVE, (group, "epsilon: {type: float, default: 0.5}"), (" / group", ""))
    text = edited(text, ("      M: {multiple_of: group}\n", ""))
    (fault,) = told(text, headers)
    assert fault.startswith("G409 21: attribute 'epsilon' may be less than 1.0e-05, which")
    remedy = fault.rpartition("write '")[2].removesuffix("'")
    assert told(edited(text, ("default: 0.5}", f"default: 0.5, {remedy}}}")), headers) == []


def test_a_fixed_number_of_dims_has_no_length_to_refer_to() -> None:
    flat = edited(NORMALIZE, ('[N, C, "*D"]', "[N, C, H, W, A, B1]"), ("    dims:\n      D: {length: [0, 3]}\n", ""))
    found = told(edited(flat, ("X: [2, 4, 5, 6]", "X: [2, 4, 5, 6, 1, 1]")))
    assert found == ["G324 10: 'H, W, A, B1' has 4 dims; kernel batch_norm::BatchNormalizationRelu takes 0 to 3"]


def test_a_range_of_both_sides() -> None:
    momentum = "    attributes:\n      momentum: {type: float, default: 0.9, min: 0, max: 1}\n    rows:\n"
    text = edited(NORMALIZE, ("    rows:\n", momentum))
    assert told(text) == []
    (fault,) = told(edited(text, (", max: 1}", ", max: 1.5}")))
    assert "may be more than 1, which is the most" in fault


def test_cases_are_not_blamed_for_a_wrong_length() -> None:
    """Each of them would be refused for it."""
    cases = "".join(
        f"      - {{name: c{i}, X: [2, 4, 5, 6], W: [6, 4, 3, 2], pads: [1, 0, 1, {i}]}}\n" for i in range(18)
    )
    text = edited(CONVOLVE, ("length: 2 * D", "length: D"))
    assert [fault[:8] for fault in told(text + cases)] == ["G409 21:"]


# ----------------------------------------------------------------------------------------------------
# In place, gradients


def test_only_what_the_kernel_says_is_written_in_place() -> None:
    text = edited(NORMALIZE, ("    outputs:\n", "    outputs:\n      running_mean: {type: T, shape: [C]}\n"))
    assert [fault[:4] for fault in told(edited(text, ("shape: [C]}\n      Y", "shape: [C], in_place_of: B}\n      Y")))]
    right = edited(text, ("shape: [C]}\n      Y", "shape: [C], in_place_of: running_mean}\n      Y"))
    assert told(right) == []
    (fault,) = told(edited(NORMALIZE, ("like: X}", "like: X, in_place_of: X}")))
    assert fault == "G707 16: kernel batch_norm::BatchNormalizationRelu does not write 'Y' in place of 'X'"


BOTH = edited(GRADIENT, ("    dims:\n", "      dW: {type: T, like: W, optional: true, gradient_of: W}\n    dims:\n"))


@pytest.mark.parametrize(
    ("edits", "line"),
    [
        ([(", gradient_of: X}", "}")], 38),
        ([(", gradient_of: W}", "}")], 39),
        ([(", gradient_of: Y}", "}")], 34),
        (
            [
                ("gradient_of: X}", "gradient_of: W}"),
                ("W, optional: true, gradient_of: W}", "W, optional: true, gradient_of: X}"),
            ],
            38,
        ),
        ([("gradient_of: Y}", "gradient_of: X}")], 34),
        ([('X: {type: T, shape: [N, C, "*D"]}', 'X: {type: T, shape: [N, C, "*D"], gradient_of: Y}')], 35),
    ],
)
def test_a_gradient_that_is_dropped_or_another(edits: list[tuple[str, str]], line: int) -> None:
    assert told(CONVOLVE + BOTH) == []
    assert [fault[:8] for fault in told(CONVOLVE + edited(BOTH, *edits))] == [f"G511 {line}:"]


def test_the_gradient_of_another_operator() -> None:
    """Whose shapes are the same: nothing else would tell."""
    other = NORMALIZE[NORMALIZE.index("  - name") :]
    other = edited(other, ("name: Normalize", "name: Plain"), ("BatchNormalizationRelu", "BatchNormalization"))
    gradient = """\
  - name: PlainGrad
    doc: Gradient of Plain.
    gradient_of: Plain
    kernel: batch_norm::BatchNormalizationGrad
    backends: [cpu]
    inputs:
      dY: {type: T, shape: [N, C, "*D"], gradient_of: Y}
      X: {type: T, shape: [N, C, "*D"]}
      scale: {type: T, shape: [C]}
      saved_mean: {type: T, shape: [C]}
      saved_inv_std: {type: T, shape: [C]}
    outputs:
      dX: {type: T, like: X, gradient_of: X}
    dims:
      D: {length: [0, 3]}
    rows:
      float: {T: float}
    cases:
      - {name: plain, X: [2, 4, 5, 6]}
"""
    std = (
        "saved_mean: {type: T, like: scale}",
        "saved_mean: {type: T, like: scale}\n      saved_inv_std: {type: T, like: scale}",
    )
    forwards = edited(NORMALIZE, std) + edited(other, std)
    assert told(forwards + gradient) == []
    (fault,) = told(forwards + edited(gradient, ("gradient_of: Plain", "gradient_of: Normalize")))
    assert fault.startswith("G500")
    hint = "did you mean 'gradient_of: Plain' or 'kernel: batch_norm::BatchNormalizationReluGrad'?"
    assert fault.endswith(f"'Normalize' has kernel batch_norm::BatchNormalizationRelu; {hint}")


# ----------------------------------------------------------------------------------------------------
# Headers that contradict themselves


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            '"X [N, C, *D], W',
            '"XX [N, C, *D], W',
            "kShapes has 'XX', which is no field of its Inputs or Outputs; did you mean 'X'?",
        ),
        ("B [M], Y", "Y", "kShapes lacks its field 'B'"),
        ("kShapes =", "kShape =", "it has no use for the text kShape; did you mean 'kShapes'?"),
        ("kTypes =", "Types =", "it has no use for the text Types; did you mean 'kTypes'?"),
        ("kLimits =", "kLimit =", "it has no use for the text kLimit; did you mean 'kLimits'?"),
        (
            "using Attributes = conv::Attributes;",
            "using Attributes = conv::Attributes;\n  static constexpr auto kGradientOf = Attributes::kGradientOf;",
            "kGradientOf is neither text nor another kernel's kGradientOf",
        ),
        ("kLimits =", "klimits =", "it has no use for the text klimits; did you mean 'kLimits'?"),
        ("view kLimits =", "view kLimit[] =", "it has no use for the text kLimit; did you mean 'kLimits'?"),
        ("kLimits =", "kBounds =", "it has no use for the text kBounds; expected one of kShapes, kTypes, kLimits, kG"),
        (
            "using Attributes = conv::Attributes;",
            "using Attributes = conv::Attributes;\npublic: constexpr static auto kGradientof = ConvGrad::kGradientOf;",
            "it has no use for the text kGradientof; did you mean 'kGradientOf'?",
        ),
        (
            "static constexpr std::string_view kTypes =",
            "public: constexpr static auto kTypes = 1 +",
            "kTypes is neither",
        ),
        ("struct Conv {", "struct Conv : Missing {", "Conv derives from what is no one struct of the header before it"),
        ("struct Conv {", "struct B : other::Conv {};\n\nstruct Conv : B {", "B derives from what is no one struct"),
        ("struct Conv {", "struct B {};\n\nstruct Conv : B, ConvBase {", "Conv derives from what is no one struct"),
        (TYPES, '"X T, W T, B T"', "kTypes lacks its field 'Y'"),
        (TYPES, '"X T, W T, B T, Y T, Z T"', "kTypes has 'Z', which is no field of its Inputs or Outputs"),
        (TYPES, '"X T, W flaot, B T, Y T"', "its kTypes does not read from 'W flaot, B T, Y T' on"),
        (TYPES, '"X T, W T, B T, Y T, T1 = float"', "kTypes has no tensor of type T1"),
        (TYPES, '"X T, W T, B T, Y T, T = flaot"', "its kTypes does not read from 'T = flaot' on"),
        (TYPES, '"X T, W T, B T, Y T, T = half on gpu"', "its kTypes does not read from 'T = half on gpu' on"),
        (TYPES, "kSomething", "kTypes is neither text nor another kernel's kTypes"),
        (TYPES, "Conv::kTypes", "kTypes is neither text nor another kernel's kTypes"),
        (
            "C / group, *K], B",
            "C / groups, *K], B",
            "kShapes divides by 'groups', which is no std::int64_t of its Attributes",
        ),
        (
            "O = conv::OutputSpatial(D, K)",
            "O = conv::Output(D, K)",
            "kShapes has the rule conv::Output, which is no function",
        ),
        (
            "O = conv::OutputSpatial(D, K)",
            "O = conv::OutputSpatial(D)",
            "kShapes has the rule conv::OutputSpatial(D), which takes 2",
        ),
        (
            "O = conv::OutputSpatial(D, K)",
            "O = conv::OutputSpatial(D, L)",
            "kShapes has the rule conv::OutputSpatial(D, L), and 'L'",
        ),
        (
            "O = conv::OutputSpatial(D, K)",
            "P = conv::OutputSpatial(D, K)",
            "kShapes has a rule for 'P', which is no list symbol",
        ),
        ("[N, M, *O], O =", "[N, D, *O], O =", "kShapes has 'D' as a list and as a single dim"),
        ("D length [1, 3], K", "E length [1, 3], K", "kLimits has 'E', which is no symbol of kShapes and no field"),
        ("strides length D", "stride length D", "kLimits has 'stride', which is no symbol of kShapes and no field"),
        ("strides length D", "strides length L", "kLimits gives 'strides' the length of 'L', which is no list symbol"),
        ("group min 1", "group length D", "kLimits gives 'group' a length, and it is no list"),
        ("group min 1", "auto_pad min 1", "kLimits gives 'auto_pad' a range, and it is no number"),
        ("std::int64_t group = 1;", "int group = 1;", "kShapes divides by 'group', which is no std::int64_t of its"),
        ("M multiple_of group", "M multiple_of pads", "kLimits has 'M multiple_of pads', no single dim"),
        ("M multiple_of group", "D multiple_of group", "its kLimits does not read from 'D multiple_of group"),
        ("group min 1", "group minimum 1", "its kLimits does not read from 'group minimum 1' on"),
        (
            "RequiredInput X = nullptr;",
            "RequiredInput X = nullptr, Z = nullptr;",
            "its Inputs are in no form that the generator reads",
        ),
        ("RequiredOutput Y = nullptr;", "Pointer Y = nullptr;", "its Outputs are in no form that the generator reads"),
        (
            "std::int64_t group = 1;",
            "std::int64_t group = 1, other = 2;",
            "its Attributes are in no form that the generator reads",
        ),
    ],
)
def test_a_header_that_contradicts_itself_is_told_once(tmp_path: Path, old: str, new: str, expected: str) -> None:
    (fault,) = told(CONVOLVE, kernels(tmp_path, (old, new)))
    start = "G706 7: kernel conv::Conv in conv/kernels.h: "
    assert fault[: len(start + expected)] == start + expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (f"{TYPES};", TYPES, r"line 88: expected ';' at the end of the declaration of kTypes"),
        ('group min 1";', 'group min 1"', r"line \d+: expected ';' at the end of the declaration of kLimits"),
        ("std::int64_t group = 1;", "std::int64_t group = 1", r"line \d+: expected ';' at the end of .* of group"),
        (f"{TYPES};", f"{TYPES}\n[[maybe_unused]]", r"line 89: expected ';' at the end of the declaration of kTypes"),
        ("RequiredOutput Y = nullptr;", "RequiredOutput Y", r"line \d+: expected ';' at the end of .* of Y"),
        (f"{TYPES};", f"{TYPES};\n#if 0\n{{limits}}\n#endif", r"line \d+: a second kLimits; the preproc.* is not read"),
        (f"{TYPES};", f'{TYPES};\nconstexpr static auto kTypes = "any";', r"line 89: a second kTypes; the prep.* read"),
        ("struct Conv {", "struct Conv {\n  using Inputs = A;\n  using Inputs = B;", r"line \d+: a second Inputs; .*"),
    ],
)
def test_a_header_that_does_not_read_is_told_once(tmp_path: Path, old: str, new: str, expected: str) -> None:
    new = new.replace("{limits}", 'static constexpr std::string_view kLimits = "group min 1";')
    (fault,) = told(CONVOLVE + GRADIENT, kernels(tmp_path, (old, new)))
    assert re.fullmatch(rf"G706 7: conv/kernels\.h does not read: {expected}", fault)


def test_a_header_without_a_brace_is_told_once(tmp_path: Path) -> None:
    """It was read for ever."""
    derived = "};\n\n/// What the transposed ones have besides"
    headers = kernels(tmp_path, (derived, derived[2:]))
    text = CONVOLVE + GRADIENT
    (fault,) = told(text, headers)
    assert re.fullmatch(r"G706 7: conv/kernels\.h does not read: line \d+: this '{' has no '}'", fault)


def any_kernel(tmp_path: Path, limits: str, *edits: tuple[str, str]) -> KernelHeaders:
    """A convolution that takes any shapes and types."""
    text = (RUNTIME / "conv/kernels.h").read_text(encoding="utf-8")
    shapes = text[text.index('"X [N, C, *D]') : text.index(";", text.index('"X [N, C, *D]'))]
    old = text[text.index("static constexpr std::string_view kLimits") :]
    old = old[: old.index(";") + 1]
    return kernels(tmp_path, (shapes, '"any"'), (TYPES, '"any"'), (old, limits), *edits)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ("group min 2", ["G409 22: attribute 'group' may be less than 2"]),
        ("group min 0 max 9", ["G409 22: attribute 'group' may be more than 9"]),
        ("pads min 1, strides min 2", ["G409 20: attribute 'strides' may", "G409 21: attribute 'pads' may be"]),
        ("group min 1e0 max 2.5e+1", ["G409 22: attribute 'group' may be more than 25, which is the most"]),
        ("group min 1E-5 max 1.2345678e9", ["G409 22: attribute 'group' may be more than 1234567800, which"]),
        ("group max 0.12345678", ["G409 22: attribute 'group' may be more than 0.12345678, which"]),
        ("group min 1e", ["G706 7: kernel conv::Conv in conv/kernels.h: its kLimits does not read from"]),
        ("group min 1e999", ["G706 7: kernel conv::Conv in conv/kernels.h: its kLimits does not read from 'group min"]),
        ("group min 1", []),
        ("groups min 1", ["G706 7: kernel conv::Conv in conv/kernels.h: kLimits has 'groups', which is no symbol of"]),
        ("D length [1, 3]", ["G706 7: kernel conv::Conv in conv/kernels.h: kLimits has 'D', which is no symbol of"]),
        ("auto_pad max 1", ["G706 7: kernel conv::Conv in conv/kernels.h: kLimits gives 'auto_pad' a range, and it"]),
        ("pads length 2 * D", ["G706 7: kernel conv::Conv in conv/kernels.h: kLimits gives 'pads' the length of 'D'"]),
    ],
)
def test_ranges_hold_for_a_kernel_that_takes_any_shapes(tmp_path: Path, limits: str, expected: list[str]) -> None:
    found = told(CONVOLVE, any_kernel(tmp_path, f'{LIMITS} "{limits}";'))
    assert len(found) == len(expected)
    assert all(fault.startswith(start) for fault, start in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    "narrow",
    ["int", "unsigned", "unsigned int", "long long", "const int", "char", "float", "int32_t", "std::int32_t"],
)
def test_an_int_is_no_other_type_of_cpp(tmp_path: Path, narrow: str) -> None:
    """Some are called by the schema's own words."""
    edit = ("std::int64_t group = 1;", f"{narrow} group = 1;")
    fault = f"G408 22: attribute 'group' is of type int; kernel conv::Conv takes C++ {narrow}, not std::int64_t"
    assert told(CONVOLVE, any_kernel(tmp_path, "", edit)) == [fault]
    (fault,) = told(CONVOLVE, any_kernel(tmp_path, f'{LIMITS} "group min 1";', edit))
    numbers = "neither std::int64_t nor double nor IntList nor FloatList"
    expected = f"kLimits gives 'group' a range, and it is C++ {narrow}, {numbers}"
    assert fault == f"G706 7: kernel conv::Conv in conv/kernels.h: {expected}"


@pytest.mark.parametrize(
    ("word", "given", "expected"),
    [
        ("float", "{type: float, default: 1.0}", "float; kernel conv::Conv takes C++ float, not double"),
        ("ints", "{type: ints, default: []}", "ints; kernel conv::Conv takes C++ ints, not IntList"),
        (
            "int32_t",
            "{type: enum, enum: int32_t, choices: [A], default: A}",
            "int32_t; kernel conv::Conv takes C++ int32_t, not an enum",
        ),
    ],
)
def test_a_word_of_the_schema_is_no_type_of_cpp(tmp_path: Path, word: str, given: str, expected: str) -> None:
    headers = any_kernel(tmp_path, "", ("std::int64_t group = 1;", f"{word} scale = 1;"))
    text = edited(CONVOLVE, ("group: {type: int, default: 1, min: 1}", f"scale: {given}"))
    text = edited(text, ("C / group", "C"), ("      M: {multiple_of: group}\n", ""))
    assert [fault.partition("of type ")[2] for fault in told(text, headers)] == [expected]


@pytest.mark.parametrize(
    ("constant", "edit", "expected"),
    [
        (f'{LIMITS} "group min 1";', ("using Attributes = conv::Attributes;", "using Attributes = Any;"), "Attributes"),
        ('static constexpr auto kGradientOf = "Conv, dY of Y";', ("RequiredInput X = nullptr;", "Any X;"), "Inputs"),
    ],
)
def test_constants_of_what_does_not_read_are_told(
    tmp_path: Path, constant: str, edit: tuple[str, str], expected: str
) -> None:
    (fault,) = told(CONVOLVE, any_kernel(tmp_path, constant, edit))
    assert fault.startswith(f"G706 7: kernel conv::Conv in conv/kernels.h: its {expected} are in no form")


def test_a_kernel_that_takes_any_is_compared_with_nothing(tmp_path: Path) -> None:
    headers = any_kernel(tmp_path, "")
    wrong = edited(CONVOLVE, ("W: {type: T,", "W: {type: half,"), ("D: {length: [1, 3]}", "D: {length: [1, 2]}"))
    assert told(wrong, headers) == []
