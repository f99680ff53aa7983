"""The generator as a Python package: installed into a virtual environment, started by its console script."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from build_tree import REPOSITORY


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nothing is downloaded: what the package needs is this interpreter's."""
    if subprocess.run([sys.executable, "-c", "import setuptools.command.bdist_wheel, pip"], check=False).returncode:
        pytest.skip(f"{sys.executable} lacks pip, or setuptools 70.1 or later, to install without a package index")
    folder = tmp_path_factory.mktemp("package")
    shutil.copytree(REPOSITORY / "codegen", folder / "codegen")  # setuptools writes beside what it installs
    venv.create(folder / "venv", symlinks=True)
    command = [sys.executable, "-m", "pip", "--python", str(folder / "venv/bin/python"), "install", "--quiet"]
    command += ["--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    subprocess.run([*command, str(folder / "codegen")], env=environment(), check=True)
    return folder / "venv/bin/gradsmith-codegen"


def environment() -> dict[str, str]:
    packages = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(packages)}


def run(script: Path, *arguments: str, cwd: Path) -> str:
    command = [str(script), *arguments]
    return subprocess.run(command, cwd=cwd, env=environment(), check=True, text=True, capture_output=True).stdout


def test_console_script_checks_a_schema(script: Path, tmp_path: Path) -> None:
    shutil.copy(REPOSITORY / "ops.yaml", tmp_path)
    assert run(script, "check", cwd=tmp_path).endswith(", no errors\n")


def test_console_script_generates_with_the_templates_of_the_package(script: Path, tmp_path: Path) -> None:
    shutil.copy(REPOSITORY / "ops.yaml", tmp_path)
    run(script, "generate", "--out", "generated", cwd=tmp_path)
    generated = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.glob("generated/**/*.*")}
    assert generated == {path: (REPOSITORY / path).read_bytes() for path in generated}
    assert Path("generated/src/dispatch_table.cc") in generated
