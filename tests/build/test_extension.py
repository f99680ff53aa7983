"""A type combination that the kernel covers is one line of ops.yaml, an op on an existing kernel is one entry."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from build_tree import REPOSITORY, SCRATCH, build, configure, replace_once

NEW_ROW = "      half_double_stats: {T: MLFloat16, T1: double, T2: double}\n"

NEW_OP = """
  - name: UnitStrideConvGrad
    doc: Gradients of a convolution with strides and dilations of 1.
    kernel: conv::ConvGrad
    backends: [cpu]
    inputs:
      dY: {type: T, shape: [N, M, "*O"], doc: gradient of the loss with respect to Y}
      X: {type: T, shape: [N, C, "*D"], doc: what the convolution was given}
      W: {type: T, shape: [M, C, "*K"], doc: what the convolution was given}
    outputs:
      dX: {type: T, like: X, optional: true, doc: gradient with respect to X}
      dW: {type: T, like: W, optional: true, doc: gradient with respect to W}
      dB: {type: T, shape: [M], optional: true, doc: gradient with respect to the bias}
    dims:
      D: {length: [1, 3], doc: spatial dims of X}
      K: {length: D, doc: spatial dims of W}
      O: {length: D, rule: "conv::OutputSpatial(D, K)", doc: spatial dims of the convolution's output}
    attributes:
      pads: {type: ints, default: [], min: 0, length: 2 * D, doc: zeros added}
    rows:
      single: {T: float}
      brain: {T: BFloat16}
    cases:
      - {name: padded, X: [2, 3, 5, 7], W: [4, 3, 3, 2], pads: [1, 0, 2, 1]}
"""


@pytest.fixture(scope="module")
def program() -> Path:
    """The generated tests of a schema with one line and one entry more."""
    folder = SCRATCH / "extension"
    folder.mkdir(parents=True, exist_ok=True)
    schema = folder / "ops.yaml"
    edited = folder / "edited.yaml"
    edited.write_text((REPOSITORY / "ops.yaml").read_text() + NEW_OP)
    last_row = re.search(r"^    rows: &batch_norm_rows\n(?:      .*\n)*", edited.read_text(), re.MULTILINE)
    assert last_row is not None
    replace_once(edited, last_row[0], last_row[0] + NEW_ROW)
    if not schema.exists() or schema.read_text() != edited.read_text():
        edited.rename(schema)
    options = [f"-DGRADSMITH_OPS_YAML={schema}", "-DGRADSMITH_BUILD_TESTS=ON", f"-DPython3_EXECUTABLE={sys.executable}"]
    configure(REPOSITORY, folder / "build", "Ninja", *options)
    build(folder / "build", "gradsmith_generated_tests")
    return folder / "build/tests/gradsmith_generated_tests"


@pytest.mark.parametrize(
    "name",
    [
        "BatchNormalization*half_double_stats_cpu*",
        "BatchNormalizationGrad*half_double_stats_cpu*",
        "UnitStrideConvGrad*",
    ],
)
def test_new_tests_are_there_and_pass(program: Path, name: str) -> None:
    result = subprocess.run([str(program), f"--gtest_filter={name}"], check=False, text=True, capture_output=True)
    assert result.returncode == 0, result.stdout + result.stderr
    passed = re.search(r"^\[  PASSED  \] (\d+) tests?\.$", result.stdout, re.MULTILINE)
    assert passed is not None, result.stdout
    assert int(passed[1]) > 0
    assert "SKIPPED" not in result.stdout


def test_schemas_differ_by_one_line_and_one_entry(program: Path) -> None:
    edited = (SCRATCH / "extension/ops.yaml").read_text()
    assert edited.replace(NEW_ROW, "", 1).replace(NEW_OP, "", 1) == (REPOSITORY / "ops.yaml").read_text()
    assert NEW_ROW.count("\n") == 1
