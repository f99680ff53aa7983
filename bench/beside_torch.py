"""Calls of ours beside PyTorch's on one GPU, for bench/elementwise.py, bench/pooling.py and bench/rows.py.

Each call is captured into a CUDA graph with others on tensors of their own, so that caches are as cold as in use and
the host does not count; the median of the graph's replays is divided by its calls. "Of copy" compares the bytes that a
call cannot do without with a kernel of PyTorch's that reads and writes 1 GiB of floats in the same run: the driver's
own copies are slower.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

TYPES = {"float": torch.float32, "double": torch.float64, "half": torch.float16, "bf16": torch.bfloat16}
BYTES_IN_FLIGHT = 3e8  # of all sets of tensors: several times the caches
CALLS = 24
REPLAYS = 9

Call = Callable[..., Any]

# Each case has kernels made for its shape, of which a process may have as many as there are cases.
torch._dynamo.config.recompile_limit = torch._dynamo.config.accumulated_recompile_limit = 1 << 20


@dataclass(frozen=True)
class Case:
    """One operator on one shape; `tensors` draws the arguments that ours and each peer take."""

    op: str
    type_name: str
    shape: str
    ours: Call
    peers: Mapping[str, Call]
    tensors: Callable[[], tuple[Any, ...]]
    least_bytes: Callable[[tuple[Any, ...]], int]


def milliseconds(call: Call, sets: Sequence[tuple[Any, ...]]) -> float:
    """The time of one call; the sets of arguments take turns."""
    for arguments in sets:
        call(*arguments)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    rounds = max(1, CALLS // len(sets))
    with torch.cuda.graph(graph):
        for _ in range(rounds):
            for arguments in sets:
                call(*arguments)
    times: list[float] = []
    for _ in range(REPLAYS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(float(begin.elapsed_time(end)) / (rounds * len(sets)))
    return statistics.median(times)


def run(description: str, cases: Iterable[Case]) -> None:
    """The command line of a benchmark: measures the cases that --only names, prints a table, and writes it as data."""
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("--only", type=re.compile, help="an expression that is searched in OPERATOR TYPE SHAPE")
    parser.add_argument("--peers", type=re.compile, default=re.compile(""), help="an expression that peers match")
    parser.add_argument("--json", type=Path, help="where the results go as data")
    arguments = parser.parse_args()
    copy = copy_bytes_per_millisecond()
    results: dict[str, Any] = {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "copy_gb_s": copy / 1e6,
        "cases": [],
    }
    print(f"copy {copy / 1e6:.0f} GB/s\n| operator | type | shape | us | of copy | peers' times over ours |")
    print("|---|---|---|---|---|---|")
    for case in cases:
        if arguments.only and not arguments.only.search(f"{case.op} {case.type_name} {case.shape}"):
            continue
        measured = measure(case, arguments.peers)
        results["cases"].append(measured)
        share = measured["bytes"] / measured["ms"] / copy
        ratios = ", ".join(
            f"{name} {time / measured['ms']:.2f}" if time else f"{name} fails"
            for name, time in measured["peers_ms"].items()
        )
        row = f"| {case.op} | {case.type_name} | {case.shape} | {measured['ms'] * 1e3:.2f} | {share:.2f} | {ratios} |"
        print(row, flush=True)
        if arguments.json:
            arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def compiled(formula: Call, inputs: int) -> Call:
    """What torch.compile makes of a formula; called with the tensors of a case, the first of which it takes."""
    kernels = torch.compile(formula, dynamic=False)
    return lambda *tensors: kernels(*tensors[:inputs])


def wide(dtype: torch.dtype) -> torch.dtype:
    """What sums of a type are made in."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def bytes_of(places: Sequence[int], tensors: tuple[Any, ...]) -> int:
    """The bytes of those at the places."""
    return sum(int(tensors[place].nbytes) for place in places)


def copy_bytes_per_millisecond() -> float:
    source, target = (torch.rand(1 << 28, device="cuda") for _ in range(2))
    size = int(source.nbytes)
    return 2 * size / milliseconds(lambda one, to: torch.neg(one, out=to), [(source, target)])


def milliseconds_of_peer(peer: Call, sets: Sequence[tuple[Any, ...]]) -> float | None:
    """None where the peer fails: torch.compile makes kernels that do not compile."""
    try:
        return milliseconds(peer, sets)
    except Exception as error:
        print(f"{type(error).__name__}: {error}".partition("\n")[0], file=sys.stderr, flush=True)
        return None


def measure(case: Case, wanted: re.Pattern[str]) -> dict[str, Any]:
    first = case.tensors()
    size = case.least_bytes(first)
    count = min(8, max(2, 1 + int(BYTES_IN_FLIGHT // max(size, 1))))
    sets = [first, *(case.tensors() for _ in range(count - 1))]
    time = milliseconds(case.ours, sets)
    peers = {name: milliseconds_of_peer(peer, sets) for name, peer in case.peers.items() if wanted.search(name)}
    return {"op": case.op, "type": case.type_name, "shape": case.shape, "bytes": size, "ms": time, "peers_ms": peers}
