"""Gradients by formulas where a number is special: zeros of both signs, denormals, the type's largest, infinities and
NaN. They are those of the built library, on the CPU.

What reduces is compared with the derivative that SymPy makes of the forward formula: one element of one tensor, the
gradient that arrives among them, is special and all others are ordinary. What is of one place is compared with its
formula, as Python reads it; that this is the derivative is tested in tests/codegen/test_special_points.py.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping
from typing import Any

import gradsmith
import mpmath
import numpy as np
import pytest
from formula_language import IN_DOUBLE, OPS, Slope, defaults, evaluated, gradients, has_rows
from test_reduction_derivatives import Derivatives, attributes_of, derivatives

INF, NAN = math.inf, math.nan
FAR = mpmath.mpf(10) ** 400  # what an infinity is to the derivative
# Beyond these numbers the slope is that of a bound to all digits, which take seconds.
BOUNDED = {"BiasFastGeluGrad": 1e3}
OF_ROWS = [name for name in gradients() if has_rows(OPS[name])]
OF_PLACES = [name for name in gradients() if not has_rows(OPS[name])]
BY_NAME = {op.name: op for op in gradsmith.ops()}

At = Mapping[Any, float]  # what each symbol is
Outputs = dict[str, Any]

# How far a result may be from the derivative. Rows of two elements, of which the difference of nearly equal numbers
# is taken, have few digits.
SLACK: dict[Any, float] = {np.float64: 1e-7, np.float32: 1e-2}
LITTLE: dict[Any, float] = {np.float64: 1e-9, np.float32: 1e-2}


def specials(dtype: Any) -> list[float]:
    limits = np.finfo(dtype)
    least, largest = float(limits.smallest_subnormal), float(limits.max)
    return [0.0, -0.0, least, -least, float(limits.tiny) / 8, largest, -largest, INF, -INF, NAN]


SPECIAL = specials(np.float64)
# Where NaN is what is not selected: as minus infinity is.
NAN_IS_NOT_SELECTED = {
    ("BiasReluGrad", "A"): "a comparison with NaN does not hold, as the entry's seams say",
    ("BiasReluGrad", "B"): "a comparison with NaN does not hold",
}
# Where a finite result of the type's largest is not the derivative: the operator, its output, why. What else overflows
# within a formula comes out as an infinity or NaN, and never as a number.
VANISHES = {
    ("ReduceL2Grad", "dX"): "the square overflows, so that Y is infinite",
    ("InstanceNormalizationGrad", "dScale"): "the square overflows, so that inv_std is 0",
    ("LayerNormalizationGrad", "dScale"): "the square overflows, so that inv_std is 0",
    ("SimplifiedLayerNormalizationGrad", "dScale"): "the square overflows, so that inv_std is 0",
    ("SkipLayerNormalizationGrad", "dGamma"): "the square overflows, so that inv_std is 0",
}
# Where a number has no share in a derivative, and is read for it all the same.
CANCELS_OUT = {
    ("SoftmaxCrossEntropyLossGrad", "weight"): "it divides by the sum of the weights that count",
}


class Calls:
    """Of a forward operator and its gradient, as the library has them."""

    def __init__(self, peer: Derivatives, dtype: Any) -> None:
        self.peer = peer
        self.dtype = dtype

    def outputs(self, at: At) -> Outputs:
        """The gradients' bytes are what counts, so they are flat arrays."""
        peer, op, forward = self.peer, self.peer.op, self.peer.forward
        given = {key: self.numbers(forward, key, array, at) for key, array in peer.symbols_of.items()}
        for key, array in peer.labels.items():
            labels = np.array([int(one) for one in array.cells.values()])
            given[key] = labels.reshape(self.shape(forward, forward["inputs"][key]))
        saved = function(forward)(**given, **self.attributes(forward))
        for key, tensor in op["inputs"].items():
            of = tensor.get("gradient_of")
            if of:
                weights = [at[one] for one in peer.weights[of].cells.values()]
                given[key] = np.array(weights, self.dtype).reshape(getattr(saved, of).shape)
            elif key not in given:
                given[key] = getattr(saved, key)
        back = function(op)(**{key: given[key] for key in op["inputs"]}, **self.attributes(op))
        return {key: np.asarray(getattr(back, key)).ravel() for key in op["outputs"]}

    def numbers(self, op: Any, key: str, array: Any, at: At) -> Any:
        values = np.array([at[one] for one in array.cells.values()], self.dtype)
        return values.reshape(self.shape(op, op["inputs"][key]))

    def shape(self, op: Any, tensor: Any) -> list[int]:
        while "shape" not in tensor:
            tensor = {**op["outputs"], **op["inputs"]}[tensor["like"]]
        dims = [str(dim).lstrip("*") for dim in tensor["shape"]]
        split = [op["dims"].get(dim, {}).get("split", [dim]) for dim in dims]
        return [math.prod(self.peer.sizes.by_name[part] for part in parts) for parts in split]

    def attributes(self, op: Any) -> dict[str, Any]:
        own = op.get("attributes", {})
        values = {key: one for key, one in self.peer.attributes.items() if key in own}
        values |= {"num_groups": self.peer.sizes.by_name["G"]} if "num_groups" in own else {}
        values |= {"axis": 1} if "axis" in own else {}
        return {key: int(one) if own[key]["type"] == "int" else one for key, one in values.items()}


def function(op: Any) -> Any:
    return getattr(gradsmith, BY_NAME[op["name"]].function)


def peers(name: str) -> Iterator[Derivatives]:
    """With each of the attributes' values, as a float holds them."""
    for attributes in attributes_of(OPS[OPS[name]["gradient_of"]]):
        held = tuple((key, float(np.float32(one)) if isinstance(one, float) else one) for key, one in attributes)
        yield derivatives(name, held)


def expected(peer: Derivatives, at: At) -> dict[Slope, list[float]]:
    """The derivatives at a point, and their limits where a number of it is infinite."""

    def value(slope: Any, bound: Any) -> float:
        given = [mpmath.sign(x) * FAR if math.isinf(x) else mpmath.mpf(x) for x in [at[one] for one in arguments]]
        forward = len(peer.arguments)
        return float(slope(*[max(min(one, bound), -bound) for one in given[:forward]], *given[forward:]))

    def limit(slope: Any) -> float:
        try:
            return value(slope, BOUNDED.get(peer.op["name"], FAR))
        except OverflowError:  # of an exponential, whose argument has too many digits
            return value(slope, mpmath.mpf(10) ** 6)

    arguments = peer.all_arguments
    with mpmath.workdps(900):
        return {key: [limit(slope) for slope in slopes.values()] for key, slopes in peer.slopes.items()}


class Special:
    """A point at which one number is special, beside an ordinary one that is the same but for that."""

    def __init__(self, calls: Calls, ordinary: At, key: str, symbol: Any, number: float) -> None:
        self.calls, self.key, self.symbol, self.number = calls, key, symbol, number
        self.ordinary, self.at = ordinary, {**ordinary, symbol: number}
        self.peer, self.dtype = calls.peer, calls.dtype
        self.name = self.peer.op["name"]

    def check(self, usual: Outputs) -> None:
        """`usual` is what comes of the ordinary point."""
        found = self.calls.outputs(self.at)
        instead = {**self.ordinary, self.symbol: -INF}  # of NaN, where that is as good as not selected
        wanted = expected(self.peer, instead if math.isnan(self.number) else self.at)
        for which, cells in self.peer.expressions.items():
            output, _ = which
            for index, expression in enumerate(cells.values()):
                own, other = found[output][index], usual[output][index]
                where = (self.name, self.peer.attributes, self.symbol, self.number, output, index, own)
                if self.symbol not in expression.free_symbols:
                    is_same = own.tobytes() == other.tobytes()
                    assert is_same or self.cancels_out(float(own), float(other)), ("changed", where, other)
                else:
                    limit = wanted[which][index]
                    assert self.allows(output, float(own), limit, float(other)), ("wrong", where, limit)

    def cancels_out(self, own: float, usual: float) -> bool:
        is_near = math.isclose(own, usual, rel_tol=SLACK[self.dtype])
        return (self.name, self.key) in CANCELS_OUT and (is_near or not math.isfinite(own))

    def is_passed_over(self) -> bool:
        return (self.name, self.key) in NAN_IS_NOT_SELECTED

    def allows(self, output: str, own: float, limit: float, usual: float) -> bool:
        """Of what depends on the number."""
        if math.isnan(self.number) and not self.is_passed_over():
            is_gradient = self.key.startswith("d")  # which a seam may multiply by nothing
            return math.isnan(own) or (is_gradient and own == usual == 0)
        is_right = own == limit or math.isclose(own, limit, rel_tol=SLACK[self.dtype], abs_tol=LITTLE[self.dtype])
        if is_right or math.isinf(self.number):  # as an infinity may, NaN comes out
            return is_right or math.isnan(own)
        overflows = abs(self.number) == np.finfo(self.dtype).max
        return overflows and (not math.isfinite(own) or (self.name, output) in VANISHES)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", OF_ROWS)
def test_one_special_element(name: str, dtype: Any) -> None:
    for peer in peers(name):
        calls = Calls(peer, dtype)
        ordinary = {key: float(dtype(one)) for key, one in peer.point(random.Random(31)).items()}
        usual = calls.outputs(ordinary)
        for (output, _), cells in expected(peer, ordinary).items():
            assert usual[output] == pytest.approx(cells, rel=SLACK[dtype], abs=LITTLE[dtype])
        gradients_given = {f"d{key}": array for key, array in peer.weights.items()}
        for key, array in {**peer.symbols_of, **gradients_given}.items():
            symbols = itertools.cycle(array.cells.values())
            for number, symbol in zip(specials(dtype), symbols, strict=False):
                Special(calls, ordinary, key, symbol, number).check(usual)


def test_the_internal_gradient_is_that_of_the_loss_and_a_bias() -> None:
    """Which is the gradient of no operator by its entry."""
    numbers = np.random.default_rng(31)
    for reduction, key, number in itertools.product(("mean", "sum"), ("dY", "log_prob", "weight", "bias"), SPECIAL):
        given: dict[str, Any] = {"dY": np.array(numbers.normal()), "weight": numbers.uniform(1, 2, 3)}
        given |= {"log_prob": -numbers.uniform(0.1, 3, (4, 3)), "bias": numbers.normal(size=(4, 3))}
        given[key].flat[-1] = number
        bias, label = given.pop("bias"), np.array([2, 0, 7, 1])
        usual = gradsmith.softmax_cross_entropy_loss_grad(label=label, **given, ignore_index=1, reduction=reduction).dX
        ignored = {"ignore_index": np.array(1), "reduction": reduction}
        found = gradsmith.softmax_cross_entropy_loss_internal_grad(label=label, **given, **ignored)
        assert np.array_equal(found.dX, usual, equal_nan=True)
        found = gradsmith.softmax_cross_entropy_loss_internal_grad(label=label, **given, **ignored, bias=bias)
        assert np.array_equal(found.dX, usual + bias, equal_nan=True)


# ----------------------------------------------------------------------------------------------------
# Formulas of one place


NUMBERS = (0.0, -0.0, -1.25, 2.5, 5e-324, 1.7976931348623157e308, -1.7976931348623157e308, INF, -INF, NAN)
ARRIVING = (1.25, 0.0, 5e-324, 1.7976931348623157e308, INF, NAN)


def points(op: Any) -> dict[str, Any]:
    """Every combination, by the names of a forward operator's inputs and `dY`."""
    of = {"bool": (False, True), "uint32": (False, True)}
    choices = {key: of.get(one["type"], NUMBERS) for key, one in op["inputs"].items()}
    columns = zip(*itertools.product(*choices.values(), ARRIVING), strict=True)
    return {key: np.array(column) for key, column in zip([*choices, "dY"], columns, strict=True)}


def given_to(op: Any, key: str, values: Any) -> Any:
    if op["inputs"][key]["type"] == "uint32":
        padded = np.pad(values, (0, -len(values) % 32)).reshape(-1, 32)
        return (padded.astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(1).astype(np.uint32)
    return values


def computed(op: Any, values: Mapping[str, Any], attributes: Mapping[str, Any]) -> Outputs:
    own = {key: one for key, one in attributes.items() if key in op.get("attributes", {})}
    made = function(op)(**{key: given_to(op, key, values[key]) for key in op["inputs"]}, **own)
    return {key: np.asarray(getattr(made, key)) for key in op["outputs"]}


@pytest.mark.parametrize("name", OF_PLACES)
def test_one_place(name: str) -> None:
    op, forward = OPS[name], OPS[OPS[name]["gradient_of"]]
    attributes = {key: float(np.float32(one)) for key, one in defaults(forward).items()}
    values = points(forward)
    values |= {"Y": computed(forward, values, attributes)["Y"]}
    found = computed(op, values, attributes)
    backwards = {key: one[::-1].copy() for key, one in values.items()}  # in other lanes of a vector
    for key, one in computed(op, backwards, attributes).items():
        assert one[::-1].tobytes() == found[key].tobytes()
    for index in range(len(values["dY"])):
        at = {key: one[index].item() for key, one in values.items()}
        wanted = evaluated(op, {**attributes, "pi": math.pi, **at}, IN_DOUBLE)
        for key, one in found.items():
            assert is_near(float(one[index]), float(wanted[key])), (at, key, one[index], wanted[key])


def is_near(own: float, other: float) -> bool:
    return (math.isnan(own) and math.isnan(other)) or math.isclose(own, other, rel_tol=1e-12, abs_tol=1e-300)


def test_every_gradient_is_looked_at() -> None:
    assert sorted([*OF_ROWS, *OF_PLACES]) == gradients()
    assert {name for name, _ in [*NAN_IS_NOT_SELECTED, *VANISHES, *CANCELS_OUT]} <= set(OF_ROWS)
