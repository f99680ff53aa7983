"""Whether results are right: small cases, run by the program and saved, against PyTorch in float64 on the CPU."""

from __future__ import annotations

import importlib
import math
import tempfile
import time
from pathlib import Path
from typing import Any

from gpu_peer import EPSILON, MASKS, first_line
from gpu_program import Program
from gpu_suites import TYPES, ConvShape, case_name, numbers, read_suite

# Relative errors (2-norm) that rounding explains, against float64.
LIMITS = {"f16": 1e-3, "bf16": 8e-3, "tf32": 2e-3, "f32": 5e-6, "f64": 1e-13}

# For each kind the heading, shapes and types of its small cases.
CHECK_SUITES = {
    "conv": (
        "case\tN\tC\tK\tgroups\tspatial\tkernel\tstride\tpad\tpad_end\tdilation\ttype\tlayout",
        [
            "plain\t4\t16\t24\t1\t11,9\t3,3\t1,1\t1,1\t1,1\t1,1",
            "grouped\t2\t12\t8\t2\t12,10\t3,3\t2,2\t0,0\t0,0\t1,1",
            "causal\t2\t24\t24\t24\t37\t4\t1\t3\t0\t1",
            "uneven\t2\t16\t8\t1\t9,8\t4,3\t1,1\t1,2\t2,0\t1,1",
        ],
        list(TYPES),
    ),
    "conv_transpose": (
        "case\tN\tC\tK\tgroups\tspatial\tkernel\tstride\tpad\tpad_end\tdilation\toutput_padding\ttype\tlayout",
        [
            "transposed\t4\t16\t24\t1\t6,5\t4,4\t2,2\t1,1\t1,1\t1,1\t0,0",
            "transposed_grouped\t2\t12\t8\t2\t5,6\t3,3\t2,2\t1,1\t1,1\t1,1\t1,1",
            "transposed_1d\t2\t16\t8\t1\t12\t16\t8\t4\t4\t1\t0",
            "transposed_3d\t2\t8\t16\t1\t3,5,4\t2,2,2\t2,2,2\t0,0,0\t0,0,0\t1,1,1\t0,0,0",
            "transposed_causal\t2\t16\t8\t1\t12\t8\t4\t0\t4\t1\t0",
        ],
        list(TYPES),
    ),
    "batch_norm": (
        "case\tshape\ttype\tscale_type\tlayout",
        ["small\t6,16,7,9"],
        ["f16\tf32", "f16\tf16", "bf16\tf32", "f32\tf32", "f64\tf64"],
    ),
}


class Checker:
    """Small cases, run by the program and saved, against float64 on the CPU."""

    def __init__(self, program: Program) -> None:
        self.torch: Any = importlib.import_module("torch")
        self.aten: Any = self.torch.ops.aten
        self.program = program

    def check_all(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for kind, (heading, shapes, types) in CHECK_SUITES.items():
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                suite = folder / "suite.tsv"
                lines = [f"{s}\t{t}\t{layout}" for s in shapes for t in types for layout in ("NCHW", "NHWC")]
                suite.write_text("\n".join([heading, *lines]) + "\n", encoding="utf-8")
                cases = {case_name(case): case for case in read_suite(suite)}
                arguments = ["--suite", str(suite), "--save", name, "--samples", "1", "--budget", "0.1"]
                for line in self.program.steps(arguments, time.monotonic() + 90):
                    if line["kind"] == kind:
                        found += self.check(cases[line["name"]], line, folder)
        return found

    def check(self, case: dict[str, str], line: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
        if "error" in line:
            return [{"name": line["name"], "ok": False, "error": None, "text": line["error"]}]
        try:
            pairs = (self.batch_norm if line["kind"] == "batch_norm" else self.conv)(case, folder)
        except (OSError, RuntimeError, TypeError, ValueError) as failure:
            return [{"name": line["name"], "ok": False, "error": None, "text": first_line(failure)}]
        results = []
        for output, (value, expected, limit) in pairs.items():
            error = float((value - expected).norm() / expected.norm())
            shown = error if math.isfinite(error) else None
            results.append({"name": f"{line['name']} {output}", "ok": error <= limit, "error": shown, "limit": limit})
        return results

    def read(self, folder: Path, name: str, dims: list[int], dtype: str, last: bool) -> Any:
        data = bytearray((folder / f"{name}.bin").read_bytes())
        flat = self.torch.frombuffer(data, dtype=getattr(self.torch, dtype)).double()
        return flat.view(dims[0], *dims[2:], dims[1]).movedim(-1, 1).contiguous() if last else flat.view(dims)

    def conv(self, case: dict[str, str], folder: Path) -> dict[str, Any]:
        shape = ConvShape(case)
        named = {"X": shape.x, "W": shape.w, "dY": shape.y, "dX": shape.x, "dW": shape.w, "dB": [shape.y[1]]}
        tensors = {
            name: self.read(folder, name, dims, TYPES[case["type"]], shape.last and len(dims) > 1)
            for name, dims in named.items()
        }
        x, dy = self.extended(tensors["X"], shape.x_ahead), self.extended(tensors["dY"], shape.y_ahead)
        dx, *others = self.aten.convolution_backward.default(dy, x, tensors["W"], *shape.rest, MASKS["all"])
        expected = [self.cut(dx, shape.x_ahead), *others]
        limit = LIMITS[case["type"]]
        # The bias gradient is summed in float also where products are in TF32.
        return {
            name: (tensors[name], wanted, LIMITS["f32"] if (name, case["type"]) == ("dB", "tf32") else limit)
            for name, wanted in zip(("dX", "dW", "dB"), expected, strict=True)
        }

    def extended(self, tensor: Any, ahead: list[int]) -> Any:
        """By zeros ahead of each axis, or behind it where there are less than none."""
        ends = [side for a in reversed(ahead) for side in (max(a, 0), max(-a, 0))]
        return self.aten.constant_pad_nd.default(tensor, ends)

    def cut(self, tensor: Any, ahead: list[int]) -> Any:
        """What was extended, as it was."""
        ends = [-side for a in reversed(ahead) for side in (max(a, 0), max(-a, 0))]
        return self.aten.constant_pad_nd.default(tensor, ends)

    def batch_norm(self, case: dict[str, str], folder: Path) -> dict[str, Any]:
        dims = numbers(case["shape"])
        last = case["layout"] == "NHWC"
        kind, scale_kind = case["type"], case["scale_type"]
        stats_kind = "f64" if kind == "f64" else "f32"
        x, dy, y, dx = (self.read(folder, name, dims, TYPES[kind], last) for name in ("X", "dY", "Y", "dX"))
        channels = [1, dims[1], *[1] * (len(dims) - 2)]

        def of_channels(name: str, which: str) -> Any:
            return self.read(folder, name, [dims[1]], TYPES[which], False).view(channels)

        scale, bias, dscale, dbias = (of_channels(name, scale_kind) for name in ("scale", "B", "dScale", "dBias"))
        mean, inv_std = (of_channels(name, stats_kind) for name in ("saved_mean", "saved_inv_std"))
        axes = [axis for axis in range(len(dims)) if axis != 1]
        expected_mean = x.mean(axes, keepdim=True)
        expected_inv_std = (x.var(axes, unbiased=False, keepdim=True) + EPSILON).rsqrt()
        normalized = (x - expected_mean) * expected_inv_std
        expected_dscale = (dy * normalized).sum(axes, keepdim=True)
        expected_dbias = dy.sum(axes, keepdim=True)
        count = x.numel() / dims[1]
        expected_dx = scale * expected_inv_std * (dy - (expected_dbias + normalized * expected_dscale) / count)
        return {
            "Y": (y, scale * normalized + bias, LIMITS[kind]),
            "saved_mean": (mean, expected_mean, LIMITS[stats_kind]),
            "saved_inv_std": (inv_std, expected_inv_std, LIMITS[stats_kind]),
            "dX": (dx, expected_dx, LIMITS[kind]),
            "dScale": (dscale, expected_dscale, LIMITS[scale_kind]),
            "dBias": (dbias, expected_dbias, LIMITS[scale_kind]),
        }
