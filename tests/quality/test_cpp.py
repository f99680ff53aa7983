"""Handwritten and generated C++ alike: formatted by clang-format, without a finding of clang-tidy."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from build_tree import JOBS, REPOSITORY, SCRATCH, build, run_generator

TIDY_FOLDERS = tuple(REPOSITORY / folder for folder in ("runtime", "tools", "tests/support", "tests/reference"))
FOLDERS = ("runtime", "python", "tests", "tools", "bench", "examples", "generated")


def cpp_files(*folders: Path) -> list[str]:
    return sorted(str(path) for folder in folders for pattern in ("*.h", "*.cc") for path in folder.rglob(pattern))


def format_findings(clang_format: Path, files: list[str]) -> str:
    assert files
    command = [str(clang_format), "--dry-run", "-Werror", f"--style=file:{REPOSITORY / '.clang-format'}", *files]
    return subprocess.run(command, check=False, text=True, capture_output=True).stderr


@pytest.mark.parametrize("folder", FOLDERS)
def test_sources_are_formatted(clang_format: Path, folder: str) -> None:
    assert format_findings(clang_format, cpp_files(REPOSITORY / folder)) == ""


@pytest.mark.parametrize("length", [1, 12, 27, 36])
def test_generated_code_is_formatted_whatever_the_length_of_names(
    clang_format: Path, tmp_path: Path, length: int
) -> None:
    schema = tmp_path / "ops.yaml"
    schema.write_text(with_names_of_length((REPOSITORY / "ops.yaml").read_text(), length))
    out = tmp_path / "generated"
    run_generator("generate", "--schema", str(schema), "--out", str(out))
    assert format_findings(clang_format, cpp_files(out)) == ""


def with_names_of_length(text: str, length: int) -> str:
    """The schema with every op and every row renamed: A, B, ..., or AAAA, BBBB, ..."""
    ops = re.findall(r"^  - name: (\w+)$", text, re.MULTILINE)
    for number, op in enumerate(ops):
        name = chr(ord("A") + number) + "a" * (length - 1)
        text = re.sub(rf"^(  - name|    gradient_of): {op}$", rf"\1: {name}", text, flags=re.MULTILINE)
    rows = dict.fromkeys(re.findall(r"^      (\w+): {T: ", text, re.MULTILINE))
    for number, row in enumerate(rows):
        name = chr(ord("a") + number) * length
        text = re.sub(rf"^      {row}: {{T: ", f"      {name}: {{T: ", text, flags=re.MULTILINE)
    return text


def test_clang_tidy_finds_nothing(clang_tidy: Path) -> None:
    tree = Path(os.environ.get("GRADSMITH_BUILD_DIR", REPOSITORY / "build/default"))
    build(tree, "gradsmith_generate")
    commands = json.loads((tree / "compile_commands.json").read_text())
    checked = re.compile("|".join(map(re.escape, map(str, TIDY_FOLDERS + (tree / "generated",)))))
    commands = [command for command in commands if checked.match(command["file"])]
    assert {Path(command["file"]).parent.name for command in commands} >= {"core", "conv", "src", "support"}
    with ThreadPoolExecutor(int(JOBS)) as pool:
        findings = "".join(pool.map(lambda command: tidy_findings(clang_tidy, tree, command), commands))
    if findings:
        pytest.fail(findings, pytrace=False)


def tidy_findings(clang_tidy: Path, tree: Path, command: dict[str, str]) -> str:
    """What clang-tidy prints, unless it had nothing to say of the very same input before."""
    stamp = SCRATCH / "tidy" / input_digest(clang_tidy, command)
    if stamp.exists():
        return ""
    arguments = [str(clang_tidy), "--quiet", "-p", str(tree), command["file"]]
    result = subprocess.run(arguments, check=False, text=True, capture_output=True)
    if result.returncode == 0:
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.touch()
        return ""
    return f"{command['file']}\n{result.stdout}{result.stderr}"


def input_digest(clang_tidy: Path, command: dict[str, str]) -> str:
    """Of the tool, its configuration, the command, and every file that the command reads."""
    words = shlex.split(command["command"])
    output = words.index("-o")
    listing = [*words[:output], *words[output + 2 :], "-MM", "-MF", "-"]
    rule = subprocess.run(listing, cwd=command["directory"], check=True, text=True, capture_output=True).stdout
    read = [Path(command["directory"], path) for path in rule.replace("\\\n", " ").split()[1:]]
    digest = hashlib.sha256(f"{clang_tidy.stat().st_mtime_ns} {command['command']}".encode())
    for path in (REPOSITORY / ".clang-tidy", REPOSITORY / "tests/.clang-tidy", *read):
        digest.update(path.read_bytes())
    return digest.hexdigest()
