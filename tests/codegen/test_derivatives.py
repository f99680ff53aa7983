"""The gradients that `ops.yaml` gives as formulas, against derivatives that SymPy makes of the forward formulas.

They are functions of one place; test_reduction_derivatives.py has the others.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections.abc import Callable, Mapping
from typing import Any

import mpmath
import pytest
import sympy
from formula_language import IN_DOUBLE, OPS, SYMBOLIC, defaults, evaluated, gradients, has_rows, with_wrong_signs
from gradsmith_codegen.formula_tree import FUNCTIONS

GRADIENTS = [name for name in gradients() if not has_rows(OPS[name])]

Point = Mapping[str, float]  # a value of each input


def is_mask(op: Any, name: str) -> bool:
    """It has truth values, or bits."""
    return op["inputs"][name]["type"] in ("bool", "uint32")


def points(forward: Any) -> list[Point]:
    """Small and large ones, and some where many formulas bend; 0 and 1 for truth values."""
    inputs = list(forward["inputs"])
    numbers = random.Random(29)

    def spread() -> list[float]:
        drawn = [numbers.uniform(-largest, largest) for largest in (6, 1) for _ in range(40)]
        return [*drawn, *(sign * size for size in (1e-6, 1e-3, 0.75, 9.5, 20.5, 30.5) for sign in (-1, 1))]

    columns = [spread()]
    for _ in inputs[1:]:
        columns.append(spread())
        numbers.shuffle(columns[-1])
    for index, name in enumerate(inputs):
        if is_mask(forward, name):
            columns[index] = [float(value > 0) for value in columns[index]]
    return [dict(zip(inputs, values, strict=True)) for values in zip(*columns, strict=True)]


GRADIENT = 1.25  # dY


class Derivatives:
    """Of an operator's one output with respect to its inputs, times dY."""

    def __init__(self, name: str) -> None:
        """`name` is that of the gradient operator."""
        op = OPS[name]
        forward = OPS[op["gradient_of"]]
        self.inputs = list(forward["inputs"])
        self.attributes = defaults(op)
        symbols = {key: sympy.Symbol(key, real=True) for key in self.inputs}
        exact = {key: sympy.Rational(value) for key, value in self.attributes.items()} | {"pi": sympy.pi}
        given = {key: sympy.Ne(one, 0) if is_mask(forward, key) else one for key, one in symbols.items()}
        y = evaluated(forward, {**exact, **given}, SYMBOLIC)["Y"]
        arguments = [symbols[key] for key in self.inputs]
        self._value = sympy.lambdify(arguments, y, "mpmath")
        self._slopes = {
            output: sympy.lambdify(arguments, sympy.diff(y, symbols[tensor["gradient_of"]]), "mpmath")
            for output, tensor in op["outputs"].items()
        }
        self.at_points = [(at, self.value(at), self.expected(at)) for at in points(forward)]

    def value(self, at: Point) -> float | None:
        """None where it is no real number."""
        with mpmath.workdps(400):
            value = self._real(self._value, at)
            return None if value is None else float(value)

    def expected(self, at: Point) -> dict[str, float | None]:
        """By output. None where the forward operator, or its derivative, gives no real number."""
        with mpmath.workdps(400):
            if self._real(self._value, at) is None:
                return dict.fromkeys(self._slopes)
            found = {output: self._real(slope, at) for output, slope in self._slopes.items()}
            return {key: None if slope is None else float(slope * GRADIENT) for key, slope in found.items()}

    def _real(self, function: Callable[..., Any], at: Point) -> Any:
        try:
            value = function(*[mpmath.mpf(at[key]) for key in self.inputs])
        except ZeroDivisionError:
            return None
        return None if isinstance(value, mpmath.mpc) or not mpmath.isfinite(value) else value


derivatives = functools.cache(Derivatives)  # by the gradient operator's name


def computed(name: str, at: Point, y: float | None) -> dict[str, float]:
    """What the gradient's formulas give; `y` is what the forward operator gave."""
    op = OPS[name]
    given = {**derivatives(name).attributes, "pi": math.pi, "dY": GRADIENT, **at, "Y": y}
    found = evaluated(op, given, IN_DOUBLE)
    return {output: float(found[output]) for output in op["outputs"]}


def test_the_language_is_covered() -> None:
    assert len(GRADIENTS) >= 35
    for words in (SYMBOLIC, IN_DOUBLE):
        assert set(FUNCTIONS) <= set(words)


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient_is_the_derivative(name: str) -> None:
    compared = dict.fromkeys(OPS[name]["outputs"], 0)
    # What is saved of the forward operator is rounded: where it nears a bound, the rest has few digits left.
    slack = 1e-15 if "Y" in OPS[name]["inputs"] else 1e-300
    for at, y, expected in derivatives(name).at_points:
        wanted = {
            output: value for output, value in expected.items() if value is not None and not 0 < abs(value) < 1e-290
        }
        found = computed(name, at, y) if wanted else {}
        for output, value in wanted.items():
            compared[output] += 1
            assert math.isclose(found[output], value, rel_tol=1e-11, abs_tol=slack), (output, at, value)
    assert min(compared.values()) >= 20


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient_at_a_seam_is_that_of_a_side_or_between(name: str) -> None:
    peer = derivatives(name)
    seams = sorted({0.0, 3.0, -3.0, *peer.attributes.values()})
    for values in itertools.product(seams, repeat=len(peer.inputs)):
        seam = dict(zip(peer.inputs, values, strict=True))
        at_seam = peer.expected(seam)
        for output, tensor in OPS[name]["outputs"].items():
            key = tensor["gradient_of"]
            sides = [peer.expected({**seam, key: seam[key] + step})[output] for step in (-1e-9, 1e-9)]
            if None in sides or at_seam[output] is None:
                continue
            found = computed(name, seam, peer.value(seam))[output]
            low, high = sorted(side for side in sides if side is not None)
            assert low - 1e-6 <= found <= high + 1e-6, (output, seam, found, sides)


# What the docs say of where forwards bend or end, for dY = 1.25. Of two sides it is one, or neither.
AT_SEAMS = {
    ("ReluGrad", 0.0): 0.0,
    ("LeakyReluGrad", 0.0): 1.25 * 0.0075,
    ("EluGrad", 0.0): 1.25 * 0.75,
    ("CeluGrad", 0.0): 1.25,
    ("SeluGrad", 0.0): 1.25 * 0.75 * 0.75 * 1.67326319217681884765625 * 1.05070102214813232421875,
    ("ThresholdedReluGrad", 0.75): 0.0,
    ("ClipGrad", 2.0): 1.25,
    ("ClipGrad", -1.5): 1.25,
    ("HardSwishGrad", 3.0): 1.25,
    ("HardSwishGrad", -3.0): 0.0,
    ("AbsGrad", 0.0): 0.0,
}


@pytest.mark.parametrize(("name", "x"), AT_SEAMS)
def test_gradient_at_a_seam_is_what_is_said(name: str, x: float) -> None:
    assert math.isclose(computed(name, {"X": x}, None)["dX"], AT_SEAMS[name, x], rel_tol=1e-12)


@pytest.mark.parametrize(
    ("name", "a", "b", "da", "db"),
    [
        ("MaxGrad", 2.0, 2.0, 0.625, 0.625),
        ("MinGrad", 2.0, 2.0, 0.625, 0.625),
        ("MaxGrad", math.nan, 2.0, 1.25, 1.25),
        ("DivGrad", 3.0, 0.0, math.inf, -math.inf),
        ("PowGrad", 0.0, 0.0, 0.0, 0.0),
        ("PowGrad", 0.0, 1.0, 1.25, 0.0),
        ("PowGrad", 0.0, 3.0, 0.0, 0.0),
        ("PowGrad", 0.0, -1.0, -math.inf, -math.inf),
        ("PowGrad", -2.0, 3.0, 15.0, math.nan),
        ("PowGrad", math.inf, -1.0, 0.0, 0.0),
    ],
)
def test_gradients_of_two_are_what_is_said(name: str, a: float, b: float, da: float, db: float) -> None:
    found = evaluated(OPS[name], {"dY": 1.25, "A": a, "B": b}, IN_DOUBLE)
    assert [found["dA"], found["dB"]] == pytest.approx([da, db], rel=1e-12, nan_ok=True)


@pytest.mark.parametrize(
    ("name", "a", "b"), [("DivGrad", 3, 0), ("DivGrad", 0, 0), ("PowGrad", 0, -2), ("PowGrad", -1, 0.5)]
)
def test_nothing_comes_of_nothing(name: str, a: float, b: float) -> None:
    found = evaluated(OPS[name], {"dY": 0.0, "A": a, "B": b}, IN_DOUBLE)
    assert [found["dA"], found["dB"]] == [0, 0]


@pytest.mark.parametrize("name", ["HardSigmoidGrad", "SqrtGrad", "LogGrad", "ReciprocalGrad"])
def test_nothing_times_what_is_not_finite_is_nothing(name: str) -> None:
    op, attributes = OPS[name], defaults(OPS[name])
    given = {**attributes, "dY": 0.0, "X": 0.0, "Y": math.inf if name == "ReciprocalGrad" else 0.0}
    assert evaluated(op, given, IN_DOUBLE)["dX"] == 0


def test_extremes_are_no_nan() -> None:
    """Of what is finite, as far as doubles go; floats have the same forms."""
    for name in ("FastGeluGrad", "QuickGeluGrad", "SwishGrad", "GeluGrad", "MishGrad", "AtanGrad", "ErfGrad"):
        op = OPS[name]
        for x in (1e13, 1e20, 1e100):
            for sign in (-1, 1):
                given = {**defaults(op), "pi": math.pi, "dY": 1.0, "X": sign * x}
                found = evaluated(op, given, IN_DOUBLE)["dX"]
                to = 0.0 if name in ("AtanGrad", "ErfGrad") or sign < 0 else 1.0
                assert abs(found - to) < 1e-9, (name, sign * x, found)


@pytest.mark.parametrize("name", GRADIENTS)
def test_a_wrong_sign_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    op = OPS[name]
    for key, text in op["formulas"].items():
        for wrong in with_wrong_signs(str(text)):
            formulas = {**op["formulas"], key: wrong}
            monkeypatch.setitem(OPS, name, {**op, "formulas": formulas})
            with pytest.raises((AssertionError, ValueError, OverflowError)):
                test_gradient_is_the_derivative(name)
