"""Work shared out among processes.

They are forked, so that all that is known here is known there without being sent; only results travel,
through pipes.
"""

from __future__ import annotations

import os
import pickle
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

Share = TypeVar("Share")
Result = TypeVar("Result")


def processors() -> int:
    """How many processes can run at once: 1 where there is no fork."""
    if not hasattr(os, "fork"):
        return 1
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def run(work: Callable[[Share], Result], shares: Sequence[Share]) -> list[Result]:
    """What `work` makes of each share, in order: the first here, each other one in a process of its own.

    Raises what `work` raised, of several the first, once all have ended.
    """
    workers: list[_Worker] = []
    try:
        for share in shares[1:]:
            workers.append(_start(work, share))  # noqa: PERF401 - those started are known where one fails to
        results = [work(share) for share in shares[:1]]
    finally:
        outcomes = [worker.outcome() for worker in workers]
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
        results.append(cast(Result, outcome))
    return results


@dataclass(frozen=True, slots=True)
class _Worker:
    process: int
    pipe: int

    def outcome(self) -> object:
        """The result, or the exception that came in its stead."""
        with os.fdopen(self.pipe, "rb") as pipe:
            data = pipe.read()
        _, status = os.waitpid(self.process, 0)
        if status:
            ending = os.waitstatus_to_exitcode(status)
            return ChildProcessError(f"a worker process ended without a result (status {ending})")
        return pickle.loads(data)  # noqa: S301 - from our own process


def _start(work: Callable[[Share], Result], share: Share) -> _Worker:
    reading, writing = os.pipe()
    process = os.fork()
    if process:
        os.close(writing)
        return _Worker(process, reading)
    status = 1
    try:
        os.close(reading)
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(_outcome(work, share), pipe)
        status = 0
    finally:
        os._exit(status)  # nothing of what the parent has open is ours to flush or to clean up


def _outcome(work: Callable[[Share], Result], share: Share) -> object:
    try:
        return work(share)
    except Exception as error:
        error.add_note(f"In a worker process:\n{traceback.format_exc()}")  # which does not travel by itself
        return error
