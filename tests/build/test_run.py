"""The command line of ./run, and what it says where something is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from build_tree import REPOSITORY

VERBS = ("demo", "test", "regenerate", "format", "lint", "bench", "help")


def run(*arguments: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(REPOSITORY / "run"), *arguments]
    environment = None if path is None else {"PATH": str(path), "HOME": str(path)}
    return subprocess.run(command, env=environment, check=False, text=True, capture_output=True)


@pytest.mark.parametrize("flag", ["help", "--help", "-h"])
def test_help_names_every_command(flag: str) -> None:
    result = run(flag)
    assert result.returncode == 0
    for verb in VERBS:
        assert f"./run {verb} " in result.stdout


@pytest.mark.parametrize("arguments", [(), ("tset",)])
def test_unknown_command_prints_the_help(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.returncode == 2
    assert "./run demo" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("verb", ["regenerate", "format"])
def test_arguments_that_mean_nothing_are_refused(verb: str) -> None:
    result = run(verb, "--fast")
    assert result.returncode == 1
    assert result.stderr == f"run: {verb} takes no arguments, but got --fast\n"


@pytest.mark.parametrize("verb", ["demo", "test", "bench", "lint"])
def test_missing_system_packages_are_named(tmp_path: Path, verb: str) -> None:
    """With an empty path there is no compiler, and no apt to install one with."""
    result = run(verb, path=tmp_path)
    assert result.returncode == 1
    for package in ("g++", "cmake", "ninja-build", "libeigen3-dev"):
        assert package in result.stderr
    assert "apt-get install" in result.stderr
    assert "Traceback" not in result.stderr
