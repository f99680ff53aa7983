"""Handwritten and generated C++ alike: formatted by clang-format, without a finding of clang-tidy."""

from __future__ import annotations

import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from build_tree import JOBS, REPOSITORY, build, run_generator

FOLDERS = ("runtime", "tests", "bench", "examples", "generated")


def cpp_files(*folders: Path) -> list[str]:
    return sorted(str(path) for folder in folders for pattern in ("*.h", "*.cc") for path in folder.rglob(pattern))


def format_findings(clang_format: Path, files: list[str]) -> str:
    assert files
    command = [str(clang_format), "--dry-run", "-Werror", f"--style=file:{REPOSITORY / '.clang-format'}", *files]
    return subprocess.run(command, check=False, text=True, capture_output=True).stderr


@pytest.mark.parametrize("folder", FOLDERS)
def test_sources_are_formatted(clang_format: Path, folder: str) -> None:
    assert format_findings(clang_format, cpp_files(REPOSITORY / folder)) == ""


@pytest.mark.parametrize("length", [1, 12, 40, 80])
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
    sources = sorted({command["file"] for command in commands})
    assert any("/generated/src/" in source for source in sources)
    with ThreadPoolExecutor(int(JOBS)) as pool:
        findings = pool.map(lambda source: tidy_findings(clang_tidy, tree, source), sources)
    assert "".join(findings) == ""


def tidy_findings(clang_tidy: Path, tree: Path, source: str) -> str:
    command = [str(clang_tidy), "--quiet", f"--config-file={REPOSITORY / '.clang-tidy'}", "-p", str(tree), source]
    result = subprocess.run(command, check=False, text=True, capture_output=True)
    return "" if result.returncode == 0 else f"{source}\n{result.stdout}{result.stderr}"
