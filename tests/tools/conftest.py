from __future__ import annotations

import os
from pathlib import Path

import pytest
from build_tree import REPOSITORY, build


def program(name: str) -> Path:
    """A program of the build, brought up to date."""
    tree = Path(os.environ.get("GRADSMITH_BUILD_DIR", REPOSITORY / "build/default"))
    if not (tree / "tools").is_dir() or name not in (tree / "build.ninja").read_text():
        pytest.skip(f"{tree} has no {name}: the tools are built where there are kernels to choose among")
    build(tree, name)
    return tree / "tools" / name


@pytest.fixture(scope="session")
def gradsmith_tune() -> Path:
    return program("gradsmith-tune")


@pytest.fixture(scope="session")
def gradsmith_support() -> Path:
    return program("gradsmith-support")
