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
