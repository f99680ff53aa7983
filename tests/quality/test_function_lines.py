"""Functions of handwritten C++, CUDA, Python and CMake fit on a screen."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from build_tree import REPOSITORY
from function_lines import functions_of

FOLDERS = ("runtime", "codegen", "python", "tests", "tools", "bench", "examples", "docs")
MOST = 60  # lines
BOUND_OF_CMAKE = re.compile(r"^[ \t]*(end)?(?:function|macro)[ \t]*\([ \t]*(\w*)", re.MULTILINE | re.IGNORECASE)


def sources(*patterns: str, folders: tuple[str, ...] = FOLDERS) -> Iterator[tuple[Path, str]]:
    for folder in folders:
        for pattern in patterns:
            for path in sorted((REPOSITORY / folder).rglob(pattern)):
                yield path, path.read_text(encoding="utf-8")


def test_functions_of_cpp_and_cuda_fit_on_a_screen() -> None:
    found = [
        (path, function) for path, text in sources("*.h", "*.cc", "*.cu", "*.cuh") for function in functions_of(text)
    ]
    assert len(found) > 5000
    assert [f"{path}:{one.line}: {one.lines} lines" for path, one in found if one.lines > MOST] == []


def test_functions_of_python_fit_on_a_screen() -> None:
    functions = [
        (path, node)
        for path, text in sources("*.py")
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert len(functions) > 1000
    lines = {f"{path}:{node.lineno}": (node.end_lineno or 0) - node.lineno + 1 for path, node in functions}
    assert {place: count for place, count in lines.items() if count > MOST} == {}


def functions_of_cmake(text: str) -> Iterator[tuple[str, int]]:
    """The names of functions and macros, and how many lines each takes, from its first to its last."""
    begun: list[tuple[str, int]] = []
    for found in BOUND_OF_CMAKE.finditer(text):
        line = text.count("\n", 0, found.start())
        if found[1]:
            name, first = begun.pop()
            yield name, line - first + 1
        else:
            begun.append((found[2], line))
    assert begun == []


def test_functions_and_macros_of_cmake_fit_on_a_screen() -> None:
    top = REPOSITORY / "CMakeLists.txt"
    below = sources("CMakeLists.txt", "*.cmake", "*.cmake.in", folders=(*FOLDERS, "cmake"))
    found = [
        (path, name, lines)
        for path, text in [(top, top.read_text(encoding="utf-8")), *below]
        for name, lines in functions_of_cmake(text)
    ]
    assert len(found) > 40
    assert [f"{path}: {name}: {lines} lines" for path, name, lines in found if lines > MOST] == []


SOURCE = r"""
#define DECLARE(name) \
  void name() {
MAKE(first, second)

namespace some {
namespace {

enum class Kind : int { kOne };
constexpr int kNumbers[] = {(1 + 2), 3};

/// Not a function (yet) {
int Sum(
    int a,
    int b) {
  const auto twice = [](int x) {
    return "}" + x;
  };
  struct Local {
    int Get() { return '}'; }
  };
  return twice(a) + b;
}

template <typename T>
class Stack : public Base<T> {
 public:
  explicit Stack(int n) : n_{n}, m_(n) {
    Fill();
  }
  bool operator==(const Stack& other) const {
    return 1'000 == n_;
  }

 private:
  int n_ = {};
};

TEST_F(Fixture, Name) {
}
}  // namespace
}  // namespace some
"""


def test_functions_are_found_with_their_lines() -> None:
    found = [(one.line, one.signature.split("(")[0], one.lines) for one in functions_of(SOURCE)]
    assert found == [(13, "int Sum", 11), (28, "explicit Stack", 3), (31, "bool operator==", 3), (39, "TEST_F", 2)]


@pytest.mark.parametrize("lines", [MOST, MOST + 1])
def test_lines_are_counted_from_the_signature_to_the_brace(lines: int) -> None:
    source = "int Answer() {\n" + "  Think();\n" * (lines - 2) + "}\n"
    assert [one.lines for one in functions_of(source)] == [lines]


@pytest.mark.parametrize("lines", [MOST, MOST + 1])
def test_lines_of_cmake_are_counted_from_the_first_to_the_last(lines: int) -> None:
    body = "  message(STATUS hello)\n" * (lines - 4)
    source = f"# function(\nfunction(add name)\n  Macro( inner )\n  endmacro()\n{body}endfunction()\n"
    assert list(functions_of_cmake(source)) == [("inner", 2), ("add", lines)]
