"""Element types are lines of one table (data_types.py), of which all other places are made."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from gradsmith_codegen import type_tables
from gradsmith_codegen.data_types import DataType
from schemas import SCALE, edited

NEXT = '    INT16 = ("int16", ("std::int16_t", "std::int16_t"), (2, False), (0, 2, "int16"), "")\n'
BEFORE = '    INT32 = ("int32"'
REFRESH = """
import sys
from pathlib import Path
from gradsmith_codegen import type_tables
for header in type_tables.HEADERS:
    path = Path(sys.argv[1]) / header
    path.write_text(type_tables.refreshed(header, path.read_text()))
"""
# Each type is visited as what the table says, and is as large as the generator believes; kernels read as the host does.
PROGRAM = """
#include "core/element.h"
#include "cuda/kernels/element.cuh"
#include <cstring>
#include <type_traits>
using namespace gradsmith;
template <typename Expected>
bool IsVisited(DataType type) {
  const auto is_expected = []<typename T>(std::type_identity<T>) { return std::is_same_v<T, Expected>; };
  return IsFloating(type) ? internal::VisitFloatingType(type, is_expected)
                          : internal::VisitIntegerType(type, is_expected);
}
template <typename T>
bool IsRead(DataType type) {
  T stored[2] = {static_cast<T>(1), static_cast<T>(-3)};
  const int number = static_cast<int>(type);
  if constexpr (std::is_integral_v<T>) {
    return cuda::LoadInteger(stored, number, 1) == static_cast<std::int64_t>(stored[1]);
  } else {
    return cuda::LoadElement<double>(stored, number, 1) == -3;
  }
}
static_assert(cuda::kTypeOfTruthValues == static_cast<int>(DataType::kBool));
int main() {
  bool is_right = true;
TYPES
  return is_right ? 0 : 1;
}
"""
CHECKED = """
  static_assert(SizeOf(DataType::{enumerator}) == {size} && kDataTypeOf<{cpp}> == DataType::{enumerator});
  is_right = is_right && IsVisited<{stored}>(DataType::{enumerator}) && IsRead<{stored}>(DataType::{enumerator});
"""


@pytest.mark.parametrize("header", type_tables.HEADERS)
def test_the_headers_have_what_the_table_says(repository: Path, header: str, refresh: bool) -> None:
    path = repository / "runtime" / header
    text = path.read_text(encoding="utf-8")
    if refresh:
        text = type_tables.refreshed(header, text)
        path.write_text(text, encoding="utf-8")
    assert type_tables.refreshed(header, text) == text


def run_checks(repository: Path, runtime: Path, tmp_path: Path, types: list[tuple[str, str, int]]) -> None:
    lines = [
        CHECKED.format(
            enumerator=enumerator,
            cpp=cpp,
            size=size,
            stored="std::uint8_t" if cpp == "bool" else cpp,
        )
        for enumerator, cpp, size in types
    ]
    source, program = tmp_path / "types.cc", tmp_path / "types"
    source.write_text(PROGRAM.replace("TYPES", "".join(lines)), encoding="utf-8")
    emulated = repository / "tests/emulated_gpu/device"
    folders = [emulated, repository / "tests", runtime, runtime / "include"]
    command = ["c++", "-std=c++20", "-w", *[f"-I{folder}" for folder in folders], "-include", "cuda_language.h"]
    subprocess.run([*command, str(source), "-o", str(program)], check=True)
    assert subprocess.run([str(program)], check=False).returncode == 0


def test_host_and_kernels_read_each_type_as_the_table_says(repository: Path, tmp_path: Path) -> None:
    types = [(one.cpp_enumerator, one.cpp_type, one.size) for one in DataType]
    run_checks(repository, repository / "runtime", tmp_path, types)


def test_the_next_type_is_a_line_of_the_table(repository: Path, tmp_path: Path) -> None:
    """In a copy of the sources with that line: the generator takes the type, and the headers that are made of the
    table visit, read and store it."""
    shutil.copytree(repository / "runtime", tmp_path / "runtime")
    shutil.copytree(repository / "templates", tmp_path / "templates")
    package = tmp_path / "codegen/gradsmith_codegen"
    shutil.copytree(repository / "codegen/gradsmith_codegen", package, ignore=shutil.ignore_patterns("__pycache__"))
    table = package / "data_types.py"
    text = table.read_text(encoding="utf-8")
    assert text.count(BEFORE) == 1
    table.write_text(text.replace(BEFORE, NEXT + BEFORE), encoding="utf-8")

    def python(*arguments: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path / "codegen")}
        subprocess.run([sys.executable, *arguments], check=True, env=environment, cwd=tmp_path)

    python("-c", REFRESH, "runtime")
    schema = tmp_path / "ops.yaml"
    x = 'X: {type: T, shape: [N, "*D"]}'
    labels = (x, f"{x}\n      label: {{type: int16, shape: [N]}}")
    formulas = ("kernel: scale::Scale", 'formulas: {Y: "where(label == 1, factor, 1) * X"}')
    schema.write_text(edited(SCALE, labels, formulas), encoding="utf-8")
    python("-m", "gradsmith_codegen", "check", str(schema))
    types = [(one.cpp_enumerator, one.cpp_type, one.size) for one in DataType]
    run_checks(repository, tmp_path / "runtime", tmp_path, [*types, ("kInt16", "std::int16_t", 2)])
