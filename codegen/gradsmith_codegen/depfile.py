"""The depfile that tells Make and Ninja what generated output depends on."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def modules() -> list[Path]:
    """Every module of the generator."""
    return sorted(PACKAGE.rglob("*.py"))


def depfile(stamp: Path, dependencies: Iterable[Path]) -> str:
    """One Make rule. Dependencies are absolute, so that it does not matter where the build tool stands."""
    lines = [f"{_escaped(str(stamp))}:", *(f"  {_escaped(str(path.resolve()))}" for path in dependencies)]
    return " \\\n".join(lines) + "\n"


def _escaped(path: str) -> str:
    """As Make reads names; Ninja reads them the same way. Neither has a way to write a line's end."""
    if "\n" in path or "\r" in path:
        raise OSError(errno.EINVAL, "a depfile cannot name a file with a line's end in its name", path)
    return path.replace("\\", "\\\\").replace(" ", "\\ ").replace("#", "\\#").replace("$", "$$")
