"""Docstrings: their examples run, and help is worth reading."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import pydoc
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gradsmith
import numpy as np
import pytest
from gradsmith_codegen.kernel_headers import KernelHeaders
from gradsmith_codegen.plan import make_plan
from gradsmith_codegen.reader import load_schema
from gradsmith_codegen.reference import pages

MODULES = [
    name
    for _, name, _ in pkgutil.iter_modules(gradsmith.__path__, "gradsmith.")
    if not name.rpartition(".")[2].startswith(("_core", "torch", "_autograd", "_double_backward", "__main__"))
]


@pytest.mark.parametrize("name", ["gradsmith", *MODULES])
def test_examples_run(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_the_python_of_pages_runs(repository: Path, page: str) -> None:
    """Block after block, as one program."""
    blocks = re.findall(r"^```python\n(.*?)^```$", (repository / page).read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    names: dict[str, Any] = {}
    for block in blocks:
        if "import torch" in block and not find_spec("torch"):
            continue
        exec(block, names)
    assert names["gradients"].dX.shape == (8, 4, 9, 9)


def test_the_examples_of_operators_run(repository: Path) -> None:
    """Those on the pages of the reference."""
    schema, _ = load_schema(repository / "ops.yaml")
    assert schema
    for page in pages(make_plan(schema, shards=1), KernelHeaders()):
        (example,) = re.findall(r"^```python\n(.*?)^```$", page.text, re.MULTILINE | re.DOTALL)
        assert "assert result." in example
        exec(example, {})


def test_what_replaces_the_wrapper_needs_only_a_shape() -> None:
    """As docs/python.md says of what is not read."""
    dY, X, W = np.ones((8, 6, 7, 7)), np.ones((8, 4, 9, 9)), np.ones((6, 4, 3, 3))
    nothing = np.full(1, np.nan)
    of_x = gradsmith.conv_grad(dY, np.broadcast_to(nothing, X.shape), W, outputs="dX").dX
    np.testing.assert_array_equal(of_x, gradsmith.conv_grad(dY, X, W).dX)
    of_w = gradsmith.conv_grad(dY, X, np.broadcast_to(nothing, W.shape), outputs="dW").dW
    np.testing.assert_array_equal(of_w, gradsmith.conv_grad(dY, X, W).dW)


def test_every_operator_has_an_example() -> None:
    for op in gradsmith.ops():
        function = getattr(gradsmith, op.function)
        examples = doctest.DocTestFinder().find(function, op.function)
        assert any(f"gradsmith.{op.function}(" in one.source for test in examples for one in test.examples)


def test_help_says_what_the_schema_says() -> None:
    text = pydoc.plain(pydoc.render_doc(gradsmith.conv_grad))
    for expected in (
        "Gradients of Conv with respect to its input, its filter and its bias.",
        "dY : array of T (N, M, *O)",
        "gradient of the loss with respect to Y",
        "group : int, default 1",
        "dB : array of T (M,)",
        "half (T = MLFloat16)",
    ):
        assert expected in text
