"""A change between two schemas, and whether who calls the operators notices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from .spans import Spanned
from .text import printable


class Effect(Enum):
    """On programs and schemas that use what there was before."""

    COMPATIBLE = "compatible"
    BREAKING = "breaking"


@dataclass(frozen=True, slots=True)
class Change:
    effect: Effect
    op: str  # empty where it is the file's as a whole
    message: str
    is_of_old: bool  # the line is one of the old file
    line: int


class Findings:
    """The changes of one operator, in the order in which they are found."""

    def __init__(self, op: str = "") -> None:
        self.op = op
        self.changes: list[Change] = []

    def breaking(self, message: str, place: int | Spanned, is_of_old: bool = False) -> None:
        self._add(Effect.BREAKING, message, place, is_of_old)

    def compatible(self, message: str, place: int | Spanned, is_of_old: bool = False) -> None:
        self._add(Effect.COMPATIBLE, message, place, is_of_old)

    def either(self, is_compatible: bool, message: str, place: int | Spanned) -> None:
        self._add(Effect.COMPATIBLE if is_compatible else Effect.BREAKING, message, place, False)

    def _add(self, effect: Effect, message: str, place: int | Spanned, is_of_old: bool) -> None:
        line = place if isinstance(place, int) else place.line
        self.changes.append(Change(effect, self.op, printable(message), is_of_old, line))


T = TypeVar("T")


def renames(old: Mapping[str, T], new: Mapping[str, T]) -> dict[str, str]:
    """The new names, by the old ones, of what is gone and equals something that was added."""
    added = {name: value for name, value in new.items() if name not in old}
    found: dict[str, str] = {}
    for name, value in old.items():
        if name not in new:
            same = next((other for other, its in added.items() if its == value), "")
            if same:
                found[name] = same
                del added[same]
    return found
