"""The page that says which source serves each cell of the support matrix."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import yaml
from build_tree import REPOSITORY

PROGRAM = REPOSITORY / "tools/support_page.py"
PAGE = REPOSITORY / "docs/support/README.md"


def test_the_page_is_what_the_table_says() -> None:
    result = subprocess.run([sys.executable, str(PROGRAM), "--check"], check=False, text=True, capture_output=True)
    assert (result.returncode, result.stderr) == (0, "")


def test_every_convolution_row_and_output_has_its_line() -> None:
    schema = yaml.safe_load((REPOSITORY / "ops.yaml").read_text())
    wanted = {
        (op["name"], row, output)
        for op in schema["ops"]
        if op["name"].startswith("Conv")
        for row in op["rows"]
        for output in op["outputs"]
    }
    lines = re.findall(r"^\| (Conv\w*) \| `(\w+)` \| (\w+) \|(.*)", PAGE.read_text(), re.MULTILINE)
    assert {line[:3] for line in lines} == wanted
    assert all(cell.strip() for *_, cells in lines for cell in cells.strip("|").split("|"))


@pytest.mark.parametrize("name", ["BatchNormalizationGrad", "BatchNormalizationReluGrad"])
def test_every_row_of_batch_normalization_has_its_line(name: str) -> None:
    schema = yaml.safe_load((REPOSITORY / "ops.yaml").read_text())
    (op,) = (op for op in schema["ops"] if op["name"] == name)
    lines = re.findall(rf"^\| {name} \| `(\w+)` \|(.*)", PAGE.read_text(), re.MULTILINE)
    assert [row for row, _ in lines] == list(op["rows"])
    assert all(cell.strip() for _, cells in lines for cell in cells.strip("|").split("|"))


def test_strict_float_has_its_graph_engines_on_the_page() -> None:
    """They need channels last; NCHW has none."""
    (line,) = re.findall(r"^\| BatchNormalizationGrad \| `float` \|(.*)\|$", PAGE.read_text(), re.MULTILINE)
    cells = [cell.strip() for cell in line.split("|")]
    assert cells[1:4] == ["own", "own", "own"]
    assert all(cell.startswith("own; graph: plain, accumulating (") for cell in (cells[0], *cells[4:]))
