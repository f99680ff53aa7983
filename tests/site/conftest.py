"""The reference, built once for all tests of a run."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).parent)]


@pytest.fixture(scope="session")
def repository() -> Path:
    return REPOSITORY


@pytest.fixture(scope="session")
def html() -> Path:
    """The folder of the pages; without a warning, or building them fails."""
    missing = [name for name in ("sphinx", "myst_parser", "furo") if find_spec(name) is None]
    if missing:
        pytest.skip(f"the reference is not built: {', '.join(missing)} is missing (requirements-docs.txt has it)")
    script = REPOSITORY / "docs/site/build_site.py"
    built = subprocess.run([sys.executable, str(script)], check=False, text=True, capture_output=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return REPOSITORY / "build/docs/html"
