"""The page that says which source serves each cell of the support matrix."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest
import yaml
from build_tree import REPOSITORY

PROGRAM = REPOSITORY / "tools/support_page.py"
PAGE = REPOSITORY / "docs/support/README.md"
TABLE = REPOSITORY / "docs/support/cudnn_9.19_h200.tsv"


def test_the_page_is_what_the_table_says() -> None:
    result = subprocess.run([sys.executable, str(PROGRAM), "--check"], check=False, text=True, capture_output=True)
    assert (result.returncode, result.stderr) == (0, "")


def ops_on_a_gpu() -> list[dict[str, Any]]:
    ops: list[dict[str, Any]] = yaml.safe_load((REPOSITORY / "ops.yaml").read_text())["ops"]
    return [op for op in ops if "cuda" in op["backends"]]


def recorded_rows(op: dict[str, Any]) -> list[str]:
    """The op's rows of whose types the table has answers: a row that is new has none before it was run on a GPU."""
    lines = TABLE.read_text().splitlines()
    types = {word for line in lines if not line.startswith("#") for word in line.split("\t")}
    parameters = ("T", "T1", "T2")
    return [
        row
        for row, elements in op["rows"].items()
        if "/".join(elements[parameter] for parameter in parameters if parameter in elements) in types
    ]


def test_every_convolution_row_and_output_has_its_line() -> None:
    wanted = {
        (op["name"], row, output)
        for op in ops_on_a_gpu()
        if op["name"].startswith("Conv")
        for row in recorded_rows(op)
        for output in op["outputs"]
    }
    assert wanted
    lines = re.findall(r"^\| (Conv\w*) \| `(\w+)` \| (\w+) \|(.*)", PAGE.read_text(), re.MULTILINE)
    assert {line[:3] for line in lines} == wanted
    assert all(cell.strip() for *_, cells in lines for cell in cells.strip("|").split("|"))


@pytest.mark.parametrize("name", ["BatchNormalizationGrad", "BatchNormalizationReluGrad"])
def test_every_row_of_batch_normalization_has_its_line(name: str) -> None:
    (op,) = (op for op in ops_on_a_gpu() if op["name"] == name)
    lines = re.findall(rf"^\| {name} \| `(\w+)` \|(.*)", PAGE.read_text(), re.MULTILINE)
    assert [row for row, _ in lines] == recorded_rows(op)
    assert len(lines) >= 8
    assert all(cell.strip() for _, cells in lines for cell in cells.strip("|").split("|"))


def test_strict_float_has_its_graph_engines_on_the_page() -> None:
    """They need channels last; NCHW has none."""
    (line,) = re.findall(r"^\| BatchNormalizationGrad \| `float` \|(.*)\|$", PAGE.read_text(), re.MULTILINE)
    cells = [cell.strip() for cell in line.split("|")]
    assert cells[1:4] == ["own", "own", "own"]
    assert all(cell.startswith("own; graph: plain, accumulating (") for cell in (cells[0], *cells[4:]))
