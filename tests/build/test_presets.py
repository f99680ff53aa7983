"""Every preset of CMakePresets.json configures, with the flags that it is for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from build_tree import REPOSITORY

PRESETS = json.loads((REPOSITORY / "CMakePresets.json").read_text())
NAMES = [preset["name"] for preset in PRESETS["configurePresets"] if not preset.get("hidden")]
FLAGS = {"default": "", "debug": "", "asan": "-fsanitize=address,undefined", "tsan": "-fsanitize=thread"}


@pytest.mark.parametrize("name", NAMES)
def test_preset_configures(tmp_path: Path, name: str) -> None:
    command = ["cmake", "--preset", name, "-B", str(tmp_path), f"-DPython3_EXECUTABLE={sys.executable}"]
    result = subprocess.run(
        command, cwd=REPOSITORY, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert result.returncode == 0, result.stdout
    # What is compiled of other projects, such as nanobind's library, is held to their own warnings, and kernels that
    # run on the CPU in tests to nvcc's.
    everything = json.loads((tmp_path / "compile_commands.json").read_text())
    others = ("/nanobind/", str(tmp_path / "tests/emulated_gpu/"))
    commands = [command for command in everything if not any(other in command["file"] for other in others)]
    assert any(command["file"].endswith("generated_tests_main.cc") for command in commands)
    assert all(FLAGS[name] in command["command"] and "-Werror" in command["command"] for command in commands)


@pytest.mark.parametrize("kind", ["buildPresets", "testPresets"])
def test_each_preset_can_be_built_and_tested(kind: str) -> None:
    others = [preset for preset in PRESETS[kind] if not preset.get("hidden")]
    assert [preset["configurePreset"] for preset in others] == NAMES
