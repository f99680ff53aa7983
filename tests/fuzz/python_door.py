"""Random calls of the Python package with hostile arguments, in processes that may be taken down.

A call is a right one, changed in a few places. Changes that mean the same must give what `door_oracle` says; with all
others the call may be refused by a sentence of few kinds, or be made. Nothing else may be written to, and no process
may end or stay. A call depends on the seed and its number alone: `--only NUMBER` repeats one."""

from __future__ import annotations

import argparse
import faulthandler
import os
import random
import resource
import subprocess
import sys
import traceback
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.append(str(FOLDER.parent / "python"))

RUNS = 10_000
AT_ONCE = 500
"""So many calls are made in one process."""

MOST_SECONDS = 120
"""Of the processor's time for a process, so that a busy machine does not count."""

MOST_BYTES = 6 << 30


def main() -> int:
    options = _options()
    if options.end is not None:
        return _make(options.seed, options.begin, options.end)
    first, last = (0, options.runs) if options.only is None else (options.only, options.only + 1)
    told = [0, 0]
    for begin in range(first, last, AT_ONCE):
        made, refused = _process(options.seed, begin, min(begin + AT_ONCE, last))
        told = [told[0] + made, told[1] + refused]
    print(f"python_door: {told[0]} calls made and {told[1]} refused of seed {options.seed}: nothing found")
    return 0


def _options() -> argparse.Namespace:
    times = int(os.environ.get("GRADSMITH_FUZZ_TIMES", "1"))
    parser = argparse.ArgumentParser(description="Fuzzer: python_door")
    parser.add_argument("--runs", type=int, default=RUNS * times, help="how many calls")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("GRADSMITH_FUZZ_SEED", "0")))
    parser.add_argument("--only", type=int, metavar="NUMBER", help="make one call alone")
    parser.add_argument("--begin", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--end", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def _process(seed: int, begin: int, end: int) -> tuple[int, int]:
    """How many calls were made and refused by a process of its own."""
    command = [sys.executable, __file__, *(f"--{name}={value}" for name, value in locals().items())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
    numbers = done.stdout.split()
    if done.returncode == 0:
        return int(numbers[-2]), int(numbers[-1])
    print(f"call {numbers[-1] if numbers else begin} of seed {seed} ends with {done.returncode}\n{done.stderr}")
    sys.exit(1)


def _make(seed: int, begin: int, end: int) -> int:
    """Makes calls, and says the number of each before."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    os.environ["GRADSMITH_CACHE"] = "off"
    import door_calls

    made = 0
    for number in range(begin, end):
        print(number, flush=True)
        try:
            made += door_calls.make(random.Random(f"{seed} {number}"))
        except Exception:
            traceback.print_exc()
            return 1
    print(made, end - begin - made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
