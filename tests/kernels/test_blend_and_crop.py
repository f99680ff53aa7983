"""Dims that broadcast to others, and dims that an attribute or the caller's array gives, as callers in Python meet
them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

gradsmith: Any = pytest.importorskip("gradsmith", reason="the Python package is not on PYTHONPATH: build it first")
if not hasattr(gradsmith, "blend"):
    pytest.skip("the package on PYTHONPATH has other operators", allow_module_level=True)
X = np.arange(24, dtype="float64").reshape(2, 3, 4)


@pytest.mark.parametrize("dims", [(), (4,), (1,), (3, 1), (2, 1, 4), (2, 3, 4)])
def test_a_gradient_is_summed_over_what_was_broadcast(dims: tuple[int, ...]) -> None:
    slope = np.random.default_rng(1).integers(1, 5, dims).astype("float64")
    np.testing.assert_array_equal(gradsmith.blend(X, slope).Y, X * slope)
    result = gradsmith.blend_grad(np.ones_like(X), X, slope)
    np.testing.assert_array_equal(result.dX, np.broadcast_to(slope, X.shape))
    missing = X.ndim - len(dims)
    axes = (*range(missing), *(missing + i for i, dim in enumerate(dims) if dim == 1))
    np.testing.assert_array_equal(result.dSlope, X.sum(axes).reshape(dims))


@pytest.mark.parametrize("dims", [(3,), (2, 3), (2, 4, 1), (1, 2, 3, 4)])
def test_what_does_not_broadcast_is_refused(dims: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"S = .* from slope does not broadcast to D = \[2, 3, 4\] from X; expected"):
        gradsmith.blend(X, np.ones(dims))


def test_the_table_tells_what_is_repeatable_and_what_is_not_read() -> None:
    ops = {op.name: op for op in gradsmith.ops()}
    assert {row.repeatable for row in ops["Pick"].rows} == {"always"}
    assert {row.repeatable for row in ops["Crop"].rows} == {"policy"}
    assert [tensor.shape_only for tensor in ops["Spread"].inputs] == [True, False]
    assert (ops["Blend"].since_version, ops["Pick"].since_version) == (7, 1)


def test_an_attribute_gives_dims() -> None:
    cropped = gradsmith.crop(X, size=[2, 3]).Y
    np.testing.assert_array_equal(cropped, X[:, :2, :3])
    back = gradsmith.crop_grad(cropped, x_shape=(3, 4)).dX
    np.testing.assert_array_equal(back, np.where(np.isin(X, cropped), X, 0))


def test_the_array_that_is_passed_gives_them_where_the_attribute_does_not() -> None:
    y = np.full((2, 2, 3), np.nan)
    assert gradsmith.crop(X, out={"Y": y}).Y is y
    np.testing.assert_array_equal(y, X[:, :2, :3])


def test_dims_that_nothing_gives_are_asked_for() -> None:
    with pytest.raises(ValueError, match="nothing binds K; expected attribute size, or the output itself"):
        gradsmith.crop(X)


@pytest.mark.parametrize(
    ("size", "told"),
    [
        ([2], r"attribute size is \[2\], 1 value; expected 2: one for each dim of K \(D = \[3, 4\] from X\)"),
        ([2, -1], r"attribute size is \[2, -1\], with -1; expected each at least 0"),
        ([4, 4], r"Y has dims \[2, 4, 4\]; expected no more than those of X"),
    ],
)
def test_wrong_dims_are_told(size: list[int], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        gradsmith.crop(X, size=size)


def test_an_array_of_other_dims_than_the_attribute_gives_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Y has shape \[2, 2, 4\], 4 at dimension 2; expected 3"):
        gradsmith.crop(X, size=[2, 3], out={"Y": np.ones((2, 2, 4))})
