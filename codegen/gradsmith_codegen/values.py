"""Typed reading of YAML nodes: words, numbers, lists and mappings, and what is wrong where one of these is
not there."""

from __future__ import annotations

import re
from collections.abc import Callable, Set
from typing import Concatenate, ParamSpec, TypeVar, cast

from . import faults, scalars
from .diagnostics import Diagnostic
from .entries import Entries
from .loader import MAX_DEPTH, Invalid, Mapping, Node, Quoted, Scalar, Sequence
from .spans import Span, Spanned
from .suggestions import nearest
from .text import NO_TEXT, Text, printable
from .vocabulary import Keys

P = ParamSpec("P")
T = TypeVar("T")
NumberFault = Callable[[Span | None, str, str, str], Diagnostic]

Alike = dict[tuple[str, ...], list[Diagnostic]]  # faults that are one mistake, by what they are about

MAX_MERGED = 128  # entries that one `<<` brings: those of long chains of merges grow with each

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")  # all but the tab


def quick_text(node: Node) -> str:
    """A word or quoted text; empty for all that needs a closer look."""
    if type(node) is Scalar:
        return node.value if scalars.is_word(node.value) else ""
    return node.value if type(node) is Quoted else ""


def quick_integers(node: Node) -> tuple[int, ...] | None:
    """A list of small numbers, as most are; None for all that needs a closer look."""
    if type(node) is not Sequence:
        return None
    try:
        values = [_DIGITS[item.value] for item in node.items if type(item) is Scalar]
    except KeyError:
        return None
    return tuple(values) if len(values) == len(node.items) else None


def describe(node: Node) -> str:
    """What stands there, as in "must be a list, not a mapping"."""
    if not isinstance(node, Scalar):
        return node.kind
    if not node.value and node.plain:
        return "nothing"
    if not node.value:
        return "empty text"
    text = scalars.shortened(node.value)
    if not node.plain:
        return f"the text '{text}'"
    return text if scalars.is_number(text) else f"'{text}'"


class ValueReader:
    """Reads values and keeps the faults. After a fault a reading function returns an empty or absent
    value."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self.fault_count = 0  # also of nodes that the loader found fault with
        self._results: dict[object, tuple[object, int]] = {}
        self._merge_depth = 0  # a merged mapping may itself merge another

    def report(self, diagnostic: Diagnostic) -> None:
        self.fault_count += 1
        self.diagnostics.append(diagnostic)

    def report_kind(self, node: Node, owner: str, expected: str) -> None:
        if isinstance(node, Invalid):
            self.fault_count += 1
        else:
            self.report(faults.wrong_kind(node.span, owner, expected, describe(node)))

    def once(
        self,
        what: object,
        node: Node,
        read: Callable[Concatenate[Node, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """What `read` makes of the node. Of one that aliases share it is kept under `what`; its faults are
        reported once and count for each who asks."""
        if not node.shared:
            return read(node, *args, **kwargs)
        key = (what, id(node))
        known = self._results.get(key)
        if known is None:
            before = self.fault_count
            result = read(node, *args, **kwargs)
            self._results[key] = (result, self.fault_count - before)
            return result
        self.fault_count += known[1]
        return cast(T, known[0])

    # -- Scalars ---

    def text(self, node: Node, owner: str, expected: str = "text") -> str:
        if type(node) is Scalar and node.value:
            if scalars.is_word(node.value):
                return node.value
            self.report(faults.yaml_surprise(node.span, scalars.misread_word(node.value)))
        elif type(node) is Quoted and node.value:
            return node.value
        else:
            self.report_kind(node, owner, expected)
        return ""

    def word_at(self, key: str, entries: Entries, owner: str, expected: str = "a name") -> str:
        """The text of an entry; empty where it is absent."""
        if key not in entries:
            return ""
        node = entries[key][1]
        return quick_text(node) or self.text(node, f"'{key}' of {owner}", expected)

    def sentence(self, node: Node) -> Text:
        """Documentation: a line of text."""
        before = self.fault_count
        text = node.value if type(node) is Quoted else quick_text(node) or self.text(node, "'doc'")
        if self.fault_count == before:
            problem = _sentence_problem(text)
            if problem:
                self.report(faults.bad_doc(node.span, problem))
        return Text(text)

    def doc(self, entries: Entries) -> Text:
        return self.sentence(entries["doc"][1]) if "doc" in entries else NO_TEXT

    def boolean(self, node: Node, owner: str) -> bool:
        if type(node) is Scalar:
            try:
                return scalars.boolean(node.value)
            except scalars.Surprise as surprise:
                self.report(faults.yaml_surprise(node.span, str(surprise)))
                return False
            except scalars.NotABoolean:
                pass
        self.report_kind(node, owner, "true or false")
        return False

    def integer(self, node: Node, owner: str, fault: NumberFault = faults.bad_number) -> int | None:
        return self._number(node, owner, scalars.integer, "an integer", fault)

    def extended_number(self, node: Node, owner: str, fault: NumberFault = faults.bad_number) -> float | None:
        """A number, or infinity."""
        return self._number(node, owner, scalars.extended_number, "a number", fault)

    def _number(
        self, node: Node, owner: str, read: Callable[[str], T], expected: str, fault: NumberFault
    ) -> T | None:
        if type(node) is Scalar and node.value:
            try:
                return read(node.value)
            except scalars.Surprise as surprise:
                self.report(faults.yaml_surprise(node.span, str(surprise)))
            except scalars.NotANumber as problem:
                self.report(fault(node.span, owner, expected, str(problem)))
        elif isinstance(node, Invalid):
            self.fault_count += 1
        else:
            self.report(fault(node.span, owner, expected, describe(node)))
        return None

    # -- Lists ---

    def items(self, node: Node, owner: str, expected: str = "a list") -> list[Node]:
        if type(node) is Sequence:
            return node.items
        self.report_kind(node, owner, expected)
        return []

    def integers(
        self, node: Node, owner: str, fault: NumberFault = faults.bad_number
    ) -> tuple[int, ...] | None:
        """A list of integers; None where the list or any of its entries is none."""
        quick = quick_integers(node)
        if quick is not None:
            return quick
        if type(node) is not Sequence:
            if isinstance(node, Invalid):
                self.fault_count += 1
            else:
                self.report(fault(node.span, owner, "a list of integers", describe(node)))
            return None
        values: list[int] = []
        for item in node.items:
            value = self.integer(item, f"an entry of {owner}", fault)
            if value is None:
                return None
            values.append(value)
        return tuple(values)

    def numbers(
        self, node: Node, owner: str, fault: NumberFault = faults.bad_number
    ) -> tuple[float, ...] | None:
        """A list of numbers; None where the list or any of its entries is none."""
        if type(node) is not Sequence:
            if isinstance(node, Invalid):
                self.fault_count += 1
            else:
                self.report(fault(node.span, owner, "a list of numbers", describe(node)))
            return None
        read = [self.extended_number(item, f"an entry of {owner}", fault) for item in node.items]
        return None if None in read else tuple([float(cast(float, value)) for value in read])

    def words(self, node: Node, owner: str) -> dict[str, Node]:
        """A list of words without repetition."""
        seen: dict[str, Node] = {}
        for item in self.items(node, owner, "a list of words"):
            word = quick_text(item) or self.text(item, f"an entry of {owner}", "a word")
            if word in seen:
                repeated = faults.repeated_entry(item.span, word, owner)
                self.report(repeated.noting("first given here", seen[word].span))
            elif word:
                seen[word] = item
        return seen

    # -- Mappings ---

    def entries(self, node: Node, owner: str) -> Entries:
        """A mapping's entries, those of `<<` included."""
        if type(node) is not Mapping:
            self.report_kind(node, owner, "a mapping")
            return {}
        return _quick_entries(node) or self.once("entries", node, self._read_entries)

    def _read_entries(self, node: Node) -> Entries:
        own: Entries = {}
        merged: Entries = {}
        merge_key: Scalar | None = None
        items = cast(Mapping, node).items
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, Scalar):
                self.report_kind(key, "a key", "a word")
                continue
            text = key.value
            if text in own:
                self._report_duplicate(key, own[text][0])
            elif text == "<<" and key.plain:
                if merge_key:
                    self._report_duplicate(key, merge_key)
                merge_key = merge_key or key
                merged = merged or self._merged(key, value)
            elif not key.plain or scalars.is_word(text):
                own[text] = (key, value)
            else:
                self.text(key, "a key", "a word")  # which says why it is none
        return {**merged, **own} if merged else own

    def _report_duplicate(self, key: Scalar, first: Scalar) -> None:
        duplicate = faults.duplicate_key(key.span, key.value)
        self.report(duplicate.noting("first given here", first.span))

    def _merged(self, key: Scalar, node: Node) -> Entries:
        """The entries that `<<` brings; where several mappings have a key, the first wins."""
        merged: Entries = {}
        if self._merge_depth == MAX_DEPTH:
            self.report(faults.too_deep(node.span, MAX_DEPTH))
            return merged
        self._merge_depth += 1
        left = MAX_MERGED
        for source in reversed(node.items if type(node) is Sequence else [node]):
            if type(source) is Mapping:
                is_long = len(source.items) > 2 * (MAX_MERGED + 1)  # it may have a `<<` of its own
                found = {} if is_long else self.entries(source, "")
                left -= len(found)
                if is_long or left < 0:
                    self.report(faults.too_many_merged(key.span, MAX_MERGED))
                    merged = {}
                    break
                merged.update(found)
            elif isinstance(source, Invalid):
                self.fault_count += 1
            else:
                self.report(faults.bad_merge(source.span, describe(source)))
        self._merge_depth -= 1
        return merged

    def known_keys(
        self, entries: Entries, owner: str, place: Spanned, keys: Keys, unknown_keys: Alike | None = None
    ) -> Set[str]:
        """Reports keys that are unknown or missing: the unknown ones to whom gathers them, where one does.
        Returns those that are absent and should not be: a missing key, or one that an unknown key is likely
        meant to be."""
        if keys.fit(entries):
            return _NO_KEYS
        absent = {key for key in keys.required if key not in entries}
        unknown = [key for key in entries if key not in keys]
        candidates = [key for key in keys.all if key not in entries]
        meant = {key: nearest(key, candidates) for key in unknown}
        strange = [key for key in unknown if not meant[key]]
        for group in (*([key] for key in unknown if meant[key]), strange):
            if group:
                diagnostic = faults.unknown_key(entries[group[0]][0].span, group, owner, candidates)
                if unknown_keys is None:
                    self.report(diagnostic)
                else:
                    self.fault_count += 1
                    unknown_keys.setdefault(tuple(group), []).append(diagnostic)
        missing = [key for key in keys.required if key in absent and key not in meant.values()]
        if missing and (
            len(strange) < len(entries) or not entries
        ):  # where all are strange, something else is meant altogether
            self.report(faults.missing_key(place.span, missing, owner))
        return absent | {key for key in meant.values() if key}


_DIGITS = {str(value): value for value in range(1000)}
_NO_KEYS: frozenset[str] = frozenset()


def _quick_entries(node: Mapping) -> Entries:
    """A mapping's entries where all keys are words, each is there once and none is `<<`; else nothing."""
    keys, values = node.items[::2], node.items[1::2]
    entries = {
        key.value: (key, value) for key, value in zip(keys, values, strict=True) if type(key) is Scalar
    }
    sound = len(entries) == len(keys) and "<<" not in entries and all(map(scalars.is_word, entries))
    return entries if sound else {}


def _sentence_problem(text: str) -> str:
    if not text.strip():
        return "is empty"
    if text.splitlines() != [text]:
        return "must be one line"
    control = _CONTROL.search(text)
    return f"must not hold the control character {printable(control[0])}" if control else ""
