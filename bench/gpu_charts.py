"""Charts of gpu_benchmark.py's figures, as SVG. They need matplotlib."""

from __future__ import annotations

import importlib
import math
from pathlib import Path
from typing import Any

from gpu_figures import (
    Case,
    achieved_tflops,
    copy_rate,
    geometric_mean,
    group_of,
    intensity,
    legacy_ratio,
    of_kind,
    ratios_by_group,
    torch_ratio,
)
from gpu_kinds import families, kinds

FASTER, SLOWER = "#2f7d4f", "#b5483a"

# Dense TFLOP/s where the control measures none, from NVIDIA's data sheets of H100 SXM and H200 SXM: TF32 tensor cores
# (half of the figure with sparsity), float, double by tensor cores.
PEAK_TFLOPS = {
    "H100": {"tf32": 494.0, "f32": 67.0, "f64": 67.0},
    "H200": {"tf32": 494.0, "f32": 67.0, "f64": 67.0},
}


def draw_all(results: dict[str, Any], folder: Path) -> None:
    """Every chart that there are figures for. Throws ImportError without matplotlib."""
    gpu = results.get("machine", {}).get("gpu", "")
    for name, kind in kinds().items():
        cases = of_kind(results, name)
        what = kind.op if kind.outputs == kind.gradient else f"{kind.op}, {kind.outputs.replace('+', ' + ')}"
        peers = {"torch": ("PyTorch", torch_ratio), "legacy": (kind.legacy_name, legacy_ratio)}
        for peer, (called, ratio_of) in peers.items():
            title = f"{what}: {called}'s time / gradsmith's ({gpu})"
            draw_ratios(ratios_by_group(cases, ratio_of), title, folder / f"{name}_{peer}.svg")
        if kind.has_roofline:
            title = f"{kind.op}: roofline ({gpu})"
            draw_roofline(roofline_points(cases), limits(results), title, folder / f"{name}_roofline.svg")
    for family in families():
        if family.draw:
            family.draw(results, folder)


def panels(count: int, height: float) -> tuple[Any, list[Any], Any]:
    """A figure with two panels a row, those panels, and pyplot."""
    matplotlib = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "font.size": 7, "svg.hashsalt": "gradsmith"})
    pyplot = importlib.import_module("matplotlib.pyplot")
    rows = (count + 1) // 2
    size = (10, rows * height + 0.3)
    figure, axes = pyplot.subplots(rows, 2, figsize=size, squeeze=False, layout="constrained")
    for axis in axes.flat[count:]:
        axis.set_visible(False)
    for axis in axes.flat[:count]:
        axis.spines[["top", "right"]].set_visible(False)
    return figure, list(axes.flat[:count]), pyplot


def save(figure: Any, pyplot: Any, title: str, path: Path) -> None:
    figure.suptitle(title, fontsize=10)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    # Matplotlib ends lines of paths in blanks, which no file of the repository has.
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("".join(f"{line.rstrip()}\n" for line in lines), encoding="utf-8")


# --- ratios ---------------------------------------------------------------------------------------------------------


def draw_ratios(groups: dict[str, list[tuple[str, float]]], title: str, path: Path) -> None:
    """A panel of horizontal bars for each type and layout."""
    if not groups:
        return
    tallest = max(map(len, groups.values()))
    figure, axes, pyplot = panels(len(groups), 0.14 * tallest + 0.7)
    for axis, (group, entries) in zip(axes, groups.items(), strict=True):
        names = [name for name, _ in reversed(entries)]
        values = [value for _, value in reversed(entries)]
        axis.barh(names, values, color=[FASTER if value >= 1 else SLOWER for value in values])
        axis.axvline(1, color="black", linewidth=0.8)
        for y, value in enumerate(values):
            beside = 1 if 0.8 < value < 1 else value  # not across the line at 1
            axis.text(beside, y, f" {value:.2f}", va="center", fontsize=6)
        axis.set_title(f"{group}: geometric mean {geometric_mean(values):.2f}", fontsize=8)
    save(figure, pyplot, title, path)


# --- roofline -------------------------------------------------------------------------------------------------------


Point = tuple[str, float, float]  # name, operations for each byte, TFLOP/s


def roofline_points(cases: list[Case]) -> dict[str, list[Point]]:
    """For each type and layout."""
    groups: dict[str, list[Point]] = {}
    for case in cases:
        per_byte, tflops = intensity(case), achieved_tflops(case)
        if per_byte is not None and tflops is not None:
            groups.setdefault(group_of(case), []).append((case["case"], per_byte, tflops))
    return groups


def limits(results: dict[str, Any]) -> dict[str, float]:
    """The card's: TB/s of a copy under "copy", and TFLOP/s for each type; what is not known is missing."""
    gpu = results.get("machine", {}).get("gpu", "")
    found = next((dict(peaks) for card, peaks in PEAK_TFLOPS.items() if card in gpu), {})
    controls = [control for control in (results.get("control") or {}).values() if "copy_tb_per_s" in control]
    if (rate := copy_rate(results)) is not None:
        found["copy"] = rate
        found["f16"] = found["bf16"] = max(control["matmul_tflops"] for control in controls)
    return found


def draw_roofline(groups: dict[str, list[Point]], known: dict[str, float], title: str, path: Path) -> None:
    """Achieved over what the bytes would allow: a panel for each type and layout."""
    if not groups:
        return
    figure, axes, pyplot = panels(len(groups), 3.2)
    for axis, (group, points) in zip(axes, groups.items(), strict=True):
        axis.set(xscale="log", yscale="log", xlabel="FLOP for each byte moved at least", ylabel="TFLOP/s")
        axis.scatter([x for _, x, _ in points], [y for _, _, y in points], s=8, color=FASTER, zorder=2)
        for name, x, y in points:
            axis.annotate(name, (x, y), xytext=(3, 1), textcoords="offset points", fontsize=5)
        draw_limits(axis, known.get("copy"), known.get(group.split()[0].split("/")[0]), [x for _, x, _ in points])
        axis.set_title(group, fontsize=8)
    save(figure, pyplot, title, path)


def draw_limits(axis: Any, copy: float | None, peak: float | None, at: list[float]) -> None:
    """The roof: bytes at the speed of a copy, up to the peak."""
    least, most = min(at) / 2, max(at) * 2
    if copy is not None:
        end = most if peak is None else min(most, peak / copy)
        if end > least:
            axis.plot([least, end], [least * copy, end * copy], color="black", linewidth=0.8)
            middle = math.sqrt(least * end)
            axis.annotate(f"copy {copy:.1f} TB/s", (middle, middle * copy), ha="right", fontsize=6)
    if peak is not None:
        begin = least if copy is None else max(least, peak / copy)
        if begin < most:
            axis.plot([begin, most], [peak, peak], color="black", linewidth=0.8)
            axis.annotate(f"{peak:.0f} TFLOP/s", (most, peak), ha="right", va="bottom", fontsize=6)
