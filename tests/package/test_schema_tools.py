"""docs/schema-tools.md, word for word: its commands in an empty folder, by the generator of the installed prefix."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from page_project import Page, follow, sh

PAGE = Page("schema-tools.md")
SET_UP, TWO_SCHEMAS = PAGE.blocks("sh")
GENERATOR = SET_UP.partition("\n")[2]  # for each shell


@pytest.fixture(scope="module")
def followed(prefix: Path) -> Path:
    """The folder as the page leaves it."""
    folder = PAGE.project("schema_tools")
    folder.mkdir(exist_ok=True)
    for block in (SET_UP, TWO_SCHEMAS):
        result = sh(block, folder, prefix)
        assert (result.returncode, result.stdout + result.stderr) == (0, "")
    commands = PAGE.commands()
    assert len(commands) == 4
    follow(commands, GENERATOR, folder, prefix)
    return folder


# The first operator of a file.
NEW = "gradsmith-codegen new-op Own own.yaml --formula 'Y: X * X' --write"


def run(command: str, folder: Path, prefix: Path) -> tuple[int, str]:
    result = sh(f"{GENERATOR}\n{command}", folder, prefix)
    return result.returncode, result.stdout + result.stderr


def test_the_page_does_what_it_says(followed: Path, prefix: Path) -> None:
    before, added = (prefix / "share/gradsmith/ops.yaml").read_text(), (followed / "ops.yaml").read_text()
    assert added.startswith(before)
    assert added.count("- name: LayerScale\n") == 1
    status, told = run("gradsmith-codegen check", followed, prefix)
    assert (status, told.splitlines()[-1].endswith(", no errors")) == (0, True)


@pytest.mark.parametrize(
    ("command", "status", "holding"),
    [
        ("gradsmith-codegen schema | diff - ops.schema.json", 0, ""),
        ("gradsmith-codegen diff old.yaml old.yaml", 0, "no changes\n"),
        ("gradsmith-codegen diff old.yaml new.yaml", 1, "new.yaml:16: breaking: Conv"),
        ("gradsmith-codegen diff old.yaml none.yaml", 2, "none.yaml"),
        ("gradsmith-codegen fmt --check", 0, ""),
        (
            "sed 's/name: Conv$/name:   Conv/' old.yaml > odd.yaml; gradsmith-codegen fmt --check odd.yaml",
            1,
            "-  - name:   Conv",
        ),
        ("gradsmith-codegen explain InstanceNormalizationGard", 1, "InstanceNormalizationGrad"),
        ("gradsmith-codegen explain InstanceNormalizationGrad whole", 1, "half"),
        ("gradsmith-codegen new-op Own none.yaml --formula 'Y: X * exp' --write", 1, "'exp', which is a function"),
        (f"{NEW} && gradsmith-codegen check own.yaml", 0, "1 operator, 4 rows (4 on cpu, 4 on cuda), no errors"),
        (f"{NEW}; {NEW}", 1, "Own"),
        (f"{NEW} && gradsmith-codegen new-op OwnGrad own.yaml --formula 'dX: 2 * X * dY'", 0, "    gradient_of: Own\n"),
    ],
)
def test_what_the_page_says_of_other_commands(
    followed: Path, prefix: Path, command: str, status: int, holding: str
) -> None:
    (followed / "own.yaml").unlink(missing_ok=True)
    ended, told = run(command, followed, prefix)
    assert not (followed / "none.yaml").exists()
    assert ended == status, told
    assert holding in told
    assert (told == "") == (holding == "")


def test_objects_have_the_keys_that_the_page_lists(followed: Path, prefix: Path) -> None:
    _, told = run("gradsmith-codegen diff --format json old.yaml new.yaml", followed, prefix)
    (listed,) = re.findall(r"gives a list of objects with ((?:`\w+`(?:, | and |\n)?)+)", PAGE.text)
    assert {tuple(one) for one in json.loads(told)} == {tuple(re.findall(r"`(\w+)`", listed))}
    _, told = run("gradsmith-codegen explain Relu --json", followed, prefix)
    (listed,) = re.findall(r"gives one object with the same: ((?:`\w+`(?:, | and |,\n|\n| )*)+)", PAGE.text)
    assert list(json.loads(told)) == re.findall(r"`(\w+)`", listed)
