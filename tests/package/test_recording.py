"""docs/cpp.md on recording, word for word: a program in an empty folder, and an installed prefix."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from page_project import Page, follow, sh

PAGE = Page("cpp.md")


@pytest.fixture(scope="module")
def project(prefix: Path) -> Path:
    """A folder with what the page's commands leave."""
    folder = PAGE.project("recording")
    (pkgconfig,) = {path.parent for path in prefix.rglob("gradsmith.pc")}
    commands = PAGE.commands()
    assert [command.partition(" ")[0] for command, _ in commands] == ["g++", "GRADSMITH_RECORD=problems.txt", "cat"]
    follow(commands, f"export PKG_CONFIG_PATH='{pkgconfig}'", folder, prefix)
    return folder


def test_the_page_does_what_it_says(project: Path) -> None:
    assert {path.name for path in project.iterdir()} == {"train.cc", "train", "problems.txt", "problems.txt.lock"}


def test_a_run_adds_to_what_is_there_and_one_without_the_variable_nothing(project: Path, prefix: Path) -> None:
    problems = project / "problems.txt"
    whole = problems.read_text()
    *others, last = whole.splitlines(keepends=True)
    problems.write_text("".join(others))
    for variable, expected in (("", others), ("GRADSMITH_RECORD=problems.txt", [*others, last])):
        told = sh(f"{variable} ./train", project, prefix)
        assert (told.returncode, told.stderr) == (0, "")
        assert problems.read_text() == "".join(expected)


def test_what_is_wrong_with_the_file_is_one_warning(project: Path, prefix: Path) -> None:
    told = sh("GRADSMITH_RECORD=. ./train", project, prefix)
    assert (told.returncode, told.stderr.count("calls are not recorded any more")) == (0, 1), told.stderr


def test_the_installed_generator_tells_the_rows_of_the_problems(project: Path, prefix: Path) -> None:
    generator = 'PYTHONPATH="$PREFIX/share/gradsmith/codegen" python3 -m gradsmith_codegen'
    schema = '--schema "$PREFIX/share/gradsmith/ops.yaml"'
    told = sh(f"{generator} list {schema} --problems problems.txt --backend cpu", project, prefix)
    assert told.returncode == 0, told.stderr
    for row in ("Conv +half", "ConvGrad +half", "Softmax +float"):
        assert len(re.findall(rf"^{row}\b", told.stdout, re.MULTILINE)) == 1, told.stdout


def test_gradsmith_tune_reads_the_file(project: Path, prefix: Path) -> None:
    tune = prefix / "bin/gradsmith-tune"
    if not tune.exists():
        pytest.skip("the installed library has nothing to choose among")
    for problems, fault in (("cat problems.txt", ""), ("sed 's/half/halff/' problems.txt", "-:2: 'halff'")):
        told = sh(f"{problems} | GRADSMITH_CACHE=off '{tune}' -", project, prefix).stderr
        assert re.findall(r"-:\d+: '\w+'", told)[:1] == [fault] * bool(fault), told
