#!/usr/bin/env python3
"""How long the generator takes on large schemas, start-up left out.

    python3 bench/codegen_benchmark.py [--ops 200 1000] [--runs 5] [--json FILE]

The schemas are made from ops.yaml: its operators again and again under new names, each with a signature and four
cases of its own, attributes and rows shared by alias as ops.yaml shares them. Times are medians of warm runs in one
process: reading and checking, planning and rendering, writing into an empty folder. That folder is in memory, which is
what the goals are for: the generator's own time; and then on disk, where the file system's comes on top.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "codegen"))

from gradsmith_codegen import grammar, loader, output, plan, reader, workers  # noqa: E402

# Seconds: on a server of many processors, and on two.
GOALS = {200: 0.3, 1000: 1.5}
GOALS_OF_TWO = {200: 0.6, 1000: 2.5}
CASES = 4


def large_schema(count: int) -> str:
    """ops.yaml, and then copies of its entries under new names until there are `count` operators."""
    text = (ROOT / "ops.yaml").read_text(encoding="utf-8")
    starts = [match.start() for match in re.finditer(r"^  - name: ", text, re.MULTILINE)]
    entries = [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]
    cases = dict(re.findall(r"^    cases: &(\w+)\n((?:      - .*\n)+)", text, re.MULTILINE))
    schema = text[: starts[0]] + "".join(entries[:count])
    for i in range(len(entries), count):
        schema += copy_of(entries[i % len(entries)], f"V{i // len(entries)}", cases)
    return schema


def copy_of(entry: str, suffix: str, cases: dict[str, str]) -> str:
    longest = grammar.MAX_NAME - len(suffix)
    name = rf"^(  - name|    gradient_of): ([A-Z]\w{{0,{longest - 1}}})\w*$"
    entry = re.sub(name, rf"\1: \2{suffix}", entry, flags=re.MULTILINE)
    entry = re.sub(
        r"^    cases:(?: [&*](\w+))?\n((?:      - .*\n)*)",  # an anchor or alias, else they are in the entry itself
        lambda match: "    cases:\n" + "".join(cases.get(match[1], match[2]).splitlines(keepends=True)[:CASES]),
        entry,
        flags=re.MULTILINE,
    )
    entry = re.sub(r"&(\w+) (?:\{.*\}|\[[^]]*\])", r"*\1", entry)
    return re.sub(r"&(\w+)\n(?:      .*\n)+", r"*\1\n", entry)


def time_once(schema_path: Path, out: Path) -> dict[str, float]:
    with loader.paused_collector():  # as the command line runs
        start = time.perf_counter()
        schema, diagnostics = reader.load_schema(schema_path)
        if schema is None:
            sys.exit("\n".join(map(str, diagnostics)))
        read = time.perf_counter()
        output.write(out, plan.make_plan(schema, shards=8))
        end = time.perf_counter()
    return {"read": read - start, "write": end - read, "total": end - start}


def measure(count: int, runs: int, folder: Path) -> dict[str, float]:
    path = folder / "ops.yaml"
    path.write_text(large_schema(count), encoding="utf-8")
    time_once(path, folder / "warm-up")
    samples = [time_once(path, folder / str(run)) for run in range(runs)]
    medians = {key: statistics.median(sample[key] for sample in samples) for key in samples[0]}
    return medians | {"quickest": min(sample["total"] for sample in samples)}


def measure_in(parent: Path, counts: list[int], runs: int) -> dict[int, dict[str, float]]:
    """The results by the number of operators, for output folders below `parent`."""
    results = {}
    for count in counts:
        with tempfile.TemporaryDirectory(dir=parent) as name:
            results[count] = measure(count, runs, Path(name))
    return results


def file_system(path: Path) -> str:
    """The kind of file system that holds the path, `tmpfs` or `ext4`; empty where it cannot be told."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    except OSError:
        return ""
    kinds = {Path(mount[1]): mount[2] for mount in mounts}
    return next((kinds[place] for place in (path, *path.parents) if place in kinds), "")


def folders() -> dict[str, Path]:
    """Where to write: into memory, and on disk, each where there is one."""
    memory, temporary = Path("/dev/shm"), Path(tempfile.gettempdir()).resolve()
    found = {"memory": memory} if file_system(memory) == "tmpfs" and os.access(memory, os.W_OK) else {}
    if file_system(temporary) == "tmpfs":
        return found or {"memory": temporary}
    return found | {"disk": temporary}


def goals() -> dict[int, float]:
    return GOALS_OF_TWO if workers.processors() <= 2 else GOALS


def show(where: str, kind: str, results: dict[int, dict[str, float]], held_to_goals: bool) -> None:
    print(f"output {'in memory' if where == 'memory' else 'on disk'} ({kind or 'file system unknown'})")
    print(f"{'ops':>6} {'read':>9} {'write':>9} {'total':>9} {'quickest':>9}   goal")
    for count, result in results.items():
        columns = " ".join(f"{seconds:8.3f}s" for seconds in result.values())
        goal = goals().get(count) if held_to_goals else None
        verdict = "" if goal is None else f"{goal:.1f}s {'met' if result['total'] < goal else 'MISSED'}"
        print(f"{count:>6} {columns}   {verdict}".rstrip())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", type=int, nargs="+", default=[200, 1000], help="sizes of the schemas")
    parser.add_argument("--runs", type=int, default=5, help="warm runs, of which the median is shown")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    options = parser.parse_args()
    places = folders()
    held = next(iter(places))  # memory; where there is none, the disk
    report: dict[str, dict[str, object]] = {}
    missed = False
    for where, folder in places.items():
        kind, results = file_system(folder), measure_in(folder, options.ops, options.runs)
        show(where, kind, results, where == held)
        report[where] = {"file_system": kind, "ops": results}
        if where == held:
            missed = any(results[count]["total"] >= goal for count, goal in goals().items() if count in results)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
