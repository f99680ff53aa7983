"""Attributes: defaults, ranges, choices, lengths."""

from __future__ import annotations

from collections.abc import Iterator

from ..diagnostics import Note
from ..model import Op
from ..suggestions import did_you_mean, instead
from ..vocabulary import RUNTIME_ENUMS
from .registry import SHAPES, TENSORS, Finding, Scope, op_rule
from .values import choice_problem, range_problem


@op_rule("G402", needs=("attributes",), blames=("attributes",), looks_at="attributes")
def empty_range(op: Op, scope: Scope) -> Iterator[Finding]:
    """An attribute's `min` is greater than its `max`."""
    for attribute in op.attributes:
        if (
            attribute.minimum is not None
            and attribute.maximum is not None
            and attribute.minimum > attribute.maximum
        ):
            note = Note("the maximum", attribute.at("max"))
            message = f"the minimum of attribute '{attribute.name}' is greater than its maximum"
            yield Finding(message, attribute.at("min"), (note,))


@op_rule("G403", needs=("attributes",), blames=("attributes",), looks_at="attributes")
def different_choices(op: Op, scope: Scope) -> Iterator[Finding]:
    """An enum attribute's choices are not the C++ enum's enumerators in order."""
    for attribute in op.attributes:
        known = RUNTIME_ENUMS.get(attribute.enum)
        if known and attribute.choices != known:
            message = f"the enumerators of {attribute.enum} are, in this order, {', '.join(known)}"
            yield Finding(message, attribute.at("choices"))


@op_rule("G410", needs=("attributes",), blames=("attributes",), looks_at="attributes")
def foreign_enum(op: Op, scope: Scope) -> Iterator[Finding]:
    """An enum is none of `gradsmith/attributes.h`, which is all that the generated headers know: one of a
    family's header is not for them."""
    for attribute in op.attributes:
        if attribute.enum and attribute.enum not in RUNTIME_ENUMS:
            hint = instead(attribute.enum, RUNTIME_ENUMS)
            message = f"enum '{attribute.enum}' is not in gradsmith/attributes.h{hint}"
            yield Finding(message, attribute.at("enum"))


@op_rule("G404", needs=("attributes",), blames=("attributes",), looks_at="attributes")
def default_out_of_range(op: Op, scope: Scope) -> Iterator[Finding]:
    """An attribute's default is out of its range, or a list of more than 8."""
    for attribute in op.attributes:
        problem = "" if attribute.default is None else range_problem(attribute, attribute.default)
        if problem:
            yield Finding(f"the default of attribute '{attribute.name}' {problem}", attribute.at("default"))


@op_rule("G405", needs=("attributes",), blames=("attributes",), looks_at="attributes")
def default_no_choice(op: Op, scope: Scope) -> Iterator[Finding]:
    """An enum attribute's default is none of its choices."""
    for attribute in op.attributes:
        problem = "" if attribute.default is None else choice_problem(attribute, attribute.default)
        if problem:
            yield Finding(f"the default of attribute '{attribute.name}' {problem}", attribute.at("default"))


@op_rule("G406", needs=("attributes", *SHAPES), blames=("attributes",))
def unknown_attribute_length(op: Op, scope: Scope) -> Iterator[Finding]:
    """A list attribute has the length of something that is no list symbol of the operator's shapes."""
    lists = {symbol.name: symbol for symbol in op.symbols if symbol.is_list}
    for attribute in op.attributes:
        if attribute.length and attribute.length.symbol not in lists:
            symbol = attribute.length.symbol
            hint = instead(symbol, lists)
            message = (
                f"attribute '{attribute.name}' has the length of '{symbol}', which is no list symbol{hint}"
            )
            yield Finding(message, attribute.at("length"))


@op_rule("G411", needs=("attributes", *TENSORS), blames=("attributes",))
def axis_of_no_input(op: Op, scope: Scope) -> Iterator[Finding]:
    """An attribute is an axis (`axis_of`) of something that is no input, or of an optional one, or of a list
    whose tensors may differ in rank; or is itself optional."""
    own = {symbol.name for symbol in op.symbols if symbol.of_each}
    inputs = {tensor.name: tensor for tensor in op.inputs}
    for attribute in op.attributes:
        if not attribute.axis_of:
            continue
        tensor = inputs.get(attribute.axis_of)
        if not tensor:
            hint = did_you_mean(attribute.axis_of, inputs)
            message = f"'{attribute.name}' is an axis of '{attribute.axis_of}', which is no input{hint}"
            yield Finding(message, attribute.at("axis_of"))
        elif scope.may_be_absent(tensor):
            message = f"'{attribute.name}' is an axis of '{tensor.name}', which may be absent"
            yield Finding(message, attribute.at("axis_of"), (Note("which is optional", tensor.span),))
        elif attribute.is_optional:
            message = f"'{attribute.name}' is an axis of '{tensor.name}', and needs a default"
            yield Finding(message, attribute.at("optional"))
        elif not own.isdisjoint([dim.symbol for dim in tensor.shape.lists]):
            message = (
                f"'{attribute.name}' is an axis of '{tensor.name}', a list whose tensors may differ in rank"
            )
            yield Finding(message, attribute.at("axis_of"), (Note("the list", tensor.span),))


@op_rule("G407", needs=("attributes", *SHAPES))
def default_of_wrong_length(op: Op, scope: Scope) -> Iterator[Finding]:
    """A list attribute's default does not fit every length that it may have to have."""
    symbols = {symbol.name: symbol for symbol in op.symbols}
    for attribute in op.attributes:
        default = attribute.default
        if isinstance(default, tuple) and default and attribute.length:
            symbol, factor = symbols[attribute.length.symbol], attribute.length.factor
            shortest, longest = [factor * length for length in symbol.all_lengths]
            if {shortest, longest} != {len(default)}:
                has = f"the default of attribute '{attribute.name}' has length {len(default)}"
                message = f"{has} and would have to fit {shortest} to {longest}; leave it empty"
                yield Finding(message, attribute.at("default"))
