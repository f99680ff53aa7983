"""Batch normalization's gradient of small or odd planes beside PyTorch's on one GPU:
python bench/small_batch_norms.py [--only EXPRESSION] [--json FILE]

Layers without spatial dims, of few samples, and of planes of some hundred elements at most, whose time is that of
launches and of threads that wait for each other. Bytes are those of dY and X read once and of dX written once. Before
it is timed, each gradient is compared with its definition in double.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import gradsmith
import torch
from beside_torch import TYPES, Case, bytes_of, run, wide

SHAPES = [
    *[(8, 512), (8, 4096), (16, 512), (24, 2048), (36, 2048), (40, 3072), (64, 1536), (64, 4096)],
    *[(128, 256), (256, 1024), (512, 512), (1024, 128), (4096, 768), (32, 512, 1000)],
    *[(32, 2048, 1, 1), (16, 2048, 4, 4), (128, 64, 5, 5), (32, 256, 7, 7), (64, 512, 7, 7), (8, 960, 7, 7)],
    *[(32, 1000, 13, 13), (32, 96, 19, 19)],
]
EPSILON = 1e-5
TOLERANCES = {"half": 2e-3, "bf16": 2e-2, "float": 1e-5, "double": 1e-11}  # of the largest number of a tensor


def tensors(dims: tuple[int, ...], channels_last: bool, type_name: str) -> tuple[Any, ...]:
    """dY, X, scale, mean, 1/std, dX, dScale and dBias."""
    dtype, exact = TYPES[type_name], wide(TYPES[type_name])
    dy, x = (torch.randn(dims, device="cuda").to(dtype) for _ in range(2))
    if channels_last:
        dy, x = (one.contiguous(memory_format=torch.channels_last) for one in (dy, x))
    over = [0, *range(2, len(dims))]
    mean = x.to(exact).mean(over)
    inv_std = (x.to(exact).var(over, correction=0) + EPSILON).rsqrt()
    scale = torch.rand(dims[1], device="cuda", dtype=exact) + 0.5
    return dy, x, scale, mean, inv_std, torch.empty_like(x), torch.empty_like(scale), torch.empty_like(scale)


def ours(dy: Any, x: Any, scale: Any, mean: Any, inv_std: Any, dx: Any, dscale: Any, dbias: Any) -> Any:
    out = {"dX": dx, "dScale": dscale, "dBias": dbias}
    return gradsmith.batch_normalization_grad(dy, x, scale, mean, inv_std, out=out)


def of_torch(dy: Any, x: Any, scale: Any, mean: Any, inv_std: Any, *_outputs: Any) -> Any:
    backward = torch.ops.aten.native_batch_norm_backward
    return backward(dy, x, scale, None, None, mean, inv_std, True, EPSILON, [True, True, True])


def check(dims: tuple[int, ...], channels_last: bool, type_name: str) -> None:
    given = tensors(dims, channels_last, type_name)
    ours(*given)
    dy, x, scale, mean, inv_std = (one.double() for one in given[:5])
    over, along = [0, *range(2, len(dims))], [1, -1] + [1] * (len(dims) - 2)
    normalized = (x - mean.view(along)) * inv_std.view(along)
    dscale, dbias = (dy * normalized).sum(over), dy.sum(over)
    samples = x.numel() // dims[1]
    centered = dy - (dbias.view(along) + normalized * dscale.view(along)) / samples
    expected = ((scale * inv_std).view(along) * centered, dscale, dbias)
    for name, found, one in zip(("dX", "dScale", "dBias"), given[5:], expected, strict=True):
        error = float((found.double() - one).abs().max() / one.abs().max())
        assert error < TOLERANCES[type_name], (dims, channels_last, type_name, name, error)


def cases() -> Iterator[Case]:
    for type_name in TYPES:
        for dims in SHAPES:
            for channels_last in (False, True) if len(dims) == 4 else (False,):
                check(dims, channels_last, type_name)
                yield Case(
                    "BatchNormalizationGrad",
                    type_name,
                    "x".join(map(str, dims)) + (" NHWC" if channels_last else ""),
                    ours,
                    {"torch": of_torch},
                    partial(tensors, dims, channels_last, type_name),
                    partial(bytes_of, (0, 1, 5)),
                )


if __name__ == "__main__":
    run(__doc__, cases())
