"""The sweeps of gpu_benchmark.py: convolutions at batches of 1 to 1024, under limits of workspace, and forward."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpu_charts import panels, save
from gpu_conv_shapes import layer_and_batch
from gpu_figures import figure_at, geometric_mean, ours, ratio, torch_time

LIMITS = ("256", "32", "0")  # MiB of workspace; "none" is without a limit
MIB = 1 << 20
MODES = ("heuristic", "benchmark")


@dataclass(frozen=True)
class BatchPoint:
    """A layer at a batch: all gradients in one call, milliseconds."""

    layer: str
    type: str
    batch: int
    ours: float | None
    torch: float | None

    @property
    def torch_ratio(self) -> float | None:
        return ratio(self.torch, self.ours)


def batch_points(results: dict[str, Any]) -> list[BatchPoint]:
    points = []
    for case in results.get("batches", []):
        layer, batch = layer_and_batch(case["case"])
        points.append(BatchPoint(layer, case["type"], batch, ours(case, "all"), torch_time(case, "all")))
    return points


def per_image(milliseconds: float | None, batch: int) -> float | None:
    """Microseconds."""
    return None if milliseconds is None else 1e3 * milliseconds / batch


@dataclass(frozen=True)
class Limited:
    """A call under a limit of workspace."""

    milliseconds: float | None
    mib: float | None  # of workspace that the call takes


def under_limit(case: dict[str, Any], limit: str) -> Limited:
    figures = ((case.get("results") or {}).get("limits") or {}).get(limit) or {}
    taken = figures.get("workspace")
    return Limited(figure_at(figures, "median"), None if taken is None else taken / MIB)


def slowdown(case: dict[str, Any], limit: str) -> float | None:
    """Of a limit: above 1 the call takes longer under it."""
    return ratio(under_limit(case, limit).milliseconds, under_limit(case, "none").milliseconds)


def errors(case: dict[str, Any]) -> list[str]:
    """Why a case of a sweep has no figures, or not all."""
    found = case.get("results") or {}
    torch = case.get("torch") or {}
    figures = {
        "ours": found if found else case,
        "PyTorch": torch.get("all") or torch.get("forward") or torch,
        **{f"at most {limit} MiB": entry for limit, entry in (found.get("limits") or {}).items()},
    }
    return [f"{who}: {entry['error']}" for who, entry in figures.items() if "error" in entry]


# --- what is written ------------------------------------------------------------------------------------------------


def summary(results: dict[str, Any]) -> list[str]:
    lines = [*batch_summary(batch_points(results)), *workspace_summary(results.get("workspaces", []))]
    return [*lines, *forward_summary(results.get("forward", [])), *gaps(results)]


def batch_summary(points: list[BatchPoint]) -> list[str]:
    lines = []
    for kind in dict.fromkeys(point.type for point in points):
        by_batch = {
            batch: ratios(point.torch_ratio for point in points if (point.type, point.batch) == (kind, batch))
            for batch in sorted({point.batch for point in points})
        }
        means = [f"{batch}: {geometric_mean(values):.2f}" for batch, values in by_batch.items() if values]
        lines.append(f"conv by batch, torch / ours, {kind} NHWC: {', '.join(means)}")
    return lines


def workspace_summary(cases: list[dict[str, Any]]) -> list[str]:
    lines = []
    for kind in dict.fromkeys(case["type"] for case in cases):
        of_kind = [case for case in cases if case["type"] == kind]
        taken = [(mib, case["case"]) for case in of_kind if (mib := under_limit(case, "none").mib) is not None]
        if not taken:
            continue
        most, where = max(taken)
        text = f"workspace of conv {kind} NHWC: median {statistics.median(mib for mib, _ in taken):.0f} MiB, "
        text += f"most {most:.0f} MiB ({where}); time under a limit, times that without"
        for limit in LIMITS:
            values = ratios(slowdown(case, limit) for case in of_kind)
            text += f"; {limit} MiB: {geometric_mean(values):.2f} of {len(values)}, most {max(values, default=0):.2f}"
        lines.append(text)
    return lines


def forward_ratio(case: dict[str, Any], mode: str) -> float | None:
    return ratio(torch_time(case, "forward"), ours(case, "forward", mode))


def forward_summary(cases: list[dict[str, Any]]) -> list[str]:
    lines = []
    for group in dict.fromkeys(f"{case['type']} {case['layout']}" for case in cases):
        told = []
        for mode in MODES:
            own = [case for case in cases if f"{case['type']} {case['layout']}" == group]
            values = ratios(forward_ratio(case, mode) for case in own)
            if values:
                told.append(f"{mode} {geometric_mean(values):.2f} of {len(values)}, least {min(values):.2f}")
        lines.append(f"forward, torch / ours, {group}: {'; '.join(told)}")
    return lines


def gaps(results: dict[str, Any]) -> list[str]:
    lines = []
    for name in ("batches", "workspaces", "forward"):
        failed = [(case["name"], why) for case in results.get(name, []) for why in errors(case)]
        if failed:
            lines.append(f"{name}, without a figure (what does not fit into memory is left out): {len(failed)}")
            lines += [f"  {case}: {why}" for case, why in failed]
    return lines


def ratios(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def batch_rows(results: dict[str, Any]) -> list[list[str]]:
    """A heading and a row for each layer, type and batch; none where nothing was measured."""
    rows = [["layer", "type", "batch", "ours, us an image", "torch, us an image", "torch/ours"]]
    for point in sorted(batch_points(results), key=lambda point: (point.type, point.layer, point.batch)):
        images = [per_image(time, point.batch) for time in (point.ours, point.torch)]
        cells = [shown(value, 2) for value in (*images, point.torch_ratio)]
        rows.append([point.layer, point.type, str(point.batch), *cells])
    return rows if len(rows) > 1 else []


def workspace_rows(results: dict[str, Any]) -> list[list[str]]:
    rows = [["case", "type", "workspace, MiB", "ms"]]
    rows[0] += [text for limit in LIMITS for text in (f"at most {limit}: MiB", "times as long")]
    for case in results.get("workspaces", []):
        without = under_limit(case, "none")
        cells = [case["case"], case["type"], shown(without.mib, 0), shown(without.milliseconds, 4)]
        for limit in LIMITS:
            cells += [shown(under_limit(case, limit).mib, 0), shown(slowdown(case, limit), 2)]
        rows.append(cells)
    return rows if len(rows) > 1 else []


def forward_rows(results: dict[str, Any]) -> list[list[str]]:
    rows = [["case", "type", "layout", *(f"ours, {mode}" for mode in MODES), "torch"]]
    rows[0] += [f"torch/ours, {mode}" for mode in MODES]
    for case in results.get("forward", []):
        times = [*(ours(case, "forward", mode) for mode in MODES), torch_time(case, "forward")]
        cells = [*(shown(time, 4) for time in times), *(shown(forward_ratio(case, mode), 2) for mode in MODES)]
        rows.append([case["case"], case["type"], case["layout"], *cells])
    return rows if len(rows) > 1 else []


def shown(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def tables(results: dict[str, Any]) -> list[list[list[str]]]:
    return [batch_rows(results), workspace_rows(results), forward_rows(results)]


def draw(results: dict[str, Any], folder: Path) -> None:
    gpu = results.get("machine", {}).get("gpu", "")
    title = f"ConvGrad, dX + dW + dB, by batch, NHWC ({gpu})"
    draw_batches(batch_points(results), title, folder / "conv_batches.svg")


def draw_batches(points: list[BatchPoint], title: str, path: Path) -> None:
    """Time for each image over the batch: a panel for each type, a colour for each layer."""
    types = list(dict.fromkeys(point.type for point in points if point.ours or point.torch))
    if not types:
        return
    figure, axes, pyplot = panels(len(types), 3.5)
    layers = list(dict.fromkeys(point.layer for point in points))
    batches = sorted({point.batch for point in points})
    for axis, kind in zip(axes, types, strict=True):
        axis.set(xscale="log", yscale="log", xlabel="batch", ylabel="us an image")
        for number, layer in enumerate(layers):
            some = sorted((p for p in points if (p.type, p.layer) == (kind, layer)), key=lambda p: p.batch)
            for who, style, label in (("ours", "-", layer), ("torch", "--", None)):
                times = {p.batch: per_image(getattr(p, who), p.batch) for p in some}
                known = [batch for batch, time in times.items() if time is not None]
                axis.plot(known, [times[b] for b in known], style, color=f"C{number}", marker=".", label=label)
        axis.set_xticks(batches, list(map(str, batches)))
        axis.set_title(f"{kind}: gradsmith solid, PyTorch dashed", fontsize=8)
        axis.legend(fontsize=6, frameon=False)
    save(figure, pyplot, title, path)
