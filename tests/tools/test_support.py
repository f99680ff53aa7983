"""gradsmith-support: what the installed cuDNN offers, compared with what the committed table says."""

from __future__ import annotations

import dataclasses
import itertools
import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from build_tree import REPOSITORY

DEVICE = REPOSITORY / "tests/data/h200_deviceprop.json"
COMMITTED = REPOSITORY / "docs/support/cudnn_9.19_h200.tsv"
SHOWN = 10

SCHEMA = yaml.safe_load((REPOSITORY / "ops.yaml").read_text())

CONVOLUTIONS = ("forward", "backward-data", "backward-filter")
BATCH_NORM = ("batch-normalization-backward", "batch-normalization-relu-backward")
LAYOUTS = ("NCHW", "NHWC")
SOURCES = ("own", "packed graph", "graph")  # from the last resort to the best
COLUMNS = ["primitive", "type", "layout", "axes", "feature", "source", "engines", "compiled"]

Cell = tuple[str, ...]


def families_on_cudnn() -> set[str]:
    """Those that have more to choose from than kernels of our own."""
    folders = (REPOSITORY / "runtime").glob("*/cuda")
    return {
        folder.parent.name for folder in folders if any("cudnn" in file.read_text() for file in folder.glob("*.cc"))
    }


def rows_on_cuda(family: str) -> set[str]:
    """The type combinations that ops.yaml has for a family of kernels on CUDA, as the table writes them."""
    return {
        "/".join(types[parameter] for parameter in ("T", "T1", "T2") if parameter in types)
        for op in SCHEMA["ops"]
        if op.get("kernel", "").startswith(f"{family}::") and "cuda" in op["backends"]
        for types in op["rows"].values()
        if "cuda" in types.get("backends", op["backends"])
    }


@dataclass(frozen=True)
class Offer:
    """What serves a cell."""

    source: str
    engines: int  # whose code cuDNN brings
    compiled: int | None  # at run time; None where there is no driver

    def __str__(self) -> str:
        return f"{self.source} ({self.engines} engines and {self.compiled} compiled)"

    def without_driver(self) -> Offer:
        return Offer(self.source, self.engines, None)


@dataclass(frozen=True)
class Table:
    version: str
    cells: dict[Cell, Offer]

    @staticmethod
    def parse(text: str) -> Table:
        first, names, *rows = text.splitlines()
        assert names.split("\t") == COLUMNS
        cells = {}
        for row in rows:
            *cell, source, engines, compiled = row.split("\t")
            assert tuple(cell) not in cells
            cells[tuple(cell)] = Offer(source, int(engines), None if compiled == "-" else int(compiled))
        return Table(first.removeprefix("# cuDNN "), cells)

    def without_driver(self) -> Table:
        """The part that is the same with and without a driver: batch normalization's engines all need one."""
        cells = {cell: offer.without_driver() for cell, offer in self.cells.items() if cell[0] not in BATCH_NORM}
        return Table(self.version, cells)


def differences(committed: Table, found: Table) -> list[str]:
    """Of the same version everything counts; of another one only that a cell lost its source."""
    lines = []
    nothing = Offer("nothing", 0, 0)
    for cell in sorted(committed.cells.keys() | found.cells.keys()):
        before = committed.cells.get(cell, nothing)
        now = found.cells.get(cell, nothing)
        lost = cell in committed.cells and rank(now.source) < rank(before.source)
        if lost or (committed.version == found.version and before != now):
            lines.append(f"{', '.join(cell)}: {before} became {now}")
    return lines


def rank(source: str) -> int:
    return SOURCES.index(source) if source in SOURCES else -1


def stub_of_the_driver() -> Path | None:
    """The CUDA Toolkit's stand-in for the driver's library, of which cuDNN asks no more than that it is there."""
    nvcc = shutil.which("nvcc")
    roots = [os.environ.get("CUDA_HOME", ""), str(Path(nvcc).resolve().parents[1]) if nvcc else "", "/usr/local/cuda"]
    stubs = (Path(root) / "lib64/stubs/libcuda.so" for root in roots if root)
    return next((stub for stub in stubs if stub.exists()), None)


def run(program: Path, *arguments: str, libraries: Path | None = None) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [str(libraries or ""), os.environ.get("LD_LIBRARY_PATH", "")]))
    environment = {**os.environ, "LD_LIBRARY_PATH": path}
    return subprocess.run([str(program), *arguments], check=False, text=True, capture_output=True, env=environment)


def table_of(program: Path, libraries: Path | None = None) -> Table:
    result = run(program, str(DEVICE), libraries=libraries)
    if "libcudnn" in result.stderr:
        pytest.skip(result.stderr)
    assert (result.returncode, result.stderr) == (0, "")
    return Table.parse(result.stdout)


@pytest.fixture(scope="session")
def installed(gradsmith_support: Path) -> Table:
    """As the machine is, with a driver or without."""
    return table_of(gradsmith_support)


@pytest.fixture(scope="session")
def with_driver(gradsmith_support: Path, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """With the toolkit's stub, so that it is the same everywhere; failing that with the machine's driver."""
    stub = stub_of_the_driver()
    folder = tmp_path_factory.mktemp("driver")
    if stub:
        (folder / "libcuda.so.1").symlink_to(stub)
    table = table_of(gradsmith_support, folder)
    if any(offer.compiled is None for offer in table.cells.values()):
        pytest.skip("there is neither libcuda.so.1 nor the CUDA Toolkit's stub of it (lib64/stubs/libcuda.so)")
    return table


def cells_of(primitives: Iterable[str], types: Iterable[str], axes: str, features: Iterable[str]) -> set[Cell]:
    return set(itertools.product(primitives, types, LAYOUTS, axes, features))


def test_there_is_a_row_for_every_cell(installed: Table) -> None:
    cells = {cell for cell in installed.cells if cell[0] not in BATCH_NORM}
    features = {cell[4] for cell in cells}
    assert {"plain", "grouped", "depthwise", "accumulating", "unaligned"} <= features
    assert cells == cells_of(CONVOLUTIONS, rows_on_cuda("conv"), "123", features)
    assert {offer.source for offer in installed.cells.values()} <= set(SOURCES)


def test_there_is_a_row_for_every_cell_of_batch_normalization(with_driver: Table) -> None:
    cells = {cell for cell in with_driver.cells if cell[0] in BATCH_NORM}
    features = {"plain", "odd channels", "accumulating"}
    assert cells == cells_of(BATCH_NORM, rows_on_cuda("batch_norm"), "0123", features)


def test_the_committed_table_is_of_rows_of_the_schema() -> None:
    """A new row comes into it when the tool is next run on a GPU."""
    committed = Table.parse(COMMITTED.read_text()).cells
    assert all(offer.compiled is not None for offer in committed.values())
    for family, primitives in (("conv", CONVOLUTIONS), ("batch_norm", BATCH_NORM)):
        for primitive in primitives:
            recorded = {cell[1] for cell in committed if cell[0] == primitive}
            assert recorded
            assert recorded <= rows_on_cuda(family)
    assert families_on_cudnn() == {"conv", "batch_norm"}, "the table knows nothing of a family that runs on cuDNN"


def check(committed: Table, found: Table) -> None:
    """But for rows that are newer than the committed table."""
    types = {cell[1] for cell in committed.cells}
    of_old_rows = {cell: offer for cell, offer in found.cells.items() if cell[1] in types}
    lines = differences(committed, dataclasses.replace(found, cells=of_old_rows))
    if lines:
        more = [f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
        pytest.fail("\n".join([*lines[:SHOWN], *more]), pytrace=False)


def test_the_installed_cudnn_offers_what_the_table_says(installed: Table) -> None:
    check(Table.parse(COMMITTED.read_text()).without_driver(), installed.without_driver())


def test_with_a_driver_it_offers_what_the_table_says(with_driver: Table) -> None:
    check(Table.parse(COMMITTED.read_text()), with_driver)


def test_without_a_driver_the_rest_is_the_same(installed: Table, with_driver: Table) -> None:
    assert installed.without_driver() == with_driver.without_driver()


def test_what_counts_as_a_difference() -> None:
    cell: Cell = ("forward", "float", "NCHW", "1", "plain")
    table = Table("91900", {cell: Offer("graph", 9, 4)})
    new = {("forward", "float", "NCHW", "1", "new"): Offer("graph", 1, 0)}
    fewer = {cell: Offer("graph", 1, 4)}
    fewer_compiled = {cell: Offer("graph", 9, 3)}
    lost = {cell: Offer("packed graph", 9, 4)}
    assert differences(table, table) == []
    assert differences(table, Table("91900", fewer)) == [
        "forward, float, NCHW, 1, plain: graph (9 engines and 4 compiled) became graph (1 engines and 4 compiled)"
    ]
    assert differences(table, Table("91900", fewer_compiled)) != []
    assert differences(table.without_driver(), Table("91900", fewer_compiled).without_driver()) == []
    assert differences(table.without_driver(), Table("91900", fewer).without_driver()) != []
    assert differences(table, Table("91900", {})) != []
    assert differences(table, Table("92000", fewer)) == []
    assert differences(table, Table("92000", fewer | new)) == []
    assert len(differences(table, Table("92000", lost))) == 1
    assert differences(table, Table("92000", {})) != []
    assert differences(Table("92000", lost), Table("91900", table.cells)) == []


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--devices"], 2, "--devices: there is no such option (--help lists them)"),
        (["/nowhere/device.json"], 1, "cannot read /nowhere/device.json"),
        (["/"], 1, "cannot read /"),
    ],
)
def test_bad_arguments_are_named(gradsmith_support: Path, arguments: list[str], status: int, message: str) -> None:
    result = run(gradsmith_support, *arguments)
    assert (result.returncode, result.stdout) == (status, "")
    assert result.stderr == f"gradsmith-support: {message}\n"


def test_help(gradsmith_support: Path) -> None:
    assert run(gradsmith_support, "--help").returncode == 0
    assert run(gradsmith_support).returncode == 2
    assert "--describe-device" in run(gradsmith_support).stdout


def test_a_description_that_is_none_is_named(gradsmith_support: Path, tmp_path: Path, installed: Table) -> None:
    path = tmp_path / "device.json"
    path.write_text("{}")
    result = run(gradsmith_support, str(path))
    assert result.returncode == 1
    assert result.stderr.startswith(f"gradsmith-support: {path}: ")
