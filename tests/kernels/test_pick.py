"""What the schema can say, as callers in Python meet it: integers and truth values, attributes of every type, and lists
of dims on both sides of an axis."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

gradsmith: Any = pytest.importorskip("gradsmith", reason="the Python package is not on PYTHONPATH: build it first")
if not hasattr(gradsmith, "pick"):
    pytest.skip("the package on PYTHONPATH has other operators", allow_module_level=True)
X = np.arange(24, dtype="float32").reshape(2, 3, 4)


def picked(x: Any, index: Any, axis: int) -> Any:
    return np.take_along_axis(x, np.expand_dims(index, axis), axis).squeeze(axis)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_an_axis_splits_the_shape(axis: int) -> None:
    rows = tuple(np.delete(X.shape, axis))
    index = np.random.default_rng(1).integers(0, X.shape[axis], rows)
    result = gradsmith.pick(X, index, axis=axis)
    np.testing.assert_array_equal(result.Y, picked(X, index, axis))
    assert result.hits.dtype == np.int32
    np.testing.assert_array_equal(result.hits, 1)


@pytest.mark.parametrize(("axis", "expected"), [(3, "-3 to 2"), (-4, "-3 to 2")])
def test_what_is_no_axis_is_refused(axis: int, expected: str) -> None:
    told = rf"attribute axis is {axis}, and X has shape \[2, 3, 4\]; expected {expected}"
    with pytest.raises(ValueError, match=told):
        gradsmith.pick(X, np.zeros((2, 3), "int64"), axis=axis)


def test_a_row_of_another_shape_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"index has shape \[2, 4\].*\[\*A, \*B\]"):
        gradsmith.pick(X, np.zeros((2, 4), "int64"))


def test_integers_and_truth_values_are_told_apart() -> None:
    index = np.array([[0, 1, 2], [3, 0, 1]])
    mask = np.array([[True, False, True], [False, True, True]])
    result = gradsmith.pick(X, index, mask)
    np.testing.assert_array_equal(result.Y, np.where(mask, picked(X, index, 2), 0))
    np.testing.assert_array_equal(result.hits, mask)
    with pytest.raises(TypeError, match="index has type int32; expected int64"):
        gradsmith.pick(X, index.astype("int32"))
    with pytest.raises(TypeError, match="mask has type uint8; expected bool"):
        gradsmith.pick(X, index, mask.astype("uint8"))


def test_an_absent_attribute_counts() -> None:
    index = np.zeros((2, 3), "int64")
    assert gradsmith.pick(X, index).hits.all()
    assert gradsmith.pick(X, index, ignore_index=None).hits.all()
    assert not gradsmith.pick(X, index, ignore_index=0).hits.any()
    np.testing.assert_array_equal(gradsmith.pick(X, index, bias=0.5).Y, X[:, :, 0] + 0.5)


def test_attributes_of_every_type() -> None:
    index = np.zeros((2, 3), "int64")
    first = X[:, :, 0]
    for negate in (True, np.True_, 1):
        np.testing.assert_array_equal(gradsmith.pick(X, index, negate=negate).Y, -first)
    np.testing.assert_array_equal(gradsmith.pick(X, index, negate=False, unit="two").Y, 2 * first)
    np.testing.assert_array_equal(gradsmith.pick(X, index, factors=(0.5, 3)).Y, 1.5 * first)
    np.testing.assert_array_equal(gradsmith.pick(X, index, limit=float("inf")).Y, first)
    np.testing.assert_array_equal(gradsmith.pick(X, index, limit=9).Y, np.minimum(first, 9))


@pytest.mark.parametrize(
    ("attributes", "error", "told"),
    [
        ({"negate": 2}, ValueError, "attribute negate is 2; expected True or False"),
        ({"negate": "yes"}, TypeError, "attribute negate is 'yes' .*; expected True or False"),
        ({"limit": float("nan")}, ValueError, "attribute limit is nan; expected at least 0"),
        ({"limit": -float("inf")}, ValueError, "attribute limit is -inf; expected at least 0"),
        ({"bias": float("inf")}, ValueError, "attribute bias is inf; expected a finite number"),
        ({"factors": [0.5]}, ValueError, "attribute factors is .*, 1 value; expected 2: one for each dim of A"),
        ({"factors": 0.5}, TypeError, "attribute factors is 0.5 .*; expected a sequence of numbers"),
        ({"factors": [0.5] * 9}, ValueError, "attribute factors is .*; expected at most 8"),
        ({"unit": 3}, TypeError, "attribute unit is 3 .*; expected a str"),
        ({"ignore_index": 1.5}, TypeError, "attribute ignore_index is 1.5 .*; expected an integer"),
    ],
)
def test_wrong_values_are_told(attributes: dict[str, Any], error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        gradsmith.pick(X, np.zeros((2, 3), "int64"), **attributes)


def test_the_gradient_is_that_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    functions: Any = import_module("gradsmith.torch")
    x = torch.tensor(X, requires_grad=True)
    index = torch.tensor([[0, 1, 2], [3, 0, 1]])
    mask = torch.tensor([[True, False, True], [False, True, True]])
    result = functions.pick(x, index, mask, ignore_index=3, factors=[0.5, 2.0])
    assert result.hits.dtype == torch.int32
    result.Y.sum().backward()
    other = torch.tensor(X, requires_grad=True)
    taken = other.gather(2, index.unsqueeze(2)).squeeze(2)
    torch.where(mask & (index != 3), taken, 0).sum().backward()
    torch.testing.assert_close(x.grad, other.grad)


def test_stubs_are_those_of_the_functions(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    package = Path(str(gradsmith.__file__)).parent
    environment = {**os.environ, "MYPYPATH": str(package.parent)}
    command = [sys.executable, "-m", "mypy.stubtest", "--concise", "--ignore-missing-stub"]
    command += [f"gradsmith._ops.{name}_op" for name in ("pick", "pick_grad", "concat_grad", "descend")]
    result = subprocess.run(command, cwd=tmp_path, env=environment, check=False, text=True, capture_output=True)
    assert result.returncode == 0, result.stdout + result.stderr
