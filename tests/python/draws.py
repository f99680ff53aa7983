"""Random problems for the convolutions and batch normalization."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

TYPES = [np.dtype("float32"), np.dtype("float64"), np.dtype("float16"), np.dtype(ml_dtypes.bfloat16)]


@dataclass
class ConvProblem:
    """Shapes and attributes; `pads`, `strides` and others are None where the default is to hold."""

    x: tuple[int, ...]
    w: tuple[int, ...]
    dtype: Any
    layouts: tuple[str, ...]
    seed: int
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def rank(self) -> int:
        return len(self.x) - 2

    @property
    def group(self) -> int:
        return int(self.attributes.get("group") or 1)

    def each(self, name: str, default: int, count: int = 1) -> tuple[int, ...]:
        given = self.attributes.get(name)
        return tuple(given) if given else (default,) * (count * self.rank)

    def numbers(self, dims: tuple[int, ...], argument: int) -> Any:
        """Small integers, so that sums of their products are exact in float."""
        values = np.random.default_rng([self.seed, argument]).integers(-3, 4, dims).astype(self.dtype)
        return laid_out(values, self.layouts[argument % len(self.layouts)])


def laid_out(values: Any, layout: str) -> Any:
    """The same numbers, elsewhere in memory."""
    if layout == "channels_last" and values.ndim > 2:
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(values, 1, -1)), -1, 1)
    if layout == "gaps":
        wide = np.zeros((*values.shape, 2), values.dtype)
        wide[..., 0] = values
        return wide[..., 0]
    return values


def _maybe(draw: Any, strategy: Any) -> Any:
    """None, so that the default holds, or something else."""
    return draw(st.none() | strategy)


@st.composite
def conv_problems(draw: Any, transposed: bool = False) -> ConvProblem:
    rank = draw(st.integers(1, 3))
    group = draw(st.sampled_from([1, 1, 2, 3]))
    n = draw(st.sampled_from([1, 1, 2, 2, 3, 3, 0]))
    c, m = (draw(st.integers(1, 3)) for _ in range(2))
    kernel = draw(st.tuples(*[st.integers(1, 3)] * rank))
    strides = _maybe(draw, st.tuples(*[st.integers(1, 3)] * rank))
    dilations = _maybe(draw, st.tuples(*[st.integers(1, 2)] * rank))
    auto_pad = draw(st.sampled_from(["NOTSET"] * 5 + ["SAME_UPPER", "SAME_LOWER", "VALID"]))
    pads = _maybe(draw, st.tuples(*[st.integers(0, 2)] * (2 * rank))) if auto_pad == "NOTSET" else None
    extents = [d * (k - 1) + 1 for d, k in zip(dilations or (1,) * rank, kernel, strict=True)]
    smallest = [
        1 if transposed else max(1, extent - (pads[i] + pads[rank + i] if pads else 0))
        for i, extent in enumerate(extents)
    ]
    if transposed and pads:  # what they take away must be there
        step = strides or (1,) * rank
        smallest = [1 + max(0, -(-(pads[i] + pads[rank + i] + 1 - extents[i]) // step[i])) for i in range(rank)]
    spatial = tuple(draw(st.integers(low, low + 4)) for low in smallest)
    first, second = (c * group, m) if transposed else (m * group, c)
    attributes = {
        "strides": strides,
        "dilations": dilations,
        "pads": pads,
        "group": group,
        "auto_pad": auto_pad,
        "kernel_shape": _maybe(draw, st.just(kernel)),
    }
    if transposed:
        limits = [max(s, d) for s, d in zip(strides or (1,) * rank, dilations or (1,) * rank, strict=True)]
        extra = _maybe(draw, st.tuples(*[st.integers(0, limit - 1) for limit in limits]))
        attributes["output_padding"] = extra
        if auto_pad != "VALID" and not any(pads or ()):
            full = [
                step * (size - 1) + extent + more
                for step, size, extent, more in zip(
                    strides or (1,) * rank, spatial, extents, extra or (0,) * rank, strict=True
                )
            ]
            sizes = st.tuples(*[st.integers(max(1, size - 3), size + 2) for size in full])
            attributes["output_shape"] = _maybe(draw, sizes)
    layouts = tuple(draw(st.sampled_from(["plain", "channels_last", "gaps"])) for _ in range(4))
    return ConvProblem(
        x=(n, c * group, *spatial),
        w=(first, second, *kernel),
        dtype=draw(st.sampled_from(TYPES)),
        layouts=layouts,
        seed=draw(st.integers(0, 2**32 - 1)),
        attributes=attributes,
    )


@dataclass
class BatchNormProblem:
    x: tuple[int, ...]
    types: tuple[Any, Any, Any]
    layout: str
    seed: int
    epsilon: float
    momentum: float


_BATCH_NORM_TYPES = [
    (TYPES[0], TYPES[0], TYPES[0]),
    (TYPES[1], TYPES[1], TYPES[1]),
    *[(half, half, half) for half in TYPES[2:]],
    *[(half, half, TYPES[0]) for half in TYPES[2:]],
    *[(half, TYPES[0], TYPES[0]) for half in TYPES[2:]],
]


@st.composite
def batch_norm_problems(draw: Any) -> BatchNormProblem:
    spatial = draw(st.lists(st.integers(1, 5), max_size=3))
    n = draw(st.sampled_from([2, 2, 3, 3, 4, 5, 0]))  # one value has no unbiased variance
    return BatchNormProblem(
        x=(n, draw(st.integers(1, 5)), *spatial),
        types=draw(st.sampled_from(_BATCH_NORM_TYPES)),
        layout=draw(st.sampled_from(["plain", "channels_last", "gaps"])),
        seed=draw(st.integers(0, 2**32 - 1)),
        epsilon=draw(st.sampled_from([1e-5, 1e-3, 0.25])),
        momentum=draw(st.sampled_from([0.9, 0.5, 0.0, 1.0])),
    )
