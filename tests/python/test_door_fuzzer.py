"""The fuzzer of this package runs for a short while; GRADSMITH_FUZZ_TIMES and GRADSMITH_FUZZ_SEED make it longer, or
another. And it finds what it is there to find."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FUZZER = "tests/fuzz/python_door.py"


def test_nothing_is_found(repository: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-B", str(repository / FUZZER)], capture_output=True, text=True, check=False, timeout=3600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.rstrip().endswith("nothing found")


@pytest.mark.parametrize(
    ("conv", "finding"),
    [
        ("lambda *told, **keywords: 1 // 0", "ZeroDivisionError"),
        ("lambda *told, **keywords: os.abort()", "Fatal Python error: Aborted"),
        ("lambda *told, **keywords: exec('raise ValueError')", "an error without a sentence"),
        ("lambda *told, **keywords: exec('raise TypeError(\"x\" * 10**4)')", "a sentence of 10000 characters"),
        ("lambda *told, **keywords: exec('raise TypeError(1)')", "a right call of conv is refused"),
        ("lambda X, *told, **keywords: (right(X, *told, **keywords), X.fill(9))[0]", "memory was written to"),
        ("lambda *told, **keywords: type(right(*told, **keywords))(np.array(99.0))", "AssertionError: Y"),
    ],
)
def test_what_is_wrong_is_found(repository: Path, tmp_path: Path, conv: str, finding: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        f"import os\nimport gradsmith\nimport numpy as np\n\nright = gradsmith.conv\ngradsmith.conv = {conv}\n"
    )
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-B", str(repository / FUZZER), "--runs=400"],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
        timeout=3600,
    )
    assert done.returncode == 1
    assert finding in done.stdout
