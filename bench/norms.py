"""Gradients of norms and losses beside PyTorch's on one GPU: python bench/norms.py [--only EXPRESSION] [--json FILE]

Norms over images and channels, SkipLayerNormalization, and the cross entropy of logits with labels; bench/rows.py has
the norms of layers. Bytes are those of every input read once and of every output written once. torch.compile's
kernels, where it makes any, are a peer beside PyTorch's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod
from typing import Any

import gradsmith
import torch
from beside_torch import TYPES, Call, Case, bytes_of, compiled, run, wide
from rows import NORM_TYPES, norm_formula

IMAGES = [(32, 256, 56, 56), (64, 64, 112, 112), (16, 512, 28, 28), (8, 1280, 16, 16), (7, 33, 55, 57)]
LAYERS = [(32768, 1024), (16384, 4096), (8192, 8192), (8192, 999)]
LOGITS = [(16384, 1024), (8192, 32000), (2048, 128256), (4096, 50257), (8, 21, 512, 512), (8192, 999)]
GROUPS = 32
EPSILON = 1e-5

backward = torch.ops.aten


def normalized(x: Any, mean: Any, inv_std: Any, dtype: torch.dtype) -> Any:
    return (x.to(wide(dtype)) - mean) * inv_std


def gradient_of_rows(of_rows: Any, xhat: Any, inv_std: Any, dims: list[int]) -> Any:
    """The gradient of (x - mean) * inv_std for x."""
    about = of_rows.mean(dims, keepdim=True), (of_rows * xhat).mean(dims, keepdim=True)
    return inv_std * (of_rows - about[0] - xhat * about[1])


def image_tensors(dims: tuple[int, ...], groups: int, dtype: torch.dtype) -> tuple[Any, ...]:
    """dY, X, scale, mean, 1/std, dX, dScale and dBias."""
    x = torch.randn(dims, device="cuda").to(dtype)
    scale = torch.randn(dims[1], device="cuda").to(dtype)
    exact = x.to(wide(dtype)).reshape(dims[0], groups, -1)
    mean, inv_std = exact.mean(2), (exact.var(2, correction=0) + EPSILON).rsqrt()
    outputs = (torch.empty_like(like) for like in (x, scale, scale))
    return torch.randn_like(x), x, scale, mean, inv_std, *outputs


def image_formula(dims: tuple[int, ...], groups: int, dtype: torch.dtype) -> Call:
    rows = (dims[0], groups, dims[1] // groups, prod(dims[2:]))

    def formula(dy: Any, x: Any, scale: Any, mean: Any, inv_std: Any) -> Any:
        inv = inv_std[:, :, None, None]
        xhat = normalized(x.reshape(rows), mean[:, :, None, None], inv, dtype)
        of_y = dy.reshape(rows).to(wide(dtype))
        dx = gradient_of_rows(of_y * scale.reshape(1, *rows[1:3], 1).to(wide(dtype)), xhat, inv, [2, 3])
        dscale, dbias = (of_y * xhat).sum([0, 3]), of_y.sum([0, 3])
        return dx.reshape(dims).to(dtype), dscale.flatten().to(dtype), dbias.flatten().to(dtype)

    return formula


def image_calls(op: str, dims: tuple[int, ...], groups: int, dtype: torch.dtype) -> tuple[Call, dict[str, Call]]:
    def ours(dy: Any, x: Any, scale: Any, mean: Any, inv_std: Any, dx: Any, ds: Any, db: Any) -> Any:
        if op == "InstanceNormalizationGrad":
            out = {"dX": dx, "dScale": ds, "dB": db}
            return gradsmith.instance_normalization_grad(dy, x, scale, mean, inv_std, out=out)
        out = {"dX": dx, "dScale": ds, "dBias": db}
        return gradsmith.group_normalization_grad(dy, x, scale, mean, inv_std, num_groups=groups, out=out)

    def peer(dy: Any, x: Any, scale: Any, mean: Any, inv_std: Any, *others: Any) -> Any:
        # group norm's, which PyTorch has for half statistics in half alone
        few = mean.to(dtype), inv_std.to(dtype)
        size = dims[0], dims[1], prod(dims[2:]), groups
        return backward.native_group_norm_backward(dy, x, *few, scale, *size, [True, True, True])

    return ours, {"torch": peer, "compile": compiled(image_formula(dims, groups, dtype), 5)}


def channel_tensors(dims: tuple[int, ...], dtype: torch.dtype) -> tuple[Any, ...]:
    """dY, X, mean, std, 1/std and dX."""
    x = torch.randn(dims, device="cuda").to(dtype)
    over = [0, *range(2, len(dims))]
    exact = x.to(wide(dtype))
    mean, std = exact.mean(over), exact.var(over, correction=0).sqrt()
    return torch.randn_like(x), x, mean.to(dtype), std.to(dtype), 1 / std, torch.empty_like(x)


def channel_calls(dims: tuple[int, ...], dtype: torch.dtype) -> tuple[Call, dict[str, Call]]:
    over = [0, *range(2, len(dims))]
    along = (1, -1, *(1 for _ in dims[2:]))

    def formula(dy: Any, x: Any, mean: Any, std: Any) -> Any:
        inv_std = 1 / std.to(wide(dtype)).reshape(along)
        xhat = normalized(x, mean.to(wide(dtype)).reshape(along), inv_std, dtype)
        return gradient_of_rows(dy.to(wide(dtype)), xhat, inv_std, over).to(dtype)

    def peer(dy: Any, x: Any, mean: Any, std: Any, inv_std: Any, dx: Any) -> Any:
        saved = mean.to(wide(dtype)), inv_std
        return backward.native_batch_norm_backward(dy, x, None, None, None, *saved, True, EPSILON, [True, False, False])

    return lambda dy, x, mean, std, _, dx: gradsmith.mean_variance_normalization_grad(
        dy, x, mean, std, out={"dX": dx}
    ), {"torch": peer, "compile": compiled(formula, 4)}


def layer_tensors(dims: tuple[int, int], dtype: torch.dtype) -> tuple[Any, ...]:
    """dY, the sum that is normalized, gamma, mean, 1/std, what else comes to the sum, dX, dGamma, dBeta and dBias."""
    total = torch.randn(dims, device="cuda").to(dtype)
    gamma = torch.randn(dims[1], device="cuda").to(dtype)
    exact = total.to(wide(dtype))
    mean = exact.mean(1, keepdim=True)
    inv_std = (exact.var(1, correction=0, keepdim=True) + EPSILON).rsqrt()
    outputs = map(torch.empty_like, (total, gamma, gamma, gamma))
    return torch.randn_like(total), total, gamma, mean, inv_std, torch.randn_like(total), *outputs


def layer_calls(dims: tuple[int, int], type_name: str, is_whole: bool) -> tuple[Call, dict[str, Call]]:
    """With what else comes to the sum, and the gradient of the bias, or without both."""
    of_norm = norm_formula(NORM_TYPES[type_name], has_mean=True)

    def ours(
        dy: Any, total: Any, gamma: Any, mean: Any, inv_std: Any, dt: Any, dx: Any, dg: Any, db: Any, da: Any
    ) -> Any:
        given = (dy, total, gamma, mean[:, 0], inv_std[:, 0], dt if is_whole else None)
        out = {"dX": dx, "dGamma": dg, "dBeta": db, **({"dBias": da} if is_whole else {})}
        return gradsmith.skip_layer_normalization_grad(*given, out=out)

    def peer(dy: Any, total: Any, gamma: Any, mean: Any, inv_std: Any, dt: Any, *others: Any) -> Any:
        given = (dy, total, [dims[1]], mean, inv_std, gamma, others[2], [True, True, True])
        dx, *sums = backward.native_layer_norm_backward(*given)
        if is_whole:
            dx = dx + dt
            sums.append(dx.sum(0))
        return dx, *sums

    def formula(dy: Any, total: Any, gamma: Any, mean: Any, inv_std: Any, dt: Any) -> Any:
        dx, *sums = of_norm(dy, total, gamma, mean, inv_std)
        dx = dx.to(mean.dtype) + dt
        return dx.to(dy.dtype), *sums, dx.sum(0).to(dy.dtype)

    return ours, {"torch": peer, "compile": compiled(formula, 6) if is_whole else compiled(of_norm, 5)}


def logit_tensors(dims: tuple[int, ...], dtype: torch.dtype) -> tuple[Any, ...]:
    """dY, logits, labels, the largest logits, logarithms of sums, dX, and log softmax, which PyTorch saves."""
    x = torch.randn(dims, device="cuda").to(dtype)
    label = torch.randint(dims[1], (dims[0], *dims[2:]), device="cuda")
    largest = x.amax(1)
    largest = largest.to(wide(dtype))
    log_sum = torch.logsumexp(x - largest.to(dtype).unsqueeze(1), 1).to(wide(dtype))
    dy = torch.randn_like(largest)
    return dy, x, label, largest, log_sum, torch.empty_like(x), torch.log_softmax(x, 1)


def logit_calls(dtype: torch.dtype) -> tuple[Call, dict[str, Call]]:
    def ours(dy: Any, x: Any, label: Any, largest: Any, log_sum: Any, dx: Any, _: Any) -> Any:
        return gradsmith.softmax_cross_entropy_with_labels_grad(dy, x, label, largest, log_sum, out={"dX": dx})

    def peer(dy: Any, x: Any, label: Any, largest: Any, log_sum: Any, dx: Any, log_softmax: Any) -> Any:
        nll = backward.nll_loss2d_backward if x.dim() == 4 else backward.nll_loss_backward
        weight = torch.zeros((), device="cuda", dtype=dtype)
        of_log = nll(dy.to(dtype), log_softmax, label, None, 0, -100, weight)
        return backward._log_softmax_backward_data(of_log, log_softmax, 1, dtype)

    def formula(dy: Any, x: Any, label: Any, largest: Any, log_sum: Any) -> Any:
        z = x.to(wide(dtype)) - (largest + log_sum).unsqueeze(1)
        classes = torch.arange(x.shape[1], device="cuda").reshape(1, -1, *(1 for _ in x.shape[2:]))
        return (dy.unsqueeze(1) * (z.exp() - (classes == label.unsqueeze(1)).to(wide(dtype)))).to(dtype)

    return ours, {"torch": peer, "compile": compiled(formula, 5)}


def loss_tensors(dims: tuple[int, ...], dtype: torch.dtype) -> tuple[Any, ...]:
    """dY of the loss, the logarithm of softmax, labels and dX."""
    log_prob = torch.log_softmax(torch.randn(dims, device="cuda").to(dtype), 1)
    label = torch.randint(dims[1], (dims[0], *dims[2:]), device="cuda")
    return torch.ones((), device="cuda", dtype=wide(dtype)), log_prob, label, torch.empty_like(log_prob)


def loss_calls(dtype: torch.dtype) -> tuple[Call, dict[str, Call]]:
    """Of the mean of the losses."""

    def ours(dy: Any, log_prob: Any, label: Any, dx: Any) -> Any:
        return gradsmith.softmax_cross_entropy_loss_grad(dy, log_prob, label, out={"dX": dx})

    def peer(dy: Any, log_prob: Any, label: Any, dx: Any) -> Any:
        nll = backward.nll_loss2d_backward if log_prob.dim() == 4 else backward.nll_loss_backward
        weight = torch.full((), label.numel(), device="cuda", dtype=dtype)
        of_log = nll(dy.to(dtype), log_prob, label, None, 1, -100, weight)
        return backward._log_softmax_backward_data(of_log, log_prob, 1, dtype)

    def formula(dy: Any, log_prob: Any, label: Any) -> Any:
        classes = torch.arange(log_prob.shape[1], device="cuda").reshape(1, -1, *(1 for _ in log_prob.shape[2:]))
        slope = log_prob.to(wide(dtype)).exp() - (classes == label.unsqueeze(1)).to(wide(dtype))
        return (dy / label.numel() * slope).to(dtype)

    return ours, {"torch": peer, "compile": compiled(formula, 3)}


def internal_tensors(dims: tuple[int, ...], dtype: torch.dtype) -> tuple[Any, ...]:
    """Those of the loss, with dY in log_prob's type."""
    dy, *others = loss_tensors(dims, dtype)
    return dy.to(dtype), *others


def internal_calls(dtype: torch.dtype) -> tuple[Call, dict[str, Call]]:
    def ours(dy: Any, log_prob: Any, label: Any, dx: Any) -> Any:
        return gradsmith.softmax_cross_entropy_loss_internal_grad(dy, log_prob, label, out={"dX": dx})

    return ours, loss_calls(dtype)[1]


def cases() -> Iterator[Case]:
    for type_name, dtype in TYPES.items():
        for dims in IMAGES:
            shape = "x".join(map(str, dims))
            groups = {
                "InstanceNormalizationGrad": dims[1],
                "GroupNormalizationGrad": GROUPS if dims[1] % GROUPS == 0 else 3,
            }
            for op, count in groups.items():
                calls = image_calls(op, dims, count, dtype)
                yield Case(
                    op,
                    type_name,
                    shape,
                    *calls,
                    partial(image_tensors, dims, count, dtype),
                    partial(bytes_of, range(8)),
                )
            draw = partial(channel_tensors, dims, dtype)
            every = partial(bytes_of, (0, 1, 2, 3, 5))
            yield Case("MeanVarianceNormalizationGrad", type_name, shape, *channel_calls(dims, dtype), draw, every)
        for layers in LAYERS:
            draw, shape = partial(layer_tensors, layers, dtype), "x".join(map(str, layers))
            for is_whole, places in ((False, (0, 1, 2, 3, 4, 6, 7, 8)), (True, range(10))):
                calls = layer_calls(layers, type_name, is_whole)
                what = f"{shape} with dTotal and dBias" if is_whole else shape
                every = partial(bytes_of, places)
                yield Case("SkipLayerNormalizationGrad", type_name, what, *calls, draw, every)
        for logits in LOGITS:
            draw, calls = partial(logit_tensors, logits, dtype), logit_calls(dtype)
            shape = "x".join(map(str, logits))
            every = partial(bytes_of, range(6))
            yield Case("SoftmaxCrossEntropyWithLabelsGrad", type_name, shape, *calls, draw, every)
            draw, calls = partial(loss_tensors, logits, dtype), loss_calls(dtype)
            every = partial(bytes_of, range(4))
            yield Case("SoftmaxCrossEntropyLossGrad", type_name, shape, *calls, draw, every)
            draw, calls = partial(internal_tensors, logits, dtype), internal_calls(dtype)
            yield Case("SoftmaxCrossEntropyLossInternalGrad", type_name, shape, *calls, draw, every)


if __name__ == "__main__":
    run(__doc__, cases())
