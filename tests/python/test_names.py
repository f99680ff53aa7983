"""Operators may have any names: where their functions lie, no code looks for what is not theirs."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import gradsmith
import pytest
from gradsmith._codegen import python_names
from gradsmith._ops import FUNCTIONS

PACKAGE = Path(str(gradsmith.__file__)).parent
OPERATORS = {function.__name__ for function in FUNCTIONS.values()}
RESULTS = {f"{name}Result" for name in FUNCTIONS}


def _may_be_a_functions(name: str) -> bool:
    """A function's name begins with a letter and is in small letters; that of its result ends in Result."""
    return name[0] != "_" and (name == name.lower() or name.endswith("Result"))


def _bound(path: Path) -> Iterator[str]:
    """The names that a module's text binds."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from ((one.asname or one.name).partition(".")[0] for one in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name


def _modules() -> list[str]:
    return ["gradsmith", "gradsmith._ops", *(f"gradsmith._ops.{one.name}" for one in _of_operators())]


def _of_operators() -> list[pkgutil.ModuleInfo]:
    return [one for one in pkgutil.iter_modules([str(PACKAGE / "_ops")]) if one.name.endswith("_op")]


@pytest.mark.parametrize("name", _modules())
def test_what_a_module_of_operators_has_besides_them_is_no_operators(name: str) -> None:
    module = importlib.import_module(name)
    submodules = {one for one, value in vars(module).items() if isinstance(value, ModuleType)}
    others = {one for one in vars(module) if _may_be_a_functions(one)} - OPERATORS - RESULTS
    if name == "gradsmith._ops":
        others -= submodules  # imported before the function of the same name, which takes its place
    assert others <= python_names.PACKAGE_NAMES


def test_the_module_with_autograd_has_private_names_alone() -> None:
    assert [name for name in _bound(PACKAGE / "torch.py") if name[0] != "_"] == []


def test_the_module_with_autograd_has_the_functions_alone() -> None:
    torch = pytest.importorskip("torch")
    with_autograd = importlib.import_module("gradsmith.torch")
    assert {one for one in vars(with_autograd) if one[0] != "_"} == OPERATORS == set(with_autograd.__all__)
    for name in OPERATORS:
        function = getattr(with_autograd, name)
        assert (function.__module__, function.__name__) == ("gradsmith.torch", name)
        assert callable(getattr(torch.ops.gradsmith, name))
    of_torch = {name for name in dir(torch.ops.gradsmith) if _may_be_a_functions(name)} - OPERATORS
    assert of_torch <= python_names.PACKAGE_NAMES
