"""What formulas of one tensor give where they have seams, at 0, at infinities and of NaN, and what those of
two give of pairs of such numbers.

The formulas are evaluated in double, attributes at their defaults, gradients that arrive being 1, and sums of
one term.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from .formula_tree import CONSTANTS, Apply, Bit, Kind, Name, Number, Reduce, Tree, names, parts
from .model import AttributeValue, Formula, Op, Tensor

_DIGITS = 6  # that are shown
_MOST = 2  # tensors whose numbers are varied
_INF, _NAN = math.inf, math.nan
# Ties, and where products, quotients and powers have no value of their own.
_PAIRS = [(0.0, 0.0), (1.0, 1.0), (1.0, 0.0), (0.0, _INF), (_INF, 0.0), (_INF, _INF), (_INF, -_INF),
          (_NAN, 1.0), (1.0, _NAN)]  # fmt: skip
_SAME_NAME = ("erf", "erfc", "tanh", "sin", "cos", "tan", "asin", "acos", "atan", "asinh", "acosh")


@dataclass(frozen=True)
class SpecialValues:
    """Numbers are texts, for JSON has no word for infinity."""

    inputs: list[str]  # one or two
    ones: list[str]  # the gradients that arrive
    points: list[dict[str, str]]  # by name, the inputs' values and those of the outputs


def of(op: Op) -> SpecialValues | None:
    """None of operators of more tensors, and of those whose formulas look at other places. A mask or bits are
    varied as well."""
    gradients = [tensor.name for tensor in op.read_inputs if tensor.gradient_of]
    truths = [tensor.name for tensor in op.read_inputs if _is_truth(op, tensor)]
    numbers = [one.name for one in op.read_inputs if not one.gradient_of and one.name not in truths]
    if not numbers:  # what comes of the gradient alone is asked
        numbers, gradients = gradients, []
    defaults = {attribute.name: attribute.default for attribute in op.attributes}
    is_map = bool(op.formulas) and all(_is_of_one_place(op, formula) for formula in op.formulas)
    if not is_map or not 1 <= len(numbers) <= _MOST or len(truths) > 1:
        return None
    read = _read(op, defaults)
    given = {name: float(value) for name, value in read.items() if isinstance(value, int | float)}
    if given.keys() != read.keys():
        return None
    values = {**CONSTANTS, **given, **dict.fromkeys(gradients, 1.0)}
    places = [(x,) for x in _places(op, numbers[0], values)] if len(numbers) == 1 else _PAIRS
    varied = [
        {**dict(zip(truths, chosen, strict=True)), **dict(zip(numbers, place, strict=True))}
        for chosen in itertools.product((1.0, 0.0), repeat=len(truths))
        for place in places
    ]
    return SpecialValues([*truths, *numbers], gradients, [_point(op, one, values) for one in varied])


def _is_truth(op: Op, tensor: Tensor) -> bool:
    return tensor.is_mask or tensor in op.bits


def _trees(op: Op) -> Iterator[Tree]:
    return (formula.tree for formula in op.formulas)


def _is_of_one_place(op: Op, formula: Formula) -> bool:
    """A sum that an output is as a whole is, of one term, that term."""
    tree = formula.tree
    if isinstance(tree, Reduce) and tree.operation == "sum":
        if formula.name not in {tensor.name for tensor in op.outputs}:
            return False
        tree = tree.argument
    return all(isinstance(part, Number | Name | Apply | Bit) for part in parts(tree))


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


def _point(op: Op, varied: Mapping[str, float], values: Mapping[str, float]) -> dict[str, str]:
    known = {**values, **varied}
    for formula in op.formulas:
        known[formula.name] = value(formula.tree, known)
    truths = {tensor.name for tensor in (*op.inputs, *op.outputs) if _is_truth(op, tensor)}
    outputs = [tensor.name for tensor in op.outputs]
    return {
        name: ("true" if known[name] else "false") if name in truths else shown(known[name])
        for name in (*varied, *outputs)
    }


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
    passes_over = any(_is_maximum(part) for tree in _trees(op) for part in parts(tree))
    if op.formulas and not found:
        found.append(f"NaN comes out wherever {'else ' if passes_over else ''}it is read.")
    if passes_over:
        told = "`max` and `min` over dims pass over NaN; of NaN alone they are -infinity and infinity."
        found.insert(0, told)
    return found


def _is_maximum(tree: Tree) -> bool:
    """Over dims; a minimum is one of what is negated."""
    return isinstance(tree, Reduce) and tree.operation == "max"


# ----------------------------------------------------------------------------------------------------
# Values


def value(tree: Tree, known: Mapping[str, float]) -> float:
    """Of a formula of one place; truth is 1."""
    if isinstance(tree, Number):
        return tree.value
    if isinstance(tree, Name):
        return known[tree.name]
    if isinstance(tree, Bit):
        return known[tree.words.name]
    if isinstance(tree, Reduce):
        return value(tree.argument, known)
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


def _atanh(x: float) -> float:
    return math.copysign(math.inf, x) if abs(x) == 1 else _checked(math.atanh)(x)


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
    "atan2": math.atan2,
    "abs": abs,
    "sign": lambda x: math.copysign(1, x) if x and not math.isnan(x) else x,
    "exp": _checked(math.exp),
    "expm1": _checked(math.expm1),
    "log": _log,
    "log1p": _log1p,
    "sqrt": _checked(math.sqrt),
    "rsqrt": lambda x: _quotient(1, _checked(math.sqrt)(x)),
    "sigmoid": _sigmoid,
    "cdf": lambda x: math.erfc(-x * math.sqrt(0.5)) / 2,
    "pdf": lambda x: math.exp(-x * x / 2) / math.sqrt(2 * math.pi),
    "softplus": lambda x: math.nan if math.isnan(x) else _softplus(x),
    "sinh": _checked(math.sinh),
    "cosh": _checked(math.cosh),
    "atanh": _atanh,
    **{name: _checked(getattr(math, name)) for name in _SAME_NAME},
}
