"""How the GPU benchmark checks results, on tensors that PyTorch's autograd made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gpu_checks
import gpu_conv_shapes
import gpu_suites
import pytest
from gpu_program import Program

torch: Any = pytest.importorskip("torch")


def cases_of(kind: str) -> list[dict[str, str]]:
    heading, shapes, _ = gpu_checks.CHECK_SUITES[kind]
    columns = heading.split("\t")
    return [
        dict(zip(columns, f"{shape}\tf64\t{layout}".split("\t"), strict=True))
        for shape in shapes
        for layout in ("NCHW", "NHWC")
    ]


def save(folder: Path, name: str, tensor: Any, last: bool) -> None:
    laid_out = tensor.detach().movedim(1, -1) if last and tensor.dim() > 1 else tensor.detach()
    (folder / f"{name}.bin").write_bytes(laid_out.contiguous().numpy().tobytes())


def ends(ahead: list[int]) -> list[int]:
    """What torch.nn.functional.pad adds."""
    return [side for a in reversed(ahead) for side in (max(a, 0), max(-a, 0))]


def save_gradients(case: dict[str, str], folder: Path) -> None:
    """What the program would save."""
    shape = gpu_conv_shapes.ConvShape(case)
    x, w, dy = (torch.randn(dims, dtype=torch.float64) for dims in (shape.x, shape.w, shape.y))
    b = torch.zeros(shape.y[1], dtype=torch.float64)
    for leaf in (x, w, b):
        leaf.requires_grad_()
    _, stride, pad, dilation, transposed, output_padding, groups = shape.rest
    longer_x = torch.nn.functional.pad(x, ends(shape.x_ahead))
    longer_y = torch.convolution(longer_x, w, b, stride, pad, dilation, transposed, output_padding, groups)
    y = torch.nn.functional.pad(longer_y, [-side for side in ends(shape.y_ahead)])
    assert list(y.shape) == shape.y
    y.backward(dy)
    for name, tensor in {"X": x, "W": w, "dY": dy, "dX": x.grad, "dW": w.grad, "dB": b.grad}.items():
        save(folder, name, tensor, shape.last)


@pytest.mark.parametrize("kind", ["conv", "conv_transpose"])
def test_right_gradients_pass_and_wrong_ones_do_not(kind: str, tmp_path: Path) -> None:
    checker = gpu_checks.Checker(Program(tmp_path / "none", ""))
    for case in cases_of(kind):
        line = {"kind": kind, "name": gpu_suites.case_name(case)}
        save_gradients(case, tmp_path)
        assert [check["ok"] for check in checker.check(case, line, tmp_path)] == [True] * 3, line
        wrong = bytearray((tmp_path / "dW.bin").read_bytes())
        wrong[:8] = bytes(8)
        (tmp_path / "dW.bin").write_bytes(wrong)
        assert [check["ok"] for check in checker.check(case, line, tmp_path)] == [True, False, True], line


def test_a_case_that_did_not_run_is_not_right(tmp_path: Path) -> None:
    checker = gpu_checks.Checker(Program(tmp_path / "none", ""))
    line = {"kind": "conv_transpose", "name": "a f64 NHWC"}
    for said in ({**line, "error": "no kernel"}, line):  # told by the program, or found without files
        assert [check["ok"] for check in checker.check(cases_of("conv_transpose")[0], said, tmp_path)] == [False]
