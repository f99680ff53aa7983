"""PyTorch, the peer of the GPU benchmark: the same calls on the same shapes, timed in the same way."""

from __future__ import annotations

import importlib
import math
import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

from gpu_suites import TYPES, ConvShape, numbers

WARM_UPS = 3
MOST_BUSY = 50.0  # milliseconds
FILLER_BYTES = 1 << 29
EPSILON = 1e-5
MASKS = {"dX": [True, False, False], "dW": [False, True, False], "dB": [False, False, True], "all": [True, True, True]}


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

    def conv(
        self, case: dict[str, str], sets: int, parts: Iterable[str] = MASKS, samples: int | None = None
    ) -> dict[str, Any]:
        """Of a convolution or a transposed one, for each part what it takes."""
        shape = ConvShape(case)
        self.torch.backends.cudnn.allow_tf32 = case["type"] == "tf32"
        dtype = TYPES[case["type"]]
        x, w, dy = (self.random(sets, dims, dtype, shape.last) for dims in (shape.torch_x, shape.w, shape.torch_y))

        def call(mask: list[bool]) -> Callable[[int], Any]:
            return lambda i: self.aten.convolution_backward.default(dy[i], x[i], w[i], *shape.rest, mask)

        return {part: self.attempt(sets, call(MASKS[part]), samples) for part in parts}

    def batch_norm(self, case: dict[str, str], sets: int, relu: bool = False) -> dict[str, Any]:
        """By cuDNN's path and by PyTorch's own kernels; with ReLU by one operator more, forward and backward."""
        dims = numbers(case["shape"])
        last = case["layout"] == "NHWC"
        if last and len(dims) == 3:
            dims.insert(2, 1)  # as ConvShape: nothing is channels last with one axis
        x, dy = (self.random(sets, dims, TYPES[case["type"]], last) for _ in range(2))
        channel = [self.random(sets, [dims[1]], TYPES[case["scale_type"]], False) for _ in range(4)]
        scale, bias, mean, var = channel
        sources: dict[str, Any] = {"cudnn": {}, "native": {}}
        for source, forward, backward in (
            ("cudnn", self.aten.cudnn_batch_norm.default, self.cudnn_backward),
            ("native", self.aten.native_batch_norm.default, self.native_backward),
        ):

            def forwards(i: int, forward: Any = forward) -> Any:
                y, *saved = forward(x[i], scale[i], bias[i], mean[i], var[i], True, 0.1, EPSILON)
                return (self.aten.relu_.default(y) if relu else y, *saved)

            sources[source]["forward"] = self.attempt(sets, forwards)
            if "error" in sources[source]["forward"]:
                sources[source]["backward"] = sources[source]["forward"]
                continue
            given = [forwards(i) for i in range(sets)]

            def backwards(i: int, backward: Any = backward, given: Any = given) -> Any:
                y, *saved = given[i]
                upstream = self.aten.threshold_backward.default(dy[i], y, 0) if relu else dy[i]
                return backward(x[i], upstream, scale[i], mean[i], var[i], saved)

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
