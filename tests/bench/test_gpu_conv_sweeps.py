"""What comes of the batches and the limits of workspace, on a few figures made up for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gpu_conv_sweeps
import gpu_report
import pytest

RESULTS = Path(__file__).resolve().parent / "results.json"


@pytest.fixture
def results() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RESULTS.read_text())
    return found


def test_batch_points(results: dict[str, Any]) -> None:
    points = gpu_conv_sweeps.batch_points(results)
    assert [(point.layer, point.batch) for point in points] == [("l", 1), ("l", 16), ("l", 1024)]
    assert [point.torch_ratio for point in points] == [pytest.approx(2), pytest.approx(1), None]
    assert gpu_conv_sweeps.per_image(points[1].ours, 16) == pytest.approx(5)
    assert gpu_conv_sweeps.per_image(points[2].ours, 1024) is None


def test_limits_of_workspace(results: dict[str, Any]) -> None:
    first, second = results["workspaces"]
    assert gpu_conv_sweeps.under_limit(first, "256") == gpu_conv_sweeps.Limited(0.5, 200)
    assert gpu_conv_sweeps.under_limit(first, "0") == gpu_conv_sweeps.Limited(None, None)
    assert gpu_conv_sweeps.under_limit(second, "0") == gpu_conv_sweeps.Limited(0.2, 0)
    assert gpu_conv_sweeps.slowdown(first, "32") == pytest.approx(2)
    assert gpu_conv_sweeps.slowdown(first, "0") is None


def test_summary(results: dict[str, Any]) -> None:
    assert gpu_conv_sweeps.summary(results) == [
        "conv by batch, torch / ours, f16 NHWC: 1: 2.00, 16: 1.00",
        "workspace of conv f16 NHWC: median 150 MiB, most 300 MiB (a); time under a limit, times that without"
        "; 256 MiB: 1.12 of 2, most 1.25; 32 MiB: 1.41 of 2, most 2.00; 0 MiB: 1.00 of 1, most 1.00",
        "batches, without a figure (what does not fit into memory is left out): 2",
        "  l_n1024 f16 NHWC: ours: there is no memory",
        "  l_n1024 f16 NHWC: PyTorch: CUDA out of memory.",
        "workspaces, without a figure (what does not fit into memory is left out): 1",
        "  a f16 NHWC: at most 0 MiB: no kernel can take it",
    ]
    assert gpu_conv_sweeps.summary({"cases": []}) == []


def test_tables(results: dict[str, Any]) -> None:
    assert gpu_conv_sweeps.batch_rows(results)[1:] == [
        ["l", "f16", "1", "10.00", "20.00", "2.00"],
        ["l", "f16", "16", "5.00", "5.00", "1.00"],
        ["l", "f16", "1024", "", "", ""],
    ]
    assert gpu_conv_sweeps.workspace_rows(results)[1:] == [
        ["a", "f16", "300", "0.4000", "200", "1.25", "20", "2.00", "", ""],
        ["b", "f16", "0", "0.2000", "0", "1.00", "0", "1.00", "0", "1.00"],
    ]


def test_the_forward_operator_is_shown_by_mode() -> None:
    def case(name: str, by_default: float, by_search: float, torch: dict[str, Any]) -> dict[str, Any]:
        times = {"heuristic": by_default, "benchmark": by_search}
        modes = {mode: {"forward": {"median": time}} for mode, time in times.items()}
        line = {"kind": "conv", "case": name, "name": f"{name} f16 NHWC", "type": "f16", "layout": "NHWC"}
        return {**line, "results": {"ours": modes}, "torch": {"forward": torch}}

    of_two = {"forward": [case("a", 0.5, 0.25, {"median": 1.0}), case("b", 2.0, 1.0, {"error": "no kernel"})]}
    assert gpu_conv_sweeps.forward_rows(of_two)[1:] == [
        ["a", "f16", "NHWC", "0.5000", "0.2500", "1.0000", "2.00", "4.00"],
        ["b", "f16", "NHWC", "2.0000", "1.0000", "", "", ""],
    ]
    assert gpu_conv_sweeps.summary(of_two) == [
        "forward, torch / ours, f16 NHWC: heuristic 2.00 of 1, least 2.00; benchmark 4.00 of 1, least 4.00",
        "forward, without a figure (what does not fit into memory is left out): 1",
        "  b f16 NHWC: PyTorch: no kernel",
    ]


def test_parts_that_were_left_out_are_counted(results: dict[str, Any]) -> None:
    results["left_out"] = {"conv": 0, "batches": 12}
    assert 'left out for lack of time: {"conv": 0, "batches": 12}' in gpu_report.summary(results)
