"""docs/own-operators.md, word for word: a project in an empty folder, of which the installed prefix is all there is."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from page_project import Page, configure_fails, sh

PAGE = Page("own-operators.md")


@pytest.fixture(scope="module")
def project() -> Path:
    return PAGE.project("own_operators")


@pytest.fixture(scope="module")
def built(project: Path, prefix: Path) -> str:
    """What the page's commands print."""
    result = sh(PAGE.block("sh"), project, prefix)
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-4000:]
    return result.stdout


def test_the_page_does_what_it_says(built: str) -> None:
    assert "100% tests passed" in built
    assert built.endswith(PAGE.block("text"))


def test_pages_of_the_operators_are_written(built: str, project: Path) -> None:
    pages = project / "build/gradsmith/mylib/docs"
    assert "#include <mylib/ops/cube_grad.h>" in (pages / "CubeGrad.md").read_text()
    assert not (project / "build/gradsmith/otherlib/docs").exists()


def test_registration_is_no_static_initialiser(built: str, project: Path) -> None:
    command = ["objdump", "-h", str(project / "build/libmylib.a")]
    sections = subprocess.run(command, check=True, text=True, capture_output=True).stdout
    assert ".text" in sections
    assert re.findall(r"\.(?:init_array|ctors)\S*", sections) == []


def test_a_build_after_a_build_compiles_nothing(built: str, project: Path, prefix: Path) -> None:
    assert "Building" not in sh("cmake --build build", project, prefix).stdout


def test_a_changed_included_file_generates_anew(built: str, project: Path, prefix: Path) -> None:
    def rows() -> str:
        assert sh("cmake --build build --target otherlib_generate", project, prefix).returncode == 0
        return (project / "build/gradsmith/otherlib/src/dispatch_table.cc").read_text()

    parts = project / "shared/parts.yaml"
    text = parts.read_text()
    assert "std::array<Row, 1> kRows" in rows()
    parts.write_text(text.replace("float: {T: float}", "float: {T: float}\n    double: {T: double}"))
    assert "std::array<Row, 2> kRows" in rows()
    parts.write_text(text)
    assert "std::array<Row, 1> kRows" in rows()
    parts.unlink()
    result = sh("cmake --build build --target otherlib_generate", project, prefix)
    parts.write_text(text)
    assert result.returncode != 0
    assert "cannot read the included file 'shared/parts.yaml'" in result.stdout + result.stderr
    assert "std::array<Row, 1> kRows" in rows()


def test_a_wrong_gradient_and_a_wrong_kernel_are_noticed(built: str, project: Path, prefix: Path) -> None:
    for name, right, wrong in (
        ("my_ops.yaml", "dX: 3 * X * X * dY", "dX: 2 * X * X * dY"),
        ("running_sum/running_sum.cc", "float sum = 0;", "float sum = 1;"),
    ):
        text = (project / name).read_text()
        assert right in text
        (project / name).write_text(text.replace(right, wrong))
    result = sh("cmake --build build --parallel 2 && build/mylib_tests --backend=cpu --gtest_brief=1", project, prefix)
    PAGE.write_files(project)
    failed = set(re.findall(r"\[  FAILED  \] ([\w.]+)/", result.stdout))
    assert {"CubeGrad.Gradient", "RunningSum.Exact"} <= failed
    assert not any(name.startswith("Cube.") for name in failed)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("gradsmith_add_ops(mylib)", "gradsmith_add_ops(mylib) has no SCHEMA"),
        ("gradsmith_add_ops(mylib SCHEMA none.yaml)", "there is no such file"),
        ("gradsmith_add_ops(mylib SCHEMA my_ops.yaml TEST)", "does not take 'TEST'"),
        ("gradsmith_add_ops(mylib SCHEMA my_ops.yaml SHARDS 0)", "expected a whole number"),
        ("gradsmith_add_ops(mylib SCHEMA my_ops.yaml NAMESPACE std)", "has the namespace 'std'"),
        (
            "gradsmith_add_ops(a SCHEMA my_ops.yaml NAMESPACE x)\ngradsmith_add_ops(b SCHEMA my_ops.yaml NAMESPACE x)",
            "which is that of library a",
        ),
        (
            'file(WRITE ${CMAKE_CURRENT_SOURCE_DIR}/conv/kernels.h "")\ngradsmith_add_ops(mylib SCHEMA my_ops.yaml)',
            "would be mistaken for",
        ),
    ],
)
def test_wrong_calls_are_told(prefix: Path, tmp_path: Path, call: str, message: str) -> None:
    PAGE.write_files(tmp_path)
    assert message in configure_fails(call, tmp_path, prefix)
