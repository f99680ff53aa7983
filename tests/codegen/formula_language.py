"""The language of formulas, read by Python's parser, whose precedence theirs is, so that the generator's own is
tested too; its words in SymPy, and in double."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import sympy
import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
OPS = {op["name"]: op for op in yaml.safe_load((REPOSITORY / "ops.yaml").read_text())["ops"]}

COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}

Words = Mapping[str, Callable[..., Any]]  # what each operator and function is
Slope = tuple[str, str]  # an output, and an input whose gradient it is


def read(node: Any, names: Mapping[str, Any], words: Words) -> Any:
    """The value of an expression of Python's."""
    if isinstance(node, ast.Expression):
        return read(node.body, names, words)
    if isinstance(node, ast.Constant):
        return words["number"](node.value)
    if isinstance(node, ast.Name):
        return names[node.id] if node.id in names else words["number"](0)  # of what is absent
    if isinstance(node, ast.Subscript):
        return words["lookup"](read(node.value, names, words), read(node.slice, names, words))
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
        chosen = names.get(node.left.id) if isinstance(node.left, ast.Name) else None
        if isinstance(chosen, str):  # of an enum
            assert isinstance(right, ast.Name)
            return (chosen == right.id) == isinstance(operator, ast.Eq)
        return words[COMPARISONS[type(operator)]](read(node.left, names, words), read(right, names, words))
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    if node.func.id == "bit":  # of the one place at which formulas are looked at
        return read(node.args[0], names, words)
    if node.func.id == "where":
        condition = read(node.args[0], names, words)
        if isinstance(condition, bool):  # of an attribute: what it selects may have dims that the other lacks
            return read(node.args[1 if condition else 2], names, words)
    if node.func.id == "given":
        (asked,) = node.args
        assert isinstance(asked, ast.Name)
        return words["given"](asked.id in names)
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
SAME_NAME = (
    *("exp", "log", "erf", "erfc", "tanh", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh"),
    *("asinh", "acosh", "atanh", "atan2"),
)

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
    "cdf": lambda x: sympy.erfc(-x / sympy.sqrt(2)) / 2,
    "pdf": lambda x: sympy.exp(-x * x / 2) / sympy.sqrt(2 * sympy.pi),
    "sigmoid": lambda x: 1 / (1 + sympy.exp(-x)),
    "softplus": lambda x: sympy.log(1 + sympy.exp(x)),
    **{name: getattr(sympy, name) for name in SAME_NAME},
}


def quotient_in_double(a: float, b: float) -> float:
    if b:
        return a / b
    return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)


def power_in_double(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except ValueError:
        return (math.copysign(math.inf, a) if b % 2 == 1 else math.inf) if a == 0 else math.nan
    except OverflowError:
        return math.inf


def log_in_double(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf if x == 0 else math.nan


def stable_sigmoid(x: float) -> float:
    power = math.exp(-abs(x))
    return (power if x < 0 else 1) / (1 + power)


def as_in_c(function: Callable[..., float]) -> Callable[..., float]:
    """Without exceptions: NaN where there is no value, infinity where it is too large."""

    def called(*values: float) -> float:
        try:
            return function(*values)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.copysign(math.inf, *values) if function is math.sinh else math.inf

    return called


def quotient_of_root(x: float) -> float:
    return math.nan if x < 0 or math.isnan(x) else 1 / math.sqrt(x) if x else math.inf


def of_numbers(choose: Callable[[float, float], float]) -> Callable[[float, float], float]:
    """NaN where one of both is."""
    return lambda a, b: a + b if math.isnan(a) or math.isnan(b) else choose(a, b)


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
    "min": of_numbers(min),
    "max": of_numbers(max),
    "mul0": lambda a, b: a * b if a else 0.0,
    "div0": lambda a, b: quotient_in_double(a, b) if a else 0.0,
    "pow": power_in_double,
    "abs": abs,
    "sign": lambda x: x if math.isnan(x) else float((x > 0) - (x < 0)),
    "rsqrt": quotient_of_root,
    "cdf": lambda x: math.erfc(-x / math.sqrt(2)) / 2,
    "pdf": lambda x: math.exp(-x * x / 2) / math.sqrt(2 * math.pi),
    "sigmoid": stable_sigmoid,
    "softplus": lambda x: max(x, 0.0) + math.log1p(math.exp(-abs(x))),
    **{name: as_in_c(getattr(math, name)) for name in ("expm1", *SAME_NAME)},
    "log1p": lambda x: -math.inf if x == -1 else as_in_c(math.log1p)(x),
    "log": log_in_double,
}


def defaults(op: Any) -> dict[str, float]:
    """Of attributes, and others than the defaults, lest a formula that leaves one out is right all the same."""
    numbers = {name: one for name, one in op.get("attributes", {}).items() if one["type"] in ("int", "float")}
    with_defaults = {name: one for name, one in numbers.items() if "default" in one}
    values = {name: float(one["default"]) for name, one in with_defaults.items()}
    return {name: (-1.5 if value < 0 else 2.0) if math.isinf(value) else 0.75 * value for name, value in values.items()}


def has_rows(op: Any) -> bool:
    """Formulas reduce dims of its tensors, or tell places along them, so that it is no function of one place."""
    texts = [re.sub(r"bit\(\w+, \w+\)", "", str(text)) for text in op["formulas"].values()]
    words = {word for text in texts for word in re.findall(r"\w+", text)}
    tensors = (*op["inputs"].values(), *op["outputs"].values())
    single = {dim for tensor in tensors for dim in tensor.get("shape", ()) if str(dim).isidentifier()}
    dims = {*op["dims"], *single, *(name for dim in op["dims"].values() for name in dim.get("split", ()))}
    return "axis" in op.get("attributes", {}) or bool(words & (dims - op["inputs"].keys()))


def is_condition(text: str) -> bool:
    """What the formula gives is a truth value."""
    tree = ast.parse(text.strip(), mode="eval").body
    is_not = isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not)
    return is_not or isinstance(tree, ast.Compare | ast.BoolOp)


def gradients() -> list[str]:
    """Those that have formulas, as the operators of which they are the gradients have."""
    return sorted(
        name for name, op in OPS.items() if "formulas" in op and "formulas" in OPS.get(op.get("gradient_of"), {})
    )


def named(gradient_of: str | list[str]) -> list[str]:
    """The tensors that one is the gradient of."""
    return [gradient_of] if isinstance(gradient_of, str) else gradient_of


def negated(text: str) -> str:
    """A formula whose sign is changed; a sum over no dims that are named stays the whole of one."""
    tree = ast.parse(text.strip(), mode="eval").body
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id == "sum" and len(tree.args) == 1:
        return f"sum(-({ast.unparse(tree.args[0])}))"
    return f"-({text})"


def with_wrong_signs(text: str) -> list[str]:
    """The formula with its sign changed, with each of its sums made a difference, the other way round, and without each
    minus that is of one operand."""
    minus = [found.start(1) for found in re.finditer(r" (-) ", text)]
    signs = [found.start(1) for found in re.finditer(r"(?:^|[(,*/]|[<>=] ?| [-+]| and| or) ?(-)(?=[\w(])", text)]
    return [
        negated(text),
        *(f"{text[:at]}-{text[at + 1 :]}" for at, mark in enumerate(text) if mark == "+"),
        *(f"{text[:at]}+{text[at + 1 :]}" for at in minus),
        *(f"{text[:at]}{text[at + 1 :]}" for at in signs),
    ]
