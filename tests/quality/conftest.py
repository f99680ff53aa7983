from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

# clang-tidy leaves out system headers from version 22 on, and then takes a quarter of the time.
LLVM_VERSIONS = {"clang-format": "18", "clang-tidy": "23"}


def _cannot_check(reason: str) -> NoReturn:
    """`./run test` has installed the tools: there a check that cannot be made is a failure."""
    if os.environ.get("GRADSMITH_TOOLS_REQUIRED"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def _tool(name: str) -> Path:
    """The tool beside this interpreter, else the one on the path."""
    beside = Path(sys.executable).parent / name
    found = beside if beside.exists() else shutil.which(name)
    if found is None:
        _cannot_check(f"{name} is not installed (requirements-dev.txt has it)")
    return Path(found)


def _llvm_tool(name: str) -> Path:
    tool = _tool(name)
    answer = subprocess.run([str(tool), "--version"], check=True, text=True, capture_output=True).stdout
    version = re.search(r"version (\d+)", answer)
    if version is None or version[1] != LLVM_VERSIONS[name]:
        _cannot_check(f"{tool} is not of LLVM {LLVM_VERSIONS[name]}, whose format and findings the sources are held to")
    return tool


@pytest.fixture(scope="session")
def clang_format() -> Path:
    return _llvm_tool("clang-format")


@pytest.fixture(scope="session")
def clang_tidy() -> Path:
    return _llvm_tool("clang-tidy")


@pytest.fixture(scope="session")
def ruff() -> Path:
    return _tool("ruff")


@pytest.fixture(scope="session")
def mypy() -> Path:
    return _tool("mypy")
