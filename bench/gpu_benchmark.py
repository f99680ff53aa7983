#!/usr/bin/env python3
"""Gradsmith, cuDNN's legacy API and PyTorch on the same GPU, case by case.

    python3 bench/gpu_benchmark.py --program build/gpu/bench/gpu_benchmark [--out FOLDER] [--time-limit 340]

The program gpu_benchmark is run in steps: it measures a case and waits while PyTorch measures the same one, so that
both find the same clocks. A control (a matrix product and a copy) is timed before and after. Results are checked
first, on small shapes, against PyTorch in float64 on the CPU. docs/performance.md says how times are taken.

Writes results.json, results.md, summary.txt and charts; exits with 1 where a goal is missed or a result is wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib
import json
import math
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gpu_report

SUITES = Path(__file__).resolve().parent / "suites"
WARM_UPS = 3
MOST_BUSY = 50.0  # milliseconds
FILLER_BYTES = 1 << 29
SAVED_EVERY = 16  # cases, should the rest come to nothing
DIED = '{"kind": "end", "died": true}'
RUINED = ("CUDA_ERROR_ILLEGAL", "CUDA_ERROR_LAUNCH", "CUDA_ERROR_MISALIGNED")  # nothing works in a process after these
EPSILON = 1e-5
MASKS = {"dX": [True, False, False], "dW": [False, True, False], "dB": [False, False, True], "all": [True, True, True]}
TYPES = {"f16": "float16", "bf16": "bfloat16", "tf32": "float32", "f32": "float32", "f64": "float64"}

# Relative errors (2-norm) that rounding explains, against float64.
LIMITS = {"f16": 1e-3, "bf16": 8e-3, "tf32": 2e-3, "f32": 5e-6, "f64": 1e-13}

CHECK_SUITES = {
    "conv": (
        "case\tN\tC\tK\tgroups\tspatial\tkernel\tstride\tpad\tdilation\ttype\tlayout",
        ["plain\t4\t16\t24\t1\t11,9\t3,3\t1,1\t1,1\t1,1", "grouped\t2\t12\t8\t2\t12,10\t3,3\t2,2\t0,0\t1,1"],
        list(TYPES),
    ),
    "batch_norm": (
        "case\tshape\ttype\tscale_type\tlayout",
        ["small\t6,16,7,9"],
        ["f16\tf32", "f16\tf16", "bf16\tf32", "f32\tf32", "f64\tf64"],
    ),
}


# --- the program ----------------------------------------------------------------------------------------------------


class Program:
    """gpu_benchmark, and the environment in which it finds cuDNN."""

    def __init__(self, path: Path, cudnn: str) -> None:
        self.path = path
        self.environment = dict(os.environ)
        if cudnn:
            self.environment["GRADSMITH_CUDNN_LIBRARY"] = cudnn
            folders = [str(Path(cudnn).parent), *library_folders(Path(cudnn)), os.environ.get("LD_LIBRARY_PATH", "")]
            self.environment["LD_LIBRARY_PATH"] = ":".join(filter(None, folders))

    def lines(self, *arguments: str, cache: Path | None = None) -> list[dict[str, Any]]:
        environment = self.environment | ({"GRADSMITH_CACHE": str(cache) if cache else "off"})
        command = [str(self.path), *arguments]
        output = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
        return [json.loads(line) for line in output.stdout.splitlines()]

    def steps(self, arguments: list[str], deadline: float) -> Iterator[dict[str, Any]]:
        """One line for each case, measured when it is asked for; none after the deadline but the last, which counts."""
        command = [str(self.path), "--step", *arguments]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen(command, env=self.environment, text=True, **pipes) as process:  # type: ignore[call-overload]
            while True:
                line = json.loads(process.stdout.readline() or DIED)
                if line["kind"] == "end":
                    with contextlib.suppress(BrokenPipeError):
                        process.stdin.close()
                    yield line
                    break
                yield line
                with contextlib.suppress(BrokenPipeError, ValueError):  # it has ended, and its last line is to be read
                    if time.monotonic() < deadline:
                        print("go", file=process.stdin, flush=True)
                    else:
                        process.stdin.close()


def library_folders(cudnn: Path) -> list[str]:
    """Where pip has the libraries that its cuDNN needs: site-packages/nvidia/*/lib."""
    nvidia = cudnn.parent.parent.parent
    return sorted(str(folder) for folder in nvidia.glob("*/lib")) if nvidia.name == "nvidia" else []


def cudnn_of_torch() -> str:
    try:
        folders = list(importlib.import_module("nvidia.cudnn").__path__)
    except ImportError:
        return ""
    found = [path for folder in folders for path in Path(folder).glob("lib/libcudnn.so.9*")]
    return str(sorted(found)[0]) if found else ""


# --- PyTorch --------------------------------------------------------------------------------------------------------


class Torch:
    """The peer: the same calls on the same shapes, timed in the same way."""

    def __init__(self, samples: int) -> None:
        self.torch: Any = importlib.import_module("torch")
        self.aten: Any = self.torch.ops.aten
        self.samples = samples
        self.torch.backends.cudnn.benchmark = True
        self.stream = self.torch.cuda.Stream()
        self.torch.cuda.set_stream(self.stream)
        self.filler = self.torch.empty(FILLER_BYTES, dtype=self.torch.uint8, device="cuda")
        self.filler.zero_()
        self.filler_ms = self.elapsed(self.filler.zero_)
        self.next_set = 0

    def elapsed(self, call: Callable[[], Any]) -> float:
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end))

    def time(self, sets: int, call: Callable[[int], Any]) -> dict[str, float]:
        """As Gpu::Time in bench/gpu/measure.cc; outputs are kept, so that they rotate through memory as inputs do."""
        kept: list[Any] = [None] * sets

        def run() -> None:
            self.next_set = (self.next_set + 1) % sets
            kept[self.next_set] = call(self.next_set)

        for _ in range(WARM_UPS - 1):
            run()
        self.torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        busy = min(0.5 + 1.5e3 * (time.perf_counter() - start) * self.samples, MOST_BUSY)
        events = [[self.torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(self.samples)]
        for _ in range(1 + math.ceil(busy / max(self.filler_ms, 0.01))):
            self.filler.fill_(60)
        for begin, end in events:
            begin.record()
            run()
            end.record()
        self.torch.cuda.synchronize()
        times = [begin.elapsed_time(end) for begin, end in events]
        return {"median": statistics.median(times), "minimum": min(times), "samples": len(times)}

    def attempt(self, sets: int, call: Callable[[int], Any]) -> dict[str, Any]:
        try:
            return self.time(sets, call)
        except (RuntimeError, TypeError, ValueError) as error:
            return {"error": first_line(error)}

    def random(self, sets: int, dims: list[int], dtype: str, last: bool) -> list[Any]:
        """For each set a tensor of these dims, uniform in [-1, 1), 256-byte aligned."""
        elements = math.prod(dims)
        padded = (elements + 127) // 128 * 128
        flat = self.torch.empty(sets * padded, dtype=getattr(self.torch, dtype), device="cuda").uniform_(-1, 1)
        views = [flat[i * padded : i * padded + elements] for i in range(sets)]
        if last:
            return [view.view(dims[0], *dims[2:], dims[1]).movedim(-1, 1) for view in views]
        return [view.view(dims) for view in views]

    def conv(self, case: dict[str, str], sets: int) -> dict[str, Any]:
        shape = ConvShape(case)
        self.torch.backends.cudnn.allow_tf32 = case["type"] == "tf32"
        dtype = TYPES[case["type"]]
        x, w, dy = (self.random(sets, dims, dtype, shape.last) for dims in (shape.x, shape.w, shape.y))

        def call(mask: list[bool]) -> Callable[[int], Any]:
            return lambda i: self.aten.convolution_backward.default(dy[i], x[i], w[i], *shape.rest, mask)

        return {part: self.attempt(sets, call(mask)) for part, mask in MASKS.items()}

    def batch_norm(self, case: dict[str, str], sets: int) -> dict[str, Any]:
        dims = numbers(case["shape"])
        last = case["layout"] == "NHWC"
        x, dy = (self.random(sets, dims, TYPES[case["type"]], last) for _ in range(2))
        channel = [self.random(sets, [dims[1]], TYPES[case["scale_type"]], False) for _ in range(4)]
        scale, bias, mean, var = channel
        sources: dict[str, Any] = {"cudnn": {}, "native": {}}
        for source, forward, backward in (
            ("cudnn", self.aten.cudnn_batch_norm.default, self.cudnn_backward),
            ("native", self.aten.native_batch_norm.default, self.native_backward),
        ):

            def forwards(i: int, forward: Any = forward) -> Any:
                return forward(x[i], scale[i], bias[i], mean[i], var[i], True, 0.1, EPSILON)

            sources[source]["forward"] = self.attempt(sets, forwards)
            if "error" in sources[source]["forward"]:
                sources[source]["backward"] = sources[source]["forward"]
                continue
            saved = [forwards(i)[1:] for i in range(sets)]

            def backwards(i: int, backward: Any = backward, saved: Any = saved) -> Any:
                return backward(x[i], dy[i], scale[i], mean[i], var[i], saved[i])

            sources[source]["backward"] = self.attempt(sets, backwards)
        return sources

    def cudnn_backward(self, x: Any, dy: Any, scale: Any, mean: Any, var: Any, saved: Any) -> Any:
        backward = self.aten.cudnn_batch_norm_backward.default
        return backward(x, dy, scale, mean, var, saved[0], saved[1], EPSILON, saved[2])

    def native_backward(self, x: Any, dy: Any, scale: Any, mean: Any, var: Any, saved: Any) -> Any:
        mask = [True, True, True]
        backward = self.aten.native_batch_norm_backward.default
        return backward(dy, x, scale, mean, var, saved[0], saved[1], True, EPSILON, mask)

    def host(self) -> dict[str, float]:
        """Microseconds of a call of the small shape that MeasureHostTime takes, median of 1,000."""
        case = {"N": "2", "C": "16", "K": "16", "groups": "1", "spatial": "8,8", "kernel": "3,3", "stride": "1,1"}
        shape = ConvShape({**case, "pad": "1,1", "dilation": "1,1", "type": "f16", "layout": "NHWC"})
        x, w, dy = (self.random(1, dims, "float16", True)[0] for dims in (shape.x, shape.w, shape.y))
        result = {}
        for name, mask in (("outputs_3", MASKS["all"]), ("outputs_1", MASKS["dW"])):
            times = []
            for round_number in range(-1, 50):
                for _ in range(20):
                    start = time.perf_counter_ns()
                    self.aten.convolution_backward.default(dy, x, w, *shape.rest, mask)
                    if round_number >= 0:
                        times.append((time.perf_counter_ns() - start) / 1e3)
                self.torch.cuda.synchronize()
            result[name] = statistics.median(times)
        return result

    def control(self) -> dict[str, float]:
        """What the machine does: a bf16 matrix product and a copy, and with that whether its clocks drift."""
        size = 8192
        a, b = (self.torch.randn(size, size, dtype=self.torch.bfloat16, device="cuda") for _ in range(2))
        target = self.torch.empty_like(self.filler)
        product = self.time(1, lambda _: a @ b)["median"]
        copy = self.time(1, lambda _: target.copy_(self.filler))["median"]
        return {"matmul_tflops": 2 * size**3 / product / 1e9, "copy_tb_per_s": 2 * FILLER_BYTES / copy / 1e9}

    def tidy(self) -> None:
        if self.torch.cuda.memory_reserved() > 16 << 30:
            self.torch.cuda.empty_cache()


def first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


class ConvShape:
    """Dims and the rest of convolution_backward's arguments; 1-d in NHWC is taken as 2-d of height 1, which is the only
    way to have PyTorch compute it with channels last."""

    def __init__(self, case: dict[str, str]) -> None:
        spatial, kernel, stride, pad, dilation = (
            numbers(case[name]) for name in ("spatial", "kernel", "stride", "pad", "dilation")
        )
        self.last = case["layout"] == "NHWC"
        if self.last and len(spatial) == 1:
            spatial, kernel, stride, dilation = ([1, *values] for values in (spatial, kernel, stride, dilation))
            pad = [0, *pad]
        images, channels, filters, groups = (int(case[name]) for name in ("N", "C", "K", "groups"))
        outputs = [
            (d + 2 * p - a * (k - 1) - 1) // s + 1
            for d, k, s, p, a in zip(spatial, kernel, stride, pad, dilation, strict=True)
        ]
        self.x = [images, channels, *spatial]
        self.w = [filters, channels // groups, *kernel]
        self.y = [images, filters, *outputs]
        self.rest = ([filters], stride, pad, dilation, False, [0] * len(spatial), groups)


# --- correctness ----------------------------------------------------------------------------------------------------


class Checker:
    """Small cases, run by the program and saved, against float64 on the CPU."""

    def __init__(self, program: Program) -> None:
        self.torch: Any = importlib.import_module("torch")
        self.aten: Any = self.torch.ops.aten
        self.program = program

    def check_all(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for kind, (heading, shapes, types) in CHECK_SUITES.items():
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                suite = folder / "suite.tsv"
                lines = [f"{s}\t{t}\t{layout}" for s in shapes for t in types for layout in ("NCHW", "NHWC")]
                suite.write_text("\n".join([heading, *lines]) + "\n", encoding="utf-8")
                cases = {gpu_report.case_name(case): case for case in gpu_report.read_suite(suite)}
                arguments = ["--suite", str(suite), "--save", name, "--samples", "1", "--budget", "0.1"]
                for line in self.program.steps(arguments, time.monotonic() + 90):
                    if line["kind"] == kind:
                        found += self.check(cases[line["name"]], line, folder)
        return found

    def check(self, case: dict[str, str], line: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
        if "error" in line:
            return [{"name": line["name"], "ok": False, "error": None, "text": line["error"]}]
        try:
            pairs = self.conv(case, folder) if line["kind"] == "conv" else self.batch_norm(case, folder)
        except (OSError, RuntimeError, TypeError, ValueError) as failure:
            return [{"name": line["name"], "ok": False, "error": None, "text": first_line(failure)}]
        results = []
        for output, (value, expected, limit) in pairs.items():
            error = float((value - expected).norm() / expected.norm())
            shown = error if math.isfinite(error) else None
            results.append({"name": f"{line['name']} {output}", "ok": error <= limit, "error": shown, "limit": limit})
        return results

    def read(self, folder: Path, name: str, dims: list[int], dtype: str, last: bool) -> Any:
        data = bytearray((folder / f"{name}.bin").read_bytes())
        flat = self.torch.frombuffer(data, dtype=getattr(self.torch, dtype)).double()
        return flat.view(dims[0], *dims[2:], dims[1]).movedim(-1, 1).contiguous() if last else flat.view(dims)

    def conv(self, case: dict[str, str], folder: Path) -> dict[str, Any]:
        shape = ConvShape(case)
        named = {"X": shape.x, "W": shape.w, "dY": shape.y, "dX": shape.x, "dW": shape.w, "dB": [shape.w[0]]}
        tensors = {
            name: self.read(folder, name, dims, TYPES[case["type"]], shape.last and len(dims) > 1)
            for name, dims in named.items()
        }
        expected = self.aten.convolution_backward.default(
            tensors["dY"], tensors["X"], tensors["W"], *shape.rest, MASKS["all"]
        )
        limit = LIMITS[case["type"]]
        # The bias gradient is summed in float also where products are in TF32.
        return {
            name: (tensors[name], wanted, LIMITS["f32"] if (name, case["type"]) == ("dB", "tf32") else limit)
            for name, wanted in zip(("dX", "dW", "dB"), expected, strict=True)
        }

    def batch_norm(self, case: dict[str, str], folder: Path) -> dict[str, Any]:
        dims = numbers(case["shape"])
        last = case["layout"] == "NHWC"
        kind, scale_kind = case["type"], case["scale_type"]
        stats_kind = "f64" if kind == "f64" else "f32"
        x, dy, y, dx = (self.read(folder, name, dims, TYPES[kind], last) for name in ("X", "dY", "Y", "dX"))
        channels = [1, dims[1], *[1] * (len(dims) - 2)]

        def of_channels(name: str, which: str) -> Any:
            return self.read(folder, name, [dims[1]], TYPES[which], False).view(channels)

        scale, bias, dscale, dbias = (of_channels(name, scale_kind) for name in ("scale", "B", "dScale", "dBias"))
        mean, inv_std = (of_channels(name, stats_kind) for name in ("saved_mean", "saved_inv_std"))
        axes = [axis for axis in range(len(dims)) if axis != 1]
        expected_mean = x.mean(axes, keepdim=True)
        expected_inv_std = (x.var(axes, unbiased=False, keepdim=True) + EPSILON).rsqrt()
        normalized = (x - expected_mean) * expected_inv_std
        expected_dscale = (dy * normalized).sum(axes, keepdim=True)
        expected_dbias = dy.sum(axes, keepdim=True)
        count = x.numel() / dims[1]
        expected_dx = scale * expected_inv_std * (dy - (expected_dbias + normalized * expected_dscale) / count)
        return {
            "Y": (y, scale * normalized + bias, LIMITS[kind]),
            "saved_mean": (mean, expected_mean, LIMITS[stats_kind]),
            "saved_inv_std": (inv_std, expected_inv_std, LIMITS[stats_kind]),
            "dX": (dx, expected_dx, LIMITS[kind]),
            "dScale": (dscale, expected_dscale, LIMITS[scale_kind]),
            "dBias": (dbias, expected_dbias, LIMITS[scale_kind]),
        }


# --- the run --------------------------------------------------------------------------------------------------------


def only_line(program: Program, *arguments: str, cache: Path | None = None) -> dict[str, Any]:
    try:
        found: dict[str, Any] = program.lines(*arguments, cache=cache)[-1]["results"]
    except (subprocess.CalledProcessError, IndexError, KeyError) as error:
        print(f"{shlex.join(arguments)}: {error}", file=sys.stderr)
        return {"error": str(error)}
    return found


def first_calls(program: Program) -> dict[str, Any]:
    """Each in a process of its own; those named `again` find the cache file that the one before left."""

    def once(mode: str, cache: Path | None) -> dict[str, Any]:
        return only_line(program, "--first-calls", mode, "--budget", "0.5", cache=cache)

    with tempfile.TemporaryDirectory() as name:
        heuristic, benchmark = Path(name) / "heuristic.txt", Path(name) / "benchmark.txt"
        return {
            "cold": once("heuristic", None),  # also reads cuDNN from the disk
            "heuristic": once("heuristic", None),
            "heuristic_kept": once("heuristic", heuristic),
            "heuristic_again": once("heuristic", heuristic),
            "benchmark_kept": once("benchmark", benchmark),
            "benchmark_again": once("benchmark", benchmark),
        }


def run_suite(
    program: Program, peer: Torch, kind: str, options: argparse.Namespace, deadline: float, results: dict[str, Any]
) -> None:
    """Measures a suite. Where the program dies of a case that is the result, and a new process begins with the next."""
    suite = SUITES / f"{kind}.tsv"
    cases = {
        name: case
        for case in gpu_report.read_suite(suite)
        if is_wanted(name := gpu_report.case_name(case), options.filter)
    }
    names = list(cases)
    arguments = ["--suite", str(suite), "--budget", str(options.budget), "--samples", str(options.samples)]
    if options.filter:
        arguments += ["--filter", options.filter]
    done = 0
    begins = True
    while done < len(names) and begins and time.monotonic() < deadline:
        begins = False
        for line in program.steps([*arguments, "--skip", str(done)], deadline):
            if line["kind"] == "machine":
                begins = True
                results["machine"].update({"gpu": line["gpu"], "cudnn": line["cudnn"]})
                continue
            if line["kind"] == "end":
                if not line.get("died") or not begins:
                    break
                case = cases[names[done]]
                line = {"kind": kind, "name": names[done], "error": "the program died", **case}
            measure_torch(peer, cases[line["name"]], line)
            results["cases"].append(line)
            done += 1
            if len(results["cases"]) % SAVED_EVERY == 0:
                gpu_report.write_json(results, options.out)
            if line.get("error") == "the program died" or any(text in json.dumps(line) for text in RUINED):
                break
    results["left_out"][kind] = len(names) - done


def is_wanted(name: str, filters: str) -> bool:
    """As the program's --filter."""
    return not filters or any(part in name for part in filters.split(","))


def measure_torch(peer: Torch, case: dict[str, str], line: dict[str, Any]) -> None:
    start = time.monotonic()
    sets = int(line.get("results", {}).get("sets", 2))
    try:
        line["torch"] = (peer.conv if line["kind"] == "conv" else peer.batch_norm)(case, sets)
    except (RuntimeError, TypeError, ValueError) as error:
        line["torch"] = {"error": first_line(error)}
    peer.tidy()
    line["torch_seconds"] = round(time.monotonic() - start, 3)


def output_of(*command: str) -> str:
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def machine(peer: Torch) -> dict[str, str]:
    torch = peer.torch
    return {
        "gpu": torch.cuda.get_device_name(0),
        "driver": output_of("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"),
        "cudnn": "",
        "torch": f"{torch.__version__}, cuDNN {torch.backends.cudnn.version()}",
        "commit": os.environ.get("COMMIT") or output_of("git", "rev-parse", "HEAD"),
        "command": shlex.join(sys.argv),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


def missing(program: Path) -> list[str]:
    """What this machine lacks for the benchmark."""
    lacking = []
    if not program.exists():
        lacking.append(f"the program {program} (build it with -DGRADSMITH_CUDA=ON -DGRADSMITH_BUILD_BENCHMARKS=ON)")
    try:
        torch: Any = importlib.import_module("torch")
        if not torch.cuda.is_available():
            lacking.append("a GPU that PyTorch can use")
    except ImportError as error:
        lacking.append(f"PyTorch ({error})")
    return lacking


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True, help="gpu_benchmark, as it was built")
    parser.add_argument("--out", type=Path, default=Path("gpu-results"), help="folder of the results")
    parser.add_argument("--cudnn", default=os.environ.get("GRADSMITH_CUDNN_LIBRARY"), help="default: that of PyTorch")
    parser.add_argument("--filter", default="", help="only cases whose name contains one of these, as ' f16 , tf32 '")
    parser.add_argument("--only", choices=["conv", "batch_norm"], help="one suite")
    parser.add_argument("--cases-only", action="store_true", help="no checks, no host times, no first calls")
    parser.add_argument("--budget", type=float, default=1.0, help="seconds for each search")
    parser.add_argument("--samples", type=int, default=24, help="timed calls for each figure")
    parser.add_argument("--time-limit", type=float, default=340, help="seconds after which no case is begun")
    options = parser.parse_args()
    start = time.monotonic()
    lacking = missing(options.program)
    if lacking:
        print(f"gpu_benchmark.py: missing: {'; '.join(lacking)}", file=sys.stderr)
        return 1
    options.out.mkdir(parents=True, exist_ok=True)
    program = Program(options.program.resolve(), options.cudnn or cudnn_of_torch())
    results: dict[str, Any] = {"cases": [], "left_out": {}}
    if not options.cases_only:
        results["first_calls"] = first_calls(program)
    peer = Torch(options.samples)
    results["machine"] = machine(peer)
    if not options.cases_only:
        results["checks"] = Checker(program).check_all()
        results["host"] = {"ours": only_line(program, "--host"), "torch": peer.host()}
    for check in results.get("checks", []):
        if not check["ok"]:
            print(f"WRONG: {check}", file=sys.stderr)
    results["control"] = {"start": peer.control()}
    print(f"prepared in {time.monotonic() - start:.0f} s", file=sys.stderr)
    kinds = [options.only] if options.only else ["batch_norm", "conv"]
    for kind in kinds:
        left = start + options.time_limit - time.monotonic()
        share = 0.25 if kind != kinds[-1] else 1.0
        run_suite(program, peer, kind, options, time.monotonic() + share * left, results)
    results["control"]["end"] = peer.control()
    results["seconds"] = time.monotonic() - start
    gpu_report.write(results, options.out)
    return 1 if any(goal.verdict == "MISSED" for goal in gpu_report.goals(results)) else 0


if __name__ == "__main__":
    sys.exit(main())
