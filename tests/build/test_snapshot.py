"""generated/, the committed snapshot of what the generator writes; tests/package builds it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from build_tree import REPOSITORY, run_generator


def test_snapshot_is_fresh() -> None:
    """Where not: ./run regenerate."""
    run_generator("generate", "--check", "--schema", "ops.yaml", "--out", "generated")


def test_snapshot_of_another_schema_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "ops.yaml"
    other.write_text((REPOSITORY / "ops.yaml").read_text())
    command = ["cmake", "-S", str(REPOSITORY), "-B", str(tmp_path / "build"), "-G", "Ninja"]
    command += ["-DGRADSMITH_USE_SNAPSHOT=ON", f"-DGRADSMITH_OPS_YAML={other}"]
    result = subprocess.run(command, check=False, text=True, capture_output=True)
    assert result.returncode != 0
    assert "GRADSMITH_USE_SNAPSHOT" in result.stderr
    assert str(other) in result.stderr
