"""What was measured of an operator on a GPU, from the records of benchmarks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gpu_patterns
import gpu_summary
from gpu_figures import gradient_part, ours, torch_ratio

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Measured:
    case: str
    type: str
    milliseconds: float
    share_of_copy: float | None  # of the speed of a copy of as many bytes
    torch_over_ours: float | None
    card: str
    day: str


def of_all() -> dict[str, list[Measured]]:
    """By operator; of each case the newest run on each card counts."""
    newest: dict[str, dict[tuple[str, str, str], Measured]] = {}
    for op, one in (*_of_runs(ROOT / gpu_patterns.RECORDS), *_of_suites(ROOT / gpu_summary.RESULTS)):
        newest.setdefault(op, {})[one.case, one.type, one.card] = one
    return {op: list(cases.values()) for op, cases in newest.items()}


def table(cases: list[Measured]) -> list[str]:
    """Lines of Markdown."""
    head = ["case", "type", "ms", "of a copy's speed", "PyTorch's time over ours", "card, day"]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for one in cases:
        figures = [_figure(one.share_of_copy), _figure(one.torch_over_ours)]
        lines.append(
            f"| {one.case} | {one.type} | {one.milliseconds:.4g} | {' | '.join(figures)} | {one.card}, {one.day} |"
        )
    return lines


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _of_runs(folder: Path) -> Iterator[tuple[str, Measured]]:
    """Those of kernels that wait for memory, oldest first by their names."""
    for one in gpu_patterns.read_records(folder):
        torch = one.over_ours.get("torch")
        yield one.op, Measured(one.shape, one.type, one.milliseconds, one.share_of_copy, torch, one.card, one.day)


def _of_suites(folder: Path) -> Iterator[tuple[str, Measured]]:
    """Those of convolutions and batch normalization: all gradients in one call, chosen by a search."""
    for run in gpu_summary.read_runs(folder):
        machine = run.results["machine"]
        for case in run.results["cases"]:
            op = gpu_summary.OPERATORS.get(case["kind"])
            own = ours(case, gradient_part(case)) if op and "error" not in case else None
            if op and own:
                card = _card(machine["gpu"])
                name = f"{case['case']} {case['layout']}"
                yield op, Measured(name, _type(case), own, None, torch_ratio(case), card, machine["date"])


def _type(case: dict[str, Any]) -> str:
    names = {**gpu_summary.TYPES, **gpu_summary.PARAMETERS}
    key = f"{case['type']}/{case['scale_type']}" if case["scale_type"] else case["type"]
    return names.get(key, key)


def _card(gpu: str) -> str:
    """`H100` of `NVIDIA H100 80GB HBM3, compute capability 9.0`."""
    return gpu.removeprefix("NVIDIA ").partition(",")[0].split()[0]
