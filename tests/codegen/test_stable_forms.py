"""Formulas whose form was chosen because another form of the same function loses digits: near saturation, where a
difference of nearly equal numbers would be taken, and where a square overflows. They are read in double and compared
with the function in many digits, of the numbers as a double holds them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import mpmath
import pytest
from formula_language import IN_DOUBLE, OPS, defaults, evaluated
from test_derivatives import GRADIENTS, derivatives
from test_reduction_derivatives import Array, Dim, Sizes, dims_of, words_by_name

DIGITS = 400
NEAR = 2e-15  # relative: some roundings of a double
GRADIENT = 1.25
LARGE = 1e250  # a gradient that makes up for the smallest slopes

NEAR_ONE = (math.tanh(2.5), math.tanh(8.3), math.tanh(13.7), 1 - 3e-16, 0.3)
LOGARITHMS = (-1e-300, -3e-17, -1.7e-10, -2e-5, -0.7, -30.5, -700.0)

Reference = Callable[[Any], Any]

# Each gradient's input, the slope, and where it is looked at.
SLOPES: dict[str, tuple[str, Reference, tuple[float, ...]]] = {
    "TanhGrad": ("Y", lambda y: 1 - y * y, (*NEAR_ONE, *(-y for y in NEAR_ONE))),
    "SigmoidGrad": ("Y", lambda y: y * (1 - y), (*NEAR_ONE, 1e-300, 1e-17)),
    "SoftplusGrad": ("X", lambda x: 1 / (1 + mpmath.exp(-x)), (-700.0, -40.25, -1e-9, 3.5, 40.0)),
    "AtanGrad": ("X", lambda x: 1 / (1 + x * x), (1e-200, 0.75, 9.9e8, -1.1e9, 1e100, -1e155, 1e200, 1e290)),
    "AsinGrad": ("X", lambda x: 1 / mpmath.sqrt(1 - x * x), (*NEAR_ONE, -math.tanh(12.1))),
    "AcosGrad": ("X", lambda x: -1 / mpmath.sqrt(1 - x * x), (*NEAR_ONE, -math.tanh(12.1))),
    "Log1pGrad": ("X", lambda x: 1 / (1 + x), (-0.999, 1e-300, 1e-17, 1e200)),
}


def is_near(found: float, expected: float, slack: float = NEAR) -> bool:
    return math.isclose(found, expected, rel_tol=slack, abs_tol=1e-307)


@pytest.mark.parametrize("gradient", [GRADIENT, LARGE])
@pytest.mark.parametrize("name", SLOPES)
def test_slopes_keep_their_digits(name: str, gradient: float) -> None:
    key, slope, points = SLOPES[name]
    for point in points:
        found = evaluated(OPS[name], {"dY": gradient, key: point}, IN_DOUBLE)["dX"]
        with mpmath.workdps(DIGITS):
            expected = float(slope(mpmath.mpf(point)) * gradient)
        assert is_near(found, expected), (point, found, expected)


# Where a formula adds numbers of two signs on purpose, its digits are those of what is added.
CANCELS = {"Add", "Sub", "Sin", "Cos", "Tan", "HardSigmoid", "HardSwish"}
FORWARD = {name: str(OPS[name]["gradient_of"]) for name in GRADIENTS if "mask" not in OPS[name]["inputs"]}
OF_ONE = {name: forward for name, forward in FORWARD.items() if len(OPS[forward]["inputs"]) == 1}
SMALL_AND_LARGE = (1e-300, 1e-17, 1.7e-10, 3e-5, 0.4, 7.25, 25.5, 30.5)


@pytest.mark.parametrize(("name", "forward"), [one for one in OF_ONE.items() if one[1] not in CANCELS])
def test_forwards_keep_their_digits(name: str, forward: str) -> None:
    peer = derivatives(name)
    compared = 0
    for x in (*SMALL_AND_LARGE, *(-x for x in SMALL_AND_LARGE)):
        expected = peer.value({"X": x})
        if expected is not None:
            known = {**defaults(OPS[forward]), "pi": math.pi, "X": x}
            found = evaluated(OPS[forward], known, IN_DOUBLE)["Y"]
            assert is_near(found, expected, 1e-13), (x, found, expected)
            compared += 1
    assert compared >= 4


# What the gradients of losses are given of one sample that says the logarithm of a probability.
OF_LOSS: dict[str, Callable[[float], Mapping[str, float]]] = {
    "SoftmaxCrossEntropyLossGrad": lambda log_prob: {"log_prob": log_prob},
    "SoftmaxCrossEntropyLossInternalGrad": lambda log_prob: {"log_prob": log_prob, "bias": 0.0},
    "SoftmaxCrossEntropyWithLabelsGrad": lambda log_prob: {"X": 0.0, "largest": 0.0, "log_sum": -log_prob},
}


def array_of(op: Any, key: str, value: float, sizes: Sizes) -> Array:
    """An input of one value; of dims that hang on an attribute, which a sum has not, it has none."""
    held = tuple(dim for dim in dims_of(op, op["inputs"][key]) if dim in sizes.by_name)
    return sizes.array(held, lambda _: value)


@pytest.mark.parametrize("is_label", [True, False])
@pytest.mark.parametrize("name", OF_LOSS)
def test_losses_keep_their_digits(name: str, is_label: bool) -> None:
    """Of a label that is nearly certain, whose gradient is the probability of all others."""
    op = OPS[name]
    sizes = Sizes(op)
    dims = {dim: Dim(dim) for dim in sizes.by_name}
    for log_prob in LOGARITHMS:
        values = {"dY": GRADIENT, "label": 0.0, **OF_LOSS[name](log_prob)}
        given = {key: array_of(op, key, value, sizes) for key, value in values.items()}
        found = evaluated(op, {**given, **dims, "reduction": "sum"}, words_by_name(IN_DOUBLE, sizes))["dX"]
        place = {dim: int(dim == "C" and not is_label) for dim in dims}
        with mpmath.workdps(DIGITS):
            power = mpmath.exp(mpmath.mpf(log_prob))
            expected = float((power - 1 if is_label else power) * GRADIENT)
        assert is_near(found.at(place), expected), (log_prob, found.at(place), expected)
