"""Shared by the generator's tests: where things are, and a small schema to vary."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "codegen"))

from gradsmith_codegen.diagnostics import Diagnostic  # noqa: E402 - the path comes first
from gradsmith_codegen.loader import source_of  # noqa: E402
from gradsmith_codegen.model import Schema  # noqa: E402
from gradsmith_codegen.reader import load_source  # noqa: E402

SCALE = """\
schema_version: 1
domain: com.example
since_version: 1
ops:
  - name: Scale
    doc: Y is X times factor.
    kernel: scale::Scale
    backends: [cpu]
    inputs:
      X: {type: T, shape: [N, "*D"]}
    outputs:
      Y: {type: T, like: X}
    dims:
      D: {length: [0, 3]}
    attributes:
      factor: {type: float, default: 1.0}
    rows:
      float: {T: float}
    cases:
      - {name: plain, X: [2, 3]}
"""

Load = Callable[[str], tuple[Schema | None, list[Diagnostic]]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--refresh", action="store_true", help="write the expected texts below bad/ anew")


@pytest.fixture
def refresh(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--refresh"))


@pytest.fixture(scope="session")
def repository() -> Path:
    return REPOSITORY


@pytest.fixture(scope="session")
def ops_yaml() -> Path:
    return REPOSITORY / "ops.yaml"


@pytest.fixture
def scale() -> str:
    """A schema of one operator, without faults."""
    return SCALE


@pytest.fixture
def load() -> Load:
    """Reads and checks a schema's text."""
    return lambda text: load_source(source_of("ops.yaml", text))


def edited(text: str, *edits: tuple[str, str]) -> str:
    """The text with each first string replaced by the second; it is an error if one is not there."""
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text
