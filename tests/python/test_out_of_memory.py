"""Where memory runs out within C++ a call raises a MemoryError that says so, or gives the right result."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import processes
import pytest

CALLS = {
    "a call": "g.conv(X, W).Y.tolist() == [[[2, 2]]]",
    "a call with outputs": "g.conv(X, W, out={'Y': np.empty((1, 1, 2))}).Y.tolist() == [[[2, 2]]]",
    "gradients": "g.conv_grad(X[..., :2], X, W).dW.tolist() == [[[2, 2]]]",
    "other attributes": "g.conv(X, W, strides=[next(strides)]).Y.shape == (1, 1, 1)",
    "batch normalization": "g.batch_normalization(X, *[np.ones(1)] * 4).Y.tolist() == [[[1, 1, 1]]]",
    "arrays of DLPack": "g.conv(capsules.Lying(X), capsules.Lying(W)).Y.tolist() == [[[2, 2]]]",
    "a new type": "g.conv(X.view(type('New', (np.ndarray,), {})), W).Y.tolist() == [[[2, 2]]]",
    "new policies": "g.conv(X, W, context=g.Context(deterministic=True)).Y.tolist() == [[[2, 2]]]",
    "two shapes in turn": "g.conv(X[..., : 2 + n % 2], W).Y.tolist() == [[[2] * (1 + n % 2)]]",
    "two outputs in turn": "only(g.conv_grad(X[..., :2], X, W, outputs=ASKED[n % 2])) == GRADIENTS[n % 2]",
    "a wrong shape": "refuses(lambda: g.conv(X, W[..., :0]))",
    "a wrong attribute": "refuses(lambda: g.conv(X, W, strides=(0,)))",
    "a wrong type": "refuses(lambda: g.conv(X.astype(complex), W))",
    "a wrong output": "refuses(lambda: g.conv(X, W, outputs='dX'))",
    "a combination that is not there": "'there' in g.explain('Conv', 'float')",
    "a problem": "len(g.tune('Conv float X=1x1x3 W=1x1x2', device='cpu').note) > 9",
}

EACH = """
import ctypes, itertools, sys
import capsules
import numpy as np
import gradsmith as g

new = ctypes.PyDLL(sys.argv[1])
X, W, strides = np.ones((1, 1, 3)), np.ones((1, 1, 2)), itertools.count(3)
ASKED, GRADIENTS = (("dW",), ("dX",)), ([[[2, 2]]], [[[1, 2, 1]]])
n = 0

def refuses(call):
    try:
        call()
    except (TypeError, ValueError):
        return True

def only(result):
    (given,) = [one for one in result if one is not None]
    return given.tolist()

def call():
    return CALL

assert call()
for and_on in (0, 1):
    for n in range(1, 2000):
        new.FailAllocation(n, and_on)
        try:
            is_right = call()
            has_failed = new.HasFailed()
            new.FailAllocation(0, 0)
            assert is_right, f"allocation {n}: a wrong result"
            if not has_failed:
                break
        except MemoryError as error:
            new.FailAllocation(0, 0)
            assert "memory" in str(error), f"allocation {n}: {error!r}"
            assert call(), f"allocation {n}: a wrong result of the next call"
    else:
        raise AssertionError("there is no end of allocations")
    assert n > 1
    print(n)
assert call()
"""


@pytest.fixture(scope="module")
def failing_new(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    library = tmp_path_factory.mktemp("new") / "failing_new.so"
    source = Path(__file__).with_name("failing_new.cc")
    subprocess.run([compiler, "-O1", "-fPIC", "-shared", str(source), "-o", str(library)], check=True)
    return library


@pytest.mark.parametrize("name", CALLS)
def test_each_allocation_may_fail(failing_new: Path, name: str) -> None:
    code = EACH.replace("CALL", CALLS[name])
    told = processes.check(code, str(failing_new), LD_PRELOAD=str(failing_new))
    assert len(told.splitlines()) == 2
