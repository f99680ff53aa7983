"""From formulas to C++: the body of a map's functor (runtime/patterns/map.h), and what formula_rows_cpp.py
shares.

What would make a line too long, and a choice within an expression, becomes a value of its own before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from .formula_tree import (
    CONSTANTS,
    COUNT,
    OPERATORS,
    Apply,
    Bit,
    Chosen,
    Function,
    Given,
    Index,
    Kind,
    Lookup,
    Name,
    Number,
    Precedence,
    Reduce,
    Tree,
)
from .model import Attribute, AttributeKind, Op
from .text import Text, cpp_comment

LONGEST = 70  # characters of an expression on a line
# The structs of functions that may be approximate: a functor's parameter, and the one that is not.
MATH = "Math"
PRECISE = "formula::Precise"
_DIVIDE = OPERATORS["/"]
QUOTIENT_BY_COUNT = replace(_DIVIDE, cpp=_DIVIDE.cpp.replace("Quotient", "QuotientByCount"))


@dataclass(frozen=True, slots=True)
class Code:
    """An expression of C++."""

    text: str
    precedence: Precedence
    kind: Kind = Kind.NUMBER
    is_constant: bool = False  # made of numbers alone, which compilers compute


@dataclass(slots=True)
class Body:
    """Statements, what names of formulas are in them, and where the functions are that may be approximate."""

    names: dict[str, Code]
    math: str = MATH
    lines: list[str] = field(default_factory=list)
    values: int = 0

    def keep(self, code: Code) -> Code:
        """Gives a value a name."""
        name = f"v{self.values}"
        self.values += 1
        kind = "A" if code.kind is Kind.NUMBER else "bool"
        self.lines.append(f"const {kind} {name} = {code.text};")
        return Code(name, Precedence.CALL, code.kind)


def functor_body(op: Op, counts: Sequence[tuple[str, ...]] = ()) -> list[str]:
    """The statements, with each formula as a comment before those that compute it. `counts` are the numbers
    of places that follow the attributes."""
    outputs = {tensor.name: f"out[{index}]" for index, tensor in enumerate(op.outputs)}
    body = Body(_names(op, counts))
    for formula in op.formulas:
        body.lines.append(cpp_comment(Text(formula.name, " = ", formula.text)))
        tree = formula.tree
        if isinstance(tree, Reduce) and tree.operation != COUNT:  # which the pattern sums
            tree = tree.argument
        code = _expression(tree, body)
        if formula.name in outputs:
            body.lines.append(f"{outputs[formula.name]} = {code.text};")
        else:
            body.names[formula.name] = body.keep(code)
    return body.lines


def _names(op: Op, counts: Sequence[tuple[str, ...]]) -> dict[str, Code]:
    found = constants()
    for index, attribute in enumerate(op.scalars):
        place = f"scalars[{index}]"
        found[attribute.name] = scalar(place, attribute.kind is AttributeKind.BOOL)
        for value in attribute.choices:
            found[chosen_name(attribute.name, value)] = chosen(place, attribute, value)
    for index, dims in enumerate(counts, len(op.scalars)):
        found[count_name(dims)] = scalar(f"scalars[{index}]", False)
    for index, name in enumerate(op.givens, len(op.scalars) + len(counts)):
        found[given_name(name)] = scalar(f"scalars[{index}]", True)
    words = op.bits
    for index, tensor in enumerate(op.read_inputs):
        found[tensor.name] = scalar(f"in[{index}]", tensor.is_mask or tensor in words)
    return found


def number(value: float) -> Code:
    short = int(value) if value == int(value) and value < 2**24 else value
    return Code(f"A{{{short!r}}}", Precedence.CALL, is_constant=True)


def constants() -> dict[str, Code]:
    return {
        name: Code(f"formula::k{name.capitalize()}<A>", Precedence.CALL, is_constant=True)
        for name in CONSTANTS
    }


def scalar(text: str, is_truth: bool) -> Code:
    """What is given to a functor as a number."""
    if is_truth:
        return Code(f"{text} != A{{0}}", Precedence.COMPARISON, Kind.TRUTH)
    return Code(text, Precedence.CALL)


def chosen(place: str, attribute: Attribute, value: str) -> Code:
    """Whether an enum, of which a functor is given the place among its choices, has a value."""
    text = f"{place} == {number(attribute.choices.index(value)).text}"
    return Code(text, Precedence.COMPARISON, Kind.TRUTH)


def kept_short(function: Function, arguments: list[Code], body: Body) -> Code:
    """The function of the arguments, of which the longest get names until the rest fits on a line."""
    arguments = [body.keep(one) if one.precedence is Precedence.SELECTION else one for one in arguments]
    code = applied(function, arguments, body.math)
    while len(code.text) > LONGEST:
        longest = max(range(len(arguments)), key=lambda index: len(arguments[index].text))
        arguments[longest] = body.keep(arguments[longest])
        code = applied(function, arguments, body.math)
    return code


def _expression(tree: Tree, body: Body) -> Code:
    if isinstance(tree, Number):
        return number(tree.value)
    if isinstance(tree, Apply):
        return kept_short(_function(tree), [_expression(argument, body) for argument in tree.arguments], body)
    return body.names[_name(tree)]


def _function(tree: Apply) -> Function:
    """Quotients by a count are functions of their own: one reciprocal does for all elements of a thread."""
    divisor = tree.arguments[-1]
    is_count = isinstance(divisor, Reduce) and divisor.operation == COUNT
    return QUOTIENT_BY_COUNT if tree.function is _DIVIDE and is_count else tree.function


def _name(tree: Name | Reduce | Index | Given | Chosen | Bit | Lookup) -> str:
    """What stands for it among the names."""
    if isinstance(tree, Name):
        return tree.name
    if isinstance(tree, Reduce):  # a count: the checks refuse others
        return count_name([dim.name for dim in tree.dims])
    if isinstance(tree, Given):
        return given_name(tree.name.name)
    if isinstance(tree, Chosen):
        return chosen_name(tree.attribute.name, tree.value.name)
    if isinstance(tree, Bit):  # which a functor is given in the place of words
        return tree.words.name
    raise NotImplementedError("places in a map")  # such formulas are no map


def count_name(dims: Iterable[str]) -> str:
    """What stands for the number of places of dims among the names."""
    return f"count({', '.join(sorted(dims))})"


def given_name(name: str) -> str:
    """What stands among the names for whether something is there."""
    return f"given({name})"


def chosen_name(attribute: str, value: str) -> str:
    """What stands among the names for whether an enum has a value."""
    return f"{attribute} == {value}"


def applied(function: Function, arguments: list[Code], math: str = PRECISE) -> Code:
    own = Precedence.CALL if function.is_of_math else function.precedence
    is_constant = all(one.is_constant for one in arguments)
    if own is Precedence.CALL:
        cpp = function.cpp.format(*[one.text for one in arguments])
        text = f"{PRECISE if is_constant else math}::{cpp}" if function.is_of_math else cpp
        return Code(text, own, function.result, is_constant)
    texts = [
        one.text if _stands_alone(one.precedence, own, index) else f"({one.text})"
        for index, one in enumerate(arguments)
    ]
    return Code(function.cpp.format(*texts), own, function.result, is_constant)


def _stands_alone(inner: Precedence, own: Precedence, index: int) -> bool:
    """Without brackets, as a left operand where it binds as tightly. Compilers warn of `and` within `or`, and
    `-(-x)` is no `--x`."""
    if own in (Precedence.OR, Precedence.AND) and inner in (Precedence.OR, Precedence.AND):
        return inner is own and index == 0
    if own in (Precedence.SIGN, Precedence.COMPARISON, Precedence.SELECTION):
        return inner > own
    return inner > own or (inner is own and index == 0)
