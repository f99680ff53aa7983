"""Comparing two results of the GPU benchmark, on a few figures made up for it."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import gpu_compare
import pytest

RESULTS = Path(__file__).resolve().parent / "results.json"


@pytest.fixture
def before() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RESULTS.read_text())
    return found


@pytest.fixture
def after(before: dict[str, Any]) -> dict[str, Any]:
    return copy.deepcopy(before)


def benchmark(results: dict[str, Any], case: int) -> dict[str, Any]:
    figures: dict[str, Any] = results["cases"][case]["results"]["ours"]["benchmark"]
    return figures


def verdicts(before: dict[str, Any], after: dict[str, Any]) -> dict[str, str]:
    found = {change.name: change.verdict for change in gpu_compare.changes(before, after)}
    return {name: verdict for name, verdict in found.items() if verdict != "same"}


def test_the_same_is_the_same(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert verdicts(before, after) == {}
    text, good = gpu_compare.report(before, after)
    assert good
    assert "slower: 0" in text and "faster: 0" in text


def test_beyond_noise_in_both_directions(before: dict[str, Any], after: dict[str, Any]) -> None:
    benchmark(after, 0)["dX"]["median"] *= 1.2
    benchmark(after, 0)["dW"]["median"] *= 1.01
    benchmark(after, 0)["all"]["median"] /= 1.2
    for part in ("dX", "dW", "all"):
        benchmark(after, 0)[part]["minimum"] = benchmark(after, 0)[part]["median"]
        benchmark(before, 0)[part]["minimum"] = benchmark(before, 0)[part]["median"]
    assert verdicts(before, after) == {"a f16 NHWC dX": "slower", "a f16 NHWC all": "faster"}
    text, good = gpu_compare.report(before, after)
    assert not good
    assert "a f16 NHWC dX" in text.split("slower: 1")[1].split("faster: 1")[0]


def test_a_run_that_spreads_must_change_more(before: dict[str, Any], after: dict[str, Any]) -> None:
    benchmark(after, 0)["dX"]["median"] *= 1.2
    benchmark(after, 0)["dX"]["minimum"] = benchmark(after, 0)["dX"]["median"] / 1.3
    assert verdicts(before, after) == {}


def test_what_pytorch_shows_as_drift_is_taken_off(before: dict[str, Any], after: dict[str, Any]) -> None:
    """One of its figures is another kernel's, and counts no more than that."""

    def slow_down(figures: Any) -> None:
        for figure in figures.values() if isinstance(figures, dict) else ():
            slow_down(figure)
        if isinstance(figures, dict) and "median" in figures:
            figures["median"] *= 1.2
            figures["minimum"] = figures["median"]

    slow_down({"cases": {str(i): case for i, case in enumerate(after["cases"])}})
    after["cases"][0]["torch"]["all"]["median"] *= 5
    assert verdicts(before, after) == {}
    assert gpu_compare.drift_between(before, after) == pytest.approx(1.2)


def test_lost_figures_are_told(before: dict[str, Any], after: dict[str, Any]) -> None:
    del benchmark(after, 0)["dX"]
    text, good = gpu_compare.report(before, after)
    assert not good
    assert "no longer measured: 1\n  a f16 NHWC dX" in text


def test_cases_of_one_run_only_do_not_count(before: dict[str, Any], after: dict[str, Any]) -> None:
    del after["cases"][0]
    assert gpu_compare.report(before, after)[1]


def test_command_line_says_by_its_exit_code(tmp_path: Path, before: dict[str, Any], after: dict[str, Any]) -> None:
    benchmark(after, 0)["dX"]["median"] *= 2
    benchmark(after, 0)["dX"]["minimum"] = benchmark(after, 0)["dX"]["median"]
    paths = [tmp_path / "before.json", tmp_path / "after.json"]
    for path, results in zip(paths, (before, after), strict=True):
        path.write_text(json.dumps(results))
    script = Path(gpu_compare.__file__)
    for second, code in ((paths[0], 0), (paths[1], 1)):
        run = subprocess.run([sys.executable, script, paths[0], second], capture_output=True, text=True)
        assert run.returncode == code, run.stdout + run.stderr
