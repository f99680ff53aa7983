#!/usr/bin/env python3
"""How long the generator takes on large schemas, start-up left out.

    python3 bench/codegen_benchmark.py [--ops 200 1000] [--runs 5] [--json FILE]

The schemas are made from ops.yaml: its operators again and again under new names, each with a signature and four
cases of its own, attributes and rows shared by alias as ops.yaml shares them. Times are medians of warm runs in one
process: reading and checking, planning and rendering, writing into an empty folder.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "codegen"))

from gradsmith_codegen import loader, output, plan, reader  # noqa: E402

GOALS = {200: 0.3, 1000: 1.5}  # seconds
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
    entry = re.sub(r"^(  - name|    gradient_of): (\w+)$", rf"\1: \2{suffix}", entry, flags=re.MULTILINE)
    anchor = re.findall(r"cases: [&*](\w+)", entry)[0]
    own = "".join(cases[anchor].splitlines(keepends=True)[:CASES])
    entry = re.sub(r"cases: .*\n(?:      - .*\n)*", lambda _: f"cases:\n{own}", entry)
    entry = re.sub(r"&(\w+) \{.*\}", r"*\1", entry)
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


def measure_all(counts: list[int], runs: int) -> dict[int, dict[str, float]]:
    with tempfile.TemporaryDirectory() as name:
        folders = {count: Path(name) / str(count) for count in counts}
        for folder in folders.values():
            folder.mkdir()
        return {count: measure(count, runs, folder) for count, folder in folders.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", type=int, nargs="+", default=[200, 1000], help="sizes of the schemas")
    parser.add_argument("--runs", type=int, default=5, help="warm runs, of which the median is shown")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    options = parser.parse_args()
    results = measure_all(options.ops, options.runs)
    print(f"{'ops':>6} {'read':>9} {'write':>9} {'total':>9} {'quickest':>9}   goal")
    for count, result in results.items():
        columns = " ".join(f"{seconds:8.3f}s" for seconds in result.values())
        goal = GOALS.get(count)
        verdict = "" if goal is None else f"{goal:.1f}s {'met' if result['total'] < goal else 'MISSED'}"
        print(f"{count:>6} {columns}   {verdict}")
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    missed = [count for count, goal in GOALS.items() if count in results and results[count]["total"] >= goal]
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
