"""What a call costs beyond the kernel, beside PyTorch's own operator: python bench/call_cost.py [cuda]

On shapes so small that the arithmetic hardly counts. `prepared` is a call that validates and chooses but does not
compute. The extension must be on PYTHONPATH.
"""

from __future__ import annotations

import sys
import timeit
from collections.abc import Callable
from typing import Any

import gradsmith
import torch

REPEATS, CALLS = 200, 500


def best(call: Callable[[], Any], wait: Callable[[], Any]) -> float:
    """Microseconds of a call, the least of many runs."""

    def run() -> None:
        for _ in range(CALLS):
            call()
        wait()

    return min(timeit.repeat(run, number=1, repeat=REPEATS)) / CALLS * 1e6


def main(device: str) -> None:
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    dy = torch.ones(1, 1, 2, 2, device=device)
    x = torch.ones(1, 1, 3, 3, device=device)
    w = torch.ones(1, 1, 2, 2, device=device)
    out = gradsmith.conv_grad(dy, x, w)
    prepared = gradsmith.Context().preparing()
    aten = torch.ops.aten.convolution_backward
    calls: dict[str, Callable[[], Any]] = {
        "gradsmith.conv_grad": lambda: gradsmith.conv_grad(dy, x, w),
        "gradsmith.conv_grad, out=": lambda: gradsmith.conv_grad(dy, x, w, out=out),
        "gradsmith.conv_grad, out=, prepared": lambda: gradsmith.conv_grad(dy, x, w, out=out, context=prepared),
        "aten.convolution_backward": lambda: aten(
            dy, x, w, [1], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, True, True]
        ),
    }
    if device == "cpu":
        arrays = [one.numpy() for one in (dy, x, w)]
        calls["gradsmith.conv_grad, NumPy"] = lambda: gradsmith.conv_grad(*arrays)
    for name, call in calls.items():
        call()
        print(f"{name:<40} {best(call, wait):8.2f} us")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "cpu")
