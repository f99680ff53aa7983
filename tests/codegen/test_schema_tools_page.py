"""docs/schema-tools.md: what its commands print is what they print.

`pytest tests/codegen --refresh` writes places anew that have moved.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from gradsmith_codegen.cli import main

PAGE = Path("docs/schema-tools.md")
PROGRAM = "gradsmith-codegen"
LEFT_OUT = "..."
TWO_SCHEMAS = re.compile(r"^```sh\n(sed .*?)^```$", re.M | re.S)
BLOCK = re.compile(rf"^```\n\$ {PROGRAM} (.*)\n((?:(?!```).*\n)*)```$", re.M)
COMMANDS = ("new-op LayerScale", "new-op SoftCube", "diff", "explain")

Run = Callable[[str], list[str]]


@pytest.fixture
def run(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """In a folder with `ops.yaml`, and two schemas that `diff` compares."""
    shutil.copy(repository / "ops.yaml", tmp_path)
    (two_schemas,) = TWO_SCHEMAS.findall((repository / PAGE).read_text(encoding="utf-8"))
    subprocess.run(["bash", "-euc", two_schemas], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)

    def run(command: str) -> list[str]:
        main(shlex.split(command))
        # Places in ops.yaml change with every operator that is added.
        return re.sub(r"ops\.yaml:\d+", f"ops.yaml:{LEFT_OUT}", capsys.readouterr().out).splitlines()

    return run


def shown(told: list[str], printed: list[str]) -> list[str]:
    """The lines in the place of those on the page, which may leave out the first, and some between."""
    found: list[str] = []
    at = 0
    for number, part in enumerate("\n".join(["", *told, ""]).split(f"\n{LEFT_OUT}\n")):
        lines = part.strip("\n").split("\n") if part.strip("\n") else []
        starts = range(at, len(printed) - len(lines) + 1)
        bare = without_places(lines)
        at = next((one for one in starts if without_places(printed[one : one + len(lines)]) == bare), -1)
        assert at >= 0, (lines, printed)
        found += [LEFT_OUT] if number else []
        found += printed[at : at + len(lines)]
        at += len(lines)
    return found


def without_places(lines: list[str]) -> list[str]:
    return [re.sub(r"\.yaml:\d+", ".yaml:", line) for line in lines]


def test_each_command_prints_what_the_page_says(run: Run, repository: Path, refresh: bool) -> None:
    text = (repository / PAGE).read_text(encoding="utf-8")
    commands = [block.group(1) for block in BLOCK.finditer(text)]
    assert [command.startswith(start) for command, start in zip(commands, COMMANDS, strict=True)] == [True] * 4
    assert text.count(f"$ {PROGRAM} ") == len(commands)

    def anew(block: re.Match[str]) -> str:
        lines = shown(block.group(2).splitlines(), run(block.group(1)))
        return "\n".join([f"```\n$ {PROGRAM} {block.group(1)}", *lines, "```"])

    now = BLOCK.sub(anew, text)
    if refresh:
        (repository / PAGE).write_text(now, encoding="utf-8")
    assert now == text


def test_the_line_for_editors_is_that_of_our_own(repository: Path) -> None:
    (line,) = re.findall(r"^```\n(# yaml-language-server: .*)\n```$", (repository / PAGE).read_text("utf-8"), re.M)
    assert (repository / "ops.yaml").read_text(encoding="utf-8").startswith(f"{line}\n")


def test_what_is_told_of_an_operator_is_what_the_page_lists(run: Run, repository: Path) -> None:
    told = yaml.safe_load("\n".join(run("explain Relu --json")))
    (listed,) = re.findall(
        r"gives one object with the same: ((?:`\w+`(?:, | and |,\n|\n| )*)+)", (repository / PAGE).read_text("utf-8")
    )
    assert re.findall(r"`(\w+)`", listed) == list(told)
