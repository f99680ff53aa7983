"""Files on disk: write only what changed, remove what is no longer generated, or compare."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from pathlib import Path

MANIFEST = "manifest.txt"


@dataclass(frozen=True)
class Changes:
    """What `write` did, as paths below the folder."""

    written: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


def with_manifest(contents: dict[str, str]) -> dict[str, str]:
    listing = "".join(f"{path}\n" for path in sorted([*contents, MANIFEST]))
    return {**contents, MANIFEST: listing}


def write(folder: Path, contents: dict[str, str]) -> Changes:
    """Brings the folder to `contents`. Files that the last run wrote and this one does not are removed."""
    contents = with_manifest(contents)
    changes = Changes()
    for path in _orphans(folder, contents):
        (folder / path).unlink(missing_ok=True)
        changes.removed.append(path)
    for parent in {(folder / path).parent for path in contents}:
        parent.mkdir(parents=True, exist_ok=True)
    for path, text in contents.items():
        data = text.encode("utf-8")
        target = folder / path
        if _read_bytes(target) == data:
            changes.unchanged.append(path)
            continue
        target.write_bytes(data)  # cut short, it differs, and the next run writes it again
        changes.written.append(path)
    return changes


def compare(folder: Path, contents: dict[str, str]) -> str:
    """A unified diff from what is on disk to what would be written; empty where they are equal."""
    contents = with_manifest(contents)
    diff: list[str] = []
    for path in sorted([*contents, *_orphans(folder, contents)]):
        old = _read(folder / path)
        new = contents.get(path, "")
        if old != new:
            diff += difflib.unified_diff(
                old.splitlines(keepends=True),
                new.splitlines(keepends=True),
                f"{path} (on disk)",
                f"{path} (generated)",
            )
    return "".join(line if line.endswith("\n") else line + "\n" for line in diff)


def _orphans(folder: Path, contents: dict[str, str]) -> list[str]:
    listed = _read(folder / MANIFEST).splitlines()
    return [path for path in listed if path not in contents and _is_below(path)]


def _is_below(path: str) -> bool:
    """The manifest may have been edited; nothing outside the folder is removed on its word."""
    return bool(path) and not Path(path).is_absolute() and ".." not in Path(path).parts


def _read(path: Path) -> str:
    """The file's text; empty where there is none."""
    return (_read_bytes(path) or b"").decode("utf-8", "replace")


def _read_bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
