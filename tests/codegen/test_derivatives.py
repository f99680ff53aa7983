"""The gradients that `ops.yaml` gives as formulas, against derivatives that SymPy makes of the forward formulas.

They are functions of one place; test_reduction_derivatives.py has the others.
"""

from __future__ import annotations

import ast
import functools
import itertools
import math
import random
import re
from collections.abc import Callable, Mapping
from typing import Any

import mpmath
import pytest
import sympy
from formula_language import (
    IN_DOUBLE,
    OPS,
    SYMBOLIC,
    Slope,
    defaults,
    evaluated,
    gradients,
    has_rows,
    named,
    read,
    with_wrong_signs,
)
from gradsmith_codegen import special_values
from gradsmith_codegen.formula_parser import parse
from gradsmith_codegen.formula_tree import FUNCTIONS, Kind

GRADIENTS = [name for name in gradients() if not has_rows(OPS[name])]

Point = Mapping[str, float]  # a value of each input


def is_same(a: float, b: float) -> bool:
    """But for rounding."""
    return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-12)


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
        self.function = sympy.lambdify(arguments, y, "mpmath")
        self.slopes = {
            (output, key): sympy.lambdify(arguments, sympy.diff(y, symbols[key]), "mpmath")
            for output, tensor in op["outputs"].items()
            for key in named(tensor["gradient_of"])
        }
        self.at_points = [(at, self.value(at), self.expected(at)) for at in points(forward)]

    def value(self, at: Point) -> float | None:
        """None where it is no real number."""
        with mpmath.workdps(400):
            value = self._real(self.function, at)
            return None if value is None else float(value)

    def expected(self, at: Point) -> dict[Slope, float | None]:
        """None where the forward operator, or its derivative, gives no real number."""
        with mpmath.workdps(400):
            if self._real(self.function, at) is None:
                return dict.fromkeys(self.slopes)
            found = {key: self._real(slope, at) for key, slope in self.slopes.items()}
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


OF_NUMBERS = [
    name for name, one in FUNCTIONS.items() if one.result is Kind.NUMBER and set(one.parameters) == {Kind.NUMBER}
]


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_a_function_is_the_same_to_each_reader(name: str) -> None:
    """To SymPy, which differentiates it, in double, and on the pages."""
    function = FUNCTIONS[name]
    compared = 0
    for values in itertools.product((-1.75, -0.5, 0.25, 0.75, 2.5), repeat=len(function.parameters)):
        exact = sympy.sympify(SYMBOLIC[name](*map(sympy.Rational, values))).evalf(30)
        if not exact.is_real or not exact.is_finite:
            continue
        letters = ("a", "b")[: len(values)]
        tree = parse(f"{name}({', '.join(letters)})", ())
        found = special_values.value(tree, dict(zip(letters, values, strict=True)))
        assert found == pytest.approx(float(exact), rel=1e-12)
        assert IN_DOUBLE[name](*values) == pytest.approx(float(exact), rel=1e-12)
        compared += 1
    assert compared >= 1


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient_is_the_derivative(name: str) -> None:
    compared = dict.fromkeys(derivatives(name).slopes, 0)
    # What is saved of the forward operator is rounded: where it nears a bound, the rest has few digits left.
    slack = 1e-15 if "Y" in OPS[name]["inputs"] else 1e-300
    for at, y, expected in derivatives(name).at_points:
        wanted = {
            slope: value for slope, value in expected.items() if value is not None and not 0 < abs(value) < 1e-290
        }
        found = computed(name, at, y) if wanted else {}
        for slope, value in wanted.items():
            compared[slope] += 1
            assert math.isclose(found[slope[0]], value, rel_tol=1e-11, abs_tol=slack), (slope, at, value)
    assert min(compared.values()) >= 20


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient_at_a_seam_is_that_of_a_side_or_between(name: str) -> None:
    peer = derivatives(name)
    seams = sorted({0.0, 3.0, -3.0, *peer.attributes.values()})
    for values in itertools.product(seams, repeat=len(peer.inputs)):
        seam = dict(zip(peer.inputs, values, strict=True))
        at_seam = peer.expected(seam)
        for output, key in peer.slopes:
            sides = [peer.expected({**seam, key: seam[key] + step})[output, key] for step in (-1e-9, 1e-9)]
            if None in sides or at_seam[output, key] is None:
                continue
            found = computed(name, seam, peer.value(seam))[output]
            low, high = sorted(side for side in sides if side is not None)
            assert low - 1e-6 <= found <= high + 1e-6, (output, seam, found, sides)


def at_seams() -> list[tuple[str, int]]:
    """The seams that entries of functions of one place have, by their numbers."""
    names = [name for name, op in OPS.items() if "seams" in op and not has_rows(op)]
    return [(name, number) for name in names for number in range(len(OPS[name]["seams"]))]


def said(texts: Mapping[str, Any], names: Mapping[str, float]) -> dict[str, float]:
    return {name: read(ast.parse(str(text), mode="eval"), names, IN_DOUBLE) for name, text in texts.items()}


@pytest.mark.parametrize(("name", "number"), at_seams())
def test_gradient_at_a_seam_is_what_the_entry_says(name: str, number: int) -> None:
    op, seam = OPS[name], OPS[name]["seams"][number]
    numbers = {key: 1.25 + 0.25 * place for place, key in enumerate(op["inputs"])}
    known = {**defaults(op), "nan": math.nan, "inf": math.inf, "pi": math.pi, **numbers}
    known |= said(seam["at"], known)
    gives = said(seam["gives"], known)
    found = evaluated(op, known, IN_DOUBLE)
    for output, value in gives.items():
        assert is_same(found[output], value), (output, found[output], value)


ONE_WHERE_THEY_MEET = "what both sides give is one where they meet, and NaN passes"
CHOSEN = "the mask, the condition or the flag chooses, and no number is compared"
# Operators whose formulas choose, or have corners, and need no seams all the same.
WITHOUT_SEAM = {
    **dict.fromkeys(("Abs", "BiasRelu", "Celu", "Clip", "Elu", "HardSigmoid", "HardSwish"), ONE_WHERE_THEY_MEET),
    **dict.fromkeys(("LeakyRelu", "Mish", "PRelu", "ReGlu", "ReduceL1", "Relu", "Selu"), ONE_WHERE_THEY_MEET),
    "AtanGrad": "two forms of one function",
    **dict.fromkeys(("Softsign", "SoftsignGrad"), "the slopes of both sides of 0 are the same"),
    **dict.fromkeys(("Dropout", "DropoutGrad", "BitmaskDropout", "BitmaskDropoutGrad"), CHOSEN),
    **dict.fromkeys(("Where", "WhereGrad", "InPlaceAccumulatorV2"), CHOSEN),
    **dict.fromkeys(("Softmax", "LogSoftmax"), "the largest of a row is subtracted of all, which changes no result"),
    "ReduceLogSumExp": "the largest of a row, or 0 for an infinite one, is subtracted, which changes no result",
}
SEAMS_AT_INFINITY = {"GluGrad"}  # of formulas that do not bend
BENDS = re.compile(r"\b(?:where|min|max|abs|sign|mul0|div0|pow)\(")
OF_FORMULAS = [name for name, op in OPS.items() if "formulas" in op]


@pytest.mark.parametrize("name", OF_FORMULAS)
def test_what_bends_has_seams(name: str) -> None:
    """Where a formula compares, or has a corner, its entry says what it gives there: of forwards, of what has rows, and
    of gradients, which bend also where their forward operators do."""
    forward = OPS[OPS[name]["gradient_of"]]["formulas"].values() if name in GRADIENTS else ()
    texts = " ".join(str(text) for text in (*forward, *OPS[name]["formulas"].values()))
    needed = bool(BENDS.search(texts)) or name in SEAMS_AT_INFINITY
    assert not needed or ("seams" in OPS[name]) != (name in WITHOUT_SEAM)


def test_exceptions_are_operators_that_bend() -> None:
    bent = {name for name in OF_FORMULAS if BENDS.search(" ".join(map(str, OPS[name]["formulas"].values())))}
    assert set(WITHOUT_SEAM) <= bent
    assert not [name for name in WITHOUT_SEAM if "seams" in OPS[name]]


OF_SIDES = [name for name, why in WITHOUT_SEAM.items() if why == ONE_WHERE_THEY_MEET and not has_rows(OPS[name])]


@pytest.mark.parametrize("name", OF_SIDES)
def test_what_has_no_seams_is_one_where_sides_meet(name: str) -> None:
    op = OPS[name]
    known = {**defaults(op), "pi": math.pi}
    for values in itertools.product({0.0, 3.0, -3.0, 22.0, *defaults(op).values()}, repeat=len(op["inputs"])):
        at = dict(zip(op["inputs"], values, strict=True))
        for key in op["inputs"]:
            sides = [evaluated(op, {**known, **at, key: at[key] + step}, IN_DOUBLE)["Y"] for step in (-1e-9, 0, 1e-9)]
            assert max(sides) - min(sides) < 1e-7, (at, key)
    assert math.isnan(evaluated(op, {**known, **dict.fromkeys(op["inputs"], math.nan)}, IN_DOUBLE)["Y"])


@pytest.mark.parametrize("name", GRADIENTS)
def test_a_wrong_sign_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    op = OPS[name]
    for key, text in op["formulas"].items():
        for wrong in with_wrong_signs(str(text)):
            formulas = {**op["formulas"], key: wrong}
            monkeypatch.setitem(OPS, name, {**op, "formulas": formulas})
            with pytest.raises((AssertionError, ValueError, OverflowError)):
                test_gradient_is_the_derivative(name)
