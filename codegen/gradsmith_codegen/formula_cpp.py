"""From formulas to C++: the body of a map's functor (runtime/patterns/map.h).

What would make a line too long, and a choice within an expression, becomes a value of its own before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .formula_tree import CONSTANTS, Apply, Kind, Name, Number, Precedence, Reduce, Tree
from .model import AttributeKind, Op
from .text import Text, cpp_comment

_LONGEST = 70  # characters of an expression on a line


@dataclass(frozen=True, slots=True)
class _Code:
    text: str
    precedence: Precedence
    kind: Kind = Kind.NUMBER


@dataclass(slots=True)
class _Body:
    names: dict[str, _Code]
    lines: list[str] = field(default_factory=list)
    values: int = 0

    def keep(self, code: _Code) -> _Code:
        """Gives a value a name."""
        name = f"v{self.values}"
        self.values += 1
        kind = "A" if code.kind is Kind.NUMBER else "bool"
        self.lines.append(f"const {kind} {name} = {code.text};")
        return _Code(name, Precedence.CALL, code.kind)


def functor_body(op: Op) -> list[str]:
    """The statements, with each formula as a comment before those that compute it."""
    outputs = {tensor.name: f"out[{index}]" for index, tensor in enumerate(op.outputs)}
    body = _Body(_names(op))
    for formula in op.formulas:
        body.lines.append(cpp_comment(Text(formula.name, " = ", formula.text)))
        tree = formula.tree
        code = _expression(tree.argument if isinstance(tree, Reduce) else tree, body)  # the pattern sums
        if formula.name in outputs:
            body.lines.append(f"{outputs[formula.name]} = {code.text};")
        else:
            body.names[formula.name] = body.keep(code)
    return body.lines


def _names(op: Op) -> dict[str, _Code]:
    found = {name: _Code(f"formula::k{name.capitalize()}<A>", Precedence.CALL) for name in CONSTANTS}
    for index, attribute in enumerate(op.scalars):
        if attribute.kind is AttributeKind.BOOL:
            found[attribute.name] = _Code(f"scalars[{index}] != A{{0}}", Precedence.COMPARISON, Kind.TRUTH)
        else:
            found[attribute.name] = _Code(f"scalars[{index}]", Precedence.CALL)
    for index, tensor in enumerate(op.read_inputs):
        found[tensor.name] = _Code(f"in[{index}]", Precedence.CALL)
    return found


def _expression(tree: Tree, body: _Body) -> _Code:
    if isinstance(tree, Number):
        value = int(tree.value) if tree.value == int(tree.value) and tree.value < 2**24 else tree.value
        return _Code(f"A{{{value!r}}}", Precedence.CALL)
    if isinstance(tree, Name):
        return body.names[tree.name]
    if isinstance(tree, Reduce):
        raise NotImplementedError(f"'{tree.operation}' within an expression")  # the checks refuse it
    arguments = [_part(argument, body) for argument in tree.arguments]
    code = _applied(tree, arguments)
    while len(code.text) > _LONGEST:
        longest = max(range(len(arguments)), key=lambda index: len(arguments[index].text))
        arguments[longest] = body.keep(arguments[longest])
        code = _applied(tree, arguments)
    return code


def _part(tree: Tree, body: _Body) -> _Code:
    code = _expression(tree, body)
    return body.keep(code) if code.precedence is Precedence.SELECTION else code


def _applied(tree: Apply, arguments: list[_Code]) -> _Code:
    function = tree.function
    own = function.precedence
    if own is Precedence.CALL:
        return _Code(function.cpp.format(*[one.text for one in arguments]), own, function.result)
    texts = [
        one.text if _stands_alone(one.precedence, own, index) else f"({one.text})"
        for index, one in enumerate(arguments)
    ]
    return _Code(function.cpp.format(*texts), own, function.result)


def _stands_alone(inner: Precedence, own: Precedence, index: int) -> bool:
    """Without brackets, as a left operand where it binds as tightly. Compilers warn of `and` within `or`, and
    `-(-x)` is no `--x`."""
    if own in (Precedence.OR, Precedence.AND) and inner in (Precedence.OR, Precedence.AND):
        return inner is own and index == 0
    if own in (Precedence.SIGN, Precedence.COMPARISON, Precedence.SELECTION):
        return inner > own
    return inner > own or (inner is own and index == 0)
