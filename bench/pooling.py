"""Gradients of pooling beside PyTorch's on one GPU: python bench/pooling.py [--only EXPRESSION] [--json FILE]

Bytes are those of every input read once, indices of 64 bits among them, and of the output written once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import gradsmith
import torch
from beside_torch import TYPES, Call, Case, bytes_of, run
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
# Which of the tensors that a call takes an operator reads and writes.
OPERATORS = {"MaxPoolGrad": (0, 3, 5), "MaxPoolXYGrad": (0, 1, 2, 5), "AveragePoolGrad": (0, 5)}


def calls(op: str, shape: Shape) -> tuple[Call, Call]:
    """Ours and PyTorch's; both take dY, X, Y, Indices, PyTorch's indices and dX."""
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


def cases() -> Iterator[Case]:
    for type_name, dtype in TYPES.items():
        for shape in SHAPES:
            for channels_last in (False, True):
                for op, moved in OPERATORS.items():
                    ours, peer = calls(op, shape)
                    yield Case(
                        op,
                        type_name,
                        shape.name + (" NHWC" if channels_last else ""),
                        ours,
                        {"torch": peer},
                        partial(tensors, shape, channels_last, dtype),
                        partial(bytes_of, moved),
                    )


if __name__ == "__main__":
    run(__doc__, cases())
