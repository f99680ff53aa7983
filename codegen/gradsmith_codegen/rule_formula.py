"""The formula of a shape rule: what the rule computes along each axis, from the text beside its function.

A text is lines: definitions, `span = dilation * (K - 1) + 1`; what must hold, `expect span <= D: words`,
whose words have values in braces; and in the last the size. A line that is indented deeper goes on with the
one before. The size may be that of a shared rule, `windows(D, K)`, whose lines then follow; an attribute that
these read and the rule does not take is as good as empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from .cpp_words import CPP_KEYWORDS
from .formula_parser import Unparsed, parse
from .formula_tree import (
    FUNCTIONS,
    OPERATORS,
    Apply,
    Chosen,
    Function,
    Given,
    Kind,
    Name,
    Number,
    Precedence,
    Tree,
)

AXIS = "axis"  # in words: the number of the axis
VALUE = "value"  # what the size is called among the definitions
DIVIDE = OPERATORS["/"]

_NUMBER = Kind.NUMBER
ENTRIES = (
    "entry",
    "begin",
    "end",
)  # of a list attribute: its number for the axis, or another where it is empty
ROUNDED = ("floor", "ceil")  # of a quotient
_FUNCTIONS: Mapping[str, Function] = {
    **{name: FUNCTIONS[name] for name in ("min", "max", "where")},
    **{name: Function(name, (_NUMBER,), _NUMBER, "") for name in ROUNDED},
    **{name: Function(name, (_NUMBER, _NUMBER), _NUMBER, "") for name in ENTRIES},
}
_DEFINITION = re.compile(r"([A-Za-z]\w*) *=(?!=) *(.*)\Z", re.DOTALL)
_EXPECTATION = re.compile(r"expect +([^:]*): +(\S.*)\Z", re.DOTALL)
_CALL = re.compile(r"([a-z]\w*)\((.*)\)\Z", re.DOTALL)
_HEAD = re.compile(r"([a-z]\w*)\(([A-Z]\w*(?:, [A-Z]\w*)*)\) is\Z")
_LOWER = re.compile(r"[a-z][a-z0-9_]*\Z")
_WORD = re.compile(r"[A-Za-z_]\w*")
_HOLE = re.compile(r"\{(\w+)\}")
_CULPRIT = re.compile(rf"(?:spatial axis \{{{AXIS}\}}: )?(?:attribute )?(\w+)")
_TAKEN = frozenset((AXIS, VALUE, "attributes"))

INT, INTS, BOOL = "int", "ints", "bool"  # types of attributes, as kernel_terms has them
_NOT_ENUMS = (INT, INTS, BOOL, "float", "floats", "string")


class BadRule(Exception):
    """The argument says what is wrong with the text of a rule."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A value that the lines behind it read."""

    name: str
    tree: Tree
    kind: Kind

    @property
    def text(self) -> str:
        return spelled(self.tree) if self.name == VALUE else f"{self.name} = {spelled(self.tree)}"


@dataclass(frozen=True, slots=True)
class Expectation:
    """What must hold, and the words that say that it does not: every second one is the name of a value."""

    tree: Tree
    words: tuple[str, ...]

    @property
    def text(self) -> str:
        return f"expect {spelled(self.tree)}"

    @property
    def culprit(self) -> str:
        """The first name in the words, which may be an attribute's."""
        found = _CULPRIT.match(
            "".join([f"{{{word}}}" if i % 2 else word for i, word in enumerate(self.words)])
        )
        return found[1] if found else ""


Statement = Definition | Expectation


@dataclass(frozen=True, slots=True)
class RuleFormula:
    """Statements in the order of the text; the last one defines the size."""

    statements: tuple[Statement, ...]
    symbols: tuple[str, ...]  # the lists of dims that the rule takes
    attributes: Mapping[str, str]  # the types of the attributes that it takes

    @property
    def lines(self) -> list[str]:
        """As pages have it."""
        return [statement.text for statement in self.statements]


@dataclass(frozen=True, slots=True)
class SharedRule:
    """The text of a rule that others end in, with the names that it has for their arguments."""

    parameters: tuple[str, ...]
    lines: tuple[str, ...]


def shared_rule(text: str) -> tuple[str, SharedRule]:
    """The name stands in the first line: `windows(D, K) is`."""
    lines = _lines(text)
    head = _HEAD.match(lines[0]) if lines else None
    if not head:
        raise BadRule("a shared rule begins with a line such as 'windows(D, K) is'")
    return head[1], SharedRule(tuple(head[2].split(", ")), tuple(lines[1:]))


def rule_formula(
    text: str, symbols: tuple[str, ...], attributes: Mapping[str, str], shared: Mapping[str, SharedRule]
) -> RuleFormula:
    """Raises BadRule."""
    reader = _Reader(symbols, attributes)
    lines = _lines(text)
    if not lines:
        raise BadRule("the text is empty")
    call = _CALL.match(lines[-1])
    called = shared.get(call[1]) if call else None
    for line in lines[: -1 if called else None]:
        reader.read(line)
    if call and called:
        reader.begin_shared(called, call[1], _arguments(call[2]))
        for line in called.lines:
            reader.read(line)
    return reader.formula()


def _lines(text: str) -> list[str]:
    found: list[str] = []
    margin = -1
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        if not line.strip():
            continue
        if found and indent > margin:
            found[-1] += f" {line.strip()}"
        else:
            margin = indent
            found.append(line.strip())
    return found


def _arguments(text: str) -> list[str]:
    """`D, entry(kernel_shape, 1)`, of which the second has a comma of its own."""
    found, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            found.append("")
        else:
            found[-1] += character
    return [one.strip() for one in found]


class _Reader:
    def __init__(self, symbols: tuple[str, ...], attributes: Mapping[str, str]) -> None:
        self._symbols = symbols
        self._attributes = attributes
        self._is_shared = False  # the lines being read may read attributes that are lacking
        self._kinds: dict[str, Kind] = {}  # of the definitions so far
        self._truths: dict[str, bool] = {}  # those of which it is known
        self._statements: list[Statement] = []

    def begin_shared(self, rule: SharedRule, name: str, arguments: list[str]) -> None:
        if len(arguments) != len(rule.parameters):
            raise BadRule(f"'{name}' takes {len(rule.parameters)} arguments, not {len(arguments)}")
        for parameter, argument in zip(rule.parameters, arguments, strict=True):
            if parameter != argument:
                self._define(parameter, argument)
            elif parameter not in self._symbols:
                raise BadRule(f"'{parameter}' is no list of dims that the rule takes")
        self._is_shared = True

    def formula(self) -> RuleFormula:
        if not self._statements or not _is_value(self._statements[-1]):
            raise BadRule("the last line gives no size")
        return RuleFormula(tuple(self._statements), self._symbols, self._attributes)

    def read(self, line: str) -> None:
        if self._statements and _is_value(self._statements[-1]):
            raise BadRule(f"'{line}' stands behind the size")
        expected, defined = _EXPECTATION.match(line), _DEFINITION.match(line)
        if expected:
            self._expect(expected[1], tuple(_HOLE.split(expected[2])))
        elif defined:
            if not _LOWER.match(defined[1]) or defined[1] in CPP_KEYWORDS | _TAKEN | set(self._attributes):
                raise BadRule(f"'{defined[1]}' cannot be the name of a definition")
            self._define(defined[1], defined[2])
        else:
            self._define(VALUE, line)

    def _expect(self, text: str, words: tuple[str, ...]) -> None:
        for hole in words[1::2]:
            known = hole in (AXIS, *self._symbols, *self._attributes, *self._kinds)
            if not known and not self._is_shared:
                raise BadRule(f"'{{{hole}}}' is no value that the rule knows")
        tree = self._tree(text, Kind.TRUTH)
        if tree is False:
            raise BadRule(f"'expect {text}' never holds")
        if not isinstance(tree, bool):
            self._statements.append(Expectation(tree, words))

    def _define(self, name: str, text: str) -> None:
        if name in self._kinds or name in self._truths or name in self._symbols:
            raise BadRule(f"'{name}' is defined twice")
        tree = self._tree(text, Kind.NUMBER if name == VALUE else None)
        if isinstance(tree, bool):
            self._truths[name] = tree
        else:
            self._kinds[name] = self._kind(tree)
            self._statements.append(Definition(name, tree, self._kinds[name]))

    def _tree(self, text: str, kind: Kind | None) -> Tree | bool:
        known = {*self._symbols, *self._kinds, *self._truths}
        try:
            tree = parse(text, (), set(_WORD.findall(text)) - known, _FUNCTIONS)
        except Unparsed as unparsed:
            raise BadRule(f"'{text}': {unparsed.diagnose(None).message}") from None
        found = self._kind(tree)
        if kind and found is not kind:
            raise BadRule(f"'{text}' is {found.value} where {kind.value} is expected")
        return self._folded(tree)

    # -- What may stand where ---

    def _kind(self, tree: Tree) -> Kind:
        """Checks the tree, too."""
        if isinstance(tree, Number):
            if tree.value != int(tree.value) or tree.value > 2**53:
                raise BadRule("numbers of a shape rule are whole")
            return Kind.NUMBER
        if isinstance(tree, Name):
            return self._kind_of_name(tree.name)
        if isinstance(tree, Given):
            self._expect_attribute(tree.name.name, INTS)
            return Kind.TRUTH
        if isinstance(tree, Chosen):
            self._expect_attribute(tree.attribute.name, "")
            return Kind.TRUTH
        if not isinstance(tree, Apply):
            raise BadRule("a shape rule has no reductions and reads no elements")
        return self._kind_of_call(tree)

    def _kind_of_call(self, tree: Apply) -> Kind:
        function, arguments = tree.function, tree.arguments
        if function.name in ENTRIES:
            attribute, otherwise = arguments
            if not isinstance(attribute, Name) or not isinstance(otherwise, Number):
                raise BadRule(
                    f"'{function.name}' is of a list attribute and a number, as in 'entry(strides, 1)'"
                )
            self._expect_attribute(attribute.name, INTS)
            return Kind.NUMBER
        if function.name in ROUNDED:
            (quotient,) = arguments
            if not isinstance(quotient, Apply) or quotient.function is not DIVIDE:
                raise BadRule(f"'{function.name}' is of a quotient, as in '{function.name}(a / b)'")
            arguments = quotient.arguments
        elif function is DIVIDE:
            raise BadRule("a quotient is rounded: 'floor(a / b)' or 'ceil(a / b)'")
        wanted = function.parameters if len(arguments) == len(function.parameters) else (Kind.NUMBER,) * 2
        for argument, kind in zip(arguments, wanted, strict=True):
            found = self._kind(argument)
            if found is not kind:
                raise BadRule(f"'{spelled(argument)}' is {found.value} where {kind.value} is expected")
        return function.result

    def _kind_of_name(self, name: str) -> Kind:
        if name in self._symbols:
            return Kind.NUMBER
        if name in self._truths:
            return Kind.TRUTH
        if name in self._kinds:
            return self._kinds[name]
        kind = self._attributes.get(name)
        if kind is None and self._is_shared:
            return Kind.TRUTH
        if kind not in (INT, BOOL):
            what = (
                "a list: 'entry(x, 0)' is one of its numbers"
                if kind == INTS
                else "no value that the rule knows"
            )
            raise BadRule(f"'{name}' is {what}")
        return Kind.TRUTH if kind == BOOL else Kind.NUMBER

    def _expect_attribute(self, name: str, kind: str) -> None:
        """Of a type; of an enum's where that is empty."""
        found = self._attributes.get(name)
        if found is None and self._is_shared:
            return
        if found is None or (found != kind if kind else found in _NOT_ENUMS):
            what = "list of integers" if kind else "enum"
            raise BadRule(
                f"'{name}' is no attribute that the rule takes and that is {'a' if kind else 'an'} {what}"
            )

    # -- Attributes that are lacking ---

    def _folded(self, tree: Tree) -> Tree | bool:
        """Without what attributes that are lacking decide."""
        if isinstance(tree, Name):
            known = tree.name in self._kinds or tree.name in self._symbols or tree.name in self._attributes
            return tree if known else self._truths.get(tree.name, False)
        if isinstance(tree, Given):
            return tree if tree.name.name in self._attributes else False
        if isinstance(tree, Chosen):
            return tree if tree.attribute.name in self._attributes else False
        if not isinstance(tree, Apply):
            return tree
        if tree.function.name in ENTRIES:
            attribute, otherwise = tree.arguments
            return tree if isinstance(attribute, Name) and attribute.name in self._attributes else otherwise
        return _applied(tree, [self._folded(argument) for argument in tree.arguments])


def _is_value(statement: Statement) -> bool:
    return isinstance(statement, Definition) and statement.name == VALUE


def _applied(tree: Apply, arguments: list[Tree | bool]) -> Tree | bool:
    """A function of what may be known to be true or false."""
    name = tree.function.name
    if name == "not" and isinstance(arguments[0], bool):
        return not arguments[0]
    if name == "where" and isinstance(arguments[0], bool):
        return arguments[1] if arguments[0] else arguments[2]
    if name in ("and", "or"):
        decides = name == "or"
        if any(one is decides for one in arguments):
            return decides
        rest = [one for one in arguments if not isinstance(one, bool)]
        if len(rest) < 2:
            return rest[0] if rest else not decides
    return replace(tree, arguments=tuple([one for one in arguments if not isinstance(one, bool)]))


# ----------------------------------------------------------------------------------------------------
# As text


_MARKS = {function: mark.strip() for mark, function in OPERATORS.items()}


def spelled(tree: Tree) -> str:
    return written(
        tree, _leaf, lambda function, arguments: f"{function.name}({', '.join(arguments)})", _MARKS
    )


def _leaf(tree: Tree) -> str:
    if isinstance(tree, Number):
        return str(int(tree.value))
    if isinstance(tree, Given):
        return f"given({tree.name.name})"
    if isinstance(tree, Chosen):
        return f"{tree.attribute.name} == {tree.value.name}"
    return tree.name if isinstance(tree, Name) else ""


def written(
    tree: Tree,
    leaf: Callable[[Tree], str],
    call: Callable[[Function, list[str]], str],
    marks: Mapping[Function, str],
    least: Precedence = Precedence.SELECTION,
) -> str:
    """The tree as text: operators by their marks, in brackets where they bind less tightly than what they
    are a part of."""
    is_other = (
        isinstance(tree, Apply)
        and tree.function is OPERATORS["not"]
        and isinstance(tree.arguments[0], Chosen)
    )
    compared = tree.arguments[0] if isinstance(tree, Apply) and is_other else tree
    if isinstance(compared, Chosen):
        text = leaf(compared).replace(" == ", " != ") if is_other else leaf(compared)
        return f"({text})" if least > Precedence.COMPARISON else text
    if not isinstance(tree, Apply):
        return leaf(tree)
    mark, own = marks.get(tree.function, ""), tree.function.precedence
    if not mark:
        return call(tree.function, [written(one, leaf, call, marks) for one in tree.arguments])

    def part(argument: Tree, tightness: int) -> str:
        return written(argument, leaf, call, marks, Precedence(min(tightness, Precedence.CALL)))

    if len(tree.arguments) == 1:
        space = " " if mark.isalpha() else ""
        text = f"{mark}{space}{part(tree.arguments[0], own + 1)}"
    else:
        # Compilers warn of `and` within `or` without brackets.
        within_or = own is Precedence.OR and any(_is_and(one) for one in tree.arguments)
        first = Precedence.COMPARISON if within_or else own
        second = Precedence.COMPARISON if within_or else own + 1
        text = f"{part(tree.arguments[0], first)} {mark} {part(tree.arguments[1], second)}"
    return f"({text})" if own < least else text


def _is_and(tree: Tree) -> bool:
    return isinstance(tree, Apply) and tree.function.precedence is Precedence.AND
