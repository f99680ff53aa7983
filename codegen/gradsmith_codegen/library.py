"""The library that operators are built into, and the names in which two libraries differ."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Library:
    """What the operators are built into: the runtime's own library, or one beside it."""

    name: str = "gradsmith"  # of its namespace, and of the folder of its headers
    families: frozenset[str] = (
        frozenset()
    )  # of kernels, those that are in its namespace and not the runtime's

    is_selection: bool = False  # of the runtime's own operators

    @property
    def is_builtin(self) -> bool:
        return self.name == "gradsmith"

    @property
    def guard(self) -> str:
        """What the names of macros begin with."""
        return self.name.upper()

    @property
    def image_prefix(self) -> str:
        """What the names of images of CUDA kernels begin with, so that those of two libraries differ."""
        return "selected_" if self.is_selection else "" if self.is_builtin else f"{self.name}_"

    @property
    def runtime(self) -> str:
        """How a header calls what is the runtime's."""
        return "" if self.is_builtin else "::gradsmith::"

    @property
    def using(self) -> str:
        """What sources see the runtime's names by."""
        return "" if self.is_builtin else "using namespace ::gradsmith;\n"

    def namespace_of(self, function: str) -> str:
        """Of a kernel or a shape rule: `family::Name`."""
        family = function.partition("::")[0]
        return f"{self.name if family in self.families else 'gradsmith'}::{family}"


BUILTIN = Library()
