"""docs/own-operators.md, word for word: a project in an empty folder, of which the installed prefix is all there is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from gradsmith_codegen.cli import main as generator
from page_project import Page, configure_fails, sh

PAGE = Page("own-operators.md")

OF_THE_PACKAGE = """
import doctest
import pickle
from array import array

import mylib
import otherlib

x = array("f", [-1, 2, 3])
made = mylib.cube(x)
assert pickle.loads(pickle.dumps(mylib.Context(threads=2))).threads == 2
print(mylib.cube.__module__, type(made).__module__, made.Y.tolist())
examples = doctest.testmod(mylib)
print(examples.failed, "examples failed, there were some:", examples.attempted > 0)
print(mylib.explain("RunningSum", "double").partition(".")[0])
print(mylib.tune("Cube float X=3x5", device="cpu").note.partition(":")[0])
for call in (
    lambda: mylib.cube(x, context=otherlib.Context()),
    lambda: mylib.cube(3),
    lambda: mylib.tune(otherlib.cube, x),
    lambda: mylib._core.Op("Cube", tuple).call((x,), (), None, None, otherlib.Context().policies),
):
    try:
        call()
    except TypeError as error:
        print(str(error).rpartition("; ")[2].partition(chr(10))[0])
"""
EXPECTED_OF_THE_PACKAGE = """\
mylib mylib [-1.0, 8.0, 27.0]
0 examples failed, there were some: True
No row is RunningSum(double) on cpu
nothing to choose
expected a mylib.Context
expected an array that speaks DLPack or the buffer protocol
expected one of mylib or mylib.torch
call(): incompatible function arguments. The following argument types are supported:
"""

TYPED = """
from array import array
import mylib

x = array("f", [1.0])
reveal_type(mylib.cube_grad(x, x).dX)
mylib.cube(1.0)
with mylib.policy(threads="two"):
    pass
"""

WITH_AUTOGRAD = """
import mylib.torch
import otherlib.torch
import torch

x = torch.tensor([-1.0, 2, 3], dtype=torch.double, requires_grad=True)
assert torch.autograd.gradcheck(lambda x: mylib.torch.cube(x).Y, x)
assert torch.equal(torch.ops.mylib.cube(x), x**3)
assert torch.equal(otherlib.torch.cube(x.detach().float()).Y, x.float() ** 3)
torch.compile(lambda x: mylib.torch.cube(x).Y * 2, backend="aot_eager")(x).sum().backward()
assert torch.equal(x.grad, 6 * x**2)
"""


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


def test_a_row_of_a_type_that_the_kernel_does_not_read_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    PAGE.write_files(tmp_path)
    schema = tmp_path / "my_ops.yaml"
    before, name, entry = schema.read_text().partition("  - name: RunningSum")
    check = ["check", str(schema), "--kernels", str(tmp_path), "--library", "mylib"]
    assert generator(check) == 0, capsys.readouterr()
    row = "      float: {T: float}\n"
    assert row in entry
    schema.write_text(before + name + entry.replace(row, f"{row}      double: {{T: double}}\n"))
    assert generator(check) == 1
    told = capsys.readouterr().err
    assert "error[G705]: 'X' is double in row 'double'; kernel running_sum::RunningSum takes float on cpu" in told


def test_pages_of_the_operators_are_written(built: str, project: Path) -> None:
    pages = project / "build/gradsmith/mylib/docs"
    assert "#include <mylib/ops/cube_grad.h>" in (pages / "CubeGrad.md").read_text()
    assert not (project / "build/gradsmith/otherlib/docs").exists()


def python(program: str, folder: Path, *arguments: str) -> str:
    """What a program prints that imports from a folder."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "MYPYPATH": str(folder)}
    command = [sys.executable, *(arguments or ("-c", program))]
    result = subprocess.run(command, cwd=folder, env=environment, check=False, text=True, capture_output=True)
    assert result.returncode == 0 or arguments, result.stderr
    return result.stdout


def test_the_python_package_is_the_librarys_own(built: str, project: Path) -> None:
    assert python(OF_THE_PACKAGE, project / "build/python") == EXPECTED_OF_THE_PACKAGE


def test_the_python_package_is_typed(built: str, project: Path, tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(TYPED)
    (tmp_path / "mypy.ini").write_text("[mypy-torch.*]\nfollow_imports = skip\nignore_missing_imports = true\n")
    mypy = ["-m", "mypy", "--strict", "--config-file", str(tmp_path / "mypy.ini")]
    found = python("", project / "build/python", *mypy, "-p", "mylib", "--cache-dir", str(tmp_path))
    assert found.startswith("Success"), found
    found = python("", project / "build/python", *mypy, str(tmp_path / "user.py"), "--cache-dir", str(tmp_path))
    lines = re.findall(r"user.py:(\d+): (.*)", found)
    assert [number for number, _ in lines] == ["6", "7", "8"], found
    assert "array.array[float]" in lines[0][1]


def test_the_python_package_has_autograd(built: str, project: Path) -> None:
    pytest.importorskip("torch")
    python(WITH_AUTOGRAD, project / "build/python")


def test_the_installed_python_package_is_whole(built: str, project: Path, prefix: Path, tmp_path: Path) -> None:
    sh(f"cmake --install build --prefix '{tmp_path}' --component python", project, prefix)
    assert [path.name for path in tmp_path.iterdir()] == ["mylib"]
    assert not [path for path in tmp_path.rglob("*") if path.is_symlink()]
    program = "import mylib.cache; print(mylib.__file__, mylib.running_sum.__doc__)"
    told = python(program, tmp_path)
    assert told.startswith(f"{tmp_path}/mylib/__init__.py Of each row")
    inside = {path.relative_to(tmp_path / "mylib") for path in tmp_path.rglob("*.py*") if path.suffix != ".pyc"}
    there = project / "build/python/mylib"
    assert inside == {path.relative_to(there) for path in there.glob("**/*.py*") if path.suffix != ".pyc"} | {
        Path("_ops", path.name) for path in (there / "_ops").glob("*.py*")
    }


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
        ("my_ops.yaml", "dY - mean(dY, A)", "dY + mean(dY, A)"),
        ("running_sum/running_sum.cc", "float sum = 0;", "float sum = 1;"),
    ):
        text = (project / name).read_text()
        assert right in text
        (project / name).write_text(text.replace(right, wrong))
    build = "cmake --build build --parallel 2 --target mylib_tests"
    result = sh(f"{build} && build/mylib_tests --backend=cpu --gtest_brief=1", project, prefix)
    PAGE.write_files(project)
    failed = set(re.findall(r"\[  FAILED  \] ([\w.]+)/", result.stdout))
    assert {"CubeGrad.Gradient", "CenterGrad.Gradient", "RunningSum.Exact"} <= failed
    assert not any(name.startswith(("Cube.", "Center.", "ChannelMeans.")) for name in failed)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("gradsmith_add_ops(mylib)", "gradsmith_add_ops(mylib) has no SCHEMA"),
        ("gradsmith_add_ops(mylib SCHEMA none.yaml)", "there is no such file"),
        ("gradsmith_add_ops(mylib SCHEMA my_ops.yaml TEST)", "does not take 'TEST'"),
        (
            "gradsmith_add_ops(mylib SCHEMA my_ops.yaml KERNELS running_sum/running_sums.cc)",
            "KERNELS names 'running_sum/running_sums.cc', which is not there; expected a source",
        ),
        (
            "gradsmith_add_ops(mylib SCHEMA my_ops.yaml KERNELS running_sum)",
            "KERNELS names 'running_sum', which is not",
        ),
        (
            "gradsmith_add_ops(mylib SCHEMA my_ops.yaml ORACLES reference/running_sum.cc TEST)",
            "ORACLES names 'TEST', which is not there; expected a source,",
        ),
        (
            "gradsmith_add_ops(mylib SCHEMA my_ops.yaml KERNELS TEST)",
            "The words it takes are SCHEMA, NAMESPACE, KERNELS,",
        ),
        (
            "gradsmith_add_ops(mylib SCHEMA my_ops.yaml ORACLES reference/running_sum.cc)",
            "gradsmith_add_ops(mylib) has ORACLES, which are for TESTS alone. Give TESTS as well,",
        ),
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
        (
            "set(CMAKE_DISABLE_FIND_PACKAGE_Python ON)\ngradsmith_add_ops(mylib SCHEMA my_ops.yaml PYTHON)",
            "needs Python 3.11 or later with its headers, which were not found. Install them",
        ),
        (
            "set(CMAKE_DISABLE_FIND_PACKAGE_nanobind ON)\ngradsmith_add_ops(mylib SCHEMA my_ops.yaml PYTHON)",
            ".venv/bin/python), name another interpreter with -DPython3_EXECUTABLE=<path>, or leave PYTHON out.",
        ),
        ("gradsmith_add_ops(mylib SCHEMA my_ops.yaml NAMESPACE my-lib PYTHON)", "has the namespace 'my-lib'"),
        ("gradsmith_add_ops(mylib SCHEMA my_ops.yaml NAMESPACE lambda PYTHON)", "which is a keyword of Python"),
        ("gradsmith_add_ops(json SCHEMA my_ops.yaml PYTHON)", "or a module that others import"),
        ("gradsmith_add_ops(torch SCHEMA my_ops.yaml PYTHON)", "or a module that others import"),
        (
            "gradsmith_add_ops(otherlib SCHEMA other_ops.yaml)\ngradsmith_install_python(otherlib)",
            "finds no Python package of that library",
        ),
        ("gradsmith_install_python(mylib DESTINATIONS .)", "does not take 'DESTINATIONS;.'"),
    ],
)
def test_wrong_calls_are_told(prefix: Path, tmp_path: Path, call: str, message: str) -> None:
    PAGE.write_files(tmp_path)
    assert message in configure_fails(call, tmp_path, prefix)
