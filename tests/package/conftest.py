from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from build_tree import REPOSITORY, SCRATCH, build


@pytest.fixture(scope="session")
def prefix() -> Path:
    """What the project's build installs, moved away from where it was installed."""
    tree = Path(os.environ.get("GRADSMITH_BUILD_DIR", REPOSITORY / "build/default"))
    build(tree, "gradsmith")
    installed = SCRATCH / "package/installed"
    moved = SCRATCH / "package/moved"
    for folder in (installed, moved):
        shutil.rmtree(folder, ignore_errors=True)
    subprocess.run(
        ["cmake", "--install", str(tree), "--prefix", str(installed)], check=True, stdout=subprocess.DEVNULL
    )
    installed.rename(moved)
    return moved
