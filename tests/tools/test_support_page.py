"""The page that says which source serves each cell of the support matrix."""

from __future__ import annotations

import re
import subprocess
import sys

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
    lines = re.findall(r"^\| (\w+) \| `(\w+)` \| (\w+) \|(.*)", PAGE.read_text(), re.MULTILINE)
    assert {line[:3] for line in lines} == wanted
    assert all(cell.strip() for *_, cells in lines for cell in cells.strip("|").split("|"))
