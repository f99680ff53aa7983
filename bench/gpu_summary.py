"""Writes the tables of README.md and docs/performance.md that say how fast the gradients are on a GPU. Needs no GPU.

    python3 bench/gpu_summary.py [--check]

They come from bench/results: of each case counts the newest run that measured it, as gpu_runs.txt orders them, and
runs of one card are in no table of another. Cases of SUITE_OF are in the tables of operators, those of OTHER_SUITES in
a table of their own; bench/gpu_patterns.py makes that of kernel patterns, from docs/gpu-runs. A table stands between
the marks `<!-- gpu_summary: NAME -->` and `<!-- end -->`. --check writes nothing, and exits with 1 where a page has
other figures.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gpu_kinds
from gpu_batch_norm import floor_bytes
from gpu_figures import (
    Case,
    copy_rate,
    geometric_mean,
    group_of,
    heuristic_ratio,
    legacy_ratio,
    of_kind,
    ours,
    torch_ratio,
    torch_time,
)
from gpu_goals import ENOUGH_BYTES, LAYOUTS, LEGACY_GOALS, MEMORY_GOAL, TORCH_GOALS, memory_share
from gpu_patterns import RECORDS, Measured, patterns, read_records
from gpu_report import row, table_head
from gpu_suites import SUITES, read_suite

ROOT = Path(__file__).resolve().parents[1]
LAB = (
    "batch-norm-floor",
    "batch-norm-relu-floor",
    "batch-norm-small-floor",
    "batch-norms-of-one-kind",
    "layers-of-one-kind",
    "slower-than-pytorch",
    "uneven-padding",
)
PAGES = ("README.md", "docs/performance.md", *(f"docs/lab/{name}.md" for name in LAB))
RESULTS = "bench/results"
ORDER = "gpu_runs.txt"  # their names, oldest first: their dates do not tell those of one day apart
MARKED = re.compile(r"(<!-- gpu_summary: (\w+) -->)\n.*?^(<!-- end -->)", re.DOTALL | re.MULTILINE)

OPERATORS = {name: kind.op for name, kind in gpu_kinds.kinds().items()}
SUITE_OF = {
    "conv": "conv",
    "conv_transpose": "conv_transpose",
    "batch_norm": "batch_norm",
    "batch_norm_relu": "batch_norm",
}
# Layers of one kind each, and the operators that they were measured with.
OTHER_SUITES = {
    "depthwise": ("conv",),
    "few_channels": ("conv",),
    "first_layers": ("conv",),
    "large_filters": ("conv",),
    "named_kinds": ("conv",),
    "narrow_groups": ("conv",),
    "patches": ("conv",),
    "pointwise": ("conv",),
    "sequence": ("conv",),
    "small_channels": ("conv",),
    "uneven_padding": ("conv",),
    "batch_norm_small": ("batch_norm", "batch_norm_relu"),
    "odd_planes": ("batch_norm", "batch_norm_relu"),
}
SUITES_WITH_PAGES = ("uneven_padding",)
TYPES = {"f16": "half", "bf16": "bf16", "tf32": "TF32", "f32": "strict float", "f64": "double"}
PARAMETERS = {"f16/f32": "half, float parameters", "f16/f16": "half", "bf16/f32": "bf16, float parameters"}
PARAMETERS |= {"f32/f32": "float", "f64/f64": "double"}
# What the README shows.
SHORT = {
    "conv": ("f16", "tf32", "f64"),
    "conv_transpose": ("f16",),
    "batch_norm": ("f16/f32",),
    "batch_norm_relu": ("f16/f32",),
}
GROUPS = {"conv": TYPES, "conv_transpose": TYPES, "batch_norm": PARAMETERS, "batch_norm_relu": PARAMETERS}

Ratio = Callable[[Case], float | None]


@dataclass(frozen=True)
class Run:
    name: str
    results: dict[str, Any]

    def is_of(self, card: str) -> bool:
        gpu: str = self.results["machine"]["gpu"]
        return gpu.startswith(f"NVIDIA {card}")


@dataclass(frozen=True)
class Cell:
    """A geometric mean over cases, each of its newest run; of no case it is empty. What meets a goal is bold."""

    ratios: tuple[float, ...]
    runs: frozenset[str]

    @property
    def mean(self) -> float:
        return geometric_mean(self.ratios)

    def text(self, goal: float = math.inf) -> str:
        told = f"{self.mean:.2f}" if self.ratios else ""
        return f"**{told}**" if self.ratios and self.mean >= goal else told


def read_runs(folder: Path) -> list[Run]:
    names = (folder / ORDER).read_text(encoding="utf-8").split()
    return [Run(name, json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))) for name in names]


@functools.cache
def cases_in(suite: str) -> frozenset[tuple[str, str]]:
    """Each with its type and layout."""
    return frozenset((case["case"], group_of(case)) for case in read_suite(SUITES / f"{suite}.tsv"))


def newest_cases(runs: Sequence[Run], kind: str, group: str, suite: str = "") -> list[tuple[Case, Run]]:
    """Each case of the suite, by default the operator's, with the newest run that measured it."""
    newest: dict[str, tuple[Case, Run]] = {}
    for run in runs:
        for case in of_kind(run.results, kind):
            is_wanted = group_of(case) == group and "error" not in case
            if is_wanted and (case["case"], group) in cases_in(suite or SUITE_OF[kind]):
                newest[case["case"]] = case, run
    return list(newest.values())


def cell(runs: Sequence[Run], kind: str, group: str, ratio_of: Ratio, suite: str = "") -> Cell:
    newest = newest_cases(runs, kind, group, suite)
    found = [(value, run.name) for case, run in newest if (value := ratio_of(case)) is not None]
    return Cell(tuple(value for value, _ in found), frozenset(name for _, name in found))


def cells(runs: Sequence[Run], kind: str, types: str, ratio_of: Ratio) -> list[Cell]:
    """In NCHW and in NHWC."""
    return [cell(runs, kind, f"{types} {layout}", ratio_of) for layout in LAYOUTS]


# --- the tables -----------------------------------------------------------------------------------------------------


def short(runs: Sequence[Run]) -> list[str]:
    """PyTorch's time over ours, of a few types."""
    lines = table_head(["PyTorch's time over ours, mode `benchmark`", "cases", *LAYOUTS])
    for kind, groups in SHORT.items():
        for types in groups:
            found = cells(runs, kind, types, torch_ratio)
            name = f"{OPERATORS[kind]}, {GROUPS[kind][types]}"
            lines.append(row([name, count(found), *[one.text() for one in found]]))
    return lines


def whole(runs: Sequence[Run]) -> list[str]:
    """That, the same over cuDNN's legacy API, the goals, and where the figures are from."""
    heading = ["gradients in one call", "cases", "PyTorch / ours, NCHW", "NHWC", "goal", "legacy / ours, NCHW", "NHWC"]
    lines = table_head([*heading, "goal", "figures of"])
    for kind, groups in GROUPS.items():
        for types, name in groups.items():
            goals = TORCH_GOALS[kind][types]
            torch, legacy = (cells(runs, kind, types, ratio_of) for ratio_of in (torch_ratio, legacy_ratio))
            told = [one.text(goal) for one, goal in zip(torch, goals, strict=True)]
            told += [", ".join(f"{value:.1f}" for value in dict.fromkeys(goals))]
            legacy_goal = LEGACY_GOALS.get(kind, math.inf)
            told += [one.text(legacy_goal) for one in legacy]
            told += ["" if math.isinf(legacy_goal) else f"{legacy_goal:.1f}", sources(runs, torch)]
            if any(one.ratios for one in torch):
                lines.append(row([f"{OPERATORS[kind]}, {name}", count(torch), *told]))
    return lines


def least(runs: Sequence[Run]) -> list[str]:
    """The two cases of each type and layout that are the least over PyTorch."""
    lines = table_head(["the least of PyTorch / ours", *LAYOUTS])
    for kind, groups in GROUPS.items():
        for types, name in groups.items():
            told = [least_of(newest_cases(runs, kind, f"{types} {layout}")) for layout in LAYOUTS]
            if any(told):
                lines.append(row([f"{OPERATORS[kind]}, {name}", *told]))
    return lines


def least_of(newest: Sequence[tuple[Case, Run]]) -> str:
    found = [(value, case["case"]) for case, _ in newest if (value := torch_ratio(case)) is not None]
    return ", ".join(f"{value:.2f} `{name}`" for value, name in sorted(found)[:2])


def others(operators: Sequence[str], runs: Sequence[Run], alone: str = "") -> list[str]:
    """The suites of layers of one kind, by these operators, but for those with pages of their own, or the one `alone`;
    without a search where that was measured."""
    heading = ["suite of bench/suites", "type, layout", "cases", "PyTorch / ours", "least", "without a search"]
    lines = table_head([*heading, "figures of"])
    suites = [alone] if alone else [suite for suite in OTHER_SUITES if suite not in SUITES_WITH_PAGES]
    for suite in suites:
        for kind in (kind for kind in OTHER_SUITES[suite] if kind in operators):
            for types, name in GROUPS[kind].items():
                for layout in LAYOUTS:
                    group = f"{types} {layout}"
                    found, first = (cell(runs, kind, group, of, suite) for of in (torch_ratio, heuristic_ratio))
                    if found.ratios:
                        relu = " with ReLU" if kind == "batch_norm_relu" else ""
                        told = [count([found]), found.text(), f"{min(found.ratios):.2f}", first.text()]
                        lines.append(row([f"{suite}{relu}", f"{name}, {layout}", *told, sources(runs, [found])]))
    return lines


def memory(runs: Sequence[Run]) -> list[str]:
    """What waits for memory: shares of a copy's rate."""
    lines = table_head(["NCHW, NHWC", "cases", "least", "most", f"at {MEMORY_GOAL:g} or above"])
    for name, kinds, types, least_bytes in MEMORY_ROWS:
        found = [memory_shares(runs, kinds, [f"{one} {layout}" for one in types], least_bytes) for layout in LAYOUTS]
        told = [
            ", ".join(text(shares) if shares else "" for shares in found)
            for text in (count_of, lambda of: f"{min(of):.2f}", lambda of: f"{max(of):.2f}", count_of_goal)
        ]
        if any(found):
            lines.append(row([name, *told]))
    return lines


def memory_shares(runs: Sequence[Run], kinds: Sequence[str], groups: Sequence[str], least_bytes: float) -> list[float]:
    newest = [one for kind in kinds for group in groups for one in newest_cases(runs, kind, group)]
    shares = [memory_share(case, copy_rate(run.results), least_bytes) for case, run in newest]
    return [share for share in shares if share is not None]


def norm_floors(kind: str, suites: Sequence[str], runs: Sequence[Run]) -> list[str]:
    """Of each batch normalization of the suites what the least that memory allows takes of both times."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for suite in suites:
        for types in PARAMETERS:
            for layout in LAYOUTS:
                for case, run in newest_cases(runs, kind, f"{types} {layout}", suite):
                    found.setdefault((case["case"], layout), {})[types] = floor_shares(case, run)
    lines = table_head(["X", "layout", *PARAMETERS.values()])
    for (name, layout), told in found.items():
        lines.append(row([name, layout, *(told.get(types, "") for types in PARAMETERS)]))
    return lines


def floor_shares(case: Case, run: Run) -> str:
    rate = copy_rate(run.results)
    times = ours(case, "backward"), torch_time(case, "backward")
    return ", ".join(f"{floor_bytes(case) / (1e9 * time) / rate:.2f}" if time and rate else "" for time in times)


def count_of(shares: Sequence[float]) -> str:
    return str(len(shares))


def count_of_goal(shares: Sequence[float]) -> str:
    """All of them are bold."""
    reached = sum(share >= MEMORY_GOAL for share in shares)
    return f"**{reached}**" if reached == len(shares) else str(reached)


CONVOLUTIONS = ("conv", "conv_transpose")
MEMORY_ROWS = [
    (f"dB alone, {name}{', from 100 MB on' if least_bytes > ENOUGH_BYTES else ''}", CONVOLUTIONS, types, least_bytes)
    for name, types in (("half and bf16", ("f16", "bf16")), ("float and TF32", ("f32", "tf32")), ("double", ("f64",)))
    for least_bytes in (ENOUGH_BYTES, 100e6)
] + [
    (f"{OPERATORS[kind]}, {name}", (kind,), (types,), ENOUGH_BYTES)
    for kind in ("batch_norm", "batch_norm_relu")
    for types, name in PARAMETERS.items()
]

# What makes a table, and of which card's runs.
TABLES: dict[str, tuple[Callable[[Sequence[Run]], list[str]], str]] = {
    "short": (short, "H200"),
    "whole": (whole, "H200"),
    "least": (least, "H200"),
    "other_convolutions": (functools.partial(others, ("conv",)), "H200"),
    "uneven_padding": (functools.partial(others, ("conv",), alone="uneven_padding"), "H200"),
    "other_batch_norms": (functools.partial(others, ("batch_norm", "batch_norm_relu")), "H200"),
    "memory": (memory, "H200"),
    "norm_floors": (functools.partial(norm_floors, "batch_norm", ("batch_norm", "odd_planes")), "H200"),
    "norm_floors_relu": (functools.partial(norm_floors, "batch_norm_relu", ("batch_norm", "odd_planes")), "H200"),
    "norm_floors_small": (functools.partial(norm_floors, "batch_norm", ("batch_norm_small",)), "H200"),
    "whole_h100": (whole, "H100"),
    "least_h100": (least, "H100"),
}
PATTERNS = "patterns"  # the mark of the table that comes from docs/gpu-runs


def count(found: Sequence[Cell]) -> str:
    return ", ".join(dict.fromkeys(str(len(one.ratios)) for one in found if one.ratios))


def sources(runs: Sequence[Run], found: Sequence[Cell]) -> str:
    """Links to the runs, as docs/performance.md has them."""

    def link(name: str) -> str:
        told = name.removeprefix("gpu_2026-").replace("_h200", "").replace("_h100", "").replace("_", " ")
        return f"[{told}](../{RESULTS}/{name}.json)"

    used = {name for one in found for name in one.runs}
    return ", ".join(link(run.name) for run in runs if run.name in used)


# --- the pages ------------------------------------------------------------------------------------------------------


def with_tables(page: str, runs: Sequence[Run], folder: str = "docs", records: Sequence[Measured] = ()) -> str:
    """The text of a page in a folder, below which links to runs begin."""
    up = "../" * (folder.count("/") + 1)

    def table(marked: re.Match[str]) -> str:
        if marked[2] == PATTERNS:
            return "\n".join([marked[1], *patterns(records), marked[3]])
        make, card = TABLES[marked[2]]
        lines = make([run for run in runs if run.is_of(card)])
        linked = [line.replace(f"](../{RESULTS}/", f"]({up}{RESULTS}/") for line in lines]
        return "\n".join([marked[1], *linked, marked[3]])

    return MARKED.sub(table, page)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only say which pages have other figures")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    runs = read_runs(options.root / RESULTS)
    records = list(read_records(options.root / RECORDS))
    stale = []
    for name in PAGES:
        page = options.root / name
        text = page.read_text(encoding="utf-8")
        if (made := with_tables(text, runs, str(Path(name).parent), records)) != text:
            stale.append(name)
            if not options.check:
                page.write_text(made, encoding="utf-8")
    for name in stale:
        print(f"{name}: {'other figures than the data; run bench/gpu_summary.py' if options.check else 'written'}")
    if not stale:
        print(f"{', '.join(PAGES)}: the tables are those of {len(runs)} runs and {len(records)} cases")
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
