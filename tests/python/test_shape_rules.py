"""The generator's shape rules, which find cases that cannot be, and the runtime's are one: on random attributes and
dims both give the same output, or both refuse."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import gradsmith
import pytest
from gradsmith import _core
from gradsmith_codegen.shape_rules import ImpossibleShape, apply

TIMES = 3000
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


def of_the_runtime(name: str, attributes: Attributes, arguments: list[Dims]) -> Dims | None:
    op = next(one for one in gradsmith.ops() if one.name == name)
    dims: list[Dims | None] = [(2, 2, *spatial) for spatial in arguments]
    dims += [None] * (len(op.inputs) - len(dims))
    try:
        shapes = _core.Op(name, tuple).infer_shapes(tuple(dims), tuple(attributes.get(one) for one in op.attributes))
    except ValueError:
        return None
    return tuple(shapes[0][2:])


def of_the_generator(rule: str, attributes: Attributes, arguments: list[Dims]) -> Dims | None:
    try:
        made = apply(rule, attributes, arguments)
    except ImpossibleShape:
        return None
    assert isinstance(made, tuple)
    return made


@pytest.mark.parametrize(
    ("rule", "op", "drawn"),
    [
        ("conv::OutputSpatial", "Conv", convolution),
        ("conv::TransposedOutputSpatial", "ConvTranspose", transposed),
        ("pool::PooledSpatial", "MaxPool", pooling),
        ("pool::PooledSpatial", "AveragePool", pooling),
        ("pool::GlobalSpatial", "GlobalMaxPool", global_pooling),
    ],
)
def test_the_rules_of_generator_and_runtime_agree(
    rule: str, op: str, drawn: Callable[[random.Random], tuple[Attributes, list[Dims]]]
) -> None:
    draw = random.Random(f"{op} 1")
    fits = 0
    for _ in range(TIMES):
        attributes, arguments = drawn(draw)
        expected = of_the_runtime(op, attributes, arguments)
        assert of_the_generator(rule, attributes, arguments) == expected, (attributes, arguments)
        fits += expected is not None
    assert fits > TIMES / 4
    assert op.startswith("Global") or fits < TIMES * 0.95
