"""Losses of labels beside JAX in float64 on the same numbers."""

from __future__ import annotations

from typing import Any

import gradsmith
import numpy as np
import pytest
from jax_peer import TOLERANCES, differentiated, equal, jax, near

LOSSES = ("SoftmaxCrossEntropyWithLabels", "SoftmaxCrossEntropyLoss")  # compared here
OTHER_GRADIENTS = ("SoftmaxCrossEntropyLossInternalGrad",)  # of them, compared here

jnp = jax.numpy


def losses(x: Any, labels: Any, weights: Any, counts: Any) -> Any:
    """Of logits [N, C, *D]; a label that does not count has the loss 0."""
    safe = np.where(counts, labels, 0)
    logs = jax.nn.log_softmax(x, axis=1)
    own = jnp.take_along_axis(logs, jnp.expand_dims(safe, 1), axis=1).squeeze(1)
    return jnp.where(counts, -weights[safe] * own, 0)


def check(x: Any, labels: Any, weights: Any, ignored: int | None, tolerance: float) -> None:
    classes = x.shape[1]
    counts = (labels >= 0) & (labels < classes) & (labels != (-100 if ignored is None else ignored))
    factors = np.ones(classes) if weights is None else weights.astype("float64")
    random = np.random.default_rng(3)
    wide = x.dtype if x.dtype == np.float64 else np.dtype("float32")
    dy = random.normal(0, 1, labels.shape).astype(wide)
    (y,), (expected,) = differentiated(lambda x: (losses(x, labels, factors, counts), ()), [x], dy)
    given = {"weight": weights, "ignore_index": ignored}
    found = gradsmith.softmax_cross_entropy_with_labels(x, labels, **given)
    assert found.Y.dtype == wide
    near(found.Y, y, tolerance)
    equal(found.Y[~counts], np.zeros(np.count_nonzero(~counts)))
    dx = gradsmith.softmax_cross_entropy_with_labels_grad(dy, x, labels, found.largest, found.log_sum, **given).dX
    near(dx, expected, tolerance)
    equal(np.moveaxis(dx, 1, -1)[~counts], np.zeros((np.count_nonzero(~counts), classes)))


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("label_type", ["int32", "int64"])
@pytest.mark.parametrize(
    ("dims", "ignored", "has_weight"),
    [
        ((5, 7), None, False),
        ((64, 1000), -100, True),
        ((2, 5, 3, 4), 2, True),
        ((3, 1), None, True),
        ((2, 70001), 7, False),
        ((0, 4), None, True),
    ],
)
def test_cross_entropy(
    dtype: str, label_type: str, dims: tuple[int, ...], ignored: int | None, has_weight: bool
) -> None:
    random = np.random.default_rng(dims[1])
    kind = np.dtype(dtype)
    x = random.normal(0, 3, dims).astype(kind)
    # A class before the first and one behind the last are among them.
    labels = random.integers(-1, dims[1] + 1, (dims[0], *dims[2:])).astype(label_type)
    weights = random.uniform(0.5, 2, dims[1]).astype(kind) if has_weight else None
    check(x, labels, weights, ignored, TOLERANCES[dtype])


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(
    ("dims", "ignored", "has_weight"),
    [((5, 7), None, False), ((64, 1000), -100, True), ((2, 5, 3, 4), 2, True), ((0, 4), None, True)],
)
def test_cross_entropy_by_its_reduction(
    dtype: str, reduction: str, dims: tuple[int, ...], ignored: int | None, has_weight: bool
) -> None:
    random = np.random.default_rng(dims[1])
    kind = np.dtype(dtype)
    x = random.normal(0, 3, dims).astype(kind)
    labels = random.integers(-1, dims[1] + 1, (dims[0], *dims[2:]))
    weights = random.uniform(0.5, 2, dims[1]).astype(kind) if has_weight else None
    counts = (labels >= 0) & (labels < dims[1]) & (labels != (-100 if ignored is None else ignored))
    factors = np.ones(dims[1]) if weights is None else weights.astype("float64")
    total = factors[labels[counts]].sum() if reduction == "mean" else 1

    def loss(x: Any) -> tuple[Any, Any]:
        each = losses(x, labels, factors, counts)
        return each if reduction == "none" else each.sum() / (total or 1), jax.nn.log_softmax(x, axis=1)

    arriving = random.choice([-1.75, 0.5, 2], labels.shape) if reduction == "none" else -1.75
    dy = np.asarray(arriving, dtype=kind if kind == np.float64 else "float32")
    (y, log_prob), (expected,) = differentiated(lambda x: (loss(x)[0], (loss(x)[1],)), [x], dy)
    given = {"weight": weights, "ignore_index": ignored, "reduction": reduction}
    found = gradsmith.softmax_cross_entropy_loss(x, labels, **given)
    assert found.Y.shape == (labels.shape if reduction == "none" else ())
    near(found.Y, y, TOLERANCES[dtype])
    near(found.log_prob, log_prob, TOLERANCES[dtype])
    dx = gradsmith.softmax_cross_entropy_loss_grad(dy, found.log_prob, labels, **given).dX
    # What is left of log_prob in few bits has a larger error as an exponent.
    near(dx, expected, TOLERANCES[dtype] * (1 if kind.itemsize > 2 else 8))
    # The same, with the ignored label as an operand.
    given = {"weight": weights, "reduction": reduction}
    given["ignore_index"] = None if ignored is None else np.asarray(ignored, dtype="int64")
    internal = gradsmith.softmax_cross_entropy_loss_internal_grad
    of_graphs = internal(dy.astype(kind), found.log_prob, labels, **given).dX
    equal(of_graphs, dx)
    bias = random.normal(0, 1, dims).astype(kind)
    with_bias = internal(dy.astype(kind), found.log_prob, labels, bias=bias, **given).dX
    near(with_bias, expected + bias.astype("float64"), TOLERANCES[dtype] * (1 if kind.itemsize > 2 else 8))


def test_the_loss_of_ignored_labels_alone_is_0() -> None:
    x = np.full((3, 4), np.nan, dtype="float32")
    labels = np.full(3, 2)
    found = gradsmith.softmax_cross_entropy_loss(x, labels, ignore_index=2)
    equal(found.Y, np.zeros(()))
    one = np.ones((), dtype="float32")
    equal(gradsmith.softmax_cross_entropy_loss_grad(one, x, labels, ignore_index=2).dX, np.zeros((3, 4)))
    each = gradsmith.softmax_cross_entropy_loss(x, labels, ignore_index=2, reduction="none")
    equal(each.Y, np.zeros(3))
    given = {"ignore_index": 2, "reduction": "none"}
    equal(
        gradsmith.softmax_cross_entropy_loss_grad(np.ones(3, dtype="float32"), x, labels, **given).dX, np.zeros((3, 4))
    )


def test_the_reduction_says_which_gradient_arrives() -> None:
    log_prob = np.full((3, 4), np.log(0.25), dtype="float32")
    labels = np.zeros(3, dtype="int64")
    of_each, of_all = np.ones(3, dtype="float32"), np.ones((), dtype="float32")
    for dy, reduction, ranks in (
        (of_each, "mean", "rank 1; expected rank 0"),
        (of_all, "none", "rank 0; expected rank "),
    ):
        with pytest.raises(
            ValueError, match=f"dY has shape .*{ranks}.*N if reduction == none.* with reduction = {reduction}"
        ):
            gradsmith.softmax_cross_entropy_loss_grad(dy, log_prob, labels, reduction=reduction)


def test_logits_far_from_zero_and_sure_ones_lose_no_digits() -> None:
    random = np.random.default_rng(5)
    labels = np.array([1, 3, 0], dtype="int64")
    far = (1e4 + random.normal(0, 1, (3, 4))).astype("float32")
    check(far, labels, None, None, TOLERANCES["float32"])
    # Where the label is all but certain, its gradient is a small number.
    sure = np.zeros((3, 4), dtype="float32")
    sure[np.arange(3), labels] = 8
    found = gradsmith.softmax_cross_entropy_with_labels(sure, labels)
    one = np.ones(3, dtype="float32")
    dx = gradsmith.softmax_cross_entropy_with_labels_grad(one, sure, labels, found.largest, found.log_sum).dX
    rest = 3 * np.exp(-8.0) / (1 + 3 * np.exp(-8.0))
    np.testing.assert_allclose(dx[np.arange(3), labels], -rest, rtol=2e-4)


def test_what_is_no_number_stays_in_its_row_and_harms_no_ignored_one() -> None:
    x = np.random.default_rng(7).normal(0, 1, (4, 5)).astype("float32")
    clean = x.copy()
    x[1, 2], x[2, 0], x[3, 4] = np.nan, np.inf, np.nan
    labels = np.array([0, 1, 2, -100], dtype="int32")
    found = gradsmith.softmax_cross_entropy_with_labels(x, labels, ignore_index=-100)
    expected = gradsmith.softmax_cross_entropy_with_labels(clean, labels, ignore_index=-100)
    assert not np.isfinite(found.Y[1:3]).any()
    equal(found.Y[[0, 3]], expected.Y[[0, 3]])
    dy = np.ones(4, dtype="float32")
    dx = gradsmith.softmax_cross_entropy_with_labels_grad(
        dy, x, labels, found.largest, found.log_sum, ignore_index=-100
    ).dX
    assert np.isfinite(dx[0]).all()
    equal(dx[3], np.zeros(5))
