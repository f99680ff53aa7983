"""Norms of rows, channels and images beside JAX in float64 on the same numbers."""

from __future__ import annotations

from typing import Any

import gradsmith
import numpy as np
import pytest
from jax_peer import TOLERANCES, differentiated, jax, near, row_axes

jnp = jax.numpy

# The operators, without their gradients.
NORMS = {
    "LayerNormalization",
    "SimplifiedLayerNormalization",
    "SkipLayerNormalization",
    "MeanVarianceNormalization",
    "InstanceNormalization",
    "GroupNormalization",
}


def layer_norm(x: Any, scale: Any, b: Any, axis: int, simplified: bool) -> tuple[Any, tuple[Any, Any]]:
    axes = row_axes(x.ndim, axis, True)
    mean = jnp.zeros(x.shape[: axes[0]]) if simplified else x.mean(axes)
    shape = (*mean.shape, *[1] * len(axes))
    deviation = x - mean.reshape(shape)
    inv_std = 1 / jnp.sqrt((deviation * deviation).mean(axes) + 1e-5)
    return deviation * inv_std.reshape(shape) * scale + b, (mean, inv_std)


PARAMETER_TYPES = [
    ("float32", "float32", "float32"),
    ("float64", "float64", "float64"),
    ("float16", "float16", "float16"),
    ("bfloat16", "bfloat16", "float32"),
    ("float16", "float32", "float32"),
    ("float32", "float16", "float32"),
]


@pytest.mark.parametrize("simplified", [False, True])
@pytest.mark.parametrize("types", PARAMETER_TYPES)
@pytest.mark.parametrize(("dims", "axis"), [((3, 1021), -1), ((2, 3, 4, 5), 2), ((4, 6), 0), ((0, 7), 1)])
def test_layer_normalization(dims: tuple[int, ...], axis: int, types: tuple[str, ...], simplified: bool) -> None:
    random = np.random.default_rng(len(dims))
    first, second, statistics = (np.dtype(one) for one in types)
    tolerance = max(TOLERANCES[one.name] for one in (first, second, statistics))
    row = dims[axis % len(dims) :]
    x, dy = random.normal(1, 2, dims).astype(first), random.normal(0, 1, dims).astype(second)
    scale, b = (random.normal(1, 0.5, row).astype(second) for _ in range(2))
    b = b * 0 if simplified else b
    (y, mean, inv_std), gradients = differentiated(
        lambda x, scale, b: layer_norm(x, scale, b, axis, simplified), [x, scale, b], dy
    )
    saved = [np.asarray(one).astype(statistics) for one in (mean, inv_std)]
    if simplified:
        got = gradsmith.simplified_layer_normalization(x, scale, axis=axis)
        result: Any = gradsmith.simplified_layer_normalization_grad(dy, x, scale, saved[1], axis=axis)
    else:
        got = gradsmith.layer_normalization(x, scale, b, axis=axis)
        near(got.mean, mean, tolerance)
        result = gradsmith.layer_normalization_grad(dy, x, scale, *saved, axis=axis)
    near(got.Y, y, tolerance)
    near(got.inv_std, inv_std, tolerance)
    for one, expected in zip(result, gradients, strict=False):
        near(one, expected, tolerance)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("is_read", [False, True])
def test_skip_layer_normalization(dtype: str, is_read: bool) -> None:
    """With and without others that read `total`."""
    random = np.random.default_rng(1)
    x, skip, dy, dtotal = (random.normal(1, 2, (5, 24)).astype(np.dtype(dtype)) for _ in range(4))
    gamma, beta, bias = (random.normal(1, 0.5, 24).astype(np.dtype(dtype)) for _ in range(3))

    def forward(x: Any, skip: Any, gamma: Any, beta: Any, bias: Any) -> Any:
        total = x + skip + bias
        y, statistics = layer_norm(total, gamma, beta, -1, False)
        return jnp.stack([y, total]), statistics

    incoming = np.stack([dy, dtotal if is_read else 0 * dtotal])
    ((y, total), mean, inv_std), (dx, dskip, dgamma, dbeta, dbias) = differentiated(
        forward, [x, skip, gamma, beta, bias], incoming
    )
    got = gradsmith.skip_layer_normalization(x, skip, gamma, beta, bias, epsilon=1e-5)
    assert {got.mean.dtype.name, got.inv_std.dtype.name} == {"float64" if dtype == "float64" else "float32"}
    for one, expected in zip(got, (y, mean, inv_std, total), strict=True):
        near(one, expected, TOLERANCES[dtype])
    saved = (got.total, gamma, got.mean, got.inv_std)
    back = gradsmith.skip_layer_normalization_grad(dy, *saved, dtotal if is_read else None)
    found = (back.dX, back.dX, back.dGamma, back.dBeta, back.dBias)
    for one, expected in zip(found, (dx, dskip, dgamma, dbeta, dbias), strict=True):
        near(one, expected, TOLERANCES[dtype])


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("dims", [(9, 4), (3, 5, 4, 6), (2, 1, 33), (4, 0, 3)])
def test_mean_variance_normalization(dims: tuple[int, ...], dtype: str) -> None:
    random = np.random.default_rng(len(dims))
    x, dy = (random.normal(1, 2, dims).astype(np.dtype(dtype)) for _ in range(2))
    axes = (0, *range(2, len(dims)))

    def forward(x: Any) -> Any:
        return (x - x.mean(axes, keepdims=True)) / (x.std(axes, keepdims=True) + 0.25), ()

    (y,), (expected,) = differentiated(forward, [x], dy)
    got = gradsmith.mean_variance_normalization(x, epsilon=0.25)
    near(got.Y, y, TOLERANCES[dtype])
    back = gradsmith.mean_variance_normalization_grad(dy, x, got.mean, got.std_dev, epsilon=0.25)
    near(back.dX, expected, TOLERANCES[dtype])


def group_norm(x: Any, scale: Any, b: Any, groups: int) -> tuple[Any, tuple[Any, Any]]:
    """Where each channel is a group, instance normalization."""
    parts = x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    axes = tuple(range(2, parts.ndim))
    deviation = parts - parts.mean(axes, keepdims=True)
    inv_std = 1 / jnp.sqrt((deviation * deviation).mean(axes, keepdims=True) + 1e-5)
    shape = (-1, *[1] * (x.ndim - 2))
    y = (deviation * inv_std).reshape(x.shape) * scale.reshape(shape) + b.reshape(shape)
    return y, (parts.mean(axes), inv_std.reshape(parts.shape[:2]))


def check_groups(dims: tuple[int, ...], types: tuple[str, ...], groups: int, name: str, **attributes: int) -> None:
    random = np.random.default_rng(len(dims))
    first, second, statistics = (np.dtype(one) for one in types)
    tolerance = max(TOLERANCES[one.name] for one in (first, second, statistics))
    x, dy = (random.normal(1, 2, dims).astype(first) for _ in range(2))
    scale, b = (random.normal(1, 0.5, dims[1]).astype(second) for _ in range(2))
    (y, mean, inv_std), gradients = differentiated(
        lambda x, scale, b: group_norm(x, scale, b, groups), [x, scale, b], dy
    )
    got = getattr(gradsmith, name)(x, scale, b, **attributes)
    for one, expected in zip(got, (y, mean, inv_std), strict=True):
        near(one, expected, tolerance)
    saved = [np.asarray(one).astype(statistics) for one in (mean, inv_std)]
    results = getattr(gradsmith, f"{name}_grad")(dy, x, scale, *saved, **attributes)
    for one, expected in zip(results, gradients, strict=True):
        near(one, expected, tolerance)


@pytest.mark.parametrize("types", PARAMETER_TYPES)
@pytest.mark.parametrize("dims", [(9, 4, 5), (3, 5, 4, 6), (2, 1, 33), (1, 3, 1024), (0, 2, 3)])
def test_instance_normalization(dims: tuple[int, ...], types: tuple[str, ...]) -> None:
    check_groups(dims, types, dims[1], "instance_normalization")


@pytest.mark.parametrize("types", PARAMETER_TYPES)
@pytest.mark.parametrize(
    ("dims", "groups"), [((9, 12), 2), ((3, 6, 4, 5), 3), ((2, 8, 33), 1), ((1, 32, 16, 16), 8), ((2, 5, 3), 5)]
)
def test_group_normalization(dims: tuple[int, ...], groups: int, types: tuple[str, ...]) -> None:
    check_groups(dims, types, groups, "group_normalization", num_groups=groups)


def test_groups_that_do_not_fit_are_named() -> None:
    x, c, saved = np.zeros((2, 6, 3), np.float32), np.zeros(6, np.float32), np.zeros((2, 2), np.float32)
    with pytest.raises(ValueError, match=r"C = 6 from X does not fit; expected a multiple of num_groups = 4"):
        gradsmith.group_normalization(x, c, c, num_groups=4)
    with pytest.raises(ValueError, match=r"G = 2 from mean; expected 3, as attribute num_groups is"):
        gradsmith.group_normalization_grad(x, x, c, saved, saved, num_groups=3)
