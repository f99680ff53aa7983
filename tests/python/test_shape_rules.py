"""The shape rules of windows against sizes that are counted, one window after the other: on random attributes and
dims the runtime, whose C++ is made of a rule's text, and the generator, which evaluates it, both give that size or
both refuse."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import gradsmith
import pytest
from gradsmith import _core
from gradsmith_codegen.kernel_headers import KernelHeaders
from gradsmith_codegen.shape_rules import ImpossibleShape, evaluated

TIMES = 3000
HEADERS = KernelHeaders()
Attributes = dict[str, Any]
Dims = tuple[int, ...]


def attributes_of_windows(draw: random.Random, rank: int) -> Attributes:
    """Mostly what fits; each list now and then has a wrong length or number."""

    def listed(length: int, least: int, most: int) -> Dims:
        length += draw.choice((-1, 1)) if draw.random() < 0.02 else 0
        least -= draw.random() < 0.02
        return tuple(draw.randint(least, most) for _ in range(length))

    given: Attributes = {}
    if draw.random() < 0.6:
        given["strides"] = listed(rank, 1, 4)
    if draw.random() < 0.4:
        given["dilations"] = listed(rank, 1, 3)
    if draw.random() < 0.4:
        given["pads"] = listed(2 * rank, 0, draw.choice((0, 2, 5)))
    if draw.random() < 0.5:
        given["auto_pad"] = draw.choice(("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"))
    return given


def dims_of(draw: random.Random, rank: int, least: int, most: int) -> Dims:
    return tuple(draw.randint(least, most) for _ in range(rank))


def convolution(draw: random.Random) -> tuple[Attributes, list[Dims]]:
    rank = draw.randint(1, 3)
    spatial = dims_of(draw, rank, 0, draw.choice((3, 12)))
    other = rank % 3 + 1 if draw.random() < 0.02 else rank
    kernel = dims_of(draw, other, int(draw.random() > 0.05), 4)
    given = attributes_of_windows(draw, rank)
    if draw.random() < 0.2:
        given["kernel_shape"] = kernel if draw.random() < 0.8 else dims_of(draw, rank, 0, 4)
    return given, [spatial, kernel]


def transposed(draw: random.Random) -> tuple[Attributes, list[Dims]]:
    given, (spatial, kernel) = convolution(draw)
    rank = len(spatial)
    if draw.random() < 0.3:
        given["output_padding"] = dims_of(draw, rank, 0, 2)
    if draw.random() < 0.25:
        given["output_shape"] = dims_of(draw, rank, 0, 20)
    return given, [spatial, kernel]


def pooling(draw: random.Random) -> tuple[Attributes, list[Dims]]:
    rank = draw.randint(1, 3)
    given = attributes_of_windows(draw, rank)
    if draw.random() > 0.03:
        length = rank + (draw.random() < 0.02)
        given["kernel_shape"] = dims_of(draw, length, int(draw.random() > 0.05), 4)
    if draw.random() < 0.5:
        given["ceil_mode"] = True
    return given, [dims_of(draw, rank, 0, draw.choice((3, 12)))]


def global_pooling(draw: random.Random) -> tuple[Attributes, list[Dims]]:
    return {}, [dims_of(draw, draw.randint(1, 3), 0, 12)]


# ----------------------------------------------------------------------------------------------------
# The sizes by counting, window by window


def entry(attributes: Attributes, name: str, place: int, otherwise: int) -> int:
    return int(attributes[name][place]) if attributes.get(name) else otherwise


def fits(attributes: Attributes, spatial: Dims, kernel: Dims) -> bool:
    """Whether lists have the numbers that they are to have, and pads come from one place."""
    rank = len(spatial)
    least = {"strides": 1, "dilations": 1, "kernel_shape": 1, "pads": 0, "output_padding": 0, "output_shape": 0}
    for name, minimum in least.items():
        numbers = attributes.get(name, ())
        if len(numbers) not in (0, 2 * rank if name == "pads" else rank) or any(one < minimum for one in numbers):
            return False
    auto_pad, is_padded = attributes.get("auto_pad", "NOTSET"), any(attributes.get("pads", ()))
    if is_padded and (auto_pad != "NOTSET" or attributes.get("output_shape")):
        return False
    stated = attributes.get("kernel_shape", ())
    return len(kernel) == rank and min(kernel) > 0 and stated in ((), kernel)


def counted_windows(attributes: Attributes, spatial: Dims, kernel: Dims) -> Dims | None:
    """Windows begin a stride apart, the first in the pads at the beginning, and end in the pads at the end. With
    ceil_mode the last may reach less than a stride beyond these, and begins before them."""
    if not fits(attributes, spatial, kernel):
        return None
    auto_pad, counts = attributes.get("auto_pad", "NOTSET"), []
    for axis, (size, width) in enumerate(zip(spatial, kernel, strict=True)):
        stride = entry(attributes, "strides", axis, 1)
        if auto_pad.startswith("SAME"):
            counts.append(len(range(0, size, stride)))
            continue
        before, behind = (entry(attributes, "pads", axis + half, 0) for half in (0, len(spatial)))
        reach = entry(attributes, "dilations", axis, 1) * (width - 1)
        is_partial = attributes.get("ceil_mode", False) and auto_pad == "NOTSET"
        count = 0
        for begin in range(-before, size + behind, stride):
            surplus = max(begin + reach + 1 - (size + behind), 0)
            count += (surplus < stride and begin < size) if is_partial else surplus == 0
        if count == 0 and size > 0:
            return None
        counts.append(count)
    return tuple(counts)


def counted_pools(attributes: Attributes, spatial: Dims) -> Dims | None:
    """The window's dims are an attribute, which is required."""
    return counted_windows(attributes, spatial, attributes.get("kernel_shape", ()) or (0,))


def scattered(attributes: Attributes, spatial: Dims, kernel: Dims) -> Dims | None:
    """Each position of the input writes a filter's positions, a stride further on; pads cut from these."""
    if not fits(attributes, spatial, kernel):
        return None
    auto_pad, given = attributes.get("auto_pad", "NOTSET"), attributes.get("output_shape", ())
    if given and auto_pad == "VALID":
        return None
    sizes = []
    for axis, (size, width) in enumerate(zip(spatial, kernel, strict=True)):
        stride, dilation = (entry(attributes, name, axis, 1) for name in ("strides", "dilations"))
        surplus = entry(attributes, "output_padding", axis, 0)
        if surplus >= stride and surplus >= dilation:
            return None
        written = {at * stride + tap * dilation for at in range(size) for tap in range(width)}
        cut = entry(attributes, "pads", axis, 0) + entry(attributes, "pads", axis + len(spatial), 0)
        if given:
            sizes.append(given[axis])
        elif auto_pad.startswith("SAME") or not written:
            sizes.append(len([at for at in range(size) for _ in range(stride)]))
        elif max(written) + 1 + surplus < cut:
            return None
        else:
            sizes.append(max(written) + 1 + surplus - cut)
    return tuple(sizes)


def ones(_: Attributes, spatial: Dims) -> Dims:
    return (1,) * len(spatial)


# ----------------------------------------------------------------------------------------------------
# The sizes by the rule


def of_the_runtime(name: str, attributes: Attributes, arguments: list[Dims]) -> Dims | None:
    op = next(one for one in gradsmith.ops() if one.name == name)
    dims: list[Dims | None] = [(2, 2, *spatial) for spatial in arguments]
    dims += [None] * (len(op.inputs) - len(dims))
    try:
        shapes = _core.Op(name, tuple).infer_shapes(tuple(dims), tuple(attributes.get(one) for one in op.attributes))
    except ValueError:
        return None
    return tuple(shapes[0][2:])


def of_the_generator(rule: str, kernel: str, attributes: Attributes, arguments: list[Dims]) -> Dims | None:
    """What it works out for the cases of an operator whose attributes are as the kernel says."""
    found = HEADERS.kernel(kernel)
    assert found
    for name, limit in found.limits.of.items():
        numbers = attributes.get(name, ())
        if isinstance(numbers, tuple) and any(limit.minimum is not None and one < limit.minimum for one in numbers):
            return None
    formula = HEADERS.rule_formula(rule)
    assert formula
    try:
        return evaluated(formula, attributes, arguments)
    except ImpossibleShape:
        return None


@pytest.mark.parametrize(
    ("rule", "op", "drawn", "oracle"),
    [
        ("conv::OutputSpatial", "Conv", convolution, counted_windows),
        ("conv::TransposedOutputSpatial", "ConvTranspose", transposed, scattered),
        ("pool::PooledSpatial", "MaxPool", pooling, counted_pools),
        ("pool::PooledSpatial", "AveragePool", pooling, counted_pools),
        ("pool::GlobalSpatial", "GlobalMaxPool", global_pooling, ones),
    ],
)
def test_generator_and_runtime_have_the_sizes_that_counting_gives(
    rule: str,
    op: str,
    drawn: Callable[[random.Random], tuple[Attributes, list[Dims]]],
    oracle: Callable[..., Dims | None],
) -> None:
    draw = random.Random(f"{op} 1")
    possible = 0
    for _ in range(TIMES):
        attributes, arguments = drawn(draw)
        expected = oracle(attributes, *arguments)
        assert of_the_runtime(op, attributes, arguments) == expected, (attributes, arguments)
        kernel = f"{rule.partition('::')[0]}::{op}"
        assert of_the_generator(rule, kernel, attributes, arguments) == expected, (attributes, arguments)
        possible += expected is not None
    assert possible > TIMES / 4
    assert op.startswith("Global") or possible < TIMES * 0.95
