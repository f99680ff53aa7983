"""One mistake is one diagnostic, where it is to be mended, with what to write."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from gradsmith_codegen import lookalikes
from gradsmith_codegen.data_types import DataType
from gradsmith_codegen.model import AttributeKind, Backend, Layout
from gradsmith_codegen.vocabulary import RUNTIME_ENUMS
from schemas import CONVOLVE, SCALE, edited, load
from test_kernel_shapes import GRADIENT

OPS = (Path(__file__).parents[2] / "ops.yaml").read_text(encoding="utf-8")
ROLES = {
    "inputs": "batch_norm_inputs",
    "outputs": "batch_norm_outputs",
    "attributes": "conv_attributes",
    "rows": "one_type",
    "cases": "conv_cases",
}


def told(text: str) -> list[str]:
    return [f"{one.id} {one.span.line if one.span else 0}: {one.message}" for one in load(text)[1]]


# ----------------------------------------------------------------------------------------------------
# What another diagnostic tells

GROUP = "group: {type: int"
M = "      M: {multiple_of: group}\n"
OF_X = 'X: {type: T, shape: [N, C, "*D"]}'
WITHOUT_GROUP = edited(CONVOLVE, ("C / group", "C"), (M, ""))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (edited(CONVOLVE, (GROUP, "Group: {type: int")), "G408 22: kernel conv::Conv has no attribute 'Group'"),
        (edited(CONVOLVE, (GROUP, "groups: {type: int")), "G408 22: kernel conv::Conv has no attribute 'groups'"),
        (edited(CONVOLVE, (GROUP, "Group: {type: int"), (M, "")), "G408 21: kernel conv::Conv has no attribute"),
        (edited(WITHOUT_GROUP, (GROUP, "Group: {type: int")), "G408 21: kernel conv::Conv has no attribute"),
        (edited(CONVOLVE, (OF_X, f"{OF_X[:-1]}, optional: true}}")), "G703 10: input 'X' must not be optional"),
        (edited(CONVOLVE, ("W: {", "W: {optional: true, ")), "G703 11: input 'W' must not be optional"),
        (CONVOLVE + edited(GRADIENT, ("X: {", "X: {optional: true, ")), "G703 35: input 'X' must not be optional"),
        (edited(CONVOLVE, ("conv::Conv\n", "conv::ConvGrad\n")), "G708 7: kernel conv::ConvGrad does not have 'Y'"),
        (edited(CONVOLVE, (OF_X, f"<<: *q\n      {OF_X}")), "G017 10: alias '*q' has no anchor '&q' before it"),
        (edited(CONVOLVE, (OF_X, f"<<: [*q]\n      {OF_X}")), "G017 10: alias '*q' has no anchor '&q' before it"),
        (edited(CONVOLVE, ("enum: AutoPad", "enum: conv::AutoPad")), "G408 23: attribute 'auto_pad' is of type conv::"),
        (edited(CONVOLVE, ("[cpu]", "[*q]")), "G017 8: alias '*q' has no anchor '&q' before it"),
        (edited(CONVOLVE, ("{type: T, shape", "{<<: *q, type: T, shape")), "G017 10: alias '*q' has no anchor"),
        (edited(CONVOLVE, ('"*K"', "*K")), "G017 11: alias '*K' has no anchor '&K' before it; to mean a list"),
    ],
)
def test_one_mistake_is_told_by_that_which_knows_what_is_meant(text: str, expected: str) -> None:
    (fault,) = told(text)
    assert fault.startswith(expected)
    assert ("list symbol" in fault) is ("list" in expected)
    assert "did you mean 'Group" not in fault


# ----------------------------------------------------------------------------------------------------
# Aliases


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("other", ROLES)
def test_an_alias_of_another_kind_is_told_once_where_it_stands(role: str, other: str) -> None:
    if role == other or {role, other} == {"inputs", "outputs"}:
        return
    start = OPS.index("  - name: BatchNormalizationRelu\n")
    head, entry = OPS[:start], OPS[start:]
    if role == "outputs":
        entry = edited(entry, ("      <<: *batch_norm_outputs\n", f"      <<: *{ROLES[other]}\n"))
    else:
        right = {"inputs": "*batch_norm_inputs", "attributes": "*batch_norm_attributes"}
        old = right.get(role, f"*batch_norm_{role}")
        entry = edited(entry, (f"    {role}: {old}\n", f"    {role}: *{ROLES[other]}\n"))
    (fault,) = told(head + entry)
    assert fault.startswith("G035 ")
    assert f"'{role}' of operator 'BatchNormalizationRelu' must be " in fault
    assert f"this alias repeats '{other}' of operator '" in fault
    assert int(fault.split()[1].rstrip(":")) > head.count("\n")


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("{T: float}", "{T: *case}", "'T' of 'float' of 'rows'"),
        ("{type: ints, default: [], min: 1, length: D}", "*tensor", "'strides' of 'attributes'"),
        ("W: {type: T,", "W: {type: *tensor,", "'type' of 'W' of 'inputs'"),
        ('shape: [M, C / group, "*K"]', "shape: *tensor", "'shape' of 'W' of 'inputs'"),
        ("K: {length: D}", "K: *tensor", "'K' of 'dims'"),
        ("backends: [cpu]", "backends: *tensor", "'backends'"),
        ("doc: Convolution of X with W.", "doc: *tensor", "'doc'"),
        ("    cases:\n", "    cases:\n      - *tensor\n", "an entry of 'cases'"),
    ],
)
def test_an_alias_in_any_place_is_told_with_the_operator(old: str, new: str, what: str) -> None:
    first = edited(CONVOLVE, ("X: {type", "X: &tensor {type"), ("- {name: plain", "- &case {name: plain"))
    second = edited(CONVOLVE[CONVOLVE.index("  - name") :], ("name: Convolve", "name: Second"), (old, new))
    (fault,) = told(first.replace("&case ", "" if "*case" not in new else "&case ") + second)
    assert fault.startswith("G035 ")
    assert f"{what} of operator 'Second' must be " in fault


def test_aliases_of_the_same_kind_are_right() -> None:
    shapes = edited(CONVOLVE, ('shape: [N, C, "*D"]', 'shape: &x [N, C, "*D"]'))
    assert told(edited(shapes, ("    outputs:\n", "      B: {type: T, shape: *x}\n    outputs:\n")))[0][:4] == "G323"
    assert told(edited(SCALE, ("X: {type", "X: &x {type"), ("Y: {type: T, like: X}", "Y: *x"))) == []


def test_an_alias_of_the_cases_of_another_operator_is_told_once() -> None:
    """They are right where they stand, so that each of their lines would be blamed for the alias."""
    own = re.compile(r"    cases: &conv_transpose_cases\n(      - .*\n)+")
    text = own.sub("    cases: *conv_cases\n", OPS).replace("*conv_transpose_cases", "*conv_cases")
    _, (fault,) = load(text)
    assert (fault.id, fault.message) == ("G605", "case 'plain_2d': 'W' makes C 4, but it is 3")
    assert re.fullmatch(r"\d\d more like this in what is repeated; is another alias meant\?", fault.notes[-1].message)
    assert "used by operators 'ConvTranspose' and 'ConvTransposeGrad'" in [note.message for note in fault.notes]


def test_faults_of_repeated_cases_that_are_wrong_where_they_stand_are_told_each() -> None:
    wrong = re.sub(r"W: \[(\d), (\d)(?=, \d, \d\], (strides|pads))", r"W: [\1, 1\2", OPS)
    faults = [one for one in told(wrong) if one.startswith("G605")]
    assert len(faults) == 4


@pytest.mark.parametrize("form", ["{<<: *c, group: 2}", "{<<: [*c], group: 2}", "{group: 2, <<: *c}", "*c"])
def test_a_case_that_brings_the_name_of_another_is_told_where_it_stands(form: str) -> None:
    text = edited(CONVOLVE, ("- {name: plain, X: [2, 4, 5, 6]", "- &c {name: plain, X: [2, 8, 5, 6]"))
    text = edited(text, ("W: [6, 4, 3, 2]}", "W: [6, 4, 3, 2], group: 2}"))
    _, (fault,) = load(f"{text}      - {form}\n")
    assert (fault.id, fault.span and fault.span.line) == ("G601", 28)
    assert [note.span.line for note in fault.notes] == [27]


# ----------------------------------------------------------------------------------------------------
# Spelling


@pytest.mark.parametrize(
    ("character", "written"),
    [
        *[(blank, " ") for blank in "\u00a0\u2002\u2009\u202f\u3000"],
        *[("\u201c", '"'), ("\u2019", "'"), ("\u2212", "-"), ("\uff1a", ":"), ("\uff0c", ",")],
        *[("\uff21", "A"), ("\u0410", "A"), ("\u0391", "A"), ("\u0456", "i"), ("\u200b", "")],
    ],
)
def test_what_only_looks_like_it(character: str, written: str) -> None:
    assert lookalikes.seen(f"a{character}b") == f"a{written}b"
    assert lookalikes.first(f"a{character}b") == 1


@pytest.mark.parametrize("text", ["名", "naïve", "straße", "\u0434"])
def test_what_looks_like_nothing_in_ascii_is_left_to_others(text: str) -> None:
    assert lookalikes.meant(text) == ""
    assert told(edited(SCALE, ("name: plain", f"name: {text}")))[0].startswith("G103 ")


def test_documentation_may_have_any_characters() -> None:
    assert told(edited(CONVOLVE, ("Convolution of X with W.", "“Convolution” — of X × W，ｗｉｄｅ"))) == []


@pytest.mark.parametrize(
    ("old", "new", "written"),
    [
        ("{T: float}", "{T:float}", "`T: float`"),
        ("{name: plain, ", "{name:plain, ", "`name: plain`"),
        ("{T: float}", "{T:\u3000float}", "`T: float`"),
        ("{T: float}", "{T\uff1afloat}", "`T: float`"),
        ("name: Convolve", "name:Convolve", "`name: Convolve`"),
        ("kernel: conv::Conv", "kernel:conv::Conv", "`kernel: conv::Conv`"),
        ("schema_version: 1", "schema_version:1", "`schema_version: 1`"),
        ("domain: com", "domain:\u00a0com", "write a blank"),
        ("    kernel: conv", "\u2003   kernel: conv", "write a blank"),
        ("[cpu]", "[“cpu”]", '`"cpu"`'),
        ("[cpu]", "[ｃｐｕ]", "`cpu`"),
    ],
)
def test_what_looks_right_is_told_with_what_to_write(old: str, new: str, written: str) -> None:
    (fault,) = told(edited(CONVOLVE, (old, new)))
    line = CONVOLVE[: CONVOLVE.index(old)].count("\n") + 1
    assert fault.split(":")[0].split()[1] == str(line)
    assert fault.endswith(written)


CHOICES = RUNTIME_ENUMS["AutoPad"]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        *[(edited(CONVOLVE, ("{T: float}", "{T: WORD}")), one.value) for one in DataType],
        *[(edited(CONVOLVE, ("[cpu]", "[WORD]")), one.value) for one in Backend],
        *[(edited(CONVOLVE, ("3, 2]}", "3, 2], layout: WORD}")), one.value) for one in Layout],
        *[(edited(CONVOLVE, ("type: int,", "type: WORD,")), one.value) for one in AttributeKind],
        *[(edited(CONVOLVE, ("default: NOTSET", "default: WORD")), one) for one in CHOICES],
        *[(edited(CONVOLVE, ("3, 2]}", "3, 2], auto_pad: WORD}")), one) for one in CHOICES],
        *[(edited(CONVOLVE, (f"{key}:", "WORD:")), key) for key in ("doc", "kernel", "backends", "inputs", "rows")],
        *[(edited(CONVOLVE, (f"{key}:", "WORD:")), key) for key in ("type", "shape", "length", "rule", "default")],
        (edited(SCALE, ("like: X", "like: WORD")), "X"),
        (edited(CONVOLVE, ("[N, M,", "[N, WORD,")), "M"),
        (edited(CONVOLVE + GRADIENT, ("gradient_of: Convolve", "gradient_of: WORD")), "Convolve"),
    ],
)
def test_a_word_in_other_case_is_known(text: str, word: str) -> None:
    other = word.swapcase()
    faults = told(text.replace("WORD", other))
    assert len(faults) == 1
    assert f"did you mean '{word}'?" in faults[0]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("ConvGrad", "conv::ConvGrad"),
        ("convgrad", "conv::ConvGrad"),
        ("conv:ConvGrad", "conv::ConvGrad"),
        ('"conv: :ConvGrad"', "conv::ConvGrad"),
        ("conv.ConvGrad", "conv::ConvGrad"),
        ("conv/ConvGrad", "conv::ConvGrad"),
        ("conv::convGrad", "conv::ConvGrad"),
        ("Conv::ConvGrad", "conv::ConvGrad"),
        ("gradsmith::conv::ConvGrad", "conv::ConvGrad"),
        ("conv::ConvGrad()", "conv::ConvGrad"),
        ("BatchNormalization", "batch_norm::BatchNormalization"),
        ("conv::ConvGrda", "conv::ConvGrad"),
        ("cnv::ConvGrad", "conv::ConvGrad"),
    ],
)
def test_a_kernels_name_that_is_nearly_right(name: str, meant: str) -> None:
    (fault,) = told(edited(CONVOLVE, ("kernel: conv::Conv", f"kernel: {name}")))
    assert fault.startswith(("G029 7", "G701 7"))
    assert fault.endswith(f"did you mean '{meant}'?")


@pytest.mark.parametrize("layout", ["nhwc", "NHWC", "ndhwc", "channels-last", "ChannelsLast"])
def test_layouts_by_the_names_of_frameworks(layout: str) -> None:
    (fault,) = told(edited(CONVOLVE, ("3, 2]}", f"3, 2], layout: {layout}}}")))
    assert fault.endswith("did you mean 'channels_last'?")


# ----------------------------------------------------------------------------------------------------
# What all cases have in common


def test_what_no_case_fits_is_told_at_what_they_do_not_fit() -> None:
    """Of a kernel that does not say what it takes."""
    steps = ("factor: {type: float, default: 1.0}", "steps: {type: ints, default: [], length: D}")
    cases = "".join(f"      - {{name: c{i}, X: [2, 3], steps: [1, {i}]}}\n" for i in range(18))
    text = edited(SCALE, steps, ("      - {name: plain, X: [2, 3]}\n", cases))
    (fault,) = told(text)
    assert fault.startswith("G607 16: none of the 18 cases that give 'steps' fits it: ")
    right = edited(text, ("steps: [1, 5]", "steps: [1]"))
    assert [one[:4] for one in told(right)] == ["G607"] * 17


def test_another_kernel_of_the_family_is_named() -> None:
    (fault,) = told(CONVOLVE + edited(GRADIENT, ("kernel: conv::ConvGrad", "kernel: conv::Conv")))
    assert fault.startswith("G708 31: kernel conv::Conv does not have 'dY' and 'dX'; did you mean conv::ConvGrad")
    start = OPS.index("  - name: ConvTranspose\n")
    (fault,) = told(OPS[:start] + edited(OPS[start:], ("kernel: conv::ConvTranspose\n", "kernel: conv::Conv\n")))
    assert fault.endswith("does not have 'output_padding' and 'output_shape'; did you mean conv::ConvTranspose?")


def test_a_gradient_that_does_not_say_of_which_operator() -> None:
    (fault,) = told(CONVOLVE + edited(GRADIENT, ("    gradient_of: Convolve\n", "")))
    sentence = "operator 'ConvolveGrad' lacks 'gradient_of', and has gradients"
    assert fault == f"G503 28: {sentence}; did you mean 'gradient_of: Convolve'?"


@pytest.mark.parametrize(
    ("forwards", "hint"),
    [(CONVOLVE, "did you mean 'gradient_of: Convolve'?"), ("", "write 'gradient_of' and an operator with that kernel")],
)
def test_a_gradient_that_nothing_but_its_kernel_tells(forwards: str, hint: str) -> None:
    entry = re.sub(r"(?m), gradient_of: \w+|^    gradient_of: \w+\n", "", GRADIENT)
    schema = (forwards or CONVOLVE[: CONVOLVE.index("  - name")]) + entry
    (fault,) = told(schema)
    computes = "kernel conv::ConvGrad computes the gradient of kernel conv::Conv"
    line = schema.splitlines().index("  - name: ConvolveGrad") + 1
    assert fault == f"G503 {line}: operator 'ConvolveGrad' lacks 'gradient_of', and {computes}; {hint}"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("{T: float}", "{t: float}", "G202 25: row 'float' binds 't', which is the type of no tensor"),
        ("kernel: conv::Conv", "kernel: conv:: Conv", "G003 7: a name has no blank after its '::'; write `conv::Conv`"),
        ("(D, K)", "(D)", "G322 18: rule conv::OutputSpatial takes 2 lists of dims, not 1"),
        ("length: 2 * D", "length: 2 * N", "G406 21: attribute 'pads' has the length of 'N', which is no list symbol"),
    ],
)
def test_other_words_that_are_nearly_right(old: str, new: str, expected: str) -> None:
    (fault,) = told(edited(CONVOLVE, (old, new)))
    assert fault.startswith(expected)
