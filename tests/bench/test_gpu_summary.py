"""The tables of measured speed: they are made of the newest figures, and the pages have just those."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import gpu_summary
import pytest
from gpu_figures import torch_ratio

REPOSITORY = Path(__file__).resolve().parents[2]


def conv(name: str, layout: str, torch: float | None, ours: float = 1.0) -> dict[str, Any]:
    case: dict[str, Any] = {"kind": "conv", "case": name, "type": "f16", "layout": layout}
    case["results"] = {"ours": {"benchmark": {"all": {"median": ours}}}}
    return case if torch is None else {**case, "torch": {"all": {"median": torch}}}


def run(name: str, *cases: dict[str, Any]) -> gpu_summary.Run:
    return gpu_summary.Run(name, {"cases": list(cases)})


def cell_of(*runs: gpu_summary.Run) -> gpu_summary.Cell:
    return gpu_summary.cell(runs, "conv", "f16 NCHW", torch_ratio)


def test_pages_have_the_figures_of_the_results(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu_summary.main(["--check"]) == 0, capsys.readouterr().out


def test_every_table_is_in_a_page() -> None:
    pages = [(REPOSITORY / name).read_text(encoding="utf-8") for name in gpu_summary.PAGES]
    marks = [mark[2] for page in pages for mark in gpu_summary.MARKED.finditer(page)]
    assert sorted(marks) == sorted(gpu_summary.TABLES)
    assert sum(page.count("<!-- gpu_summary:") for page in pages) == len(marks)


def test_every_run_has_its_place_in_the_order() -> None:
    folder = REPOSITORY / gpu_summary.RESULTS
    names = (folder / gpu_summary.ORDER).read_text(encoding="utf-8").split()
    assert sorted(names) == sorted(path.parent.name for path in folder.glob("*/results.json"))
    dates = [json.loads((folder / name / "results.json").read_text())["machine"]["date"] for name in names]
    assert dates == sorted(dates)


def test_of_each_case_the_newest_run_counts() -> None:
    old = run("old", conv("rn50_stem", "NCHW", 2.0), conv("unet3d", "NCHW", 8.0), conv("conv1d_4096", "NHWC", 50.0))
    new = run(
        "new", conv("rn50_stem", "NCHW", 4.0, ours=2.0), {**conv("unet3d", "NCHW", 9.0), "error": "out of memory"}
    )
    found = cell_of(old, new)
    assert (found.text(), found.runs) == ("4.00", frozenset({"old", "new"}))
    assert cell_of(old).ratios == (2.0, 8.0)
    assert cell_of(new, old).text() == "4.00"
    assert cell_of(new, old).runs == {"old"}


def test_a_case_of_another_suite_does_not_count() -> None:
    found = cell_of(run("one", conv("rn50_stem", "NCHW", 2.0), conv("convnext_dw_56", "NCHW", 12.0)))
    assert found.ratios == (2.0,)


def test_a_figure_that_the_newest_run_lacks_is_no_older_one() -> None:
    found = cell_of(run("old", conv("rn50_stem", "NCHW", 2.0)), run("new", conv("rn50_stem", "NCHW", None)))
    assert (found.text(), found.runs) == ("", frozenset())


def test_a_table_is_of_one_card() -> None:
    def of(gpu: str, ours: float) -> gpu_summary.Run:
        cases = [conv("rn50_stem", "NCHW", 6.0, ours=ours)]
        return gpu_summary.Run(gpu, {"cases": cases, "machine": {"gpu": f"NVIDIA {gpu}, compute capability 9.0"}})

    marks = "<!-- gpu_summary: {0} -->\n<!-- end -->\n"
    runs = [of("H100 80GB HBM3", 2.0), of("H200", 3.0)]
    assert "| ConvGrad, half | 1 | **3.00** |  |" in gpu_summary.with_tables(marks.format("whole_h100"), runs)
    assert "| ConvGrad, half | 1 | **2.00** |  |" in gpu_summary.with_tables(marks.format("whole"), runs)


def test_what_meets_its_goal_is_bold() -> None:
    found = cell_of(run("one", conv("rn50_stem", "NCHW", 1.601)))
    assert found.text(1.6) == "**1.60**"
    assert found.text(1.61) == "1.60"
    assert cell_of(run("one", conv("rn50_stem", "NCHW", 1.596))).text(1.6) == "1.60"  # by rounding alone
    assert cell_of().text(0.0) == ""


def test_what_waits_for_memory_is_told_by_its_share_of_a_copy() -> None:
    def bias(name: str, layout: str, milliseconds: float) -> dict[str, Any]:
        case = conv(name, layout, None)
        case["name"] = f"{name} f16 {layout}"
        case["results"]["ours"]["benchmark"]["dB"] = {"median": milliseconds}
        return case

    def of(name: str, rate: float, *cases: dict[str, Any]) -> gpu_summary.Run:
        return gpu_summary.Run(name, {"cases": list(cases), "control": {"start": {"copy_tb_per_s": rate}}})

    megabytes = {"rn50_1x1_56": 128 * 256 * 56 * 56 * 2 / 1e6, "rn50_3x3_56": 128 * 64 * 56 * 56 * 2 / 1e6}
    quick = megabytes["rn50_1x1_56"] / 1e3 / 4.0 / 0.875
    slow = megabytes["rn50_3x3_56"] / 1e3 / 4.0 / 0.5
    old = of("old", 9.0, bias("rn50_1x1_56", "NCHW", 99.0), bias("rn50_3x3_14", "NCHW", 1.0))  # less than 50 MB
    new = of("new", 4.0, bias("rn50_1x1_56", "NCHW", quick), bias("rn50_3x3_56", "NCHW", slow))
    assert gpu_summary.memory([old, new])[2:] == [
        "| dB alone, half and bf16 | 2,  | 0.50,  | 0.88,  | 1,  |",
        "| dB alone, half and bf16, from 100 MB on | 1,  | 0.88,  | 0.88,  | **1**,  |",
    ]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in gpu_summary.PAGES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(REPOSITORY / name, tmp_path / name)
    results = tmp_path / gpu_summary.RESULTS
    results.mkdir(parents=True)
    for source in (REPOSITORY / gpu_summary.RESULTS).iterdir():
        (results / source.name).symlink_to(source)
    return tmp_path


def test_a_page_with_another_figure_is_found_and_mended(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = copy / "README.md"
    right = page.read_text(encoding="utf-8")
    wrong, changed = re.subn(r"(\| ConvGrad, double \| 16 \| \d\.\d\d \|) \d\.\d\d \|", r"\1 9.99 |", right)
    assert changed == 1
    page.write_text(wrong, encoding="utf-8")
    assert gpu_summary.main(["--check", "--root", str(copy)]) == 1
    assert capsys.readouterr().out == "README.md: other figures than bench/results; run bench/gpu_summary.py\n"
    assert page.read_text(encoding="utf-8") == wrong
    assert gpu_summary.main(["--root", str(copy)]) == 0
    assert page.read_text(encoding="utf-8") == right
