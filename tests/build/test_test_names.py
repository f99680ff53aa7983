"""How ctest names the tests: by words, not by the bytes of their parameters."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from build_tree import REPOSITORY


@pytest.fixture(scope="module")
def listed() -> str:
    tree = Path(os.environ.get("GRADSMITH_BUILD_DIR", REPOSITORY / "build/default"))
    if not (tree / "tests/gradsmith_runtime_tests").exists():
        pytest.skip(f"{tree} has no tests that are built")
    return subprocess.run(["ctest", "-N"], cwd=tree, check=True, text=True, capture_output=True).stdout


def test_no_name_has_the_bytes_of_a_parameter(listed: str) -> None:
    assert "runtime.Threads/ParallelForTest." in listed
    assert [line for line in listed.splitlines() if "object <" in line or "GetParam" in line] == []


def test_every_source_has_tests(listed: str) -> None:
    """Also one that is compiled together with others; a build without a CUDA backend has none of it."""
    sources = sorted((REPOSITORY / "tests/runtime").glob("*_test.cc"))
    sources += sorted((REPOSITORY / "tests/runtime/cuda").glob("*_test.cc")) if "Cuda" in listed else []
    assert len(sources) > 20
    for source in sources:
        suites = re.findall(r"^TEST(?:_F|_P)?\((\w+), ", source.read_text(encoding="utf-8"), re.MULTILINE)
        assert suites, source
        assert re.search(rf"[./]({'|'.join(suites)})\.", listed), source
