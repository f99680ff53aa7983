"""JAX in float64 as a peer: what it makes of a function and its derivatives, and how near it results must be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("ml_dtypes")
jax = pytest.importorskip("jax")

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_disable_most_optimizations", True)  # each problem is compiled anew, which takes most of the time

# The relative error that rounding to a type may bring, times what sums and saved statistics add to it.
TOLERANCES = {"float64": 1e-12, "float32": 2e-5, "float16": 2e-2, "bfloat16": 1e-1}


def near(got: Any, expected: Any, tolerance: float) -> None:
    """Errors are measured against the largest number, since sums of small ones may cancel."""
    expected = np.asarray(expected)
    largest = float(np.abs(expected).max(initial=1))
    np.testing.assert_allclose(got.astype("float64"), expected, rtol=0, atol=tolerance * largest)


def equal(got: Any, expected: Any) -> None:
    np.testing.assert_array_equal(got, np.asarray(expected).astype(got.dtype))


def differentiated(function: Any, inputs: list[Any], gradient: Any) -> tuple[Any, Any]:
    """What the function makes of the inputs, and the gradients of those for the gradient of its first result."""

    def run(*given: Any) -> tuple[Any, Any]:
        y, derivative, others = jax.vjp(function, *given[:-1], has_aux=True)
        return (y, *others), derivative(given[-1])

    results, gradients = jax.jit(run)(*(np.asarray(one).astype("float64") for one in (*inputs, gradient)))
    return results, gradients


def row_axes(rank: int, axis: int, coerced: bool) -> tuple[int, ...]:
    """The dims of a row."""
    first = axis % rank
    return tuple(range(first, rank if coerced else first + 1))
