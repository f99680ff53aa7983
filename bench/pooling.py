"""Gradients of pooling beside PyTorch's on one GPU: python bench/pooling.py [--json FILE]

Measured as bench/elementwise.py does. Bytes are those of every input read once, indices of 64 bits among them, and of
the output written once.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradsmith
import torch
from elementwise import BYTES_IN_FLIGHT, TYPES, milliseconds
from torch.nn import functional


@dataclass(frozen=True)
class Shape:
    """X, and square windows over it."""

    dims: tuple[int, int, int, int]
    size: int
    stride: int
    pad: int

    @property
    def attributes(self) -> dict[str, Any]:
        return {"kernel_shape": [self.size] * 2, "strides": [self.stride] * 2, "pads": [self.pad] * 4}

    @property
    def name(self) -> str:
        return "x".join(map(str, (*self.dims, self.size, self.stride, self.pad)))


SHAPES = [
    Shape((128, 64, 112, 112), 3, 2, 1),
    Shape((64, 256, 56, 56), 2, 2, 0),
    Shape((64, 192, 35, 35), 3, 1, 1),
    Shape((128, 2048, 7, 7), 7, 7, 0),
]
OPERATORS = ("MaxPoolGrad", "MaxPoolXYGrad", "AveragePoolGrad")
Call = Callable[..., Any]


def calls(op: str, shape: Shape) -> tuple[Call, Call]:
    """Ours and PyTorch's, of (dY, X, Y, Indices, PyTorch's indices, dX)."""
    at, window = shape.attributes, ([shape.size] * 2, [shape.stride] * 2, [shape.pad] * 2)
    backward = torch.ops.aten
    if op == "AveragePoolGrad":
        return (
            lambda dy, x, y, i, t, dx: gradsmith.average_pool_grad(dy, x, **at, out={"dX": dx}),
            lambda dy, x, y, i, t, dx: backward.avg_pool2d_backward(dy, x, *window, False, False, None),
        )

    def peer(dy: Any, x: Any, y: Any, i: Any, t: Any, dx: Any) -> Any:
        return backward.max_pool2d_with_indices_backward(dy, x, *window, [1, 1], False, t)

    if op == "MaxPoolGrad":
        return (lambda dy, x, y, i, t, dx: gradsmith.max_pool_grad(dy, i, **at, out={"dX": dx})), peer
    return (lambda dy, x, y, i, t, dx: gradsmith.max_pool_xy_grad(dy, x, y, **at, out={"dX": dx})), peer


def tensors(shape: Shape, channels_last: bool, dtype: torch.dtype) -> tuple[Any, ...]:
    order = torch.channels_last if channels_last else torch.contiguous_format
    x = torch.randn(shape.dims, device="cuda").to(dtype).to(memory_format=order)
    y, indices = functional.max_pool2d(x, shape.size, shape.stride, shape.pad, return_indices=True)
    dy = torch.randn_like(y)
    ours = gradsmith.max_pool(x, **shape.attributes).Indices
    return dy, x, y, ours, indices, torch.zeros_like(x)


def least_bytes(op: str, one: tuple[Any, ...]) -> int:
    dy, x, y, indices, _, dx = one
    read = {"MaxPoolGrad": [indices], "MaxPoolXYGrad": [x, y], "AveragePoolGrad": []}[op]
    return sum(int(tensor.nbytes) for tensor in (dy, dx, *read))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, help="where the results go as data")
    arguments = parser.parse_args()
    source, target = (torch.rand(1 << 28, device="cuda") for _ in range(2))
    copy = 2 * source.nbytes / milliseconds(lambda one, to: torch.neg(one, out=to), [(source, target)])
    del source, target
    results = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "copy_gb_s": copy / 1e6, "cases": []}
    print(f"copy {copy / 1e6:.0f} GB/s\n| operator | type | shape | us | of copy | PyTorch's time over ours |")
    print("|---|---|---|---|---|---|")
    for type_name, dtype in TYPES.items():
        for shape in SHAPES:
            for channels_last in (False, True):
                first = tensors(shape, channels_last, dtype)
                for op in OPERATORS:
                    size = least_bytes(op, first)
                    count = min(8, max(2, 1 + int(BYTES_IN_FLIGHT // size)))
                    sets = [first, *(tensors(shape, channels_last, dtype) for _ in range(count - 1))]
                    time, of_peer = (milliseconds(call, sets) for call in calls(op, shape))
                    name = shape.name + (" NHWC" if channels_last else "")
                    case = {"op": op, "type": type_name, "shape": name, "ms": time, "torch_ms": of_peer, "bytes": size}
                    results["cases"].append(case)
                    figures = f"{time * 1e3:.2f} | {size / time / copy:.2f} | {of_peer / time:.2f}"
                    print(f"| {op} | {type_name} | {name} | {figures} |", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
