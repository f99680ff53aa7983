"""Dims that broadcast: to others, and together."""

from __future__ import annotations

from collections.abc import Iterator

from ..model import Op
from ..suggestions import did_you_mean
from .registry import SHAPES, Finding, Scope, op_rule


@op_rule("G327", needs=SHAPES, blames=("dims",))
def bad_broadcast(op: Op, scope: Scope) -> Iterator[Finding]:
    """`broadcast_to` is given for a single dim, or names no other list symbol of the shapes."""
    lists = {symbol.name for symbol in op.symbols if symbol.is_list}
    for symbol in op.symbols:
        if symbol.broadcast_to and not symbol.is_list:
            message = f"symbol '{symbol.name}' is a single dim, and only lists of dims broadcast to others"
            yield Finding(message, symbol.at("broadcast_to"))
        elif symbol.broadcast_to and symbol.broadcast_to not in lists - {symbol.name}:
            hint = did_you_mean(symbol.broadcast_to, lists, but=symbol.name)
            target = f"'{symbol.broadcast_to}', which is no other list symbol"
            yield Finding(f"'{symbol.name}' is broadcast to {target}{hint}", symbol.at("broadcast_to"))


@op_rule("G333", needs=SHAPES, blames=("dims",))
def bad_broadcast_rule(op: Op, scope: Scope) -> Iterator[Finding]:
    """The shape rule `broadcast` is given fewer than two lists of dims, and none of which each tensor of a
    list has its own; or a single dim."""
    own = {symbol.name for symbol in op.symbols if symbol.of_each}
    single = {symbol.name for symbol in op.symbols if not symbol.is_list}
    for symbol in op.symbols:
        rule = symbol.rule if symbol.rule and symbol.rule.is_broadcast else None
        wrong = [name for name in rule.arguments if name in single] if rule else []
        if wrong:
            message = f"'{wrong[0]}' is a single dim, and 'broadcast' takes lists of dims"
            yield Finding(message, symbol.at("rule"))
        elif rule and len(rule.arguments) < 2 and own.isdisjoint(rule.arguments):
            message = f"'broadcast' takes two lists of dims or more, not {len(rule.arguments)}"
            yield Finding(message, symbol.at("rule"))
