"""gradsmith-support: what the installed cuDNN offers, compared with what the committed table says."""

from __future__ import annotations

import itertools
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from build_tree import REPOSITORY

DEVICE = REPOSITORY / "tests/data/h200_deviceprop.json"
COMMITTED = REPOSITORY / "docs/support/cudnn_9.19_h200.tsv"
SHOWN = 10

# Its engines are compiled at run time, and listed only where there is a driver.
BATCH_NORM = "batch-normalization-backward"

PRIMITIVES = ("forward", "backward-data", "backward-filter")
TYPES = ("float", "double", "MLFloat16", "BFloat16")
LAYOUTS = ("NCHW", "NHWC")
AXES = ("1", "2", "3")
SOURCES = ("own", "packed graph", "graph")  # from the last resort to the best

Cell = tuple[str, ...]


@dataclass(frozen=True)
class Table:
    version: str
    cells: dict[Cell, tuple[str, int]]  # source, engines

    @staticmethod
    def parse(text: str) -> Table:
        first, names, *rows = text.splitlines()
        assert names.split("\t") == ["primitive", "type", "layout", "axes", "feature", "source", "engines"]
        cells = {}
        for row in rows:
            *cell, source, engines = row.split("\t")
            if cell[0] == BATCH_NORM:
                continue
            assert tuple(cell) not in cells
            cells[tuple(cell)] = (source, int(engines))
        return Table(first.removeprefix("# cuDNN "), cells)


def differences(committed: Table, found: Table) -> list[str]:
    """Of the same version everything counts; of another one only that a cell lost its source."""
    lines = []
    for cell in sorted(committed.cells.keys() | found.cells.keys()):
        before = committed.cells.get(cell, ("nothing", 0))
        now = found.cells.get(cell, ("nothing", 0))
        lost = cell in committed.cells and rank(now[0]) < rank(before[0])
        if lost or (committed.version == found.version and before != now):
            lines.append(f"{', '.join(cell)}: {before[0]} ({before[1]} engines) became {now[0]} ({now[1]})")
    return lines


def rank(source: str) -> int:
    return SOURCES.index(source) if source in SOURCES else -1


def run(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(program), *arguments], check=False, text=True, capture_output=True)


@pytest.fixture(scope="session")
def installed(gradsmith_support: Path) -> Table:
    result = run(gradsmith_support, str(DEVICE))
    if "libcudnn" in result.stderr:
        pytest.skip(result.stderr)
    assert (result.returncode, result.stderr) == (0, "")
    return Table.parse(result.stdout)


def test_there_is_a_row_for_every_cell(installed: Table) -> None:
    features = {cell[4] for cell in installed.cells}
    assert {"plain", "grouped", "depthwise", "accumulating", "unaligned"} <= features
    assert installed.cells.keys() == set(itertools.product(PRIMITIVES, TYPES, LAYOUTS, AXES, features))
    assert {source for source, _ in installed.cells.values()} <= set(SOURCES)


def test_the_installed_cudnn_offers_what_the_table_says(installed: Table) -> None:
    found = differences(Table.parse(COMMITTED.read_text()), installed)
    if found:
        more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
        pytest.fail("\n".join([*found[:SHOWN], *more]), pytrace=False)


def test_what_counts_as_a_difference() -> None:
    cell: Cell = ("forward", "float", "NCHW", "1", "plain")
    table = Table("91900", {cell: ("graph", 9)})
    new: Cell = ("forward", "float", "NCHW", "1", "new")
    fewer = {cell: ("graph", 1)}
    lost = {cell: ("packed graph", 9)}
    assert differences(table, table) == []
    assert differences(table, Table("91900", fewer)) == [
        "forward, float, NCHW, 1, plain: graph (9 engines) became graph (1)"
    ]
    assert differences(table, Table("91900", {})) != []
    assert differences(table, Table("92000", fewer)) == []
    assert differences(table, Table("92000", fewer | {new: ("graph", 1)})) == []
    assert differences(table, Table("92000", lost)) == [
        "forward, float, NCHW, 1, plain: graph (9 engines) became packed graph (9)"
    ]
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
