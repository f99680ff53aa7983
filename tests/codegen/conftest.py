"""Shared by the generator's tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "codegen"), str(Path(__file__).parent)]


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
