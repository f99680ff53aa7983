"""Contexts: the policies that calls are made under."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from operator import index
from types import TracebackType
from typing import Any, Literal, TypedDict, Unpack
from weakref import WeakValueDictionary

from . import _core
from ._text import PACKAGE, class_name, quoted, shortened

if "Context" in globals():
    raise ImportError(
        f"{__name__} holds the policies that calls are under, so that it cannot be reloaded; reload "
        f"{PACKAGE}, or start a new process"
    )

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
    """Only kernels that give the same bits each time. None: for double only. Where it is True the kernel is not chosen
    by a clock either, unless search_mode is "benchmark"."""

    allow_tf32: bool = False
    """Float may be multiplied in TF32: 10 bits of mantissa, and faster."""

    allow_reduced_accuracy: bool = False
    """Kernels whose measured error is beyond the promise of their type may be taken where they are faster; batch
    normalization may then lose the digits that a large mean costs."""

    exact_padding: bool = False
    """Only kernels of convolutions that never multiply padding, which is zero: what is NaN or infinite in an input
    then reaches those results alone that have a product with it. On the CPU that is so always."""

    workspace_limit: int | None = None
    """Most bytes of workspace that a call may take."""

    search_mode: SearchMode | None = None
    """How a kernel is chosen. "default": a fixed deterministic choice. "heuristic": what an earlier search remembered,
    otherwise the quickest of a few that heuristics put first. "benchmark": the fastest, timed once. None: what the
    environment variable GRADSMITH_SEARCH_MODE says, otherwise "heuristic"."""

    search_budget_seconds: float = 10.0
    """For "benchmark": after so many seconds no further kernel is tried on a problem, but for what "heuristic" would
    take, where `first_choice_seconds` is not 0 and `deterministic` not True."""

    first_choice_seconds: float = 0.008
    """For "heuristic": when a problem is new, other kernels are timed beside the first by heuristics, and no further
    one is begun after so many seconds and four runs of the first; longer where that takes more than 5 ms. With 0, and
    where `deterministic` is True, the first is taken, by no clock."""

    cache: str | os.PathLike[str] | None = None
    """The file in which choices of kernels are kept across processes; "off": kept for this process alone. Contexts of
    one file share its choices. None: what the environment variable GRADSMITH_CACHE says, otherwise a file in the
    user's cache folder."""

    threads: int = 0
    """How many threads the CPU may use, the caller's among them; 0: one for each processor."""

    on_search_progress: Callable[..., None] | None = None
    """Called while kernels are tried, with the arguments of `gradsmith.Progress`."""

    policies: Any = field(init=False, repr=False, compare=False)
    is_preparing: bool = field(init=False, repr=False, default=False)

    def __post_init__(self) -> None:
        self._check()
        self._set_preparing(False)

    def _check(self) -> None:
        for name in ("workspace_limit", "threads", *_SECONDS):
            object.__setattr__(self, name, _as_int(getattr(self, name)))
        for name, (kind, expected) in _KINDS.items():
            value = getattr(self, name)
            if not isinstance(value, kind) or (isinstance(value, bool) and bool not in kind):
                raise _wrong_type(name, value, expected)
        for name in _SECONDS:
            seconds = getattr(self, name)
            if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
                raise _wrong_type(name, seconds, "a number")
        if self.cache is not None:
            checked_path("cache", self.cache)
        if self.on_search_progress is not None and not callable(self.on_search_progress):
            raise _wrong_type("on_search_progress", self.on_search_progress, "a function or None")
        if self.workspace_limit is not None and not 0 <= self.workspace_limit < 1 << 64:
            raise ValueError(
                f"workspace_limit is {quoted(self.workspace_limit)}; expected a number of bytes, 0 or more"
            )
        if not 0 <= self.threads < 1 << 31:
            raise ValueError(f"threads is {quoted(self.threads)}; expected 0, for one on each processor, or more")
        for name in _SECONDS:
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} is {quoted(getattr(self, name))}; expected 0 or more")

    def _options(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self) if one.init}

    def _set_preparing(self, is_preparing: bool) -> None:
        options = {**self._options(), "cache": self.cache_name()}
        object.__setattr__(self, "policies", _core.Policies(**options, is_preparing=is_preparing))
        object.__setattr__(self, "is_preparing", is_preparing)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, or what another process reads, has threads and workspaces of its own."""
        return _made, (self._options(), self.is_preparing)

    def cache_name(self) -> str | None:
        """The cache as text; None where it is that of the environment."""
        return None if self.cache is None else os.fsdecode(self.cache)

    def preparing(self) -> Context:
        """A context whose calls do everything but the work: they choose and build kernels."""
        return _made(self._options(), True)

    @cached_property
    def text(self) -> str:
        """The policies in a text that `of_text` reads, for graphs of torch.compile, which hold no objects."""
        told: dict[str, Any] = {**self._options(), "cache": self.cache_name(), "is_preparing": self.is_preparing}
        # Of a function the text says whose it is: it is found while that context lives.
        told["on_search_progress"] = None if self.on_search_progress is None else id(self)
        text = json.dumps(told)
        _by_text[text] = self
        return text

    def __enter__(self) -> Context:
        _enter((*entered.get(), self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        contexts = entered.get()
        # The first is that of calls outside of any `with`. Where generators leave theirs late, it is not the last.
        at = next((i for i in range(len(contexts) - 1, 0, -1) if contexts[i] is self), None)
        if at is None:
            raise RuntimeError("a context is left that was not entered in this thread or task; expected it in a `with`")
        _enter((*contexts[:at], *contexts[at + 1 :]))


_SECONDS = ("search_budget_seconds", "first_choice_seconds")

_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "deterministic": ((bool, type(None)), "True, False or None"),
    "allow_tf32": ((bool,), "True or False"),
    "allow_reduced_accuracy": ((bool,), "True or False"),
    "exact_padding": ((bool,), "True or False"),
    "workspace_limit": ((int, type(None)), "a number of bytes or None"),
    "search_mode": ((str, type(None)), "'default', 'heuristic', 'benchmark' or None"),
    "threads": ((int,), "a number of threads"),
}


def _as_int(value: Any) -> Any:
    """What stands for an integer, such as NumPy's, as one; all else as it is."""
    try:
        return value if isinstance(value, bool) else index(value)
    except TypeError:
        return value


def _wrong_type(name: str, value: object, expected: str) -> TypeError:
    return TypeError(f"{name} is {quoted(value)} ({class_name(value)}); expected {expected}")


_LONGEST_PATH = 4096


def checked_path(name: str, path: Any) -> Any:
    """A path that a file can have."""
    text = os.fsdecode(path)
    if len(text) > _LONGEST_PATH or "\0" in text:
        raise ValueError(
            f"{name} is {quoted(text)}; expected a path of at most {_LONGEST_PATH} characters, none of them null"
        )
    return path


def _made(options: dict[str, Any], is_preparing: bool) -> Context:
    context = Context(**options)
    if is_preparing:
        context._set_preparing(True)
    return context


# The contexts of which there is a text somewhere.
_by_text: WeakValueDictionary[str, Context] = WeakValueDictionary()

# The contexts that this thread or task is within, the innermost last.
entered: ContextVar[tuple[Context, ...]] = ContextVar(f"{PACKAGE}.context", default=(Context(),))
# The text of the innermost, which torch.compile looks at before it takes a graph.
entered_text: ContextVar[str] = ContextVar(f"{PACKAGE}.policies", default=entered.get()[-1].text)


def _enter(contexts: tuple[Context, ...]) -> None:
    entered.set(contexts)
    entered_text.set(contexts[-1].text)


def of_text(text: str) -> Context:
    """The context whose `text` it is or, where that is gone, one of the same policies."""
    return _by_text.get(text) or _read(text)


@lru_cache(maxsize=32)
def _read(text: str) -> Context:
    told = json.loads(text)
    is_preparing = told.pop("is_preparing")
    return _made({**told, "on_search_progress": None}, is_preparing)


def current() -> Context:
    """The context that calls without one of their own are made under."""
    return entered.get()[-1]


def given(context: object) -> Context:
    """What a caller gave to a function as its context."""
    if not isinstance(context, Context):
        raise _wrong_type("context", context, f"a {PACKAGE}.Context")
    return context


class Changes(TypedDict, total=False):
    """The policies that a `with` may change: the fields of `Context`."""

    deterministic: bool | None
    allow_tf32: bool
    allow_reduced_accuracy: bool
    exact_padding: bool
    workspace_limit: int | None
    search_mode: SearchMode | None
    search_budget_seconds: float
    first_choice_seconds: float
    cache: str | os.PathLike[str] | None
    threads: int
    on_search_progress: Callable[..., None] | None


def policy(**changes: Unpack[Changes]) -> Context:
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
        raise TypeError(f"there is no policy '{shortened(unknown[0])}'; expected {', '.join(known)}")
    changed = replace(current(), **changes)
    try:
        return _shared(changed)
    except TypeError:  # a callback that has no hash
        return changed


@lru_cache(maxsize=32)
def _shared(context: Context) -> Context:
    return context


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_core.abandon_threads)
