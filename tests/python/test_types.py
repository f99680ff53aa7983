"""The stubs, as mypy reads them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import gradsmith
import pytest

pytest.importorskip("mypy")

USER = '''
import gradsmith
import numpy as np

x: np.ndarray = np.ones(3)
y = gradsmith.conv(x, x).Y
reveal_type(gradsmith.conv_grad(x, x, x).dX)
reveal_type(y)
gradsmith.conv_grad(x, x)
gradsmith.conv_grad(x, x, x, group="2")
gradsmith.conv_grad(x, x, x, auto_pad="SAME")
gradsmith.conv_grad(x, x, x, stride=(1, 1))
with gradsmith.policy(deterministic=True) as context:
    gradsmith.conv(x, x, context=context, out={"Y": x}, outputs="Y")
'''
EXPECTED = [
    (7, r'Revealed type is "numpy.ndarray.* \| None"'),
    (8, r'Revealed type is "numpy.ndarray'),
    (9, "Missing positional argument"),
    (10, 'has incompatible type "str"; expected "int"'),
    (11, r"expected \"Literal\['NOTSET', 'SAME_UPPER', 'SAME_LOWER', 'VALID'\]"),
    (12, 'Unexpected keyword argument "stride"'),
]


def mypy(folder: Path, *arguments: str) -> str:
    package = Path(str(gradsmith.__file__)).parent
    environment = {**os.environ, "MYPYPATH": str(package.parent)}
    command = [sys.executable, "-m", "mypy", "--no-color-output", "--cache-dir", str(folder / "cache"), *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, check=False, text=True, capture_output=True
    ).stdout


def test_wrong_calls_are_found_and_right_ones_pass(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(USER)
    lines = [line for line in mypy(tmp_path, "user.py").splitlines() if line.startswith("user.py:")]
    found = {int(line.split(":")[1]): line for line in reversed(lines)}  # of several, the first
    assert sorted(found) == [line for line, _ in EXPECTED]
    for line, expected in EXPECTED:
        assert re.search(expected, found[line]), found[line]


def test_the_package_is_typed(tmp_path: Path) -> None:
    # PyTorch may be there or not, and what mypy says must not depend on it.
    (tmp_path / "mypy.ini").write_text("[mypy-torch.*]\nfollow_imports = skip\nignore_missing_imports = true\n")
    output = mypy(tmp_path, "--config-file", "mypy.ini", "--strict", "-p", "gradsmith")
    assert output.startswith("Success"), output


def test_stubs_are_those_of_the_functions(tmp_path: Path) -> None:
    """stubtest compares names, parameters and defaults with what is imported."""
    package = Path(str(gradsmith.__file__)).parent
    environment = {**os.environ, "MYPYPATH": str(package.parent)}
    command = [sys.executable, "-m", "mypy.stubtest", "--concise", "--ignore-missing-stub"]
    command += [f"gradsmith._ops.{path.stem}" for path in sorted(package.glob("_ops/*_op.py"))]
    result = subprocess.run(command, cwd=tmp_path, env=environment, check=False, text=True, capture_output=True)
    assert result.returncode == 0, result.stdout + result.stderr
