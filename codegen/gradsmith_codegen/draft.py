"""A schema between the reader and the checks: what could be read, and which parts had faults."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from . import chains
from .model import Op, Symbol
from .source_files import SourceFiles


@dataclass(slots=True)
class Draft:
    """An operator as far as it could be read. `broken` names the parts of its entry that had faults."""

    op: Op
    broken: set[str]
    declared: dict[str, Symbol]  # the entries of `dims`, used or not


@dataclass
class Document:
    """A schema as far as it could be read."""

    files: SourceFiles
    version: int
    domain: str
    since_version: int
    drafts: list[Draft]

    @cached_property
    def drafts_by_name(self) -> dict[str, Draft]:
        """Of two of one name the first counts; those without one are not here."""
        return {draft.op.name: draft for draft in reversed(self.drafts) if draft.op.name}

    @cached_property
    def all_have_names(self) -> bool:
        return all(draft.op.name for draft in self.drafts)

    @cached_property
    def gradient_circles(self) -> dict[str, list[str]]:
        """Operators that are each the gradient of the next, the last that of the first: by the first of their
        names, with which the list begins."""
        names = sorted(self.drafts_by_name)
        forward = {name: self.drafts_by_name[name].op.gradient_of for name in names}
        found = chains.circles({name: other for name, other in forward.items() if other})
        return {circle[0]: circle for circle in found}
