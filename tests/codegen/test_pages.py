"""The reference pages: what a reader looks up there."""

from __future__ import annotations

from pathlib import Path

import pytest
from gradsmith_codegen.artefacts import artefacts
from gradsmith_codegen.plan import make_plan
from gradsmith_codegen.reader import load_schema
from gradsmith_codegen.render import render
from schemas import CONVOLVE, edited, load


@pytest.fixture(scope="module")
def pages(ops_yaml: Path) -> dict[str, list[str]]:
    schema, _ = load_schema(ops_yaml)
    assert schema
    contents = dict(render(artefacts(make_plan(schema, shards=1))))
    return {Path(path).stem: text.splitlines() for path, text in contents.items() if path.startswith("docs/")}


def test_forward_and_gradient_lead_to_each_other(pages: dict[str, list[str]]) -> None:
    assert "| Gradient | [ConvGrad](ConvGrad.md) |" in pages["Conv"]
    assert "| Gradient of | [Conv](Conv.md) |" in pages["ConvGrad"]
    assert not any(line.startswith("| Gradient |") for line in pages["ConvGrad"])


def test_a_page_shows_what_a_shape_rule_computes(pages: dict[str, list[str]]) -> None:
    """From the text of the family's header: what ceil_mode decides is left out where there is none."""
    for name, symbol, size in (
        ("Conv", "O", "count = where(same, ceil(input / stride), max(min(fitting, most), 0))"),
        ("MaxPool", "O", "rounds_up = ceil_mode and auto_pad != VALID"),
        ("ConvTransposeGrad", "O", "where(sized, entry(output_shape, 0), unsized)"),
    ):
        page = pages[name]
        start = next(at for at, line in enumerate(page) if line.startswith(f"Along each axis, {symbol} is "))
        block = page[page.index("```", start) + 1 :]
        assert size in block[: block.index("```")]
    assert not any("rounds_up" in line for line in pages["Conv"])


def test_every_symbol_of_the_shapes_has_a_row(pages: dict[str, list[str]]) -> None:
    heading = pages["ConvGrad"].index("| dims | how many | rule | what they are |")
    assert pages["ConvGrad"][heading + 2 : heading + 9] == [
        "| N | one |  |  |",
        "| M | one | a multiple of `group` | output channels |",
        "| O | as D | `conv::OutputSpatial(D, K)` | spatial dims of Conv's output |",
        "| C | one |  |  |",
        "| D | 1 to 3 |  | spatial dims of X |",
        "| K | as D |  | spatial dims of W |",
        "",
    ]


def test_a_length_that_is_a_number_is_said_once() -> None:
    schema, _ = load(edited(CONVOLVE, ("D: {length: [1, 3]}", "D: {length: 2}")))
    assert schema
    page = dict(render(artefacts(make_plan(schema, shards=1))))["docs/Convolve.md"]
    assert "\n| D | 2 |  |  |\n" in page


def test_what_the_gradient_makes_of_epsilon_is_told(pages: dict[str, list[str]]) -> None:
    (line,) = [line for line in pages["BatchNormalizationGrad"] if line.startswith("| `epsilon` |")]
    assert "unused while the saved statistics are given" in line
