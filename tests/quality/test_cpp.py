"""Handwritten and generated C++ alike: formatted by clang-format, without a finding of clang-tidy."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from build_tree import JOBS, REPOSITORY, SCRATCH, build, run_generator
from few_operators import few_operators
from source_units import Kind, Unit, findings_in, units_of

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
    schema.write_text(with_names_of_length(few_operators(), length))
    out = tmp_path / "generated"
    run_generator("generate", "--schema", str(schema), "--out", str(out))
    assert format_findings(clang_format, cpp_files(out)) == ""


@pytest.mark.parametrize(("op_length", "row_length"), [(36, 1), (36, 36), (27, 20), (12, 8)])
def test_generated_code_is_formatted_however_many_types_there_are(
    clang_format: Path, tmp_path: Path, op_length: int, row_length: int
) -> None:
    schema, out = tmp_path / "ops.yaml", tmp_path / "generated"
    text = "schema_version: 1\ndomain: com.example\nsince_version: 1\nops:\n"
    (tmp_path / "many").mkdir()
    with (tmp_path / "many/kernels.h").open("w") as header:
        for count in range(1, 10):
            for types in (["half"] * count, ["uint32", "half", "int64"] * 3):
                name = chr(ord("A") + count) + types[0][0] * (op_length - 1)
                header.write(kernel_of_types(name, count))
                text += entry_of_types(name, "r" * row_length, types[:count])
    schema.write_text(text)
    run_generator("generate", str(schema), "--out", str(out), "--kernels", str(tmp_path))
    assert format_findings(clang_format, cpp_files(out)) == ""


def kernel_of_types(name: str, count: int) -> str:
    """The header's part of a kernel with as many inputs and outputs, of any types."""
    inputs = "".join(f"    RequiredInput X{i} = nullptr;\n" for i in range(count))
    outputs = "".join(f"    RequiredOutput Y{i} = nullptr;\n" for i in range(count))
    return (
        f"namespace gradsmith::many {{\nstruct {name} {{\n"
        '  static constexpr std::string_view kShapes = "any";\n'
        '  static constexpr std::string_view kTypes = "any";\n'
        f"  struct Attributes {{}};\n  struct Inputs {{\n{inputs}  }};\n  struct Outputs {{\n{outputs}  }};\n"
        "  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);\n};\n}\n"
    )


def entry_of_types(name: str, row: str, types: list[str]) -> str:
    """The entry of that kernel's operator, with one row."""
    tensors = {
        role: "".join(f"      {role}{i}: {{type: T{i}, shape: [N]}}\n" for i in range(len(types))) for role in "XY"
    }
    bound = ", ".join(f"T{i}: {one}" for i, one in enumerate(types))
    return (
        f"  - name: {name}\n    doc: {name}.\n    kernel: many::{name}\n    backends: [cpu]\n"
        f"    inputs:\n{tensors['X']}    outputs:\n{tensors['Y']}    rows:\n      {row}: {{{bound}}}\n"
        "    cases:\n      - {name: plain, X0: [2]}\n"
    )


def with_names_of_length(text: str, length: int) -> str:
    """The schema with every op and every row renamed: A, B, ..., or Aaaa, Baaa, ...; where there are no names so short
    left, a letter longer."""
    ops = re.findall(r"^  - name: (\w+)$", text, re.MULTILINE)
    for number, op in enumerate(ops):
        least = 1 if number < 26 else 2
        name = chr(ord("A") + number % 26) + chr(ord("a") + number // 26) * (max(length, least) - 1)
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
    checked = re.compile("|".join(map(re.escape, map(str, TIDY_FOLDERS))))
    written = [command for command in commands if checked.match(command["file"])]
    units = units_of([*written, *commands_of_few_operators(commands, tree / "generated")])
    units.sort(key=lambda unit: -sum(source.stat().st_size for source in unit.sources))  # none long is the last
    assert {source.parent.name for unit in units for source in unit.sources} >= {"core", "conv", "src", "support"}

    def findings(unit: Unit) -> str:
        return findings_in(unit, SCRATCH / "tidy", lambda source: tidy_findings(clang_tidy, unit.kind, source))

    with ThreadPoolExecutor(int(JOBS)) as pool:
        found = "".join(pool.map(findings, units))
    if found:
        pytest.fail(found, pytrace=False)


def commands_of_few_operators(commands: list[dict[str, str]], generated: Path) -> list[dict[str, str]]:
    """The commands of generated sources, for those of few operators: one source of each kind holds them all."""
    schema, out = SCRATCH / "tidy/ops.yaml", SCRATCH / "tidy/generated"
    schema.parent.mkdir(parents=True, exist_ok=True)
    schema.write_text(few_operators())
    run_generator("generate", "--schema", str(schema), "--out", str(out), "--shards", "1")
    sources = {str(generated / path.relative_to(out)): str(path) for path in out.rglob("*.cc")}
    found = [command for command in commands if command["file"] in sources]
    assert len(found) == len(sources) >= 3
    return [{key: value.replace(f"{generated}/", f"{out}/") for key, value in command.items()} for command in found]


def tidy_findings(clang_tidy: Path, kind: Kind, source: Path) -> str:
    """What clang-tidy prints, unless it had nothing to say of the very same input before."""
    stamp = SCRATCH / "tidy" / input_digest(clang_tidy, kind, source)
    if stamp.exists():
        return ""
    # Sources of a unit include the same, which is looked for in each.
    arguments = [str(clang_tidy), "--quiet", "--checks=-readability-duplicate-include", str(source), "--"]
    result = subprocess.run(
        [*arguments, *kind.command[1:]], cwd=kind.directory, check=False, text=True, capture_output=True
    )
    if result.returncode == 0:
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.touch()
        return ""
    return f"{source}\n{result.stdout}{result.stderr}"


def input_digest(clang_tidy: Path, kind: Kind, source: Path) -> str:
    """Of the tool, its configuration, the command, and every file that the command reads."""
    listing = [*kind.command, "-MM", str(source)]
    rule = subprocess.run(listing, cwd=kind.directory, check=True, text=True, capture_output=True).stdout
    read = [Path(kind.directory, path) for path in rule.replace("\\\n", " ").split()[1:]]
    digest = hashlib.sha256(f"{clang_tidy.stat().st_mtime_ns} {kind.command}".encode())
    for path in (REPOSITORY / ".clang-tidy", kind.configuration, *read):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@pytest.mark.parametrize("folder", FOLDERS)
def test_nothing_is_included_twice(folder: str) -> None:
    for path in cpp_files(REPOSITORY / folder):
        included = re.findall(r'^#include ([<"].*[>"])', Path(path).read_text(), re.MULTILINE)
        assert [header for header, number in Counter(included).items() if number > 1] == [], path


def test_what_a_source_brings_in_is_named() -> None:
    """clang-tidy sees no other use of it than that in another source of the unit."""
    for path in (path for path in cpp_files(*TIDY_FOLDERS) if path.endswith(".cc")):
        text = Path(path).read_text()
        names = re.findall(r"^using [\w:]+::(\w+);$", text, re.MULTILINE)
        assert [name for name in names if len(re.findall(rf"\b{name}\b", text)) < 2] == [], path
