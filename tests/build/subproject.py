"""A program of others that has the library's sources in its build: one build for all that is asked of such."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from build_tree import REPOSITORY, SOURCES, build, copy_with_few_operators, run_generator, write_script

ALSO = ("ReluGrad",)  # of what docs/selection.md selects


@dataclass(frozen=True)
class Subproject:
    """What it comes to: the folder has the programs, and then rules that install the library, with oneDNN's kernels
    where there is oneDNN. The cache and the install rules are those of before. The schema has few operators."""

    schema: Path
    folder: Path
    cache: str
    install_rules: str
    called_python: bool
    has_onednn: bool


def build_subproject(source: Path, folder: Path) -> Subproject:
    """Builds the snapshot of a copy of few operators, without optimization, which would only take longer here, and in
    reach of no Python that works. With oneDNN little is compiled that is not without it."""
    copy = folder.parent / "sources"
    copy_with_few_operators(REPOSITORY, copy, (*SOURCES, "ops.schema.json", "python", "tests", "tools"), ALSO)
    snapshot = ("--schema", "ops.yaml", "--out", "generated", "--shards", "2")
    run_generator("generate", *snapshot, repository=copy, cwd=copy)
    pythons = Pythons(folder.parent / "pythons")
    command = ["cmake", "-S", str(source), "-B", str(folder), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
    command += [f"-DGRADSMITH_SOURCE_DIR={copy}", f"-DPython3_EXECUTABLE={pythons.folder / 'python3'}"]
    command += ["-DCMAKE_CXX_FLAGS_RELEASE=-O0", "-DCMAKE_UNITY_BUILD=ON", "-DGRADSMITH_CUDA=OFF"]
    command += ["-DGRADSMITH_USE_SNAPSHOT=ON"]

    def configure(*options: str) -> str:
        whole = [*command, *options]
        return subprocess.run(whole, env=pythons.environment, check=True, text=True, stdout=subprocess.PIPE).stdout

    configure("-UGRADSMITH_ONEDNN", "-UGRADSMITH_INSTALL", "-USELECTION_SOURCE_DIR")
    build(folder, environment=pythons.environment)
    cache = (folder / "CMakeCache.txt").read_text()
    rules = (folder / "gradsmith/cmake_install.cmake").read_text()
    has_onednn = "our own, oneDNN" in configure("-DGRADSMITH_ONEDNN=AUTO", "-DGRADSMITH_INSTALL=ON")
    build(folder, "gradsmith", environment=pythons.environment)
    return Subproject(copy / "ops.yaml", folder, cache, rules, pythons.trace.exists(), has_onednn)


class Pythons:
    """A folder of the usual interpreters of Python, each of which fails and leaves a trace."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.trace = folder / "was-called"
        self.environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
        folder.mkdir(parents=True, exist_ok=True)
        self.trace.unlink(missing_ok=True)
        for name in ("python", "python3", f"python3.{sys.version_info.minor}"):
            write_script(folder / name, f"touch {self.trace}\nexit 1\n")
