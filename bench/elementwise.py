"""Element-wise gradients beside PyTorch's on one GPU: python bench/elementwise.py [--only EXPRESSION] [--json FILE]

Bytes are those of every input read once and of every output written once.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import gradsmith
import torch
from beside_torch import TYPES, Call, Case, bytes_of, run

SHAPES = [
    ((8192, 4096), False),
    ((32, 256, 56, 56), False),
    ((32, 256, 56, 56), True),
    ((8192, 999), False),
    ((262144, 64), False),
    ((7, 33, 55, 57), False),
    ((4096,), False),
]

backward = torch.ops.aten
OPERATORS: dict[str, tuple[Call, Call]] = {
    "SigmoidGrad": (
        lambda dy, y, dx: gradsmith.sigmoid_grad(dy, y, out={"dX": dx}),
        lambda dy, y, dx: backward.sigmoid_backward.grad_input(dy, y, grad_input=dx),
    ),
    "LeakyReluGrad": (
        lambda dy, x, dx: gradsmith.leaky_relu_grad(dy, x, out={"dX": dx}),
        lambda dy, x, dx: backward.leaky_relu_backward.grad_input(dy, x, 0.01, False, grad_input=dx),
    ),
    "GeluGrad": (
        lambda dy, x, dx: gradsmith.gelu_grad(dy, x, out={"dX": dx}),
        lambda dy, x, dx: backward.gelu_backward.grad_input(dy, x, approximate="none", grad_input=dx),
    ),
}


def tensors(dims: tuple[int, ...], channels_last: bool, dtype: torch.dtype) -> tuple[Any, ...]:
    """A gradient, an input between 0 and 1, and an output."""
    made = (draw(dims, device="cuda").to(dtype) for draw in (torch.randn, torch.rand, torch.zeros))
    return tuple(one.to(memory_format=torch.channels_last) if channels_last else one for one in made)


def cases() -> Iterator[Case]:
    for op, (ours, peer) in OPERATORS.items():
        for type_name, dtype in TYPES.items():
            for dims, channels_last in SHAPES:
                yield Case(
                    op,
                    type_name,
                    "x".join(map(str, dims)) + (" NHWC" if channels_last else ""),
                    ours,
                    {"torch": peer},
                    partial(tensors, dims, channels_last, dtype),
                    partial(bytes_of, (0, 1, 2)),
                )


if __name__ == "__main__":
    run(__doc__, cases())
