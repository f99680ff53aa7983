"""Gradients of formulas of one tensor or two beside PyTorch's: python bench/maps.py [--only EXPRESSION] [--json FILE]

PyTorch's side are the kernels that its autograd runs: one where it has one for the gradient, several elsewhere. Bytes
are those of every input read once and of every output written once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import gradsmith
import torch
from beside_torch import TYPES, Call, Case, bytes_of, run

SHAPES = [(8192, 4096), (8192, 999), (8, 100)]
# The shapes of A and B: a row is added to a tensor, a tensor to a tensor, and a row to a few elements.
PAIRS = [((8192, 4096), (4096,)), ((8192, 4096), (8192, 4096)), ((8, 100), (100,))]
backward = torch.ops.aten

# PyTorch's gradients take dY and what ours takes, X or Y, which is drawn between 0 and 1.
OF_ONE: dict[str, Call] = {
    "ReluGrad": lambda dy, x: backward.threshold_backward(dy, x, 0),
    "ThresholdedReluGrad": lambda dy, x: backward.threshold_backward(dy, x, 1),
    "TanhGrad": backward.tanh_backward,
    "EluGrad": lambda dy, x: backward.elu_backward(dy, 1.0, 1, 1, False, x),
    "CeluGrad": lambda dy, x: backward.elu_backward(dy, 1.0, 1, 1, False, x),
    "SeluGrad": lambda dy, x: backward.elu_backward(dy, 1.67, 1.05, 1, False, x),
    "SoftplusGrad": lambda dy, x: backward.softplus_backward(dy, x, 1, 20),
    "HardSigmoidGrad": backward.hardsigmoid_backward,
    "HardSwishGrad": backward.hardswish_backward,
    "SwishGrad": backward.silu_backward,
    "FastGeluGrad": lambda dy, x: backward.gelu_backward(dy, x, approximate="tanh"),
    "ClipGrad": lambda dy, x: backward.hardtanh_backward(dy, x, -1, 1),
    "MishGrad": backward.mish_backward,
    "SoftsignGrad": lambda dy, x: dy / (1 + x.abs()).square(),
    "QuickGeluGrad": lambda dy, x: backward.silu_backward(dy, 1.702 * x),
    "ErfGrad": lambda dy, x: 2 / math.sqrt(math.pi) * torch.exp(-x.square()) * dy,
    "ExpGrad": torch.mul,
    "LogGrad": torch.div,
    "SqrtGrad": lambda dy, y: dy / (2 * y),
    "ReciprocalGrad": lambda dy, y: -dy * (y * y),
    "AbsGrad": lambda dy, x: dy * x.sgn(),
    "SinGrad": lambda dy, x: dy * x.cos(),
    "CosGrad": lambda dy, x: dy * -x.sin(),
    "TanGrad": lambda dy, y: dy * (1 + y.square()),
    "AsinGrad": lambda dy, x: dy * (-x * x + 1).rsqrt(),
    "AcosGrad": lambda dy, x: dy * -(-x * x + 1).rsqrt(),
    "AtanGrad": lambda dy, x: dy / (x * x + 1),
    "SinhGrad": lambda dy, x: dy * x.cosh(),
    "CoshGrad": lambda dy, x: dy * x.sinh(),
    "Expm1Grad": lambda dy, x: dy * (x.expm1() + 1),
    "Log1pGrad": lambda dy, x: dy / (x + 1),
}
# What B's gradient is summed from where B is a row.
OF_TWO: dict[str, tuple[Call, Call]] = {
    "AddGrad": (lambda dy, a, b: dy, lambda dy, a, b: dy),
    "SubGrad": (lambda dy, a, b: dy, lambda dy, a, b: -dy),
    "MulGrad": (lambda dy, a, b: dy * b, lambda dy, a, b: dy * a),
    "DivGrad": (lambda dy, a, b: dy / b, lambda dy, a, b: -dy * (a / b / b)),
    "MaxGrad": (lambda dy, a, b: dy.masked_fill(a < b, 0), lambda dy, a, b: dy.masked_fill(a >= b, 0)),
    "MinGrad": (lambda dy, a, b: dy.masked_fill(a > b, 0), lambda dy, a, b: dy.masked_fill(a <= b, 0)),
    "PowGrad": (lambda dy, a, b: dy * (b * a.pow(b - 1)), lambda dy, a, b: dy * (a.pow(b) * a.log())),
}
REDUCED: dict[str, Call] = {
    "ReduceSumGrad": lambda dy, x, y, dx: dx.copy_(dy.unsqueeze(-1).expand_as(x)),
    "ReduceMeanGrad": lambda dy, x, y, dx: torch.div(dy.unsqueeze(-1).expand_as(x), x.shape[-1], out=dx),
    "ReduceL1Grad": lambda dy, x, y, dx: torch.mul(dy.unsqueeze(-1), x.sgn(), out=dx),
    "ReduceL2Grad": lambda dy, x, y, dx: torch.mul(x, (dy / y).unsqueeze(-1), out=dx),
    "ReduceLogSumExpGrad": lambda dy, x, y, dx: torch.mul(dy.unsqueeze(-1), (x - y.unsqueeze(-1)).exp(), out=dx),
}


def function_of(op: str) -> Any:
    return gradsmith._ops.FUNCTIONS[op]  # noqa: SLF001


def drawn(dtype: torch.dtype, *shapes: tuple[int, ...]) -> tuple[Any, ...]:
    """A gradient, and tensors between 0 and 1."""
    first, *others = shapes
    return (torch.randn(first, device="cuda").to(dtype), *(torch.rand(one, device="cuda").to(dtype) for one in others))


def of_one(op: str, dy: Any, x: Any, dx: Any) -> Any:
    return function_of(op)(dy, x, out={"dX": dx})


def of_one_in_torch(op: str, dy: Any, x: Any, _dx: Any) -> Any:
    return OF_ONE[op](dy, x)


def of_two(op: str, dy: Any, a: Any, b: Any, da: Any, db: Any) -> Any:
    return function_of(op)(dy, a, b, out={"dA": da, "dB": db})


def of_two_in_torch(op: str, dy: Any, a: Any, b: Any, _da: Any, _db: Any) -> Any:
    of_a, of_b = (one(dy, a, b) for one in OF_TWO[op])
    return of_a, of_b if b.shape == a.shape else of_b.sum(0)


def reduced(op: str, dy: Any, x: Any, y: Any, dx: Any) -> Any:
    given = (dy, x, y) if op in ("ReduceL2Grad", "ReduceLogSumExpGrad") else (dy, x)
    return function_of(op)(*given, axis=-1, out={"dX": dx})


def normalized(dy: Any, x: Any, dx: Any) -> Any:
    return function_of("LpNormalizationGrad")(dy, x, axis=-1, out={"dX": dx})


def normalized_in_torch(dy: Any, x: Any, _dx: Any) -> Any:
    norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    y = x / norm
    return (dy - y * (dy * y).sum(-1, keepdim=True)) / norm


def where_tensors(dtype: torch.dtype, dims: tuple[int, ...]) -> tuple[Any, ...]:
    """dY, the condition, A and B, of which the shape alone counts, dA and dB."""
    dy, *others = drawn(dtype, dims, dims, dims, dims, dims)
    return dy, torch.rand(dims, device="cuda") < 0.5, *others  # noqa: PLR2004


def where(dy: Any, condition: Any, a: Any, b: Any, da: Any, db: Any) -> Any:
    return function_of("WhereGrad")(dy, condition, a, b, out={"dA": da, "dB": db})


def where_in_torch(dy: Any, condition: Any, *_others: Any) -> Any:
    return dy.masked_fill(~condition, 0), dy.masked_fill(condition, 0)


def accumulated(value: Any, buffer: Any, flag: Any) -> Any:
    out = {"updated_flag": flag, "accumulation_buffer_out": buffer}
    return function_of("InPlaceAccumulatorV2")(buffer, value, out=out)


def accumulator_tensors(dtype: torch.dtype, dims: tuple[int, ...]) -> tuple[Any, ...]:
    return *drawn(dtype, dims, dims), torch.empty((), device="cuda", dtype=torch.bool)


def accumulated_in_torch(value: Any, buffer: Any, _flag: Any) -> Any:
    return buffer.add_(value)


def name_of(dims: tuple[int, ...]) -> str:
    return "x".join(map(str, dims))


def cases() -> Iterator[Case]:
    for type_name, dtype in TYPES.items():
        for dims in SHAPES:
            rows = dims[:1]
            for op in OF_ONE:
                given = partial(drawn, dtype, dims, dims, dims)
                peers: dict[str, Call] = {"torch": partial(of_one_in_torch, op)}
                yield Case(
                    op, type_name, name_of(dims), partial(of_one, op), peers, given, partial(bytes_of, (0, 1, 2))
                )
            for op, peer in REDUCED.items():
                given = partial(drawn, dtype, rows, dims, rows, dims)
                needs_x = op not in ("ReduceSumGrad", "ReduceMeanGrad")
                read = partial(bytes_of, (0, 1, 3) if needs_x else (0, 3))
                yield Case(op, type_name, name_of(dims), partial(reduced, op), {"torch": peer}, given, read)
            given = partial(drawn, dtype, dims, dims, dims)
            peers = {"torch": normalized_in_torch}
            read = partial(bytes_of, (0, 1, 2))
            yield Case("LpNormalizationGrad", type_name, name_of(dims), normalized, peers, given, read)
            given = partial(where_tensors, dtype, dims)
            read = partial(bytes_of, (0, 1, 4, 5))
            yield Case("WhereGrad", type_name, name_of(dims), where, {"torch": where_in_torch}, given, read)
            given = partial(accumulator_tensors, dtype, dims)
            peers = {"torch": accumulated_in_torch}
            read = partial(bytes_of, (0, 1, 1))  # the buffer is read and written
            yield Case("InPlaceAccumulatorV2", type_name, name_of(dims), accumulated, peers, given, read)
        for dims, of_b in PAIRS:
            for op in OF_TWO:
                given = partial(drawn, dtype, dims, dims, of_b, dims, of_b)
                # Gradients of sums read neither A nor B.
                read = partial(bytes_of, (0, 3, 4) if op in ("AddGrad", "SubGrad") else range(5))
                # PyTorch hands dY on as both gradients of a sum, and runs nothing.
                has_peer = op != "AddGrad" or dims != of_b
                peers = {"torch": partial(of_two_in_torch, op)} if has_peer else {}
                name = f"{name_of(dims)} and {name_of(of_b)}"
                yield Case(op, type_name, name, partial(of_two, op), peers, given, read)


if __name__ == "__main__":
    run(__doc__, cases())
