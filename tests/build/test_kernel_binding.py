"""What the compiler says where it does not see the kernel whose header the generator has read."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from build_tree import REPOSITORY, replace_once, run_generator


@pytest.mark.parametrize(
    ("kernel", "unknown"),
    [
        pytest.param("conv::ConvGrad", "conv::Nope", id="struct"),
        pytest.param("batch_norm::BatchNormalizationGrad", "nope::BatchNormalizationGrad", id="family"),
    ],
)
def test_an_unknown_kernel_is_named_with_its_line_and_header(tmp_path: Path, kernel: str, unknown: str) -> None:
    errors = errors_with_kernel(tmp_path, kernel, unknown)
    op = kernel.split("::")[1]
    family, name = unknown.split("::")
    sentence = f"there is no kernel {unknown}; expected struct {name} in {family}/kernels.h"
    entry = (REPOSITORY / "ops.yaml").read_text().partition(f"  - name: {op}\n")[2]
    line = entry[: entry.index(f"    kernel: {kernel}\n")].count("\n") + 2  # the first has the name
    assert f"ops.yaml: {op}, line {line} of the entry: {sentence}" in errors[0]


def test_a_kernel_that_is_there_compiles(tmp_path: Path) -> None:
    assert errors_with_kernel(tmp_path, "conv::ConvGrad", "conv::ConvGrad") == []


def header_with(kernel: str, folder: Path) -> None:
    """A family's header that has the kernel besides those of the runtime, for the generator alone."""
    family, name = kernel.split("::")
    header, known = folder / family / "kernels.h", REPOSITORY / "runtime" / family / "kernels.h"
    header.parent.mkdir(parents=True)
    text = known.read_text() if known.exists() else ""
    constants = 'static constexpr std::string_view kShapes = "any"; static constexpr std::string_view kTypes = "any";'
    uses = "using Attributes = A; using Inputs = I; using Outputs = O; Status RunCpu(); Status RunCuda();"
    members = f"{constants} {uses}"
    added = f"namespace gradsmith::{family} {{ struct {name} {{ {members} }}; }}\n"
    header.write_text(text if f"struct {name} {{" in text else f"{text}{added}")


def errors_with_kernel(folder: Path, kernel: str, other: str) -> list[str]:
    """The errors of the shard that binds the op that has `kernel` to another."""
    schema = folder / "ops.yaml"
    schema.write_text((REPOSITORY / "ops.yaml").read_text())
    replace_once(schema, f"kernel: {kernel}\n", f"kernel: {other}\n")
    out = folder / "generated"
    kernels = folder / "kernels"
    header_with(other, kernels)
    run_generator("generate", "--schema", str(schema), "--out", str(out), "--kernels", str(kernels))
    return compile_errors(out, other)


def compile_errors(out: Path, kernel: str) -> list[str]:
    """The errors of the shard that binds the kernel."""
    shards = [path for path in out.glob("src/*.cc") if f"using Kernel = ::gradsmith::{kernel};" in path.read_text()]
    assert len(shards) == 1
    include = [f"-I{path}" for path in (REPOSITORY / "runtime", REPOSITORY / "runtime/include", out / "include")]
    command = ["c++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", *include, str(shards[0])]
    result = subprocess.run(command, check=False, text=True, capture_output=True)
    assert (result.returncode == 0) == (result.stderr == ""), result.stderr
    return [line for line in result.stderr.splitlines() if "error: " in line]


LENIENT_LIMITS = {"kLimits": "group min 1"}  # of no shape's symbol
LENIENT = {"kShapes": {"kShapes": "any", **LENIENT_LIMITS}, "kTypes": {"kTypes": "any"}, "kLimits": LENIENT_LIMITS}


@pytest.mark.parametrize("constant", LENIENT)
def test_what_was_compared_with_another_header_does_not_compile(tmp_path: Path, constant: str) -> None:
    """The generator has seen a kernel that takes more than the one that the compiler sees."""
    header = tmp_path / "kernels/conv/kernels.h"
    header.parent.mkdir(parents=True)
    text = (REPOSITORY / "runtime/conv/kernels.h").read_text()
    for name, lenient in LENIENT[constant].items():
        text = with_constant(text, "ConvGrad", name, lenient)
    header.write_text(text)
    schema, out = tmp_path / "ops.yaml", tmp_path / "generated"
    schema.write_text((REPOSITORY / "ops.yaml").read_text())
    run_generator("generate", "--schema", str(schema), "--out", str(out), "--kernels", str(tmp_path / "kernels"))
    errors = compile_errors(out, "conv::ConvGrad")
    assert len(errors) == len(LENIENT[constant])
    for name, error in zip(LENIENT[constant], errors, strict=True):
        assert f"{name} of kernel conv::ConvGrad is not what the entry was compared with" in error


def with_constant(header: str, kernel: str, name: str, text: str) -> str:
    """The header with another text of a kernel's constant."""
    value = header.index(f"{name} =", header.index(f"struct {kernel} {{"))
    return f'{header[:value]}{name} = "{text}"{header[header.index(";", value) :]}'
