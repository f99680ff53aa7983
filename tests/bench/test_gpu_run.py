"""A whole run of the GPU benchmark, with a program and a PyTorch that make figures up."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import gpu_batch_norm
import gpu_benchmark
import gpu_charts
import gpu_compare
import gpu_conv
import gpu_conv_shapes
import gpu_goals
import gpu_suites
import pytest

FAKE_PROGRAM = """
import json, sys
def say(**fields):
    print(json.dumps(fields), flush=True)
arguments = sys.argv[1:]
def value(name):
    return arguments[arguments.index(name) + 1]
if "--step" not in arguments:
    say(kind="other", results={})
    sys.exit()
heading, *lines = open(value("--suite")).read().splitlines()
columns = heading.split(chr(9))
say(kind="machine", gpu="NVIDIA H200, made up", cudnn="none")
one = {"median": 0.5, "minimum": 0.5, "samples": 24}
slow = {"median": 1.0, "minimum": 1.0, "samples": 24}
parts = {"dX": one, "dW": one, "dB": {"median": 1e-3, "minimum": 1e-3, "samples": 24}, "all": one}
for line in lines[int(value("--skip")):]:
    if not sys.stdin.readline():
        break
    case = dict(zip(columns, line.split(chr(9))))
    scale = case.get("scale_type", "")
    results = {"first_call_ms": 9.0, "sets": 2, "set_bytes": 1e8, "operations": 1e9, "bytes": 1e8}
    if "--workspaces" in arguments:
        results["limits"] = {limit: {**one, "workspace": 0} for limit in ("none", "256", "32", "0")}
    elif "--one-call" in arguments:
        results["ours"] = {"benchmark": {"all": one}}
    elif scale:
        results |= {"ours": {"forward": one, "backward": one}, "legacy": {"forward": one, "backward": one}}
        results["heuristic"] = {"backward": one}
    else:
        results |= {"ours": {"heuristic": parts, "benchmark": parts}, "legacy": {"dX": slow, "dW": slow, "dB": slow}}
    kind = "batch_norm" if scale else "conv_transpose" if "output_padding" in case else "conv"
    name = f"{case['case']} {case['type']}{'/' + scale if scale else ''} {case['layout']}"
    say(kind=kind, name=name, case=case["case"], type=case["type"], scale_type=scale, layout=case["layout"],
        results=results)
say(kind="end", cases=0, left_out=0)
"""


class FakeTorch:
    def __init__(self, samples: int) -> None:
        self.figure = {"median": 1.0, "minimum": 1.0, "samples": samples}

    def conv(self, case: dict[str, str], sets: int, parts: Any = ("dX", "dW", "dB", "all"), samples: Any = None) -> Any:
        return dict.fromkeys(parts, self.figure)

    def batch_norm(self, case: dict[str, str], sets: int, relu: bool = False) -> Any:
        return {"native": {"forward": self.figure, "backward": self.figure}}

    def control(self) -> dict[str, float]:
        return {"matmul_tflops": 700.0, "copy_tb_per_s": 4.0}

    def tidy(self) -> None:
        pass


class FakeChecker:
    def __init__(self, program: Any) -> None:
        pass

    def check_all(self) -> list[dict[str, Any]]:
        return [{"name": "a", "ok": True, "error": 0.0}]


def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> dict[str, Any]:
    script = tmp_path / "program"
    script.write_text(f"#!{sys.executable}\n{FAKE_PROGRAM}")
    script.chmod(0o755)
    monkeypatch.setattr(gpu_benchmark, "Torch", FakeTorch)
    monkeypatch.setattr(gpu_batch_norm, "by_torch", lambda peer, *given, **named: peer.batch_norm(*given, **named))
    monkeypatch.setattr(gpu_conv, "by_torch", lambda peer, *given: peer.conv(*given))
    monkeypatch.setattr(gpu_benchmark, "host_of", lambda peer: {})
    monkeypatch.setattr(gpu_benchmark, "Checker", FakeChecker)
    monkeypatch.setattr(gpu_charts, "draw_all", lambda results, folder: None)  # takes long
    monkeypatch.setattr(gpu_benchmark, "missing", lambda program: [])
    monkeypatch.setattr(gpu_benchmark, "machine", lambda peer: {"gpu": ""})
    monkeypatch.setattr(
        sys, "argv", ["gpu_benchmark.py", "--program", str(script), "--out", str(tmp_path / "out"), *arguments]
    )
    assert gpu_benchmark.main() == 0  # every goal that was measured is met
    found: dict[str, Any] = json.loads((tmp_path / "out/results.json").read_text())
    return found


def test_one_command_runs_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = run(tmp_path, monkeypatch)
    parts = ("batch_norm", "batch_norm_relu", "conv", "conv_transpose", "batches", "workspaces")
    assert results["left_out"] == dict.fromkeys(parts, 0)
    cases = [case["kind"] for case in results["cases"]]
    for kind in parts[:4]:
        suite = kind.removesuffix("_relu")
        assert cases.count(kind) == len(gpu_suites.read_suite(gpu_suites.SUITES / f"{suite}.tsv"))
    assert len(cases) == sum(map(cases.count, parts[:4]))
    assert len(results["batches"]) == len(gpu_conv_shapes.batch_cases())
    assert len(results["workspaces"]) == len(gpu_conv_shapes.sweep_cases())
    assert gpu_compare.report(results, results)[1]
    for name in ("results.md", "summary.txt"):
        assert (tmp_path / "out" / name).read_text()
    summary = (tmp_path / "out/summary.txt").read_text()
    for name in gpu_goals.KIND_NAMES.values():
        assert f"\n{name}, mode heuristic: 2.00 over PyTorch, mean of " in summary
        assert f"\n{name}, first call in mode heuristic: median 9.00 ms, largest 9.00 ms " in summary


def test_named_parts_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = run(tmp_path, monkeypatch, "--workspaces", "--filter", "unet3d f16", "--cases-only")
    assert [case["name"] for case in results["workspaces"]] == ["unet3d f16 NHWC"]
    assert results["cases"] == []
    assert results["left_out"] == {"workspaces": 0}


def test_what_there_is_no_time_for_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = run(tmp_path, monkeypatch, "--batches", "--workspaces", "--time-limit", "0")
    assert results["left_out"] == {"batches": 60, "workspaces": 36}
    assert 'left out for lack of time: {"batches": 60, "workspaces": 36}' in (tmp_path / "out/summary.txt").read_text()
