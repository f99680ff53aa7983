"""What changed between two results of gpu_benchmark.py, beyond noise. Needs no GPU.

    python3 bench/gpu_compare.py BEFORE.json AFTER.json

A figure has changed where its median has, by more than both runs' own spread and 3 %. The drift, which is the median of
how PyTorch's figures changed, is taken off: clocks and drivers differ from run to run. Exits with 1 where something
became slower, or is no longer measured in a case that both ran.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gpu_figures
from gpu_figures import Case
from gpu_goals import NOISE
from gpu_kinds import kind_of


@dataclass(frozen=True)
class Figure:
    median: float  # milliseconds
    spread: float  # how far the median is above the least, as a part of it


@dataclass(frozen=True)
class Change:
    name: str  # of the case and the part
    group: str
    before: float  # milliseconds
    after: float
    drift: float  # of the runs: above 1 the later is slower in all
    noise: float  # what a change must exceed, as a factor

    @property
    def factor(self) -> float:
        """Above 1: slower than before."""
        return self.after / self.before / self.drift

    @property
    def verdict(self) -> str:
        if self.factor > self.noise:
            return "slower"
        return "faster" if self.factor < 1 / self.noise else "same"

    def __str__(self) -> str:
        return f"{self.name}: {self.before:.4g} -> {self.after:.4g} ms ({self.factor:.2f}x)"


def figure_of(case: Case, part: str) -> Figure | None:
    """Of the search by timing, which is what ratios are about."""
    figures = (case.get("results") or {}).get("ours") or {}
    figures = (figures.get("benchmark") or {} if kind_of(case).by_mode else figures).get(part) or {}
    median = figures.get("median")
    if not median:
        return None
    return Figure(float(median), float(median) / float(figures.get("minimum") or median) - 1)


def in_both(before: dict[str, Any], after: dict[str, Any]) -> Iterator[tuple[Case, Case, str]]:
    """The cases that both ran and their parts, in the order of the later run."""
    old = {(case["kind"], case["name"]): case for case in before["cases"]}
    for case in after["cases"]:
        earlier = old.get((case["kind"], case["name"]))
        if earlier is not None:
            yield from ((earlier, case, part) for part in kind_of(case).parts)


def drift_between(before: dict[str, Any], after: dict[str, Any]) -> float:
    times = [[gpu_figures.torch_time(case, part) for case in pair] for *pair, part in in_both(before, after)]
    found = [late / early for early, late in times if early and late]
    return statistics.median(found) if found else 1.0


def changes(before: dict[str, Any], after: dict[str, Any]) -> Iterator[Change]:
    """Of all figures that both have."""
    drift = drift_between(before, after)
    for earlier, case, part in in_both(before, after):
        old, new = figure_of(earlier, part), figure_of(case, part)
        if old and new:
            yield Change(
                name=f"{case['name']} {part}",
                group=f"{case['kind']} {gpu_figures.group_of(case)}",
                before=old.median,
                after=new.median,
                drift=drift,
                noise=max(NOISE, 1 + old.spread + new.spread),
            )


def lost(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Figures of cases that both ran, which only the earlier has."""
    return [
        f"{case['name']} {part}"
        for earlier, case, part in in_both(before, after)
        if figure_of(earlier, part) and not figure_of(case, part)
    ]


def report(before: dict[str, Any], after: dict[str, Any]) -> tuple[str, bool]:
    """The text, and whether nothing became worse."""
    found = list(changes(before, after))
    pairs = len({case["name"] for _, case, _ in in_both(before, after)})
    lines = [
        f"{len(found)} figures of {pairs} cases in both (before: {len(before['cases'])}, after: {len(after['cases'])})",
        f"PyTorch took {drift_between(before, after):.3f} times as long: factors are divided by that, milliseconds not",
    ]
    for group in dict.fromkeys(change.group for change in found):
        factors = [change.factor for change in found if change.group == group]
        lines.append(f"  {group:28} {gpu_figures.geometric_mean(factors):.3f}x the time, {len(factors)} figures")
    for verdict in ("slower", "faster"):
        some = sorted((c for c in found if c.verdict == verdict), key=lambda c: c.factor, reverse=verdict == "slower")
        lines += [f"{verdict}: {len(some)}", *(f"  {change}" for change in some)]
    gone = lost(before, after)
    if gone:
        lines += [f"no longer measured: {len(gone)}", *(f"  {name}" for name in gone)]
    return "\n".join(lines), not gone and all(change.verdict != "slower" for change in found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    arguments = parser.parse_args()
    text, good = report(*(json.loads(path.read_text(encoding="utf-8")) for path in (arguments.before, arguments.after)))
    print(text)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
