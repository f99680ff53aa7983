"""Figures of a case that gpu_benchmark.py measured, and the ratios that they make.

Times are medians in milliseconds; a ratio above 1 says that gradsmith is faster.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from gpu_kinds import kind_of

Case = dict[str, Any]  # a line of gpu_benchmark, with PyTorch's figures under "torch"


def gradient_part(case: Case) -> str:
    """The part that is all of the gradient."""
    return kind_of(case).gradient


def figure_at(figures: Any, *path: str) -> float | None:
    for key in path:
        figures = figures.get(key) if isinstance(figures, dict) else None
    return float(figures) if isinstance(figures, int | float) and figures else None


def ours(case: Case, part: str, mode: str = "benchmark", figure: str = "median") -> float | None:
    where = ["ours", mode, part]
    if not kind_of(case).by_mode:
        where = ["ours", part] if mode == "benchmark" else [mode, part]
    return figure_at(case.get("results"), *where, figure)


def legacy(case: Case, part: str, figure: str = "median") -> float | None:
    return figure_at(case.get("results"), "legacy", part, figure)


def torch_time(case: Case, part: str) -> float | None:
    """The best of PyTorch's ways, where it has several."""
    sources = kind_of(case).torch_sources
    if not sources:
        return figure_at(case.get("torch"), part, "median")
    times = [figure_at(case.get("torch"), source, part, "median") for source in sources]
    return min((time for time in times if time is not None), default=None)


def ratio(theirs: float | None, own: float | None) -> float | None:
    return None if theirs is None or own is None else theirs / own


def torch_ratio(case: Case) -> float | None:
    """Of all that training needs."""
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
    """None where the legacy API lacks a part of the gradient."""
    times = kind_of(case).legacy_time
    return ratio(*times(case)) if times else None


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


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}" if value < 1 else f"{value:.3f}"


def factor_text(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


# --- what a case asks of the machine --------------------------------------------------------------------------------


def operations(case: Case) -> float | None:
    """Floating-point operations of the gradient."""
    counted = figure_at(case.get("results"), "operations")
    return None if counted is None else counted * kind_of(case).operations


def moved_bytes(case: Case) -> float | None:
    """What the gradient moves at least: every input read once, every output written once."""
    return figure_at(case.get("results"), kind_of(case).bytes)


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
