"""Choosing kernels ahead of time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TextIO

from . import _core, _device, cache
from ._bars import Line
from ._policy import Context, SearchMode, current
from ._text import PACKAGE, class_name, quoted, shortened
from .cache import Choice


@dataclass(frozen=True)
class Progress:
    """How far the search for a kernel has come."""

    problem: str
    candidate: str
    tried: int
    candidates: int
    best: str
    best_milliseconds: float
    seconds: float


@dataclass(frozen=True)
class Tuned:
    """What `tune` did."""

    chosen: tuple[Choice, ...]
    """The choices that were made, or made anew; those that were remembered already are not among them."""
    note: str
    """Why there are none; empty where there are."""


class ProgressBar:
    """A line on a terminal that shows the search; elsewhere nothing is written."""

    _WIDTH = 30

    def __init__(self, stream: TextIO | None) -> None:
        self._line = Line(stream)

    def __call__(self, *told: Any) -> None:
        progress = Progress(*told)
        done = self._WIDTH * progress.tried // max(progress.candidates, 1)
        bar = "#" * done + "-" * (self._WIDTH - done)
        self._line.show(
            f"[{bar}] {progress.tried}/{progress.candidates} {progress.seconds:5.1f} s"
            f"  best {progress.best_milliseconds:.4f} ms {progress.best}"
        )

    def close(self) -> None:
        self._line.end()


def tune(
    problem: Callable[..., Any] | str | Iterable[str],
    *arguments: Any,
    device: str = "cuda:0",
    mode: SearchMode = "benchmark",
    budget: float = 10.0,
    progress: bool | Callable[..., None] = True,
    **keywords: Any,
) -> Tuned:
    """Chooses the kernels of calls ahead of time, by timing them, and remembers the choice.

    `problem` is a function of `gradsmith` or `gradsmith.torch` with the arguments of a call, whose outputs are left
    alone, or text with a problem on each line, as files for ``gradsmith-tune`` have it::

        gradsmith.tune(gradsmith.conv_grad, dY, X, W, strides=(2, 2))
        gradsmith.tune("ConvGrad half X=128x64x56x56 W=64x64x3x3 pads=1,1,1,1 layout=NHWC")

    `device` is where the problems of a text are tuned. `budget` is in seconds for each problem. `progress` is whether
    a bar is drawn on a terminal, or a function that takes what `Progress` holds. The other policies are those of the
    surrounding context. What was chosen is returned. On a CPU there is nothing to choose: calls are checked, and the
    result's `note` says so. Of a function of `gradsmith.torch` the kernels of the forward pass are chosen, not those
    of the gradients.
    """
    place = _device.parse(device)
    if isinstance(budget, float) and not budget >= 0:
        raise ValueError(f"budget is {budget}; expected seconds, 0 or more")
    bar = ProgressBar(sys.stderr)
    report = progress if callable(progress) else bar if progress else None
    context = replace(current(), search_mode=mode, search_budget_seconds=budget, on_search_progress=report)
    known = set(cache.choices())
    try:
        if callable(problem):
            _prepare(problem, arguments, keywords, context)
            is_on_cpu = all(_device.is_on_cpu(one) for one in arguments if one is not None)
        else:
            if arguments or keywords:
                raise TypeError(f"arguments were given with a text; expected them with a function of {PACKAGE}")
            policies = context.preparing().policies
            for line in problems_of(problem):
                _core.tune_problem(line, policies, *place)
            is_on_cpu = not place.is_cuda
    finally:
        bar.close()
    return _tuned(tuple(choice for choice in cache.choices() if choice not in known), is_on_cpu)


def _prepare(function: Callable[..., Any], arguments: Any, keywords: dict[str, Any], context: Context) -> None:
    """Makes a call of one of our functions that does everything but the work."""
    if not _is_ours(function):
        name = shortened(str(getattr(function, "__qualname__", class_name(function))))
        raise TypeError(f"tune got the function {name}; expected one of {PACKAGE} or {PACKAGE}.torch")
    if "context" in keywords:
        raise TypeError(f"tune got a context; expected it to be entered: with context: {PACKAGE}.tune(...)")
    with context.preparing():
        function(*arguments, **keywords)


def _is_ours(function: Callable[..., Any]) -> bool:
    from ._ops import FUNCTIONS

    with_autograd = sys.modules.get(f"{PACKAGE}.torch")  # imported, if the function is from there
    return any(
        function is ours or function is getattr(with_autograd, ours.__name__, None) for ours in FUNCTIONS.values()
    )


def _tuned(chosen: tuple[Choice, ...], is_on_cpu: bool) -> Tuned:
    if is_on_cpu and not chosen:  # a library with oneDNN has several
        return Tuned(chosen, "nothing to choose: the CPU backend has one kernel for each problem")
    return Tuned(chosen, "" if chosen else "no choice was made that was not remembered already")


MOST_CHARACTERS = 1 << 24
"""A text of problems is no longer than this, all its lines together."""

_MOST_LINES = 100_000
_LONGEST_LINE = 1024


def problems_of(text: str | Iterable[str]) -> list[str]:
    """The lines that describe problems, without comments."""
    if isinstance(text, str) and len(text) > MOST_CHARACTERS:
        raise ValueError(f"a text of {len(text)} characters was given; expected problems in {MOST_CHARACTERS} at most")
    lines = text.splitlines() if isinstance(text, str) else text if isinstance(text, Iterable) else [text]
    problems = []
    for number, line in enumerate(lines):
        if number == _MOST_LINES:
            raise ValueError(f"more than {_MOST_LINES} lines were given; expected so many problems at most")
        if problem := _line(line).partition("#")[0].strip():
            problems.append(problem)
    return problems


def _line(line: object) -> str:
    if isinstance(line, str) and len(line) > _LONGEST_LINE:
        raise ValueError(f"a line has {len(line)} characters; expected a problem in {_LONGEST_LINE} at most")
    if isinstance(line, str):
        return line
    raise TypeError(
        f"tune got {quoted(line)} ({class_name(line)}); expected a function of {PACKAGE} or {PACKAGE}.torch, or text "
        'such as "ConvGrad half X=8x3x9x9 W=4x3x3x3"'
    )
