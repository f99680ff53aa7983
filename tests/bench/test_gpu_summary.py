"""The tables of measured speed: they are made of the newest figures, and the pages have just those."""

from __future__ import annotations

import itertools
import json
import re
import shutil
from pathlib import Path
from typing import Any

import gpu_goals
import gpu_patterns
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
    assert sorted(marks) == sorted([*gpu_summary.TABLES, gpu_summary.PATTERNS])
    assert sum(page.count("<!-- gpu_summary:") for page in pages) == len(marks)


def test_every_run_has_its_place_in_the_order() -> None:
    folder = REPOSITORY / gpu_summary.RESULTS
    names = (folder / gpu_summary.ORDER).read_text(encoding="utf-8").split()
    assert sorted(names) == sorted(path.stem for path in folder.glob("gpu_*.json"))
    dates = [json.loads((folder / f"{name}.json").read_text())["machine"]["date"] for name in names]
    assert dates == sorted(dates)


def test_every_run_that_is_kept_has_the_newest_figures_of_something() -> None:
    runs = gpu_summary.read_runs(REPOSITORY / gpu_summary.RESULTS)
    counts = {name for sweep in ("batches", "workspaces") for name in newest_of_sweep(runs, sweep)}
    for card in {card for _, card in gpu_summary.TABLES.values()}:
        of_card = [run for run in runs if run.is_of(card)]
        for kind, groups in gpu_summary.GROUPS.items():
            suites = [suite for suite, kinds in gpu_summary.OTHER_SUITES.items() if kind in kinds]
            for types, layout, suite in itertools.product(groups, gpu_goals.LAYOUTS, ["", *suites]):
                newest = gpu_summary.newest_cases(of_card, kind, f"{types} {layout}", suite)
                counts |= {run.name for _, run in newest}
    assert [run.name for run in runs if run.name not in counts] == []


def newest_of_sweep(runs: list[gpu_summary.Run], sweep: str) -> set[str]:
    newest = {case["name"]: run.name for run in runs for case in run.results.get(sweep, [])}
    return set(newest.values())


def test_results_are_data_alone_and_little() -> None:
    files = list((REPOSITORY / gpu_summary.RESULTS).iterdir())
    assert {path.suffix for path in files} == {".json", ".md", ".txt"}
    assert sum(path.stat().st_size for path in files) < 3_000_000


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


def test_the_least_cases_are_named() -> None:
    layers = {"rn50_stem": 2.0, "unet3d": 0.97, "conv1d_4096": 1.5}
    cases = [conv(name, "NHWC", value) for name, value in layers.items()]
    found = gpu_summary.least([run("one", *cases, conv("convnext_dw_56", "NHWC", 0.5))])
    assert found[2:] == ["| ConvGrad, half |  | 0.97 `unet3d`, 1.50 `conv1d_4096` |"]


def test_suites_of_one_kind_of_layer_have_a_table_of_their_own() -> None:
    cases = [conv("convnext_dw_56", "NHWC", 8.0), conv("dw_5x5_28", "NHWC", 2.0), conv("conv1d_4096", "NHWC", 9.0)]
    cases[0]["results"]["ours"]["heuristic"] = {"all": {"median": 2.0}}
    link = "[11-23 depthwise](../bench/results/gpu_2026-11-23_h200_depthwise.json)"
    assert gpu_summary.others(("conv",), [run("gpu_2026-11-23_h200_depthwise", *cases)])[2:] == [
        f"| depthwise | half, NHWC | 2 | 4.00 | 2.00 | 4.00 | {link} |"
    ]


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
    for folder in (gpu_summary.RESULTS, gpu_patterns.RECORDS):
        (tmp_path / folder).parent.mkdir(exist_ok=True)
        (tmp_path / folder).symlink_to(REPOSITORY / folder)
    return tmp_path


def test_a_page_with_another_figure_is_found_and_mended(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = copy / "README.md"
    right = page.read_text(encoding="utf-8")
    wrong, changed = re.subn(r"(\| ConvGrad, double \| 16 \| \d\.\d\d \|) \d\.\d\d \|", r"\1 9.99 |", right)
    assert changed == 1
    page.write_text(wrong, encoding="utf-8")
    assert gpu_summary.main(["--check", "--root", str(copy)]) == 1
    assert capsys.readouterr().out == "README.md: other figures than the data; run bench/gpu_summary.py\n"
    assert page.read_text(encoding="utf-8") == wrong
    assert gpu_summary.main(["--root", str(copy)]) == 0
    assert page.read_text(encoding="utf-8") == right
