from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from build_tree import REPOSITORY, SCRATCH, build
from subproject import Subproject, build_subproject


@pytest.fixture(scope="session")
def prefix() -> Path:
    """What the project's build installs, moved away from where it was installed."""
    tree = Path(os.environ.get("GRADSMITH_BUILD_DIR", REPOSITORY / "build/default"))
    build(tree, "gradsmith")
    return install(tree, "")


@pytest.fixture(scope="session")
def subproject() -> Subproject:
    return build_subproject(Path(__file__).resolve().parent / "add_subdirectory", SCRATCH / "package/add_subdirectory")


@pytest.fixture(scope="session")
def prefix_with_onednn(subproject: Subproject) -> Path:
    """What a build with oneDNN's kernels installs, likewise."""
    if not subproject.has_onednn:
        pytest.skip("there is no oneDNN (Debian, Ubuntu: libdnnl-dev)")
    return install(subproject.folder, "_with_onednn")


def install(tree: Path, name: str) -> Path:
    installed = SCRATCH / f"package/installed{name}"
    moved = SCRATCH / f"package/moved{name}"
    for folder in (installed, moved):
        shutil.rmtree(folder, ignore_errors=True)
    subprocess.run(["cmake", "--install", str(tree), "--prefix", str(installed)], check=True, stdout=subprocess.DEVNULL)
    installed.rename(moved)
    return moved
