"""Shapes of operators against those that kernels take: `kShapes` of their headers."""

from __future__ import annotations

from pathlib import Path

import pytest
from gradsmith_codegen.diagnostics import Diagnostic
from gradsmith_codegen.kernel_headers import KernelHeaders
from gradsmith_codegen.kernel_terms import read_shapes
from gradsmith_codegen.loader import source_of
from gradsmith_codegen.reader import load_source
from schemas import CONVOLVE, SCALE, edited, errors, load

NORMALIZE = """\
schema_version: 1
domain: com.example
since_version: 1
ops:
  - name: Normalize
    doc: Batch normalization.
    kernel: batch_norm::BatchNormalizationRelu
    backends: [cpu]
    inputs:
      X: {type: T, shape: [N, C, "*D"]}
      scale: {type: T, shape: [C]}
      B: {type: T, shape: [C]}
      running_mean: {type: T, shape: [C]}
      running_var: {type: T, shape: [C]}
    outputs:
      Y: {type: T, like: X}
      saved_mean: {type: T, like: scale}
    dims:
      D: {length: [0, 3]}
    rows:
      float: {T: float}
    cases:
      - {name: plain, X: [2, 4, 5, 6]}
"""

BIAS = ("    outputs:\n", "      B: {type: T, shape: [M], optional: true}\n    outputs:\n")
RULE = ', rule: "conv::OutputSpatial(D, K)"'

GRADIENT = """\
  - name: ConvolveGrad
    doc: Gradient of Convolve.
    gradient_of: Convolve
    kernel: conv::ConvGrad
    backends: [cpu]
    inputs:
      dY: {type: T, shape: [N, M, "*P"], gradient_of: Y}
      X: {type: T, shape: [N, C, "*D"]}
      W: {type: T, shape: [M, C / group, "*K"]}
    outputs:
      dX: {type: T, like: X, optional: true, gradient_of: X}
    dims:
      D: {length: [1, 3]}
      K: {length: D}
      M: {multiple_of: group}
      P: {length: D, rule: "conv::OutputSpatial(D, K)"}
    attributes:
      strides: {type: ints, default: [], min: 1, length: D}
      group: {type: int, default: 1, min: 1}
    rows:
      float: {T: float}
    cases:
      - {name: plain, X: [2, 4, 5, 6], W: [6, 4, 3, 2]}
"""


def messages(diagnostics: list[Diagnostic]) -> list[str]:
    return [f"{diagnostic.id}: {diagnostic.message}" for diagnostic in errors(diagnostics)]


def without_group(text: str) -> str:
    return edited(
        text,
        ("C / group", "C"),
        ("      M: {multiple_of: group}\n", ""),
        ("      group: {type: int, default: 1, min: 1}\n", ""),
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(CONVOLVE, id="as the kernel has them"),
        pytest.param(edited(CONVOLVE, BIAS), id="with a bias"),
        pytest.param(without_group(CONVOLVE), id="without groups"),
        pytest.param(
            edited(CONVOLVE, ("[N, C,", "[N, Q,"), ("C / group", "Q / group")),
            id="by other names",
        ),
        pytest.param(
            edited(CONVOLVE, ("[N, C,", "[1, C,"), ("[N, M,", "[1, M,"), ("[2, 4,", "[1, 4,")), id="one sample"
        ),
        pytest.param(CONVOLVE + GRADIENT, id="gradient"),
        pytest.param(
            edited(CONVOLVE, ("*K", "*D"), ("K)", "D)"), ("      K: {length: D}\n", ""), ("4, 3, 2]", "4, 5, 6]")),
            id="a filter as large as the input",
        ),
        pytest.param(NORMALIZE, id="batch normalization"),
        pytest.param(
            edited(NORMALIZE, ('[N, C, "*D"]', "[N, C, H, W]"), ("    dims:\n      D: {length: [0, 3]}\n", "")),
            id="dims one by one",
        ),
        pytest.param(
            edited(NORMALIZE, ("shape: [N, C", "shape: [N, 4"), *[("[C]", "[4]")] * 4), id="a number of channels"
        ),
    ],
)
def test_shapes_that_fit(text: str) -> None:
    schema, diagnostics = load(text)
    assert messages(diagnostics) == []
    assert schema


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            edited(CONVOLVE, ('[M, C / group, "*K"]', '[M, Q, "*K"]')),
            "G323: 'W' is [M, Q, *K]; kernel conv::Conv takes [M, C / group, *K]",
        ),
        (
            edited(CONVOLVE, ("[N, C,", "[N, Q,"), ("[M, C / group,", "[M, Q,")),
            "G323: 'W' is [M, Q, *K]; kernel conv::Conv takes [M, Q / group, *K]",
        ),
        (
            edited(without_group(CONVOLVE), ("[M, C,", "[M, Q,")),
            "G323: 'W' is [M, Q, *K]; kernel conv::Conv takes [M, C, *K]",
        ),
        (edited(CONVOLVE, (BIAS[0], BIAS[1].replace("M", "N"))), "G323: 'B' is [N]; kernel conv::Conv takes [M]"),
        (edited(CONVOLVE, ("[N, M,", "[M, N,")), "G323: 'Y' is [M, N, *O]; kernel conv::Conv takes [N, M, *O]"),
        (
            edited(CONVOLVE, ('"*O"', '"*K"'), ("      O: {length: D" + RULE + "}\n", "")),
            "G323: 'K' has no rule; kernel conv::Conv takes conv::OutputSpatial(D, K)",
        ),
        (
            edited(CONVOLVE, ("(D, K)", "(K, D)"), ("[6, 4, 3, 2]", "[6, 4, 5, 6]")),
            "G323: 'O' has the rule conv::OutputSpatial(K, D); kernel conv::Conv takes conv::OutputSpatial(D, K)",
        ),
        (
            edited(CONVOLVE, ('"*O"', "1, 1"), ("      O: {length: D" + RULE + "}\n", "")),
            "G323: [1, 1] must be a list symbol with the rule conv::OutputSpatial(D, K) for kernel conv::Conv",
        ),
        (
            CONVOLVE + edited(GRADIENT, (RULE, ""), ("W: [6, 4, 3, 2]", "W: [6, 4, 3, 2], dY: [2, 6, 1, 1]")),
            "G323: 'P' has no rule; kernel conv::ConvGrad takes conv::OutputSpatial(D, K)",
        ),
        (
            edited(NORMALIZE, ("scale: {type: T, shape: [C]", "scale: {type: T, shape: [N]")),
            "G323: 'scale' is [N]; kernel batch_norm::BatchNormalizationRelu takes [C]",
        ),
        (
            edited(NORMALIZE, ("scale: {type: T, shape: [C]", "scale: {type: T, shape: []")),
            "G323: 'scale' is []; kernel batch_norm::BatchNormalizationRelu takes [C]",
        ),
        (
            edited(NORMALIZE, ("like: X", "shape: [N, C]")),
            "G323: 'Y' is [N, C]; kernel batch_norm::BatchNormalizationRelu takes [N, C, *D]",
        ),
        (
            edited(NORMALIZE, ("like: scale", "like: X")),
            "G323: 'saved_mean' is [N, C, *D]; kernel batch_norm::BatchNormalizationRelu takes [C]",
        ),
    ],
)
def test_shapes_that_do_not_fit(text: str, message: str) -> None:
    _, diagnostics = load(text)
    assert messages(diagnostics) == [message]


def test_what_is_unlike_the_forward_operator_is_said_once() -> None:
    """Of the operator whose shape is not its kernel's, be it the forward or the gradient."""
    wrong = ("[M, C / group,", "[M, Q,")
    for text, line in ((edited(CONVOLVE, wrong) + GRADIENT, 11), (CONVOLVE + edited(GRADIENT, wrong), 36)):
        _, (diagnostic,) = load(text)
        assert (diagnostic.id, diagnostic.span and diagnostic.span.line) == ("G323", line)


def test_tensors_come_before_their_shapes() -> None:
    _, diagnostics = load(edited(CONVOLVE, ("[M, C / group,", "[M, Q,"), (BIAS[0], BIAS[1].replace("B:", "Bias:"))))
    assert [diagnostic.id for diagnostic in diagnostics] == ["G702"]


def test_what_is_written_in_kshapes_is_read() -> None:
    shapes = read_shapes("X [N, *D], Y [], Z [C / group, 3], D = conv::Rule(N)")
    assert {name: shape.text for name, shape in shapes.tensors.items()} == {
        "X": "[N, *D]",
        "Y": "[]",
        "Z": "[C / group, 3]",
    }
    assert {name: rule.text for name, rule in shapes.rules.items()} == {"D": "conv::Rule(N)"}


@pytest.mark.parametrize("text", ["Y (N, M)", "Y [N, M...]", "Y = Rule", "Y[N]", ", Y [N]"])
def test_what_does_not_read_is_told(tmp_path: Path, text: str) -> None:
    shapes = f'static constexpr std::string_view kShapes =\n"X [N], "\n"{text}";'
    types = 'static constexpr std::string_view kTypes = "any";'
    members = f"{types} using Attributes = Any; using Inputs = Any; using Outputs = Any; Status RunCpu();"
    (tmp_path / "scale").mkdir()
    (tmp_path / "scale/kernels.h").write_text(f"struct Scale {{ {shapes} {members} }};")
    _, diagnostics = load_source(source_of("ops.yaml", SCALE), headers=KernelHeaders([tmp_path]))
    form = "expected 'X [N, *D]', 'O = family::Rule(D)' or 'Y in_place_of X'"
    expected = f"G706: kernel scale::Scale in scale/kernels.h: its kShapes does not read from '{text}' on; {form}"
    assert messages(diagnostics) == [expected]


def test_a_kernels_own_shapes_come_before_those_of_what_it_derives_from(tmp_path: Path) -> None:
    members = "using Attributes = Any; using Inputs = Any; using Outputs = Any; Status RunCpu();"
    shapes = 'static constexpr std::string_view kShapes = "X [N], Y [{}]";'
    (tmp_path / "scale").mkdir()
    (tmp_path / "scale/kernels.h").write_text(
        f"struct Base {{ {shapes.format('N')} {members} }};\n"
        f"struct Scale : Base {{ {shapes.format('M')} }};\nstruct Same : Base {{}};\n"
    )
    headers = KernelHeaders([tmp_path])
    found = {}
    for name in ("Base", "Scale", "Same"):
        kernel = headers.kernel(f"scale::{name}")
        assert kernel
        assert kernel.shapes
        found[name] = kernel.shapes.tensors["Y"].text
    assert found == {"Base": "[N]", "Scale": "[M]", "Same": "[N]"}


@pytest.mark.parametrize("name", KernelHeaders().kernel_names())
def test_every_argument_has_its_shape(name: str) -> None:
    kernel = KernelHeaders().kernel(name)
    assert kernel
    assert kernel.shapes
    assert kernel.inputs
    assert kernel.outputs
    assert kernel.types
    assert kernel.shapes.tensors.keys() == kernel.types.tensors.keys() == kernel.inputs.keys() | kernel.outputs.keys()
    assert not kernel.faults
    has_rule = name.startswith(("conv::", "pool::")) and name != "pool::MaxPoolGrad"  # whose D is given
    assert bool(kernel.shapes.rules) == has_rule
