"""The operators that builds with sanitizers have: what is left out of them says nothing that these do not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from build_tree import REPOSITORY, run_generator
from few_operators import covering_operators

# What the generator makes of an entry, where the entry could have been another.
MADE = {
    "an operation of the oracle": r'\.operation = "(\w+)"',
    "an element type": r"DataType::(k\w+)",
    "a type of an attribute": r"AttributeKind::(k\w+)",
    "a kind of length": r"DimSpec::Kind::(k\w+)",
    "a pattern": r'^#include "(patterns/\w+)\.h"',
    "a family of kernels": r'^#include "(\w+/kernels)\.h"',
    "an operation of kernels": r"\bformula::(\w+)\(",
}


@pytest.fixture(scope="module")
def covering(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("covering")
    (folder / "ops.yaml").write_text(covering_operators(), encoding="utf-8")
    run_generator("generate", "--schema", str(folder / "ops.yaml"), "--out", str(folder / "generated"))
    return folder / "generated"


@pytest.mark.parametrize("made", MADE)
def test_what_is_made_of_all_is_made_of_these(covering: Path, made: str) -> None:
    assert found(covering, MADE[made]) == found(REPOSITORY / "generated", MADE[made])


def found(folder: Path, pattern: str) -> set[str]:
    files = (path for part in ("src", "tests") for path in (folder / part).rglob("*") if path.is_file())
    # Operands of kernels are made of their headers, whichever operators there are.
    sources = [path.read_text(encoding="utf-8") for path in files if path.name != "operands.h"]
    made = {match[1] for text in sources for match in re.finditer(pattern, text, re.MULTILINE)}
    assert made
    return made
