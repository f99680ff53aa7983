"""The gradients of gradient operators, by families of kernels: what gradsmith.torch differentiates a second time with.

They are made of the operators themselves, so that they in turn have gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch


@dataclass(frozen=True)
class Call:
    """A call of a gradient operator, and what is asked about it."""

    forward: Callable[..., Any]
    """The operator whose gradient it is."""
    gradient: Callable[..., Any]
    """The gradient operator. It returns a list of the outputs that it is asked for."""
    attributes: dict[str, Any]
    inputs: dict[str, Any]
    given: dict[str, Any]
    """The gradients of the call's outputs, by name; those that are zero are left out."""
    needed: set[str]
    """The inputs whose gradients are asked for."""


def of_convolution(call: Call) -> dict[str, Any]:
    """Y is linear in X and in W, and dX and dW are the two transposes of that.

    With the gradients gX of dX, gW of dW and gB of dB, the loss is that of (gX, dX) + (gW, dW) + (gB, dB), which is
    (dY, conv(gX, W) + conv(X, gW) + gB).
    """
    dy, x, w = (call.inputs[name] for name in ("dY", "X", "W"))
    of_x, of_w, of_b = (call.given.get(name) for name in ("dX", "dW", "dB"))
    gradients: dict[str, Any] = {}
    if "dY" in call.needed:
        pairs = [pair for pair in ((of_x, w), (x, of_w)) if pair[0] is not None and pair[1] is not None]
        # The bias goes with either convolution.
        terms = [
            call.forward(*pair, of_b if index == 0 else None, **call.attributes) for index, pair in enumerate(pairs)
        ]
        if of_b is not None and not pairs:
            terms = [of_b.reshape(_per_channel(dy)).expand_as(dy).clone()]
        if terms:
            gradients["dY"] = sum(terms[1:], start=terms[0])
    if "X" in call.needed and of_w is not None:
        gradients["X"] = call.gradient(dy, x, of_w, **call.attributes, outputs=["dX"])[0]
    if "W" in call.needed and of_x is not None:
        gradients["W"] = call.gradient(dy, of_x, w, **call.attributes, outputs=["dW"])[0]
    return gradients


def of_batch_normalization(call: Call) -> dict[str, Any]:
    """With ReLU, which has B, what ReLU passes on of dY stands for dY, and dX and the others change with that alone."""
    if "B" not in call.inputs:
        return _of_batch_normalization_alone(call)
    inputs = dict(call.inputs)
    x, scale, bias = inputs["X"], inputs["scale"], inputs.pop("B")
    wide = torch.promote_types(inputs["saved_mean"].dtype, torch.float32)
    shape = _per_channel(x)
    mean, inv_std, factor, shift = (
        one.detach().to(wide).reshape(shape) for one in (inputs["saved_mean"], inputs["saved_inv_std"], scale, bias)
    )
    stopped = (x.detach().to(wide) - mean) * (inv_std * factor) + shift <= 0

    def gradient_alone(dy: Any, x: Any, factor: Any, *rest: Any, **others: Any) -> Any:
        """The operator without ReLU, which may have no row: a large B passes all."""
        large = torch.finfo(bias.dtype).max / 4  # and not infinite, which kernels may clip
        return call.gradient(dy, x, factor, torch.full_like(bias, large), *rest, **others)

    inputs["dY"] = inputs["dY"].masked_fill(stopped, 0)
    gradients = _of_batch_normalization_alone(replace(call, gradient=gradient_alone, inputs=inputs))
    if "dY" in gradients:
        gradients["dY"] = gradients["dY"].masked_fill(stopped, 0)
    return gradients


def _of_batch_normalization_alone(call: Call) -> dict[str, Any]:
    """The saved statistics are taken to be those of X, and change with it.

    dX = scale * saved_inv_std * P(dY), where P(v) = v - mean(v) - xhat * mean(v * xhat) is its own transpose.
    """
    names = ("dY", "X", "scale", "saved_mean", "saved_inv_std")
    dy, x, scale, *saved = (call.inputs[name] for name in names)
    of_x, of_scale, of_bias = (call.given.get(name) for name in ("dX", "dScale", "dBias"))
    wide = torch.promote_types(saved[0].dtype, torch.float32)
    shape, axes = _per_channel(x), [0, *range(2, x.dim())]
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


def _per_channel(tensor: Any) -> tuple[int, ...]:
    """The shape in which a vector of channels is broadcast over a tensor."""
    return (1, -1, *[1] * (tensor.dim() - 2))


FORMULAS: dict[str, Callable[[Call], dict[str, Any]]] = {
    "conv": of_convolution,
    "batch_norm": of_batch_normalization,
}
"""By the family of the gradient operator's kernel."""

ASSUMED = {"batch_norm": ("saved_mean", "saved_inv_std")}
"""Inputs that are functions of others, so that a gradient of their own has no meaning."""
