"""Dims that broadcast to others, dims that an attribute, an input or the caller's array gives, and words of bits, as
callers in Python meet them."""

from __future__ import annotations

from importlib import import_module
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
    assert {row.repeatable for row in ops["Total"].rows} == {"never"}
    assert [tensor.shape_only for tensor in ops["Spread"].inputs] == [True, False]
    assert (ops["Blend"].since_version, ops["Pick"].since_version) == (7, 1)


def test_an_attribute_gives_dims() -> None:
    cropped = gradsmith.crop(X, size=[2, 3]).Y
    np.testing.assert_array_equal(cropped, X[:, :2, :3])
    back = gradsmith.crop_grad(cropped, X.shape).dX
    np.testing.assert_array_equal(back, np.where(np.isin(X, cropped), X, 0))


def test_the_array_that_is_passed_gives_them_where_the_attribute_does_not() -> None:
    y = np.full((2, 2, 3), np.nan)
    assert gradsmith.crop(X, out={"Y": y}).Y is y
    np.testing.assert_array_equal(y, X[:, :2, :3])


@pytest.mark.parametrize("shape", [(2, 3, 4), [2, 3, 4], np.array([2, 3, 4])])
def test_an_input_holds_dims(shape: Any) -> None:
    back = gradsmith.crop_grad(X[:, :2, :3], shape).dX
    np.testing.assert_array_equal(back[:, :2, :3], X[:, :2, :3])
    assert back.shape == (2, 3, 4)
    assert gradsmith.crop_grad(X[:, :2, :3], (2, 5, 3)).dX.shape == (2, 5, 3)  # what was inferred is no longer so


@pytest.mark.parametrize(
    ("shape", "error", "told"),
    [
        ((2, -3, 4), ValueError, r"shape holds \[2, -3, 4\], negative at 1; expected the dims of dX, \[N, \*D\]"),
        ((3, 3, 4), ValueError, r"shape gives dX the shape \[3, 3, 4\], 3 at dimension 0; expected 2 \(N = 2 from dY"),
        ((2, 3), ValueError, r"shape gives dX the shape \[2, 3\], rank 2; expected rank 3: \[N, \*D\]"),
        ((1,) * 9, ValueError, "shape holds 9 numbers; expected at most 8, the dims of dX"),
        (2, TypeError, r"shape is 2 \(int\); expected a sequence of integers"),
        ((2, 1.5, 4), TypeError, r"shape is .*; expected a sequence of integers"),
        (None, TypeError, r"shape is None \(NoneType\); expected a sequence of integers"),
    ],
)
def test_what_holds_no_dims_is_refused(shape: Any, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        gradsmith.crop_grad(X[:, :2, :3], shape)


def test_pytorch_holds_dims_and_hands_them_to_a_gradient() -> None:
    torch = pytest.importorskip("torch")
    functions: Any = import_module("gradsmith.torch")
    x = torch.from_numpy(X).requires_grad_()
    functions.crop(x, size=(2, 3)).Y.sum().backward()
    expected = np.zeros(X.shape)
    expected[:, :2, :3] = 1
    np.testing.assert_array_equal(x.grad, expected)
    made = torch.compile(lambda dy: functions.crop_grad(dy, (2, 3, 4)).dX, backend="eager", fullgraph=True)
    np.testing.assert_array_equal(made(torch.ones(2, 2, 3)), expected)
    with pytest.raises(ValueError, match=r"shape holds \[2, -1, 4\], negative at 1"):
        functions.crop_grad(torch.ones(2, 2, 3), (2, -1, 4))


def test_what_is_never_repeatable_is_refused_where_that_is_asked_for() -> None:
    assert gradsmith.total(np.ones((2, 3), "float32")).Y.shape == ()
    told = "two calls never give the same bits, and the context is deterministic"
    with gradsmith.policy(deterministic=True), pytest.raises(NotImplementedError, match=told):
        gradsmith.total(np.ones(3, "float32"))


def test_bits_lie_in_words() -> None:
    x = np.arange(-20, 20, dtype="float32")
    bits = np.array([0x80000003, 0x10], "uint32")
    result = gradsmith.sift(bits, x)
    kept = [0, 1, 31, 36]
    np.testing.assert_array_equal(result.Y, np.where(np.isin(np.arange(40), kept), x, 0))
    np.testing.assert_array_equal(result.left, bits)
    np.testing.assert_array_equal(gradsmith.sift(None, x).left, [0xFFFFFFFF & ~(1 << 20), 0xFF])
    with pytest.raises(ValueError, match=r"bits has shape \[3\], 3 at dimension 0; expected 2 \(N = 40 from X"):
        gradsmith.sift(np.zeros(3, "uint32"), x)


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
