"""Operators by formulas, element by element, beside JAX in float64 on the same numbers."""

from __future__ import annotations

from typing import Any

import gradsmith
import numpy as np
import pytest
from jax_peer import TOLERANCES, differentiated, jax, near

jnp = jax.numpy


ELEMENTWISE = {
    "sigmoid": lambda x, attributes: jax.nn.sigmoid(x),
    "leaky_relu": lambda x, attributes: jax.nn.leaky_relu(x, attributes["alpha"]),
}
SAVES_THE_RESULT = {"sigmoid"}


@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("dims", [(), (1,), (7,), (3, 0, 2), (4, 8, 16), (2, 3, 5, 7), (3, 1021)])
def test_elementwise(name: str, dtype: str, dims: tuple[int, ...]) -> None:
    random = np.random.default_rng(len(dims))
    attributes = {"alpha": 0.3} if name == "leaky_relu" else {}
    dy, x = (random.normal(0, 3, dims).astype(np.dtype(dtype)) for _ in range(2))
    (y,), (expected,) = differentiated(lambda x: (ELEMENTWISE[name](x, attributes), ()), [x], dy)
    got = getattr(gradsmith, name)(x, **attributes).Y
    near(got, y, TOLERANCES[dtype])
    given = got if name in SAVES_THE_RESULT else x
    near(getattr(gradsmith, f"{name}_grad")(dy, given, **attributes).dX, expected, TOLERANCES[dtype])


# What JAX calls the operators of one tensor that have formulas, and attributes that are not the defaults.
FORMULAS = {
    "relu": (jax.nn.relu, {}),
    "tanh": (jnp.tanh, {}),
    "elu": (lambda x, alpha: jax.nn.elu(x, alpha), {"alpha": 0.7}),
    "softplus": (jax.nn.softplus, {}),
    "hard_sigmoid": (lambda x, alpha, beta: jnp.clip(alpha * x + beta, 0, 1), {"alpha": 0.3, "beta": 0.4}),
    "hard_swish": (jax.nn.hard_swish, {}),
    "swish": (lambda x, alpha: x * jax.nn.sigmoid(alpha * x), {"alpha": 0.7}),
    "gelu": (lambda x: jax.nn.gelu(x, approximate=False), {}),
    "fast_gelu": (lambda x: jax.nn.gelu(x, approximate=True), {}),
    "celu": (lambda x, alpha: jax.nn.celu(x, alpha), {"alpha": 0.7}),
    "selu": (jax.nn.selu, {}),
    "thresholded_relu": (lambda x, alpha: jnp.where(x > alpha, x, 0), {"alpha": 0.6}),
    "softsign": (jax.nn.soft_sign, {}),
    "quick_gelu": (lambda x, alpha: x * jax.nn.sigmoid(alpha * x), {"alpha": 1.5}),
    "mish": (lambda x: x * jnp.tanh(jax.nn.softplus(x)), {}),
    "erf": (jax.lax.erf, {}),
    "exp": (jnp.exp, {}),
    "log": (jnp.log, {}),
    "sqrt": (jnp.sqrt, {}),
    "reciprocal": (lambda x: 1 / x, {}),
    "abs": (jnp.abs, {}),
    "sin": (jnp.sin, {}),
    "cos": (jnp.cos, {}),
    "tan": (jnp.tan, {}),
    "asin": (jnp.arcsin, {}),
    "acos": (jnp.arccos, {}),
    "sinh": (jnp.sinh, {}),
    "cosh": (jnp.cosh, {}),
    "expm1": (jnp.expm1, {}),
    "log1p": (jnp.log1p, {}),
    "atan": (jnp.arctan, {}),
    "clip": (lambda x, min, max: jnp.clip(x, min, max), {"min": -0.6, "max": 1.1}),  # noqa: A006
}


OF_POSITIVE = {"log", "sqrt", "log1p"}
WITHIN_ONE = {"tan", "asin", "acos"}


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_formulas(name: str, dtype: str) -> None:
    peer, attributes = FORMULAS[name]
    random = np.random.default_rng(7)
    dy, x = (np.clip(random.normal(0, 3, (3, 5, 7)), -6, 6) for _ in range(2))
    x = abs(x) + 0.1 if name in OF_POSITIVE else x / 6.5 if name in WITHIN_ONE else x
    dy, x = dy.astype(np.dtype(dtype)), x.astype(np.dtype(dtype))
    (y,), (expected,) = differentiated(lambda x: (peer(x, **attributes), ()), [x], dy)
    got = getattr(gradsmith, name)(x, **attributes).Y
    near(got, y, TOLERANCES[dtype])
    gradient = getattr(gradsmith, f"{name}_grad")
    (op,) = [op for op in gradsmith.ops() if op.gradient_of and op.function == f"{name}_grad"]
    given = x if any(one.name == "X" for one in op.inputs) else got
    near(gradient(dy, given, **attributes).dX, expected, TOLERANCES[dtype])


# What JAX calls the operators of two tensors that broadcast to each other.
OF_TWO = {
    "add": jnp.add,
    "sub": jnp.subtract,
    "mul": jnp.multiply,
    "div": jnp.divide,
    "max": jnp.maximum,
    "min": jnp.minimum,
    "pow": jnp.power,
}


@pytest.mark.parametrize("name", OF_TWO)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_formulas_of_two(name: str, dtype: str) -> None:
    random = np.random.default_rng(8)
    a, b = (random.uniform(0.5, 3, dims).astype(np.dtype(dtype)) for dims in [(2, 1, 4), (3, 1)])
    dy = random.normal(0, 3, (2, 3, 4)).astype(np.dtype(dtype))
    (y,), expected = differentiated(lambda a, b: (OF_TWO[name](a, b), ()), [a, b], dy)
    near(getattr(gradsmith, name)(a, b).Y, y, TOLERANCES[dtype])
    for one, gradient in zip(getattr(gradsmith, f"{name}_grad")(dy, a, b), expected, strict=True):
        near(one, gradient, TOLERANCES[dtype])


def test_dims_that_do_not_broadcast_are_named() -> None:
    a, b = np.zeros((2, 3), np.float32), np.zeros(4, np.float32)
    with pytest.raises(ValueError, match=r"P = \[2, 3\] from A, Q = \[4\] from B: dimension 1 would be both 3 and 4"):
        gradsmith.mul(a, b)
    with pytest.raises(ValueError, match=r"dY has D = \[2, 3\]; expected \[2, 1\] by broadcast\(P, Q\)"):
        gradsmith.mul_grad(a, a[:, :1], b[:1])


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize(
    ("dims", "slope_dims"), [((4, 8, 16), (8, 1)), ((2, 3, 5, 7), ()), ((3, 1021), (1021,)), ((3, 0), (3, 1))]
)
def test_prelu(dtype: str, dims: tuple[int, ...], slope_dims: tuple[int, ...]) -> None:
    random = np.random.default_rng(len(dims))
    dy, x = (random.normal(0, 3, dims).astype(np.dtype(dtype)) for _ in range(2))
    slope = random.normal(0, 1, slope_dims).astype(np.dtype(dtype))
    (y,), expected = differentiated(lambda x, slope: (jnp.where(x > 0, x, slope * x), ()), [x, slope], dy)
    near(gradsmith.prelu(x, slope).Y, y, TOLERANCES[dtype])
    for got, one in zip(gradsmith.prelu_grad(dy, x, slope), expected, strict=True):
        near(got, one, TOLERANCES[dtype])


def gelu(x: Any) -> Any:
    return jax.nn.gelu(x, approximate=False)


def fast_gelu(x: Any) -> Any:
    return jax.nn.gelu(x, approximate=True)


# The first take a tensor and a bias, the second a gate and what it multiplies.
WITH_BIAS = {"bias_relu": jax.nn.relu, "bias_gelu": gelu, "bias_fast_gelu": fast_gelu, "bias_silu": jax.nn.silu}
GATED = {"glu": jax.nn.sigmoid, "re_glu": jax.nn.relu, "swi_glu": jax.nn.silu, "ge_glu": gelu}


def check_two(name: str, peer: Any, dims: tuple[tuple[int, ...], tuple[int, ...]], dtype: str) -> None:
    random = np.random.default_rng(9)
    given = [random.normal(0, 2, one).astype(np.dtype(dtype)) for one in dims]
    dy = random.normal(0, 3, np.broadcast_shapes(*dims)).astype(np.dtype(dtype))
    (y,), expected = differentiated(lambda a, b: (peer(a, b), ()), given, dy)
    near(getattr(gradsmith, name)(*given).Y, y, TOLERANCES[dtype])
    for one, gradient in zip(getattr(gradsmith, f"{name}_grad")(dy, *given), expected, strict=True):
        near(one, gradient, TOLERANCES[dtype])


@pytest.mark.parametrize("name", WITH_BIAS)
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_with_bias(name: str, dtype: str) -> None:
    check_two(name, lambda a, b: WITH_BIAS[name](a + b), ((4, 6, 24), (24,)), dtype)


@pytest.mark.parametrize("name", GATED)
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_gated(name: str, dtype: str) -> None:
    check_two(name, lambda gate, up: GATED[name](gate) * up, ((5, 7, 9), (5, 7, 9)), dtype)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("dims", [((2, 1, 1), (3, 1), (4,)), ((3, 33), (3, 33), (3, 33)), ((5,), (7, 5), ())])
def test_where(dims: tuple[tuple[int, ...], ...], dtype: str) -> None:
    random = np.random.default_rng(len(dims[0]))
    condition = random.random(dims[0]) < 0.5
    a, b = (random.normal(0, 2, one).astype(np.dtype(dtype)) for one in dims[1:])
    dy = random.normal(0, 3, np.broadcast_shapes(*dims)).astype(np.dtype(dtype))
    (y,), expected = differentiated(lambda a, b: (jnp.where(condition, a, b), ()), [a, b], dy)
    near(gradsmith.where(condition, a, b).Y, y, TOLERANCES[dtype])
    for one, gradient in zip(gradsmith.where_grad(dy, condition, a, b), expected, strict=True):
        near(one, gradient, TOLERANCES[dtype])


@pytest.mark.parametrize("ratio", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_dropout(dtype: str, ratio: float) -> None:
    """Strides of the mask are its own."""
    random = np.random.default_rng(4)
    x, dy = (random.normal(0, 2, (6, 33)).astype(np.dtype(dtype)) for _ in range(2))
    mask = (random.random((33, 6)) >= ratio).T
    scale = 0 if ratio == 1 else 1 / (1 - ratio)
    near(gradsmith.dropout(x, mask, ratio=ratio).Y, x.astype("float64") * mask * scale, TOLERANCES[dtype])
    near(gradsmith.dropout_grad(dy, mask, ratio=ratio).dX, dy.astype("float64") * mask * scale, TOLERANCES[dtype])


@pytest.mark.parametrize("dims", [(), (0, 3), (33,), (6, 33), (4, 8, 16), (3, 70001)])
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_dropout_by_bits(dtype: str, dims: tuple[int, ...]) -> None:
    """It is dropout by the mask of bytes, whatever is behind the last bit; strides of all are their own."""
    random = np.random.default_rng(len(dims))
    x, dy = (np.asarray(random.normal(0, 2, dims[::-1]), dtype=np.dtype(dtype)).T for _ in range(2))
    mask = random.random(dims) >= 0.3
    bits = np.pad(mask.ravel(), (0, -mask.size % 32), constant_values=True).reshape(-1, 32)
    words = (bits * 2 ** np.arange(32, dtype="uint32")).sum(axis=1, dtype="uint32")
    given = np.zeros(2 * words.size, dtype="uint32")[::2]
    given[...] = words
    for order in (np.asarray, np.ascontiguousarray):
        one, gradient = order(x).reshape(dims), order(dy).reshape(dims)
        for mask_of_bits in (words, given):
            expected = gradsmith.dropout(one, mask, ratio=0.3).Y
            np.testing.assert_array_equal(gradsmith.bitmask_dropout(one, mask_of_bits, ratio=0.3).Y, expected)
            found = gradsmith.bitmask_dropout_grad(gradient, mask_of_bits, ratio=0.3).dX
            np.testing.assert_array_equal(found, gradsmith.dropout_grad(gradient, mask, ratio=0.3).dX)


@pytest.mark.parametrize("flag", [None, False, True])
@pytest.mark.parametrize(
    ("buffer_type", "value_type"), [("float32", "float16"), ("float32", "float32"), ("float64", "float64")]
)
@pytest.mark.parametrize("dims", [(), (0, 3), (7,), (3, 70001), (2, 3, 5)])
def test_accumulator(flag: bool | None, buffer_type: str, value_type: str, dims: tuple[int, ...]) -> None:
    random = np.random.default_rng(len(dims))
    buffer, value = (np.asarray(random.normal(0, 3, dims), one) for one in (buffer_type, value_type))
    if flag:
        buffer[...] = np.nan  # of what is overwritten nothing is left
    expected = value.astype(buffer_type) if flag else buffer + value.astype(buffer_type)
    given = None if flag is None else np.array(flag)
    found = gradsmith.in_place_accumulator_v2(buffer, value, given)
    assert found.updated_flag.dtype == bool
    assert found.updated_flag.shape == ()
    assert found.updated_flag
    np.testing.assert_array_equal(found.accumulation_buffer_out, expected)
    gradsmith.in_place_accumulator_v2(buffer, value, given, out={"accumulation_buffer_out": buffer})
    np.testing.assert_array_equal(buffer, expected)


# The functions, without their gradients.
OTHERS = {"prelu", "where", "dropout", "bitmask_dropout", "in_place_accumulator_v2"}
COMPARED = {*ELEMENTWISE, *FORMULAS, *OF_TWO, *WITH_BIAS, *GATED, *OTHERS}
