"""The Markdown pages of the repository as sources of the reference: at their places, with links that lead somewhere."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path, PurePosixPath

HOME = "index.md"
# What the reader of a page wants to find beside it, in order; pages of docs/ that are not named here are in the last.
NAVIGATION = {
    "Using it": ("install", "selection", "cpp", "python", "cuda", "onednn", "performance", "teardown"),
    "Operators": (
        "../generated/docs/README",
        "adding-operators",
        "own-operators",
        "functors",
        "schema",
        "schema-tools",
    ),
    "Reference": ("../api/index", "support/README"),
    "Working on it": ("../CONTRIBUTING", "../CHANGELOG", "../SECURITY", "lab/README"),
}
_LOGS = ("docs/gpu-runs/",)  # what ran when: no page for readers
_SITE = "docs/site/"
_CODE = re.compile(r"^ *(```+|~~~+).*?^ *\1|(`+)(?!`).*?(?<!`)\2(?!`)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s:]+)\)")  # none of the web, which has a colon


def handwritten(root: Path) -> Iterator[str]:
    """The paths of the pages, below the repository's root."""
    yield from (
        name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md") if (root / name).exists()
    )
    for path in sorted((root / "docs").rglob("*.md")):
        name = path.relative_to(root).as_posix()
        if not name.startswith((*_LOGS, _SITE)):
            yield name


def source_of(root: Path, name: str, pages: Collection[str]) -> str:
    """The text of a page, whose links to what is no page are plain text."""
    text = (root / name).read_text(encoding="utf-8")
    return outside_of_code(text, lambda piece: _LINK.sub(lambda link: _linked(link, root, name, pages), piece))


def outside_of_code(text: str, change: Callable[[str], str]) -> str:
    """Changes what is no code. A link whose text is code is changed as a whole."""
    kept: list[str] = []

    def keep(code: re.Match[str]) -> str:
        kept.append(code[0])
        return f"\0{len(kept) - 1}\0"

    changed = change(_CODE.sub(keep, text))
    return re.sub("\0(\\d+)\0", lambda mark: kept[int(mark[1])], changed)


def _linked(link: re.Match[str], root: Path, name: str, pages: Collection[str]) -> str:
    words, target = link[1], link[2]
    place, mark, anchor = target.partition("#")
    if not place:
        return link[0]
    folder = PurePosixPath(name).parent
    path = os.path.normpath(folder / place)
    if (root / path).is_dir():
        path = f"{path}/README.md"
    if path not in pages:
        return words
    found = os.path.relpath(HOME if path == "README.md" else path, folder)
    return f"[{words}]({found}{mark}{anchor})"


def home(text: str, pages: Collection[str]) -> str:
    """The first page, with the lists of all that are in the navigation."""
    named = {os.path.normpath(f"docs/{name}") for names in NAVIGATION.values() for name in names}
    others = [page for page in pages if PurePosixPath(page).parent == PurePosixPath("docs") and page[:-3] not in named]
    lists = {title: [os.path.normpath(f"docs/{name}") for name in names] for title, names in NAVIGATION.items()}
    if others:
        lists["Also"] = [page[:-3] for page in others]
    trees = [
        "\n".join(["```{toctree}", ":hidden:", f":caption: {title}", "", *names, "```"])
        for title, names in lists.items()
    ]
    return "\n\n".join([text.rstrip(), *trees]) + "\n"


def is_in_navigation(name: str) -> bool:
    named = {os.path.normpath(f"docs/{one}.md") for names in NAVIGATION.values() for one in names}
    return name in named or PurePosixPath(name).parent == PurePosixPath("docs")


def orphaned(text: str) -> str:
    """Of a page that only links lead to."""
    return f"---\norphan: true\n---\n\n{text}"
