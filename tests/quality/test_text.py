"""Every file of the repository: nothing left unfinished, nothing that belongs to one machine, nothing heavy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from build_tree import REPOSITORY

NOT_SOURCES = {".git", ".venv", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache"}
INPUTS_OF_FUZZERS = REPOSITORY / "tests" / "fuzz" / "corpus"
LARGEST = 1_000_000  # bytes


def files(folder: Path = REPOSITORY) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name in NOT_SOURCES or path.is_symlink() or path in (REPOSITORY / "build", INPUTS_OF_FUZZERS):
            continue
        if path.is_dir():
            yield from files(path)
        else:
            yield path


def text_files() -> Iterator[tuple[Path, str]]:
    for path in files():
        try:
            yield path, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


# Each is written so that it does not match itself.
@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param(r"\b(TO[D]O|FIX[M]E|X[X]X|HA[C]K)\b", id="unfinished"),
        pytest.param(r"/(home|work|root|Users)[/]\w", id="path of a machine"),
        pytest.param(r"^(<{7}|>{7}|={7})( |$)", id="conflict"),
        pytest.param(r"[ \t]+$", id="blank at the end of a line"),
        pytest.param(r"\r", id="carriage return"),
    ],
)
def test_no_file_holds(pattern: str) -> None:
    regex = re.compile(pattern, re.MULTILINE)
    found = [
        f"{path.relative_to(REPOSITORY)}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]!r}"
        for path, text in text_files()
        for match in regex.finditer(text)
    ]
    assert found == []


def test_text_ends_with_one_newline() -> None:
    odd = [str(path) for path, text in text_files() if text and (not text.endswith("\n") or text.endswith("\n\n"))]
    assert odd == []


def test_no_file_is_large() -> None:
    assert [str(path) for path in files() if path.stat().st_size > LARGEST] == []
