"""What CONTRIBUTING.md names of a new family is there: macros in the headers that it names, and files."""

from __future__ import annotations

import re

import pytest
from build_tree import REPOSITORY

PAGE = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
(SECTION,) = re.findall(r"^### A new family, step by step\n(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)
MACRO = re.compile(r"`(GRADSMITH_[A-Z_]+)\b")


def macros_of(*headers: str) -> set[str]:
    texts = [(REPOSITORY / "runtime" / header).read_text(encoding="utf-8") for header in headers]
    return {name for text in texts for name in re.findall(r"^#define (GRADSMITH_\w+)", text, re.MULTILINE)}


def test_macros_are_in_the_headers_that_are_named_for_them() -> None:
    rows = re.findall(r"^\| on (.*) \| (.*) \| (.*) \|$", SECTION, re.MULTILINE)
    assert len(rows) == 6
    for _, macros, headers in rows:
        named = [f"patterns/cuda/{name}" for name in re.findall(r"`(\w+\.cuh)`", headers)]
        assert set(MACRO.findall(macros)) <= macros_of(*named)
    everywhere = [str(path.relative_to(REPOSITORY / "runtime")) for path in (REPOSITORY / "runtime").rglob("*.*h")]
    assert set(MACRO.findall(SECTION)) <= macros_of(*everywhere)


def test_every_macro_that_makes_kernels_of_all_types_is_named() -> None:
    """They take a name and a functor, or what computes it as well, and no type."""
    headers = (REPOSITORY / "runtime/patterns/cuda").glob("*.cuh")
    texts = [path.read_text(encoding="utf-8") for path in headers]
    made = {
        name
        for text in texts
        for name in re.findall(r"^#define (GRADSMITH_\w+)\(name, (?:function, )?Functor\)", text, re.MULTILINE)
    }
    assert len(made) > 5
    assert made <= set(MACRO.findall(SECTION))


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:runtime|tests)/[\w/]+\.\w+)`", SECTION))))
def test_files_are_there(path: str) -> None:
    assert (REPOSITORY / path).exists()
