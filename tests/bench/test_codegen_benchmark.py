"""The schemas that the generator's benchmark makes."""

from __future__ import annotations

from pathlib import Path

import codegen_benchmark
import pytest
from build_tree import REPOSITORY
from gradsmith_codegen import reader

ENTRY = """
  - name: OwnCasesGrad
    doc: An operator that shares no cases.
    gradient_of: Conv
    kernel: conv::ConvGrad
    backends: [cpu]
    inputs:
      dY: {type: T, shape: [N, M, "*O"], gradient_of: Y, doc: gradient of the loss with respect to Y}
      X: {type: T, shape: [N, C, "*D"], doc: what Conv was given}
      W: {type: T, shape: [M, C / group, "*K"], doc: what Conv was given}
    outputs:
      dX: {type: T, like: X, optional: true, gradient_of: X, doc: gradient of X}
    dims:
      M: {multiple_of: group, doc: output channels}
      D: {length: [1, 3], doc: spatial dims of X}
      K: {length: D, doc: spatial dims of W}
      O: {length: D, rule: "conv::OutputSpatial(D, K)", doc: spatial dims of Y}
    attributes: *conv_attributes
    rows: *one_type
    cases:
      - {name: own, X: [2, 4, 9, 11], W: [8, 1, 3, 2], group: 4}
"""


def test_an_operator_with_cases_of_its_own_is_copied_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = tmp_path / "ops.yaml"
    schema.write_text((REPOSITORY / "ops.yaml").read_text(encoding="utf-8") + ENTRY, encoding="utf-8")
    monkeypatch.setattr(codegen_benchmark, "ROOT", tmp_path)
    number = 2 * schema.read_text(encoding="utf-8").count("\n  - name: ")
    schema.write_text(codegen_benchmark.large_schema(number), encoding="utf-8")
    read, diagnostics = reader.load_schema(schema)
    assert read is not None, diagnostics
    cases = {op.name: [case.name for case in op.cases] for op in read.ops}
    assert len(cases) == number
    assert cases["OwnCasesGrad"] == cases["OwnCasesGradV1"] == ["own"]
    assert len(cases["ConvV1"]) == codegen_benchmark.CASES
