"""What is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from build_tree import JOBS, REPOSITORY, declared_rows, run_generator
from installed_headers import headers_of, one_of_each


def archive_of(prefix: Path) -> Path:
    (archive,) = prefix.rglob("libgradsmith.a")
    return archive


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


def test_the_schema_that_editors_read_lies_where_ops_yaml_points(prefix: Path) -> None:
    folder = prefix / "share/gradsmith"
    pointed_at = (folder / "ops.yaml").read_text().split("\n")[0].partition("$schema=")[2]
    assert (folder / pointed_at).read_text() == (REPOSITORY / "ops.schema.json").read_text()


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


# What programs may be held to, which include the headers as their own.
WARNINGS = [
    *("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wsign-conversion", "-Wdouble-promotion", "-Wshadow"),
    *("-Wold-style-cast", "-Wcast-qual", "-Wcast-align", "-Wextra-semi", "-Wzero-as-null-pointer-constant", "-Wundef"),
    *("-Wnon-virtual-dtor", "-Woverloaded-virtual", "-Wredundant-decls", "-Wformat=2", "-Wnull-dereference", "-Werror"),
]
WARNINGS_OF = {
    "g++": ["-Wuseless-cast", "-Wduplicated-cond", "-Wduplicated-branches", "-Wlogical-op", "-Wsuggest-override"],
    "clang++": ["-Wcomma", "-Wdocumentation", "-Wextra-semi-stmt", "-Wrange-loop-analysis", "-Wshadow-all"],
}


def compile_errors(prefix: Path, source: Path, *options: str, compiler: str = "c++") -> str:
    command = [compiler, "-std=c++20", "-fsyntax-only", *options, f"-I{prefix / 'include'}", str(source)]
    result = subprocess.run(command, check=False, text=True, capture_output=True, env={**os.environ, "LC_ALL": "C"})
    return "" if result.returncode == 0 else result.stderr


def test_headers_compile_alone_and_twice_without_a_warning(prefix: Path, tmp_path: Path) -> None:
    headers = set(one_of_each(prefix / "include")) - {"gradsmith/foreign_macros_on.h"}  # the end of another
    assert "gradsmith/gradsmith.h" in headers

    def errors_of(header: str) -> str:
        source = tmp_path / f"{header.replace('/', '_')}.cc"
        source.write_text(f"#include <{header}>\n#include <{header}>\n")
        return compile_errors(prefix, source, *WARNINGS)

    with ThreadPoolExecutor(int(JOBS)) as pool:
        assert "".join(pool.map(errors_of, sorted(headers))) == ""


@pytest.mark.parametrize("compiler", WARNINGS_OF)
@pytest.mark.parametrize("name", ["typed", "dynamic"])
def test_programs_compile_without_a_warning(prefix: Path, compiler: str, name: str) -> None:
    """In a program the headers' templates are filled in."""
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    source = REPOSITORY / f"tests/package/programs/{name}.cc"
    options = [*WARNINGS, *WARNINGS_OF[compiler], "-include", "gradsmith/conv_algorithms.h"]
    assert compile_errors(prefix, source, *options, compiler=compiler) == ""


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
