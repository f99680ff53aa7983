"""examples/quick_start prints what it promises."""

from __future__ import annotations

import subprocess
from pathlib import Path


def lines(program: Path) -> list[str]:
    result = subprocess.run([str(program)], check=True, text=True, capture_output=True)
    assert result.stderr == ""
    return result.stdout.splitlines()


def test_typed_function_computes_and_refuses(quick_start: Path) -> None:
    d_w, error = lines(quick_start / "quick_start")
    assert d_w == "dW: 12 16 24 28"
    assert error.startswith("ConvGrad[float] on cpu (ops.yaml:")
    assert "dY" in error
    assert "[2, 2]" in error
    assert "[1, 1]" in error


def test_kernel_of_the_registry_computes_and_explains(quick_start: Path) -> None:
    y, *explanation = lines(quick_start / "dynamic")
    assert y == "Y: -4 -4 -4 -4"
    assert "cuda" in " ".join(explanation)


def test_gpu_program_computes_or_says_what_is_missing(quick_start: Path) -> None:
    (line,) = lines(quick_start / "gpu")
    assert line == "dW on the GPU: 4 4" or line.startswith("no GPU: ")
