"""docs/selection.md, word for word; and that the library of a selection holds nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from build_tree import build
from gradsmith_codegen import images
from page_project import Page, configure_fails, sh
from subproject import Subproject

PAGE = Page("selection.md")
# Handwritten kernels, whose images lie in the library, so that nvcc has nothing to do, and a formula.
WITH_CUDA = """
if(GRADSMITH_PACKAGE_HAS_CUDA)
  gradsmith_select(pool OPS GlobalMaxPool:half BACKENDS cuda ARCHITECTURES 90-real)
  gradsmith_select(relu OPS ReluGrad:half BACKENDS cuda ARCHITECTURES 90-real)
endif()
"""


@pytest.fixture(scope="module")
def project() -> Path:
    folder = PAGE.project("selection")
    with (folder / "CMakeLists.txt").open("a") as file:
        file.write(WITH_CUDA)
    return folder


@pytest.fixture(scope="module")
def built(project: Path, prefix: Path) -> str:
    """What the page's commands print."""
    result = sh(PAGE.block("sh"), project, prefix)
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-4000:]
    return result.stdout


def symbols(archive: Path) -> str:
    return subprocess.run(["nm", "-C", str(archive)], check=True, text=True, capture_output=True).stdout


def sections(archive: Path) -> str:
    return subprocess.run(["objdump", "-hw", str(archive)], check=True, text=True, capture_output=True).stdout


def images_in(archive: Path) -> set[str]:
    return set(re.findall(r"\.rodata\.gradsmith_image_(\w+)", sections(archive)))


def test_the_page_does_what_it_says(built: str) -> None:
    assert built.endswith(PAGE.block("text"))
    assert re.search(r"gradsmith_select\(mylib\): [0-9.]+ MB of [0-9.]+ MB, no images of kernels\n", built)


def test_no_other_kernel_is_in_the_archive(built: str, project: Path) -> None:
    archive = project / "build/libmylib.a"
    names = symbols(archive)
    assert set(re.findall(r"gradsmith::generated::(\w+)_stub::kRows", names)) == {
        "conv_grad",
        "relu_grad",
        "softmax_grad",
    }
    assert set(re.findall(r"gradsmith::(\w+::\w+)::Run(?:Cpu|Cuda)\(", names)) == {"conv::ConvGrad"}
    assert set(re.findall(r"gradsmith::generated::(\w+)Formula\b", names)) == {"ReluGrad", "SoftmaxGrad"}
    assert images_in(archive) == set()


def test_a_build_after_a_build_links_nothing(built: str, project: Path, prefix: Path) -> None:
    output = sh("cmake --build build", project, prefix).stdout
    assert "Linking" not in output
    assert "Building" not in output


def test_a_changed_file_of_problems_selects_anew(built: str, project: Path, prefix: Path) -> None:
    def rows_of_double() -> int:
        assert sh("cmake --build build --target mylib_generate", project, prefix).returncode == 0
        return (project / "build/gradsmith/mylib/src/ops_shard_0.cc").read_text().count('.name = "double"')

    problems = project / "problems.txt"
    text = problems.read_text()
    before = rows_of_double()
    problems.write_text(text + "ConvGrad double X=1x1x3x3 W=1x1x1x1\n")
    assert rows_of_double() == before + 1
    problems.write_text("ConvGrad dobule X=8x3x9x9 W=4x3x3x3\n")
    result = sh("cmake --build build --target mylib_generate", project, prefix)
    problems.write_text(text)
    assert result.returncode != 0
    said = " ".join(result.stderr.split())
    assert f"{problems}:1: there is no row" in said
    assert "there is no row of operator 'ConvGrad' called 'dobule'; did you mean 'double'?" in said
    assert rows_of_double() == before


def test_cuda_kernels_are_kept_for_some_architectures(built: str, project: Path, tmp_path: Path) -> None:
    archive = project / "build/libpool.a"
    if not archive.exists():
        pytest.skip("the installed library has no CUDA backend")
    assert "pool_windows" in images_in(archive)
    assert not {name for name in images_in(archive) if re.match("conv|batch_norm|formulas", name)}
    assert set(re.findall(r"gradsmith::(\w+::\w+)::Run(?:Cpu|Cuda)\(", symbols(archive))) == {"pool::GlobalMaxPool"}
    image = tmp_path / "image"
    dump = f"--dump-section=.rodata.gradsmith_image_pool_windows={image}"
    command = ["objcopy", dump, str(project / "build/gradsmith/pool/pool.o"), str(tmp_path / "copy.o")]
    subprocess.run(command, check=True)
    assert {(one.architecture, one.kind) for one in images.entries(image.read_bytes())} == {(90, "real")}


def test_a_formula_has_its_own_kernels_and_those_of_copies_and_checks(built: str, project: Path) -> None:
    archive = project / "build/librelu.a"
    if not archive.exists():
        pytest.skip("the installed library has no CUDA backend")
    assert images_in(archive) == {"selected_formulas_0", "copy", "elementwise", "compare"}


FIND_PACKAGE = "find_package(gradsmith REQUIRED)\n"
PYTHON = f"-DPython3_EXECUTABLE={sys.executable}"


def replace_find_package(folder: Path, lines: str) -> None:
    project = folder / "CMakeLists.txt"
    assert FIND_PACKAGE in project.read_text()
    project.write_text(project.read_text().replace(FIND_PACKAGE, lines))


def test_where_sources_are_added_it_selects_from_what_is_built_there(subproject: Subproject) -> None:
    """With oneDNN, where there is oneDNN, which what is selected brings along."""
    folder = PAGE.project("selection_of_sources")
    replace_find_package(folder, "")  # the library is there before the project is
    subprocess.run(["cmake", f"-DSELECTION_SOURCE_DIR={folder}", PYTHON, str(subproject.folder)], check=True)
    built = build(subproject.folder, "program").stdout
    assert re.search(r"gradsmith_select\(mylib\): [0-9.]+ MB of [0-9.]+ MB, no images of kernels\n", built)
    program = subprocess.run([str(subproject.folder / "selection/program")], check=True, text=True, capture_output=True)
    assert program.stdout == PAGE.block("text")
    command = ["ninja", "-C", str(subproject.folder), "-t", "query", "selection/gradsmith/mylib/stamp"]
    assert "/kernels.h\n" in subprocess.run(command, check=True, text=True, capture_output=True).stdout
    table = subproject.folder / "selection/gradsmith/mylib/src/dispatch_table.cc"
    before = table.stat().st_mtime_ns
    assert "Building" not in build(subproject.folder, "program").stdout
    assert table.stat().st_mtime_ns == before


def test_where_sources_are_fetched_it_is_there(subproject: Subproject) -> None:
    folder = PAGE.project("selection_of_fetched")
    replace_find_package(folder, PAGE.block("cmake"))
    (folder / "gradsmith").symlink_to(subproject.schema.parent)
    command = ["cmake", "-S", str(folder), "-B", str(folder / "build"), "-G", "Ninja", PYTHON]
    subprocess.run([*command, "-DGRADSMITH_CUDA=OFF", "-DGRADSMITH_USE_SNAPSHOT=ON"], check=True)
    command = ["ninja", "-C", str(folder / "build"), "-t", "commands", "program"]
    told = subprocess.run(command, check=True, text=True, capture_output=True).stdout
    assert "gradsmith_codegen.select_archive" in told
    assert f"--archive {folder}/build/_deps/gradsmith-build/libgradsmith.a" in told


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("gradsmith_select(mylib OPS ConvGard)", "there is no operator 'ConvGard'; did you mean 'ConvGrad'?"),
        ("gradsmith_select(mylib BACKENDS gpu)", "there is no backend 'gpu'; did you mean 'cuda'?"),
        ("gradsmith_select(mylib OP ConvGrad)", "does not take 'OP;ConvGrad'"),
    ],
)
def test_wrong_calls_are_told(prefix: Path, tmp_path: Path, call: str, message: str) -> None:
    assert message in configure_fails(call, tmp_path, prefix)


@pytest.mark.parametrize("of_cuda", ["BACKENDS cuda", "ARCHITECTURES 90", "BACKENDS cpu ARCHITECTURES 90"])
def test_cuda_is_an_error_where_the_library_lacks_it(prefix: Path, tmp_path: Path, of_cuda: str) -> None:
    told = configure_fails(f"set(GRADSMITH_PACKAGE_HAS_CUDA OFF)\ngradsmith_select(mylib {of_cuda})", tmp_path, prefix)
    has = "ARCHITECTURES of the backend cuda" if "ARCHITECTURES" in of_cuda else "the backend cuda"
    assert f"gradsmith_select(mylib) has {has}, which gradsmith was built without." in told
