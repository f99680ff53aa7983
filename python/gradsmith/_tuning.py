"""Choosing kernels ahead of time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TextIO

from gradsmith import _core, _device
from gradsmith._policy import SearchMode, current


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


class ProgressBar:
    """A line on a terminal that shows the search; elsewhere nothing is written."""

    _WIDTH = 30

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._is_open = False

    def __call__(self, *told: Any) -> None:
        progress = Progress(*told)
        if not self._is_terminal:
            return
        done = self._WIDTH * progress.tried // max(progress.candidates, 1)
        bar = "#" * done + "-" * (self._WIDTH - done)
        self._stream.write(
            f"\r[{bar}] {progress.tried}/{progress.candidates} {progress.seconds:5.1f} s"
            f"  best {progress.best_milliseconds:.4f} ms {progress.best[:40]:<40}"
        )
        self._stream.flush()
        self._is_open = True

    def close(self) -> None:
        if self._is_open:
            self._stream.write("\n")
            self._is_open = False


def tune(
    problem: Callable[..., Any] | str | Iterable[str],
    *arguments: Any,
    device: str = "cuda:0",
    mode: SearchMode = "benchmark",
    budget: float = 10.0,
    progress: bool | Callable[..., None] = True,
    **keywords: Any,
) -> None:
    """Chooses the kernels of calls ahead of time, by timing them, and remembers the choice.

    `problem` is a function of this package with the arguments of a call, whose outputs are left alone, or text with
    a problem on each line, as files for ``gradsmith-tune`` have it::

        gradsmith.tune(gradsmith.conv_grad, dY, X, W, strides=(2, 2))
        gradsmith.tune("ConvGrad half X=128x64x56x56 W=64x64x3x3 pads=1,1,1,1 layout=NHWC")

    `device` is where the problems of a text are tuned. `budget` is in seconds for each problem. `progress` is whether
    a bar is drawn on a terminal, or a function that takes what `Progress` holds. The other policies are those of the
    surrounding context. On a CPU there is nothing to choose: calls are checked and that is all.
    """
    place = _device.parse(device)
    bar = ProgressBar(sys.stderr)
    report = progress if callable(progress) else bar if progress else None
    context = replace(current(), search_mode=mode, search_budget_seconds=budget, on_search_progress=report)
    try:
        if callable(problem):
            problem(*arguments, **keywords, context=context.preparing())
            return
        if arguments or keywords:
            raise TypeError("arguments were given with a text; expected them with a function of gradsmith")
        policies = context.preparing().policies
        for line in problems_of(problem):
            _core.tune_problem(line, policies, *place)
    finally:
        bar.close()


def problems_of(text: str | Iterable[str]) -> list[str]:
    """The lines that describe problems, without comments."""
    lines = text.splitlines() if isinstance(text, str) else text
    return [problem for line in lines if (problem := line.partition("#")[0].strip())]
