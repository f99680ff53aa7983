"""What is remembered of the kernels that were chosen on GPUs, for this process and, in a file, for later ones.

The environment variable GRADSMITH_CACHE names the file, or is "off"; otherwise it is gradsmith/decisions.txt in the
user's cache folder. A context may name another as its `cache`, of which these functions then are::

    >>> import gradsmith
    >>> with gradsmith.policy(cache="off"):
    ...     gradsmith.cache.path()
    ''
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from . import _core
from ._policy import checked_path, current

__all__ = ["Choice", "choices", "clear", "export", "load", "path"]


@dataclass(frozen=True)
class Choice:
    """A problem and the kernel that it is computed with."""

    problem: str
    """Operator, types, shapes, layout and policy."""
    kernel: str
    """Source, engine and knobs."""
    mode: str
    milliseconds: float
    """0 where it was not timed."""
    workspace: int
    """In bytes."""
    error: float = 0.0
    """The largest error that was measured of its outputs, relative to their norm; 0 where none was."""


def path() -> str:
    """The file's path; empty where nothing is kept across processes."""
    told: str = _core.cache_file(current().cache_name())
    return told


def choices() -> list[Choice]:
    """What is remembered, the last used first."""
    return [Choice(*choice) for choice in _core.cached_choices(current().cache_name())]


def clear() -> None:
    """Forgets all choices, those in the file as well."""
    _core.clear_cache(current().cache_name())


def export(file: str | os.PathLike[str]) -> None:
    """Writes all choices to a file that `load` reads: here, or where GPU, driver, cuDNN and Gradsmith are the same."""
    _core.export_cache(os.fspath(checked_path("file", file)), current().cache_name())


def load(file: str | os.PathLike[str]) -> None:
    """Takes over what `export` wrote."""
    _core.import_cache(os.fspath(checked_path("file", file)), current().cache_name())
