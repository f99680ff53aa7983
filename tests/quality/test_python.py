"""Python sources: ruff and mypy find nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

from build_tree import REPOSITORY


def test_ruff_finds_nothing(ruff: Path) -> None:
    result = subprocess.run([str(ruff), "check", "."], cwd=REPOSITORY, check=False, text=True, capture_output=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_mypy_finds_nothing(mypy: Path) -> None:
    sources = ["run", "codegen/gradsmith_codegen", "bench", "docs/site", "examples"]
    sources += [str(path) for path in sorted((REPOSITORY / "tests").rglob("*.py")) if path.name != "conftest.py"]
    result = subprocess.run([str(mypy), *sources], cwd=REPOSITORY, check=False, text=True, capture_output=True)
    assert result.returncode == 0, result.stdout + result.stderr
