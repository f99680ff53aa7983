"""Formulas of operators that have gradients: those whose mistakes the gradient would share are compared with what NumPy
computes, and a wrong sign in any of them is noticed by one of the two."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import test_derivatives as of_elements
import test_reduction_derivatives as of_rows
from formula_language import IN_DOUBLE, OPS, evaluated, has_rows, is_condition, with_wrong_signs
from test_reduction_derivatives import Array, Dim, Sizes, dims_of, words_by_name

Numbers = Any  # an array of NumPy's
Outputs = dict[str, Numbers]

FORWARD = [str(OPS[name]["gradient_of"]) for name in (*of_elements.GRADIENTS, *of_rows.GRADIENTS)]
EPSILON = 0.25
FAR = 1e4  # whose exponent is more than a double holds


@dataclass(frozen=True)
class Given:
    """Inputs by their names, all with the dims of the largest, and what a definition asks of them."""

    inputs: Mapping[str, Numbers]
    dims: tuple[str, ...]
    attributes: Mapping[str, Any]

    def over(self, *names: str) -> tuple[int, ...]:
        return tuple(self.dims.index(name) for name in names)

    def mean(self, x: Numbers, *names: str) -> Numbers:
        return x.mean(axis=self.over(*names), keepdims=True)

    def scale_of(self, x: Numbers, *names: str) -> Numbers:
        """1 over the root of the mean of squares."""
        return 1 / np.sqrt(self.mean(x * x, *names) + self.attributes["epsilon"])


def normalized(given: Given, x: Numbers, scale: str, bias: str, *names: str) -> Outputs:
    mean = given.mean(x, *names)
    inv_std = given.scale_of(x - mean, *names)
    y = (x - mean) * inv_std * given.inputs[scale] + given.inputs[bias]
    return {"Y": y, "mean": mean, "inv_std": inv_std}


def layer_normalization(given: Given) -> Outputs:
    return normalized(given, given.inputs["X"], "scale", "B", "S")


def skip_layer_normalization(given: Given) -> Outputs:
    total = given.inputs["X"] + given.inputs["skip"] + given.inputs["bias"]
    return {**normalized(given, total, "gamma", "beta", "S"), "total": total}


def simplified_layer_normalization(given: Given) -> Outputs:
    inv_std = given.scale_of(given.inputs["X"], "S")
    return {"Y": given.inputs["X"] * inv_std * given.inputs["scale"], "inv_std": inv_std}


def mean_variance_normalization(given: Given) -> Outputs:
    x = given.inputs["X"]
    mean, deviation = given.mean(x, "N", "D"), x.std(axis=given.over("N", "D"), keepdims=True)
    return {"Y": (x - mean) / (deviation + given.attributes["epsilon"]), "mean": mean, "std_dev": deviation}


def log_sum_exp(given: Given, *names: str) -> Numbers:
    return np.logaddexp.reduce(given.inputs["X"], axis=given.over(*names)[0], keepdims=True)


def log_softmax(given: Given) -> Outputs:
    return {"Y": given.inputs["X"] - log_sum_exp(given, "A")}


def cross_entropy(given: Given) -> Outputs:
    x = given.inputs["X"]
    labels = given.inputs["label"].astype(int)
    weights = np.take_along_axis(np.broadcast_to(given.inputs["weight"], x.shape), labels, axis=1)
    losses = -weights * np.take_along_axis(x - log_sum_exp(given, "C"), labels, axis=1)
    return {"losses": losses, "weights": weights}


def cross_entropy_of_each(given: Given) -> Outputs:
    x, over = given.inputs["X"], given.over("C")
    largest = x.max(axis=over, keepdims=True)
    log_sum = log_sum_exp(given, "C") - largest
    return {"Y": cross_entropy(given)["losses"], "largest": largest, "log_sum": log_sum}


def cross_entropy_of_all(given: Given) -> Outputs:
    found = cross_entropy(given)
    total = found["weights"].sum() if given.attributes["reduction"] == "mean" else 1
    loss = found["losses"] if given.attributes["reduction"] == "none" else found["losses"].sum() / total
    return {"Y": loss, "log_prob": given.inputs["X"] - log_sum_exp(given, "C")}


DEFINITIONS: dict[str, Callable[[Given], Outputs]] = {
    "Exp": lambda given: {"Y": np.exp(given.inputs["X"])},
    "Sqrt": lambda given: {"Y": np.sqrt(given.inputs["X"])},
    "Softmax": lambda given: {"Y": np.exp(log_softmax(given)["Y"])},
    "LogSoftmax": log_softmax,
    "ReduceL2": lambda given: {
        "Y": np.linalg.norm(given.inputs["X"], axis=given.over("A")[0], keepdims=True),
    },
    "ReduceLogSumExp": lambda given: {"Y": log_sum_exp(given, "A")},
    "LayerNormalization": layer_normalization,
    "SkipLayerNormalization": skip_layer_normalization,
    "SimplifiedLayerNormalization": simplified_layer_normalization,
    "MeanVarianceNormalization": mean_variance_normalization,
    "InstanceNormalization": lambda given: normalized(given, given.inputs["X"], "scale", "B", "D"),
    "GroupNormalization": lambda given: normalized(given, given.inputs["X"], "scale", "bias", "K", "D"),
    "SoftmaxCrossEntropyWithLabels": cross_entropy_of_each,
    "SoftmaxCrossEntropyLoss": cross_entropy_of_all,
}
OF_ANY_PLACE = {"Softmax", "LogSoftmax", "ReduceLogSumExp", "SoftmaxCrossEntropyWithLabels", "SoftmaxCrossEntropyLoss"}


def drawn(op: Any, sizes: Sizes, center: float) -> dict[str, Array]:
    numbers = random.Random(17)
    arrays = {}
    for name, tensor in op["inputs"].items():
        places = [tuple(place.values()) for place in sizes.places(dims_of(op, tensor))]
        cells = {place: numbers.uniform(0.3, 3) + (center if name == "X" else 0) for place in places}
        if tensor["type"] == "Tind":
            cells = dict(zip(places, map(float, itertools.cycle(of_rows.LABELS)), strict=False))
        arrays[name] = Array(dims_of(op, tensor), cells)
    return arrays


def spread(array: Array, dims: tuple[str, ...], sizes: Sizes) -> Numbers:
    """With one place along each of the dims that it lacks."""
    shape = [sizes.by_name[dim] if dim in array.dims else 1 for dim in dims]
    ordered = [array.at(place) for place in sizes.places(dim for dim in dims if dim in array.dims)]
    return np.array(ordered, dtype="float64").reshape(shape)


def check(op: Any, attributes: Mapping[str, Any]) -> None:
    sizes = Sizes(op)
    dims = tuple(sizes.by_name)
    for center in (0.0, FAR) if op["name"] in OF_ANY_PLACE else (0.0,):
        arrays = drawn(op, sizes, center)
        names = {**of_rows.scalars(attributes), **{one: Dim(one) for one in dims}, **arrays}
        found = evaluated(op, names, words_by_name(IN_DOUBLE, sizes))
        inputs = {name: spread(array, dims, sizes) for name, array in arrays.items()}
        for output, expected in DEFINITIONS[op["name"]](Given(inputs, dims, attributes)).items():
            np.testing.assert_allclose(spread(found[output], dims, sizes), expected, rtol=1e-9, atol=1e-9)


def attributes_of(op: Any) -> list[dict[str, Any]]:
    """With an epsilon that counts, which a default need not do."""
    every = [dict(one) for one in of_rows.attributes_of(op) if "ignore_index" not in dict(one)]
    return [{name: EPSILON if name == "epsilon" else value for name, value in one.items()} for one in every]


@pytest.mark.parametrize("name", DEFINITIONS)
def test_formulas_are_the_definition(name: str) -> None:
    for attributes in attributes_of(OPS[name]):
        check(OPS[name], attributes)


def is_noticed(name: str, op: Any) -> bool:
    """Whether one of the comparisons fails for an operator with other formulas."""
    gradient = next(one for one, other in OPS.items() if other.get("gradient_of") == name)
    try:
        if name in DEFINITIONS:
            for attributes in attributes_of(op):
                check(op, attributes)
        if has_rows(OPS[gradient]):
            for of_call in of_rows.attributes_of(op):
                of_rows.compare_with(of_rows.Derivatives(gradient, of_call), OPS[gradient])
        else:
            of_elements.test_gradient_is_the_derivative(gradient)
    except (AssertionError, ValueError, OverflowError, ZeroDivisionError):
        return True
    finally:
        of_elements.derivatives.cache_clear()  # which are of these formulas
    return False


@pytest.mark.parametrize("name", FORWARD)
def test_a_wrong_sign_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    op = OPS[name]
    assert not is_noticed(name, op)
    for key, text in op["formulas"].items():
        if is_condition(str(text)):
            continue  # which has no sign
        for wrong in with_wrong_signs(str(text)):
            other = {**op, "formulas": {**op["formulas"], key: wrong}}
            monkeypatch.setitem(OPS, name, other)
            assert is_noticed(name, other), (key, wrong)
            monkeypatch.setitem(OPS, name, op)
