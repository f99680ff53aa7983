"""What formulas of one tensor give where they have seams, at 0, at infinities and of NaN.

The formulas are evaluated in double, attributes at their defaults, gradients that arrive being 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from .formula_tree import CONSTANTS, Apply, Kind, Name, Number, Tree, names, parts
from .model import AttributeValue, Op

_DIGITS = 6  # that are shown
_SAME_NAME = ("erf", "erfc", "tanh", "sin", "cos", "tan", "asin", "acos", "atan")


@dataclass(frozen=True)
class SpecialValues:
    """Numbers are texts, for JSON has no word for infinity."""

    input: str
    ones: list[str]  # the gradients that arrive
    points: list[dict[str, str]]  # by name, the input's value and those of the outputs


def of(op: Op) -> SpecialValues | None:
    """None of operators of several tensors, and of those whose formulas look at other places."""
    gradients = [tensor.name for tensor in op.read_inputs if tensor.gradient_of]
    varied = [tensor.name for tensor in op.read_inputs if not tensor.gradient_of]
    defaults = {attribute.name: attribute.default for attribute in op.attributes}
    if not op.formulas or len(varied) != 1 or op.masks or not all(map(_is_of_one_place, _trees(op))):
        return None
    read = _read(op, defaults)
    given = {name: float(value) for name, value in read.items() if isinstance(value, int | float)}
    if given.keys() != read.keys():
        return None
    values = {**CONSTANTS, **given, **dict.fromkeys(gradients, 1.0)}
    points = [_point(op, varied[0], x, values) for x in _places(op, varied[0], values)]
    return SpecialValues(varied[0], gradients, points)


def _trees(op: Op) -> Iterator[Tree]:
    return (formula.tree for formula in op.formulas)


def _is_of_one_place(tree: Tree) -> bool:
    return all(isinstance(part, Number | Name | Apply) for part in parts(tree))


def _read(op: Op, defaults: Mapping[str, AttributeValue | None]) -> dict[str, AttributeValue | None]:
    """Those attributes that formulas read."""
    read = {name.name for tree in _trees(op) for name in names(tree)}
    return {name: value for name, value in defaults.items() if name in read}


def _places(op: Op, varied: str, values: Mapping[str, float]) -> list[float]:
    """In order, NaN last."""
    seams = [seam for tree in _trees(op) for seam in _seams(tree, varied, values)]
    return [*sorted({-math.inf, 0.0, math.inf, *seams}), math.nan]


def _seams(tree: Tree, varied: str, values: Mapping[str, float]) -> Iterator[float]:
    """What the input is compared with."""
    for part in parts(tree):
        is_choice = isinstance(part, Apply) and part.function.name in ("min", "max")
        if isinstance(part, Apply) and (is_choice or _is_comparison(part)):
            for one, other in (part.arguments, part.arguments[::-1]):
                is_known = all(name.name in values for name in names(other))
                if isinstance(one, Name) and one.name == varied and is_known:
                    yield value(other, values)


def _is_comparison(tree: Apply) -> bool:
    kinds = (tree.function.parameters, tree.function.result)
    return kinds == ((Kind.NUMBER, Kind.NUMBER), Kind.TRUTH)


def _point(op: Op, varied: str, x: float, values: Mapping[str, float]) -> dict[str, str]:
    known = {**values, varied: x}
    for formula in op.formulas:
        known[formula.name] = value(formula.tree, known)
    outputs = [tensor.name for tensor in op.outputs]
    return {name: shown(known[name]) for name in (varied, *outputs)}


def shown(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return f"{number + 0.0:.{_DIGITS}g}"  # without the sign of zero


def notes(op: Op) -> list[str]:
    """Sentences on what formulas make of NaN and of zeros, by the functions that they have."""
    applied = [part for tree in _trees(op) for part in parts(tree) if isinstance(part, Apply)]
    used = {part.function.name for part in applied}
    found = ["A comparison with NaN does not hold."] if any(map(_is_comparison, applied)) else []
    if "where" in used:
        found.append("What `where` does not select does no harm, be it infinite or NaN.")
    if used & {"min", "max"}:
        found.append("`min` and `max` of NaN and a number are NaN.")
    if used & {"mul0", "div0"}:
        found.append("`mul0` and `div0` are 0 where their first argument is, whatever the second is.")
    if "pow" in used:
        found.append("`pow(a, 0)` and `pow(1, b)` are 1, of NaN too.")
    if op.formulas and not found:
        found.append("NaN comes out wherever it is read.")
    return found


# ----------------------------------------------------------------------------------------------------
# Values


def value(tree: Tree, known: Mapping[str, float]) -> float:
    """Of a formula of one place; truth is 1."""
    if isinstance(tree, Number):
        return tree.value
    if isinstance(tree, Name):
        return known[tree.name]
    if not isinstance(tree, Apply):
        raise NotImplementedError("a formula that looks at other places")
    return float(_WORDS[tree.function.name](*[value(one, known) for one in tree.arguments]))


def _checked(function: Callable[[float], float], overflow: float = math.inf) -> Callable[[float], float]:
    """NaN where the function has no value."""

    def checked(x: float) -> float:
        try:
            return function(x)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.copysign(overflow, x) if function is math.sinh else overflow

    return checked


def _quotient(a: float, b: float) -> float:
    if b == 0:
        return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)
    return a / b


def _log(x: float) -> float:
    return -math.inf if x == 0 else _checked(math.log)(x)


def _log1p(x: float) -> float:
    return -math.inf if x == -1 else _checked(math.log1p)(x)


def _power(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except ValueError:
        return math.inf if a == 0 else math.nan
    except OverflowError:
        return math.inf


def _sigmoid(x: float) -> float:
    power = math.exp(-abs(x))
    return (power if x < 0 else 1) / (1 + power)


def _softplus(x: float) -> float:
    rest = math.log1p(math.exp(-abs(x)))
    return x + rest if x > 0 else rest


def _smaller(a: float, b: float) -> float:
    return a if math.isnan(a) or a < b else b


def _larger(a: float, b: float) -> float:
    return a if math.isnan(a) or a > b else b


_WORDS: Mapping[str, Callable[..., float]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": _quotient,
    "negate": lambda a: -a,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "not": lambda a: not a,
    "where": lambda condition, a, b: a if condition else b,
    "min": _smaller,
    "max": _larger,
    "mul0": lambda a, b: a * b if a else 0,
    "div0": lambda a, b: _quotient(a, b) if a else 0,
    "pow": _power,
    "abs": abs,
    "sign": lambda x: math.copysign(1, x) if x and not math.isnan(x) else x,
    "exp": _checked(math.exp),
    "expm1": _checked(math.expm1),
    "log": _log,
    "log1p": _log1p,
    "sqrt": _checked(math.sqrt),
    "rsqrt": lambda x: _quotient(1, _checked(math.sqrt)(x)),
    "sigmoid": _sigmoid,
    "softplus": lambda x: math.nan if math.isnan(x) else _softplus(x),
    "sinh": _checked(math.sinh),
    "cosh": _checked(math.cosh),
    **{name: _checked(getattr(math, name)) for name in _SAME_NAME},
}
