"""From the plan to a folder: renders each file and writes or compares it, in several processes where there is
much to do."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeVar

from . import files, workers
from .artefacts import Artefact, artefacts
from .files import Changes
from .plan import Plan
from .render import render

Result = TypeVar("Result")

OPS_PER_PROCESS = 50  # fewer take less time than it takes to start a process


def write(folder: Path, plan: Plan, processes: int | None = None, without: Collection[str] = ()) -> Changes:
    """Brings the folder to what the plan says. Files that the last run wrote and this one does not are
    removed."""
    wanted = _wanted(plan, without)
    paths = [artefact.path for artefact in wanted]
    removed = files.remove_orphans(folder, paths)
    files.make_folders(folder, paths)
    changes = _work(lambda share: files.write(folder, render(share)), wanted, processes or _processes(plan))
    listing = files.write(folder, [files.manifest(paths)])  # after the files that it names
    return Changes.sum([*changes, listing, Changes(removed=removed)])


def compare(folder: Path, plan: Plan, processes: int | None = None, without: Collection[str] = ()) -> str:
    """A unified diff from what is on disk to what would be written; empty where they are equal."""
    wanted = _wanted(plan, without)
    paths = [artefact.path for artefact in wanted]
    diffs = _work(lambda share: files.compare(folder, render(share)), wanted, processes or _processes(plan))
    listing = files.compare(folder, [files.manifest(paths)])
    gone = files.compare(folder, [(path, "") for path in files.orphans(folder, paths)])
    merged = {path: diff for part in (*diffs, listing, gone) for path, diff in part.items()}
    return "".join(diff for _, diff in sorted(merged.items()))


def _wanted(plan: Plan, without: Collection[str]) -> list[Artefact]:
    """All but those in some folders."""
    return [artefact for artefact in artefacts(plan) if artefact.path.partition("/")[0] not in without]


def _processes(plan: Plan) -> int:
    return max(1, min(workers.processors(), len(plan.ops) // OPS_PER_PROCESS))


def _work(work: Callable[[list[Artefact]], Result], wanted: list[Artefact], processes: int) -> list[Result]:
    return workers.run(work, _shares(wanted, processes))


def _shares(wanted: list[Artefact], count: int) -> list[list[Artefact]]:
    """Runs of consecutive artefacts of about the same weight. Neighbours are of one kind: they have texts in
    common, and few processes are at one folder, where they would wait for each other."""
    total = max(1, sum(artefact.weight for artefact in wanted))
    shares: list[list[Artefact]] = [[] for _ in range(count)]
    before = 0
    for artefact in wanted:
        middle = before + artefact.weight / 2
        shares[min(int(middle * count / total), count - 1)].append(artefact)
        before += artefact.weight
    return shares
