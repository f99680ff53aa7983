"""Gradients over rows beside PyTorch's on one GPU: python bench/rows.py [--only EXPRESSION] [--json FILE]

Softmax and its logarithm along the last axis and along channels, and the norms of layers with the gradients of their
scale and bias, of mixed types too, which PyTorch's own kernels refuse. Bytes are those of every input read once and of
every output written once. torch.compile's kernels, where it makes any, are a peer beside PyTorch's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import gradsmith
import torch
from beside_torch import TYPES, Call, Case, bytes_of, compiled, run, wide

SOFTMAX_SHAPES = [
    ((16384, 1024), -1),
    ((4096, 8192), -1),
    ((8192, 32000), -1),
    ((32, 1000, 56, 56), 1),
    ((8192, 999), -1),
    ((4096, 50257), -1),
    ((262144, 64), -1),
    ((7, 33, 55, 57), -1),
    ((16, 150, 65, 65), 1),
    ((2048, 128256), -1),
    ((512, 262144), -1),
    ((16, 1048576), -1),
    ((1, 1048576), -1),
]
NORM_SHAPES = [
    (32768, 1024),
    (16384, 4096),
    (8192, 8192),
    (4096, 16384),
    (262144, 64),
    (8192, 999),
    (2048, 1024),
    (512, 768),
    (8, 100),
    (1024, 65536),
    (64, 262144),
    (4, 1048576),
]


@dataclass(frozen=True)
class NormTypes:
    """Those of X and dX, of dY, scale and bias, and of what there is once of each row."""

    x: torch.dtype
    scale: torch.dtype
    statistics: torch.dtype


# The names are those of the operators' rows. Where a name has one type, statistics have the type of sums.
NORM_TYPES = {name: NormTypes(dtype, dtype, wide(dtype)) for name, dtype in TYPES.items()} | {
    "half_half": NormTypes(torch.float16, torch.float16, torch.float16),
    "half_float": NormTypes(torch.float16, torch.float32, torch.float32),
    "bf16_float": NormTypes(torch.bfloat16, torch.float32, torch.float32),
    "float_half": NormTypes(torch.float32, torch.float16, torch.float32),
}

backward = torch.ops.aten


def softmax_tensors(dims: tuple[int, ...], axis: int, is_log: bool, dtype: torch.dtype) -> tuple[Any, ...]:
    x = torch.randn(dims, device="cuda").to(dtype)
    y = torch.log_softmax(x, axis) if is_log else torch.softmax(x, axis)
    return torch.randn_like(x), y, torch.empty_like(x)


def softmax_calls(axis: int, is_log: bool, dtype: torch.dtype) -> tuple[Call, dict[str, Call]]:
    """Ours and PyTorch's; they take dY, Y and dX."""
    grad = gradsmith.log_softmax_grad if is_log else gradsmith.softmax_grad
    of_torch = backward._log_softmax_backward_data if is_log else backward._softmax_backward_data

    def peer(dy: Any, y: Any, dx: Any) -> Any:
        return of_torch.out(dy, y, axis, dtype, **{"out" if is_log else "grad_input": dx})

    def formula(dy: Any, y: Any) -> Any:
        of_row, times = dy.to(wide(dtype)), y.to(wide(dtype))
        if is_log:
            return (of_row - times.exp() * of_row.sum(axis, keepdim=True)).to(dtype)
        return (times * (of_row - (of_row * times).sum(axis, keepdim=True))).to(dtype)

    return lambda dy, y, dx: grad(dy, y, axis=axis, out={"dX": dx}), {"torch": peer, "compile": compiled(formula, 2)}


def norm_tensors(dims: tuple[int, int], types: NormTypes) -> tuple[Any, ...]:
    """dY, X, scale, bias, mean, 1/std, 1/rms, dX, dScale and dBias."""
    x = torch.randn(dims, device="cuda").to(types.x)
    dy, scale, bias = (torch.randn(of, device="cuda").to(types.scale) for of in (dims, dims[1], dims[1]))
    exact = x.to(wide(types.x))
    mean = exact.mean(1, keepdim=True)
    inv_std, inv_rms = ((at.square().mean(1, keepdim=True) + 1e-5).rsqrt() for at in (exact - mean, exact))
    statistics = (of.to(types.statistics) for of in (mean, inv_std, inv_rms))
    outputs = (torch.empty_like(like) for like in (x, scale, bias))
    return dy, x, scale, bias, *statistics, *outputs


def norm_formula(types: NormTypes, has_mean: bool) -> Call:
    """The gradients of X, scale and bias, the last of which RMS norms lack, as torch.compile is given them."""

    def formula(dy: Any, x: Any, scale: Any, mean: Any, inv_std: Any) -> Any:
        of_y, deviation = dy.to(wide(types.x)), x.to(wide(types.x))
        normalized = ((deviation - mean) if has_mean else deviation) * inv_std
        scaled = of_y * scale.to(wide(types.x))
        centred = scaled - scaled.mean(1, keepdim=True) if has_mean else scaled
        dx = inv_std * (centred - normalized * (scaled * normalized).mean(1, keepdim=True))
        sums = [(of_y * normalized).sum(0), *([of_y.sum(0)] if has_mean else [])]
        return [dx.to(types.x), *(one.to(types.scale) for one in sums)]

    return formula


def layer_norm_calls(dims: tuple[int, int], types: NormTypes) -> tuple[Call, dict[str, Call]]:
    def ours(dy: Any, x: Any, s: Any, b: Any, mean: Any, std: Any, rms: Any, dx: Any, ds: Any, db: Any) -> Any:
        out = {"dX": dx, "dScale": ds, "dBias": db}
        return gradsmith.layer_normalization_grad(dy, x, s, mean[:, 0], std[:, 0], out=out)

    def peer(dy: Any, x: Any, s: Any, b: Any, mean: Any, std: Any, rms: Any, dx: Any, ds: Any, db: Any) -> Any:
        return backward.native_layer_norm_backward(dy, x, [dims[1]], mean, std, s, b, [True, True, True])

    formula = compiled(norm_formula(types, True), 5)

    def without_bias(dy: Any, x: Any, s: Any, b: Any, mean: Any, std: Any, *_others: Any) -> Any:
        return formula(dy, x, s, mean, std)

    return ours, {"torch": peer, "compile": without_bias}


def rms_norm_calls(dims: tuple[int, int], types: NormTypes) -> tuple[Call, dict[str, Call]]:
    def ours(dy: Any, x: Any, s: Any, b: Any, mean: Any, std: Any, rms: Any, dx: Any, ds: Any, db: Any) -> Any:
        return gradsmith.simplified_layer_normalization_grad(dy, x, s, rms[:, 0], out={"dX": dx, "dScale": ds})

    def peer(dy: Any, x: Any, s: Any, b: Any, mean: Any, std: Any, rms: Any, dx: Any, ds: Any, db: Any) -> Any:
        return backward._fused_rms_norm_backward(dy, x, [dims[1]], rms, s, [True, True])

    formula = compiled(norm_formula(types, False), 5)

    def of_rms(dy: Any, x: Any, s: Any, b: Any, mean: Any, std: Any, rms: Any, *_others: Any) -> Any:
        return formula(dy, x, s, rms, rms)

    return ours, {"torch": peer, "compile": of_rms}


def cases() -> Iterator[Case]:
    for type_name, dtype in TYPES.items():
        for dims, axis in SOFTMAX_SHAPES:
            shape = "x".join(map(str, dims)) + f" axis {axis}"
            for op, is_log in (("SoftmaxGrad", False), ("LogSoftmaxGrad", True)):
                draw = partial(softmax_tensors, dims, axis, is_log, dtype)
                calls = softmax_calls(axis, is_log, dtype)
                yield Case(op, type_name, shape, *calls, draw, partial(bytes_of, (0, 1, 2)))
    for type_name, types in NORM_TYPES.items():
        for rows in NORM_SHAPES:
            shape, draw = "x".join(map(str, rows)), partial(norm_tensors, rows, types)
            of_layer, of_rms = (0, 1, 2, 4, 5, 7, 8, 9), (0, 1, 2, 6, 7, 8)
            layer, rms = layer_norm_calls(rows, types), rms_norm_calls(rows, types)
            yield Case("LayerNormalizationGrad", type_name, shape, *layer, draw, partial(bytes_of, of_layer))
            yield Case("SimplifiedLayerNormalizationGrad", type_name, shape, *rms, draw, partial(bytes_of, of_rms))


if __name__ == "__main__":
    run(__doc__, cases())
