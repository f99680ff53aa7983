"""What the generator does to the folder that it writes to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from gradsmith_codegen import files
from gradsmith_codegen.files import Changes


def write(folder: Path, contents: dict[str, str]) -> Changes:
    """Brings the folder to the contents, step by step as output.write does."""
    removed = files.remove_orphans(folder, contents)
    files.make_folders(folder, contents)
    changes = files.write(folder, contents.items())
    listing = files.write(folder, [files.manifest(list(contents))])
    return Changes.sum([changes, listing, Changes(removed=removed)])


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A folder that holds a file of the generator's in src/ and one of the user's."""
    folder = tmp_path / "out"
    write(folder, {"src/a.cc": "a\n"})
    (folder / "src/own.cc").write_text("mine\n", encoding="utf-8")
    return folder


def test_what_is_no_longer_generated_goes_and_nothing_else(out: Path) -> None:
    changes = write(out, {"src/b.cc": "b\n"})
    assert (changes.written, changes.removed) == (["src/b.cc", "manifest.txt"], ["src/a.cc"])
    assert sorted(path.name for path in (out / "src").iterdir()) == ["b.cc", "own.cc"]


def test_a_file_that_is_as_it_should_be_keeps_its_age(out: Path) -> None:
    os.utime(out / "src/a.cc", (1, 1))
    changes = write(out, {"src/a.cc": "a\n", "src/b.cc": "b\n"})
    assert changes.unchanged == ["src/a.cc"]
    assert (out / "src/a.cc").stat().st_mtime == 1


@pytest.mark.parametrize("absolute", [False, True])
def test_nothing_outside_is_removed_on_the_word_of_the_manifest(out: Path, absolute: bool) -> None:
    outside = out.parent / "outside"
    outside.write_text("mine\n", encoding="utf-8")
    listed = str(outside) if absolute else "../outside"
    (out / files.MANIFEST).write_text(f"src/a.cc\n{listed}\n", encoding="utf-8")
    assert write(out, {}).removed == ["src/a.cc"]
    assert outside.exists()


def test_the_manifest_lists_all_in_order_whatever_the_order_of_the_contents(out: Path) -> None:
    write(out, {"src/b.cc": "", "src/a.cc": "", "docs/z.md": ""})
    listed = (out / files.MANIFEST).read_text(encoding="utf-8")
    assert listed == "docs/z.md\nmanifest.txt\nsrc/a.cc\nsrc/b.cc\n"


def test_a_comparison_shows_what_differs(out: Path) -> None:
    assert files.compare(out, [("src/a.cc", "a\n")]) == {}
    assert files.orphans(out, []) == ["src/a.cc"]
    difference = files.compare(out, [("src/a.cc", "")])["src/a.cc"]
    assert "--- src/a.cc (on disk)\n+++ src/a.cc (generated)\n@@ -1 +0,0 @@\n-a\n" in difference
    assert (out / "src/a.cc").exists()
