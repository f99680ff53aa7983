"""The small languages inside the values of `ops.yaml`: names, shape entries, lengths, shape rules.

Each function returns None for a text that is not of its language.
"""

from __future__ import annotations

import functools
import re
from dataclasses import replace
from typing import cast

from .model import LengthRule
from .shapes import BROADCAST, SUM, Condition, Dim, DimKind, Shape, ShapeRule

MAX_RANK = 8  # kMaxRank of the runtime
MAX_NAME = 36  # so that generated signatures, with three 16-bit types, fit a line

_NAME = r"[A-Za-z][A-Za-z0-9_]*"
SYMBOL = re.compile(rf"(\*?)({_NAME})\Z")
QUOTIENT = re.compile(rf"({_NAME}) */ *({_NAME})\Z")
CEIL = re.compile(rf"ceil\( *({_NAME}) */ *([1-9][0-9]{{0,8}}) *\)\Z")
CONSTANT = re.compile(r"(?:0|[1-9][0-9]{0,8})\Z")
MULTIPLE = re.compile(rf"(?:([1-9]) *\* *)?({_NAME})\Z")
_FUNCTION = r"[a-z][a-z0-9_]*::[A-Z][A-Za-z0-9]*"
KERNEL = re.compile(rf"{_FUNCTION}\Z")
RULE = re.compile(rf"({_FUNCTION}|{BROADCAST}|{SUM})\(([^()]*)\)\Z")
DOMAIN = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\Z")
IDENTIFIER = re.compile(rf"{_NAME}\Z")
OP_NAME = re.compile(r"[A-Z][A-Za-z0-9]*\Z")
LOWER_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*\Z")  # of rows and cases
FILE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")  # that references to an included file begin with
REFERENCE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\.[A-Za-z0-9_-]+\Z")
CONDITIONAL = re.compile(rf"(.+?) +if +({_NAME})(?: *== *({_NAME}))?\Z")
DIMS = (SYMBOL, QUOTIENT, CEIL, CONDITIONAL)  # the entries of a shape that are text


@functools.lru_cache(maxsize=4096)  # a schema has the same few shapes over and over
def shape(texts: tuple[str, ...]) -> Shape | None:
    """`N`, `C`, `*D`."""
    dims = [dim(text) for text in texts]
    return None if None in dims else Shape(cast(list[Dim], dims))


@functools.lru_cache(maxsize=4096)
def dim(text: str) -> Dim | None:
    """`N`, `*D`, `C / group`, `ceil(N / 32)` or `3`; or one of these with a condition, `N if keepdims`."""
    match = CONDITIONAL.match(text)
    if match:
        return _conditional(dim(match[1]), Condition(match[2], match[3] or ""))
    match = SYMBOL.match(text)
    if match:
        return Dim(DimKind.SYMBOL, text, symbol=match[2], is_list=bool(match[1]))
    match = QUOTIENT.match(text)
    if match:
        return Dim(DimKind.QUOTIENT, f"{match[1]} / {match[2]}", symbol=match[1], divisor=match[2])
    match = CEIL.match(text)
    if match:
        text = f"ceil({match[1]} / {match[2]})"
        return Dim(DimKind.CEIL, text, symbol=match[1], constant=int(match[2]))
    if CONSTANT.match(text):
        return Dim(DimKind.CONSTANT, text, constant=int(text))
    return None


def _conditional(always: Dim | None, condition: Condition) -> Dim | None:
    """A dim that is there where the condition holds; none where it hangs on another already."""
    if always is None or always.condition:
        return None
    return replace(always, text=f"{always.text} if {condition.text}", condition=condition)


def length_rule(text: str) -> LengthRule | None:
    """`D` or `2 * D`."""
    match = MULTIPLE.match(text)
    return LengthRule(int(match[1] or 1), match[2]) if match else None


def shape_rule(text: str) -> ShapeRule | None:
    """`conv::OutputSpatial(D, K)`, `broadcast(P, Q)` or `sum(P)`."""
    match = RULE.match(text)
    if not match:
        return None
    arguments = tuple(argument.strip() for argument in match[2].split(",")) if match[2].strip() else ()
    return ShapeRule(match[1], arguments) if all(map(is_identifier, arguments)) else None


def is_kernel(text: str) -> bool:
    return bool(KERNEL.match(text))


def is_domain(text: str) -> bool:
    return bool(DOMAIN.match(text))


def is_identifier(text: str) -> bool:
    return bool(IDENTIFIER.match(text))


def family(function: str) -> str:
    """`conv` of `conv::OutputSpatial`."""
    return function.partition("::")[0]
