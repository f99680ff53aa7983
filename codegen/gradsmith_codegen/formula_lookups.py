"""Lookups: tables that formulas read by an operand's integers, and what becomes of those outside."""

from __future__ import annotations

from collections.abc import Iterator

from .formula_tree import Lookup, parts
from .grammar import is_identifier
from .model import IGNORED, REFUSED, Op, Tensor

FORMS = f"'{IGNORED}', '{REFUSED}' or '{REFUSED} unless ATTRIBUTE'"


def lookups_by(op: Op, integers: Tensor) -> Iterator[Lookup]:
    """Those that formulas make by an input's integers."""
    for formula in op.formulas:
        for part in parts(formula.tree):
            if isinstance(part, Lookup) and part.integer.name == integers.name:
                yield part


def dim_of(op: Op, integers: Tensor) -> str:
    """The one dim of the first table that is looked up."""
    table = next(lookups_by(op, integers)).table.name
    return next(one.shape[0].symbol for one in op.inputs if one.name == table)


def is_form(outside: str) -> bool:
    """Whether the text reads as what `outside` may be."""
    words = outside.split(" ")
    if len(words) == 1:
        return outside in (IGNORED, REFUSED)
    return len(words) == 3 and words[:2] == [REFUSED, "unless"] and is_identifier(words[2])
