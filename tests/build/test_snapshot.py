"""generated/, the committed snapshot of what the generator writes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from build_tree import REPOSITORY, SCRATCH, build, configure, run_generator


def test_snapshot_is_fresh() -> None:
    """Where not: ./run regenerate."""
    run_generator("generate", "--check", "--schema", "ops.yaml", "--out", "generated")


def test_snapshot_builds_without_python(tmp_path: Path) -> None:
    """Whoever calls one of the usual interpreters in this build gets an error and leaves a trace."""
    trace = tmp_path / "python-was-called"
    for name in ("python", "python3", f"python3.{sys.version_info.minor}"):
        script = tmp_path / name
        script.write_text(f"#!/bin/sh\ntouch {trace}\nexit 1\n")
        script.chmod(0o755)
    folder = SCRATCH / "snapshot"
    options = ["-DGRADSMITH_USE_SNAPSHOT=ON", f"-DPython3_EXECUTABLE={tmp_path / 'python3'}"]
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{tmp_path}:{path}"
    try:
        configure(REPOSITORY, folder, "Ninja", *options)
        build(folder)
    finally:
        os.environ["PATH"] = path
    assert (folder / "libgradsmith.a").exists()
    assert not trace.exists()


def test_snapshot_of_another_schema_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "ops.yaml"
    other.write_text((REPOSITORY / "ops.yaml").read_text())
    command = ["cmake", "-S", str(REPOSITORY), "-B", str(tmp_path / "build"), "-G", "Ninja"]
    command += ["-DGRADSMITH_USE_SNAPSHOT=ON", f"-DGRADSMITH_OPS_YAML={other}"]
    result = subprocess.run(command, check=False, text=True, capture_output=True)
    assert result.returncode != 0
    assert "GRADSMITH_USE_SNAPSHOT" in result.stderr
    assert str(other) in result.stderr
