"""What the pages tell to add is added to a copy of the sources: it builds there, and passes the quick tests.

Of `./run test --quick` these are the tests that read the operators: those of rows, as docs/adding-operators.md tells to
run them alone, those of the generator and its benchmark, and those of the Python package that go through its table; the
others do not know what is in ops.yaml, and are left out for their time. So are most of the operators that nothing was
added to: their tests are those of the repository's own build.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from build_tree import (
    JOBS,
    REPOSITORY,
    SCRATCH,
    SOURCES,
    copy_sources,
    copy_with_few_operators,
    replace_once,
    run_generator,
)

COPY = SCRATCH / "extension/source"
WHOLE = SCRATCH / "extension/whole"  # with all operators; it is not built
BUILD = SCRATCH / "extension/build"
PAGES = (
    "README.md",
    "ops.schema.json",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "CMakePresets.json",
    "pyproject.toml",
    "run",
)
FOLDERS = ("bench", "docs", "examples", "python", "tests", "tools")


def block(page: str, start: str, language: str = "yaml") -> str:
    """The block of a page that begins so."""
    text = (REPOSITORY / page).read_text()
    (found,) = re.findall(rf"^```{language}\n({re.escape(start)}.*?)^```$", text, re.DOTALL | re.M)
    return str(found)


ADDING = "docs/adding-operators.md"
NEW_OP = block(ADDING, "  - name: DepthwiseConvGrad\n")
CUBE = block("README.md", "  - name: Cube\n")
NEW_ROW = block("CONTRIBUTING.md", "    rows:\n").partition("\n")[2]
TO_BUILD, TO_RUN = block(ADDING, "cmake -S . -B build/rows ", "sh").replace("build/rows", str(BUILD)).splitlines()
OF_PYTHON = ("docs", "names", "problem_lines", "table")
OF_CODEGEN = (
    *("cli", "explain", "formatting", "in_step", "json_schema", "kernel_fit", "output", "pages", "plan", "reader"),
    "schema_tools_page",
)
OF_THE_WHOLE = [
    " ".join(f"codegen/test_{name}.py" for name in OF_CODEGEN),
    "bench/test_codegen_benchmark.py",
    "build/test_kernel_fields.py -k batch_norm",
]
TESTS = OF_THE_WHOLE + [f"python/test_{name}.py" for name in OF_PYTHON]
QUICKLY = "-DCMAKE_CXX_FLAGS_RELEASE=-O0 -DCMAKE_UNITY_BUILD=ON -DGRADSMITH_SHARDS=2 -DGRADSMITH_BUILD_PYTHON=AUTO"


def in_the_copy(command: str) -> str:
    """What a command of the shell prints, as in an environment of Python that is activated."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "VIRTUAL_ENV": sys.prefix}
    told = subprocess.run(
        ["sh", "-euc", command], check=False, cwd=COPY, env=environment, text=True, capture_output=True
    )
    assert told.returncode == 0, told.stdout + told.stderr
    return told.stdout


def kernel_of_the_cpu(header: str) -> str:
    """A kernel as BatchNormalization is, but that it does not run on a GPU."""
    (kernel,) = re.findall(r"^struct BatchNormalization \{\n.*?^\};\n", header, re.DOTALL | re.M)
    renamed = kernel.replace("struct BatchNormalization {", "struct OnTheCpuAlone {")
    without = re.sub(r"^  static Status RunCuda\(.*?\);\n", "", renamed, flags=re.DOTALL | re.M)
    assert "RunCpu" in without
    assert "RunCuda" not in without
    return without


def add_what_the_pages_tell(copy: Path) -> None:
    """A row, entries, some of them with a wrong factor as well, and a kernel for the CPU alone."""
    schema = copy / "ops.yaml"
    last_row = re.search(r"^    rows: &batch_norm_rows\n(?:      .*\n)*", schema.read_text(), re.MULTILINE)
    assert last_row is not None
    replace_once(schema, last_row[0], last_row[0] + NEW_ROW)
    wrong = CUBE.replace("3 * X * X", "2 * X * X").replace("Cube", "WrongCube")
    schema.write_text("\n".join([schema.read_text(), NEW_OP, CUBE, wrong]))
    header = copy / "runtime/batch_norm/kernels.h"
    end = "}  // namespace gradsmith::batch_norm\n"
    replace_once(header, end, f"{kernel_of_the_cpu(header.read_text())}\n{end}")
    run_generator("generate", "--schema", "ops.yaml", "--out", "generated", repository=copy, cwd=copy)


@pytest.fixture(scope="module")
def tree() -> Path:
    """The copy that is built, of few operators; its folder stays, so that little is built anew."""
    # Tests of the Python package name the first two; what README's example repeats has its anchors in the last.
    with_these = ("ConvTranspose", "ConvTransposeGrad", "Relu")
    copy_with_few_operators(REPOSITORY, COPY, (*SOURCES, *PAGES, *FOLDERS), with_these)
    add_what_the_pages_tell(COPY)
    in_the_copy(TO_BUILD.replace("cmake -S", f"cmake {QUICKLY} -S"))
    in_the_copy(f"cmake --build {BUILD} -j{JOBS} --target gradsmith_python")
    return COPY


@pytest.fixture(scope="module")
def whole() -> Path:
    copy_sources(REPOSITORY, WHOLE, (*SOURCES, *PAGES, *FOLDERS))
    add_what_the_pages_tell(WHOLE)
    return WHOLE


def test_rows_are_tested_alone(tree: Path) -> None:
    """Some of the operators that something was added to: the copy is not optimized, and the repository's own build
    runs all."""
    told = in_the_copy(f"{TO_RUN} '--gtest_filter=BatchNormalization*.Exact/*:DepthwiseConvGrad.Exact/*'")
    assert re.search(r"^\[  PASSED  \] [1-9]\d{2,} tests\.$", told, re.MULTILINE), told


@pytest.mark.parametrize("name", ["BatchNormalization*half_double_stats_cpu*", "DepthwiseConvGrad*", "Cube*"])
def test_new_tests_are_there_and_pass(tree: Path, name: str) -> None:
    told = in_the_copy(f"{BUILD}/tests/gradsmith_generated_tests --backend=cpu '--gtest_filter={name}'")
    assert re.search(r"^\[  PASSED  \] [1-9]\d* tests?\.$", told, re.MULTILINE), told


def test_a_wrong_factor_is_noticed(tree: Path) -> None:
    told = in_the_copy(f"! {BUILD}/tests/gradsmith_generated_tests --backend=cpu '--gtest_filter=WrongCube*'")
    assert set(re.findall(r"^\[  FAILED  \] (\w+\.\w+)/", told, re.MULTILINE)) == {"WrongCubeGrad.Gradient"}


@pytest.fixture(scope="module")
def results(
    tree: Path, whole: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, subprocess.CompletedProcess[str]]:
    """What comes of each folder's tests, of which some run while others do."""
    environment = {**os.environ, "GRADSMITH_BUILD_DIR": str(BUILD), "PYTHONPATH": str(BUILD / "python")}

    def result(tests: str) -> subprocess.CompletedProcess[str]:
        folder = tmp_path_factory.mktemp("its")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={folder}"]
        command += tests.split()
        copy = whole if tests in OF_THE_WHOLE else tree
        return subprocess.run(command, cwd=copy / "tests", env=environment, check=False, text=True, capture_output=True)

    with ThreadPoolExecutor(int(JOBS)) as pool:
        return dict(zip(TESTS, pool.map(result, TESTS), strict=True))


@pytest.mark.parametrize("tests", TESTS)
def test_tests_that_read_the_operators_pass(results: dict[str, subprocess.CompletedProcess[str]], tests: str) -> None:
    assert results[tests].returncode == 0, results[tests].stdout + results[tests].stderr
