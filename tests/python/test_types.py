"""The stubs, as mypy reads them."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
import typing
from importlib.util import find_spec
from pathlib import Path

import gradsmith
import pytest
from gradsmith._policy import Changes

pytest.importorskip("mypy")

USER = """
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
gradsmith.conv(x, x, outputs=None)
gradsmith.policy(deterministic="yes")
gradsmith.policy(determinstic=True)
gradsmith.policy(search_mode="fast")
"""
EXPECTED = [
    (7, r'Revealed type is "numpy.ndarray.* \| None"'),
    (8, r'Revealed type is "numpy.ndarray'),
    (9, "Missing positional argument"),
    (10, 'has incompatible type "str"; expected "int"'),
    (11, r"expected \"Literal\['NOTSET', 'SAME_UPPER', 'SAME_LOWER', 'VALID'\]"),
    (12, 'Unexpected keyword argument "stride"'),
    (16, r'"deterministic" .* has incompatible type "str"; expected "bool \| None"'),
    (17, 'Unexpected keyword argument "determinstic"'),
    (18, r"\"search_mode\" .* expected \"Literal\['default', 'heuristic', 'benchmark'\]"),
]

USER_OF_TORCH = """
import gradsmith.torch
import torch

x = torch.ones(3)
reveal_type(gradsmith.torch.conv(x, x).Y)
reveal_type(gradsmith.torch.conv_grad(x, x, x, outputs="dX").dX)
gradsmith.torch.conv(x)
gradsmith.torch.conv(x, 3)
gradsmith.torch.conv(x, x, group="2")
gradsmith.torch.conv(x, x, outputs="Y")
gradsmith.torch.convolve(x, x)
gradsmith.torch.conv_transpose_grad(x, x, x, strides=(2, 2), outputs=None)
"""
EXPECTED_OF_TORCH = [
    (6, r'Revealed type is "torch\S*Tensor"'),
    (7, r'Revealed type is "torch\S*Tensor \| None"'),
    (8, "Missing positional argument"),
    (9, r'has incompatible type "int"; expected "Tensor"'),
    (10, 'has incompatible type "str"; expected "int"'),
    (11, 'Unexpected keyword argument "outputs"'),
    (12, 'Module has no attribute "convolve"'),
]


def mypy(folder: Path, *arguments: str) -> str:
    package = Path(str(gradsmith.__file__)).parent
    environment = {**os.environ, "MYPYPATH": str(package.parent)}
    command = [sys.executable, "-m", "mypy", "--no-color-output", "--cache-dir", str(folder / "cache"), *arguments]
    return subprocess.run(command, cwd=folder, env=environment, check=False, text=True, capture_output=True).stdout


def check_findings(folder: Path, program: str, expected: list[tuple[int, str]]) -> None:
    (folder / "user.py").write_text(program)
    lines = [line for line in mypy(folder, "user.py").splitlines() if line.startswith("user.py:")]
    found = {int(line.split(":")[1]): line for line in reversed(lines)}  # of several, the first
    assert sorted(found) == [line for line, _ in expected], lines
    for line, sentence in expected:
        assert re.search(sentence, found[line]), found[line]


def test_wrong_calls_are_found_and_right_ones_pass(tmp_path: Path) -> None:
    check_findings(tmp_path, USER, EXPECTED)


def test_wrong_calls_of_the_functions_with_autograd_are_found(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    check_findings(tmp_path, USER_OF_TORCH, EXPECTED_OF_TORCH)


def test_policies_are_typed_as_the_fields_of_contexts() -> None:
    changes, fields = typing.get_type_hints(Changes), typing.get_type_hints(gradsmith.Context)
    assert changes == {one.name: fields[one.name] for one in dataclasses.fields(gradsmith.Context) if one.init}


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
    command += ["gradsmith.torch"] if find_spec("torch") else []
    result = subprocess.run(command, cwd=tmp_path, env=environment, check=False, text=True, capture_output=True)
    assert result.returncode == 0, result.stdout + result.stderr
