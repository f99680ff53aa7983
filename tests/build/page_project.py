"""A page of docs/ that makes a project in an empty folder, of which the installed prefix is all there is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from build_tree import REPOSITORY, SCRATCH

_BLOCK = r"```{}\n(.*?)```"
_FILE = re.compile(r"`([\w./]+)`:\n\n" + _BLOCK.format(r"\w+"), re.DOTALL)


@dataclass(frozen=True)
class Page:
    """One of docs/, by its name."""

    name: str

    @property
    def text(self) -> str:
        return (REPOSITORY / "docs" / self.name).read_text()

    def block(self, language: str) -> str:
        """The only block of a language that is no file's."""
        (text,) = re.findall(_BLOCK.format(language), _FILE.sub("", self.text), re.DOTALL)
        return str(text)

    def write_files(self, folder: Path) -> None:
        """Those that the page shows under their names."""
        for name, text in _FILE.findall(self.text):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def project(self, name: str) -> Path:
        """A fresh folder with the files."""
        folder = SCRATCH / "package" / name
        shutil.rmtree(folder, ignore_errors=True)
        self.write_files(folder)
        return folder


def sh(commands: str, folder: Path, prefix: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "-e", "-c", commands],
        cwd=folder,
        env={**os.environ, "PATH": path, "PREFIX": str(prefix)},
        check=False,
        text=True,
        capture_output=True,
    )


def configure_fails(call: str, folder: Path, prefix: Path) -> str:
    """What CMake says of a call in a project that finds the prefix."""
    head = "cmake_minimum_required(VERSION 3.25)\nproject(p LANGUAGES CXX)\nfind_package(gradsmith REQUIRED)\n"
    (folder / "CMakeLists.txt").write_text(head + call + "\n")
    result = sh('cmake -S . -B build -DCMAKE_PREFIX_PATH="$PREFIX"', folder, prefix)
    assert result.returncode != 0
    return " ".join(result.stderr.split())
