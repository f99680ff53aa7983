"""A page of docs/ that makes a project in an empty folder, of which the installed prefix is all there is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from build_tree import REPOSITORY, SCRATCH

_BLOCK = r"```{}\n(.*?)```"
_SESSION = re.compile(r"^```\n(\$ .*?)^```$", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_LEFT_OUT = "..."
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
        (text,) = self.blocks(language)
        return text

    def blocks(self, language: str) -> list[str]:
        """Those of a language that are no file's."""
        return re.findall(_BLOCK.format(language), _FILE.sub("", self.text), re.DOTALL)

    def commands(self) -> list[tuple[str, str]]:
        """Those that the page shows with what they print, one after another."""
        return [(found[1], found[2]) for block in _SESSION.findall(self.text) for found in _COMMAND.finditer(block)]

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


def follow(commands: Iterable[tuple[str, str]], before: str, folder: Path, prefix: Path) -> None:
    """Gives commands as a page does, after what is to be done before each, and compares what they print. Where the page
    has `...` are lines that it leaves out, or behind a colon the number of one."""
    for command, shown in commands:
        result = sh(f"{before}\nset +e\n{command}", folder, prefix)
        pattern = re.escape(shown).replace(rf":{re.escape(_LEFT_OUT)}", r":\d+")
        pattern = re.sub(rf"^{re.escape(re.escape(_LEFT_OUT))}\\\n", r"(?:.*\\n)*", pattern, flags=re.MULTILINE)
        printed = result.stdout + result.stderr
        assert re.fullmatch(pattern, printed), f"{command} printed:\n{printed}\nbut the page shows:\n{shown}"


def sh(commands: str, folder: Path, prefix: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "-e", "-c", commands],
        cwd=folder,
        env={**os.environ, "PATH": path, "PREFIX": str(prefix), "PYTHONDONTWRITEBYTECODE": "1"},
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
