"""What the operators compute, in NumPy and float64: a sum over the taps of a filter, and the formulas of batch
normalization."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np

Arrays = dict[str, Any]
Attributes = dict[str, Any]


def _windows(x: Any, kernel: tuple[int, ...], out: tuple[int, ...], attributes: Attributes) -> Any:
    """For each tap of a filter its place in W, and the elements of X that it is multiplied with; X has its pads."""
    strides, dilations = attributes["strides"], attributes["dilations"]
    for tap in product(*map(range, kernel)):
        steps = zip(tap, strides, dilations, out, strict=True)
        places = tuple(slice(k * d, k * d + s * (o - 1) + 1, s) for k, s, d, o in steps)
        yield (..., *tap), (..., *places), x[(..., *places)]


def _padded(x: Any, pads: tuple[int, ...]) -> Any:
    rank = len(pads) // 2
    return np.pad(x, [(0, 0)] * 2 + list(zip(pads[:rank], pads[rank:], strict=True)))


def _grouped(x: Any, group: int, axis: int) -> Any:
    """With the channels of each group apart."""
    return x.reshape(*x.shape[:axis], group, x.shape[axis] // group, *x.shape[axis + 1 :])


def out_dims(x: tuple[int, ...], kernel: tuple[int, ...], attributes: Attributes) -> tuple[int, ...]:
    rank, pads = len(kernel), attributes["pads"]
    each = zip(x, kernel, attributes["strides"], attributes["dilations"], range(rank), strict=True)
    return tuple((size + pads[i] + pads[rank + i] - d * (k - 1) - 1) // s + 1 for size, k, s, d, i in each)


def _convolved(x: Any, w: Any, attributes: Attributes) -> Any:
    group, out = attributes["group"], out_dims(x.shape[2:], w.shape[2:], attributes)
    padded, filters = _grouped(_padded(x, attributes["pads"]), group, 1), _grouped(w, group, 0)
    y = np.zeros((x.shape[0], group, w.shape[0] // group, *out))
    for tap, _, elements in _windows(padded, w.shape[2:], out, attributes):
        y += np.einsum("ngc...,gmc->ngm...", elements, filters[tap])
    return y.reshape(x.shape[0], w.shape[0], *out)


def _backward_data(dy: Any, w: Any, dims: tuple[int, ...], attributes: Attributes) -> Any:
    group, pads, rank = attributes["group"], attributes["pads"], w.ndim - 2
    sizes = [size + pads[i] + pads[rank + i] for i, size in enumerate(dims)]
    dx: Any = np.zeros((dy.shape[0], group, w.shape[1], *sizes))
    filters, gradients = _grouped(w, group, 0), _grouped(dy, group, 1)
    for tap, places, _ in _windows(dx, w.shape[2:], dy.shape[2:], attributes):
        dx[places] += np.einsum("ngm...,gmc->ngc...", gradients, filters[tap])
    inner = tuple(slice(pads[i], pads[i] + size) for i, size in enumerate(dims))
    return dx[(..., *inner)].reshape(dy.shape[0], group * w.shape[1], *dims)


def _backward_filter(dy: Any, x: Any, kernel: tuple[int, ...], attributes: Attributes) -> Any:
    group = attributes["group"]
    padded, gradients = _grouped(_padded(x, attributes["pads"]), group, 1), _grouped(dy, group, 1)
    dw = np.zeros((group, dy.shape[1] // group, x.shape[1] // group, *kernel))
    for tap, _, elements in _windows(padded, kernel, dy.shape[2:], attributes):
        dw[tap] = np.einsum("ngmo,ngco->gmc", _flat(gradients), _flat(elements))
    return dw.reshape(dy.shape[1], x.shape[1] // group, *kernel)


def _over_channels(dy: Any) -> Any:
    return dy.sum(axis=(0, *range(2, dy.ndim)))


def _flat(grouped: Any) -> Any:
    """With one spatial axis."""
    return grouped.reshape(*grouped.shape[:3], prod(grouped.shape[3:]))


def _along(values: Any, x: Any) -> Any:
    return values.reshape(1, -1, *[1] * (x.ndim - 2))


def conv(attributes: Attributes, x: Any, w: Any, b: Any) -> Arrays:
    y = _convolved(x, w, attributes)
    return {"Y": y if b is None else y + _along(b, y)}


def conv_grad(attributes: Attributes, dy: Any, x: Any, w: Any) -> Arrays:
    return {
        "dX": _backward_data(dy, w, x.shape[2:], attributes),
        "dW": _backward_filter(dy, x, w.shape[2:], attributes),
        "dB": _over_channels(dy),
    }


def conv_transpose(attributes: Attributes, dims: tuple[int, ...], x: Any, w: Any, b: Any) -> Arrays:
    """`dims` are those of the image, which a convolution would make X of."""
    y = _backward_data(x, w, dims, attributes)
    return {"Y": y if b is None else y + _along(b, y)}


def conv_transpose_grad(attributes: Attributes, dy: Any, x: Any, w: Any) -> Arrays:
    return {
        "dX": _convolved(dy, w, attributes),
        "dW": _backward_filter(x, dy, w.shape[2:], attributes),
        "dB": _over_channels(dy),
    }


def batch_normalization(attributes: Attributes, x: Any, scale: Any, bias: Any, mean: Any, var: Any) -> Arrays:
    axes, momentum = (0, *range(2, x.ndim)), attributes["momentum"]
    count = x.size // x.shape[1]
    batch_mean, batch_var = x.mean(axis=axes), x.var(axis=axes)
    inv_std = 1 / np.sqrt(batch_var + attributes["epsilon"])
    return {
        "Y": (x - _along(batch_mean, x)) * _along(inv_std * scale, x) + _along(bias, x),
        "running_mean": momentum * mean + (1 - momentum) * batch_mean,
        "running_var": momentum * var + (1 - momentum) * batch_var * count / (count - 1),
        "saved_mean": batch_mean,
        "saved_inv_std": inv_std,
    }


def batch_normalization_grad(attributes: Attributes, dy: Any, x: Any, scale: Any, mean: Any, inv_std: Any) -> Arrays:
    xhat, count = (x - _along(mean, x)) * _along(inv_std, x), x.size // x.shape[1]
    d_bias, d_scale = _over_channels(dy), _over_channels(dy * xhat)
    rest = dy - _along(d_bias / count, x) - xhat * _along(d_scale / count, x)
    return {"dX": _along(scale * inv_std, x) * rest, "dScale": d_scale, "dBias": d_bias}
