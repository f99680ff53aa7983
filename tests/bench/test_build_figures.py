"""What docs say of sizes and times of builds is what was measured, and how it is measured."""

from __future__ import annotations

import difflib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from build_tree import REPOSITORY
from formula_change import changed
from gradsmith_codegen.reader import load_schema

RESULTS = REPOSITORY / "bench/results"


def data_of(page: str, kind: str) -> Any:
    """That which a page of docs/ names."""
    (name,) = re.findall(rf"bench/results/({kind}_[\w-]+\.json)\)", (REPOSITORY / "docs" / page).read_text("utf-8"))
    return json.loads((RESULTS / name).read_text("utf-8"))


def test_sizes_of_selections_are_those_of_the_data() -> None:
    page = (REPOSITORY / "docs/selection.md").read_text("utf-8")
    data = data_of("selection.md", "selection")
    megabytes = f"{data['library']['bytes'] / 1e6:.0f} MB"
    assert page.count(megabytes) == 2
    rows = re.findall(r"^\| (.*) \| ([\d.]+) MB(?:, (\d+) of them convolutions)? \| ([\d.]+) \|$", page, re.MULTILINE)
    assert len(rows) == len(data["selections"])
    for (selected, size, images, seconds), measured in zip(rows, data["selections"], strict=True):
        arguments = measured["selection"].removeprefix("OPS ")
        assert selected in (f"`{arguments}`", "the one of this page")
        assert float(size) == pytest.approx(measured["bytes"] / 1e6, abs=0.5 if images else 0.05)
        assert float(seconds) == pytest.approx(measured["link_seconds"], abs=0.05)
        convolutions = sum(of for name, of in measured["images"].items() if name.startswith("conv"))
        assert int(images or 0) == round(convolutions / 1e6)
        if selected == "the one of this page":
            assert f"here {size} MB of {megabytes}" in page
            words = " ".join(re.findall(r"gradsmith_select\(\n  mylib\n((?:.*\n)*?)\n", page)[0].rstrip(")\n").split())
            assert words == measured["selection"]


def test_times_of_changed_formulas_are_those_of_the_data() -> None:
    page = (REPOSITORY / "docs/adding-operators.md").read_text("utf-8")
    changes = data_of("adding-operators.md", "formula_change")["changes"]
    (told,) = re.findall(r"(\d+) to (\d+) seconds on two cores .*, (\d+) to (\d+) of one processor", page)
    seconds, of_processor = ([change[key] for change in changes] for key in ("seconds", "processor_seconds"))
    of_data = (min(seconds), max(seconds), min(of_processor), max(of_processor))
    assert [int(number) for number in told] == [round(number) for number in of_data]
    assert max(seconds) < 60  # less than a minute


@pytest.mark.parametrize("operator", ["MishGrad", "BiasGeluGrad", "LayerNormalizationGrad"])
def test_a_changed_formula_gives_the_same(operator: str, tmp_path: Path) -> None:
    plain = (REPOSITORY / "ops.yaml").read_text("utf-8")
    text, formula = changed(plain, operator)
    lines = [line for line in difflib.ndiff(plain.splitlines(), text.splitlines()) if line[0] in "+-"]
    assert len(lines) == 2
    assert re.fullmatch(rf'\+ {{7}}{formula}: "1 \* \(.*\)"', lines[1])
    (tmp_path / "ops.yaml").write_text(text, encoding="utf-8")
    schema, _ = load_schema(tmp_path / "ops.yaml")
    assert schema is not None


def test_an_operator_without_formulas_is_refused() -> None:
    plain = (REPOSITORY / "ops.yaml").read_text("utf-8")
    for operator, sentence in (("ConvGrad", "ConvGrad has no formulas"), ("Convv", "there is no operator Convv")):
        with pytest.raises(SystemExit, match=sentence):
            changed(plain, operator)
