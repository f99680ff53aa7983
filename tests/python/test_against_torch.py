"""Every operator on random problems, beside PyTorch's operators in double, on the CPU and on a GPU.

The convolutions' numbers are small integers, so that results must be exact up to the last rounding. There are a hundred
problems for each operator and type, or as many as GRADSMITH_TEST_PROBLEMS says.
"""

from __future__ import annotations

import random
from functools import partial
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


def halves(totals: list[int], auto_pad: str) -> tuple[list[int], list[int]]:
    """Pads at the begins and at the ends. Less than none is none; an odd one is at the end for SAME_UPPER."""
    less, more = [max(total, 0) // 2 for total in totals], [(max(total, 0) + 1) // 2 for total in totals]
    return (less, more) if auto_pad == "SAME_UPPER" else (more, less)


def padded(tensor: Any, begins: list[int], ends: list[int]) -> Any:
    """With zeros around the spatial axes; what is less than none is cut off."""
    pairs = zip(reversed(begins), reversed(ends), strict=True)
    return torch.nn.functional.pad(tensor, [pad for pair in pairs for pad in pair])


AUTO_PADS = ["NOTSET", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_conv(device: str, dtype: Any) -> None:
    choose = random.Random(f"conv {dtype}")
    for _ in range(PROBLEMS):
        rank, group, auto_pad = choose.choice([1, 2, 2, 3]), choose.choice([1, 1, 2]), choose.choice(AUTO_PADS)
        n, c, m = each(choose, 3, 1, 4)
        kernel, strides, dilations = (each(choose, rank, *bounds) for bounds in ((1, 3), (1, 3), (1, 2)))
        sizes = each(choose, rank, 5, 9)
        ours = {"strides": strides, "dilations": dilations, "group": group, "auto_pad": auto_pad}
        begins, ends = [0] * rank, [0] * rank
        if auto_pad == "NOTSET":
            begins, ends = each(choose, rank, 0, 2), each(choose, rank, 0, 2)
            ours["pads"] = begins + ends
        elif auto_pad != "VALID":
            axes = zip(sizes, strides, dilations, kernel, strict=True)
            totals = [(-(-size // s) - 1) * s + d * (k - 1) + 1 - size for size, s, d, k in axes]
            begins, ends = halves(totals, auto_pad)
        x = small_integers([n, c * group, *sizes], dtype, device)
        w = small_integers([m * group, c, *kernel], dtype, device)
        b = small_integers([m * group], dtype, device)
        convolve = partial(
            getattr(torch.nn.functional, f"conv{rank}d"), stride=strides, dilation=dilations, groups=group
        )
        y, dy, gradients = differentiate(
            lambda x, w, b, f=convolve, pads=(begins, ends): f(padded(x, *pads), w, b), [x, w, b], dtype
        )
        equal(gradsmith.conv(x, w, b, **ours).Y, y)
        for got, wanted in zip(gradsmith.conv_grad(dy, x, w, **ours), gradients, strict=True):
            equal(got, wanted)


def transposed_pads(choose: random.Random, whole: list[int], scaled: list[int]) -> tuple[dict[str, Any], Any, Any]:
    """Attributes, and what they cut off an output at the begins and the ends. `whole` are its sizes before that,
    `scaled` those that auto_pad makes of it."""
    rank, auto_pad = len(whole), choose.choice(AUTO_PADS)
    has_shape = auto_pad != "VALID" and choose.random() < 0.4
    if not has_shape and auto_pad == "NOTSET":
        begins, ends = each(choose, rank, 0, 2), each(choose, rank, 0, 1)
        return {"pads": begins + ends}, begins, ends
    if auto_pad == "VALID":
        return {"auto_pad": auto_pad}, [0] * rank, [0] * rank
    sizes = [size + choose.randint(-3, 2) for size in whole] if has_shape else scaled
    totals = [one - size for one, size in zip(whole, sizes, strict=True)]
    begins, ends = halves(totals, auto_pad)
    ends = [end + min(total, 0) for end, total in zip(ends, totals, strict=True)]  # zeros where more is asked for
    return {"auto_pad": auto_pad, **({"output_shape": sizes} if has_shape else {})}, begins, ends


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_conv_transpose(device: str, dtype: Any) -> None:
    choose = random.Random(f"conv_transpose {dtype}")
    for _ in range(PROBLEMS):
        rank, group = choose.choice([1, 2, 2, 3]), choose.choice([1, 1, 2])
        n, c, m = each(choose, 3, 1, 4)
        kernel, strides, dilations = (each(choose, rank, *bounds) for bounds in ((2, 3), (1, 3), (1, 2)))
        extra = [choose.randint(0, max(pair) - 1) for pair in zip(strides, dilations, strict=True)]
        sizes = each(choose, rank, 3, 6)
        axes = zip(sizes, strides, dilations, kernel, extra, strict=True)
        whole = [(size - 1) * s + d * (k - 1) + 1 + more for size, s, d, k, more in axes]
        told, begins, ends = transposed_pads(choose, whole, [size * s for size, s in zip(sizes, strides, strict=True)])
        x = small_integers([n, c * group, *sizes], dtype, device)
        w = small_integers([c * group, m, *kernel], dtype, device)
        b = small_integers([m * group], dtype, device)
        convolve = partial(
            getattr(torch.nn.functional, f"conv_transpose{rank}d"), stride=strides, dilation=dilations, groups=group
        )
        cut = [-begin for begin in begins], [more - end for more, end in zip(extra, ends, strict=True)]

        def peer(x: Any, w: Any, b: Any, f: Any = convolve, pads: Any = cut, rank: int = rank) -> Any:
            return padded(f(x, w), *pads) + b.reshape(-1, *[1] * rank)

        y, dy, gradients = differentiate(peer, [x, w, b], dtype)
        ours = {"strides": strides, "dilations": dilations, "output_padding": extra, "group": group, **told}
        equal(gradsmith.conv_transpose(x, w, b, **ours).Y, y)
        for got, wanted in zip(gradsmith.conv_transpose_grad(dy, x, w, **ours), gradients, strict=True):
            equal(got, wanted)


# What rounding to a type may bring, relative to the largest number, with what sums and saved statistics add to it.
TOLERANCES = {DOUBLE: 1e-10, FLOAT: 1e-4, HALF: 2e-2, BF16: 1e-1}


@pytest.mark.parametrize("relu", [False, True], ids=["alone", "relu"])
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
def test_batch_normalization(device: str, types: tuple[Any, Any, Any], relu: bool) -> None:
    choose = random.Random(f"batch_normalization {types}")
    tolerance = max(TOLERANCES[one] for one in types)
    epsilon = 0.01 if tolerance < 1e-3 else 0.25
    for _ in range(PROBLEMS):
        n, c = choose.randint(2, 6), choose.randint(1, 6)
        x = torch.randn(n, c, *each(choose, choose.randint(0, 3), 1, 6), device=device).to(types[0])
        scale, b = (torch.randn(c, device=device).to(types[1]) for _ in range(2))
        if relu:
            scale = (torch.rand(c, device=device) + 0.5).copysign(scale.float()).to(types[1])
            wide, wide_scale = (one.double().cpu().numpy() for one in (x, scale))
            b = problems.biases_far_from_relus_bend(wide, wide_scale, epsilon)
            b = torch.from_numpy(b).to(device, types[1])
        running = [(torch.rand(c, device=device) + 0.5).to(types[2]) for _ in range(2)]
        kept = [one.clone().double() for one in running]
        leaves = [one.clone().double().requires_grad_() for one in (x, scale, b)]
        y = torch.nn.functional.batch_norm(leaves[0], *kept, *leaves[1:], training=True, momentum=0.1, eps=epsilon)
        y = y.relu() if relu else y
        dy = torch.randn_like(x)
        gradients = torch.autograd.grad(y, leaves, dy.double())
        forward = gradsmith.batch_normalization_relu if relu else gradsmith.batch_normalization
        got = forward(x, scale, b, *running, momentum=0.9, epsilon=epsilon)
        saved = (got.saved_mean, got.saved_inv_std)
        results: Any = (
            gradsmith.batch_normalization_relu_grad(dy, x, scale, b, *saved, epsilon=epsilon)
            if relu
            else gradsmith.batch_normalization_grad(dy, x, scale, *saved, epsilon=epsilon)
        )
        expected = [y.detach(), *kept, *gradients]
        for one, wanted in zip([got.Y, got.running_mean, got.running_var, *results], expected, strict=True):
            error = (one.double() - wanted).abs().max()
            assert error <= tolerance * max(wanted.abs().max(), 1), (x.shape, error)
