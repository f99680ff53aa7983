"""Operators that are built into another library than the runtime's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from gradsmith_codegen import cli
from gradsmith_codegen.kernel_headers import RUNTIME, KernelHeaders
from gradsmith_codegen.library import Library
from gradsmith_codegen.verbs import OK

HEADER = """
namespace mylib::scale {
struct Attributes {};
gradsmith::Result<gradsmith::Dims> Whole(const Attributes& attributes, const gradsmith::Dims& D);
struct Scale {
  static constexpr std::string_view kShapes = "X [*D], Y [*D]";
  static constexpr std::string_view kTypes = "X T, Y T";
  using Attributes = mylib::scale::Attributes;
  struct Inputs { gradsmith::RequiredInput X = nullptr; };
  struct Outputs { gradsmith::RequiredOutput Y = nullptr; };
  static gradsmith::Status RunCpu();
};
struct Twice : Scale {
  static constexpr std::string_view kShapes = mylib::scale::Scale::kShapes;
};
}
"""

SCHEMA = """
schema_version: 1
domain: com.example
since_version: 1
ops:
  - name: Scale
    doc: X as it is.
    kernel: scale::Scale
    backends: [cpu]
    inputs: {X: {type: T, shape: ["*D"], doc: what is copied}}
    outputs: {Y: {type: T, like: X, doc: the copy}}
    dims: {D: {length: [0, 8], doc: any dims}}
    rows: {half: {T: half}}
    cases: [{name: one, X: [3]}]
  - name: Pool
    doc: Averages.
    formulas: {Y: X * X}
    backends: [cpu, cuda]
    inputs: {X: {type: T, shape: ["*D"], doc: what is squared}}
    outputs: {Y: {type: T, like: X, doc: the square}}
    dims: {D: {length: [0, 8], doc: any dims}}
    rows: {half: {T: half}}
    cases: [{name: one, X: [3]}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scale").mkdir()
    (tmp_path / "scale/kernels.h").write_text(HEADER)
    (tmp_path / "ops.yaml").write_text(SCHEMA)
    return tmp_path


def generate(folder: Path, *options: str) -> int:
    schema, out = str(folder / "ops.yaml"), str(folder / "out")
    arguments = ["generate", schema, "--out", out, "--shards", "1", "--kernels", str(folder), *options]
    return cli.main(arguments)


def test_all_is_in_the_librarys_namespace(folder: Path) -> None:
    assert generate(folder, "--library", "mylib") == OK
    stubs = (folder / "out/src/ops_shard_0.cc").read_text()
    assert "namespace mylib::scale {\nstruct Scale;" in stubs
    assert "using Kernel = ::mylib::scale::Scale;" in stubs
    assert "&cuda::kImage_mylib_formulas_0" in stubs
    assert 'HashOfText("mylib::Pool")' in stubs
    header = (folder / "out/include/mylib/ops/scale.h").read_text()
    assert "::gradsmith::Status Scale<::gradsmith::MLFloat16>(" in header
    assert "using namespace" not in header
    assert "mylib::generated::PoolFormula" in (folder / "out/src/formulas_0.cu").read_text()
    function = (folder / "out/python/mylib/_ops/scale_op.py").read_text()
    assert "context : mylib.Context" in function
    assert "import gradsmith" not in function


def test_what_is_not_wanted_is_not_written(folder: Path) -> None:
    kinds = ("docs", "python", "tests")
    assert generate(folder, "--library", "mylib", *[f"--without={kind}" for kind in kinds]) == OK
    assert not [kind for kind in kinds if (folder / "out" / kind).exists()]


@pytest.mark.parametrize("name", ["My", "my-lib", "my__lib", "class", "std", ""])
def test_names_that_are_no_namespace_are_refused(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        generate(folder, "--library", name)
    assert "argument --library" in capsys.readouterr().err


def test_a_header_may_qualify_what_is_the_librarys_or_the_runtimes(folder: Path) -> None:
    headers = KernelHeaders([folder, RUNTIME], "mylib")
    kernel = headers.kernel("scale::Scale")
    assert kernel
    assert not kernel.faults
    twice = headers.kernel("scale::Twice")
    assert twice
    assert dict(twice.says)["kShapes"] == "X [*D], Y [*D]"
    assert "scale::Whole" in headers.rule_names()
    assert headers.own_families == {"scale"}


def test_kernels_of_the_runtimes_families_stay_in_its_namespace() -> None:
    library = Library("mylib", frozenset({"scale"}))
    assert library.namespace_of("scale::Scale") == "mylib::scale"
    assert library.namespace_of("conv::ConvGrad") == "gradsmith::conv"


def test_a_kernel_may_have_one_function_for_all_backends(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = folder / "ops.yaml"
    schema.write_text(SCHEMA.replace("backends: [cpu]", "backends: [cpu, cuda]"))
    assert generate(folder, "--library", "mylib") != OK
    assert "kernel scale::Scale does not run on cuda: it has neither RunCuda nor Run" in capsys.readouterr().err
    (folder / "scale/kernels.h").write_text(HEADER.replace("RunCpu()", "Run()"))
    assert generate(folder, "--library", "mylib") == OK
    stubs = (folder / "out/src/ops_shard_0.cc").read_text()
    assert stubs.count("return Kernel::Run(context, ") == 2
