"""The library's sources compile with clang, also an old one, without a warning."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from build_tree import JOBS, REPOSITORY, SCRATCH, build
from source_units import Kind, Unit, findings_in, units_of

OPTIONS = ["-fsyntax-only", "-Wno-unknown-warning-option"]


def findings(kind: Kind, source: Path) -> str:
    command = ["clang++", *OPTIONS, *kind.command[1:], str(source)]
    return subprocess.run(command, cwd=kind.directory, check=False, text=True, capture_output=True).stderr


def test_the_library_without_its_cuda_backend() -> None:
    if shutil.which("clang++") is None:
        pytest.skip("there is no clang++")
    tree = Path(os.environ.get("GRADSMITH_BUILD_DIR", REPOSITORY / "build/default"))
    build(tree, "gradsmith_generate")
    commands = json.loads((tree / "compile_commands.json").read_text())
    folders = (f"{REPOSITORY}/runtime/", f"{tree}/generated/src/")
    checked = [command for command in commands if command["file"].startswith(folders)]
    # What asks cuDNN what it supports is built where the CUDA backend is.
    checked = [command for command in checked if not {"cuda", "support"} & set(Path(command["file"]).parts)]
    units = units_of(checked)
    assert {source.parent.name for unit in units for source in unit.sources} >= {"core", "conv", "batch_norm", "src"}

    def findings_of(unit: Unit) -> str:
        return findings_in(unit, SCRATCH / "clang", lambda source: findings(unit.kind, source))

    with ThreadPoolExecutor(int(JOBS)) as pool:
        found = "".join(pool.map(findings_of, units))
    if found:
        pytest.fail(found, pytrace=False)
