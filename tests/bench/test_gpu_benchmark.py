"""The GPU benchmark as far as it goes without a GPU: its suites, and how it steps through the program's cases."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import gpu_benchmark
import gpu_report
import pytest

HEADING = "case\tshape\ttype\tscale_type\tlayout\n"

# Speaks as the program does: `dies` ends it without a word, `ruins` leaves it with an error that lasts.
FAKE_PROGRAM = """
import json, sys
arguments = dict(zip(sys.argv[2::2], sys.argv[3::2]))
lines = open(arguments["--suite"]).read().splitlines()[1:][int(arguments["--skip"]):]
print(json.dumps({"kind": "machine", "gpu": "fake", "cudnn": "none"}), flush=True)
done = 0
for line in lines:
    if not sys.stdin.readline():
        break
    case, shape, kind, scale, layout = line.split(chr(9))
    if case == "dies":
        sys.exit(1)
    name = f"{case} {kind}/{scale} {layout}"
    said = {"kind": "batch_norm", "name": name, "case": case}
    said |= {"error": "CUDA_ERROR_ILLEGAL_ADDRESS"} if case == "ruins" else {"results": {"sets": 2}}
    print(json.dumps(said), flush=True)
    done += 1
print(json.dumps({"kind": "end", "cases": done, "left_out": len(lines) - done}), flush=True)
"""


class FakePeer:
    def __init__(self) -> None:
        self.seen: list[str] = []

    def batch_norm(self, case: dict[str, str], sets: int) -> dict[str, Any]:
        self.seen.append(case["case"])
        return {"native": {"backward": {"median": float(sets)}}}

    def tidy(self) -> None:
        pass


def run_fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str], deadline: float) -> dict[str, Any]:
    lines = [f"{name}\t2,2,2,2\tf32\tf32\tNHWC\n" for name in names]
    (tmp_path / "batch_norm.tsv").write_text(HEADING + "".join(lines))
    monkeypatch.setattr(gpu_benchmark, "SUITES", tmp_path)
    script = tmp_path / "program"
    script.write_text(f"#!{sys.executable}\n{FAKE_PROGRAM}")
    script.chmod(0o755)
    peer: Any = FakePeer()
    results: dict[str, Any] = {"cases": [], "left_out": {}, "machine": {}}
    options = argparse.Namespace(budget=1.0, samples=24, filter="")
    program = gpu_benchmark.Program(script, "")
    gpu_benchmark.run_suite(program, peer, "batch_norm", options, deadline, results)
    assert peer.seen == [case["case"] for case in results["cases"]]
    return results


def test_cases_are_measured_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = run_fake(tmp_path, monkeypatch, ["a", "b", "c"], time.monotonic() + 60)
    assert [case["case"] for case in results["cases"]] == ["a", "b", "c"]
    assert results["cases"][0]["torch"] == {"native": {"backward": {"median": 2.0}}}
    assert results["left_out"] == {"batch_norm": 0}
    assert results["machine"] == {"gpu": "fake", "cudnn": "none"}


@pytest.mark.parametrize("culprit", ["dies", "ruins"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_after_a_case_that_ends_the_process_comes_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, culprit: str, place: int
) -> None:
    names = ["a", "b"]
    names.insert(place, culprit)
    results = run_fake(tmp_path, monkeypatch, names, time.monotonic() + 60)
    assert [case["case"] for case in results["cases"]] == names
    assert [case["case"] for case in results["cases"] if "error" in case] == [culprit]
    assert results["left_out"] == {"batch_norm": 0}


def test_nothing_begins_after_the_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = run_fake(tmp_path, monkeypatch, ["a", "b"], time.monotonic() - 1)
    assert results["cases"] == []
    assert results["left_out"] == {"batch_norm": 2}


def test_the_time_limit_falls_between_cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(peer: Any, case: dict[str, str], line: dict[str, Any]) -> None:
        peer.batch_norm(case, 2)
        time.sleep(2)

    monkeypatch.setattr(gpu_benchmark, "measure_torch", slow)
    results = run_fake(tmp_path, monkeypatch, ["a", "b", "c"], time.monotonic() + 1.5)
    assert [case["case"] for case in results["cases"]] == ["a"]
    assert results["left_out"] == {"batch_norm": 2}


def test_conv_suite() -> None:
    cases = gpu_report.read_suite(gpu_benchmark.SUITES / "conv.tsv")
    assert len({gpu_report.case_name(case) for case in cases}) == len(cases) == 176
    groups = Counter((case["type"], case["layout"]) for case in cases)
    assert groups == {
        (kind, layout): 16 if kind == "f64" else 18 for kind in gpu_benchmark.TYPES for layout in ("NCHW", "NHWC")
    }
    for case in cases:
        shape = gpu_benchmark.ConvShape(case)
        assert min(shape.y) > 0
        assert len(shape.x) == len(shape.w) == len(shape.y) == len(shape.rest[1]) + 2
        assert int(case["C"]) % int(case["groups"]) == int(case["K"]) % int(case["groups"]) == 0


def test_batch_norm_suite() -> None:
    cases = gpu_report.read_suite(gpu_benchmark.SUITES / "batch_norm.tsv")
    assert len({gpu_report.case_name(case) for case in cases}) == len(cases) == 80
    types = {f"{case['type']}\t{case['scale_type']}" for case in cases}
    assert types == set(gpu_benchmark.CHECK_SUITES["batch_norm"][2])
    assert all(len(gpu_benchmark.numbers(case["shape"])) in (4, 5) for case in cases)


def test_one_dimension_with_channels_last_is_two_of_height_one() -> None:
    cases = gpu_report.read_suite(gpu_benchmark.SUITES / "conv.tsv")
    shapes = {case["layout"]: gpu_benchmark.ConvShape(case) for case in cases if case["case"] == "conv1d_4096"}
    assert shapes["NCHW"].x == [32, 256, 4096]
    assert shapes["NHWC"].x == [32, 256, 1, 4096]
    assert shapes["NHWC"].rest == ([256], [1, 1], [0, 4], [1, 1], False, [0, 0], 1)
