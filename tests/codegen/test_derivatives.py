"""The gradients that `ops.yaml` gives as formulas, against derivatives that SymPy makes of the forward formulas.

Formulas are read here by Python's parser, whose precedence theirs is, so that the generator's own is tested too.
"""

from __future__ import annotations

import ast
import functools
import itertools
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import mpmath
import pytest
import sympy
import yaml
from gradsmith_codegen.formula_tree import FUNCTIONS

REPOSITORY = Path(__file__).resolve().parents[2]
OPS = {op["name"]: op for op in yaml.safe_load((REPOSITORY / "ops.yaml").read_text())["ops"]}
GRADIENTS = sorted(
    name
    for name, op in OPS.items()
    if "formulas" in op
    and "formulas" in OPS.get(op.get("gradient_of"), {})
    and "axis" not in op.get("attributes", {})  # of one place; reductions are compared with differences
)

COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}

Words = Mapping[str, Callable[..., Any]]  # what each operator and function is
Point = Mapping[str, float]  # a value of each input


def read(node: Any, names: Mapping[str, Any], words: Words) -> Any:
    """The value of an expression of Python's."""
    if isinstance(node, ast.Expression):
        return read(node.body, names, words)
    if isinstance(node, ast.Constant):
        return words["number"](node.value)
    if isinstance(node, ast.Name):
        return names[node.id]
    if isinstance(node, ast.BinOp):
        word = ARITHMETIC[type(node.op)]
        return words[word](read(node.left, names, words), read(node.right, names, words))
    if isinstance(node, ast.UnaryOp):
        return words["not" if isinstance(node.op, ast.Not) else "negate"](read(node.operand, names, words))
    if isinstance(node, ast.BoolOp):
        word = "and" if isinstance(node.op, ast.And) else "or"
        return words[word](*[read(value, names, words) for value in node.values])
    if isinstance(node, ast.Compare):
        (operator,), (right,) = node.ops, node.comparators
        return words[COMPARISONS[type(operator)]](read(node.left, names, words), read(right, names, words))
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    return words[node.func.id](*[read(argument, names, words) for argument in node.args])


def evaluated(op: Any, names: Mapping[str, Any], words: Words) -> dict[str, Any]:
    """The values of an operator's formulas."""
    known = dict(names)
    for name, text in op["formulas"].items():
        known[name] = read(ast.parse(str(text).strip(), mode="eval"), known, words)
    return {name: known[name] for name in op["formulas"]}


ARITHMETIC_WORDS: Words = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "negate": lambda a: -a,
    "sum": lambda a: a,  # of one place, which is all that a derivative looks at
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
# What Python's math and SymPy call as formulas do.
SAME_NAME = ("exp", "log", "erf", "erfc", "tanh", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh")

SYMBOLIC: Words = {
    **ARITHMETIC_WORDS,
    "number": lambda value: sympy.Rational(str(value)),
    "/": lambda a, b: a / b,
    "==": sympy.Eq,
    "!=": sympy.Ne,
    "and": sympy.And,
    "or": sympy.Or,
    "not": sympy.Not,
    "where": lambda c, a, b: sympy.Piecewise((a, c), (b, True)),
    "min": lambda a, b: sympy.Piecewise((a, a < b), (b, True)),
    "max": lambda a, b: sympy.Piecewise((a, a > b), (b, True)),
    "mul0": lambda a, b: a * b,
    "div0": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
    "abs": sympy.Abs,
    "sign": sympy.sign,
    "expm1": lambda x: sympy.exp(x) - 1,
    "log1p": lambda x: sympy.log(1 + x),
    "rsqrt": lambda x: 1 / sympy.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + sympy.exp(-x)),
    "softplus": lambda x: sympy.log(1 + sympy.exp(x)),
    **{name: getattr(sympy, name) for name in SAME_NAME},
}


def quotient_in_double(a: float, b: float) -> float:
    return a / b if b else math.copysign(math.inf, a) if a else math.nan


def power_in_double(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except ValueError:
        return math.inf if a == 0 else math.nan


def log_in_double(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf if x == 0 else math.nan


def stable_sigmoid(x: float) -> float:
    power = math.exp(-abs(x))
    return (power if x < 0 else 1) / (1 + power)


IN_DOUBLE: Words = {
    **ARITHMETIC_WORDS,
    "number": float,
    "/": quotient_in_double,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "and": lambda *all_of: all(all_of),
    "or": lambda *any_of: any(any_of),
    "not": lambda a: not a,
    "where": lambda c, a, b: a if c else b,
    "min": min,
    "max": max,
    "mul0": lambda a, b: a * b if a else 0.0,
    "div0": lambda a, b: quotient_in_double(a, b) if a else 0.0,
    "pow": power_in_double,
    "abs": abs,
    "sign": lambda x: float((x > 0) - (x < 0)),
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "sigmoid": stable_sigmoid,
    "softplus": lambda x: max(x, 0) + math.log1p(math.exp(-abs(x))),
    **{name: getattr(math, name) for name in ("expm1", "log1p", *SAME_NAME)},
    "log": log_in_double,
}


def defaults(op: Any) -> dict[str, float]:
    """Of attributes, and others than the defaults, lest a formula that leaves one out is right all the same."""
    values = {name: float(one["default"]) for name, one in op.get("attributes", {}).items()}
    return {name: (-1.5 if value < 0 else 2.0) if math.isinf(value) else 0.75 * value for name, value in values.items()}


def points(inputs: Sequence[str]) -> list[Point]:
    """Small and large ones, and some where many formulas bend."""
    numbers = random.Random(29)

    def spread() -> list[float]:
        drawn = [numbers.uniform(-6, 6) for _ in range(40)]
        return [*drawn, *(sign * size for size in (1e-6, 1e-3, 0.75, 9.5, 20.5, 30.5) for sign in (-1, 1))]

    columns = [spread()]
    for _ in inputs[1:]:
        columns.append(spread())
        numbers.shuffle(columns[-1])
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
        y = evaluated(forward, {**exact, **symbols}, SYMBOLIC)["Y"]
        arguments = [symbols[key] for key in self.inputs]
        self._value = sympy.lambdify(arguments, y, "mpmath")
        self._slopes = {
            output: sympy.lambdify(arguments, sympy.diff(y, symbols[tensor["gradient_of"]]), "mpmath")
            for output, tensor in op["outputs"].items()
        }
        self.at_points = [(at, self.value(at), self.expected(at)) for at in points(self.inputs)]

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


def with_wrong_signs(text: str) -> list[str]:
    """The formula with its sign changed, with each of its sums made a difference, and the other way round."""
    minus = [found.start(1) for found in re.finditer(r" (-) ", text)]
    return [
        f"-({text})",
        *(f"{text[:at]}-{text[at + 1 :]}" for at, mark in enumerate(text) if mark == "+"),
        *(f"{text[:at]}+{text[at + 1 :]}" for at in minus),
    ]


@pytest.mark.parametrize("name", GRADIENTS)
def test_a_wrong_sign_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    op = OPS[name]
    for key, text in op["formulas"].items():
        for wrong in with_wrong_signs(str(text)):
            formulas = {**op["formulas"], key: wrong}
            monkeypatch.setitem(OPS, name, {**op, "formulas": formulas})
            with pytest.raises((AssertionError, ValueError)):
                test_gradient_is_the_derivative(name)
