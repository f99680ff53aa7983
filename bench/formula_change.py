#!/usr/bin/env python3
"""What a change of one formula takes until its operator is tested: seconds of `./run try`, and of a processor.

    python3 bench/formula_change.py MishGrad LayerNormalizationGrad [--json FILE]

Works in a copy of the sources, build/formula-change, which is built first. Then the last formula of each operator is
changed, into one that gives the same, and changed back; each time `./run try` generates, compiles, links and runs the
operator's tests on the CPU. No cache of compilers is asked. What else the machine does is recorded as its load: the
processes that wanted to run in the minute before each change.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build/formula-change"


def copy_sources(folder: Path) -> None:
    """The files that git knows; what is equal keeps its age."""
    told = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, text=True, capture_output=True).stdout
    for name in filter(None, told.split("\0")):
        origin, copy = ROOT / name, folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if origin.is_symlink():
            copy.unlink(missing_ok=True)
            copy.symlink_to(origin.readlink())
        elif not copy.exists() or copy.read_bytes() != origin.read_bytes():
            shutil.copy(origin, copy)
    if not (folder / ".venv").exists():
        (folder / ".venv").symlink_to(ROOT / ".venv")


def changed(schema: str, operator: str) -> tuple[str, str]:
    """The schema with the operator's last formula multiplied by 1, and the name of what that gives."""
    entry = re.search(rf"^  - name: {operator}\n(?:    .*\n|\n)*", schema, re.MULTILINE)
    if entry is None:
        raise SystemExit(f"there is no operator {operator}")
    formulas = re.search(r"^    formulas:\n((?:      \w+: .*\n)+)", entry[0], re.MULTILINE)
    if formulas is None:
        raise SystemExit(f"{operator} has no formulas on lines of their own")
    *_, last = formulas[1].splitlines()
    name, formula = re.fullmatch(r'      (\w+): "?(.*?)"?', last).groups()  # type: ignore[union-attr]
    at = entry.start() + formulas.start(1) + len(formulas[1]) - len(last) - 1
    return f'{schema[:at]}      {name}: "1 * ({formula})"{schema[at + len(last) :]}', name


def cost_of_try(operator: str) -> dict[str, float]:
    environment = {**os.environ, "CCACHE_DISABLE": "1"}
    load, begin, before = os.getloadavg()[0], time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "run", "try", operator], cwd=FOLDER, env=environment, check=True)
    seconds, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    of_processors = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": round(seconds, 1), "processor_seconds": round(of_processors, 1), "load": round(load, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, help="where to write the figures as data")
    parser.add_argument("operators", nargs="+", help="such as MishGrad")
    arguments = parser.parse_args()
    copy_sources(FOLDER)
    schema = FOLDER / "ops.yaml"
    plain = schema.read_text(encoding="utf-8")
    cost_of_try(arguments.operators[0])
    changes: list[dict[str, Any]] = []
    for operator in arguments.operators:
        other, formula = changed(plain, operator)
        for text in (other, plain):
            schema.write_text(text, encoding="utf-8")
            changes.append({"operator": operator, "formula": formula, **cost_of_try(operator)})
    for change in changes:
        print(
            f"{change['operator']}, {change['formula']}: {change['seconds']} s, {change['processor_seconds']} s of a "
            f"processor, load {change['load']}"
        )
    if arguments.json:
        told = {
            "command": shlex.join(["python3", "bench/formula_change.py", *arguments.operators]),
            "processors": len(os.sched_getaffinity(0)),
            "changes": changes,
        }
        arguments.json.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
