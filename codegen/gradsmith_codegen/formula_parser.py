"""From a formula's text to its tree. A fault is raised with the place in the text that it is about."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, cast

from . import formula_faults
from .diagnostics import Diagnostic
from .formula_tree import (
    BIT,
    CALLED,
    COUNT,
    FUNCTIONS,
    GIVEN,
    INDEX,
    OPERATORS,
    PRODUCT,
    REDUCTIONS,
    Apply,
    Bit,
    Chosen,
    Function,
    Given,
    Index,
    Lookup,
    Name,
    Number,
    Reduce,
    Tree,
)
from .spans import Span

MAX_DEPTH = 32  # of brackets and signs within each other
MAX_TOKENS = 300  # words, numbers and marks of a formula

_TOKEN = re.compile(
    r"(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<bad>\*\*)|(?P<mark><=|>=|==|!=|[-+*/<>(),[\]])|(?P<other>\S)",
    re.ASCII,
)
_WORDS = ("and", "or", "not")
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_LARGEST = 3.4e38  # of a float


class Unparsed(Exception):
    """The diagnostic, but for its span, and the place in the text that it is about."""

    def __init__(self, diagnose: Callable[[Span | None], Diagnostic], start: int, end: int) -> None:
        super().__init__()
        self.diagnose = diagnose
        self.start = start
        self.end = end


class _Token(NamedTuple):
    kind: str  # number, name, mark, or end
    text: str
    start: int
    end: int


def parse(
    text: str,
    dims: Collection[str],
    enums: Collection[str] = (),
    functions: Mapping[str, Function] = FUNCTIONS,
) -> Tree:
    """Raises Unparsed. What follows the expression of a reduction are dims; `max(a, b)` is one if b is. What
    an attribute of `enums` is compared with is one of its values. `functions` may be called."""
    return _Parser(text, dims, enums, functions).formula()


def parse_count(text: str) -> Tree:
    """How many operations a call makes, in which there are products of `ints` attributes. Raises Unparsed."""
    return _Parser(text, (), (), has_products=True).formula()


def _syntax(problem: str, start: int, end: int) -> Unparsed:
    return Unparsed(lambda span: formula_faults.syntax(span, problem), start, end)


class _Parser:
    def __init__(
        self,
        text: str,
        dims: Collection[str],
        enums: Collection[str],
        functions: Mapping[str, Function] = FUNCTIONS,
        *,
        has_products: bool = False,
    ) -> None:
        self._dims = dims
        self._enums = enums
        self._functions = functions
        self._has_products = has_products
        self._tokens = [
            _Token(str(found.lastgroup), found[0], found.start(), found.end())
            for found in _TOKEN.finditer(text)
        ]
        if len(self._tokens) > MAX_TOKENS:
            last = self._tokens[MAX_TOKENS]
            message = f"a formula has {MAX_TOKENS} words and marks at most; give a part of it a name"
            raise _syntax(message, last.start, last.end)
        length = len(text.rstrip())
        self._end = _Token("end", "", max(0, length - 1), max(1, length))
        self._at = 0
        self._depth = 0
        for token in self._tokens:
            if token.kind in ("bad", "other"):
                raise _syntax(_instead_of(token.text), token.start, token.end)

    def formula(self) -> Tree:
        tree = self._or()
        token = self._next
        if token.kind != "end":
            raise _syntax(f"'{token.text}' stands where an operator is expected", token.start, token.end)
        return tree

    # -- Tokens ---

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at] if self._at < len(self._tokens) else self._end

    def _take(self, *texts: str) -> _Token | None:
        """The next token where it is one of these."""
        token = self._next
        if token.kind in ("mark", "name") and token.text in texts:
            self._at += 1
            return token
        return None

    def _expect(self, text: str, where: str) -> _Token:
        token = self._take(text)
        if token is None:
            found = self._next
            got = f", not '{found.text}'" if found.text else ""
            raise _syntax(f"expected '{text}' {where}{got}", found.start, found.end)
        return token

    # -- Operators ---

    def _or(self) -> Tree:
        return self._left(self._and, "or")

    def _and(self) -> Tree:
        return self._left(self._not, "and")

    def _not(self) -> Tree:
        token = self._take("not")
        return self._within(token, self._not, "not") if token else self._comparison()

    def _comparison(self) -> Tree:
        tree = self._sum()
        token = self._take(*_COMPARISONS)
        if token is None:
            return tree
        compared = self._compared(tree, token, self._sum())
        second = self._take(*_COMPARISONS)
        if second:
            raise _syntax("comparisons do not chain; write 'a < b and b < c'", second.start, second.end)
        return compared

    def _compared(self, left: Tree, token: _Token, right: Tree) -> Tree:
        if isinstance(left, Name) and isinstance(right, Name) and token.text in ("==", "!="):
            for attribute, value in ((left, right), (right, left)):
                if attribute.name in self._enums:
                    chosen = Chosen(attribute, value, left.start, right.end)
                    is_equal = token.text == "=="
                    return chosen if is_equal else Apply(OPERATORS["not"], (chosen,), left.start, right.end)
        return Apply(OPERATORS[token.text], (left, right), token.start, token.end)

    def _sum(self) -> Tree:
        return self._left(self._product, "+", "-")

    def _product(self) -> Tree:
        return self._left(self._signed, "*", "/")

    def _left(self, operand: Callable[[], Tree], *marks: str) -> Tree:
        tree = operand()
        while token := self._take(*marks):
            tree = Apply(OPERATORS[token.text], (tree, operand()), token.start, token.end)
        return tree

    def _signed(self) -> Tree:
        token = self._take("-")
        return self._within(token, self._signed, "- ") if token else self._atom()

    def _within(self, token: _Token, operand: Callable[[], Tree], operator: str) -> Tree:
        self._enter(token)
        tree = Apply(OPERATORS[operator], (operand(),), token.start, token.end)
        self._depth -= 1
        return tree

    def _enter(self, token: _Token) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _syntax(f"nested more than {MAX_DEPTH} levels deep", token.start, token.end)

    # -- Atoms ---

    def _atom(self) -> Tree:
        token = self._next
        if token.kind == "number":
            self._at += 1
            return _number(token)
        if token.kind == "name" and token.text not in _WORDS:
            self._at += 1
            if self._next.text == "(":
                return self._call(token)
            name = Name(token.text, token.start, token.end)
            return self._lookup(name) if self._take("[") else name
        bracket = self._take("(")
        if bracket is None:
            what = "the formula ends" if token.kind == "end" else f"'{token.text}' stands"
            message = f"{what} where a number, a name or '(' is expected"
            raise _syntax(message, token.start, token.end)
        self._enter(bracket)
        tree = self._or()
        self._depth -= 1
        self._expect(")", "to close the bracket")
        return tree

    def _lookup(self, table: Name) -> Tree:
        token = self._next
        if token.kind != "name" or token.text in _WORDS:
            message = f"'{table.name}' is looked up by the name of an integer input"
            raise _syntax(message, token.start, token.end)
        self._at += 1
        closing = self._expect("]", f"behind the integer input in '{table.name}[{token.text}]'")
        return Lookup(table, Name(token.text, token.start, token.end), table.start, closing.end)

    def _call(self, name: _Token) -> Tree:
        self._enter(self._expect("(", ""))
        arguments: list[Tree] = [] if self._next.text == ")" else [self._or()]
        while self._take(","):
            arguments.append(self._or())
        self._depth -= 1
        self._expect(")", f"or ',' in '{name.text}(...)'")
        if name.text == COUNT:
            return Reduce(
                COUNT, Number(1, name.start, name.end), _dims(name, arguments), name.start, name.end
            )
        if name.text in (INDEX, GIVEN) or (name.text == PRODUCT and self._has_products):
            return _of_a_name(name, arguments)
        if name.text == BIT:
            return _bit(name, arguments)
        if name.text in REDUCTIONS and (name.text not in FUNCTIONS or self._has_dims(arguments)):
            return _reduction(name, arguments)
        if name.text == "min" and self._has_dims(arguments):
            return _minimum(name, arguments)
        function = self._functions.get(name.text)
        if function is None:
            known = CALLED if self._functions is FUNCTIONS else (*self._functions, GIVEN)
            raise Unparsed(
                lambda span: formula_faults.unknown_function(span, name.text, known), name.start, name.end
            )
        expected, given = len(function.parameters), len(arguments)
        if given != expected:
            raise Unparsed(
                lambda span: formula_faults.wrong_count(span, name.text, str(expected), given),
                name.start,
                name.end,
            )
        return Apply(function, tuple(arguments), name.start, name.end)

    def _has_dims(self, arguments: list[Tree]) -> bool:
        return any(isinstance(one, Name) and one.name in self._dims for one in arguments[1:])


def _reduction(name: _Token, arguments: list[Tree]) -> Tree:
    if not arguments:
        raise Unparsed(
            lambda span: formula_faults.wrong_count(span, name.text, "1 or more", 0), name.start, name.end
        )
    return Reduce(name.text, arguments[0], _dims(name, arguments[1:]), name.start, name.end)


def _minimum(name: _Token, arguments: list[Tree]) -> Tree:
    """The least of a row by the pattern's largest."""

    def negated(tree: Tree) -> Tree:
        return Apply(OPERATORS["- "], (tree,), name.start, name.end)

    largest = Reduce("max", negated(arguments[0]), _dims(name, arguments[1:]), name.start, name.end)
    return negated(largest)


_NAMED = {INDEX: "a dim", GIVEN: "an input or an attribute", PRODUCT: "an attribute of type ints"}


def _of_a_name(word: _Token, arguments: list[Tree]) -> Tree:
    if len(arguments) != 1:
        raise Unparsed(
            lambda span: formula_faults.wrong_count(span, word.text, "1", len(arguments)),
            word.start,
            word.end,
        )
    (name,) = arguments
    if not isinstance(name, Name):
        raise _syntax(f"'{word.text}' is of {_NAMED[word.text]}, given by its name", name.start, name.end)
    if word.text == PRODUCT:
        return Reduce(PRODUCT, name, (), word.start, word.end)
    made = Index if word.text == INDEX else Given
    return made(name, word.start, word.end)


def _bit(word: _Token, arguments: list[Tree]) -> Tree:
    if len(arguments) != 2:
        raise Unparsed(
            lambda span: formula_faults.wrong_count(span, word.text, "2", len(arguments)),
            word.start,
            word.end,
        )
    words, dims = arguments
    for argument, what in ((words, "an input of words"), (dims, "the dims of their bits")):
        if not isinstance(argument, Name):
            raise _syntax(f"'{word.text}' is of {what}, given by name", argument.start, argument.end)
    return Bit(cast(Name, words), cast(Name, dims), word.start, word.end)


def _dims(name: _Token, arguments: list[Tree]) -> tuple[Name, ...]:
    for argument in arguments:
        if not isinstance(argument, Name):
            behind = "" if name.text == COUNT else " behind the expression"
            message = f"'{name.text}' is over dims, given by their names{behind}"
            raise _syntax(message, argument.start, argument.end)
    return tuple([argument for argument in arguments if isinstance(argument, Name)])


def _number(token: _Token) -> Number:
    value = float(token.text)
    if not math.isfinite(value) or value > _LARGEST:
        raise _syntax(f"{token.text} is larger than any float", token.start, token.end)
    return Number(value, token.start, token.end)


_ELSEWHERE = {
    "**": "powers are 'pow(a, b)'",
    "^": "powers are 'pow(a, b)'",
    "=": "equality is '=='",
    "&": "both of two is 'and'",
    "|": "one of two is 'or'",
    "!": "the contrary is 'not'",
    "?": "a choice is 'where(condition, a, b)'",
    ":": "a choice is 'where(condition, a, b)'",
}


def _instead_of(character: str) -> str:
    hint = f"; {_ELSEWHERE[character]}" if character in _ELSEWHERE else ""
    return f"'{character}' has no meaning in a formula{hint}"
