#!/usr/bin/env python3
"""What an operator by formulas adds to a build: seconds of one processor to compile it, and bytes of the archive.

    python3 bench/operator_cost.py --build build/default [--architectures 75 80 90a] Mish+MishGrad BiasGelu+BiasGeluGrad

Operators joined by + are taken together, as a forward operator and its gradient are. Their sources are generated and
compiled by the commands of a configured build, its architectures replaced where others are asked for, and once more
without them: the difference is what they add, in all types. A build that compiles kernels fast tells nothing.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import shlex
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ALWAYS = "Relu"  # is there without them, so that what all share is in both
OBJECT = "CMakeFiles/gradsmith.dir/generated/src/ops_shard_0.cc.o"  # the first of several; here there is one
IMAGE = "kernels/formulas_0.fatbin"


@dataclass(frozen=True)
class Cost:
    """Seconds of one processor, and bytes."""

    kernel_seconds: float = 0
    kernel_bytes: int = 0
    host_seconds: float = 0
    host_bytes: int = 0

    def minus(self, other: Cost) -> Cost:
        mine, others = asdict(self), asdict(other)
        return Cost(**{name: number - others[name] for name, number in mine.items()})


def compiler_command(build: Path, target: str) -> list[str]:
    """That by which a build makes a file, without a cache and without a list of headers; empty where it makes none."""
    command = ["ninja", "-C", str(build), "-t", "commands", target]
    told = subprocess.run(command, text=True, capture_output=True, check=False)
    if told.returncode != 0:
        return []
    steps = told.stdout.splitlines()[-1].split(" && ")
    words = shlex.split(next(step for step in steps if " -o " in step))
    for option in ("-MF", "-MT"):
        del words[words.index(option) : words.index(option) + 2]
    words.remove("-MD")
    return words[1:] if Path(words[0]).name in ("ccache", "sccache") else words


def moved(command: list[str], build: Path, folder: Path, output: Path) -> list[str]:
    """The command for what was generated into another folder."""
    words = [word.replace(str(build / "generated"), str(folder)) for word in command]
    words[words.index("-o") + 1] = str(output)
    return words


def with_architectures(command: list[str], architectures: list[str]) -> list[str]:
    kept = [word for word in command if not word.startswith("-gencode")]
    return [*kept, *(f"-gencode=arch=compute_{one},code=sm_{one}" for one in architectures)]


def seconds_of(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def loaded_bytes(program: Path) -> int:
    """Of code and constants, without what tells a debugger or the linker about them."""
    told = subprocess.run(["size", "-A", str(program)], check=True, text=True, capture_output=True).stdout
    return sum(int(size) for size in re.findall(r"^\.(?:text|rodata|data)\S*\s+(\d+)", told, re.MULTILINE))


def cost_of(build: Path, operators: list[str], architectures: list[str]) -> Cost:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [sys.executable, "-m", "gradsmith_codegen", "generate", "--schema", str(ROOT / "ops.yaml")]
        command += ["--out", str(folder), "--shards", "1", "--without", "docs", "--without", "python"]
        command += ["--without", "tests"]
        command += [word for operator in operators for word in ("--only", operator)]
        subprocess.run(command, check=True, cwd=ROOT / "codegen", stdout=subprocess.DEVNULL)
        rows = folder / "src/ops_shard_0.cc"
        rows.write_text(rows.read_text().replace("kImage_selected_", "kImage_"))  # as the build's images are called
        host, image = folder / "host.o", folder / "image"
        host_seconds = seconds_of(moved(compiler_command(build, OBJECT), build, folder, host))
        kernels = compiler_command(build, IMAGE)
        if not kernels:
            return Cost(host_seconds=host_seconds, host_bytes=loaded_bytes(host))
        if architectures:
            kernels = with_architectures(kernels, architectures)
        kernel_seconds = seconds_of(moved(kernels, build, folder, image))
        return Cost(kernel_seconds, image.stat().st_size, host_seconds, loaded_bytes(host))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--build", type=Path, required=True, help="a configured build of Ninja's")
    parser.add_argument("--architectures", nargs="+", default=[], help="such as 75 80 90a; by default the build's")
    parser.add_argument("--json", type=Path, help="where to write the figures as data")
    parser.add_argument("operators", nargs="+", help="such as Mish+MishGrad")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    without = cost_of(build, [ALWAYS], arguments.architectures)
    costs = {}
    for joined in arguments.operators:
        cost = cost_of(build, [ALWAYS, *joined.split("+")], arguments.architectures).minus(without)
        costs[joined] = {name: round(number, 2) for name, number in asdict(cost).items()}
        seconds, size = cost.kernel_seconds + cost.host_seconds, cost.kernel_bytes + cost.host_bytes
        print(f"{joined}: {seconds:.1f} s ({cost.kernel_seconds:.1f} of kernels), {size / 1000:.0f} KB", flush=True)
    if arguments.json:
        told = {"command": shlex.join(sys.argv), "architectures": arguments.architectures, "costs": costs}
        arguments.json.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
