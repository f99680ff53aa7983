"""Every operator on random problems, beside PyTorch's operators in double, on the CPU and on a GPU.

The convolutions' numbers are small integers, so that results must be exact up to the last rounding. There are a hundred
problems for each operator and type, or as many as GRADSMITH_TEST_PROBLEMS says.
"""

from __future__ import annotations

import random
from typing import Any

import gradsmith
import problems
import pytest

torch: Any = pytest.importorskip("torch")

PROBLEMS = problems.random_problems(100)
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
DOUBLE, FLOAT, HALF, BF16 = torch.float64, torch.float32, torch.float16, torch.bfloat16
DTYPES = [FLOAT, DOUBLE, HALF, BF16]

pytestmark = pytest.mark.parametrize("device", DEVICES)


def small_integers(dims: Any, dtype: Any, device: str) -> Any:
    return torch.randint(-3, 4, tuple(dims), device=device).to(dtype)


def each(choose: random.Random, rank: int, low: int, high: int) -> list[int]:
    return [choose.randint(low, high) for _ in range(rank)]


def equal(got: Any, expected: Any) -> None:
    assert torch.equal(got, expected.to(got.dtype))


def differentiate(function: Any, inputs: list[Any], dtype: Any) -> tuple[Any, Any, Any]:
    """PyTorch's result in double, a gradient for it, and the gradients of the inputs."""
    leaves = [one.clone().double().requires_grad_() for one in inputs]
    y = function(*leaves)
    dy = small_integers(y.shape, dtype, str(y.device))
    return y.detach(), dy, torch.autograd.grad(y, leaves, dy.double())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_conv(device: str, dtype: Any) -> None:
    choose = random.Random(f"conv {dtype}")
    for _ in range(PROBLEMS):
        rank, group = choose.choice([1, 2, 2, 3]), choose.choice([1, 1, 2])
        n, c, m = each(choose, 3, 1, 4)
        kernel, strides, pads = (each(choose, rank, *bounds) for bounds in ((1, 3), (1, 2), (0, 1)))
        dilations = each(choose, rank, 1, 2)
        x = small_integers([n, c * group, *each(choose, rank, 5, 9)], dtype, device)
        w = small_integers([m * group, c, *kernel], dtype, device)
        b = small_integers([m * group], dtype, device)
        peer = getattr(torch.nn.functional, f"conv{rank}d")
        settings = {"stride": strides, "padding": pads, "dilation": dilations, "groups": group}
        y, dy, gradients = differentiate(lambda *one, p=peer, s=settings: p(*one, **s), [x, w, b], dtype)
        ours = {"strides": strides, "pads": pads + pads, "dilations": dilations, "group": group}
        equal(gradsmith.conv(x, w, b, **ours).Y, y)
        for got, wanted in zip(gradsmith.conv_grad(dy, x, w, **ours), gradients, strict=True):
            equal(got, wanted)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_conv_transpose(device: str, dtype: Any) -> None:
    choose = random.Random(f"conv_transpose {dtype}")
    for _ in range(PROBLEMS):
        rank, group = choose.choice([1, 2, 2, 3]), choose.choice([1, 1, 2])
        n, c, m = each(choose, 3, 1, 4)
        kernel, strides, pads = (each(choose, rank, *bounds) for bounds in ((2, 3), (1, 3), (0, 1)))
        extra = [choose.randint(0, stride - 1) for stride in strides]
        x = small_integers([n, c * group, *each(choose, rank, 3, 6)], dtype, device)
        w = small_integers([c * group, m, *kernel], dtype, device)
        b = small_integers([m * group], dtype, device)
        peer = getattr(torch.nn.functional, f"conv_transpose{rank}d")
        settings = {"stride": strides, "padding": pads, "output_padding": extra, "groups": group}
        y, dy, gradients = differentiate(lambda *one, p=peer, s=settings: p(*one, **s), [x, w, b], dtype)
        ours = {"strides": strides, "pads": pads + pads, "output_padding": extra, "group": group}
        equal(gradsmith.conv_transpose(x, w, b, **ours).Y, y)
        for got, wanted in zip(gradsmith.conv_transpose_grad(dy, x, w, **ours), gradients, strict=True):
            equal(got, wanted)


# What rounding to a type may bring, relative to the largest number, with what sums and saved statistics add to it.
TOLERANCES = {DOUBLE: 1e-10, FLOAT: 1e-4, HALF: 2e-2, BF16: 1e-1}


@pytest.mark.parametrize(
    "types",
    [
        (FLOAT, FLOAT, FLOAT),
        (DOUBLE, DOUBLE, DOUBLE),
        *[(one, one, one) for one in (HALF, BF16)],
        *[(one, one, FLOAT) for one in (HALF, BF16)],
        *[(one, FLOAT, FLOAT) for one in (HALF, BF16)],
    ],
    ids=lambda types: " ".join(str(one).removeprefix("torch.") for one in types),
)
def test_batch_normalization(device: str, types: tuple[Any, Any, Any]) -> None:
    choose = random.Random(f"batch_normalization {types}")
    tolerance = max(TOLERANCES[one] for one in types)
    epsilon = 0.01 if tolerance < 1e-3 else 0.25
    for _ in range(PROBLEMS):
        n, c = choose.randint(2, 6), choose.randint(1, 6)
        x = torch.randn(n, c, *each(choose, choose.randint(0, 3), 1, 6), device=device).to(types[0])
        scale, b = (torch.randn(c, device=device).to(types[1]) for _ in range(2))
        running = [(torch.rand(c, device=device) + 0.5).to(types[2]) for _ in range(2)]
        kept = [one.clone().double() for one in running]
        leaves = [one.clone().double().requires_grad_() for one in (x, scale, b)]
        y = torch.nn.functional.batch_norm(leaves[0], *kept, *leaves[1:], training=True, momentum=0.1, eps=epsilon)
        dy = torch.randn_like(x)
        gradients = torch.autograd.grad(y, leaves, dy.double())
        got = gradsmith.batch_normalization(x, scale, b, *running, momentum=0.9, epsilon=epsilon)
        results = gradsmith.batch_normalization_grad(dy, x, scale, got.saved_mean, got.saved_inv_std, epsilon=epsilon)
        expected = [y.detach(), *kept, *gradients]
        for one, wanted in zip([got.Y, got.running_mean, got.running_var, *results], expected, strict=True):
            error = (one.double() - wanted).abs().max()
            assert error <= tolerance * max(wanted.abs().max(), 1), (x.shape, error)
