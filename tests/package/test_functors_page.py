"""docs/functors.md, word for word: operators on kernel patterns, of which the installed prefix is all there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from page_project import Page, sh

PAGE = Page("functors.md")
# nvcc takes half as long.
QUICKLY = "if nvcc --help 2>&1 | grep -q -e --Ofast-compile; then export NVCC_APPEND_FLAGS=--Ofast-compile=max; fi\n"


@pytest.fixture(scope="module")
def project() -> Path:
    return PAGE.project("functors")


@pytest.fixture(scope="module")
def built(project: Path, prefix: Path) -> str:
    """What the page's commands print."""
    result = sh(QUICKLY + PAGE.block("sh"), project, prefix)
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-4000:]
    return result.stdout


def test_the_page_does_what_it_says(built: str) -> None:
    assert "100% tests passed" in built
    assert "mylib.cpu" in built


def test_mistakes_in_functors_are_noticed(built: str, project: Path, prefix: Path) -> None:
    for name, right, wrong in (
        ("softmax_one/functors.h", "std::exp(-results[0])", "std::exp(results[0])"),
        ("softmax_one/functors.h", "in[1] * (in[0] - row.results[0])", "in[1] * (in[0] + row.results[0])"),
        ("energy_pool/functors.h", "state->sum += 2 * x * dy;", "state->sum += x * dy;"),
    ):
        text = (project / name).read_text()
        assert right in text
        (project / name).write_text(text.replace(right, wrong))
    # The CPU shows them: kernels are not compiled again.
    kernels_stay = "find build -name '*.fatbin' -exec touch {} +"
    build = "cmake --build build --parallel 2 --target mylib_tests"
    tests = "build/mylib_tests --backend=cpu --gtest_brief=1"
    result = sh(f"{kernels_stay}; {build} && {tests}", project, prefix)
    PAGE.write_files(project)
    failed = set(re.findall(r"\[  FAILED  \] (\w+\.\w+)/", result.stdout))
    gradients = ("SoftmaxOneGrad", "EnergyPoolGrad")
    assert {f"{name}.{test}" for name in gradients for test in ("Exact", "Gradient")} <= failed
    assert {name.partition(".")[0] for name in failed} == {"SoftmaxOne", *gradients}
