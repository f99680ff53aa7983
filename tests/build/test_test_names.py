"""How ctest names the tests: by words, not by the bytes of their parameters."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from build_tree import REPOSITORY


def test_no_name_has_the_bytes_of_a_parameter() -> None:
    tree = Path(os.environ.get("GRADSMITH_BUILD_DIR", REPOSITORY / "build/default"))
    if not (tree / "tests/gradsmith_runtime_tests").exists():
        pytest.skip(f"{tree} has no tests that are built")
    listed = subprocess.run(["ctest", "-N"], cwd=tree, check=True, text=True, capture_output=True).stdout
    assert "runtime.Threads/ParallelForTest." in listed
    assert [line for line in listed.splitlines() if "object <" in line or "GetParam" in line] == []
