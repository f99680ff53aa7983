#!/usr/bin/env python3
"""Runs tests under compute-sanitizer in batches, several at a time, and keeps a line for each batch that has ended.

    tests/gpu/sanitize.py --tool racecheck --program build/gpu/tests/gradsmith_generated_tests \\
        --filter '*OutputSubsets/*_cuda*' --results build/gpu-results/racecheck.tsv --devices 0,1 --seconds 300

Run again with the same file of results it goes on with the tests that are not in it. What a tool reports within kernels
of cuDNN is counted apart: racecheck does not follow the barriers of its sm90 kernels. The exit status is 1 where a test
failed, or the tool reported anything that is not cuDNN's; 3 where the time was too short for all of them.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from threading import Lock

HEADING = "outcome\tseconds\treports\tof cuDNN\ttests"
# What the tools print for each thing that they find; the kernel's name is on that line or on the next.
REPORT = re.compile(r"^=+ (Error: |Warning: )?(Invalid|Uninitialized|Race|Program hit|Barrier error|Misaligned)")
OF_CUDNN = re.compile(r"sm\d+_xmma|cudnn|cutlass", re.IGNORECASE)
TOOL_FAILED = re.compile(r"^=+ (Error: (?!Race|Potential)|Target application)(?!.*returned an error)", re.MULTILINE)


@dataclass
class Outcome:
    name: str
    seconds: float
    reports: int
    of_cudnn: int
    tests: list[str]

    def line(self) -> str:
        return f"{self.name}\t{self.seconds:.1f}\t{self.reports}\t{self.of_cudnn}\t{':'.join(self.tests)}"


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    results = Path(options.results)
    known = known_tests(results)
    tests = [test for test in list_tests(options) if test not in known]
    batches = [tests[i : i + options.batch] for i in range(0, len(tests), options.batch)]
    print(f"{len(tests)} tests in {len(batches)} batches; {len(known)} had ended before", flush=True)
    outcomes = run_all(options, batches, results)
    return tell(outcomes, sum(map(len, batches)))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--tool", required=True, choices=["memcheck", "racecheck", "initcheck", "synccheck"])
    parser.add_argument("--program", required=True, help="a program of GoogleTest's, with its own arguments")
    parser.add_argument("--filter", default="*", help="as --gtest_filter")
    parser.add_argument("--results", required=True, help="the file of what has ended; it is added to")
    parser.add_argument("--devices", default="0", help="ordinals of the GPUs to use")
    parser.add_argument("--workers", type=int, default=6, help="how many run at a time on each GPU")
    parser.add_argument("--batch", type=int, default=8, help="how many tests one run has")
    parser.add_argument("--seconds", type=float, default=3600, help="after so long no run is begun, and all are ended")
    parser.add_argument("--sanitizer", default="compute-sanitizer", help="the command")
    return parser.parse_args(arguments)


def known_tests(results: Path) -> set[str]:
    """Those whose batch has ended well: others are run again."""
    if not results.exists():
        return set()
    lines = [line.split("\t") for line in results.read_text(encoding="utf-8").splitlines()]
    return {test for fields in lines if fields[0] == "passed" for test in fields[4].split(":")}


def list_tests(options: argparse.Namespace) -> list[str]:
    command = [*shlex.split(options.program), "--gtest_list_tests", f"--gtest_filter={options.filter}"]
    listed = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout
    tests, suite = [], ""
    for line in listed.splitlines():
        name = line.split("#")[0].rstrip()
        if not line.startswith(" "):
            suite = name if name.endswith(".") else ""
        elif suite:
            tests.append(suite + name.strip())
    return tests


def run_all(options: argparse.Namespace, batches: list[list[str]], results: Path) -> list[Outcome]:
    end = time.monotonic() + options.seconds
    places: SimpleQueue[str] = SimpleQueue()
    devices = options.devices.split(",")
    for device in devices * options.workers:
        places.put(device)
    outcomes: list[Outcome] = []
    lock = Lock()
    results.parent.mkdir(parents=True, exist_ok=True)
    if not results.exists():
        results.write_text(HEADING + "\n", encoding="utf-8")

    def run_one(batch: list[str]) -> None:
        if time.monotonic() >= end:
            return
        device = places.get()
        outcome = run_batch(options, batch, device, end)
        places.put(device)
        with lock:
            outcomes.append(outcome)
            with results.open("a", encoding="utf-8") as stream:
                stream.write(outcome.line() + "\n")

    with ThreadPoolExecutor(len(devices) * options.workers) as pool:
        list(pool.map(run_one, batches))
    return outcomes


def run_batch(options: argparse.Namespace, batch: list[str], device: str, end: float) -> Outcome:
    command = [*shlex.split(options.sanitizer), "--tool", options.tool, "--print-limit", "100000"]
    command += [*shlex.split(options.program), f"--gtest_filter={':'.join(batch)}", "--gtest_brief=1"]
    begin = time.monotonic()
    try:
        ran = subprocess.run(
            command,
            check=False,
            text=True,
            errors="replace",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=max(1.0, end - begin),
            env={**os.environ, "CUDA_VISIBLE_DEVICES": device},
        )
    except subprocess.TimeoutExpired:
        return Outcome("not ended", time.monotonic() - begin, 0, 0, batch)
    lines = ran.stdout.splitlines()
    reports = [" ".join(lines[i : i + 2]) for i, line in enumerate(lines) if REPORT.search(line)]
    of_cudnn = sum(bool(OF_CUDNN.search(report)) for report in reports)
    passed = re.search(r"^\[  PASSED  \] (\d+) test", ran.stdout, re.MULTILINE)
    is_whole = passed is not None and int(passed[1]) == len(batch) and "FAILED TEST" not in ran.stdout
    outcome = Outcome("passed", time.monotonic() - begin, len(reports), of_cudnn, batch)
    if not is_whole or TOOL_FAILED.search(ran.stdout) or len(reports) > of_cudnn:
        outcome.name = "failed"
        with Path(f"{options.results}.log").open("a", encoding="utf-8") as stream:
            stream.write(ran.stdout)
    return outcome


def tell(outcomes: list[Outcome], asked: int) -> int:
    count = {name: sum(len(o.tests) for o in outcomes if o.name == name) for name in ("passed", "failed")}
    reports = sum(outcome.reports for outcome in outcomes)
    of_cudnn = sum(outcome.of_cudnn for outcome in outcomes)
    left = asked - sum(count.values())
    print(
        f"{count['passed']} tests passed, {count['failed']} in batches with a failure, {left} not ended; "
        f"{reports} reports, {of_cudnn} of them in cuDNN's kernels"
    )
    if count["failed"]:
        return 1
    return 3 if left else 0


if __name__ == "__main__":
    sys.exit(main())
