"""Element-wise gradients beside PyTorch's on one GPU: python bench/elementwise.py [--only EXPRESSION] [--json FILE]

Bytes are those of every input read once and of every output written once. PyTorch's own formulas, compiled by
torch.compile, are a peer beside its kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import gradsmith
import torch
from beside_torch import TYPES, Call, Case, bytes_of, compiled, run, wide

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
# Ours, PyTorch's kernel, and its formula, which torch.compile is given.
OPERATORS: dict[str, tuple[Call, Call, Call]] = {
    "SigmoidGrad": (
        lambda dy, y, dx: gradsmith.sigmoid_grad(dy, y, out={"dX": dx}),
        lambda dy, y, dx: backward.sigmoid_backward.grad_input(dy, y, grad_input=dx),
        lambda dy, y: backward.sigmoid_backward(dy, y),
    ),
    "LeakyReluGrad": (
        lambda dy, x, dx: gradsmith.leaky_relu_grad(dy, x, out={"dX": dx}),
        lambda dy, x, dx: backward.leaky_relu_backward.grad_input(dy, x, 0.01, False, grad_input=dx),
        lambda dy, x: backward.leaky_relu_backward(dy, x, 0.01, False),
    ),
    "GeluGrad": (
        lambda dy, x, dx: gradsmith.gelu_grad(dy, x, out={"dX": dx}),
        lambda dy, x, dx: backward.gelu_backward.grad_input(dy, x, approximate="none", grad_input=dx),
        lambda dy, x: backward.gelu_backward(dy, x, approximate="none"),
    ),
}
# These take a tensor and a bias along its last dim. PyTorch sums in a second kernel what the first one gave.
BIASED_SHAPES = [(8192, 4096), (4096, 16384), (16384, 1024), (32, 197, 768), (8192, 999), (8, 100)]
BIASED = {
    "BiasGeluGrad": (gradsmith.bias_gelu_grad, lambda dy, x: backward.gelu_backward(dy, x, approximate="none")),
    "BiasFastGeluGrad": (
        gradsmith.bias_fast_gelu_grad,
        lambda dy, x: backward.gelu_backward(dy, x, approximate="tanh"),
    ),
    "BiasReluGrad": (gradsmith.bias_relu_grad, lambda dy, x: backward.threshold_backward(dy, x, 0)),
    "BiasSiluGrad": (gradsmith.bias_silu_grad, backward.silu_backward),
}
GATED_SHAPES = [(8192, 4096), (4096, 14336), (8192, 999), (8, 100)]
GATED = {
    "GluGrad": (
        gradsmith.glu_grad,
        torch.sigmoid,
        lambda dy, x: backward.sigmoid_backward(dy, torch.sigmoid(x)),
    ),
    "ReGluGrad": (gradsmith.re_glu_grad, torch.relu, lambda dy, x: backward.threshold_backward(dy, x, 0)),
    "SwiGluGrad": (gradsmith.swi_glu_grad, torch.nn.functional.silu, backward.silu_backward),
    "GeGluGrad": (
        gradsmith.ge_glu_grad,
        torch.nn.functional.gelu,
        lambda dy, x: backward.gelu_backward(dy, x, approximate="none"),
    ),
}


# PRelu's slope is one of each channel; PyTorch's gradient of it is summed by a second kernel.
PRELU_SHAPES = [((32, 256, 56, 56), False), ((32, 256, 56, 56), True), ((8192, 4096), False), ((7, 33, 55, 57), False)]


def of_slopes(dy: Any, x: Any, slope: Any, dx: Any, dslope: Any) -> Any:
    return gradsmith.prelu_grad(dy, x, slope, out={"dX": dx, "dSlope": dslope})


def of_slopes_in_torch(dy: Any, x: Any, slope: Any, _dx: Any, dslope: Any) -> None:
    _, products = backward._prelu_kernel_backward(dy, x, slope)
    torch.sum(products, [0, *range(2, x.dim())], keepdim=True, out=dslope.unsqueeze(0))


def formula_of_slopes(dy: Any, x: Any, slope: Any) -> tuple[Any, Any]:
    of_x = dy.to(wide(x.dtype))
    dx = torch.where(x > 0, of_x, slope * of_x).to(x.dtype)
    return dx, torch.where(x > 0, 0, x * of_x).sum([0, *range(2, x.dim())], keepdim=True).to(x.dtype)


def with_slopes(dims: tuple[int, ...], channels_last: bool, dtype: torch.dtype) -> tuple[Any, ...]:
    """A slope of the channels' dims, so that it is broadcast: (C, 1, 1)."""
    order = torch.channels_last if channels_last else torch.contiguous_format
    dy, x, dx = (torch.randn(dims, device="cuda").to(dtype).to(memory_format=order) for _ in range(3))
    slope, dslope = (torch.rand(dims[1], *[1] * (len(dims) - 2), device="cuda").to(dtype) for _ in range(2))
    return dy, x, slope, dx, dslope


def of_bias(op: str, dy: Any, x: Any, bias: Any, dx: Any, dbias: Any) -> Any:
    return BIASED[op][0](dy, x, bias, out={"dA": dx, "dB": dbias})


def of_bias_in_torch(op: str, dy: Any, x: Any, _bias: Any, _dx: Any, dbias: Any) -> None:
    """X has had its bias added: what PyTorch saves."""
    torch.sum(BIASED[op][1](dy, x).flatten(0, -2), 0, out=dbias)


def formula_of_bias(op: str, dy: Any, x: Any, _bias: Any) -> tuple[Any, Any]:
    dx = BIASED[op][1](dy, x)
    return dx, dx.flatten(0, -2).sum(0)


def biased(dims: tuple[int, ...], dtype: torch.dtype) -> tuple[Any, ...]:
    dy, x, dx = (torch.randn(dims, device="cuda").to(dtype) for _ in range(3))
    bias, dbias = (torch.randn(dims[-1:], device="cuda").to(dtype) for _ in range(2))
    return dy, x, bias, dx, dbias


def of_gate(op: str, dy: Any, gate: Any, up: Any, dgate: Any, dup: Any) -> Any:
    return GATED[op][0](dy, gate, up, out={"dGate": dgate, "dUp": dup})


def of_gate_in_torch(op: str, dy: Any, gate: Any, up: Any, _dgate: Any, dup: Any) -> None:
    torch.mul(dy, GATED[op][1](gate), out=dup)
    GATED[op][2](dy * up, gate)


def formula_of_gate(op: str, dy: Any, gate: Any, up: Any) -> tuple[Any, Any]:
    return GATED[op][2](dy * up, gate), dy * GATED[op][1](gate)


def gated(dims: tuple[int, ...], dtype: torch.dtype) -> tuple[Any, ...]:
    return tuple(torch.randn(dims, device="cuda").to(dtype) for _ in range(5))


def masked(dims: tuple[int, ...], dtype: torch.dtype) -> tuple[Any, ...]:
    dy, dx = (torch.randn(dims, device="cuda").to(dtype) for _ in range(2))
    return dy, torch.rand(dims, device="cuda") < 0.7, dx


def dropped_in_torch(dy: Any, mask: Any, dx: Any) -> None:
    backward.native_dropout_backward.out(dy, mask, 1 / 0.7, out=dx)


def masked_by_bits(dims: tuple[int, ...], dtype: torch.dtype) -> tuple[Any, ...]:
    """The mask as bits, and as bytes, which is what PyTorch has."""
    dy, mask, dx = masked(dims, dtype)
    padded = torch.nn.functional.pad(mask.flatten().long(), (0, -mask.numel() % 32)).view(-1, 32)
    words = (padded << torch.arange(32, device="cuda")).sum(1).to(torch.int32).view(torch.uint32)
    return dy, words, dx, mask


# How tensors are drawn, ours, and PyTorch's, of which the mask has bytes in either case.
DROPOUTS: dict[str, tuple[Callable[..., tuple[Any, ...]], Call, Call]] = {
    "DropoutGrad": (
        masked,
        lambda dy, mask, dx: gradsmith.dropout_grad(dy, mask, ratio=0.3, out={"dX": dx}),
        dropped_in_torch,
    ),
    "BitmaskDropoutGrad": (
        masked_by_bits,
        lambda dy, words, dx, _mask: gradsmith.bitmask_dropout_grad(dy, words, ratio=0.3, out={"dX": dx}),
        lambda dy, _words, dx, mask: dropped_in_torch(dy, mask, dx),
    ),
}


def tensors(dims: tuple[int, ...], channels_last: bool, dtype: torch.dtype) -> tuple[Any, ...]:
    """A gradient, an input between 0 and 1, and an output."""
    made = (draw(dims, device="cuda").to(dtype) for draw in (torch.randn, torch.rand, torch.zeros))
    return tuple(one.to(memory_format=torch.channels_last) if channels_last else one for one in made)


def cases() -> Iterator[Case]:
    for op, (ours, peer, formula) in OPERATORS.items():
        for type_name, dtype in TYPES.items():
            for dims, channels_last in SHAPES:
                yield Case(
                    op,
                    type_name,
                    "x".join(map(str, dims)) + (" NHWC" if channels_last else ""),
                    ours,
                    {"torch": peer, "compile": compiled(formula, 2)},
                    partial(tensors, dims, channels_last, dtype),
                    partial(bytes_of, (0, 1, 2)),
                )
    for type_name, dtype in TYPES.items():
        for dims, channels_last in PRELU_SHAPES:
            name = "x".join(map(str, dims)) + (" NHWC" if channels_last else "")
            given = partial(with_slopes, dims, channels_last, TYPES[type_name])
            peers = {"torch": of_slopes_in_torch, "compile": compiled(formula_of_slopes, 3)}
            yield Case("PReluGrad", type_name, name, of_slopes, peers, given, partial(bytes_of, (0, 1, 2, 3, 4)))
        yield from cases_of(BIASED, BIASED_SHAPES, (of_bias, of_bias_in_torch, formula_of_bias), biased, type_name)
        yield from cases_of(GATED, GATED_SHAPES, (of_gate, of_gate_in_torch, formula_of_gate), gated, type_name)
        for dims in GATED_SHAPES:
            for op, (draw, ours, peer) in DROPOUTS.items():
                yield Case(
                    op,
                    type_name,
                    "x".join(map(str, dims)),
                    ours,
                    {"torch": peer},
                    partial(draw, dims, dtype),
                    partial(bytes_of, (0, 1, 2)),
                )


def cases_of(
    operators: Iterable[str],
    shapes: Sequence[tuple[int, ...]],
    calls: tuple[Call, Call, Call],
    draw: Callable[[tuple[int, ...], torch.dtype], tuple[Any, ...]],
    type_name: str,
) -> Iterator[Case]:
    for op in operators:
        for dims in shapes:
            ours, peer, formula = (partial(call, op) for call in calls)
            tensors_of = partial(draw, dims, TYPES[type_name])
            yield Case(
                op,
                type_name,
                "x".join(map(str, dims)),
                ours,
                {"torch": peer, "compile": compiled(formula, 3)},
                tensors_of,
                partial(bytes_of, (0, 1, 2, 3, 4)),
            )


if __name__ == "__main__":
    run(__doc__, cases())
