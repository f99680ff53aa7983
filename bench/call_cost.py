"""What a call costs the host, from Python and from C++: python bench/call_cost.py [cpu|cuda] [--json FILE]

On shapes so small that the arithmetic hardly counts. Calls are timed in short bursts, and what a GPU has to do for
them is waited for between the bursts; the kinds of calls take turns, so that all find the same clocks. The C++ call is
the library's own, on the same memory, made in a loop of the extension, which must be on PYTHONPATH. NumPy is measured
on the CPU. Beside it PyTorch's operator for the same gradients. The goal is held to the least of the bursts, to which
nothing else that the machine does is added; the exit status is 1 where it is missed.

It is the goal of NumPy's and PyTorch's arrays of float in NCHW. What other calls cost is told: NHWC, bfloat16 of NumPy
(with ml_dtypes), JAX on the CPU (where it is installed), and the function of gradsmith.torch while autograd records.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gradsmith
import gradsmith.torch
import torch
from gradsmith import _core

TURNS, BURSTS, CALLS = 8, 50, 50  # what the calls of a burst put on a GPU fits into its queue
GOAL = 5.0  # microseconds over the C++ call
CPP, ATEN = "C++ call", "aten.convolution_backward"
HELD_TO_GOAL = {f"{library}, {outputs}" for library in ("NumPy", "PyTorch") for outputs in ("outputs made", "out=")}


@dataclass(frozen=True)
class Row:
    """What one kind of call costs, in microseconds."""

    median: float
    median_over_cpp: float
    least: float
    least_over_cpp: float

    @staticmethod
    def of(taken: list[float], cpp: list[float]) -> Row:
        median, least = statistics.median(taken), min(taken)
        figures = (median, median - statistics.median(cpp), least, least - min(cpp))
        return Row(*(round(figure, 3) for figure in figures))


def once(call: Callable[[], Any]) -> Callable[[], float]:
    """Seconds of a call, in a burst."""

    def burst() -> float:
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        return (time.perf_counter() - start) / CALLS

    return burst


def measure(bursts: dict[str, Callable[[], float]], wait: Callable[[], Any]) -> dict[str, list[float]]:
    """Microseconds of a call of each kind, burst by burst."""
    times: dict[str, list[float]] = {name: [] for name in bursts}
    for _ in range(TURNS):
        for name, burst in bursts.items():
            for number in range(-5, BURSTS):
                seconds = burst()
                wait()
                if number >= 0:
                    times[name].append(seconds * 1e6)
    return times


def bursts_of(device: str) -> dict[str, Callable[[], float]]:
    dims = ((1, 1, 2, 2), (1, 1, 3, 3), (1, 1, 2, 2))
    tensors = dy, x, w = [torch.ones(one, device=device) for one in dims]
    out = gradsmith.conv_grad(dy, x, w)
    op = _core.Op("ConvGrad", gradsmith.ConvGradResult)
    settings = ((dy, x, w), (None,) * 6, None, out, gradsmith.Context().policies)
    aten = torch.ops.aten.convolution_backward.default
    rest = ([1], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, True, True])
    bursts = {
        CPP: lambda: op.time(*settings, CALLS),
        "PyTorch, outputs made": once(lambda: gradsmith.conv_grad(dy, x, w)),
        "PyTorch, out=": once(lambda: gradsmith.conv_grad(dy, x, w, out=out)),
        ATEN: once(lambda: aten(dy, x, w, *rest)),
    }
    if device == "cpu":
        arrays = [one.numpy() for one in tensors]
        made = tuple(one.numpy() for one in out)
        bursts["NumPy, outputs made"] = once(lambda: gradsmith.conv_grad(*arrays))
        bursts["NumPy, out="] = once(lambda: gradsmith.conv_grad(*arrays, out=made))
    return bursts


def other_bursts_of(device: str) -> dict[str, Callable[[], float]]:
    """Calls that the goal is not held to; outputs are made."""
    tensors = [torch.ones(dims, device=device) for dims in ((1, 1, 2, 2), (1, 1, 3, 3), (1, 1, 2, 2))]
    recorded = [one.clone().requires_grad_() for one in tensors]
    # A single channel would lie in both layouts at once.
    nhwc = [torch.ones((2, 2, *one.shape[2:]), device=device).to(memory_format=torch.channels_last) for one in tensors]
    bursts = {
        "gradsmith.torch, recorded": once(lambda: gradsmith.torch.conv_grad(*recorded)),
        "PyTorch, NHWC": once(lambda: gradsmith.conv_grad(*nhwc)),
    }
    if device == "cpu":
        arrays = [one.numpy() for one in tensors]
        nhwc_arrays = [one.numpy() for one in nhwc]
        bursts["NumPy, NHWC"] = once(lambda: gradsmith.conv_grad(*nhwc_arrays))
        if find_spec("ml_dtypes"):
            bf16 = [one.astype(import_module("ml_dtypes").bfloat16) for one in arrays]
            bursts["NumPy, bfloat16"] = once(lambda: gradsmith.conv_grad(*bf16))
        if find_spec("jax"):
            of_jax = [import_module("jax.numpy").asarray(one) for one in arrays]
            bursts["JAX"] = once(lambda: gradsmith.conv_grad(*of_jax))
    return bursts


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def misses_of(rows: dict[str, Row]) -> list[str]:
    """The kinds of calls that are held to the goal and miss it."""
    return [name for name, row in rows.items() if name in HELD_TO_GOAL and row.least_over_cpp >= GOAL]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device", nargs="?", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE as well")
    options = parser.parse_args()
    wait = torch.cuda.synchronize if options.device == "cuda" else lambda: None
    times = measure({**bursts_of(options.device), **other_bursts_of(options.device)}, wait)
    rows = {name: Row.of(taken, times[CPP]) for name, taken in times.items()}
    print(f"{'microseconds of a call of conv_grad':<36}{'median':>9}{'over C++':>9}{'least':>9}{'over C++':>9}")
    for name, row in rows.items():
        print(f"{name:<36}" + "".join(f"{figure:9.2f}" for figure in vars(row).values()))
    missed = misses_of(rows)
    outcome = f"MISSED by {'; '.join(missed)}" if missed else "met"
    print(f"goal of {'; '.join(sorted(HELD_TO_GOAL & set(rows)))}: under {GOAL:g} us over the C++ call: {outcome}")
    if options.json:
        told = {
            "device": torch.cuda.get_device_name() if options.device == "cuda" else "cpu",
            "processor": processor(),
            "python": platform.python_version(),
            "torch": torch.__version__,
            "microseconds": {name: vars(row) for name, row in rows.items()},
        }
        options.json.write_text(json.dumps(told, indent=2) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
