"""Small schemas for tests to vary."""

from __future__ import annotations

from pathlib import Path

from gradsmith_codegen.diagnostics import Diagnostic, Severity
from gradsmith_codegen.kernel_headers import RUNTIME, KernelHeaders
from gradsmith_codegen.loader import source_of
from gradsmith_codegen.model import Op, Schema
from gradsmith_codegen.reader import load_source

KERNELS = Path(__file__).parent / "kernels"  # of Scale and its like
HEADERS = KernelHeaders([KERNELS, RUNTIME])

SCALE = """\
schema_version: 1
domain: com.example
since_version: 1
ops:
  - name: Scale
    doc: Y is X times factor.
    kernel: scale::Scale
    backends: [cpu]
    inputs:
      X: {type: T, shape: [N, "*D"]}
    outputs:
      Y: {type: T, like: X}
    dims:
      D: {length: [0, 3]}
    attributes:
      factor: {type: float, default: 1.0}
    rows:
      float: {T: float}
    cases:
      - {name: plain, X: [2, 3]}
"""

CONVOLVE = """\
schema_version: 1
domain: com.example
since_version: 1
ops:
  - name: Convolve
    doc: Convolution of X with W.
    kernel: conv::Conv
    backends: [cpu]
    inputs:
      X: {type: T, shape: [N, C, "*D"]}
      W: {type: T, shape: [M, C / group, "*K"]}
    outputs:
      Y: {type: T, shape: [N, M, "*O"]}
    dims:
      D: {length: [1, 3]}
      K: {length: D}
      M: {multiple_of: group}
      O: {length: D, rule: "conv::OutputSpatial(D, K)"}
    attributes:
      strides: {type: ints, default: [], min: 1, length: D}
      pads: {type: ints, default: [], min: 0, length: 2 * D}
      group: {type: int, default: 1, min: 1}
      auto_pad: {type: enum, enum: AutoPad, choices: [NOTSET, SAME_UPPER, SAME_LOWER, VALID], default: NOTSET}
    rows:
      float: {T: float}
    cases:
      - {name: plain, X: [2, 4, 5, 6], W: [6, 4, 3, 2]}
"""


def edited(text: str, *edits: tuple[str, str]) -> str:
    """The text with the first of each old string replaced by the new; an old one that is not there is an error."""
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def errors(diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """Without the warnings: these schemas have few rows, and none of doubles."""
    return [one for one in diagnostics if one.severity is Severity.ERROR]


def load(text: str) -> tuple[Schema | None, list[Diagnostic]]:
    """Reads and checks a schema's text."""
    return load_source(source_of("ops.yaml", text), headers=HEADERS)


def op_of(text: str) -> Op:
    """The first operator of a schema without a finding."""
    schema, diagnostics = load(text)
    assert diagnostics == []
    assert schema
    return schema.ops[0]


def ids(text: str) -> list[str]:
    """Those of the findings in a schema."""
    _, diagnostics = load(text)
    return [diagnostic.id for diagnostic in diagnostics]
