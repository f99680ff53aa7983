"""What is too long for a line of C++, broken as clang-format breaks it."""

from __future__ import annotations

from collections.abc import Sequence

from .wrapping import COLUMN_LIMIT


def signature(head: str, parameters: Sequence[str], tail: str) -> str:
    """A declaration's head with its parameters: on one line, or else each on its own."""
    line = f"{head}({', '.join(parameters)}){tail}"
    if len(line) <= COLUMN_LIMIT:
        return line
    return f"{head}(\n" + ",\n".join(f"    {parameter}" for parameter in parameters) + f"){tail}"


def call(head: str, arguments: Sequence[object], tail: str) -> str:
    """A call: on one line, or else its arguments on the next."""
    listed = ", ".join(str(argument) for argument in arguments)
    line = f"{head}({listed}){tail}"
    if len(line) <= COLUMN_LIMIT:
        return line
    return f"{head}(\n{_continuation(head)}{listed}){tail}"


def _continuation(line: str) -> str:
    """The blanks that a line begins with which goes on with this one."""
    return " " * (len(line) - len(line.lstrip()) + 4)


def assignment(target: str, value: str) -> str:
    """A definition: on one line, or else its value on the next."""
    line = f"{target} = {value};"
    return line if len(line) <= COLUMN_LIMIT else f"{target} =\n{_continuation(target)}{value};"


def templated(template: str, arguments: Sequence[str], tail: str) -> str:
    """What ends in `Name<A, B>`, the template, its arguments and what follows: on one line, or else each
    argument on its own."""
    line = f"{template}<{', '.join(arguments)}>{tail}"
    if len(line) <= COLUMN_LIMIT:
        return line
    blanks = _continuation(template)
    return f"{template}<\n" + ",\n".join([f"{blanks}{one}" for one in arguments]) + f">{tail}"


def declaration(template: str, arguments: Sequence[str], mark: str, name: str) -> str:
    """`const Inputs<A, B>& inputs,`: on one line, or else its name on the next, or the template behind its
    namespace, or each argument on its own."""
    kind = f"{template}<{', '.join(arguments)}>{mark}"
    blanks = _continuation(template)
    if len(kind) <= COLUMN_LIMIT < len(kind) + 1 + len(name):
        return f"{kind}\n{blanks[4:] if name.startswith('/*') else blanks}{name}"
    if not mark and len(kind) > COLUMN_LIMIT:  # of a variable and no parameter
        return f"{template}<\n{blanks}{', '.join(arguments)}>\n{blanks}{name}"
    namespace, colons, own = template.rpartition("::")
    if colons and len(kind) > COLUMN_LIMIT >= len(f"{blanks}{own}{kind[len(template) :]}"):
        return f"{namespace}{colons}\n{declaration(f'{blanks}{own}', arguments, mark, name)}"
    return templated(template, arguments, f"{mark} {name}")


def specialisation(head: str, template: str, arguments: Sequence[str]) -> str:
    """`Status Relu<A, B>(`: on one line, or else its head on the line before, or each argument on its own."""
    line = f"{template}<{', '.join(arguments)}>("
    if len(line) <= COLUMN_LIMIT < len(head) + 1 + len(line):
        return f"{head}\n{line}"
    return templated(f"{head} {template}", arguments, "(")


def declared_row(name: str, arguments: Sequence[str]) -> str:
    """`kHasRelu<A, B>`, which is true: on one line, or else broken before its value, before its name, or each
    argument on its own."""
    head, row = "inline constexpr bool", f"{name}<{', '.join(arguments)}>"
    if len(f"{head} {row} =") <= COLUMN_LIMIT:
        return assignment(f"{head} {row}", "true")
    if len(f"    {row} =") <= COLUMN_LIMIT:
        return f"{head}\n{assignment(f'    {row}', 'true')}"
    return templated(f"{head} {name}", arguments, " = true;")


def typed_row(name: str, arguments: Sequence[str]) -> str:
    """`{"row", &Run<A, B>}` of a list: on one line, or else the function on the next, or each argument on its
    own."""
    first, function = f'    {{"{name}",', f"&Run<{', '.join(arguments)}>}},"
    if len(f"{first} {function}") <= COLUMN_LIMIT:
        return f"{first} {function}"
    if len(f"     {function}") <= COLUMN_LIMIT:
        return f"{first}\n     {function}"
    blanks = " " * (len(first) + 5)
    return f"{first} &Run<\n" + ",\n".join([f"{blanks}{one}" for one in arguments]) + ">},"


def closure(target: str, parameters: str, statements: Sequence[str]) -> str:
    """A function object that is defined: on one line where it has one statement and fits."""
    head = f"{target} = [&]({parameters}) {{"
    line = f"{head} {' '.join(statements)} }};"
    if len(statements) == 1 and len(line) <= COLUMN_LIMIT:
        return line
    indent = " " * (len(target) - len(target.lstrip()))
    return "\n".join([head, *[f"{indent}  {statement}" for statement in statements], f"{indent}}};"])


def comparison(left: str, right: str, tail: str) -> str:
    """`left == right`: on one line, or else its right side on the next."""
    line = f"{left} == {right}{tail}"
    indent = " " * (len(left) - len(left.lstrip()) + 4)
    return line if len(line) <= COLUMN_LIMIT else f"{left} ==\n{indent}{right}{tail}"
