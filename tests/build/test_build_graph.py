"""What an edit makes the build do, with Ninja and with Make."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from build_tree import SCRATCH, BuildTree


@pytest.fixture(scope="module", params=["Ninja", "Unix Makefiles"])
def prepared(request: pytest.FixtureRequest) -> BuildTree:
    generator: str = request.param
    return BuildTree(SCRATCH / "build-graph" / generator.replace(" ", "-"), generator)


@pytest.fixture
def tree(prepared: BuildTree) -> Iterator[BuildTree]:
    """A build that is up to date; the next test finds it so whatever this one does to it."""
    prepared.restore()
    yield prepared


def test_second_build_runs_nothing(tree: BuildTree) -> None:
    archive = (tree.folder / "libgradsmith.a").stat()
    log = tree.build()
    assert log.succeeded
    assert log.compiled == []
    assert log.generator_runs == 0
    assert (tree.folder / "libgradsmith.a").stat().st_mtime_ns == archive.st_mtime_ns
    assert "Re-running CMake" not in log.output


def test_touching_the_schema_compiles_nothing(tree: BuildTree) -> None:
    (tree.source / "ops.yaml").touch()
    log = tree.build()
    assert log.compiled == []
    assert log.generator_runs == 1
    assert tree.build().generator_runs == 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param('"backward-filter(X, dY)"', '"backward-filter(X, dY), of the shape of W"', id="doc"),
        pytest.param("dX: {type: T, like: X, optional: true", "dX: {type: T, like: X, optional: false", id="signature"),
    ],
)
def test_changed_op_compiles_its_shard_and_the_table(tree: BuildTree, old: str, new: str) -> None:
    text = (tree.source / "ops.yaml").read_text()
    entry = text.index("- name: ConvGrad\n")
    place = text.index(old, entry)
    assert place < text.index("- name: ", entry + 1)
    (tree.source / "ops.yaml").write_text(text[:place] + new + text[place + len(old) :])
    log = tree.build()
    assert log.succeeded, log.output
    assert log.compiled == ["dispatch_table.cc", tree.shard_of("ConvGrad")]
    assert log.generator_runs == 1
    assert tree.build().compiled == []


@pytest.fixture(scope="module")
def with_cuda() -> BuildTree:
    nvcc = shutil.which("nvcc", path=os.pathsep.join([os.environ["PATH"], "/usr/local/cuda/bin"]))
    if nvcc is None:
        pytest.skip("there is no nvcc, so that no build has images of kernels")
    tree = BuildTree(SCRATCH / "build-graph/CUDA", "Ninja")
    tree.note_nvcc(Path(nvcc))
    return tree


def test_changed_formula_compiles_its_shard_on_each_backend(with_cuda: BuildTree) -> None:
    """The source of its rows, that of its kernels, and what embeds these; of its tests, that of the shard."""
    tree = with_cuda
    tree.restore()
    shard = tree.shard_of("LeakyReluGrad")
    number = shard.removeprefix("ops_shard_").removesuffix(".cc")
    before = {path: path.read_bytes() for path in tree.generated.rglob("*") if path.suffix in (".cc", ".cu", ".h")}
    tree.edit("ops.yaml", "dX: where(X > 0, dY, alpha * dY)", "dX: where(X > 0, dY, 2 * alpha * dY)")
    log = tree.build()
    assert log.succeeded, log.output
    assert log.compiled == [f"formulas_{number}.cu", "kernel_images.cc", shard]
    changed = {path.name for path, was in before.items() if path.read_bytes() != was}
    assert changed == {f"formulas_{number}.h", f"generated_tests_{number}.cc"}
    assert tree.build().compiled == []


def test_comment_that_moves_no_line_compiles_nothing(tree: BuildTree) -> None:
    tree.edit("ops.yaml", "  - name: ConvGrad\n", "  - name: ConvGrad  # a comment\n")
    log = tree.build()
    assert log.compiled == []
    assert log.generator_runs == 1


def test_comment_that_moves_lines_compiles_the_table(tree: BuildTree) -> None:
    """Where an entry stands is known to the table only."""
    tree.edit("ops.yaml", "  - name: Conv\n", "  # a comment\n  - name: Conv\n")
    assert tree.build().compiled == ["dispatch_table.cc"]


def test_removed_op_leaves_nothing_behind(tree: BuildTree) -> None:
    text = (tree.source / "ops.yaml").read_text()
    shard = tree.shard_of("BatchNormalizationGrad")
    entry = text.index("  - name: BatchNormalizationGrad\n")
    following = text.find("\n  - name: ", entry)
    (tree.source / "ops.yaml").write_text(text[:entry] + (text[following + 1 :] if following >= 0 else ""))
    log = tree.build()
    assert log.succeeded, log.output
    assert log.compiled == ["dispatch_table.cc", shard]
    # Operands of kernels are made of their headers, which stay.
    files = [path for path in tree.generated.rglob("*") if path.is_file() and path.name != "operands.h"]
    assert [path for path in files if "BatchNormalizationGrad" in path.read_text()] == []
    assert not (tree.generated / "include/gradsmith/ops/batch_normalization_grad.h").exists()
    assert tree.build().generator_runs == 0


def test_changed_template_regenerates(tree: BuildTree) -> None:
    with (tree.source / "templates/op_page.md.jinja").open("a") as template:
        template.write("A new last line.\n")
    log = tree.build()
    assert log.generator_runs >= 1
    assert log.compiled == []
    page = next((tree.generated / "docs").glob("Conv.md"))
    assert page.read_text().endswith("A new last line.\n")


def test_changed_generator_module_regenerates(tree: BuildTree) -> None:
    (tree.source / "codegen/gradsmith_codegen/render.py").touch()
    log = tree.build()
    assert log.generator_runs >= 1
    assert log.compiled == []


def test_changed_kernel_header_checks_the_schema_anew(tree: BuildTree) -> None:
    header = "runtime/batch_norm/kernels.h"
    tree.edit(header, "  double momentum = 0.9;\n", "  double inertia = 0.9;\n")
    tree.edit(header, "momentum min 0 max 1", "inertia min 0 max 1")
    log = tree.build()
    assert not log.succeeded
    assert "error[G408]: kernel batch_norm::BatchNormalization has no attribute 'momentum'" in log.output
    assert log.compiled == []


def test_generator_modules_come_and_go(tree: BuildTree) -> None:
    module = tree.source / "codegen/gradsmith_codegen/another.py"
    module.write_text('"""Nothing imports this."""\n')
    assert tree.build().generator_runs >= 1
    module.unlink()
    log = tree.build()
    assert log.succeeded, log.output
    assert log.compiled == []
    assert tree.build().generator_runs == 0


def test_deleted_folder_heals(tree: BuildTree) -> None:
    before = {p: p.read_text() for p in tree.generated.rglob("*.cc")}
    shutil.rmtree(tree.generated)
    log = tree.build()
    assert log.succeeded, log.output
    assert {p: p.read_text() for p in tree.generated.rglob("*.cc")} == before
    again = tree.build()
    assert (again.compiled, again.generator_runs) == ([], 0)


def test_broken_schema_stops_the_build_until_it_is_mended(tree: BuildTree) -> None:
    tree.edit("ops.yaml", "  - name: ConvGrad\n", "  - nmae: ConvGrad\n")
    log = tree.build()
    assert not log.succeeded
    assert log.compiled == []
    line = (tree.source / "ops.yaml").read_text().splitlines().index("  - nmae: ConvGrad") + 1
    assert f"ops.yaml:{line}:5: error[" in log.output
    tree.edit("ops.yaml", "  - nmae: ConvGrad\n", "  - name: ConvGrad\n")
    mended = tree.build()
    assert mended.succeeded
    assert mended.compiled == []
