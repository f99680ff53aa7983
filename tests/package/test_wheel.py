"""pip: the wheel is built and installed into a fresh environment, without network. The generator is in it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from build_tree import REPOSITORY, SCRATCH
from few_operators import few_operators
from page_project import Page

PROGRAM = """
import sys
import gradsmith
assert "yaml" not in sys.modules and "jinja2" not in sys.modules and "numpy" not in sys.modules
import array
x = memoryview(array.array("f", range(9))).cast("B").cast("f", (1, 1, 3, 3))
w = memoryview(array.array("f", [1])).cast("B").cast("f", (1, 1, 1, 1))
try:
    print(gradsmith.conv(x, w).Y.tolist())
except ModuleNotFoundError as missing:
    print(f"{missing.name} is not there")
print(gradsmith.__file__)
"""

TOGETHER = """
from array import array
import gradsmith, otherlib
x = array("f", [-1, 2])
print(otherlib.cube(x).Y.tolist(), gradsmith.relu(x).Y.tolist())
try:
    gradsmith.relu(x, context=otherlib.Context())
except TypeError as error:
    print(str(error).rpartition("; ")[2])
"""

CMAKE = """
cmake_minimum_required(VERSION 3.25)
project(p LANGUAGES CXX)
find_package(gradsmith REQUIRED)
gradsmith_add_ops(otherlib SCHEMA other_ops.yaml PYTHON)
add_executable(main main.cc)
target_link_libraries(main PRIVATE otherlib)
"""
MAIN = """
#include <otherlib/ops.h>

int main() {
  gradsmith::Registry registry;
  return otherlib::RegisterAll(registry).ok() && registry.rows().size() == 1 ? 0 : 1;
}
"""


@pytest.fixture(scope="module")
def wheel() -> Path:
    """Of few operators, quickly compiled; the folder stays between runs of the tests, so that only what changed is
    compiled again."""
    pytest.importorskip("scikit_build_core")
    folder = SCRATCH / "wheel"
    schema = folder / "schema/ops.yaml"
    schema.parent.mkdir(parents=True, exist_ok=True)
    schema.write_text(few_operators(["Relu"]), encoding="utf-8")
    for old in folder.glob("*.whl"):
        old.unlink()
    command = [sys.executable, "-m", "pip", "wheel", str(REPOSITORY), "--no-deps", "--no-build-isolation"]
    command += ["--no-index", "--quiet", "--wheel-dir", str(folder)]
    command += ["-C", f"build-dir={folder / 'build'}", "-C", "cmake.build-type=Debug"]
    command += ["-C", "cmake.define.CMAKE_CXX_FLAGS_DEBUG=-O0", "-C", "cmake.define.GRADSMITH_CUDA=OFF"]
    command += ["-C", "cmake.define.CMAKE_UNITY_BUILD=ON", "-C", f"cmake.define.GRADSMITH_OPS_YAML={schema}"]
    command += ["-C", "cmake.define.GRADSMITH_SHARDS=2"]
    subprocess.run(command, check=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the wheel holds."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"gradsmith", names[-1].split("/")[0]}
    stubs = {"torch.pyi", "_core.pyi", "_ops/conv_grad_op.pyi"}
    expected = {"__init__.py", "torch.py", "py.typed", "_ops/__init__.py", *stubs}
    assert expected <= {name.partition("/")[2] for name in names}
    generator = {path.name for path in (REPOSITORY / "templates").iterdir()}
    inside = {name.rpartition("/")[2] for name in names if name.startswith("gradsmith/_codegen/templates/")}
    assert inside == generator
    headers = {str(path.relative_to(REPOSITORY)) for path in (REPOSITORY / "runtime").glob("*/kernels.h")}
    headers.add("runtime/core/shape_rules.h")  # the rule of windows, which families' own ones take
    names = [name for name in names if not name.startswith("gradsmith/_prefix/")]
    assert {name for name in names if name.endswith(".h")} == {f"gradsmith/_codegen/{header}" for header in headers}
    assert not [name for name in names if name.endswith((".yaml", ".a")) or "cache" in name.split("/")[:-1]]


def test_it_brings_the_cmake_package(site: Path, tmp_path: Path) -> None:
    """A library of own operators, with what the wheel holds and nothing else; its Python package beside gradsmith."""
    found = subprocess.run(
        [sys.executable, "-c", "import gradsmith; print(gradsmith.get_cmake_dir())"],
        env={**clean_environment(), "PYTHONPATH": str(site)},
        check=True,
        text=True,
        capture_output=True,
    ).stdout.strip()
    assert found.startswith(str(site / "gradsmith"))
    Page("own-operators.md").write_files(tmp_path)
    (tmp_path / "main.cc").write_text(MAIN)
    (tmp_path / "CMakeLists.txt").write_text(CMAKE)
    command = ["cmake", "-S", str(tmp_path), "-B", str(tmp_path / "build"), "-DCMAKE_BUILD_TYPE=Debug"]
    command += [f"-Dgradsmith_DIR={found}", f"-DPython3_EXECUTABLE={sys.executable}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", str(tmp_path / "build")], check=True, stdout=subprocess.DEVNULL)
    assert subprocess.run([str(tmp_path / "build/main")], check=False).returncode == 0
    told = subprocess.run(
        [sys.executable, "-c", TOGETHER],
        env={**clean_environment(), "PYTHONPATH": os.pathsep.join([str(site), str(tmp_path / "build/python")])},
        check=True,
        text=True,
        capture_output=True,
    ).stdout
    assert told == "[-1.0, 8.0] [0.0, 2.0]\nexpected a gradsmith.Context\n"


def test_the_version_is_cmakes(wheel: Path) -> None:
    version = re.search(r"^  VERSION ([0-9.]+)$", (REPOSITORY / "CMakeLists.txt").read_text(), re.MULTILINE)
    assert version
    assert wheel.name.startswith(f"gradsmith-{version[1]}-")
    assert f'__version__ = "{version[1]}"' in (REPOSITORY / "python/gradsmith/__init__.py").read_text()


def test_it_is_stable_where_it_can_be(wheel: Path) -> None:
    """nanobind's stable ABI begins with Python 3.12."""
    tag = "cp312-abi3" if sys.version_info >= (3, 12) else f"cp3{sys.version_info.minor}-cp3{sys.version_info.minor}"
    assert tag in wheel.name


def clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}


def later_python() -> str | None:
    """A Python of a later version than this one."""
    for minor in range(sys.version_info.minor + 1, sys.version_info.minor + 9):
        found = shutil.which(f"python3.{minor}")
        if found and subprocess.run([found, "-c", "import venv"], check=False, capture_output=True).returncode == 0:
            return found
    return None


def test_a_stable_one_serves_later_versions(wheel: Path, tmp_path: Path) -> None:
    if "abi3" not in wheel.name:
        pytest.skip("a wheel that is built with Python 3.11 serves 3.11")
    later = later_python()
    if later is None:
        pytest.skip("there is no later version of Python here")
    environment = clean_environment()
    subprocess.run([later, "-m", "venv", str(tmp_path / "venv")], check=True, env=environment)
    python = str(tmp_path / "venv/bin/python")
    install = [python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", str(wheel)]
    subprocess.run(install, check=True, env=environment)
    told = subprocess.run(
        [python, "-c", PROGRAM], check=True, env=environment, cwd=tmp_path, text=True, capture_output=True
    )
    assert str(tmp_path) in told.stdout


def test_it_works_in_a_fresh_environment(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv/bin/python"
    environment = clean_environment()
    install = [str(python), "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", str(wheel)]
    subprocess.run(install, check=True, env=environment)
    result = subprocess.run(
        [str(python), "-c", PROGRAM], check=False, env=environment, cwd=tmp_path, text=True, capture_output=True
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[0] == "numpy is not there"
    assert str(tmp_path) in result.stdout
    script = [str(tmp_path / "venv/bin/gradsmith"), "ops", "conv_grad"]
    listed = subprocess.run(script, check=True, env=environment, cwd=tmp_path, text=True, capture_output=True)
    assert "ConvGrad" in listed.stdout


def test_the_generators_verbs_need_pyyaml_and_jinja2_alone(site: Path, tmp_path: Path) -> None:
    """Those of this interpreter, and gradsmith from the wheel."""
    packages = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    program = "import sys; sys.path[:0] = sys.argv[1].split(':'); sys.argv[0:2] = ['gradsmith']; "
    program += "from gradsmith.__main__ import main; sys.exit(main())"

    def run(path: list[str], *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-I", "-S", "-c", program, ":".join(path), *arguments]
        return subprocess.run(command, cwd=REPOSITORY, check=False, text=True, capture_output=True)

    out = tmp_path / "generated"
    made = run([str(site), *packages], "generate", "--out", str(out))
    assert made.returncode == 0, made.stderr
    table = "src/dispatch_table.cc"
    assert (out / table).read_bytes() == (REPOSITORY / "generated" / table).read_bytes()
    lacking = run([str(site)], "check")
    assert lacking.returncode == 1
    assert "check needs the Python module yaml, which is not installed" in lacking.stderr
