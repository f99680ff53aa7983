"""The gradients of BatchNormalizationGrad and BatchNormalizationReluGrad."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch

from ._double_backward import Call, per_channel

ASSUMED = ("saved_mean", "saved_inv_std")


def gradients_of(call: Call) -> dict[str, Any]:
    """With ReLU, which has B, what ReLU passes on of dY stands for dY, and dX and the others change with that alone."""
    if "B" not in call.inputs:
        return _without_relu(call)
    inputs = dict(call.inputs)
    x, scale, bias = inputs["X"], inputs["scale"], inputs.pop("B")
    wide = torch.promote_types(inputs["saved_mean"].dtype, torch.float32)
    shape = per_channel(x)
    mean, inv_std, factor, shift = (
        one.detach().to(wide).reshape(shape) for one in (inputs["saved_mean"], inputs["saved_inv_std"], scale, bias)
    )
    stopped = (x.detach().to(wide) - mean) * (inv_std * factor) + shift <= 0

    def gradient_alone(dy: Any, x: Any, factor: Any, *rest: Any, **others: Any) -> Any:
        """The operator without ReLU, which may have no row: a large B passes all."""
        large = torch.finfo(bias.dtype).max / 4  # and not infinite, which kernels may clip
        return call.gradient(dy, x, factor, torch.full_like(bias, large), *rest, **others)

    inputs["dY"] = inputs["dY"].masked_fill(stopped, 0)
    gradients = _without_relu(replace(call, gradient=gradient_alone, inputs=inputs))
    if "dY" in gradients:
        gradients["dY"] = gradients["dY"].masked_fill(stopped, 0)
    return gradients


def _without_relu(call: Call) -> dict[str, Any]:
    """The saved statistics are taken to be those of X, and change with it.

    dX = scale * saved_inv_std * P(dY), where P(v) = v - mean(v) - xhat * mean(v * xhat) is its own transpose.
    """
    names = ("dY", "X", "scale", "saved_mean", "saved_inv_std")
    dy, x, scale, *saved = (call.inputs[name] for name in names)
    of_x, of_scale, of_bias = (call.given.get(name) for name in ("dX", "dScale", "dBias"))
    wide = torch.promote_types(saved[0].dtype, torch.float32)
    shape, axes = per_channel(x), [0, *range(2, x.dim())]
    mean, inv_std = _statistics(call, wide) if torch.is_grad_enabled() else (one.to(wide) for one in saved)
    xhat = (x.to(wide) - mean.reshape(shape)) * inv_std.reshape(shape)

    def projected(value: Any, factor: Any) -> Any:
        """factor * saved_inv_std * P(value)."""
        told = (value.to(x.dtype), x, factor, *saved)
        return call.gradient(*told, **call.attributes, outputs=["dX"])[0].to(wide)

    gradients: dict[str, Any] = {}
    through_dy, of_xhat, through_scale = [], [], None
    if of_x is not None:
        through_dy.append(projected(of_x, scale))
        through_scale = (of_x.to(wide) * projected(dy, torch.ones_like(scale))).sum(axes)
        factor = (scale.to(wide) * inv_std / math.prod(x.shape[axis] for axis in axes)).reshape(shape)
        sums = [(value.to(wide) * xhat).sum(axes).reshape(shape) for value in (of_x, dy)]
        of_xhat.append(-factor * (of_x.to(wide) * sums[1] + dy.to(wide) * sums[0]))
    if of_scale is not None:
        through_dy.append(of_scale.to(wide).reshape(shape) * xhat)
        of_xhat.append(of_scale.to(wide).reshape(shape) * dy.to(wide))
    if of_bias is not None:
        through_dy.append(of_bias.to(wide).reshape(shape).expand_as(dy))
    if "dY" in call.needed and through_dy:
        gradients["dY"] = sum(through_dy[1:], start=through_dy[0]).to(dy.dtype, copy=True)
    if "X" in call.needed and of_xhat:
        through_x = projected(sum(of_xhat[1:], start=of_xhat[0]), torch.ones_like(scale))
        if through_scale is not None:  # saved_inv_std, which dX is a multiple of, changes with X as well
            through_x = through_x - factor * through_scale.reshape(shape) * xhat
        gradients["X"] = through_x.to(x.dtype)
    if "scale" in call.needed and through_scale is not None:
        gradients["scale"] = through_scale.to(scale.dtype)
    return gradients


def _statistics(call: Call, dtype: Any) -> tuple[Any, Any]:
    """Those that were saved, as functions of X that have gradients."""
    x = call.inputs["X"].to(dtype)
    axes = [0, *range(2, x.dim())]
    return x.mean(axes), (x.var(axes, correction=0) + call.attributes["epsilon"]).rsqrt()
