"""Files on disk: write only what changed, remove what is no longer generated, or compare."""

from __future__ import annotations

import codecs
import difflib
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

MANIFEST = "manifest.txt"


@dataclass(frozen=True)
class Changes:
    """What was done, as paths below the folder."""

    written: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)

    @classmethod
    def sum(cls, parts: Iterable[Changes]) -> Changes:
        total = cls()
        for part in parts:
            total.written.extend(part.written)
            total.unchanged.extend(part.unchanged)
            total.removed.extend(part.removed)
        return total


def manifest(paths: Iterable[str]) -> tuple[str, str]:
    """Path and text of the list of all files, itself included."""
    return MANIFEST, "".join(f"{path}\n" for path in sorted([*paths, MANIFEST]))


def orphans(folder: Path, paths: Iterable[str]) -> list[str]:
    """The files that the last run wrote and that are not among `paths`."""
    kept = {*paths, MANIFEST}
    listed = _read(folder / MANIFEST).splitlines()
    return [path for path in listed if path not in kept and _is_below(path)]


def remove_orphans(folder: Path, paths: Iterable[str]) -> list[str]:
    removed = orphans(folder, paths)
    for path in removed:
        (folder / path).unlink(missing_ok=True)
    return removed


def make_folders(folder: Path, paths: Iterable[str]) -> None:
    """Makes the folders that hold `paths`, and the folder itself."""
    for parent in {"", *(path.rpartition("/")[0] for path in paths)}:
        (folder / parent).mkdir(parents=True, exist_ok=True)


def write(folder: Path, contents: Iterable[tuple[str, str]]) -> Changes:
    """Writes the files whose text, given with their path, is not what they hold. Folders must be there."""
    changes = Changes()
    for path, text in contents:
        data = text.encode("utf-8")
        target = f"{folder}/{path}"  # a Path for each file would take as long as writing it
        if _create(target, data):
            changes.written.append(path)
        elif _holds(target, data):
            changes.unchanged.append(path)
        else:
            _fill(target, "wb", data)
            changes.written.append(path)
    return changes


def compare(folder: Path, contents: Iterable[tuple[str, str]]) -> dict[str, str]:
    """For each file that differs, by path: a unified diff from what is on disk to the text given for it."""
    diffs: dict[str, str] = {}
    for path, new in contents:
        old = _read(folder / path)
        if old != new:
            diffs[path] = difference(f"{path} (on disk)", old, f"{path} (generated)", new)
    return diffs


def difference(old_name: str, old: str, new_name: str, new: str) -> str:
    """A unified diff of two texts; empty where they are the same."""
    lines = old.splitlines(keepends=True), new.splitlines(keepends=True)
    diff = difflib.unified_diff(*lines, old_name, new_name)
    return "".join(line if line.endswith("\n") else line + "\n" for line in diff)


def write_list(path: Path, paths: Iterable[Path]) -> None:
    """Writes paths, one a line, unless they are there already."""
    data = b"".join([os.fsencode(one) + b"\n" for one in paths])
    if not _holds(str(path), data):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def rewrite(path: Path, text: str) -> None:
    """Gives a text file of an author's another text; a byte order mark stays."""
    old = path.read_bytes() if path.exists() else b""
    mark = codecs.BOM_UTF8 if old.startswith(codecs.BOM_UTF8) else b""
    path.write_bytes(mark + text.encode("utf-8"))


def _is_below(path: str) -> bool:
    """The manifest may have been edited; nothing outside the folder is removed on its word."""
    return bool(path) and "\0" not in path and not Path(path).is_absolute() and ".." not in Path(path).parts


def _read(path: Path) -> str:
    """The file's text; empty where there is none."""
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""


def _create(path: str, data: bytes) -> bool:
    """False where there is a file already."""
    try:
        _fill(path, "xb", data)
    except FileExistsError:
        return False
    return True


def _fill(path: str, mode: str, data: bytes) -> None:
    with open(path, mode) as file:  # noqa: PTH123
        file.write(data)  # cut short, it differs, and the next run writes it again


def _holds(path: str, data: bytes) -> bool:
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            return os.fstat(file.fileno()).st_size == len(data) and file.read() == data
    except FileNotFoundError:
        return False
