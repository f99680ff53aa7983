"""What the fuzzers in Python share: the corpus, seeded mutants of it, and what is done with a finding.

A target is a function that takes bytes and raises where something is wrong; a mutator makes bytes of bytes.
Each mutant depends on the seed and its number alone, so that a run can be repeated."""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

FOLDER = Path(__file__).resolve().parent
REPOSITORY = FOLDER.parents[1]
CODEGEN_TESTS = REPOSITORY / "tests" / "codegen"

# Whoever imports this finds the generator, and the small schemas of its tests.
sys.path[:0] = [str(REPOSITORY / "codegen"), str(CODEGEN_TESTS)]

# Of the processor's time, so that a busy machine does not count.
MOST_SECONDS = 20.0

Target = Callable[[bytes], None]
Mutator = Callable[[bytes, random.Random], bytes]


class TooSlow(Exception):
    """An input took more than its time."""


def main(name: str, target: Target, mutators: Sequence[Mutator], runs: int, seeds: Sequence[bytes] = ()) -> int:
    """Replays the corpus of that name, or the files that are named, then runs mutants of the corpus and of the
    seeds, which are inputs that other tests have as well."""
    options = _options(name, runs)
    corpus = sorted((FOLDER / "corpus" / name).iterdir())
    texts = [*seeds, *(path.read_bytes() for path in corpus)]
    signal.signal(signal.SIGPROF, _stop)
    for path in options.files or corpus:
        if not _passes(target, path.read_bytes(), str(path), name):
            return 1
    if options.files:
        return 0
    for number in range(options.runs):
        chance = random.Random(f"{options.seed} {number}")
        data = chance.choice(texts)
        for _ in range(chance.choice([1, 1, 1, 2, 5])):
            data = chance.choice(mutators)(data, chance)
        if not _passes(target, data, f"mutant {number} of seed {options.seed}", name):
            return 1
    print(f"{name}: {len(corpus)} files, {options.runs} mutants of seed {options.seed}: nothing found")
    return 0


def _options(name: str, runs: int) -> argparse.Namespace:
    times = int(os.environ.get("GRADSMITH_FUZZ_TIMES", "1"))
    parser = argparse.ArgumentParser(prog=f"{name}.py", description=f"Fuzzer: {name}")
    parser.add_argument("files", nargs="*", type=Path, help="run these alone, and no mutants")
    parser.add_argument("--runs", type=int, default=runs * times, help="how many mutants")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("GRADSMITH_FUZZ_SEED", "0")))
    return parser.parse_args()


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise TooSlow(f"more than {MOST_SECONDS} seconds of the processor")


def _passes(target: Target, data: bytes, what: str, name: str) -> bool:
    """Runs the target; where it fails, keeps the input and says why."""
    try:
        signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
        target(data)
        return True
    except Exception:
        finding = Path(f"finding-{name}-{hashlib.sha256(data).hexdigest()[:12]}").resolve()
        finding.write_bytes(data)
        traceback.print_exc()
        print(f"{what} fails; kept as {finding}", file=sys.stderr)
        return False
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def bytes_changed(data: bytes, chance: random.Random) -> bytes:
    """Bits flipped, bytes replaced, dropped, doubled or moved."""
    changed = bytearray(data)
    for _ in range(chance.choice([1, 2, 4, 16])):
        at = chance.randrange(len(changed) + 1)
        end = min(len(changed), at + chance.choice([1, 1, 2, 8, 100]))
        match chance.randrange(5):
            case 0:
                changed[at:end] = bytes(one ^ 1 << chance.randrange(8) for one in changed[at:end])
            case 1:
                del changed[at:end]
            case 2:
                changed[at:at] = changed[at:end]
            case 3:
                changed[at:at] = chance.randbytes(end - at)
            case _:
                to = chance.randrange(len(changed) + 1)
                changed[to:to] = changed[at:end]
    return bytes(changed)


def lines_changed(snippets: Sequence[str]) -> Mutator:
    """A mutator of texts: a line deleted, doubled, moved or cut, or something foreign in it."""

    def mutate(data: bytes, chance: random.Random) -> bytes:
        lines = data.decode("utf-8", "surrogateescape").split("\n")
        at = chance.randrange(len(lines))
        line = lines[at]
        column = chance.randrange(len(line) + 1)
        match chance.randrange(8):
            case 0:
                del lines[at]
            case 1:
                lines.insert(at, line)
            case 2:
                lines.insert(chance.randrange(len(lines)), lines.pop(at))
            case 3:
                lines[at] = line[:column]
            case 4:
                lines[at] = line[:column] + line[column + 1 :]
            case 5:
                lines[at] = line[:column] + chance.choice(snippets) + line[column:]
            case 6:
                words = line.split(" ")
                words[chance.randrange(len(words))] = chance.choice(snippets)
                lines[at] = " ".join(words)
            case _:
                lines[at] = " " * chance.randrange(9) + line.lstrip()
        return "\n".join(lines).encode("utf-8", "surrogateescape")

    return mutate
