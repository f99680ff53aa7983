"""What configuring says where something is missing or wrong."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from build_tree import REPOSITORY, build, copy_sources

WITHOUT_TOOLKIT = "-DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON"


def configure_output(folder: Path, *options: str, source: Path = REPOSITORY) -> tuple[int, str]:
    command = ["cmake", "-S", str(source), "-B", str(folder), "-G", "Ninja", "-DGRADSMITH_BUILD_TESTS=OFF", *options]
    result = subprocess.run(command, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return result.returncode, " ".join(result.stdout.split())  # CMake breaks long lines


@pytest.mark.parametrize(("module", "package"), [("yaml", "PyYAML"), ("jinja2", "Jinja2")])
def test_missing_python_package_is_named(tmp_path: Path, module: str, package: str) -> None:
    python = tmp_path / "python3"
    python.write_text(
        f'#!/bin/sh\ncase "$*" in *"import {module}") exit 1 ;; *"import "yaml|*"import "jinja2) exit 0 ;; esac\n'
        'exec python3 "$@"\n'
    )
    python.chmod(0o755)
    code, output = configure_output(tmp_path / "build", f"-DPython3_EXECUTABLE={python}")
    assert code != 0
    assert f"the Python package {package}" in output
    assert f"in a new build folder: python3 -m pip install {package})" in output
    assert "-DGRADSMITH_USE_SNAPSHOT=ON" in output


def test_missing_python_is_named(tmp_path: Path) -> None:
    code, output = configure_output(tmp_path / "build", "-DPython3_EXECUTABLE=/nowhere/python3")
    assert code != 0
    assert "Python 3.11 or later, which was not found" in output
    assert "-DGRADSMITH_USE_SNAPSHOT=ON" in output


@pytest.mark.parametrize("shards", ["0", "-1", "many"])
def test_number_of_shards_is_checked(tmp_path: Path, shards: str) -> None:
    code, output = configure_output(tmp_path / "build", f"-DGRADSMITH_SHARDS={shards}")
    assert code != 0
    assert f"GRADSMITH_SHARDS is '{shards}'" in output


def test_missing_schema_is_named(tmp_path: Path) -> None:
    code, output = configure_output(tmp_path / "build", "-DGRADSMITH_OPS_YAML=/nowhere/ops.yaml")
    assert code != 0
    assert "'/nowhere/ops.yaml'; there is no such file" in output


@pytest.mark.parametrize(
    ("lib", "include", "expected"),
    [
        ("lib64", "include/of", ["${pcfiledir}/../..", "${prefix}/lib64", "${prefix}/include/of"]),
        ("/out/lib", "/dev/include", ["/usr/local", "/out/lib", "/dev/include"]),
        ("/out/lib", "include", ["/usr/local", "/out/lib", "${prefix}/include"]),
        ("lib", "/dev/include", ["${pcfiledir}/../..", "${prefix}/lib", "/dev/include"]),
    ],
)
def test_pkg_config_knows_folders_of_the_prefix_and_absolute_ones(
    tmp_path: Path, lib: str, include: str, expected: list[str]
) -> None:
    options = [f"-DCMAKE_INSTALL_LIBDIR={lib}", f"-DCMAKE_INSTALL_INCLUDEDIR={include}", "-DGRADSMITH_CUDA=OFF"]
    code, output = configure_output(tmp_path, "-DGRADSMITH_USE_SNAPSHOT=ON", *options)
    assert code == 0, output
    lines = (tmp_path / "gradsmith.pc").read_text().splitlines()
    assert [line.partition("=")[2] for line in lines[:3]] == expected


@pytest.mark.parametrize("generator", ["Ninja", "Unix Makefiles"])
@pytest.mark.parametrize("name", ["b[1] s*r?", "it's a&b d$x %,+=~!@(c){d}"])
def test_paths_may_hold_what_means_something_elsewhere(tmp_path: Path, generator: str, name: str) -> None:
    """All sources are found, and the operators generated once."""
    source, folder = tmp_path / name / "source", tmp_path / name / "build"
    copy_sources(REPOSITORY, source)
    options = ["-G", generator, f"-DPython3_EXECUTABLE={sys.executable}", "-DGRADSMITH_CUDA=OFF"]
    code, output = configure_output(folder, *options, "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", source=source)
    assert code == 0, output
    commands = json.loads((folder / "compile_commands.json").read_text())
    compiled = {Path(command["file"]).relative_to(source) for command in commands if "/source/" in command["file"]}
    sources = {path.relative_to(source) for path in source.glob("runtime/*/*.cc")}
    left_out = {path for path in sources if path.parts[1] in ("cpu", "cuda", "onednn")}
    assert len(sources) > 20
    assert sources - left_out <= compiled
    build(folder, "gradsmith_generate")
    again = build(folder, "gradsmith_generate").stdout
    assert "Generating" not in again
    assert "Re-running CMake" not in again


@pytest.mark.parametrize(
    ("name", "fault"),
    [("x[y", "a bracket without"), ("x]y", "a bracket without"), ("x:y", "a colon"), ("x$(y)", "'$('")],
)
@pytest.mark.parametrize("kind", ["source", "build"])
def test_paths_that_build_tools_do_not_take_are_refused(tmp_path: Path, name: str, fault: str, kind: str) -> None:
    source, folder = (tmp_path / (name if one == kind else "plain") / one for one in ("source", "build"))
    copy_sources(REPOSITORY, source)
    code, output = configure_output(folder, "-DGRADSMITH_CUDA=OFF", "-DGRADSMITH_USE_SNAPSHOT=ON", source=source)
    assert code != 0
    assert f"holds {fault}" in output


def test_backends_are_told_in_one_line(tmp_path: Path) -> None:
    code, output = configure_output(tmp_path / "build", "-DGRADSMITH_USE_SNAPSHOT=ON")
    assert code == 0, output
    assert output.count("backends:") == 1
    assert "gradsmith: backends: cpu" in output


def test_the_default_build_is_a_release(tmp_path: Path) -> None:
    configure_output(tmp_path / "build", "-DGRADSMITH_USE_SNAPSHOT=ON")
    assert "CMAKE_BUILD_TYPE:STRING=Release" in (tmp_path / "build/CMakeCache.txt").read_text()


def test_a_new_family_of_kernels_needs_no_line_of_cmake(tmp_path: Path) -> None:
    copy_sources(REPOSITORY, tmp_path / "source")
    for path in ("scale/scale.cc", "scale/cuda/scale.cc", "scale/cuda/scale_rows.cu", "scale/no_cuda/scale.cc"):
        (tmp_path / "source/runtime" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "source/runtime" / path).touch()
    # A family that is a functor names its image of kernels on every backend.
    names_its_image = (
        '#include "cuda/kernel_images.h"\nstatic_assert(sizeof(gradsmith::cuda::kImage_scale_rows) > 0);\n'
    )
    (tmp_path / "source/runtime/scale/scale.cc").write_text(names_its_image)
    options = ["-DGRADSMITH_USE_SNAPSHOT=ON", "-DGRADSMITH_CUDA=OFF", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"]
    code, output = configure_output(tmp_path / "build", *options, source=tmp_path / "source")
    assert code == 0, output
    commands = json.loads((tmp_path / "build/compile_commands.json").read_text())
    runtime = tmp_path / "source/runtime"
    compiled = {Path(command["file"]) for command in commands}
    folders = {path.parent.relative_to(runtime).as_posix() for path in compiled if path.is_relative_to(runtime)}
    assert {"core", "conv", "batch_norm", "scale", "scale/no_cuda"} <= folders
    assert folders.isdisjoint({"cpu", "cuda", "onednn", "scale/cuda"})
    (scale,) = (one for one in commands if one["file"] == str(runtime / "scale/scale.cc"))
    subprocess.run(f"{scale['command']} -fsyntax-only", shell=True, cwd=scale["directory"], check=True, timeout=120)


def test_cuda_that_is_asked_for_and_missing_is_an_error(tmp_path: Path) -> None:
    code, output = configure_output(tmp_path / "build", "-DGRADSMITH_CUDA=ON", WITHOUT_TOOLKIT)
    assert code != 0
    assert "GRADSMITH_CUDA is ON, but" in output
    assert "-DGRADSMITH_CUDA=OFF" in output


def test_cuda_that_is_missing_is_left_out_by_itself(tmp_path: Path) -> None:
    code, output = configure_output(tmp_path / "build", "-DGRADSMITH_CUDA=AUTO", WITHOUT_TOOLKIT)
    assert code == 0, output
    assert "gradsmith: backends: cpu (no CUDA backend: " in output


@pytest.mark.parametrize("wanted", ["AUTO", "ON"])
@pytest.mark.parametrize("toolkit", [[], [WITHOUT_TOOLKIT]])
def test_a_root_without_cudnn_is_an_error(tmp_path: Path, wanted: str, toolkit: list[str]) -> None:
    options = [f"-DGRADSMITH_CUDA={wanted}", f"-DGRADSMITH_CUDNN_ROOT={tmp_path}", *toolkit]
    code, output = configure_output(tmp_path / "build", *options)
    assert code != 0
    assert f"GRADSMITH_CUDNN_ROOT is '{tmp_path}', but cuDNN's header cudnn_graph.h is not there" in output


def test_a_root_of_an_older_cudnn_is_an_error(tmp_path: Path) -> None:
    root = cudnn_of(tmp_path / "cudnn", 7, major=8)
    code, output = configure_output(tmp_path / "build", f"-DGRADSMITH_CUDNN_ROOT={root}", WITHOUT_TOOLKIT)
    assert code != 0
    assert f"GRADSMITH_CUDNN_ROOT is '{root}', but cuDNN in {root}/include is 8.7.0, and 9 is needed" in output


def test_no_root_counts_without_cuda(tmp_path: Path) -> None:
    code, output = configure_output(tmp_path / "build", "-DGRADSMITH_CUDA=OFF", f"-DGRADSMITH_CUDNN_ROOT={tmp_path}")
    assert code == 0, output


@pytest.mark.parametrize("value", ["maybe", "1x"])
def test_other_values_of_the_cuda_option_are_refused(tmp_path: Path, value: str) -> None:
    code, output = configure_output(tmp_path / "build", f"-DGRADSMITH_CUDA={value}")
    assert code != 0
    assert f"GRADSMITH_CUDA is '{value}'; it must be AUTO, ON or OFF." in output


@pytest.mark.parametrize("value", ["maybe", "1x"])
def test_other_values_of_the_onednn_option_are_refused(tmp_path: Path, value: str) -> None:
    code, output = configure_output(tmp_path / "build", f"-DGRADSMITH_ONEDNN={value}")
    assert code != 0
    assert f"GRADSMITH_ONEDNN is '{value}'; it must be AUTO, ON or OFF." in output


# With these no oneDNN is found.
WITHOUT_ONEDNN = (
    "-DGRADSMITH_USE_SNAPSHOT=ON",
    "-DCMAKE_DISABLE_FIND_PACKAGE_dnnl=ON",
    "-DCMAKE_SYSTEM_IGNORE_PATH=/usr/include;/usr/lib;/usr/lib/x86_64-linux-gnu;/usr/lib/aarch64-linux-gnu",
    "-DEigen3_DIR=/usr/share/eigen3/cmake",
)


def test_onednn_is_left_out_unless_it_is_asked_for(tmp_path: Path) -> None:
    code, output = configure_output(tmp_path / "build", "-DGRADSMITH_USE_SNAPSHOT=ON")
    assert code == 0, output
    assert "oneDNN" not in output


def test_onednn_that_is_asked_for_and_missing_is_an_error(tmp_path: Path) -> None:
    code, output = configure_output(tmp_path / "build", "-DGRADSMITH_ONEDNN=ON", *WITHOUT_ONEDNN)
    assert code != 0
    assert "GRADSMITH_ONEDNN is ON, but oneDNN was not found. Install oneDNN (Debian, Ubuntu: libdnnl-dev)" in output


def test_onednn_that_is_missing_is_left_out_by_itself(tmp_path: Path) -> None:
    code, output = configure_output(tmp_path / "build", "-DGRADSMITH_ONEDNN=AUTO", *WITHOUT_ONEDNN)
    assert code == 0, output
    assert "gradsmith: convolutions on the CPU: our own (oneDNN was not found)" in output


def onednn_of(root: Path, version: str, runtime: str) -> list[str]:
    """As much of a oneDNN without a CMake package as configuring looks at; the options that lead to it."""
    (root / "include/oneapi/dnnl").mkdir(parents=True)
    (root / "lib").mkdir()
    (root / "lib/libdnnl.so").touch()
    (root / "include/oneapi/dnnl/dnnl.hpp").touch()
    defined = f"#define DNNL_CPU_THREADING_RUNTIME DNNL_RUNTIME_{runtime}\n"
    (root / "include/oneapi/dnnl/dnnl_config.h").write_text(defined)
    parts = zip(("MAJOR", "MINOR", "PATCH"), version.split("."), strict=True)
    numbers = "".join(f"#define DNNL_VERSION_{name} {number}\n" for name, number in parts)
    (root / "include/oneapi/dnnl/dnnl_version.h").write_text(numbers)
    return ["-DGRADSMITH_USE_SNAPSHOT=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_dnnl=ON", f"-DCMAKE_PREFIX_PATH={root}"]


def test_onednn_is_found_without_its_cmake_package(tmp_path: Path) -> None:
    options = onednn_of(tmp_path / "prefix", "3.1.4", "SEQ")
    code, output = configure_output(tmp_path / "build", "-DGRADSMITH_ONEDNN=ON", *options)
    assert code == 0, output
    assert "gradsmith: convolutions on the CPU: our own, oneDNN 3.1.4" in output


@pytest.mark.parametrize(
    ("version", "runtime", "message"),
    [
        ("2.5.1", "OMP", "is 2.5.1, and 2.6 or later is needed"),
        ("3.1.4", "TBB", "has threads of TBB, and OpenMP's (or none) are needed"),
    ],
)
def test_onednn_that_does_not_fit_is_told(tmp_path: Path, version: str, runtime: str, message: str) -> None:
    options = onednn_of(tmp_path / "prefix", version, runtime)
    code, output = configure_output(tmp_path / "build", "-DGRADSMITH_ONEDNN=ON", *options)
    assert code != 0
    assert message in output


@pytest.mark.parametrize(
    ("architecture", "expected"),
    [
        ("hopper", "90, 90-real or 90-virtual"),
        ("native", "CMake's native, all and all-major are not taken"),
        ("all-major", "CMake's native, all and all-major are not taken"),
        ("70", "75 or more"),
        ("61-virtual", "75 or more"),
    ],
)
def test_architectures_are_checked(tmp_path: Path, architecture: str, expected: str) -> None:
    options = ["-DGRADSMITH_CUDA=AUTO", f"-DGRADSMITH_CUDA_ARCHITECTURES=90-real;{architecture}"]
    code, output = configure_output(tmp_path / "build", *options)
    if "no CUDA backend" in output:
        pytest.skip("there is no CUDA Toolkit, or no cuDNN")
    assert code != 0
    assert f"GRADSMITH_CUDA_ARCHITECTURES has '{architecture}'" in output
    assert expected in output


@pytest.mark.parametrize("is_fast", [False, True])
def test_kernels_are_compiled_fast_where_that_is_asked_for_and_else_compressed(tmp_path: Path, is_fast: bool) -> None:
    root = cudnn_of(tmp_path / "cudnn", 1)
    options = ["-DGRADSMITH_CUDA=AUTO", f"-DGRADSMITH_CUDNN_ROOT={root}"]
    options += ["-DGRADSMITH_USE_SNAPSHOT=ON", f"-DGRADSMITH_CUDA_FAST_COMPILE={is_fast}"]
    code, output = configure_output(tmp_path / "build", *options)
    assert code == 0, output
    if "no CUDA Toolkit" in output:
        pytest.skip("there is no CUDA Toolkit")
    (nvcc,) = re.findall(
        r"^CUDAToolkit_NVCC_EXECUTABLE:\w+=(.+)$", (tmp_path / "build/CMakeCache.txt").read_text(), re.M
    )
    compiled = [line for line in (tmp_path / "build/build.ninja").read_text().splitlines() if "--fatbin" in line]
    assert compiled
    options_of_nvcc = subprocess.run([nvcc, "--help"], check=True, text=True, capture_output=True).stdout
    # Machine code of formulas for 8.0 and for 9.0 comes of one PTX, which later devices are given; to be fast, none is
    # made.
    architectures = [set(re.findall(r"arch=compute_\w+,code=\w+", line)) for line in compiled if "/formulas_" in line]
    assert architectures
    has_code = not is_fast or "--Ofast-compile" not in options_of_nvcc
    of_75 = {"arch=compute_75,code=sm_75" if has_code else "arch=compute_75,code=compute_75"}
    of_80 = {f"arch=compute_80,code={code}" for code in (*(("sm_80", "sm_90") if has_code else ()), "compute_80")}
    assert all(known == of_75 | of_80 for known in architectures)
    for line in compiled:
        for option, is_wanted in {"--Ofast-compile=max": is_fast, "--compress-mode=size": not is_fast}.items():
            is_known = option.partition("=")[0] in options_of_nvcc
            assert (option in line) == (is_wanted and is_known), line


def cudnn_of(root: Path, minor: int, major: int = 9) -> Path:
    """As much of a cuDNN as configuring looks at."""
    (root / "include").mkdir(parents=True)
    (root / "lib").mkdir()
    (root / "lib/libcudnn.so.9").touch()
    (root / "include/cudnn_graph.h").touch()
    version = f"#define CUDNN_MAJOR {major}\n#define CUDNN_MINOR {minor}\n#define CUDNN_PATCHLEVEL 0\n"
    (root / "include/cudnn_version.h").write_text(version)
    return root


def test_another_root_of_cudnn_counts_when_configuring_again(tmp_path: Path) -> None:
    def configure(*options: str) -> str:
        code, output = configure_output(tmp_path / "build", "-DGRADSMITH_USE_SNAPSHOT=ON", *options)
        assert code == 0, output
        return output

    first, second = cudnn_of(tmp_path / "first", 1), cudnn_of(tmp_path / "second", 2)
    output = configure(f"-DGRADSMITH_CUDNN_ROOT={first}")
    if "no CUDA Toolkit" in output:
        pytest.skip("there is no CUDA Toolkit")
    assert f"cuDNN 9.1.0 in {first}/include" in output
    assert f"cuDNN 9.1.0 in {first}/include" in configure()
    assert f"cuDNN 9.2.0 in {second}/include" in configure(f"-DGRADSMITH_CUDNN_ROOT={second}")
    cache = (tmp_path / "build/CMakeCache.txt").read_text()
    assert f"GRADSMITH_CUDNN_LIBRARY:FILEPATH={second}/lib/libcudnn.so.9" in cache
    code, output = configure_output(tmp_path / "build", "-DGRADSMITH_CUDNN_ROOT=/nonexistent")
    assert code != 0
    assert "GRADSMITH_CUDNN_ROOT is '/nonexistent'" in output
    assert f"cuDNN 9.1.0 in {first}/include" in configure(f"-DGRADSMITH_CUDNN_ROOT={first}")
    assert str(first) not in configure("-DGRADSMITH_CUDNN_ROOT=")
