"""Every operator on random problems, beside JAX in float64 on the same numbers: its forwards, and its derivatives.

Convolutions are given small integers. Their sums are exact in float, and one rounding from exact in half and bfloat16,
so results must be equal to the last bit.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import gradsmith
import numpy as np
import problems
import pytest

pytest.importorskip("hypothesis")

import draws  # noqa: E402 - after the check that what it needs is there
from hypothesis import HealthCheck, event, given, settings  # noqa: E402
from jax_peer import TOLERANCES, differentiated, equal, jax, near, row_axes  # noqa: E402
from test_formulas_against_jax import COMPARED  # noqa: E402
from test_losses_against_jax import LOSSES, OTHER_GRADIENTS  # noqa: E402
from test_norms_against_jax import NORMS  # noqa: E402

lax, jnp = jax.lax, jax.numpy

thorough = settings(
    max_examples=problems.random_problems(25),
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    database=None,
)


def dimension_numbers(rank: int) -> Any:
    letters = "DHW"[-rank:]
    return (f"NC{letters}", f"OI{letters}", f"NC{letters}")


def same_pads(sizes: list[int], auto_pad: str) -> list[tuple[int, int]]:
    """Begin and end: the odd one where auto_pad says."""
    halves = [(max(size, 0) // 2, max(size, 0) - max(size, 0) // 2) for size in sizes]
    return [(low, high) if auto_pad == "SAME_UPPER" else (high, low) for low, high in halves]


def conv(problem: draws.ConvProblem, x: Any, w: Any, b: Any) -> Any:
    strides, dilations = problem.each("strides", 1), problem.each("dilations", 1)
    auto_pad = problem.attributes["auto_pad"]
    if auto_pad.startswith("SAME"):
        sizes = [
            (-(-size // s) - 1) * s + d * (k - 1) + 1 - size
            for size, s, d, k in zip(problem.x[2:], strides, dilations, problem.w[2:], strict=True)
        ]
        pads = same_pads(sizes, auto_pad)
    else:
        flat = problem.each("pads", 0, 2)
        pads = list(zip(flat[: problem.rank], flat[problem.rank :], strict=True))
    y = lax.conv_general_dilated(
        x, w, strides, pads, rhs_dilation=dilations, feature_group_count=problem.group,
        dimension_numbers=dimension_numbers(problem.rank), precision=lax.Precision.HIGHEST,
    )  # fmt: skip
    return y + b.reshape(1, -1, *[1] * problem.rank)


def conv_transpose(problem: draws.ConvProblem, x: Any, w: Any, b: Any) -> Any:
    """A convolution of X with zeros between its elements, with the filter mirrored and its channels swapped."""
    rank, group = problem.rank, problem.group
    strides, dilations = problem.each("strides", 1), problem.each("dilations", 1)
    reach = [d * (k - 1) for d, k in zip(dilations, problem.w[2:], strict=True)]
    extra = list(problem.each("output_padding", 0))
    auto_pad = problem.attributes["auto_pad"]
    wanted = problem.attributes.get("output_shape")
    if auto_pad.startswith("SAME"):
        wanted = wanted or [size * s for size, s in zip(problem.x[2:], strides, strict=True)]
    if wanted:
        whole = [
            (size - 1) * s + r + 1 + more for size, s, r, more in zip(problem.x[2:], strides, reach, extra, strict=True)
        ]
        sizes = [one - size for one, size in zip(whole, wanted, strict=True)]
        cut = same_pads(sizes, auto_pad)
        extra = [more + max(-size, 0) for more, size in zip(extra, sizes, strict=True)]
    else:
        flat = problem.each("pads", 0, 2)
        cut = list(zip(flat[:rank], flat[rank:], strict=True))
    pads = [(r - low, r - high + more) for r, (low, high), more in zip(reach, cut, extra, strict=True)]
    c, m = w.shape[:2]
    mirrored = jnp.flip(w, tuple(range(2, w.ndim))).reshape(group, c // group, m, *w.shape[2:])
    swapped = jnp.swapaxes(mirrored, 1, 2).reshape(group * m, c // group, *w.shape[2:])
    y = lax.conv_general_dilated(
        x, swapped, (1,) * rank, pads, lhs_dilation=strides, rhs_dilation=dilations, feature_group_count=group,
        dimension_numbers=dimension_numbers(rank), precision=lax.Precision.HIGHEST,
    )  # fmt: skip
    return y + b.reshape(1, -1, *[1] * rank)


def check_convolution(problem: draws.ConvProblem, names: tuple[str, str], peer: Any, channels: int) -> None:
    event(f"{problem.rank} axes, {problem.dtype.name}, {problem.attributes['auto_pad']}")
    event(f"empty batch {problem.x[0] == 0}")
    event(f"output_shape {problem.attributes.get('output_shape') is not None}")
    x, w = problem.numbers(problem.x, 0), problem.numbers(problem.w, 1)
    b = problem.numbers((channels,), 2)
    dims = jax.eval_shape(lambda *inputs: peer(problem, *inputs), x, w, b).shape
    dy = problem.numbers(dims, 3)
    (expected,), gradients = differentiated(lambda *inputs: (peer(problem, *inputs), ()), [x, w, b], dy)

    forward, gradient = (getattr(gradsmith, name) for name in names)
    equal(forward(x, w, b, **problem.attributes).Y, expected)
    for got, wanted in zip(gradient(dy, x, w, **problem.attributes), gradients, strict=True):
        equal(got, wanted)


@thorough
@given(draws.conv_problems())
def test_conv(problem: draws.ConvProblem) -> None:
    check_convolution(problem, ("conv", "conv_grad"), conv, problem.w[0])


@thorough
@given(draws.conv_problems(transposed=True))
def test_conv_transpose(problem: draws.ConvProblem) -> None:
    names = ("conv_transpose", "conv_transpose_grad")
    check_convolution(problem, names, conv_transpose, problem.w[1] * problem.group)


def batch_norm(x: Any, scale: Any, b: Any, epsilon: float, relu: bool) -> tuple[Any, tuple[Any, Any, Any]]:
    """Of an empty batch, mean and variance are 0, which is for us to say: JAX makes NaN of it."""
    axes = (0, *range(2, x.ndim))
    shape = (1, -1, *[1] * (x.ndim - 2))
    mean, variance = (x.mean(axes), x.var(axes)) if x.size else (x.sum(axes), x.sum(axes))
    inv_std = 1 / jnp.sqrt(variance + epsilon)
    y = (x - mean.reshape(shape)) * (inv_std * scale).reshape(shape) + b.reshape(shape)
    count = x.size // x.shape[1]
    return jax.nn.relu(y) if relu else y, (mean, inv_std, variance * count / (count - 1))


@thorough
@given(draws.batch_norm_problems())
def test_batch_normalization(problem: draws.BatchNormProblem) -> None:
    check_batch_normalization(problem, relu=False)


@thorough
@given(draws.batch_norm_problems())
def test_batch_normalization_relu(problem: draws.BatchNormProblem) -> None:
    check_batch_normalization(problem, relu=True)


def check_batch_normalization(problem: draws.BatchNormProblem, relu: bool) -> None:
    event(f"empty batch {problem.x[0] == 0}")
    event(f"{len(problem.x)} dims, {' '.join(one.name for one in problem.types)}")
    random = np.random.default_rng(problem.seed)
    channels = problem.x[1]
    types = problem.types
    x, dy = (draws.laid_out(random.normal(size=problem.x).astype(types[0]), problem.layout) for _ in range(2))
    scale, b = (random.normal(size=channels).astype(types[1]) for _ in range(2))
    if relu:
        scale = (np.sign(scale.astype("float64") + 1e-3) * random.uniform(0.5, 1.5, channels)).astype(types[1])
        wide, wide_scale = (one.astype("float64") for one in (x, scale))
        b = problems.biases_far_from_relus_bend(wide, wide_scale, problem.epsilon).astype(types[1])
    running = [random.uniform(0.5, 2, channels).astype(types[2]) for _ in range(2)]
    (y, mean, inv_std, unbiased), gradients = differentiated(
        lambda x, scale, b: batch_norm(x, scale, b, problem.epsilon, relu), [x, scale, b], dy
    )

    tolerance = max(TOLERANCES[one.name] for one in types)
    forward = gradsmith.batch_normalization_relu if relu else gradsmith.batch_normalization
    got = forward(x, scale, b, *running, epsilon=problem.epsilon, momentum=problem.momentum)
    near(got.Y, y, tolerance)
    near(got.saved_mean, mean, tolerance)
    near(got.saved_inv_std, inv_std, tolerance)
    near(got.running_mean, blended(problem, running[0], mean), tolerance)
    near(got.running_var, blended(problem, running[1], unbiased), tolerance)

    statistics = [np.asarray(one).astype(types[2]) for one in (mean, inv_std)]
    # The gradient divides by a deviation; where that is small, errors of the inputs grow with it.
    growth = max(float(inv_std.max()), 1.0) ** 2
    if relu:
        result: Any = gradsmith.batch_normalization_relu_grad(dy, x, scale, b, *statistics, epsilon=problem.epsilon)
    else:
        result = gradsmith.batch_normalization_grad(dy, x, scale, *statistics, epsilon=problem.epsilon)
    for one, expected in zip(result, gradients, strict=True):
        near(one, expected, tolerance * growth)


def blended(problem: draws.BatchNormProblem, running: Any, of_batch: Any) -> Any:
    """An empty batch leaves the running statistics as they are."""
    if problem.x[0] == 0:
        return running.astype("float64")
    return problem.momentum * running.astype("float64") + (1 - problem.momentum) * np.asarray(of_batch)


@dataclass(frozen=True)
class PoolProblem:
    """Windows over X, whose numbers all differ within a channel."""

    x: Any
    attributes: dict[str, Any]

    def taps(self, x: Any, outputs: tuple[int, ...], outside: float, beyond: float) -> Any:
        """The elements of all windows, a first axis for those of each: `outside` in the pads and `beyond` them."""
        rank = len(outputs)
        kernel, strides, dilations = (self.attributes[name] for name in ("kernel_shape", "strides", "dilations"))
        pads = self.attributes["pads"]
        far = [
            max((o - 1) * s + (k - 1) * d + 1 - size - low - high, 0)
            for o, s, k, d, size, low, high in zip(
                outputs, strides, kernel, dilations, x.shape[2:], pads[:rank], pads[rank:], strict=True
            )
        ]
        none = [(0, 0), (0, 0)]
        x = jnp.pad(x, none + list(zip(pads[:rank], pads[rank:], strict=True)), constant_values=outside)
        x = jnp.pad(x, none + [(0, more) for more in far], constant_values=beyond)
        steps = list(zip(dilations, strides, outputs, strict=True))
        cuts = [
            tuple(slice(t * d, t * d + (o - 1) * s + 1, s) for t, (d, s, o) in zip(tap, steps, strict=True))
            for tap in itertools.product(*map(range, kernel))
        ]
        return jnp.stack([x[(slice(None), slice(None), *cut)] for cut in cuts])

    def largest(self, outputs: tuple[int, ...]) -> Any:
        return lambda x: (self.taps(x, outputs, -jnp.inf, -jnp.inf).max(0), ())

    def mean(self, outputs: tuple[int, ...], count_include_pad: bool) -> Any:
        counts = self.taps(np.ones_like(self.x, "float64"), outputs, float(count_include_pad), 0).sum(0)
        return lambda x: (self.taps(x, outputs, 0, 0).sum(0) / counts, ())


def pool_problem(seed: int, dtype: Any) -> PoolProblem:
    """Each window holds an element of X."""
    random = np.random.default_rng(seed)
    rank = int(random.integers(1, 4))
    kernel, strides, dilations = (random.integers(1, 4 - (name == 2), rank) for name in range(3))
    dims = (kernel - 1) * dilations + 1 + random.integers(0, (9, 5, 2)[rank - 1], rank)
    pads = np.concatenate([random.integers(0, kernel) for _ in range(2)])
    x = np.stack([random.permutation(int(dims.prod())).reshape(dims) / 8 for _ in range(6)])
    attributes = {"kernel_shape": kernel, "strides": strides, "pads": pads, "dilations": dilations}
    listed = {name: one.tolist() for name, one in attributes.items()}
    return PoolProblem(x.reshape(2, 3, *dims).astype(dtype), {**listed, "ceil_mode": bool(random.integers(2))})


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("seed", range(problems.random_problems(6)))
def test_pooling(seed: int, dtype: str) -> None:
    problem = pool_problem(seed, np.dtype(dtype))
    x, attributes, tolerance = problem.x, problem.attributes, TOLERANCES[dtype]
    got = gradsmith.max_pool(x, **attributes)
    outputs = got.Y.shape[2:]
    dy = np.random.default_rng(seed).normal(0, 3, got.Y.shape).astype(x.dtype)
    (y,), (expected,) = differentiated(problem.largest(outputs), [x], dy)
    equal(got.Y, y)
    equal(x.reshape(-1)[got.Indices], y)
    near(gradsmith.max_pool_xy_grad(dy, x, got.Y, **attributes).dX, expected, tolerance)
    near(gradsmith.max_pool_grad(dy, got.Indices, x_shape=x.shape[2:], **attributes).dX, expected, tolerance)

    attributes["count_include_pad"] = bool(seed % 2)
    (y,), (expected,) = differentiated(problem.mean(outputs, bool(seed % 2)), [x], dy)
    near(gradsmith.average_pool(x, **attributes).Y, y, tolerance)
    near(gradsmith.average_pool_grad(dy, x, **attributes).dX, expected, tolerance)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("dims", [(2, 3, 7, 9), (2, 3, 5), (1, 2, 3, 4, 5)])
def test_global_pooling(dims: tuple[int, ...], dtype: str) -> None:
    random, tolerance = np.random.default_rng(len(dims)), TOLERANCES[dtype]
    size = int(np.prod(dims[2:]))
    x = np.stack([random.permutation(size) for _ in range(dims[0] * dims[1])]).reshape(dims).astype(np.dtype(dtype))
    axes = tuple(range(2, len(dims)))
    dy = random.normal(0, 3, (*dims[:2], *[1] * len(axes))).astype(x.dtype)
    (y,), (expected,) = differentiated(lambda x: (x.max(axes, keepdims=True), ()), [x], dy)
    equal(gradsmith.global_max_pool(x).Y, y)
    near(gradsmith.global_max_pool_grad(dy, x, np.asarray(y).astype(x.dtype)).dX, expected, tolerance)
    (y,), (expected,) = differentiated(lambda x: (x.mean(axes, keepdims=True), ()), [x], dy)
    near(gradsmith.global_average_pool(x).Y, y, tolerance)
    near(gradsmith.global_average_pool_grad(dy, x).dX, expected, tolerance)


SOFTMAX = {"softmax": jax.nn.softmax, "log_softmax": jax.nn.log_softmax}


@pytest.mark.parametrize("name", SOFTMAX)
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize(
    ("dims", "axis", "coerced"),
    [
        ((7,), 0, False),
        ((0, 5), -1, False),
        ((3, 1021), -1, False),
        ((4, 6, 5), 1, False),
        ((2, 3, 4, 5), 0, False),
        ((2, 3, 4, 5), 1, True),
        ((6, 2, 3), -3, True),
    ],
)
def test_softmax(name: str, dtype: str, dims: tuple[int, ...], axis: int, coerced: bool) -> None:
    random = np.random.default_rng(len(dims))
    dy, x = (random.normal(0, 3, dims).astype(np.dtype(dtype)) for _ in range(2))
    axes = row_axes(len(dims), axis, coerced)
    (y,), (expected,) = differentiated(lambda x: (SOFTMAX[name](x, axes), ()), [x], dy)
    attributes = {"axis": axis, "coerced": coerced}
    got = getattr(gradsmith, name)(x, **attributes).Y
    near(got, y, TOLERANCES[dtype])
    given = np.asarray(y).astype(got.dtype)
    near(getattr(gradsmith, f"{name}_grad")(dy, given, **attributes).dX, expected, TOLERANCES[dtype])


def lp_normalized(x: Any, axis: int) -> Any:
    return x / jnp.sqrt((x * x).sum(axis, keepdims=True))


REDUCTIONS: dict[str, Any] = {
    "reduce_sum": lambda x, axis: x.sum(axis),
    "reduce_mean": lambda x, axis: x.mean(axis),
    "reduce_l1": lambda x, axis: abs(x).sum(axis),
    "reduce_l2": lambda x, axis: jnp.sqrt((x * x).sum(axis)),
    "reduce_log_sum_exp": jax.nn.logsumexp,
    "lp_normalization": lp_normalized,
}


def test_what_has_the_norm_0_is_normalized_to_0() -> None:
    """The squares of these floats are 0, though they are not."""
    x = np.array([[1e-25, -1e-25, 0, 1e-25], [3, 0, -4, 0]], np.float32)
    expected = np.array([[0, 0, 0, 0], [0.6, 0, -0.8, 0]], np.float32)
    np.testing.assert_array_equal(gradsmith.lp_normalization(x).Y, expected)
    np.testing.assert_array_equal(gradsmith.lp_normalization_grad(np.ones_like(x), x).dX[0], 0)


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize(("dims", "axis"), [((7,), 0), ((3, 1021), -1), ((4, 6, 5), 1), ((2, 3, 4, 5), 0)])
def test_reductions(name: str, dtype: str, dims: tuple[int, ...], axis: int) -> None:
    random = np.random.default_rng(len(dims))
    x = random.normal(1, 2, dims).astype(np.dtype(dtype))
    got = getattr(gradsmith, name)(x, axis=axis).Y
    dy = random.normal(0, 1, got.shape).astype(np.dtype(dtype))
    (y,), (expected,) = differentiated(lambda x: (REDUCTIONS[name](x, axis), ()), [x], dy)
    near(got, y, TOLERANCES[dtype])
    given = [got] if name in ("reduce_l2", "reduce_log_sum_exp") else []
    near(getattr(gradsmith, f"{name}_grad")(dy, x, *given, axis=axis).dX, expected, TOLERANCES[dtype])


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize(("dims", "axis"), [((7,), 0), ((3, 1021), -1), ((4, 6, 5), 1), ((2, 3, 4, 5), 0)])
def test_lp_normalization_by_absolute_values(dims: tuple[int, ...], axis: int, dtype: str) -> None:
    random = np.random.default_rng(len(dims))
    x = random.normal(0, 2, dims).astype(np.dtype(dtype))
    dy = random.normal(0, 1, dims).astype(np.dtype(dtype))

    def forward(x: Any) -> Any:
        return x / jnp.linalg.norm(x, ord=1, axis=axis, keepdims=True), ()

    (y,), (expected,) = differentiated(forward, [x], dy)
    near(gradsmith.lp_normalization(x, axis=axis, p=1).Y, y, TOLERANCES[dtype])
    near(gradsmith.lp_normalization_grad(dy, x, axis=axis, p=1).dX, expected, TOLERANCES[dtype])


def test_lp_normalization_by_absolute_values_of_a_few() -> None:
    """By hand: a row with a 0, whose derivative is dY / norm there, and one of zeros."""
    x, dy = np.array([[3.0, -1.0, 0.0], [0.0, 0.0, 0.0]]), np.array([[1.0, 2.0, 5.0], [1.0, 2.0, 3.0]])
    np.testing.assert_allclose(gradsmith.lp_normalization(x, p=1).Y, [[0.75, -0.25, 0.0], [0.0, 0.0, 0.0]], rtol=1e-15)
    got = gradsmith.lp_normalization_grad(dy, x, p=1).dX  # the sum of dY * Y is 0.25
    np.testing.assert_allclose(got, [[0.1875, 0.5625, 1.25], [0.0, 0.0, 0.0]], rtol=1e-15)


def test_every_operator_is_compared() -> None:
    """An operator on a kernel of its own that is added to ops.yaml needs a peer here."""
    compared = {"Conv", "ConvGrad", "ConvTranspose", "ConvTransposeGrad"}
    compared |= {"BatchNormalization", "BatchNormalizationGrad"}
    compared |= {"BatchNormalizationRelu", "BatchNormalizationReluGrad"}
    compared |= {"MaxPool", "MaxPoolXYGrad", "MaxPoolGrad", "AveragePool", "AveragePoolGrad"}
    compared |= {"GlobalMaxPool", "GlobalMaxPoolGrad", "GlobalAveragePool", "GlobalAveragePoolGrad"}
    compared |= {"Softmax", "SoftmaxGrad", "LogSoftmax", "LogSoftmaxGrad"}
    compared |= {op.name for op in gradsmith.ops() if op.function.removesuffix("_grad") in {*COMPARED, *REDUCTIONS}}
    compared |= {name for forward in (*NORMS, *LOSSES) for name in (forward, f"{forward}Grad")}
    compared |= set(OTHER_GRADIENTS)
    kernels = {op.kernel for op in gradsmith.ops() if op.name in compared}
    assert {op.name for op in gradsmith.ops() if op.name in compared or op.kernel not in kernels} == compared
