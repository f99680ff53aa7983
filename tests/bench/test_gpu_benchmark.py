"""The GPU benchmark as far as it goes without a GPU: its suites, and how it steps through the program's cases."""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpu_batch_norm
import gpu_benchmark
import gpu_conv
import gpu_conv_shapes
import gpu_program
import gpu_report
import gpu_suites
import gpu_summary
import pytest
from gpu_checks import CHECK_SUITES
from gpu_program import Program

COLUMNS = ("case", "shape", "type", "scale_type", "layout")
PARTS = {part.name: part for part in gpu_benchmark.PARTS if not part.must_be_named}

# Speaks as the program does: `dies` ends it without a word, `ruins` leaves it with an error that lasts, `hangs` and
# `hesitates`, in the middle of a line, take for ever.
FAKE_PROGRAM = """
import json, sys, time
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
    if case == "hesitates":
        print("{", end="", flush=True)
    if case in ("hangs", "hesitates"):
        open(sys.argv[0] + ".hangs", "w").close()
        time.sleep(600)
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

    def conv(
        self, case: dict[str, str], sets: int, parts: list[str] | None = None, samples: int | None = None
    ) -> dict[str, Any]:
        self.seen.append(case["case"])
        return {"all": {"parts": parts, "sets": sets, "samples": samples}}

    def tidy(self) -> None:
        pass


@pytest.fixture(autouse=True)
def _measured_by_the_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_batch_norm, "by_torch", lambda peer, *given: peer.batch_norm(*given))
    monkeypatch.setattr(gpu_conv, "by_torch", lambda peer, *given: peer.conv(*given))


def run_fake(tmp_path: Path, names: list[str], deadline: float, case_limit: float = 60) -> dict[str, Any]:
    cases = [dict(zip(COLUMNS, (name, "2,2,2,2", "f32", "f32", "NHWC"), strict=True)) for name in names]
    part = dataclasses.replace(PARTS["batch_norm"], cases=lambda: cases)
    script = tmp_path / "program"
    script.write_text(f"#!{sys.executable}\n{FAKE_PROGRAM}")
    script.chmod(0o755)
    peer: Any = FakePeer()
    results: dict[str, Any] = {"cases": [], "left_out": {}, "machine": {}}
    options = argparse.Namespace(budget=1.0, samples=24, filter="", out=tmp_path, case_limit=case_limit)
    gpu_benchmark.run_part(Program(script, ""), peer, part, options, deadline, results)
    assert peer.seen == [case["case"] for case in results["cases"]]
    return results


def test_cases_are_measured_in_turn(tmp_path: Path) -> None:
    results = run_fake(tmp_path, ["a", "b", "c"], time.monotonic() + 60)
    assert [case["case"] for case in results["cases"]] == ["a", "b", "c"]
    assert results["cases"][0]["torch"] == {"native": {"backward": {"median": 2.0}}}
    assert results["left_out"] == {"batch_norm": 0}
    assert results["machine"] == {"gpu": "fake", "cudnn": "none"}


@pytest.mark.parametrize("culprit", ["dies", "ruins"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_after_a_case_that_ends_the_process_comes_the_next(tmp_path: Path, culprit: str, place: int) -> None:
    names = ["a", "b"]
    names.insert(place, culprit)
    results = run_fake(tmp_path, names, time.monotonic() + 60)
    assert [case["case"] for case in results["cases"]] == names
    assert [case["case"] for case in results["cases"] if "error" in case] == [culprit]
    assert results["left_out"] == {"batch_norm": 0}


class Timer:
    """Goes off when the program hangs, not when seconds have passed: a busy machine may take those for anything."""

    running = 0

    def __init__(self, hangs: Path, end: Callable[[], None]) -> None:
        self.is_cancelled = threading.Event()
        self.thread = threading.Thread(target=self.wait, args=(hangs, end))

    def wait(self, hangs: Path, end: Callable[[], None]) -> None:
        while not self.is_cancelled.wait(0.01):
            if hangs.exists():
                hangs.unlink()
                end()
                return

    def start(self) -> None:
        Timer.running += 1
        self.thread.start()

    def cancel(self) -> None:
        Timer.running -= 1
        self.is_cancelled.set()
        self.thread.join()


@pytest.fixture
def timer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[Timer]:
    monkeypatch.setattr(threading, "Timer", lambda _, end: Timer(tmp_path / "program.hangs", end))
    return Timer


class Clock:
    """Stands still but for what a test adds."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in (gpu_benchmark, gpu_program):
        monkeypatch.setattr(module, "time", made)
    return made


@pytest.mark.usefixtures("timer")
@pytest.mark.parametrize("culprit", ["hangs", "hesitates"])
@pytest.mark.parametrize("place", [0, 2])
def test_after_a_case_that_takes_too_long_comes_the_next(tmp_path: Path, culprit: str, place: int) -> None:
    names = ["a", "b"]
    names.insert(place, culprit)
    results = run_fake(tmp_path, names, time.monotonic() + 60, case_limit=2)
    assert [case["case"] for case in results["cases"]] == names
    told = {case["name"]: case["error"] for case in results["cases"] if "error" in case}
    assert told == {f"{culprit} f32/f32 NHWC": "took longer than 2 s"}
    assert results["left_out"] == {"batch_norm": 0}


def test_what_pytorch_takes_is_not_the_cases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, timer: type[Timer]
) -> None:
    running: list[int] = []

    def measure(peer: Any, part: Any, case: dict[str, str], line: dict[str, Any]) -> None:
        peer.batch_norm(case, 2)
        running.append(timer.running)

    monkeypatch.setattr(gpu_benchmark, "measure_torch", measure)
    run_fake(tmp_path, ["a", "b"], time.monotonic() + 60, case_limit=2)
    assert running == [0, 0]


def test_results_are_saved_as_time_goes_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved: list[int] = []
    monkeypatch.setattr(gpu_report, "write_json", lambda results, _: saved.append(len(results["cases"])))
    run_fake(tmp_path, ["a", "b"], time.monotonic() + 60)
    assert saved == []
    monkeypatch.setattr(gpu_benchmark, "SAVED_EVERY", 0)
    run_fake(tmp_path, ["a", "b"], time.monotonic() + 60)
    assert saved == [1, 2]


def test_nothing_begins_after_the_deadline(tmp_path: Path) -> None:
    results = run_fake(tmp_path, ["a", "b"], time.monotonic() - 1)
    assert results["cases"] == []
    assert results["left_out"] == {"batch_norm": 2}


def test_the_time_limit_falls_between_cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    def slow(peer: Any, part: Any, case: dict[str, str], line: dict[str, Any]) -> None:
        peer.batch_norm(case, 2)
        clock.seconds += 2

    monkeypatch.setattr(gpu_benchmark, "measure_torch", slow)
    results = run_fake(tmp_path, ["a", "b", "c"], clock.seconds + 1.5)
    assert [case["case"] for case in results["cases"]] == ["a"]
    assert results["left_out"] == {"batch_norm": 2}


def test_conv_suite() -> None:
    cases = gpu_suites.read_suite(gpu_suites.SUITES / "conv.tsv")
    assert len({gpu_suites.case_name(case) for case in cases}) == len(cases) == 176
    groups = Counter((case["type"], case["layout"]) for case in cases)
    assert groups == {
        (kind, layout): 16 if kind == "f64" else 18 for kind in gpu_suites.TYPES for layout in ("NCHW", "NHWC")
    }
    for case in cases:
        shape = gpu_conv_shapes.ConvShape(case)
        assert min(shape.y) > 0
        assert len(shape.x) == len(shape.w) == len(shape.y) == len(shape.rest[1]) + 2
        assert int(case["C"]) % int(case["groups"]) == int(case["K"]) % int(case["groups"]) == 0


def test_batch_norm_suite() -> None:
    cases = gpu_suites.read_suite(gpu_suites.SUITES / "batch_norm.tsv")
    assert len({gpu_suites.case_name(case) for case in cases}) == len(cases) == 80
    types = {f"{case['type']}\t{case['scale_type']}" for case in cases}
    assert types == set(CHECK_SUITES["batch_norm"][2])
    assert all(len(gpu_suites.numbers(case["shape"])) in (4, 5) for case in cases)


def test_one_dimension_with_channels_last_is_two_of_height_one() -> None:
    cases = gpu_suites.read_suite(gpu_suites.SUITES / "conv.tsv")
    shapes = {case["layout"]: gpu_conv_shapes.ConvShape(case) for case in cases if case["case"] == "conv1d_4096"}
    assert shapes["NCHW"].x == [32, 256, 4096]
    assert shapes["NHWC"].x == [32, 256, 1, 4096]
    assert shapes["NHWC"].rest == ([256], [1, 1], [0, 4], [1, 1], False, [0, 0], 1)


def test_conv_transpose_suite() -> None:
    cases = gpu_suites.read_suite(gpu_suites.SUITES / "conv_transpose.tsv")
    assert len({gpu_suites.case_name(case) for case in cases}) == len(cases) == 120
    groups = Counter((case["type"], case["layout"]) for case in cases)
    assert groups == {(kind, layout): 12 for kind in gpu_suites.TYPES for layout in ("NCHW", "NHWC")}
    assert {len(gpu_suites.numbers(case["spatial"])) for case in cases} == {1, 2, 3}
    assert any(int(case["groups"]) > 1 for case in cases)
    for case in cases:
        shape = gpu_conv_shapes.ConvShape(case)
        assert len(shape.x) == len(shape.w) == len(shape.y) == len(shape.rest[1]) + 2
        assert int(case["C"]) % int(case["groups"]) == int(case["K"]) % int(case["groups"]) == 0
        assert all(o < s for o, s in zip(shape.rest[5], shape.rest[1], strict=True) if o)


def shape_of(suite: str, name: str, layout: str) -> gpu_conv_shapes.ConvShape:
    cases = gpu_suites.read_suite(gpu_suites.SUITES / f"{suite}.tsv")
    return next(gpu_conv_shapes.ConvShape(case) for case in cases if (case["case"], case["layout"]) == (name, layout))


def test_transposed_shapes() -> None:
    """The sizes that the networks have after their up-convolutions."""
    assert shape_of("conv_transpose", "dcgan_rgb", "NCHW").y == [128, 3, 64, 64]
    assert shape_of("conv_transpose", "cyclegan_up", "NHWC").y == [8, 128, 128, 128]
    assert shape_of("conv_transpose", "unet3d_up", "NHWC").y == [2, 64, 32, 96, 96]
    grouped = shape_of("conv_transpose", "grouped_up_28", "NCHW")
    assert (grouped.w, grouped.y) == ([256, 8, 4, 4], [64, 256, 56, 56])
    vocoder = shape_of("conv_transpose", "hifigan_up_s8", "NHWC")
    assert vocoder.y == [16, 128, 1, 2048]
    assert vocoder.rest == ([128], [1, 8], [0, 4], [1, 1], True, [0, 0], 1)


# Suites of layers of one kind, which --suite measures: how many cases each has.
LAYERS = {"sequence": 60, "patches": 59, "large_filters": 57, "uneven_padding": 49, "batch_norm_small": 61}


@pytest.mark.parametrize("suite", LAYERS)
def test_suites_of_one_kind_of_layer(suite: str) -> None:
    cases = gpu_suites.read_suite(gpu_suites.SUITES / f"{suite}.tsv")
    assert len({gpu_suites.case_name(case) for case in cases}) == len(cases) == LAYERS[suite]
    types = Counter((case["type"], case["layout"]) for case in cases)
    expected = {"f16", "bf16", "f32", "f64"} if suite == "batch_norm_small" else set(gpu_suites.TYPES)
    assert set(types) >= {(kind, layout) for kind in expected for layout in ("NCHW", "NHWC")}
    assert 2 * sum(types[kind, layout] for kind in ("f16", "bf16") for layout in ("NCHW", "NHWC")) > len(cases)
    for case in cases if suite != "batch_norm_small" else []:
        shape = gpu_conv_shapes.ConvShape(case)
        assert min(shape.y) > 0
        assert int(case["C"]) % int(case["groups"]) == int(case["K"]) % int(case["groups"]) == 0
        largest = max(math.prod(shape.x), math.prod(shape.y)) * gpu_suites.SIZES[case["type"]]
        assert 1.6e6 < largest < 4.2e8, case


def test_named_kinds() -> None:
    """Layers that were named as slow, and wide ones in TF32 and half, of 256 to 1280 channels in both layouts."""
    cases = gpu_suites.read_suite(gpu_suites.SUITES / "named_kinds.tsv")
    assert len({gpu_suites.case_name(case) for case in cases}) == len(cases) == 26
    wide = [case for case in cases if case["case"].startswith("wide_") and case["type"] == "tf32"]
    assert {int(case["C"]) for case in wide} == {256, 320, 512, 1280}
    assert Counter(case["layout"] for case in wide) == {"NCHW": 5, "NHWC": 5}
    for case in cases:
        shape = gpu_conv_shapes.ConvShape(case)
        assert min(shape.y) > 0
        assert int(case["C"]) % int(case["groups"]) == int(case["K"]) % int(case["groups"]) == 0


def test_planes_of_small_batch_normalizations() -> None:
    cases = gpu_suites.read_suite(gpu_suites.SUITES / "batch_norm_small.tsv")
    shapes = [gpu_suites.numbers(case["shape"]) for case in cases]
    assert {len(shape) for shape in shapes} == {2, 3, 4}
    assert all(math.prod(shape[2:]) <= 400 for shape in shapes if len(shape) == 4)
    assert all(case["case"] == case["shape"].replace(",", "x") for case in cases)


def test_suites_without_a_part_of_their_own_are_in_the_tables() -> None:
    names = {path.stem for path in gpu_suites.SUITES.glob("*.tsv")}
    assert names == set(gpu_summary.SUITE_OF.values()) | set(gpu_summary.OTHER_SUITES)


def test_a_name_is_of_one_layer() -> None:
    """Of all suites of a kind: the newest figures of a case are found by its name."""
    found: dict[tuple[bool, str], dict[str, str]] = {}
    for path in gpu_suites.SUITES.glob("*.tsv"):
        for case in gpu_suites.read_suite(path):
            columns = {"pad_end": case.get("pad", ""), **case}
            kind = "shape" in case
            assert found.setdefault((kind, gpu_suites.case_name(case)), columns) == columns, path


def test_padding_of_one_end() -> None:
    """PyTorch is told of what both ends have, and its x is as long as what torch.nn.functional.pad makes."""
    causal = shape_of("sequence", "wavenet_3_d64_causal", "NCHW")
    assert (causal.x, causal.y) == ([8, 128, 8192], [8, 256, 8192])
    assert (causal.x_ahead, causal.torch_x, causal.torch_y) == ([128], [8, 128, 8320], causal.y)
    assert causal.rest == ([256], [1], [0], [64], False, [0], 1)
    last = shape_of("sequence", "wavenet_3_d64_causal", "NHWC")
    assert (last.x_ahead, last.torch_x, last.y) == ([0, 128], [8, 128, 1, 8320], [8, 256, 1, 8192])
    up = {"N": "2", "C": "16", "K": "8", "groups": "1", "spatial": "12", "kernel": "8", "stride": "4", "pad": "1"}
    up |= {"pad_end": "3", "dilation": "1", "output_padding": "0", "layout": "NCHW"}
    shape = gpu_conv_shapes.ConvShape(up)
    assert (shape.y, shape.torch_y, shape.torch_x) == ([2, 8, 48], [2, 8, 50], shape.x)
    assert (shape.y_ahead, shape.rest[2]) == ([-2], [1])


@pytest.mark.parametrize("suite", ["conv", "conv_transpose", "sequence", "patches", "large_filters", "uneven_padding"])
def test_shapes_are_those_that_pytorch_finds(suite: str) -> None:
    torch: Any = pytest.importorskip("torch")
    for case in gpu_suites.read_suite(gpu_suites.SUITES / f"{suite}.tsv"):
        shape = gpu_conv_shapes.ConvShape(case)
        x, w = (torch.empty(dims, device="meta") for dims in (shape.torch_x, shape.w))
        _, stride, pad, dilation, transposed, output_padding, groups = shape.rest
        y = torch.ops.aten.convolution(x, w, None, stride, pad, dilation, transposed, output_padding, groups)
        assert list(y.shape) == shape.torch_y, case


def test_a_suite_is_written_as_it_is_read(tmp_path: Path) -> None:
    cases = gpu_conv_shapes.batch_cases()
    gpu_suites.write_suite(cases, tmp_path / "suite.tsv")
    assert gpu_suites.read_suite(tmp_path / "suite.tsv") == cases


def test_batches() -> None:
    cases = gpu_conv_shapes.batch_cases()
    assert len({gpu_suites.case_name(case) for case in cases}) == len(cases) == 5 * 6 * 2
    assert {case["layout"] for case in cases} == {"NHWC"}
    assert [int(case["N"]) for case in cases] == sorted(int(case["N"]) for case in cases)
    for case in cases:
        layer, batch = gpu_conv_shapes.layer_and_batch(case["case"])
        assert layer in gpu_conv_shapes.BATCH_LAYERS
        assert batch == int(case["N"])


def test_all_parts_are_run_unless_some_are_named() -> None:
    def chosen(*arguments: str) -> list[str]:
        options = gpu_benchmark.parse(["--program", "none", *arguments])
        return [part.name for part in gpu_benchmark.chosen_parts(options)]

    assert (
        chosen()
        == list(PARTS)
        == [
            "batch_norm",
            "batch_norm_relu",
            "conv",
            "conv_transpose",
            "batches",
            "workspaces",
        ]
    )
    assert chosen("--only", "conv_transpose") == ["conv_transpose"]
    assert chosen("--batches") == ["batches"]
    assert chosen("--batches", "--workspaces") == ["batches", "workspaces"]
    assert chosen("--only", "conv", "--workspaces") == ["conv", "workspaces"]


def test_a_suite_of_ones_own_is_of_the_part_that_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.tsv"
    case = {**gpu_suites.read_suite(gpu_suites.SUITES / "conv.tsv")[0], "case": "mine"}
    gpu_suites.write_suite([case], path)
    arguments = ["--program", "none", "--suite", str(path)]
    parts = gpu_benchmark.chosen_parts(gpu_benchmark.parse([*arguments, "--only", "conv", "--workspaces"]))
    assert [part.name for part in parts] == ["conv", "workspaces"]
    assert parts[0].cases() == [case]
    assert parts[1].cases() == gpu_conv_shapes.sweep_cases()
    with pytest.raises(SystemExit):
        gpu_benchmark.parse(arguments)
    assert "--only" in capsys.readouterr().err


@pytest.mark.usefixtures("clock")
def test_parts_share_the_time() -> None:
    parts = list(PARTS.values())
    assert gpu_benchmark.deadline_of(parts, math.inf) == math.inf
    assert gpu_benchmark.deadline_of(parts[-1:], 100) == 100
    assert gpu_benchmark.deadline_of(parts[-2:], 100) == 50
    assert gpu_benchmark.deadline_of(parts, -100) == 0


def test_a_filter_takes_cases_and_none_left_is_no_error(tmp_path: Path) -> None:
    case = {"case": "a", "type": "f16", "layout": "NHWC"}
    assert [gpu_suites.is_wanted(case, filters) for filters in ("", "b,a f16", "b")] == [True, True, False]
    assert run_fake(tmp_path, [], time.monotonic() + 60)["left_out"] == {"batch_norm": 0}


def test_batches_have_as_many_samples_by_pytorch() -> None:
    peer: Any = FakePeer()
    line: dict[str, Any] = {"results": {"sets": 3, "ours": {"benchmark": {"all": {"samples": 5}}}}}
    gpu_benchmark.measure_torch(peer, PARTS["batches"], {"case": "a"}, line)
    assert line["torch"] == {"all": {"parts": ["all"], "sets": 3, "samples": 5}}
    failed: dict[str, Any] = {"error": "no memory"}
    gpu_benchmark.measure_torch(peer, PARTS["batches"], {"case": "a"}, failed)
    assert failed["torch"] == {"all": {"parts": ["all"], "sets": 2, "samples": None}}


def test_workspaces_are_not_pytorchs_matter() -> None:
    peer: Any = FakePeer()
    line: dict[str, Any] = {}
    gpu_benchmark.measure_torch(peer, PARTS["workspaces"], {"case": "a"}, line)
    assert line == {}
    assert peer.seen == []
