"""Programs of others that link the library: with CMake from a prefix or from the sources, and with pkg-config.

No linker flag but --gc-sections is used.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from build_tree import REPOSITORY, SCRATCH, build, declared_rows
from subproject import Subproject

HERE = Path(__file__).resolve().parent


def run(program: Path) -> str:
    return subprocess.run([str(program)], check=True, text=True, capture_output=True).stdout


@pytest.fixture(scope="session")
def with_find_package(prefix: Path) -> Path:
    return built_with_cmake("find_package", f"-DCMAKE_PREFIX_PATH={prefix}")


@pytest.fixture(scope="session")
def with_add_subdirectory(subproject: Subproject) -> Path:
    return subproject.folder


@pytest.fixture(scope="session")
def with_pkg_config(prefix: Path) -> Path:
    return built_with_pkg_config(prefix, "pkg_config")


def built_with_pkg_config(prefix: Path, name: str) -> Path:
    (pkg_config_path,) = {path.parent for path in prefix.rglob("gradsmith.pc")}
    folder = SCRATCH / "package" / name
    folder.mkdir(parents=True, exist_ok=True)
    command = ["make", "--always-make", "-f", str(HERE / "pkg_config/Makefile")]
    environment = {**os.environ, "PKG_CONFIG_PATH": str(pkg_config_path)}
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    return folder


def built_with_cmake(consumer: str, *options: str, name: str = "") -> Path:
    folder = SCRATCH / "package" / (name or consumer)
    command = ["cmake", "-S", str(HERE / consumer), "-B", str(folder), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
    subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL)
    build(folder)
    return folder


@pytest.fixture(params=["with_find_package", "with_add_subdirectory", "with_pkg_config"])
def consumer(request: pytest.FixtureRequest) -> Path:
    folder: Path = request.getfixturevalue(request.param)
    return folder


def test_typed_program_computes(consumer: Path) -> None:
    assert run(consumer / "typed") == "ConvGrad is right\n"


def test_typed_program_keeps_only_what_it_calls(consumer: Path) -> None:
    command = ["nm", "--demangle", str(consumer / "typed")]
    symbols = subprocess.run(command, check=True, text=True, capture_output=True).stdout
    assert "conv::ConvGrad::RunCpu(" in symbols
    others = "batch_norm|BatchNormalization|ConvTranspose|kDispatchTable|BuiltinTable|Registry|conv::Conv::RunCpu"
    assert [line for line in symbols.splitlines() if re.search(others, line)] == []


def test_dynamic_program_sees_all_rows(consumer: Path, subproject: Subproject) -> None:
    rows = declared_rows(subproject.schema) if consumer == subproject.folder else declared_rows()
    assert run(consumer / "dynamic").splitlines() == [f"{row['op']} {row['row']} {row['backend']}" for row in rows]


def test_a_library_with_onednn_brings_it_along(prefix_with_onednn: Path) -> None:
    options = [f"-DCMAKE_PREFIX_PATH={prefix_with_onednn}"]
    for folder in (
        built_with_cmake("find_package", *options, name="find_package_with_onednn"),
        built_with_pkg_config(prefix_with_onednn, "pkg_config_with_onednn"),
    ):
        assert run(folder / "typed") == "ConvGrad is right\n"
        needed = subprocess.run(["readelf", "-d", str(folder / "typed")], check=True, text=True, capture_output=True)
        assert "libdnnl.so" in needed.stdout


def test_a_program_is_told_that_onednn_is_missing(prefix_with_onednn: Path, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(consumer LANGUAGES CXX)\nfind_package(gradsmith REQUIRED)\n"
    )
    command = ["cmake", "-S", str(tmp_path), "-B", str(tmp_path / "build"), f"-DCMAKE_PREFIX_PATH={prefix_with_onednn}"]
    hidden = ["-DCMAKE_DISABLE_FIND_PACKAGE_dnnl=ON", "-DGRADSMITH_ONEDNN_LIBRARY=GRADSMITH_ONEDNN_LIBRARY-NOTFOUND"]
    result = subprocess.run(
        [*command, *hidden, "-DCMAKE_SYSTEM_IGNORE_PATH=/usr/include;/usr/lib/x86_64-linux-gnu"],
        check=False,
        text=True,
        capture_output=True,
    )
    assert result.returncode != 0
    assert "gradsmith was built with oneDNN, but oneDNN was not found" in " ".join(result.stderr.split())


def test_the_snapshot_needs_no_python(subproject: Subproject) -> None:
    assert (subproject.folder / "gradsmith/libgradsmith.a").exists()
    assert not subproject.called_python


def test_subproject_brings_neither_tests_nor_install_rules(subproject: Subproject) -> None:
    for option in ("GRADSMITH_BUILD_TESTS", "GRADSMITH_BUILD_BENCHMARKS", "GRADSMITH_INSTALL"):
        assert f"{option}:BOOL=OFF" in subproject.cache
    assert "gradsmith" not in subproject.install_rules.split("\n", 1)[1]


def test_a_subproject_generates_and_without_a_build_type_is_optimised(tmp_path: Path) -> None:
    options = [f"-DGRADSMITH_SOURCE_DIR={REPOSITORY}", f"-DPython3_EXECUTABLE={sys.executable}", "-DGRADSMITH_CUDA=OFF"]
    command = ["cmake", "-S", str(HERE / "add_subdirectory"), "-B", str(tmp_path), "-G", "Ninja", *options]
    told = subprocess.run([*command, "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"], check=True, text=True, capture_output=True)
    assert "no CMAKE_BUILD_TYPE is set" in told.stdout
    commands = json.loads((tmp_path / "compile_commands.json").read_text())
    library = [command["command"] for command in commands if "/runtime/core/" in command["file"]]
    assert library
    assert all(" -O2 " in command and "-DNDEBUG" in command for command in library)
    build(tmp_path, "gradsmith_generate")
    table = "src/dispatch_table.cc"
    generated = tmp_path / "gradsmith/generated" / table
    assert generated.read_bytes() == (REPOSITORY / "generated" / table).read_bytes()


def test_other_versions_are_refused(prefix: Path, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(consumer LANGUAGES CXX)\nfind_package(gradsmith 99 REQUIRED)\n"
    )
    command = ["cmake", "-S", str(tmp_path), "-B", str(tmp_path / "build"), f"-DCMAKE_PREFIX_PATH={prefix}"]
    result = subprocess.run(command, check=False, text=True, capture_output=True)
    assert result.returncode != 0
    assert 'compatible with requested version "99"' in result.stderr
