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


def test_no_blank_line_splits_a_list_of_the_changelog() -> None:
    text = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^(?:- |  ).*\n\n- .*", text, re.MULTILINE) == []


def test_links_within_pages_lead_somewhere() -> None:
    pages = {path: text for path, text in text_files() if path.suffix == ".md"}
    broken = [
        f"{path.relative_to(REPOSITORY)}: {link}"
        for path, text in pages.items()
        for link in LINK.findall(CODE.sub("", text))
        if not leads_somewhere(link, path)
    ]
    assert len(pages) > 10
    assert broken == []


CODE = re.compile(r"^ *```.*?^ *```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s:]+)\)")  # none of the web, whose addresses have a colon


def leads_somewhere(link: str, page: Path) -> bool:
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    if not target.exists():
        return False
    return not anchor or target.suffix != ".md" or anchor in anchors(target.read_text(encoding="utf-8"))


def anchors(text: str) -> set[str]:
    """Of its headings, as GitHub makes them, and of elements with an id."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    shown = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower() for heading in headings]
    made = {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in shown}
    return made | set(re.findall(r'<a id="([^"]+)"', text))


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# What `f` does, and why\n", encoding="utf-8")
    for link, leads in (("page.md", True), ("#what-f-does-and-why", True), ("page.md#f", False), ("none.md", False)):
        assert leads_somewhere(link, page) == leads
