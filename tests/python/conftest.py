from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

gradsmith = pytest.importorskip("gradsmith", reason="the Python package is not on PYTHONPATH: build it first")

# What JAX computes is compared on the CPU, also where it could use a GPU.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# JAX compiles each shape that it meets; code that runs once need not be optimized.
os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"

REPOSITORY = Path(__file__).resolve().parents[2]

if find_spec("hypothesis"):
    import_module("hypothesis.configuration").set_hypothesis_home_dir(REPOSITORY / "build/hypothesis")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests for a GPU are skipped where there is none, with what is missing."""
    missing = gradsmith.missing_for("cuda:0")
    for item in items:
        if missing and item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason=missing))


@pytest.fixture(scope="session")
def repository() -> Path:
    return REPOSITORY
