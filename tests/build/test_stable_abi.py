"""The Python package's sources keep to the stable ABI, of which wheels for Python 3.12 and later are built.

Python 3.11 has none that nanobind can use: there they are compiled for its limited API, which has not the two functions
that 3.12's has and nanobind calls. What else is not in it does not compile, as a field of a type.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from build_tree import JOBS, REPOSITORY

ADDED_IN_3_12 = """
#include <Python.h>
extern "C" {
PyObject* PyObject_Vectorcall(PyObject*, PyObject* const*, size_t, PyObject*);
PyObject* PyObject_VectorcallMethod(PyObject*, PyObject* const*, size_t, PyObject*);
}
"""


def limited_api(folder: Path) -> list[str]:
    """The compiler's options, or a skipped test."""
    headers = Path(sysconfig.get_path("include"))
    nanobind = importlib.util.find_spec("nanobind")
    if nanobind is None or nanobind.origin is None:
        pytest.skip("nanobind is not installed")
    if not (headers / "Python.h").exists():
        pytest.skip(f"no Python.h in {headers}")
    options = ["-isystem", str(headers), "-isystem", str(Path(nanobind.origin).parent / "include")]
    if sys.version_info >= (3, 12):
        return ["-DPy_LIMITED_API=0x030C0000", *options]
    added = folder / "added.h"
    added.write_text(ADDED_IN_3_12, encoding="utf-8")
    return ["-DPy_LIMITED_API=0x030B0000", "-include", str(added), *options]


def compile_for_it(source: Path, options: list[str]) -> subprocess.CompletedProcess[str]:
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    assert compiler
    own = [f"-I{REPOSITORY / place}" for place in ("tools", "runtime", "runtime/include", "generated/include")]
    command = [compiler, "-std=c++20", "-fsyntax-only", *own, *options, str(source)]
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)


SOURCES = sorted(path.name for path in (REPOSITORY / "python/src").glob("*.cc"))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, subprocess.CompletedProcess[str]]:
    options = limited_api(tmp_path_factory.mktemp("limited"))
    with ThreadPoolExecutor(int(JOBS)) as pool:
        results = pool.map(lambda source: compile_for_it(REPOSITORY / "python/src" / source, options), SOURCES)
        return dict(zip(SOURCES, results, strict=True))


@pytest.mark.parametrize("source", SOURCES)
def test_sources_keep_to_it(compiled: dict[str, subprocess.CompletedProcess[str]], source: str) -> None:
    assert compiled[source].returncode == 0, compiled[source].stdout


def test_what_is_not_in_it_does_not_compile(tmp_path: Path) -> None:
    source = tmp_path / "field.cc"
    source.write_text("#include <Python.h>\nconst char* Name(PyObject* of) { return Py_TYPE(of)->tp_name; }\n")
    compiled = compile_for_it(source, limited_api(tmp_path))
    assert compiled.returncode != 0
    assert "incomplete" in compiled.stdout
