"""Contexts: the policies that calls are made under."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from types import TracebackType
from typing import Any, Literal

from gradsmith import _core

SearchMode = Literal["default", "heuristic", "benchmark"]


@dataclass(frozen=True)
class Context:
    """The policies of calls. Give it to a function as `context`, or use it in a `with`::

        >>> import numpy as np
        >>> import gradsmith
        >>> with gradsmith.Context(deterministic=True):
        ...     Y = gradsmith.conv(np.ones((1, 1, 3, 3)), np.ones((1, 1, 2, 2))).Y

    Where calls run is no policy: arrays say at each call on which device and stream they are. Make a context once
    and keep it: with it go the CPU's threads and the GPU's workspace. All but `threads` is for CUDA.
    """

    deterministic: bool | None = None
    """Only kernels that give the same bits each time. None: for double only."""

    allow_tf32: bool = False
    """Float may be multiplied in TF32: 10 bits of mantissa, and faster."""

    workspace_limit: int | None = None
    """Most bytes of workspace that a call may take."""

    search_mode: SearchMode | None = None
    """How a kernel is chosen. "default": a fixed deterministic choice. "heuristic": what an earlier search
    remembered, otherwise cuDNN's advice. "benchmark": the fastest, timed once. None: what the environment variable
    GRADSMITH_SEARCH_MODE says, otherwise "heuristic"."""

    search_budget_seconds: float = 10.0
    """For "benchmark": after so many seconds no further kernel is tried on a problem."""

    cache: str | os.PathLike[str] | None = None
    """The file in which choices of kernels are kept across processes; "off": kept for this process alone. Contexts of
    one file share its choices. None: what the environment variable GRADSMITH_CACHE says, otherwise a file in the
    user's cache folder."""

    threads: int = 0
    """How many threads the CPU may use, the caller's among them; 0: one for each processor."""

    on_search_progress: Callable[..., None] | None = None
    """Called while kernels are tried, with the arguments of `gradsmith.Progress`."""

    policies: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "policies", _core.Policies(**self._options(), is_preparing=False))

    def _options(self) -> dict[str, Any]:
        options = {one.name: getattr(self, one.name) for one in fields(self) if one.init}
        return {**options, "cache": self.cache_name()}

    def cache_name(self) -> str | None:
        """The cache as text; None where it is that of the environment."""
        return None if self.cache is None else os.fspath(self.cache)

    def preparing(self) -> Context:
        """A context whose calls do everything but the work: they choose and build kernels."""
        prepared = replace(self)
        object.__setattr__(prepared, "policies", _core.Policies(**self._options(), is_preparing=True))
        return prepared

    def __enter__(self) -> Context:
        entered.set((*entered.get(), self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        entered.set(entered.get()[:-1])


# The contexts that this thread or task is within, the innermost last.
entered: ContextVar[tuple[Context, ...]] = ContextVar("gradsmith.context", default=(Context(),))


def current() -> Context:
    """The context that calls without one of their own are made under."""
    return entered.get()[-1]


def policy(**changes: Any) -> Context:
    """The surrounding context with other policies, for a `with`::

        >>> import gradsmith
        >>> with gradsmith.policy(deterministic=True, allow_tf32=False) as context:
        ...     context.deterministic
        True

    The keywords are the fields of `Context`. It holds for this thread, or asyncio task, alone. Equal policies share
    one context, so that this is cheap within a loop.
    """
    known = [one.name for one in fields(Context) if one.init]
    unknown = sorted(set(changes) - set(known))
    if unknown:
        raise TypeError(f"there is no policy '{unknown[0]}'; expected {', '.join(known)}")
    return _shared(replace(current(), **changes))


@lru_cache(maxsize=32)
def _shared(context: Context) -> Context:
    return context


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_core.abandon_threads)
