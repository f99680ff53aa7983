"""Expressions of `formulas` as trees, and the functions that they are made of.

A tree is the one source of what is generated from a formula: C++ for kernels and data for the tests' oracle.
It knows where in the formula's text each part stands, and nothing of YAML.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum


class Kind(Enum):
    """What an expression gives."""

    NUMBER = "a number"
    TRUTH = "a truth value"


class Precedence(IntEnum):
    """How tightly operators bind, in C++ as in formulas."""

    SELECTION = 0
    OR = 1
    AND = 2
    COMPARISON = 3
    SUM = 4
    PRODUCT = 5
    SIGN = 6
    CALL = 7


@dataclass(frozen=True, slots=True)
class Function:
    """An operator or a function of the language."""

    name: str  # of operators, what the tests' oracle calls it
    parameters: tuple[Kind, ...]
    result: Kind
    cpp: str  # with `{0}` where the first argument stands
    precedence: Precedence = Precedence.CALL
    is_of_math: bool = False  # in C++ a function of a struct, which may approximate it


_NUMBER, _TRUTH = Kind.NUMBER, Kind.TRUTH


def _operators() -> Iterator[tuple[str, Function]]:
    """By how they are written; `-x` is written `- `."""
    for mark, name, precedence in (
        ("+", "add", Precedence.SUM),
        ("-", "subtract", Precedence.SUM),
        ("*", "multiply", Precedence.PRODUCT),
    ):
        yield mark, Function(name, (_NUMBER, _NUMBER), _NUMBER, f"{{0}} {mark} {{1}}", precedence)
    yield (
        "/",
        Function("divide", (_NUMBER, _NUMBER), _NUMBER, "Quotient({0}, {1})", Precedence.PRODUCT, True),
    )
    for mark, name in (
        ("<", "less"),
        ("<=", "less_equal"),
        (">", "greater"),
        (">=", "greater_equal"),
        ("==", "equal"),
        ("!=", "not_equal"),
    ):
        cpp = f"{{0}} {mark} {{1}}"
        yield mark, Function(name, (_NUMBER, _NUMBER), _TRUTH, cpp, Precedence.COMPARISON)
    yield "and", Function("and", (_TRUTH, _TRUTH), _TRUTH, "{0} && {1}", Precedence.AND)
    yield "or", Function("or", (_TRUTH, _TRUTH), _TRUTH, "{0} || {1}", Precedence.OR)
    yield "not", Function("not", (_TRUTH,), _TRUTH, "!{0}", Precedence.SIGN)
    yield "- ", Function("negate", (_NUMBER,), _NUMBER, "-{0}", Precedence.SIGN)


OPERATORS: Mapping[str, Function] = dict(_operators())

# What is called by its name. In C++ each is a function of runtime/patterns/formula_math.h. Those of its
# struct Precise have others in their place where results are rounded to 16 bits (fast_math.cuh).
_UNARY = (
    "exp", "expm1", "log", "log1p", "erf", "erfc", "cdf", "pdf", "tanh", "sigmoid", "softplus", "sqrt",
    "rsqrt", "abs", "sign", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh",
    "atanh",
)  # fmt: skip
_BINARY = ("pow", "atan2", "min", "max", "mul0", "div0")
_OF_MATH = frozenset(("exp", "erfc", "cdf", "pdf", "tanh", "sigmoid", "div0"))


def _functions() -> Iterator[Function]:
    for name in _UNARY:
        yield _called(name, (_NUMBER,), "({0})")
    for name in _BINARY:
        yield _called(name, (_NUMBER, _NUMBER), "({0}, {1})")
    yield Function("where", (_TRUTH, _NUMBER, _NUMBER), _NUMBER, "{0} ? {1} : {2}", Precedence.SELECTION)


def _called(name: str, parameters: tuple[Kind, ...], arguments: str) -> Function:
    is_of_math = name in _OF_MATH
    cpp = f"{'' if is_of_math else 'formula::'}{name.capitalize()}{arguments}"
    return Function(name, parameters, _NUMBER, cpp, is_of_math=is_of_math)


FUNCTIONS: Mapping[str, Function] = {function.name: function for function in _functions()}
# With a dim or several behind the expression; `sum` with none as well. `min(x, D)` is read as -max(-x, D).
REDUCTIONS = ("sum", "mean", "max", "variance")
COUNT = "count"  # of dims alone: how many places they have together
INDEX = "index"  # of a dim: an element's place along it
GIVEN = "given"  # of a name: whether it is there
BIT = "bit"  # of an input of words and a dim: the bit at an element's place along it
PRODUCT = "prod"  # of an `ints` attribute, where operations are counted: its numbers multiplied together
CHOSEN = "chosen"  # of an enum attribute: whether it has a value
# All that is called by its name, in the order of the tables above.
CALLED = tuple(dict.fromkeys([*FUNCTIONS, *REDUCTIONS, COUNT, INDEX, GIVEN, BIT]))
CONSTANTS: Mapping[str, float] = {"pi": math.pi}


@dataclass(frozen=True, slots=True)
class Number:
    value: float
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Name:
    """Of an input, an attribute, an earlier formula or a constant."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Apply:
    function: Function
    arguments: tuple[Tree, ...]
    start: int  # of the operator or of the function's name
    end: int


@dataclass(frozen=True, slots=True)
class Reduce:
    """What is made of an expression over named dims; a sum over none is over those that its output lacks.
    What is counted are places, whatever is there. Where operations are counted, the product of an attribute's
    numbers is one over no dims."""

    operation: str
    argument: Tree
    dims: tuple[Name, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Index:
    """An element's place along a dim."""

    dim: Name
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Given:
    """Whether an input or an attribute that may be absent is there."""

    name: Name
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Chosen:
    """Whether an enum attribute has a value: `reduction == sum`."""

    attribute: Name
    value: Name
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Bit:
    """The bit of an input of words at an element's place along a list of dims, counted row by row."""

    words: Name
    dims: Name
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Lookup:
    """The element of a table at an integer."""

    table: Name
    integer: Name
    start: int
    end: int


Tree = Number | Name | Apply | Reduce | Index | Given | Chosen | Bit | Lookup


def parts(tree: Tree) -> Iterator[Tree]:
    """The tree and all within it, from left to right."""
    yield tree
    if isinstance(tree, Apply):
        for argument in tree.arguments:
            yield from parts(argument)
    elif isinstance(tree, Reduce):
        yield from parts(tree.argument)
    elif isinstance(tree, Lookup):
        yield from (tree.table, tree.integer)
    elif isinstance(tree, Bit):
        yield tree.words


def names(tree: Tree) -> Iterator[Name]:
    """Those that are read; dims are not, nor what is only asked for, nor values of enums."""
    for part in parts(tree):
        if isinstance(part, Name):
            yield part
        elif isinstance(part, Chosen):
            yield part.attribute


def asked_for(tree: Tree) -> Iterator[Name]:
    """Of what the formula asks whether it is there."""
    return (part.name for part in parts(tree) if isinstance(part, Given))
