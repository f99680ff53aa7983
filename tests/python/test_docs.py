"""Docstrings: their examples run, and help is worth reading."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import pydoc

import gradsmith
import pytest

MODULES = [
    name
    for _, name, _ in pkgutil.iter_modules(gradsmith.__path__, "gradsmith.")
    if name.rpartition(".")[2] not in ("_core", "torch", "__main__")
]


@pytest.mark.parametrize("name", ["gradsmith", *MODULES])
def test_examples_run(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


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
