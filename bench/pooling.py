"""Pooling and its gradients beside PyTorch's on one GPU: python bench/pooling.py [--only EXPRESSION] [--json FILE]

Bytes are those of every input read once, indices of 64 bits among them, and of every output written once. The peer of
global pooling is PyTorch's adaptive pooling to one element. torch.compile's kernels and cuDNN's are peers of the
gradients; cuDNN, which has no indices, finds maxima anew, as MaxPoolXYGrad does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import cudnn_pooling
import gradsmith
import torch
from beside_torch import TYPES, Call, Case, bytes_of, compiled, run
from torch.nn import functional


@dataclass(frozen=True)
class Shape:
    """X, and windows over it that are alike along all axes."""

    dims: tuple[int, ...]
    size: int
    stride: int
    pad: int

    @property
    def rank(self) -> int:
        return len(self.dims) - 2

    @property
    def windows(self) -> tuple[list[int], list[int], list[int]]:
        """Sizes, steps and pads as PyTorch takes them."""
        return [self.size] * self.rank, [self.stride] * self.rank, [self.pad] * self.rank

    @property
    def attributes(self) -> dict[str, Any]:
        sizes, strides, pads = self.windows
        return {"kernel_shape": sizes, "strides": strides, "pads": pads * 2}

    @property
    def name(self) -> str:
        return "x".join(map(str, (*self.dims, self.size, self.stride, self.pad)))


SHAPES = [
    Shape((128, 64, 112, 112), 3, 2, 1),
    Shape((64, 256, 56, 56), 2, 2, 0),
    Shape((64, 192, 35, 35), 3, 1, 1),
    Shape((128, 2048, 7, 7), 7, 7, 0),
    Shape((16, 64, 32, 56, 56), 2, 2, 0),
    Shape((8, 192, 16, 28, 28), 3, 1, 1),
]
GLOBAL_SHAPES: list[tuple[int, ...]] = [(128, 2048, 7, 7), (64, 256, 56, 56), (16, 512, 8, 14, 14)]
# Which of the tensors that a call takes an operator reads and writes: dY, X, Y, Indices, PyTorch's indices and dX.
OPERATORS = {
    "MaxPool": (1, 2, 3),
    "MaxPoolGrad": (0, 3, 5),
    "MaxPoolXYGrad": (0, 1, 2, 5),
    "AveragePool": (1, 2),
    "AveragePoolGrad": (0, 5),
}
GLOBAL_OPERATORS = {
    "GlobalMaxPool": (1, 2),
    "GlobalMaxPoolGrad": (0, 1, 2, 5),
    "GlobalAveragePool": (1, 2),
    "GlobalAveragePoolGrad": (0, 5),
}

aten = torch.ops.aten


def of_rank(name: str, rank: int) -> Any:
    return getattr(aten, name.replace("#", str(rank)))


def peer_of(op: str, shape: Shape) -> Call:
    windows, rank, ones = shape.windows, shape.rank, [1] * shape.rank
    if op == "AveragePool":
        forward = of_rank("avg_pool#d", rank)
        return lambda dy, x, y, i, t, dx: forward(x, *windows)
    if op == "AveragePoolGrad":
        average = of_rank("avg_pool#d_backward", rank)
        return lambda dy, x, y, i, t, dx: average(dy, x, *windows, False, False, None)
    if op == "MaxPool":
        pool = of_rank("max_pool#d_with_indices", rank)
        return lambda dy, x, y, i, t, dx: pool(x, *windows)
    backward = of_rank("max_pool#d_with_indices_backward", rank)
    return lambda dy, x, y, i, t, dx: backward(dy, x, *windows, ones, False, t)


def with_compiled(op: str, peer: Call) -> dict[str, Call]:
    return {"torch": peer} | ({"compile": compiled(peer, 6)} if op.endswith("Grad") else {})


def peers_of(op: str, shape: Shape) -> dict[str, Call]:
    peers = with_compiled(op, peer_of(op, shape))
    if op.endswith("Grad"):
        mode = cudnn_pooling.MAX_POOLING if op.startswith("Max") else cudnn_pooling.AVERAGE_WITHOUT_PADDING
        pooling = cudnn_pooling.Pooling(mode, *shape.windows)
        peers["cudnn"] = lambda dy, x, y, i, t, dx: pooling.backward(dy, x, y, dx)
    return peers


def ours_of(op: str, shape: Shape) -> Call:
    at = shape.attributes
    calls: dict[str, Call] = {
        "MaxPool": lambda dy, x, y, i, t, dx: gradsmith.max_pool(x, **at, out={"Y": y, "Indices": i}),
        "MaxPoolGrad": lambda dy, x, y, i, t, dx: gradsmith.max_pool_grad(dy, i, **at, out={"dX": dx}),
        "MaxPoolXYGrad": lambda dy, x, y, i, t, dx: gradsmith.max_pool_xy_grad(dy, x, y, **at, out={"dX": dx}),
        "AveragePool": lambda dy, x, y, i, t, dx: gradsmith.average_pool(x, **at, out={"Y": y}),
        "AveragePoolGrad": lambda dy, x, y, i, t, dx: gradsmith.average_pool_grad(dy, x, **at, out={"dX": dx}),
    }
    return calls[op]


def global_peer_of(op: str, rank: int) -> Call:
    one = [1] * rank
    if op == "GlobalAveragePool":
        average = of_rank("adaptive_avg_pool#d", rank)
        return lambda dy, x, y, i, t, dx: average(x, one)
    if op == "GlobalAveragePoolGrad":
        backward = of_rank("_adaptive_avg_pool#d_backward", rank)
        return lambda dy, x, y, i, t, dx: backward(dy, x)
    if op == "GlobalMaxPool":
        pool = of_rank("adaptive_max_pool#d", rank)
        return lambda dy, x, y, i, t, dx: pool(x, one)
    of_max = of_rank("adaptive_max_pool#d_backward", rank)
    return lambda dy, x, y, i, t, dx: of_max(dy, x, t)


GLOBAL_OURS: dict[str, Call] = {
    "GlobalMaxPool": lambda dy, x, y, i, t, dx: gradsmith.global_max_pool(x, out={"Y": y}),
    "GlobalMaxPoolGrad": lambda dy, x, y, i, t, dx: gradsmith.global_max_pool_grad(dy, x, y, out={"dX": dx}),
    "GlobalAveragePool": lambda dy, x, y, i, t, dx: gradsmith.global_average_pool(x, out={"Y": y}),
    "GlobalAveragePoolGrad": lambda dy, x, y, i, t, dx: gradsmith.global_average_pool_grad(dy, x, out={"dX": dx}),
}


def random(dims: tuple[int, ...], channels_last: bool, dtype: torch.dtype) -> Any:
    last = torch.channels_last if len(dims) == 4 else torch.channels_last_3d
    return (
        torch.randn(dims, device="cuda").to(dtype).to(memory_format=last if channels_last else torch.contiguous_format)
    )


def tensors(shape: Shape, channels_last: bool, dtype: torch.dtype) -> tuple[Any, ...]:
    x = random(shape.dims, channels_last, dtype)
    pool = functional.max_pool2d if shape.rank == 2 else functional.max_pool3d
    y, indices = pool(x, *shape.windows, return_indices=True)
    dy = torch.randn_like(y)
    ours = gradsmith.max_pool(x, **shape.attributes).Indices
    return dy, x, y, ours, indices, torch.zeros_like(x)


def global_tensors(dims: tuple[int, ...], channels_last: bool, dtype: torch.dtype) -> tuple[Any, ...]:
    x = random(dims, channels_last, dtype)
    pool = functional.adaptive_max_pool2d if len(dims) == 4 else functional.adaptive_max_pool3d
    y, indices = pool(x, 1, return_indices=True)
    return torch.randn_like(y), x, y, None, indices, torch.zeros_like(x)


def cases() -> Iterator[Case]:
    for type_name, dtype in TYPES.items():
        for channels_last in (False, True):
            layout = " NHWC" if channels_last else ""
            for shape in SHAPES:
                for op, moved in OPERATORS.items():
                    peers = peers_of(op, shape)
                    draw = partial(tensors, shape, channels_last, dtype)
                    size = partial(bytes_of, moved)
                    yield Case(op, type_name, shape.name + layout, ours_of(op, shape), peers, draw, size)
            for dims in GLOBAL_SHAPES:
                name = "x".join(map(str, dims)) + layout
                for op, moved in GLOBAL_OPERATORS.items():
                    peers = with_compiled(op, global_peer_of(op, len(dims) - 2))
                    draw = partial(global_tensors, dims, channels_last, dtype)
                    yield Case(op, type_name, name, GLOBAL_OURS[op], peers, draw, partial(bytes_of, moved))


if __name__ == "__main__":
    run(__doc__, cases())
