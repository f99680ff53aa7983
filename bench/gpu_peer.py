"""PyTorch, the peer of the GPU benchmark: the same calls on the same shapes, timed in the same way."""

from __future__ import annotations

import importlib
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

WARM_UPS = 3
MOST_BUSY = 50.0  # milliseconds
FILLER_BYTES = 1 << 29


class Torch:
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

    def time(self, sets: int, call: Callable[[int], Any], samples: int | None = None) -> dict[str, float]:
        """As Gpu::Time in bench/gpu/measure.cc; outputs are kept, so that they rotate through memory as inputs do."""
        samples = samples or self.samples
        kept: list[Any] = [None] * sets

        def run() -> None:
            self.next_set = (self.next_set + 1) % sets
            kept[self.next_set] = call(self.next_set)

        for _ in range(max(WARM_UPS, 2 * sets) - 1):
            run()
        self.torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        busy = min(0.5 + 1.5e3 * (time.perf_counter() - start) * samples, MOST_BUSY)
        events = [[self.torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(samples)]
        for _ in range(1 + math.ceil(busy / max(self.filler_ms, 0.01))):
            self.filler.fill_(60)
        for begin, end in events:
            begin.record()
            run()
            end.record()
        self.torch.cuda.synchronize()
        times = [begin.elapsed_time(end) for begin, end in events]
        return {"median": statistics.median(times), "minimum": min(times), "samples": len(times)}

    def attempt(self, sets: int, call: Callable[[int], Any], samples: int | None = None) -> dict[str, Any]:
        try:
            return self.time(sets, call, samples)
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

    def control(self) -> dict[str, Any]:
        """What the machine does: a bf16 matrix product and a copy, and with that whether its clocks drift. An error of
        a case may have left PyTorch unable to say."""
        size = 8192
        try:
            a, b = (self.torch.randn(size, size, dtype=self.torch.bfloat16, device="cuda") for _ in range(2))
            target = self.torch.empty_like(self.filler)
            product = self.time(1, lambda _: a @ b)["median"]
            copy = self.time(1, lambda _: target.copy_(self.filler))["median"]
        except RuntimeError as error:
            return {"error": first_line(error)}
        return {"matmul_tflops": 2 * size**3 / product / 1e9, "copy_tb_per_s": 2 * FILLER_BYTES / copy / 1e9}

    def tidy(self) -> None:
        if self.torch.cuda.memory_reserved() > 16 << 30:
            self.torch.cuda.empty_cache()


def first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def sets_of(line: dict[str, Any]) -> int:
    """Of arguments, as many as the program has made."""
    return int((line.get("results") or {}).get("sets", 2))
