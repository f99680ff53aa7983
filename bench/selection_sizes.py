#!/usr/bin/env python3
"""How large libraries of gradsmith_select are, and how long it takes to link them, for docs/selection.md.

    python3 bench/selection_sizes.py --prefix PREFIX [--json FILE] "OPS ReluGrad TYPES float" "PROBLEMS problems.txt"

Of an installed library; each selection, the arguments of gradsmith_select, is configured and built in a folder of its
own, beside a file of the problems that are given. Then the link is made anew three times: the median of its seconds of
a processor counts.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from operator_cost import seconds_of

PROJECT = """\
cmake_minimum_required(VERSION 3.25)
project(sizes LANGUAGES CXX)
find_package(gradsmith REQUIRED)
gradsmith_select(mylib {})
"""


def image_bytes(archive: Path) -> dict[str, int]:
    """What its images of CUDA kernels take."""
    told = subprocess.run(["objdump", "-hw", str(archive)], check=True, text=True, capture_output=True).stdout
    sections = re.findall(r"\.rodata\.gradsmith_image_(\w+)\s+([0-9a-f]+)", told)
    return {name: int(size, 16) for name, size in sections}


def link_seconds(build: Path) -> float:
    told = ["ninja", "-C", str(build), "-t", "commands", "gradsmith/mylib/mylib.o"]
    *_, link = subprocess.run(told, check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines()
    if "select_archive" not in link:
        raise SystemExit(f"not a link: {link}")
    return statistics.median(seconds_of(["sh", "-c", f"({link}) > /dev/null"]) for _ in range(3))


def size_of(selection: str, problems: list[str], prefix: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder, build = Path(name), Path(name, "build")
        (folder / "CMakeLists.txt").write_text(PROJECT.format(selection))
        (folder / "problems.txt").write_text("".join(f"{problem}\n" for problem in problems))
        command = ["cmake", "-S", str(folder), "-B", str(build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
        command += [f"-DCMAKE_PREFIX_PATH={prefix}", f"-DPython3_EXECUTABLE={sys.executable}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["ninja", "-C", str(build), "mylib"], check=True, stdout=subprocess.DEVNULL)
        archive = build / "libmylib.a"
        return {
            "selection": selection,
            "bytes": archive.stat().st_size,
            "link_seconds": round(link_seconds(build), 2),
            "images": image_bytes(archive),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--prefix", type=Path, required=True, help="where Gradsmith is installed, with CUDA")
    parser.add_argument("--json", type=Path, help="where to write the figures as data")
    parser.add_argument("--problem", action="append", default=[], help="a line of problems.txt")
    parser.add_argument("selections", nargs="+", help="such as 'OPS ReluGrad TYPES float'")
    arguments = parser.parse_args()
    prefix = arguments.prefix.resolve()
    (whole,) = prefix.rglob("libgradsmith.a")
    load = os.getloadavg()[0]
    sizes = [size_of(selection, arguments.problem, prefix) for selection in arguments.selections]
    for size in sizes:
        images = sum(size["images"].values())
        print(f"{size['selection']}: {size['bytes'] / 1e6:.1f} of {whole.stat().st_size / 1e6:.0f} MB", end="")
        print(f", {images / 1e6:.0f} of them images, {size['link_seconds']} s")
    if arguments.json:
        told = {
            "command": shlex.join(["python3", "bench/selection_sizes.py", *sys.argv[1:]]),
            "load": round(load, 1),
            "library": {"bytes": whole.stat().st_size, "images": image_bytes(whole)},
            "selections": sizes,
        }
        arguments.json.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
