"""The stubs, as mypy reads them."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
import typing
from collections.abc import Iterator
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
gradsmith.torch.conv_grad(x, x, x, outputs=["dX", "dW"])
gradsmith.torch.conv_grad(x, x, x, outputs=["dX", "Y"])
"""
EXPECTED_OF_TORCH = [
    (6, r'Revealed type is "torch\S*Tensor"'),
    (7, r'Revealed type is "torch\S*Tensor \| None"'),
    (8, "Missing positional argument"),
    (9, r'has incompatible type "int"; expected "Tensor"'),
    (10, 'has incompatible type "str"; expected "int"'),
    (11, 'Unexpected keyword argument "outputs"'),
    (12, 'Module has no attribute "convolve"'),
    (15, r"expected \"Literal\['dX', 'dW', 'dB'\]"),
]


# What passes, and what fails, whichever library the arrays `x` are of.
OF_ARRAYS = """
names = ["dX", "dW"]

gradsmith.conv_grad(x, x, x)
reveal_type(gradsmith.conv(x, x, None).Y)
gradsmith.conv_grad(x, x, x, outputs="dW", out={"dW": x})
gradsmith.conv_grad(x, x, x, outputs=["dX", "dW"], out=[x, x])
gradsmith.conv_grad(x, x, x, outputs=("dB",))
gradsmith.conv_grad(x, x, x, outputs=None)
gradsmith.conv_grad(x, x, x, outputs="dw")
gradsmith.conv_grad(x, x, x, outputs=("dX", "Y"))
gradsmith.conv_grad(x, x, x, outputs=names)
gradsmith.conv_grad(x, x, [1.0])
gradsmith.conv_grad([[1.0]], [[1.0]], [[1.0]])
gradsmith.conv_grad(1.0, 1.0, 1.0)
gradsmith.conv(x, x, out={"Y": [1.0]})
"""
NO_ARRAY = r'Value of type variable "_A" of "\w+" cannot be'
NO_OUTPUT = r"\"outputs\" to \"conv_grad\" has incompatible type .* expected \"Literal\['dX', 'dW', 'dB'\]"
EXPECTED_OF_ARRAYS = [
    (10, NO_OUTPUT),
    (11, NO_OUTPUT),
    (12, NO_OUTPUT),
    (13, NO_ARRAY),
    (14, NO_ARRAY),
    (15, NO_ARRAY),
    (16, NO_ARRAY),
]

LIBRARIES = {
    "numpy": ("import numpy as np", "np.ones(3)", r"numpy\.ndarray"),
    "torch": ("import torch", "torch.ones(3)", r"torch\S*Tensor"),
    "jax": ("import jax.numpy as jnp", "jnp.ones(3)", r"jax\S*Array"),
    "array": ("from array import array", "array('f', [1.0])", r"array\.array"),
}
# A type variable with a bound is never refused for arrays of two libraries, but then the result is no array of either.
MIXED = """
import gradsmith
import numpy as np
import torch

x, half, t = np.ones(3), np.ones(3, np.float16), torch.ones(3)
gradsmith.batch_normalization(half, x, x, x, x)
reveal_type(gradsmith.conv(t, torch.nn.Parameter(t)).Y)
gradsmith.conv(x, t).Y.shape
"""
EXPECTED_OF_MIXED = [
    (8, r'Revealed type is "torch\S*Tensor"'),
    (9, r'"SupportsDLPack" of .* has no attribute "shape"'),
]


@pytest.fixture(scope="session", autouse=True)
def keep_what_mypy_knows_of_libraries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """It takes long to read them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MYPY_CACHE_DIR", str(tmp_path_factory.mktemp("mypy")))
        yield


def mypy(folder: Path, *arguments: str) -> str:
    package = Path(str(gradsmith.__file__)).parent
    environment = {**os.environ, "MYPYPATH": str(package.parent)}
    command = [sys.executable, "-m", "mypy", "--no-color-output", *arguments]
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


@pytest.mark.parametrize("library", LIBRARIES)
def test_arrays_of_every_library_pass_and_nothing_else(tmp_path: Path, library: str) -> None:
    pytest.importorskip(library)
    load, array, shown = LIBRARIES[library]
    header = f"{load}; import gradsmith; x = {array}"
    revealed = (5, rf'Revealed type is "{shown}')
    check_findings(tmp_path, header + OF_ARRAYS, [revealed, *EXPECTED_OF_ARRAYS])


def test_arrays_of_several_types_and_of_several_libraries(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    check_findings(tmp_path, MIXED, EXPECTED_OF_MIXED)


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
