"""What README.md and the pages for users show is what happens: every fenced block is compiled, run or replayed here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from build_tree import REPOSITORY

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
PAGES = {
    name: (REPOSITORY / name).read_text(encoding="utf-8")
    for name in ("README.md", "docs/install.md", "docs/cpp.md", "docs/adding-operators.md")
}
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", "\n".join(PAGES.values()), re.MULTILINE | re.DOTALL)
QUICK_START = "A 3x3 image"
SCHEMA = (REPOSITORY / "ops.yaml").read_text(encoding="utf-8")


def block(language: str, holding: str) -> str:
    """The one block of the language that holds the text."""
    found: list[str] = [text for name, text in BLOCKS if name == language and holding in text]
    assert len(found) == 1, f"{len(found)} {language} blocks of the pages hold {holding!r}"
    return found[0]


def run_program(folder: Path, prefix: Path, source: str) -> str:
    """Compiles main.cc with the command that docs/install.md gives, and returns what the program prints."""
    (folder / "main.cc").write_text(source, encoding="utf-8")
    command = block("sh", "pkg-config").strip()
    pkgconfig = next(prefix.glob("lib*/**/pkgconfig"))
    environment = {**os.environ, "PKG_CONFIG_PATH": str(pkgconfig)}
    subprocess.run(["sh", "-euc", command], check=True, cwd=folder, env=environment)
    result = subprocess.run([str(folder / "a.out")], check=True, cwd=folder, text=True, capture_output=True)
    return result.stdout


def check_schema(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "ops.yaml").write_text(text, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "codegen"), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "gradsmith_codegen", "check", "--schema", "ops.yaml"]
    return subprocess.run(command, check=False, cwd=folder, env=environment, text=True, capture_output=True)


def test_every_block_is_tested_here() -> None:
    tested = {
        # The last: tests/package/test_recording.py.
        "cpp": [QUICK_START, "registry.Explain", "CheckDevice", "int step = 0"],
        "text": ["dW:", "error[G014]"],
        "yaml": ["CubeGrad", "DepthwiseConvGrad"],  # tests/build/test_extension.py as well
        # The last two: tests/build/test_extension.py, tests/package/test_wheel.py.
        "sh": ["./run demo", "cmake --install", "pkg-config", "build/rows", "pip install ."],
        "cmake": ["find_package"],
        "python": ["gradsmith.conv_grad"],  # tests/python/test_docs.py
    }
    assert len(BLOCKS) == sum(map(len, tested.values()))
    for language, holdings in tested.items():
        for holding in holdings:
            block(language, holding)


def test_quick_start_is_the_example_and_prints_what_is_shown(tmp_path: Path, prefix: Path) -> None:
    quick_start = block("cpp", QUICK_START)
    assert quick_start == (REPOSITORY / "examples/quick_start/quick_start.cc").read_text(encoding="utf-8")
    assert run_program(tmp_path, prefix, quick_start) == block("text", "dW:")


def test_dynamic_door_compiles_and_runs(tmp_path: Path, prefix: Path) -> None:
    program = f"""
        #include <gradsmith/gradsmith.h>
        #include <iostream>
        #include <vector>
        using gradsmith::ConstTensorRef, gradsmith::DataType;
        int main() {{
          const gradsmith::Context context;
          std::vector<float> memory(100, 1.0F);
          const ConstTensorRef dy(DataType::kFloat, memory.data(), {{1, 1, 1, 1}});
          const ConstTensorRef x(DataType::kFloat, memory.data(), {{1, 1, 3, 3}});
          const ConstTensorRef w(DataType::kFloat, memory.data(), {{1, 1, 2, 2}});
          const gradsmith::TensorRef dx(DataType::kFloat, &memory[10], {{1, 1, 3, 3}});
          const gradsmith::TensorRef dw(DataType::kFloat, &memory[20], {{1, 1, 2, 2}});
          const gradsmith::TensorRef db(DataType::kFloat, &memory[30], {{1}});
          {block("cpp", "registry.Explain")}
          return status.ok() && memory[10] == 1 && memory[12] == 0 ? 0 : 1;
        }}"""
    explanation = run_program(tmp_path, prefix, program)
    assert explanation.startswith("No row is BatchNormalizationGrad")
    assert "nearest: BatchNormalizationGrad[half" in explanation


def test_gpu_lines_compile_and_run_or_say_what_is_missing(tmp_path: Path, prefix: Path) -> None:
    program = f"""
        #include <gradsmith/gradsmith.h>
        #include <iostream>
        using gradsmith::Backend;
        int main() {{
          void* stream = nullptr;
          gradsmith::Status status;
          const gradsmith::Device device = {{Backend::kCuda, 0}};
          auto memory = gradsmith::DeviceBuffer::Allocate(device, 400);
          if (!memory.ok()) {{
            memory = gradsmith::DeviceBuffer::Allocate({{}}, 400);
          }}
          float* values = static_cast<float*>(memory->data());
          const gradsmith::TensorView<const float> dy(values, {{1, 1, 1, 1}}, device);
          const gradsmith::TensorView<const float> x(values, {{1, 1, 3, 3}}, device);
          const gradsmith::TensorView<const float> w(values, {{1, 1, 3, 3}}, device);
          const gradsmith::TensorView<float> dx(values + 20, {{1, 1, 3, 3}}, device);
          const gradsmith::TensorView<float> dw(values + 40, {{1, 1, 3, 3}}, device);
          {block("cpp", "CheckDevice")}
          std::cout << (status.ok() ? "ok" : status.message());
          return status.ok() ? 0 : 1;
        }}"""
    output = run_program(tmp_path, prefix, program)
    assert output == "ok" or output.startswith("no GPU: ")


def test_cmake_lines_build_a_program(tmp_path: Path, prefix: Path) -> None:
    (tmp_path / "main.cc").write_text(block("cpp", QUICK_START), encoding="utf-8")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(my_program LANGUAGES CXX)\nadd_executable(my_program main.cc)\n"
        + block("cmake", "find_package"),
        encoding="utf-8",
    )
    build = tmp_path / "build"
    for command in (["-S", ".", "-B", str(build), f"-DCMAKE_PREFIX_PATH={prefix}"], ["--build", str(build)]):
        subprocess.run(["cmake", *command], check=True, cwd=tmp_path, stdout=subprocess.DEVNULL)
    subprocess.run([str(build / "my_program")], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("name", ["CubeGrad", "DepthwiseConvGrad"])
def test_entry_is_a_valid_one(tmp_path: Path, name: str) -> None:
    entry = block("yaml", name)
    result = check_schema(tmp_path, SCHEMA if entry in SCHEMA else f"{SCHEMA}\n{entry}")  # as who followed it has it
    assert (result.returncode, result.stderr) == (0, "")


def test_diagnostic_is_the_one_shown(tmp_path: Path) -> None:
    result = check_schema(tmp_path, SCHEMA.replace("half: {T: MLFloat16}", "half: {T: hlaf}", 1))
    assert result.returncode == 1
    assert result.stderr == block("text", "error[G014]")


@pytest.mark.parametrize("verb", ["demo", "test", "help", "regenerate"])
def test_verbs_that_are_named_exist(verb: str) -> None:
    assert f"./run {verb}" in README
    described = subprocess.run([str(REPOSITORY / "run"), "help"], check=True, text=True, capture_output=True)
    assert f"./run {verb} " in described.stdout


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_and_headings(page: str) -> None:
    for target, heading in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)", PAGES[page]):
        file = (REPOSITORY / page).parent / target if target else REPOSITORY / page
        assert file.exists(), target
        if heading:
            titles = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            assert heading in [re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles], heading
