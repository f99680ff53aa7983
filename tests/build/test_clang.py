"""The library's sources compile with clang, also an old one, without a warning."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from build_tree import JOBS, REPOSITORY, build

OPTIONS = ["-fsyntax-only", "-Wno-unknown-warning-option"]


def findings(command: dict[str, str]) -> str:
    words = shlex.split(command["command"])
    output = words.index("-o")
    compiler = next(place for place, word in enumerate(words) if word.endswith(("c++", "g++")))  # after a launcher
    arguments = ["clang++", *OPTIONS, *words[compiler + 1 : output], *words[output + 2 :]]
    return subprocess.run(arguments, cwd=command["directory"], check=False, text=True, capture_output=True).stderr


def test_the_library_without_its_cuda_backend() -> None:
    if shutil.which("clang++") is None:
        pytest.skip("there is no clang++")
    tree = Path(os.environ.get("GRADSMITH_BUILD_DIR", REPOSITORY / "build/default"))
    build(tree, "gradsmith_generate")
    commands = json.loads((tree / "compile_commands.json").read_text())
    folders = (f"{REPOSITORY}/runtime/", f"{tree}/generated/src/")
    checked = [command for command in commands if command["file"].startswith(folders)]
    checked = [command for command in checked if "/cuda/" not in command["file"]]
    assert {Path(command["file"]).parent.name for command in checked} >= {"core", "conv", "batch_norm", "src"}
    with ThreadPoolExecutor(int(JOBS)) as pool:
        found = "".join(pool.map(findings, checked))
    if found:
        pytest.fail(found, pytrace=False)
