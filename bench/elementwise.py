"""Element-wise gradients beside PyTorch's on one GPU: python bench/elementwise.py [--json FILE]

Each call is captured into a CUDA graph with others on tensors of their own, so that caches are as cold as in use and
the host does not count; the median of the graph's replays is divided by its calls. Bytes are those of every input read
once and every output written once; "of copy" compares with a kernel of PyTorch's that reads and writes 1 GiB of floats
in the same run (the driver's own copies are slower).
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gradsmith
import torch

TYPES = {"float": torch.float32, "double": torch.float64, "half": torch.float16, "bf16": torch.bfloat16}
SHAPES = [
    ((8192, 4096), False),
    ((32, 256, 56, 56), False),
    ((32, 256, 56, 56), True),
    ((8192, 999), False),
    ((262144, 64), False),
    ((7, 33, 55, 57), False),
    ((4096,), False),
]
BYTES_IN_FLIGHT = 3e8  # of all sets of tensors: several times the caches
CALLS = 24
REPLAYS = 9

backward = torch.ops.aten
OPERATORS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "SigmoidGrad": (
        lambda dy, y, dx: gradsmith.sigmoid_grad(dy, y, out={"dX": dx}),
        lambda dy, y, dx: backward.sigmoid_backward.grad_input(dy, y, grad_input=dx),
    ),
    "LeakyReluGrad": (
        lambda dy, x, dx: gradsmith.leaky_relu_grad(dy, x, out={"dX": dx}),
        lambda dy, x, dx: backward.leaky_relu_backward.grad_input(dy, x, 0.01, False, grad_input=dx),
    ),
}


def milliseconds(call: Callable[..., Any], sets: Sequence[tuple[Any, ...]]) -> float:
    """Of one call; the sets of arguments take turns."""
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


def tensors(dims: tuple[int, ...], channels_last: bool, dtype: torch.dtype) -> tuple[Any, ...]:
    """Of a gradient, an input between 0 and 1, and an output."""
    made = (draw(dims, device="cuda").to(dtype) for draw in (torch.randn, torch.rand, torch.zeros))
    return tuple(one.to(memory_format=torch.channels_last) if channels_last else one for one in made)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, help="where the results go as data")
    arguments = parser.parse_args()
    source, target = (torch.rand(1 << 28, device="cuda") for _ in range(2))
    copy = 2 * source.nbytes / milliseconds(lambda one, to: torch.neg(one, out=to), [(source, target)])
    del source, target
    results = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "copy_gb_s": copy / 1e6, "cases": []}
    print(f"copy {copy / 1e6:.0f} GB/s\n| operator | type | shape | us | of copy | PyTorch's time over ours |")
    print("|---|---|---|---|---|---|")
    for name, (ours, peer) in OPERATORS.items():
        for type_name, dtype in TYPES.items():
            for dims, channels_last in SHAPES:
                size = 3 * math.prod(dims) * dtype.itemsize
                count = min(8, max(2, 1 + int(BYTES_IN_FLIGHT // size)))
                sets = [tensors(dims, channels_last, dtype) for _ in range(count)]
                time, of_peer = milliseconds(ours, sets), milliseconds(peer, sets)
                shape = "x".join(map(str, dims)) + (" NHWC" if channels_last else "")
                case = {"op": name, "type": type_name, "shape": shape, "ms": time, "torch_ms": of_peer, "bytes": size}
                results["cases"].append(case)
                figures = f"{time * 1e3:.2f} | {size / time / copy:.2f} | {of_peer / time:.2f}"
                print(f"| {name} | {type_name} | {shape} | {figures} |", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
