"""Figures of a case that gpu_benchmark.py measured, and the ratios that they make.

Times are medians in milliseconds; a ratio above 1 says that gradsmith is faster.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

Case = dict[str, Any]  # a line of gpu_benchmark, with PyTorch's figures under "torch"

CONV_PARTS = ("dX", "dW", "dB", "all")
BATCH_NORM_PARTS = ("forward", "backward")
PARTS = {
    "conv": CONV_PARTS,
    "conv_transpose": CONV_PARTS,
    "batch_norm": BATCH_NORM_PARTS,
    "batch_norm_relu": BATCH_NORM_PARTS,
}


def is_batch_norm(case: Case) -> bool:
    return PARTS[case["kind"]] is BATCH_NORM_PARTS


def gradient_part(case: Case) -> str:
    """The part that is all of the gradient."""
    return "backward" if is_batch_norm(case) else "all"


def figure_at(figures: Any, *path: str) -> float | None:
    for key in path:
        figures = figures.get(key) if isinstance(figures, dict) else None
    return float(figures) if isinstance(figures, int | float) and figures else None


def ours(case: Case, part: str, mode: str = "benchmark", figure: str = "median") -> float | None:
    where = ["ours", mode, part]
    if is_batch_norm(case):
        where = ["ours", part] if mode == "benchmark" else [mode, part]
    return figure_at(case.get("results"), *where, figure)


def legacy(case: Case, part: str, figure: str = "median") -> float | None:
    return figure_at(case.get("results"), "legacy", part, figure)


def torch_time(case: Case, part: str) -> float | None:
    """Of batch normalization the better of PyTorch's two: its cuDNN path and its own kernels."""
    if not is_batch_norm(case):
        return figure_at(case.get("torch"), part, "median")
    times = [figure_at(case.get("torch"), source, part, "median") for source in ("cudnn", "native")]
    return min((time for time in times if time is not None), default=None)


def ratio(theirs: float | None, own: float | None) -> float | None:
    return None if theirs is None or own is None else theirs / own


def torch_ratio(case: Case) -> float | None:
    """Of all that training needs: dX, dW and dB, or dX, dScale and dBias."""
    part = gradient_part(case)
    return ratio(torch_time(case, part), ours(case, part))


def heuristic_ratio(case: Case) -> float | None:
    """The same, where ours were chosen without a search."""
    part = gradient_part(case)
    return ratio(torch_time(case, part), ours(case, part, "heuristic"))


def first_call(case: Case) -> float | None:
    """Milliseconds of the host until all gradients of a new shape are there, without a search."""
    return figure_at(case.get("results"), "first_call_ms")


def legacy_ratio(case: Case) -> float | None:
    """Of dX, dW and dB one after the other, as ONNX Runtime's ops call them, to ours in one call; there is none where
    the legacy API lacks dX or dW."""
    if is_batch_norm(case):
        return ratio(legacy(case, "backward"), ours(case, "backward"))
    theirs = [legacy(case, part) for part in ("dX", "dW")]
    own = [ours(case, part) for part in ("dX", "dW")]
    if (bias := legacy(case, "dB")) is not None:
        theirs.append(bias)
        own = [ours(case, "all")]
    return None if None in theirs or None in own else sum(filter(None, theirs)) / sum(filter(None, own))


def geometric_mean(values: Iterable[float]) -> float:
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else math.nan


def group_of(case: Case) -> str:
    scale = f"/{case['scale_type']}" if case.get("scale_type") else ""
    return f"{case['type']}{scale} {case['layout']}"


def of_kind(results: dict[str, Any], kind: str) -> list[Case]:
    return [case for case in results["cases"] if case["kind"] == kind]


def ratios_by_group(
    cases: Iterable[Case], ratio_of: Callable[[Case], float | None]
) -> dict[str, list[tuple[str, float]]]:
    """For each type and layout the cases that have a ratio, in the order in which they were measured."""
    groups: dict[str, list[tuple[str, float]]] = {}
    for case in cases:
        value = ratio_of(case)
        if value is not None:
            groups.setdefault(group_of(case), []).append((case["case"], value))
    return groups


# --- what a case asks of the machine --------------------------------------------------------------------------------


def operations(case: Case) -> float | None:
    """Floating-point operations of the gradient: of a convolution dX and dW, which dB is small beside."""
    counted = figure_at(case.get("results"), "operations")
    return None if counted is None else counted * (1 if is_batch_norm(case) else 2)


def moved_bytes(case: Case) -> float | None:
    """What the gradient moves at least: every input read once, every output written once."""
    # A set of a convolution's tensors is all inputs and outputs of its gradient; a batch normalization's is more.
    return figure_at(case.get("results"), "bytes" if is_batch_norm(case) else "set_bytes")


L2_BYTES = 50e6  # of an H100 or H200


def image_bytes(case: Case) -> float:
    """Of a batch normalization's X, dY or dX."""
    return (moved_bytes(case) or 0) / 3


def floor_bytes(case: Case) -> float:
    """What a batch normalization's gradient moves at least: X and dY are read once for the sums and once for dX, unless
    the L2 cache holds them in between."""
    image = image_bytes(case)
    return (3 if 2 * image <= L2_BYTES else 5) * image


def copy_rate(results: dict[str, Any]) -> float | None:
    """The card's, in TB/s."""
    rates = [control.get("copy_tb_per_s") for control in (results.get("control") or {}).values()]
    return max((rate for rate in rates if rate is not None), default=None)


def intensity(case: Case) -> float | None:
    """Operations for each byte."""
    return ratio(operations(case), moved_bytes(case))


def achieved_tflops(case: Case) -> float | None:
    counted, milliseconds = operations(case), ours(case, gradient_part(case))
    return None if counted is None or milliseconds is None else counted / milliseconds / 1e9
