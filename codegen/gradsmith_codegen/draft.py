"""A schema between the reader and the checks: what could be read, and which parts had faults."""

from __future__ import annotations

from dataclasses import dataclass

from .model import Op, Symbol


@dataclass(slots=True)
class Draft:
    """An operator as far as it could be read. `broken` names the parts of its entry that had faults."""

    op: Op
    broken: set[str]
    declared: dict[str, Symbol]  # the entries of `dims`, used or not


@dataclass(slots=True)
class Document:
    """A schema as far as it could be read."""

    name: str
    version: int
    domain: str
    since_version: int
    drafts: list[Draft]
