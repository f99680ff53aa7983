"""How many dims list symbols have: where each of several in a shape ends."""

from __future__ import annotations

from collections.abc import Iterator

from .. import chains
from ..diagnostics import Note
from ..model import AttributeKind, Op
from ..suggestions import did_you_mean, listing
from .registry import SHAPES, Finding, Scope, op_rule


@op_rule("G309", needs=("dims",), blames=("dims",))
def unknown_length(op: Op, scope: Scope) -> Iterator[Finding]:
    """A symbol has the length of something that is no list symbol."""
    lists = {symbol.name for symbol in scope.draft.declared.values() if symbol.is_list}
    for symbol in scope.draft.declared.values():
        if symbol.length_of and symbol.length_of not in lists:
            hint = did_you_mean(symbol.length_of, lists, but=symbol.name)
            message = f"'{symbol.name}' has the length of '{symbol.length_of}', which is no list symbol{hint}"
            yield Finding(message, symbol.at("length"))


@op_rule("G310", needs=("dims",), blames=("dims",))
def circular_length(op: Op, scope: Scope) -> Iterator[Finding]:
    """Symbols have each other's lengths in a circle."""
    declared = scope.draft.declared
    following = {name: symbol.length_of for name, symbol in declared.items() if symbol.length_of}
    for circle in chains.circles(following):
        message = f"the length of '{circle[0]}' is its own: {chains.text(circle)}"
        yield Finding(message, declared[circle[0]].at("length"))


@op_rule("G316", needs=(*SHAPES, "attributes"), blames=("dims",))
def two_lists(op: Op, scope: Scope) -> Iterator[Finding]:
    """A shape has two list symbols, and neither another input nor an axis says where one ends."""
    if all(len(tensor.shape.lists) <= 1 for tensor in scope.tensors):
        return
    condition = op.length_condition
    values = (False, True) if condition else (False,)
    known = {value: _lists_of_known_length(op, scope, value) for value in values}
    for tensor in scope.tensors:
        lists = [(dim, place) for dim, place in tensor.own_dims if dim.is_list]
        for value in values:
            unknown = [(dim, place) for dim, place in lists if dim.symbol not in known[value]]
            if len(unknown) > 1:
                names = listing([dim.symbol for dim, _ in unknown])
                where = f" where '{condition}' is {str(value).lower()}" if condition else ""
                message = f"the shape of '{tensor.name}' has the lists {names}{where}, and nothing says"
                remedy = "give one a 'length', such as an axis, or an input of its own"
                yield Finding(f"{message} where one ends; {remedy}", unknown[1][1].span)
                break


def _lists_of_known_length(op: Op, scope: Scope, condition: bool) -> set[str]:
    """The list symbols whose length does not hang on the tensor that has them: the schema sets it, an axis,
    or an input in whose shape all others are known. `condition` is the value of the attribute on which
    lengths hang."""
    symbols = {symbol.name: symbol for symbol in op.symbols}
    root = {name: symbol.length_of or name for name, symbol in symbols.items()}
    known = {
        root[symbol.name]
        for symbol in op.symbols
        if symbol.is_list and (symbol.length_axis or symbol.fixed_length(condition) is not None)
    }
    required = [one for one in op.inputs if not scope.may_be_absent(one) and not one.shape.condition]
    while True:
        found = set()
        for tensor in required:
            unknown = {root[dim.symbol] for dim in tensor.shape.lists if root[dim.symbol] not in known}
            lists = [dim for dim in tensor.shape.lists if root[dim.symbol] not in known]
            found |= unknown if len(lists) == 1 else set()
        if not found:
            return {name for name in symbols if root[name] in known}
        known |= found


@op_rule("G339", needs=("dims", "attributes"), blames=("dims",))
def bad_length_condition(op: Op, scope: Scope) -> Iterator[Finding]:
    """`length_if` names no bool attribute with a default, or another one than the operator's other symbols
    do."""
    conditions = [
        (one, one.length_if.attribute)
        for one in scope.draft.declared.values()
        if one.length_if and not one.length_of
    ]
    for symbol, name in conditions:
        attribute, (first, condition) = scope.attributes.get(name), conditions[0]
        is_flag = attribute is not None and attribute.kind is AttributeKind.BOOL
        place = symbol.at("length_if")
        if not attribute or not is_flag or attribute.is_optional:
            flags = [one.name for one in op.attributes if one.kind is AttributeKind.BOOL]
            notes = (Note("the attribute", attribute.span),) if attribute else ()
            message = f"the length of '{symbol.name}' hangs on '{name}', which is no bool attribute"
            lacks = f"{message} with a default{'' if attribute else did_you_mean(name, flags)}"
            yield Finding(lacks, place, notes)
        elif name != condition:
            message = f"the length of '{symbol.name}' hangs on '{name}', and that of '{first.name}'"
            note = Note(f"the length of '{first.name}'", first.at("length_if"))
            yield Finding(f"{message} on '{condition}'; there can be one such attribute", place, (note,))


@op_rule("G325", needs=("dims", "attributes"), blames=("dims",))
def length_of_no_axis(op: Op, scope: Scope) -> Iterator[Finding]:
    """A list symbol has the length of an attribute that is no axis of an input (`axis_of`)."""
    for symbol in scope.draft.declared.values():
        attribute = scope.attributes.get(symbol.length_axis)
        if attribute and not attribute.axis_of:
            note = Note("the attribute", attribute.span)
            message = f"'{symbol.name}' has the length of '{attribute.name}', which is no axis of an input"
            yield Finding(f"{message}; it lacks 'axis_of'", symbol.at("length"), (note,))


@op_rule("G326", needs=(*SHAPES, "attributes"), blames=("dims",))
def dims_before_others(op: Op, scope: Scope) -> Iterator[Finding]:
    """The dims before an axis of an input are not the first of its shape."""
    axes = {symbol.name: symbol.length_axis for symbol in op.symbols if symbol.length_axis}
    for tensor in op.inputs if axes else ():
        for dim, place in list(tensor.own_dims)[1:]:
            attribute = scope.attributes.get(axes.get(dim.symbol, ""))
            if attribute and attribute.axis_of == tensor.name:
                message = f"'{dim.symbol}' is all dims of '{tensor.name}' before its axis '{attribute.name}'"
                yield Finding(f"{message}, and stands after other dims in its shape", place.span)
