"""What differs in the arguments of an operator: tensors, the symbols of their shapes, and attributes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from . import scalars
from .changes import Findings, renames
from .model import IGNORED, Attribute, Op, Symbol, Tensor
from .shapes import Dim
from .text import NO_TEXT

_LARGEST = {
    True: sys.float_info.max,
    False: scalars.INT64_MAX,
}  # in place of a bound that there is not, by `is_real`
_UNBOUNDED = "any"


def compare_arguments(old: Op, new: Op, found: Findings) -> dict[str, str]:
    """Tells `found` of all that differs. Returns the new names, by the old ones, of what is called otherwise
    now: tensors, attributes and dims."""
    renamed = _compare_tensors("input", old.inputs, new.inputs, found)
    renamed |= _compare_tensors("output", old.outputs, new.outputs, found)
    renamed |= _Shapes(old, new).compare(found)
    return renamed | _compare_attributes(old, new, renamed, found)


N = TypeVar("N", Tensor, Attribute)


def _compare_names(
    what: str, old: Sequence[N], new: Sequence[N], nameless: Callable[[N], N], found: Findings
) -> tuple[dict[str, N], list[N], dict[str, str]]:
    """Tells of what is gone, has another name or another order. Returns the old ones by their names, what was
    added, and the new names of what is called otherwise."""
    olds, news = {one.name: one for one in old}, {one.name: one for one in new}
    renamed = renames(
        {name: nameless(one) for name, one in olds.items()},
        {name: nameless(one) for name, one in news.items()},
    )
    for name, one in olds.items():
        if name in renamed:
            found.breaking(f"{what} '{name}' is called '{renamed[name]}' now", news[renamed[name]].origin)
        elif name not in news:
            found.breaking(f"{what} '{name}' is gone", one.origin, is_of_old=True)
    before = [name for name in olds if name in news]
    after = [name for name in news if name in olds]
    if before != after:
        order = f"{', '.join(after)}, was {', '.join(before)}"
        found.breaking(f"the order of {what}s is {order}", news[after[0]].origin)
    added = [one for one in new if one.name not in olds and one.name not in renamed.values()]
    return olds, added, renamed


# ----------------------------------------------------------------------------------------------------
# Tensors


def _compare_tensors(
    role: str, old: Sequence[Tensor], new: Sequence[Tensor], found: Findings
) -> dict[str, str]:
    """Returns the new names of what is called otherwise, by the old ones."""
    olds, added, renamed = _compare_names(
        role, old, new, lambda one: replace(one, name="", doc=NO_TEXT), found
    )
    last_kept = max((index for index, one in enumerate(new) if one not in added), default=-1)
    for index, tensor in enumerate(new):
        if tensor.name in olds:
            _compare_tensor(role, olds[tensor.name], tensor, found)
        elif tensor in added:
            is_last = index > last_kept
            kind = "optional " if tensor.optional else ""
            where = "at the end" if is_last else "before others"
            found.either(
                is_last and tensor.optional, f"{kind}{role} '{tensor.name}' was added {where}", tensor.origin
            )
    return renamed


def _compare_tensor(role: str, old: Tensor, new: Tensor, found: Findings) -> None:
    name = f"{role} '{new.name}'"
    if old.type != new.type:
        found.breaking(f"type of {name} is {new.type}, was {old.type}", new.at("type").line)
    if bool(old.list) != bool(new.list):
        now, was = ("a list of tensors", "one tensor") if new.list else ("one tensor", "a list of tensors")
        found.breaking(f"{name} is {now}, was {was}", new.origin)
    for key in (
        "optional",
        "shape_only",
        "may_be_on_host",
    ):  # each lets a call give less, or give it elsewhere
        was, now = getattr(old, key), getattr(new, key)
        if was != now:
            found.either(now, f"{name} is {'' if now else 'no longer '}{key}", new.origin)
    if old.gradient_of != new.gradient_of:
        _compare_gradients(name, old, new, found)
    for key in ("in_place_of", "shape_of"):
        before, after = getattr(old, key), getattr(new, key)
        if before != after:
            is_gain = not before and key != "shape_of"
            found.either(
                is_gain, f"{key} of {name} is {after or 'gone'}, was {before or 'not there'}", new.origin
            )
    if (old.outside or IGNORED) != (new.outside or IGNORED):
        now, was = new.outside or IGNORED, old.outside or IGNORED
        found.either(now == IGNORED, f"outside of {name} is {now}, was {was}", new.origin)
    if old.doc != new.doc:
        found.compatible(f"doc of {name} changed", new.at("doc").line)


def _compare_gradients(name: str, old: Tensor, new: Tensor, found: Findings) -> None:
    """Of the same tensors in another order it is the same gradient."""
    if set(old.gradient_of) == set(new.gradient_of):
        return
    before, after = (", ".join(one.gradient_of) for one in (old, new))
    is_gain = set(old.gradient_of) < set(new.gradient_of)
    message = f"gradient_of of {name} is {after or 'gone'}, was {before or 'not there'}"
    found.either(is_gain, message, new.origin)


# ----------------------------------------------------------------------------------------------------
# Shapes


class _Shapes:
    """Shapes are compared by where symbols are equal, so that these may be called otherwise."""

    def __init__(self, old: Op, new: Op) -> None:
        self._old_symbols = {symbol.name: symbol for symbol in old.symbols}
        self._new_symbols = {symbol.name: symbol for symbol in new.symbols}
        news = {tensor.name: tensor for tensor in new.inputs + new.outputs}
        self._tensors = [
            (tensor, news[tensor.name]) for tensor in old.inputs + old.outputs if tensor.name in news
        ]
        self._new_names: dict[str, str] = {}  # by the old ones
        self._old_names: dict[str, str] = {}

    def compare(self, found: Findings) -> dict[str, str]:
        """Returns the new names of symbols, and of the parts that formulas know them by, by the old ones."""
        renamed: dict[str, str] = {}
        for old, new in self._tensors:
            if not self._match(old, new):
                message = f"shape of '{new.name}' is {new.shape_text}, was {old.shape_text}"
                found.breaking(message, new.at("like" if new.like else "shape").line)
        for name, new_name in self._new_names.items():
            old_symbol, new_symbol = self._old_symbols.get(name), self._new_symbols.get(new_name)
            if old_symbol and new_symbol:
                self._compare_symbol(old_symbol, new_symbol, found)
                renamed |= dict(zip(old_symbol.split, new_symbol.split, strict=False))
        return renamed | self._new_names

    def _match(self, old: Tensor, new: Tensor) -> bool:
        if len(old.shape) != len(new.shape):
            return False
        matches = [self._match_dim(*dims) for dims in zip(old.shape, new.shape, strict=True)]
        return all(matches)

    def _match_dim(self, old: Dim, new: Dim) -> bool:
        """A symbol that is met for the first time stands for the other's."""
        if replace(old, symbol="", text="") != replace(new, symbol="", text=""):
            return False
        if old.symbol not in self._new_names and new.symbol not in self._old_names:
            self._new_names[old.symbol], self._old_names[new.symbol] = new.symbol, old.symbol
        return self._new_names.get(old.symbol) == new.symbol

    def _renamed(self, name: str) -> str:
        return self._new_names.get(name, name)

    def _compare_symbol(self, old: Symbol, new: Symbol, found: Findings) -> None:
        name = f"symbol '{new.name}'"
        if old.name != new.name:
            found.compatible(f"symbol '{old.name}' is called '{new.name}' now", new.origin)
        was = replace(
            old,
            length_of=self._renamed(old.length_of),
            broadcast_to=self._renamed(old.broadcast_to),
            rule=old.rule and replace(old.rule, arguments=tuple(map(self._renamed, old.rule.arguments))),
        )
        if not new.length_of:
            _compare_lengths(name, was, new, found)
        for key in ("length_of", "broadcast_to", "multiple_of"):  # which bind calls
            _compare_bond(f"{key} of {name}", getattr(was, key), getattr(new, key), new.at(key).line, found)
        for key in ("length_axis", "given_by"):
            before, after = getattr(was, key), getattr(new, key)
            if before != after:
                found.breaking(
                    f"{key} of {name} is {after or 'gone'}, was {before or 'not there'}", new.origin
                )
        if was.rule != new.rule:
            before, after = (rule.text if rule else "no rule" for rule in (was.rule, new.rule))
            found.breaking(f"rule of {name} is {after}, was {before}", new.at("rule").line)
        for key in ("split", "doc"):  # the dims that formulas alone know, and words
            if getattr(old, key) != getattr(new, key):
                found.compatible(f"{key} of {name} changed", new.at(key).line)


def _compare_bond(what: str, was: str, now: str, line: int, found: Findings) -> None:
    """What it has to agree with: agreeing with nothing takes all that there was."""
    if was != now:
        found.either(not now, f"{what} is {now or 'gone'}, was {was or 'not there'}", line)


def _compare_lengths(name: str, old: Symbol, new: Symbol, found: Findings) -> None:
    """Those where an attribute is true are the same as where it is false, if nothing else is said."""
    _compare_range(f"length of {name}", *_lengths(old, new, condition=False), new.at("length").line, found)
    conditions = [one.length_if.attribute for one in (old, new) if one.length_if]
    if not conditions:
        return
    if len(set(conditions)) > 1:
        before, after = conditions
        found.breaking(f"length of {name} hangs on '{after}', was on '{before}'", new.at("length_if").line)
        return
    what = f"length of {name} where '{conditions[0]}' is true"
    line = new.at("length_if" if new.length_if else "length").line
    _compare_range(what, *_lengths(old, new, condition=True), line, found)


def _lengths(old: Symbol, new: Symbol, *, condition: bool) -> tuple[tuple[float, float], tuple[float, float]]:
    return old.lengths(condition), new.lengths(condition)


# ----------------------------------------------------------------------------------------------------
# Attributes


def _compare_attributes(old: Op, new: Op, new_names: Mapping[str, str], found: Findings) -> dict[str, str]:
    """`new_names` are those of tensors and dims, by the old ones. Returns those of attributes likewise."""
    olds, added, renamed = _compare_names(
        "attribute", old.attributes, new.attributes, lambda one: replace(one, name="", doc=NO_TEXT), found
    )
    for attribute in added:  # which calls that do not know of it need not give
        found.compatible(f"attribute '{attribute.name}' was added", attribute.origin)
    for attribute in new.attributes:
        if attribute.name in olds:
            _compare_attribute(olds[attribute.name], attribute, new_names, found)
    return renamed


def _compare_attribute(old: Attribute, new: Attribute, new_names: Mapping[str, str], found: Findings) -> None:
    name = f"attribute '{new.name}'"
    if old.kind is not new.kind or old.enum != new.enum:
        now, was = (one.enum or one.kind.value for one in (new, old))
        found.breaking(f"type of {name} is {now}, was {was}", new.at("type").line)
        return
    if old.default != new.default:
        now, was = (_value(one) for one in (new, old))
        found.breaking(f"default of {name} is {now}, was {was}", new.at("default").line)
    _compare_range(f"range of {name}", _bounds(old), _bounds(new), new.at("min").line, found)
    for choice in old.choices:
        if choice not in new.choices:
            found.breaking(f"choice '{choice}' of {name} is gone", new.at("choices").line)
    for choice in new.choices:
        if choice not in old.choices:
            found.compatible(f"choice '{choice}' of {name} was added", new.at("choices").line)
    was, now = _entries(old, new_names), _entries(new, {})
    _compare_bond(f"length of {name}", was, now, new.at("length").line, found)
    _compare_bond(f"axis_of of {name}", old.axis_of, new.axis_of, new.at("axis_of").line, found)
    if old.doc != new.doc:
        found.compatible(f"doc of {name} changed", new.at("doc").line)


def _entries(attribute: Attribute, new_names: Mapping[str, str]) -> str:
    """How many a list has."""
    length = attribute.length
    return f"{length.factor} * {new_names.get(length.symbol, length.symbol)}" if length else ""


def _value(attribute: Attribute) -> str:
    """Of the default, as the schema spells it."""
    value = attribute.default
    if value is None:
        return "not there"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(list(value)) if isinstance(value, tuple) else str(value)


def _bounds(attribute: Attribute) -> tuple[float, float]:
    largest = _LARGEST[attribute.kind.is_real]
    minimum = -largest if attribute.minimum is None else attribute.minimum
    return minimum, largest if attribute.maximum is None else attribute.maximum


def _compare_range(
    what: str, was: tuple[float, float], now: tuple[float, float], line: int, found: Findings
) -> None:
    if was != now:
        is_wider = now[0] <= was[0] and now[1] >= was[1]
        found.either(is_wider, f"{what} is {_range_text(now)}, was {_range_text(was)}", line)


def _range_text(bounds: tuple[float, float]) -> str:
    least, most = (_UNBOUNDED if abs(bound) in _LARGEST.values() else f"{bound:g}" for bound in bounds)
    return f"[{least}, {most}]"
