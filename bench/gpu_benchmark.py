#!/usr/bin/env python3
"""Gradsmith, cuDNN's legacy API and PyTorch on the same GPU, case by case.

    python3 bench/gpu_benchmark.py --program build/gpu/bench/gpu_benchmark [--out FOLDER] [--time-limit SECONDS]

Without --only, --batches or --workspaces all parts are run. The program gpu_benchmark is run in steps: it measures a
case and waits while PyTorch measures the same one, so that both find the same clocks. A control (a matrix product and
a copy) is timed before and after. Results are checked first, on small shapes, against PyTorch in float64 on the CPU.
docs/performance.md says how times are taken.

Writes results.json, results.md, summary.txt and charts; exits with 1 where a goal is missed or a result is wrong.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import math
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gpu_report
from gpu_checks import Checker
from gpu_goals import goals
from gpu_kinds import Part, families, parts
from gpu_peer import Torch, first_line
from gpu_program import Program, cudnn_of_torch
from gpu_suites import Case, case_name, is_wanted, read_suite, write_suite

SAVED_EVERY = 10.0  # seconds, should the rest come to nothing
DEATH = "the program died"
RUINED = ("CUDA_ERROR_ILLEGAL", "CUDA_ERROR_LAUNCH", "CUDA_ERROR_MISALIGNED")  # nothing works in a process after these


# --- the parts ------------------------------------------------------------------------------------------------------


PARTS = parts()


def chosen_parts(options: argparse.Namespace) -> list[Part]:
    """All of them, unless some are named; the cases of --suite in place of those that the one of --only has."""
    names = {options.only, *(part.name for part in PARTS if part.option and getattr(options, part.name))}
    chosen = [part for part in PARTS if part.name in names] or [part for part in PARTS if not part.must_be_named]
    if options.suite is None:
        return chosen
    return [
        replace(part, cases=lambda: read_suite(options.suite)) if part.name == options.only else part for part in chosen
    ]


def deadline_of(left: list[Part], end: float) -> float:
    """Until when the first of these may begin cases: its share of the time that is left."""
    share = left[0].weight / sum(part.weight for part in left)
    now = time.monotonic()
    return end if math.isinf(end) else now + share * max(end - now, 0)


def run_part(
    program: Program, peer: Torch, part: Part, options: argparse.Namespace, deadline: float, results: dict[str, Any]
) -> None:
    """Measures a part, case by case by the program and PyTorch."""
    cases = [case for case in part.cases() if is_wanted(case, options.filter)]
    results["left_out"][part.name] = len(cases)
    lines = results.setdefault(part.results, [])
    saved = time.monotonic()
    for case, line in lines_of(program, part, cases, options, deadline, results["machine"]):
        measure_torch(peer, part, case, line)
        lines.append(line | {"kind": part.kind or part.name})
        results["left_out"][part.name] -= 1
        if time.monotonic() - saved >= SAVED_EVERY:
            gpu_report.write_json(results, options.out / gpu_report.RESULTS_FILE)
            saved = time.monotonic()


def lines_of(
    program: Program,
    part: Part,
    cases: list[Case],
    options: argparse.Namespace,
    deadline: float,
    machine: dict[str, str],
) -> Iterator[tuple[Case, dict[str, Any]]]:
    """Each case and what the program says of it. Where it dies of a case or takes too long, that is what is said, and a
    new process begins with the next."""
    done = 0
    begins = bool(cases)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{part.name}.tsv"
        write_suite(cases, path)
        arguments = ["--suite", str(path), *part.arguments]
        arguments += ["--budget", str(options.budget), "--samples", str(options.samples)]
        while done < len(cases) and begins and time.monotonic() < deadline:
            begins = False
            for line in program.steps([*arguments, "--skip", str(done)], deadline, options.case_limit):
                if line["kind"] == "machine":
                    begins = True
                    machine.update({"gpu": line["gpu"], "cudnn": line["cudnn"]})
                    continue
                if line["kind"] == "end" and not (line.get("died") and begins):
                    break
                case = cases[done]
                has_ended = line["kind"] == "end"
                if has_ended:
                    why = f"took longer than {options.case_limit:g} s" if line["late"] else DEATH
                    line = {"kind": part.kind or part.name, "name": case_name(case), "error": why, **case}
                done += 1
                yield case, line
                if has_ended or any(text in json.dumps(line) for text in RUINED):
                    break


def measure_torch(peer: Torch, part: Part, case: Case, line: dict[str, Any]) -> None:
    if part.torch is None:
        return
    start = time.monotonic()
    try:
        line["torch"] = part.torch(peer, case, line)
        peer.tidy()
    except (RuntimeError, TypeError, ValueError) as error:
        line["torch"] = {"error": first_line(error)}
    line["torch_seconds"] = round(time.monotonic() - start, 3)


# --- the run --------------------------------------------------------------------------------------------------------


def only_line(program: Program, *arguments: str, cache: Path | None = None) -> dict[str, Any]:
    try:
        found: dict[str, Any] = program.lines(*arguments, cache=cache)[-1]["results"]
    except (subprocess.CalledProcessError, IndexError, KeyError) as error:
        print(f"{shlex.join(arguments)}: {error}", file=sys.stderr)
        return {"error": str(error)}
    return found


def host_of(peer: Torch) -> dict[str, float]:
    """Of the calls that the program's --host measures of ours."""
    return {name: time for family in families() if family.host for name, time in family.host(peer).items()}


def first_calls(program: Program) -> dict[str, Any]:
    """Each in a process of its own; those named `again` find the cache file that the one before left."""

    def once(mode: str, cache: Path | None) -> dict[str, Any]:
        return only_line(program, "--first-calls", mode, "--budget", "0.5", cache=cache)

    with tempfile.TemporaryDirectory() as name:
        heuristic, benchmark = Path(name) / "heuristic.txt", Path(name) / "benchmark.txt"
        return {
            "cold": once("heuristic", None),  # also reads cuDNN from the disk
            "heuristic": once("heuristic", None),
            "heuristic_kept": once("heuristic", heuristic),
            "heuristic_again": once("heuristic", heuristic),
            "benchmark_kept": once("benchmark", benchmark),
            "benchmark_again": once("benchmark", benchmark),
        }


def output_of(*command: str) -> str:
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def machine(peer: Torch) -> dict[str, str]:
    torch = peer.torch
    return {
        "gpu": torch.cuda.get_device_name(0),
        "driver": output_of("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"),
        "cudnn": "",
        "torch": f"{torch.__version__}, cuDNN {torch.backends.cudnn.version()}",
        "commit": os.environ.get("COMMIT") or output_of("git", "rev-parse", "HEAD"),
        "command": shlex.join(sys.argv),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


def missing(program: Path) -> list[str]:
    """What this machine lacks for the benchmark."""
    lacking = []
    if not program.exists():
        lacking.append(f"the program {program} (build it with -DGRADSMITH_CUDA=ON -DGRADSMITH_BUILD_BENCHMARKS=ON)")
    try:
        torch: Any = importlib.import_module("torch")
        if not torch.cuda.is_available():
            lacking.append("a GPU that PyTorch can use")
    except ImportError as error:
        lacking.append(f"PyTorch ({error})")
    return lacking


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True, help="gpu_benchmark, as it was built")
    parser.add_argument("--out", type=Path, default=Path("gpu-results"), help="folder of the results")
    parser.add_argument("--cudnn", default=os.environ.get("GRADSMITH_CUDNN_LIBRARY"), help="default: that of PyTorch")
    parser.add_argument("--filter", default="", help="only cases whose name contains one of these, as ' f16 , tf32 '")
    parser.add_argument("--only", choices=[part.name for part in PARTS], help="one part")
    parser.add_argument("--suite", type=Path, help="with --only: cases of your own, in a file such as bench/suites has")
    for part in PARTS:
        if part.option:
            parser.add_argument(f"--{part.name}", action="store_true", help=part.option)
    parser.add_argument("--cases-only", action="store_true", help="no checks, no host times, no first calls")
    parser.add_argument("--budget", type=float, default=1.0, help="seconds for each search")
    parser.add_argument("--samples", type=int, default=24, help="timed calls for each figure")
    parser.add_argument(
        "--time-limit", type=float, default=math.inf, help="seconds after which no case is begun; default: none"
    )
    parser.add_argument(
        "--case-limit", type=float, default=60.0, help="seconds after which a case is given up, but for PyTorch's part"
    )
    options = parser.parse_args(arguments)
    if options.suite and not options.only:
        parser.error("--suite: its cases are of one part, which --only names")
    return options


def main() -> int:
    options = parse()
    start = time.monotonic()
    lacking = missing(options.program)
    if lacking:
        print(f"gpu_benchmark.py: missing: {'; '.join(lacking)}", file=sys.stderr)
        return 1
    options.out.mkdir(parents=True, exist_ok=True)
    program = Program(options.program.resolve(), options.cudnn or cudnn_of_torch())
    results: dict[str, Any] = {"cases": [], "left_out": {}}
    if not options.cases_only:
        results["first_calls"] = first_calls(program)
    peer = Torch(options.samples)
    results["machine"] = machine(peer)
    if not options.cases_only:
        results["checks"] = Checker(program).check_all()
        results["host"] = {"ours": only_line(program, "--host"), "torch": host_of(peer)}
    for check in results.get("checks", []):
        if not check["ok"]:
            print(f"WRONG: {check}", file=sys.stderr)
    results["control"] = {"start": peer.control()}
    print(f"prepared in {time.monotonic() - start:.0f} s", file=sys.stderr)
    chosen = chosen_parts(options)
    for number, part in enumerate(chosen):
        deadline = deadline_of(chosen[number:], start + options.time_limit)
        run_part(program, peer, part, options, deadline, results)
    results["control"]["end"] = peer.control()
    results["seconds"] = time.monotonic() - start
    gpu_report.write(results, options.out)
    return 1 if any(goal.verdict == "MISSED" for goal in goals(results)) else 0


if __name__ == "__main__":
    sys.exit(main())
