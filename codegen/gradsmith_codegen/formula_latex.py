"""Formulas as LaTeX typesets them, for pages."""

from __future__ import annotations

from collections.abc import Sequence

from .formula_tree import (
    BIT,
    COUNT,
    INDEX,
    Apply,
    Bit,
    Chosen,
    Given,
    Index,
    Lookup,
    Name,
    Number,
    Precedence,
    Reduce,
    Tree,
)
from .model import Formula

# What LaTeX has a command for; other functions are spelled upright.
_COMMANDS = frozenset("exp log sin cos tan sinh cosh tanh min max".split())
_NAMES = {
    "asin": r"\arcsin",
    "acos": r"\arccos",
    "atan": r"\arctan",
    "sigmoid": r"\sigma",
    "cdf": r"\Phi",
    "pdf": r"\varphi",
}
_NAMES |= {name: rf"\operatorname{{ar{name[1:]}}}" for name in ("asinh", "acosh", "atanh")}
_MARKS = {
    "add": "+",
    "subtract": "-",
    "less": "<",
    "less_equal": r"\le",
    "greater": ">",
    "greater_equal": r"\ge",
    "equal": "=",
    "not_equal": r"\ne",
    "and": r"\text{ and }",
    "or": r"\text{ or }",
}
_REDUCTIONS = {
    "sum": r"\sum",
    "max": r"\max",
    "mean": r"\operatorname{mean}",
    "variance": r"\operatorname{Var}",
}
_TALL = (r"\frac", r"\sum", r"\sqrt", r"\begin")
# The precedence of an expression that needs no brackets anywhere.
_ENCLOSED = Precedence.CALL


def block(formulas: Sequence[Formula]) -> str:
    """All formulas, a line each, with their signs of equality below one another."""
    lines = [f"{name(one.name)} &= {latex(one.tree)}" for one in formulas]
    return "\n".join([r"\begin{aligned}", " \\\\\n".join(lines), r"\end{aligned}"])


def name(of: str) -> str:
    """`X`, upright where it has several letters."""
    if of == "pi":
        return r"\pi"
    return of if len(of) == 1 else rf"\mathrm{{{_escaped(of)}}}"


def _escaped(word: str) -> str:
    return word.replace("_", r"\_")


def latex(tree: Tree) -> str:
    return _text(tree, Precedence.SELECTION)


def _text(tree: Tree, least: Precedence) -> str:
    """In brackets where it binds less tightly than what it is a part of."""
    text, own = _unbracketed(tree)
    return _bracketed(text) if own < least else text


def _bracketed(text: str) -> str:
    """In brackets as tall as what is within."""
    is_tall = any(part in text for part in _TALL)
    return rf"\left({text}\right)" if is_tall else f"({text})"


def _unbracketed(tree: Tree) -> tuple[str, Precedence]:
    if isinstance(tree, Number):
        return _number(tree.value), _ENCLOSED
    if isinstance(tree, Name):
        return name(tree.name), _ENCLOSED
    if isinstance(tree, Reduce):
        return _reduction(tree)
    if isinstance(tree, Chosen):
        return _choice(tree, "="), Precedence.COMPARISON
    if isinstance(tree, Apply):
        return _application(tree)
    return _place(tree)


def _choice(tree: Chosen, mark: str) -> str:
    """A value is a word, and no quantity."""
    return rf"{name(tree.attribute.name)} {mark} \text{{{_escaped(tree.value.name)}}}"


def _place(tree: Index | Given | Bit | Lookup) -> tuple[str, Precedence]:
    if isinstance(tree, Index):
        return f"{_upright(INDEX)}({name(tree.dim.name)})", _ENCLOSED
    if isinstance(tree, Bit):
        return f"{_upright(BIT)}_{{{name(tree.dims.name)}}}({name(tree.words.name)})", _ENCLOSED
    if isinstance(tree, Given):
        return rf"{name(tree.name.name)} \text{{ is given}}", Precedence.COMPARISON
    return rf"{name(tree.table.name)}_{{{name(tree.integer.name)}}}", _ENCLOSED


def _number(value: float) -> str:
    mantissa, mark, exponent = repr(value).partition("e")
    mantissa = mantissa.removesuffix(".0")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if mark else mantissa


def _reduction(tree: Reduce) -> tuple[str, Precedence]:
    dims = ",".join([name(dim.name) for dim in tree.dims])
    if tree.operation == COUNT:
        return f"{_upright(COUNT)}({dims})", _ENCLOSED
    below = f"_{{{dims}}}" if dims else ""
    if tree.operation == "sum":
        return rf"\sum{below} {_text(tree.argument, Precedence.PRODUCT)}", Precedence.PRODUCT
    return f"{_REDUCTIONS[tree.operation]}{below}{_bracketed(latex(tree.argument))}", _ENCLOSED


def _application(tree: Apply) -> tuple[str, Precedence]:
    function, own = tree.function.name, tree.function.precedence
    if function == "where":
        return _cases(tree), Precedence.SELECTION
    if function == "divide":
        return rf"\frac{{{latex(tree.arguments[0])}}}{{{latex(tree.arguments[1])}}}", _ENCLOSED
    if function == "multiply":
        first, second = tree.arguments
        return rf"{_text(first, own)} \cdot {_text(second, _ENCLOSED)}", own
    if function in _MARKS:
        first, second = tree.arguments
        right = Precedence(own + 1) if own is not Precedence.AND and own is not Precedence.OR else own
        return f"{_text(first, own)} {_MARKS[function]} {_text(second, right)}", own
    if function in ("negate", "not"):
        return _signed(tree)
    return _call(tree), _ENCLOSED


def _signed(tree: Apply) -> tuple[str, Precedence]:
    (signed,) = tree.arguments
    if isinstance(signed, Chosen):
        return _choice(signed, r"\ne"), Precedence.COMPARISON
    mark = "-" if tree.function.name == "negate" else r"\text{not }"
    return f"{mark}{_text(signed, tree.function.precedence)}", tree.function.precedence


def _call(tree: Apply) -> str:
    function = tree.function.name
    if function == "abs":
        return rf"\left|{latex(tree.arguments[0])}\right|"
    if function == "sqrt":
        return rf"\sqrt{{{latex(tree.arguments[0])}}}"
    if function == "rsqrt":
        return rf"\frac{{1}}{{\sqrt{{{latex(tree.arguments[0])}}}}}"
    if function == "pow":
        base, exponent = tree.arguments
        return f"{{{_text(base, _ENCLOSED)}}}^{{{latex(exponent)}}}"
    arguments = ", ".join(map(latex, tree.arguments))
    known = _NAMES.get(function) or (f"\\{function}" if function in _COMMANDS else "")
    return f"{known or _upright(function)}{_bracketed(arguments)}"


def _upright(function: str) -> str:
    return rf"\operatorname{{{function}}}"


def _cases(tree: Apply) -> str:
    """Of choices one within another one list."""
    lines = []
    rest: Tree = tree
    while isinstance(rest, Apply) and rest.function.name == "where":
        condition, chosen, rest = rest.arguments
        lines.append(rf"{latex(chosen)} & \text{{if }} {latex(condition)}")
    lines.append(rf"{latex(rest)} & \text{{otherwise}}")
    return (
        rf"\begin{{cases}} {' '.join([line + chr(92) * 2 for line in lines[:-1]])} {lines[-1]} \end{{cases}}"
    )
