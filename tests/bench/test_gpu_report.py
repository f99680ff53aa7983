"""The arithmetic of the GPU benchmark's report, on a few figures made up for it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import gpu_charts
import gpu_figures
import gpu_goals
import gpu_report
import pytest

RESULTS = Path(__file__).resolve().parent / "results.json"


@pytest.fixture
def results() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RESULTS.read_text())
    return found


def verdicts(results: dict[str, Any]) -> dict[str, str]:
    return {goal.name: goal.verdict for goal in gpu_goals.goals(results)}


def test_geometric_mean() -> None:
    assert gpu_figures.geometric_mean([2.0, 8.0]) == pytest.approx(4)
    assert math.isnan(gpu_figures.geometric_mean([]))


def test_ratios_of_a_case(results: dict[str, Any]) -> None:
    first, refused = results["cases"][:2]
    assert gpu_figures.torch_ratio(first) == pytest.approx(0.8 / 0.4)
    assert gpu_figures.legacy_ratio(first) == pytest.approx((0.3 + 0.2 + 0.1) / 0.4)
    first["results"]["legacy"]["dB"] = None
    assert gpu_figures.legacy_ratio(first) == pytest.approx((0.3 + 0.2) / (0.1 + 0.15))
    assert gpu_figures.ours(first, "all", "heuristic") == 0.5
    assert gpu_figures.legacy_ratio(refused) is None  # the legacy API has no dX of it
    assert gpu_figures.torch_ratio(refused) is None


def test_torch_is_the_better_of_its_batch_norms(results: dict[str, Any]) -> None:
    both, native = results["cases"][3:5]
    assert gpu_figures.torch_time(both, "backward") == 0.5
    assert gpu_figures.torch_time(native, "backward") == 0.7
    assert gpu_figures.torch_ratio(native) == pytest.approx(1.4)
    assert gpu_figures.legacy_ratio(both) == pytest.approx(2.0)
    assert gpu_figures.legacy_ratio(native) is None


def test_groups_are_types_and_layouts(results: dict[str, Any]) -> None:
    conv = gpu_figures.of_kind(results, "conv")
    groups = gpu_figures.ratios_by_group(conv, gpu_figures.torch_ratio)
    assert list(groups) == ["f16 NHWC"]
    assert [name for name, _ in groups["f16 NHWC"]] == ["a", "b"]
    assert [value for _, value in groups["f16 NHWC"]] == pytest.approx([2.0, 0.5])


def test_slower_cases_are_named_worst_first(results: dict[str, Any]) -> None:
    slower = gpu_goals.slower_than_torch(results["cases"], gpu_goals.NOISE)
    assert [name for name, _ in slower] == ["b f16 NHWC", "up f32 NHWC"]
    assert [factor for _, factor in slower] == pytest.approx([2.0, 0.8 / 0.6])
    slower = gpu_goals.slower_than_legacy(gpu_figures.of_kind(results, "conv"))
    # dW is slower by no more than noise, dB in the median alone.
    assert dict(slower) == pytest.approx({"b f16 NHWC dX": 1.5})
    norms = gpu_figures.of_kind(results, "batch_norm")
    assert gpu_goals.slower_than_legacy(norms) == []
    norms[0]["results"]["legacy"]["forward"] = {"median": 0.2, "minimum": 0.2, "samples": 24}
    assert dict(gpu_goals.slower_than_legacy(norms)) == pytest.approx({"s f16/f32 NHWC forward": 2.0})


def test_goals(results: dict[str, Any]) -> None:
    assert verdicts(results) == {
        "no convolution slower than the legacy API": "MISSED",
        "no convolution slower than PyTorch": "MISSED",
        "convolution: PyTorch's time over ours": "MISSED",
        "convolution: the legacy API's time over ours": "MISSED",
        "no transposed convolution slower than the legacy API": "PASS",
        "no transposed convolution slower than PyTorch": "MISSED",
        "transposed convolution: PyTorch's time over ours": "MISSED",
        "no batch normalization slower than the legacy API": "PASS",
        "no batch normalization slower than PyTorch": "PASS",
        "batch normalization: PyTorch's time over ours": "MISSED",
        "no batch normalization with ReLU slower than PyTorch": "NOT MEASURED",
        "batch normalization with ReLU: PyTorch's time over ours": "NOT MEASURED",
        "no batch slower than PyTorch": "PASS",
        "bias gradients, 0.85 of a copy's rate from 50 MB on": "NOT MEASURED",
        "batch normalizations of their floor, 0.85 of a copy's rate from 50 MB on": "MISSED",
        "host time, 3 outputs": "MISSED",
        "host time, 1 output": "MISSED",
        "first call by heuristics": "PASS",
        "first call by a remembered precompiled choice": "MISSED",
        "every result checked is right": "MISSED",
        "every call ran": "MISSED",
    }


def test_in_short() -> None:
    def conv(name: str, torch: float, heuristic: float, first: float | None) -> dict[str, Any]:
        ours = {"benchmark": {"all": {"median": 1.0}}, "heuristic": {"all": {"median": heuristic}}}
        found: dict[str, Any] = {"ours": ours} if first is None else {"ours": ours, "first_call_ms": first}
        return {"kind": "conv", "case": name, "name": f"{name} f16 NHWC", "type": "f16", "layout": "NHWC"} | {
            "results": found,
            "torch": {"all": {"median": torch}},
        }

    cases = [conv("a", 2.0, 2.0, 7.0), conv("b", 0.96, 1.0, 30.0), conv("c", 0.9, 1.0, 9.0), conv("d", 8.0, 4.0, None)]
    cases.append({"kind": "conv", "case": "e", "name": "e f16 NHWC", "type": "f16", "layout": "NHWC", "error": "died"})
    assert gpu_goals.in_short({"cases": cases}) == [
        "convolution, mode benchmark: 1.93 over PyTorch, mean of 4, least 0.900 c f16 NHWC, 2 below 1.0",
        "convolution, mode heuristic: 1.15 over PyTorch, mean of 4, least 0.900 c f16 NHWC, 1 below 0.95",
        "convolution, heuristic's time over benchmark's: 1.682, mean of 4",
        "convolution, first call in mode heuristic: median 9.00 ms, largest 30.00 ms b f16 NHWC",
    ]
    assert gpu_goals.in_short({"cases": []}) == []


def test_in_short_of_batch_normalizations() -> None:
    results = {"ours": {"backward": {"median": 1.0}}, "heuristic": {"backward": {"median": 1.25}}, "first_call_ms": 4.0}
    norm = {"kind": "batch_norm", "case": "n", "name": "n f16 NHWC", "type": "f16", "layout": "NHWC"}
    case = norm | {"results": results, "torch": {"native": {"backward": {"median": 1.5}}}}
    assert gpu_goals.in_short({"cases": [case]}) == [
        "batch normalization, mode benchmark: 1.50 over PyTorch, mean of 1, least 1.500 n f16 NHWC, 0 below 1.0",
        "batch normalization, mode heuristic: 1.20 over PyTorch, mean of 1, least 1.200 n f16 NHWC, 0 below 0.95",
        "batch normalization, heuristic's time over benchmark's: 1.250, mean of 1",
        "batch normalization, first call in mode heuristic: median 4.00 ms, largest 4.00 ms n f16 NHWC",
    ]
    results["heuristic"] = {"backward": {"error": "no kernel"}}
    assert gpu_goals.failures({"cases": [case]}) == [("n f16 NHWC heuristic backward", "no kernel")]


def share_goals(results: dict[str, Any]) -> dict[str, str]:
    return {goal.name.split(",")[0]: f"{goal.verdict} {goal.detail}" for goal in gpu_goals.memory_goals(results)}


def test_what_waits_for_memory_is_held_to_the_rate_of_a_copy() -> None:
    """dY of rn50_stem in half is 205,520,896 bytes: 0.0514 ms at 4 TB/s. Of a batch normalization X is: five of it."""

    def timed(bias: float, norm: float) -> dict[str, Any]:
        stem = {"kind": "conv", "case": "rn50_stem", "name": "rn50_stem f16 NHWC", "type": "f16", "layout": "NHWC"}
        small = stem | {"case": "rn50_3x3_7", "name": "rn50_3x3_7 f16 NHWC"}
        bias_time = {"results": {"ours": {"benchmark": {"dB": {"median": bias}}}}}
        x = {"kind": "batch_norm", "case": "n", "name": "n f16/f32 NHWC", "type": "f16", "layout": "NHWC"}
        norm_time = {"results": {"bytes": 3 * 205520896, "ours": {"backward": {"median": norm}}}}
        control = {"start": {"copy_tb_per_s": 3.9}, "end": {"copy_tb_per_s": 4.0}}
        return {"cases": [stem | bias_time, small | bias_time, x | norm_time], "control": control}

    assert share_goals(timed(0.06, 0.3)) == {
        "bias gradients": "PASS 0 of 1",
        "batch normalizations of their floor": "PASS 0 of 1",
    }
    assert share_goals(timed(0.1028, 0.5138)) == {
        "bias gradients": "MISSED 1 of 1; the worst: rn50_stem f16 NHWC 0.5",
        "batch normalizations of their floor": "MISSED 1 of 1; the worst: n f16/f32 NHWC 0.5",
    }
    assert share_goals(timed(0.06, 0.3) | {"control": {}}) == {
        "bias gradients": "NOT MEASURED no case",
        "batch normalizations of their floor": "NOT MEASURED no case",
    }


def test_goals_that_were_not_measured_say_so() -> None:
    found = verdicts({"cases": []})
    assert found.pop("every call ran") == "PASS"
    assert set(found.values()) == {"NOT MEASURED"}


def test_a_goal_is_that_of_each_type_and_layout(results: dict[str, Any]) -> None:
    def goal() -> gpu_goals.Goal:
        cases = gpu_figures.of_kind(results, "conv_transpose")
        return next(goal for goal in gpu_goals.speed_goals({"cases": cases}) if goal.name == name)

    name = "transposed convolution: PyTorch's time over ours"
    assert goal() == gpu_goals.Goal(name, "MISSED", "1 of 2 types and layouts; the worst: f32 NHWC 0.75 of 1.6")
    results["cases"][-1]["torch"]["all"]["median"] = 1.6
    assert goal() == gpu_goals.Goal(name, "PASS", "2 of 2 types and layouts")


def test_a_batch_that_is_slower_is_named() -> None:
    def batch(theirs: float) -> dict[str, Any]:
        ours = {"ours": {"benchmark": {"all": {"median": 1.0}}}}
        case = {"kind": "conv", "case": "a_n64", "name": "a_n64 f16 NHWC", "type": "f16", "layout": "NHWC"}
        return {"cases": [], "batches": [case | {"results": ours, "torch": {"all": {"median": theirs}}}]}

    assert verdicts(batch(0.98))["no batch slower than PyTorch"] == "PASS"
    assert verdicts(batch(0.9))["no batch slower than PyTorch"] == "MISSED"


def test_summary_and_tables_name_every_case(results: dict[str, Any]) -> None:
    summary = gpu_report.summary(results)
    assert "b f16 NHWC dX" in summary
    assert "transposed conv, torch / ours, dX+dW+dB" in summary
    tables = gpu_report.markdown(results).split("\n\n")[1:]
    cases = len(results["cases"]) + len(results["batches"]) + len(results["workspaces"])
    rows = [[line.count("|") for line in table.splitlines()] for table in tables]
    assert [len(set(widths)) for widths in rows] == [1] * 5
    assert sum(len(widths) - 2 for widths in rows) == cases


def test_what_was_not_measured_has_no_table() -> None:
    assert gpu_report.markdown({"cases": []}).strip() == ""


def test_roofline_figures(results: dict[str, Any]) -> None:
    conv, norm = results["cases"][0], gpu_figures.of_kind(results, "batch_norm")[0]
    assert gpu_figures.operations(conv) == 8e10  # dX and dW
    assert gpu_figures.intensity(conv) == pytest.approx(8e10 / 2e8)
    assert gpu_figures.achieved_tflops(conv) == pytest.approx(8e10 / 0.4e-3 / 1e12)
    assert gpu_figures.intensity(norm) == pytest.approx(1e9 / 6e8)
    assert gpu_figures.intensity(results["cases"][1]) is None  # of older results
    points = gpu_charts.roofline_points(gpu_figures.of_kind(results, "conv"))
    assert list(points) == ["f16 NHWC"]
    assert points["f16 NHWC"][0][0] == "a"
    assert points["f16 NHWC"][0][1:] == pytest.approx((400, 200))


def test_limits_are_those_of_the_control_and_of_the_card(results: dict[str, Any]) -> None:
    assert gpu_charts.limits(results) == {"copy": 4.1, "f16": 700.0, "bf16": 700.0}
    results["machine"]["gpu"] = "NVIDIA H200, compute capability 9.0"
    assert gpu_charts.limits(results) == {
        "copy": 4.1,
        "f16": 700.0,
        "bf16": 700.0,
        "tf32": 494.0,
        "f32": 67.0,
        "f64": 67.0,
    }
    results["control"] = {"start": {"error": "the device was lost"}}
    assert set(gpu_charts.limits(results)) == {"tf32", "f32", "f64"}
    assert gpu_charts.limits({"cases": []}) == {}


def test_charts_are_small(results: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    gpu_report.write(results, tmp_path)
    charts = sorted(path.name for path in tmp_path.glob("*.svg"))
    assert charts == [
        "batch_norm_legacy.svg",
        "batch_norm_roofline.svg",
        "batch_norm_torch.svg",
        "conv_batches.svg",
        "conv_legacy.svg",
        "conv_roofline.svg",
        "conv_torch.svg",
        "conv_transpose_legacy.svg",
        "conv_transpose_roofline.svg",
        "conv_transpose_torch.svg",
    ]
    assert all(path.stat().st_size < 300_000 for path in tmp_path.glob("*.svg"))


def test_a_run_keeps_its_figures_with_a_case_on_each_line(results: dict[str, Any], tmp_path: Path) -> None:
    gpu_report.write_json(results, tmp_path / "run.json")
    text = (tmp_path / "run.json").read_text()
    assert json.loads(text) == results
    assert all(json.dumps(case) in text.replace(",\n", "\n").splitlines() for case in results["cases"])


def test_kept_runs_are_drawn_in_folders_of_their_names(
    results: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, out = tmp_path / "kept", tmp_path / "out"
    (kept / "gpu_new").mkdir(parents=True)
    gpu_report.write_json(results, kept / "gpu_one.json")
    gpu_report.write_json(results, kept / "gpu_new/results.json")
    (kept / "host.json").write_text("[]")
    monkeypatch.setattr(gpu_report, "KEPT", kept)
    gpu_report.main(["--out", str(out)])
    assert [path.name for path in out.iterdir()] == ["gpu_one"]
    gpu_report.main([str(kept / "gpu_new"), "--out", str(out)])
    for name in ("gpu_one", "gpu_new"):
        assert json.loads((out / name / "results.json").read_text()) == results
        assert (out / name / "summary.txt").read_text().startswith("geometric means")
