"""A small call of conv_grad whose results are worked out by hand, for tests of all but the arithmetic; and how many
random ones those of the arithmetic take."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

DY_DIMS, X_DIMS, W_DIMS = (1, 1, 2, 2), (1, 1, 3, 3), (1, 1, 2, 2)
DX = np.array([[[[1, 2, 1], [2, 4, 2], [1, 2, 1]]]])
DW = np.array([[[[8, 12], [20, 24]]]])
DB = np.array([4])


def random_problems(default: int) -> int:
    """How many random problems a comparison takes: what GRADSMITH_TEST_PROBLEMS says, for longer runs."""
    return int(os.environ.get("GRADSMITH_TEST_PROBLEMS") or default)


def arrays(dtype: Any = "float32") -> tuple[Any, Any, Any]:
    """dY of ones, X = 0..8, W of ones."""
    x = np.arange(9).reshape(X_DIMS)
    return np.ones(DY_DIMS, dtype), x.astype(dtype), np.ones(W_DIMS, dtype)


def check(result: Any) -> None:
    """That a result of conv_grad(*arrays()) is right, whatever library it is of."""
    for name, expected in (("dX", DX), ("dW", DW), ("dB", DB)):
        got = getattr(result, name)
        np.testing.assert_array_equal(as_numpy(got), expected, err_msg=name)


def as_numpy(array: Any) -> Any:
    """In float64."""
    if type(array).__module__ == "torch":
        array = array.cpu().double().numpy()
    elif type(array).__module__.startswith("cupy"):
        array = array.get()
    return np.asarray(array).astype(np.float64)


def biases_far_from_relus_bend(x: Any, scale: Any, epsilon: float) -> Any:
    """Biases that put zero into the widest gap between a channel's outputs: nobody's rounding crosses it.

    Arrays are of float64.
    """
    channels = np.moveaxis(x, 1, 0).reshape(x.shape[1], -1)
    biases = np.full(x.shape[1], 0.5)
    for channel, values in enumerate(channels):
        if not values.size:
            continue
        ordered = np.sort(values)
        gaps = np.diff(ordered)
        at = int(gaps.argmax()) if gaps.size else 0
        wide = gaps.size > 0 and gaps[at] > 0.25
        bend = (ordered[at] + ordered[at + 1]) / 2 if wide else ordered[0] - 0.5
        normalized = (bend - values.mean()) / np.sqrt(values.var() + epsilon)
        biases[channel] = -float(scale[channel]) * normalized
    return biases
