"""What the figures of gpu_benchmark.py come to: a summary with the goals, tables and charts. Needs no GPU.

    python3 bench/gpu_report.py [RESULTS.json ...] [--out FOLDER]

Without a file these are made of every run that bench/results keeps. They go to a folder of the run's name in
build/bench-results, or in FOLDER. Times are medians in milliseconds; a ratio above 1 says that gradsmith is faster.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gpu_charts
from gpu_figures import (
    Case,
    geometric_mean,
    legacy_ratio,
    of_kind,
    ratios_by_group,
    torch_ratio,
)
from gpu_goals import NOISE, goals, in_short, slower_than_legacy, slower_than_torch
from gpu_kinds import families, kinds

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "bench/results"
OUT = ROOT / "build/bench-results"
RESULTS_FILE = "results.json"  # of a run, in its own folder

COMPARISONS: tuple[tuple[str, str, Callable[[Case], float | None]], ...] = tuple(
    (f"{kind.short}, {peer} / ours, {kind.outputs}", name, ratio_of)
    for name, kind in kinds().items()
    for peer, ratio_of in (("torch", torch_ratio), ("legacy", legacy_ratio))
    if peer == "torch" or kind.legacy_parts
)


def summary(results: dict[str, Any]) -> str:
    lines = ["geometric means, speed of gradsmith (above 1: it is faster)"]
    for title, kind, ratio_of in COMPARISONS:
        groups = ratios_by_group(of_kind(results, kind), ratio_of)
        for group, entries in groups.items():
            worst_case, worst = min(entries, key=lambda entry: entry[1])
            mean = geometric_mean(value for _, value in entries)
            lines.append(f"  {title:40} {group:14} {mean:6.2f}  of {len(entries):2}, least {worst:.2f} {worst_case}")
    for title, slower in (
        ("slower than the legacy API", slower_than_legacy(results["cases"])),
        ("slower than PyTorch", slower_than_torch(results["cases"], NOISE)),
    ):
        lines.append(f"{title}: {len(slower)}")
        lines += [f"  {factor:5.2f}x {name}" for name, factor in slower[:12]]
    lines += [line for family in families() for line in family.summary(results)]
    lines += [f"left out for lack of time: {json.dumps(results.get('left_out', {}))}"]
    lines += [f"control: {json.dumps(results.get('control', {}))}"]
    lines += [f"host us: {json.dumps(results.get('host', {}))}"]
    lines += [f"first calls: {json.dumps(results.get('first_calls', {}))}"]
    return "\n".join([*lines, *in_short(results), *map(str, goals(results))])


def markdown(results: dict[str, Any]) -> str:
    lines = [f"- {key}: {value}" for key, value in results.get("machine", {}).items()]
    tables = [kind.rows(of_kind(results, name)) for name, kind in kinds().items()]
    tables += [table for family in families() for table in family.tables(results)]
    for heading, *rows in filter(None, tables):
        lines += ["", *table_head(heading), *map(row, rows)]
    return "\n".join(lines) + "\n"


def row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def table_head(names: list[str]) -> list[str]:
    return [row(names), row(["---"] * len(names))]


def write_json(results: dict[str, Any], file: Path) -> None:
    """One line for each case, so that a file stays small and a change of it can be read."""
    fields = [f"{json.dumps(key)}: {lines_of(value)}" for key, value in results.items()]
    file.write_text("{\n" + ",\n".join(fields) + "\n}\n", encoding="utf-8")


def lines_of(value: Any) -> str:
    if not isinstance(value, list) or not value:
        return json.dumps(value)
    return "[\n" + ",\n".join(map(json.dumps, value)) + "\n]"


def write(results: dict[str, Any], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_json(results, folder / RESULTS_FILE)
    (folder / "results.md").write_text(markdown(results), encoding="utf-8")
    text = summary(results)
    (folder / "summary.txt").write_text(text + "\n", encoding="utf-8")
    try:
        gpu_charts.draw_all(results, folder)
    except ImportError as error:
        print(f"no charts: {error} (it is in the environment of ./run test, .venv)", file=sys.stderr)
    print(text)


def run_name(file: Path) -> str:
    """A run's file has its name in bench/results; where it was measured, the folder has it."""
    return file.parent.name if file.name == RESULTS_FILE else file.stem


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="*", help="results of gpu_benchmark.py, or their folder")
    parser.add_argument("--out", type=Path, default=OUT, help="the folder of the runs' folders")
    options = parser.parse_args(arguments)
    missed = False
    for path in options.results or sorted(KEPT.glob("gpu_*.json")):
        file = path / RESULTS_FILE if path.is_dir() else path
        results = json.loads(file.read_text(encoding="utf-8"))
        print(f"{run_name(file)}:")
        write(results, options.out / run_name(file))
        missed = missed or any(goal.verdict == "MISSED" for goal in goals(results))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
