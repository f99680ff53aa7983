"""How words, texts and numbers are spelled in a schema, and what the model's nouns look like there."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from . import scalars
from .model import Attribute, AttributeValue, Symbol

_PLAIN = re.compile(r"[^\s\-?:,\[\]{}#&*!|>'\"%@`][^\[\]{},]*\Z|-[^\s\[\]{},][^\[\]{},]*\Z")
_ENDS_PLAIN = re.compile(r": |:$| #|\s$|[^\x20-\x7e]")


def text(words: str) -> str:
    """In quotes where it would be something else without."""
    is_plain = _PLAIN.match(words) and not _ENDS_PLAIN.search(words) and scalars.is_word(words)
    return words if is_plain else quoted(words)


def quoted(words: str) -> str:
    escaped = words.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join([one if one.isprintable() else f"\\U{ord(one):08x}" for one in escaped]) + '"'


def expression(formula: str) -> str:
    """Of a formula in block style, where commas and brackets need no quotes; a number is one as well."""
    in_block = formula.translate(str.maketrans("", "", ",[]{}"))
    needs_none = scalars.is_number(formula) or text(in_block) == in_block
    return formula if needs_none and formula[0] not in ",[]{}" else quoted(formula)


def flow(entries: Mapping[str, str]) -> str:
    """`{type: T, like: X}`."""
    return "{" + ", ".join([f"{key}: {value}" for key, value in entries.items()]) + "}"


def value(of: AttributeValue) -> str:
    if isinstance(of, bool):
        return "true" if of else "false"
    if isinstance(of, tuple):
        return f"[{', '.join(map(value, of))}]"
    if isinstance(of, float):
        return real(of)
    return text(of) if isinstance(of, str) else str(of)


def real(number: float) -> str:
    """In a spelling on which all of YAML agrees."""
    if math.isinf(number):
        return ".inf" if number > 0 else "-.inf"
    mantissa, exponent_mark, exponent = repr(float(number)).partition("e")
    point = "" if "." in mantissa else ".0"
    sign = "+" if exponent_mark and exponent[0] not in "+-" else ""
    return f"{mantissa}{point}{exponent_mark}{sign}{exponent}"


def shape(dims: Iterable[str]) -> str:
    """Of the dims' texts; a list symbol needs quotes."""
    return "[" + ", ".join([f'"{dim}"' if dim.startswith("*") else dim for dim in dims]) + "]"


def names(of: Sequence[str]) -> str:
    """A list of names, and of one that alone."""
    return of[0] if len(of) == 1 else f"[{', '.join(of)}]"


def _bounds(least: int, most: int) -> str:
    return str(least) if least == most else f"[{least}, {most}]"


def symbol(of: Symbol) -> str:
    """An entry of `dims`, without documentation."""
    entries: dict[str, str] = {}
    if of.length_of or of.length_axis:
        entries["length"] = of.length_of or of.length_axis
    elif of.is_list:
        entries["length"] = _bounds(*of.lengths(condition=False))
        if of.length_if:
            entries["length_if"] = flow({of.length_if.attribute: _bounds(*of.lengths(condition=True))})
    if of.rule:
        entries["rule"] = quoted(of.rule.text)
    for key in ("broadcast_to", "given_by", "multiple_of"):
        if getattr(of, key):
            entries[key] = getattr(of, key)
    if of.split:
        entries["split"] = f"[{', '.join(of.split)}]"
    return flow(entries)


def attribute(of: Attribute) -> str:
    """An entry of `attributes`, without documentation."""
    entries = {"type": of.kind.value}
    if of.enum:
        entries |= {"enum": of.enum, "choices": f"[{', '.join(map(text, of.choices))}]"}
    entries |= {"optional": "true"} if of.default is None else {"default": value(of.default)}
    for key, bound in (("min", of.minimum), ("max", of.maximum)):
        if bound is not None:
            entries[key] = real(bound) if of.kind.is_real else str(bound)
    if of.length:
        factor = f"{of.length.factor} * " if of.length.factor > 1 else ""
        entries["length"] = factor + of.length.symbol
    if of.axis_of:
        entries["axis_of"] = of.axis_of
    return flow(entries)
