"""What a mistyped word may be meant to be, and words that are listed in a message."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice

MAX_COMPARISONS = 5000  # of words in one run: many faults among many words are told without a guess
_MAX_WORD = 80  # characters of a word that is worth a guess
_MAX_LISTED = 20  # words of a list in a message

_comparisons_left: ContextVar[list[int] | None] = ContextVar("comparisons_left", default=None)


@contextmanager
def bounded_guesses() -> Iterator[None]:
    """What is guessed of mistyped words within takes no more than MAX_COMPARISONS in all."""
    token = _comparisons_left.set([MAX_COMPARISONS])
    try:
        yield
    finally:
        _comparisons_left.reset(token)


def _may_compare(count: int) -> bool:
    left = _comparisons_left.get() or [MAX_COMPARISONS]
    if count > left[0]:
        return False
    left[0] -= count
    return True


def nearest(word: str, known: Collection[str], but: str = "") -> str:
    """The known word that is most like this one; empty where none is like it. `but` is never meant."""
    if len(word) > _MAX_WORD or not _may_compare(len(known)):
        return ""
    candidates = [one for one in sorted(known) if one != but and len(one) <= _MAX_WORD]
    by_lower = {candidate.lower(): candidate for candidate in candidates}
    if len(word) == 1:  # no other letter is near
        return by_lower.get(word.lower(), "")
    near = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[near[0]] if near else ""


def did_you_mean(word: str, known: Collection[str], but: str = "") -> str:
    """`; did you mean 'half'?`, or nothing where no known word is near."""
    near = nearest(word, known, but)
    return f"; did you mean '{near}'?" if near else ""


def instead(word: str, known: Collection[str]) -> str:
    """`; did you mean 'half'?`, or all that could be meant where no known word is near."""
    several = "one of " if len(known) > 1 else ""
    expected = f"; expected {several}{', '.join(_some(known))}" if known else ""
    return did_you_mean(word, known) or expected


def listing(words: Collection[str]) -> str:
    """`'a', 'b' and 'c'`."""
    *head, last = [f"'{word}'" for word in islice(words, _MAX_LISTED)]
    if len(words) > _MAX_LISTED:
        return f"{', '.join([*head, last])} and {len(words) - _MAX_LISTED} others"
    return f"{', '.join(head)} and {last}" if head else last


def _some(words: Collection[str]) -> list[str]:
    """All of a short list, the first and how many more there are of a long one."""
    others = len(words) - _MAX_LISTED
    return [*islice(words, _MAX_LISTED), *([f"{others} others"] if others > 0 else [])]


def either(words: Iterable[str]) -> str:
    """`int, float or ints`."""
    *head, last = words
    return f"{', '.join(head)} or {last}" if head else last
