"""What is installed."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from build_tree import REPOSITORY, declared_rows, run_generator


def archive_of(prefix: Path) -> Path:
    (archive,) = prefix.rglob("libgradsmith.a")
    return archive


def headers_of(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.h"))


def test_headers_are_the_handwritten_and_the_generated_ones(prefix: Path) -> None:
    handwritten = headers_of(REPOSITORY / "runtime/include")
    generated = headers_of(REPOSITORY / "generated/include")
    assert headers_of(prefix / "include") == sorted(handwritten + generated)


def test_no_file_holds_an_absolute_path(prefix: Path) -> None:
    places = [str(REPOSITORY).encode(), str(prefix.parent).encode()]
    files = [path for path in prefix.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if any(place in path.read_bytes() for place in places)] == []


def test_licence_is_installed(prefix: Path) -> None:
    assert (prefix / "share/gradsmith/LICENSE").read_text() == (REPOSITORY / "LICENSE").read_text()


def test_installed_generator_writes_what_was_installed(prefix: Path, tmp_path: Path) -> None:
    share = prefix / "share/gradsmith"
    run_generator("generate", "--schema", "ops.yaml", "--out", str(tmp_path), repository=share, cwd=share)
    generated = headers_of(tmp_path / "include")
    assert generated
    for header in generated:
        assert (tmp_path / "include" / header).read_bytes() == (prefix / "include" / header).read_bytes()


def test_archive_has_no_static_initialisers(prefix: Path) -> None:
    """Not one object of it runs code before main: registration is a table, and iostream is not included."""
    archive = archive_of(prefix)
    sections = subprocess.run(["objdump", "-h", str(archive)], check=True, text=True, capture_output=True).stdout
    assert ".text" in sections
    assert re.findall(r"\.(?:init_array|preinit_array|ctors)\S*", sections) == []
    symbols = subprocess.run(["nm", str(archive)], check=True, text=True, capture_output=True).stdout
    assert re.findall(r"_GLOBAL__(?:sub_)?I_\S*", symbols) == []


def test_pkg_config_file_names_the_version(prefix: Path) -> None:
    (folder,) = {path.parent for path in prefix.rglob("gradsmith.pc")}
    command = ["pkg-config", "--modversion", "gradsmith"]
    environment = {**os.environ, "PKG_CONFIG_PATH": str(folder)}
    version = subprocess.run(command, env=environment, check=True, text=True, capture_output=True).stdout.strip()
    assert f"VERSION {version}\n" in (REPOSITORY / "CMakeLists.txt").read_text()


WARNINGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]


def compile_errors(prefix: Path, source: Path) -> str:
    command = ["c++", *WARNINGS, f"-I{prefix / 'include'}", str(source)]
    result = subprocess.run(command, check=False, text=True, capture_output=True, env={**os.environ, "LC_ALL": "C"})
    return "" if result.returncode == 0 else result.stderr


def test_every_header_compiles_alone_and_twice(prefix: Path, tmp_path: Path) -> None:
    headers = headers_of(prefix / "include")
    assert "gradsmith/gradsmith.h" in headers
    for header in headers:
        source = tmp_path / "alone.cc"
        source.write_text(f"#include <{header}>\n#include <{header}>\n")
        assert compile_errors(prefix, source) == "", header


@pytest.mark.parametrize(("op", "types"), [("ConvGrad", "int"), ("BatchNormalizationGrad", "float, double, float")])
def test_undeclared_combination_does_not_compile(prefix: Path, tmp_path: Path, op: str, types: str) -> None:
    call = f"{op}<{types}>(gradsmith::Context(), {{}}, {{}}, {{}})"
    source = tmp_path / "call.cc"
    source.write_text(f"#include <gradsmith/gradsmith.h>\ngradsmith::Status Call() {{ return gradsmith::{call}; }}\n")
    errors = compile_errors(prefix, source)
    assert f"gradsmith: {op} is not declared for this combination of types" in errors
    sentence = next(line for line in errors.splitlines() if "is not declared for this combination" in line)
    names = [row["row"] for row in declared_rows() if row["op"] == op]
    assert names
    for name in names:
        assert f"{name} (" in sentence
