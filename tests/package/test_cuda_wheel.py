"""pip: the wheel with the CUDA backend, built as docs/python.md says against pip's cuDNN, which it then loads.

It downloads what requirements-cuda.txt pins (1.3 GB on disk, with cuBLAS) and compiles for minutes, so it runs only
where it is asked for: GRADSMITH_TEST_CUDA_WHEEL=1. There need be no GPU.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from build_tree import REPOSITORY, SCRATCH

pytestmark = pytest.mark.skipif(
    os.environ.get("GRADSMITH_TEST_CUDA_WHEEL", "0") in ("", "0"),
    reason="it takes long and needs a package index: set GRADSMITH_TEST_CUDA_WHEEL=1",
)

FOLDER = SCRATCH / "cuda-wheel"
LOG = FOLDER / "build.log"
REQUIREMENTS = REPOSITORY / "requirements-cuda.txt"

# What is told of the installed wheel; the last two lines are of the library that it would load.
PROGRAM = """
import ctypes, os
import gradsmith
print(gradsmith.__file__)
print(sorted({row.backend for op in gradsmith.ops() for row in op.rows}))
print(gradsmith.missing_for("cuda:0"))
library = ctypes.CDLL(os.environ["GRADSMITH_CUDNN_LIBRARY"])
library.cudnnGetVersion.restype = ctypes.c_size_t
print(library.cudnnGetVersion())
print(next(line.split()[-1] for line in open("/proc/self/maps") if "libcudnn.so.9" in line))
"""


def environment() -> dict[str, str]:
    """That of a user: nothing of the build tree's, and no cuDNN chosen. nvcc is found where toolkits are installed."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "GRADSMITH_CUDNN_LIBRARY")
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    return {**kept, "PATH": f"{kept['PATH']}{os.pathsep}/usr/local/cuda/bin"}


def run(*command: str | Path, cwd: Path = REPOSITORY) -> str:
    result = subprocess.run(
        [str(one) for one in command], check=False, cwd=cwd, env=environment(), text=True, capture_output=True
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def pinned_cudnn() -> str:
    (pin,) = re.findall(r"^(nvidia-cudnn-cu13==\S+)$", REQUIREMENTS.read_text(), re.MULTILINE)
    return str(pin)


@pytest.fixture(scope="module")
def builder() -> Path:
    """The Python that builds. The folder stays between runs, so that only what changed is installed and compiled."""
    if not shutil.which("nvcc", path=environment()["PATH"]):
        pytest.skip("there is no nvcc")
    python = FOLDER / f"venv-{sys.version_info.minor}/bin/python"
    if not python.exists():
        venv.create(python.parents[1], with_pip=True)
    run(python, "-m", "pip", "install", "--quiet", "-r", REQUIREMENTS)
    return python


@pytest.fixture(scope="module")
def wheel(builder: Path) -> Path:
    wheels = FOLDER / f"wheels-{sys.version_info.minor}"
    shutil.rmtree(wheels, ignore_errors=True)
    LOG.unlink(missing_ok=True)
    command: list[str | Path] = [builder, "-m", "pip", "wheel", ".", "--no-deps", "--no-build-isolation"]
    command += ["--quiet", "--log", LOG, "--wheel-dir", wheels]
    options = [f"build-dir={FOLDER}/build-{sys.version_info.minor}", "cmake.define.GRADSMITH_CUDA=ON"]
    options += ["cmake.define.GRADSMITH_CUDA_ARCHITECTURES=90-real"]
    if ccache := shutil.which("ccache"):
        options += [f"cmake.define.CMAKE_CXX_COMPILER_LAUNCHER={ccache}"]
    run(*command, *[word for option in options for word in ("-C", option)])
    (built,) = wheels.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def user(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has the wheel and cuDNN, and nothing of the builder's."""
    python = tmp_path_factory.mktemp("user") / "venv/bin/python"
    venv.create(python.parents[1], with_pip=True)
    run(python, "-m", "pip", "install", "--quiet", f"{wheel}[cuda]", pinned_cudnn())
    return python


def test_it_is_compiled_against_pips_headers(wheel: Path, builder: Path) -> None:
    """Whatever cuDNN the system or the toolkit has."""
    told = re.search(r"gradsmith: backends: cpu, cuda \(CUDA Toolkit \S+, cuDNN (\S+) in (.*)\)", LOG.read_text())
    assert told
    assert Path(told[2]).is_relative_to(builder.parents[1])
    assert pinned_cudnn().partition("==")[2].startswith(told[1])


def test_it_has_the_backend_and_loads_pips_cudnn(user: Path, tmp_path: Path) -> None:
    where, backends, missing, version, library = run(user, "-c", PROGRAM, cwd=tmp_path).splitlines()
    assert Path(where).is_relative_to(user.parents[1])
    assert backends == "['cpu', 'cuda']"
    # Without a GPU that is what is missing, and not the backend.
    assert not missing or "driver" in missing or "GPU" in missing
    assert Path(library).is_relative_to(user.parents[1].resolve())
    major, minor, patch = pinned_cudnn().partition("==")[2].split(".")[:3]
    assert int(version) == int(major) * 10000 + int(minor) * 100 + int(patch)


def test_a_call_on_a_gpu_says_what_is_missing(user: Path, tmp_path: Path) -> None:
    if not run(user, "-c", "import gradsmith; print(gradsmith.missing_for('cuda'))", cwd=tmp_path).strip():
        pytest.skip("nothing is missing: there is a GPU")
    program = "import gradsmith\ngradsmith.tune('ConvGrad float X=2x3x6x5 W=4x3x3x2', device='cuda')"
    command = [str(user), "-c", program]
    result = subprocess.run(command, check=False, cwd=tmp_path, env=environment(), text=True, capture_output=True)
    assert result.returncode != 0
    assert "there is no NVIDIA driver" in result.stderr, result.stderr
