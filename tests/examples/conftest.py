from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from build_tree import REPOSITORY, SCRATCH, build


@pytest.fixture(scope="session")
def prefix() -> Path:
    """What the project's build installs."""
    tree = os.environ.get("GRADSMITH_BUILD_DIR")
    if tree is None:
        pytest.skip("GRADSMITH_BUILD_DIR does not name a build of the library to install")
    build(Path(tree), "gradsmith")
    folder = SCRATCH / "examples/prefix"
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run(["cmake", "--install", tree, "--prefix", str(folder)], check=True, stdout=subprocess.DEVNULL)
    return folder


def build_example(name: str, prefix: Path) -> Path:
    """The folder that an example was built in, against the installed package."""
    folder = SCRATCH / "examples" / name
    command = ["cmake", "-S", str(REPOSITORY / "examples" / name), "-B", str(folder), "-G", "Ninja"]
    command += [f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Werror"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    build(folder)
    return folder


@pytest.fixture(scope="session")
def quick_start(prefix: Path) -> Path:
    return build_example("quick_start", prefix)


@pytest.fixture(scope="session")
def autoencoder(request: pytest.FixtureRequest) -> Path:
    """The program that GRADSMITH_AUTOENCODER names, else one that is built here."""
    named = os.environ.get("GRADSMITH_AUTOENCODER")
    if named is not None:
        return Path(named)
    prefix: Path = request.getfixturevalue("prefix")
    return build_example("autoencoder", prefix) / "autoencoder"
