"""Dims that are two to formulas (`split`)."""

from __future__ import annotations

from collections.abc import Iterator

from ..grammar import MAX_RANK, is_identifier
from ..model import Op, Symbol
from ..suggestions import listing
from .registry import SHAPES, Finding, Scope, op_rule


@op_rule("G338", needs=(*SHAPES, "attributes"), blames=("dims",))
def bad_split(op: Op, scope: Scope) -> Iterator[Finding]:
    """`split` is given for a list symbol, for a dim that lacks `multiple_of`, or beside a kernel; names other
    than two dims, or one that a shape has, but for a first that the same attribute gives; or gives a tensor
    more than 8 dims."""
    symbols = {symbol.name: symbol for symbol in op.symbols}
    named: set[str] = set()
    for symbol in op.symbols:
        if not symbol.split:
            continue
        problem = _problem(op, symbol) or _name_problem(symbol, symbols, named)
        if problem:
            yield Finding(problem, symbol.at("split"))
        named |= set(symbol.split)
    splits = [symbol.name for symbol in op.symbols if symbol.split]
    for tensor in scope.tensors if splits else ():
        lengths = [symbols[dim.symbol].all_lengths[1] if dim.is_list else 1 for dim in tensor.shape]
        rank = sum(lengths) + sum(dim.symbol in splits for dim in tensor.shape)
        if rank > MAX_RANK and not tensor.shape_source:
            message = f"'{tensor.name}' may have rank {rank} where {listing(splits)} is split"
            yield Finding(f"{message}; the most is {MAX_RANK}", tensor.span)


def _problem(op: Op, symbol: Symbol) -> str:
    if not op.formulas:
        return f"'{symbol.name}' is split, which is for formulas alone"
    if symbol.is_list or not symbol.multiple_of:
        return f"'{symbol.name}' is split, and so must be a single dim with 'multiple_of'"
    if len(symbol.split) != 2 or not all(map(is_identifier, symbol.split)):
        return f"'{symbol.name}' is split into the names of two dims, such as [G, K]"
    return ""


def _name_problem(symbol: Symbol, symbols: dict[str, Symbol], named: set[str]) -> str:
    first, second = symbol.split
    repeated = named & {first, second}
    if repeated:
        return f"'{min(repeated)}' is a part of two dims"
    if second in symbols:
        return f"'{second}' is in a shape, and a part of '{symbol.name}' that is no tensor's own"
    given_by = symbols[first].given_by if first in symbols else symbol.multiple_of
    if given_by != symbol.multiple_of:
        remedy = f"write 'given_by: {symbol.multiple_of}' for it under 'dims'"
        return f"'{first}' is the first part of '{symbol.name}', and so has its number; {remedy}"
    return ""
