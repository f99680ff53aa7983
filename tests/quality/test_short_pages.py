"""Pages for readers are short: what is measured, a page for each question, and how to begin."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from build_tree import REPOSITORY

WIDTH = 120
LAB = REPOSITORY / "docs/lab"
INDEX = LAB / "README.md"


def lines_of(page: Path) -> list[str]:
    return page.read_text(encoding="utf-8").splitlines()


def wrapped(line: str) -> int:
    """How many lines of WIDTH it takes. A row of a table is one."""
    if line.startswith("|") or not line:
        return 1
    return len(textwrap.wrap(line, WIDTH, break_long_words=False, break_on_hyphens=False))


def test_performance_is_short() -> None:
    lines = lines_of(REPOSITORY / "docs/performance.md")
    assert len(lines) <= 300
    assert [line for line in lines if wrapped(line) > 1] == []


def test_the_readme_takes_three_minutes() -> None:
    words = " ".join(lines_of(REPOSITORY / "README.md")).split()
    assert len(words) <= 850


@pytest.mark.parametrize("page", sorted(LAB.glob("*.md")), ids=lambda page: page.stem)
def test_a_question_has_a_short_page_and_a_row_of_the_index(page: Path) -> None:
    if page == INDEX:
        return
    lines = lines_of(page)
    assert lines[0].startswith("# ") and lines[0].endswith("?")
    assert f"| [{page.stem}]({page.name}) |" in INDEX.read_text(encoding="utf-8")
    assert 10 <= sum(map(wrapped, lines)) <= 60


def test_lines_are_counted_as_they_are_wrapped() -> None:
    assert wrapped("word " * 24) == 1
    assert wrapped("word " * 25) == 2
    assert wrapped("| " + "word " * 50 + "|") == 1
