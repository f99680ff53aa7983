"""The arithmetic of the GPU benchmark's report, on a few figures made up for it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import gpu_report
import pytest

RESULTS = Path(__file__).resolve().parent / "results.json"


@pytest.fixture
def results() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RESULTS.read_text())
    return found


def verdicts(results: dict[str, Any]) -> dict[str, str]:
    return {goal.name: goal.verdict for goal in gpu_report.goals(results)}


def test_geometric_mean() -> None:
    assert gpu_report.geometric_mean([2.0, 8.0]) == pytest.approx(4)
    assert math.isnan(gpu_report.geometric_mean([]))


def test_ratios_of_a_case(results: dict[str, Any]) -> None:
    first, refused = results["cases"][:2]
    assert gpu_report.torch_ratio(first) == pytest.approx(0.8 / 0.4)
    assert gpu_report.legacy_ratio(first) == pytest.approx((0.3 + 0.2 + 0.1) / 0.4)
    first["results"]["legacy"]["dB"] = None
    assert gpu_report.legacy_ratio(first) == pytest.approx((0.3 + 0.2) / (0.1 + 0.15))
    assert gpu_report.ours(first, "all", "heuristic") == 0.5
    assert gpu_report.legacy_ratio(refused) is None  # the legacy API has no dX of it
    assert gpu_report.torch_ratio(refused) is None


def test_torch_is_the_better_of_its_batch_norms(results: dict[str, Any]) -> None:
    both, native = results["cases"][3:5]
    assert gpu_report.torch_time(both, "backward") == 0.5
    assert gpu_report.torch_time(native, "backward") == 0.7
    assert gpu_report.torch_ratio(native) == pytest.approx(1.4)
    assert gpu_report.legacy_ratio(both) == pytest.approx(2.0)
    assert gpu_report.legacy_ratio(native) is None


def test_groups_are_types_and_layouts(results: dict[str, Any]) -> None:
    conv = gpu_report.of_kind(results, "conv")
    groups = gpu_report.ratios_by_group(conv, gpu_report.torch_ratio)
    assert list(groups) == ["f16 NHWC"]
    assert [name for name, _ in groups["f16 NHWC"]] == ["a", "b"]
    assert [value for _, value in groups["f16 NHWC"]] == pytest.approx([2.0, 0.5])


def test_slower_cases_are_named_worst_first(results: dict[str, Any]) -> None:
    assert dict(gpu_report.slower_than_torch(results["cases"])) == pytest.approx({"b f16 NHWC": 2.0})
    slower = gpu_report.slower_than_legacy(gpu_report.of_kind(results, "conv"))
    # dW is slower by no more than noise, dB in the median alone.
    assert dict(slower) == pytest.approx({"b f16 NHWC dX": 1.5})
    norms = gpu_report.of_kind(results, "batch_norm")
    assert gpu_report.slower_than_legacy(norms) == []
    norms[0]["results"]["legacy"]["forward"] = {"median": 0.2, "minimum": 0.2, "samples": 24}
    assert dict(gpu_report.slower_than_legacy(norms)) == pytest.approx({"s f16/f32 NHWC forward": 2.0})


def test_goals(results: dict[str, Any]) -> None:
    assert verdicts(results) == {
        "no convolution slower than the legacy API": "MISSED",
        "no convolution more than 10 % slower than PyTorch": "MISSED",
        "no batch normalization slower than the legacy API": "PASS",
        "no batch normalization more than 10 % slower than PyTorch": "PASS",
        "host time, 3 outputs": "PASS",
        "host time, 1 output": "MISSED",
        "first call by heuristics": "PASS",
        "first call by a remembered precompiled choice": "MISSED",
        "every result checked is right": "MISSED",
        "every call ran": "MISSED",
    }


def test_goals_that_were_not_measured_say_so() -> None:
    found = verdicts({"cases": []})
    assert found.pop("every call ran") == "PASS"
    assert set(found.values()) == {"NOT MEASURED"}


def test_summary_and_table_name_every_case(results: dict[str, Any]) -> None:
    assert "b f16 NHWC dX" in gpu_report.summary(results)
    rows = [line for line in gpu_report.markdown(results).splitlines() if line.startswith("| ")]
    assert len(rows) == 2 * 2 + len(results["cases"])
    widths = {line.count("|") for line in rows[:5]}
    assert len(widths) == 1


def test_charts_are_small(results: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    gpu_report.write(results, tmp_path)
    charts = sorted(path.name for path in tmp_path.glob("*.svg"))
    assert charts == ["batch_norm_legacy.svg", "batch_norm_torch.svg", "conv_legacy.svg", "conv_torch.svg"]
    assert all(path.stat().st_size < 300_000 for path in tmp_path.glob("*.svg"))
