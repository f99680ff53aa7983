"""What the figures of gpu_benchmark.py come to: geometric means, goals, a table and charts. Needs no GPU.

    python3 bench/gpu_report.py RESULTS.json [--out FOLDER]

Times are medians in milliseconds; a ratio above 1 says that gradsmith is faster.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Case = dict[str, Any]  # a line of gpu_benchmark, with PyTorch's figures under "torch"

NOISE = 1.03  # two medians of the same kernel differ by no more
TORCH_SLACK = 1.10
HOST_GOALS = {"outputs_3": 15.0, "outputs_1": 6.0}  # microseconds
FIRST_GOALS = {"heuristic": 20.0, "remembered": 2.0}  # milliseconds
CONV_PARTS = ("dX", "dW", "dB", "all")


@dataclass(frozen=True)
class Goal:
    name: str
    verdict: str  # PASS, MISSED or NOT MEASURED
    detail: str

    def __str__(self) -> str:
        return f"{self.verdict:12} {self.name}: {self.detail}"


# --- figures of a case ----------------------------------------------------------------------------------------------


def read_suite(path: Path) -> list[dict[str, str]]:
    """The cases of a file of bench/suites, by column."""
    heading, *lines = path.read_text(encoding="utf-8").splitlines()
    columns = heading.split("\t")
    return [dict(zip(columns, line.split("\t"), strict=True)) for line in lines]


def case_name(case: dict[str, str]) -> str:
    scale = f"/{case['scale_type']}" if case.get("scale_type") else ""
    return f"{case['case']} {case['type']}{scale} {case['layout']}"


def figure_at(figures: Any, *path: str) -> float | None:
    for key in path:
        figures = figures.get(key) if isinstance(figures, dict) else None
    return float(figures) if isinstance(figures, int | float) and figures else None


def ours(case: Case, part: str, mode: str = "benchmark", figure: str = "median") -> float | None:
    where = ("ours", part) if case["kind"] == "batch_norm" else ("ours", mode, part)
    return figure_at(case.get("results"), *where, figure)


def legacy(case: Case, part: str, figure: str = "median") -> float | None:
    return figure_at(case.get("results"), "legacy", part, figure)


def torch_time(case: Case, part: str) -> float | None:
    """Of batch normalization the better of PyTorch's two: its cuDNN path and its own kernels."""
    if case["kind"] == "conv":
        return figure_at(case.get("torch"), part, "median")
    times = [figure_at(case.get("torch"), source, part, "median") for source in ("cudnn", "native")]
    return min((time for time in times if time is not None), default=None)


def ratio(theirs: float | None, own: float | None) -> float | None:
    return None if theirs is None or own is None else theirs / own


def torch_ratio(case: Case) -> float | None:
    """Of all that training needs: dX, dW and dB, or dX, dScale and dBias."""
    part = "all" if case["kind"] == "conv" else "backward"
    return ratio(torch_time(case, part), ours(case, part))


def legacy_ratio(case: Case) -> float | None:
    """Of dX, dW and dB one after the other, as ONNX Runtime's ops call them, to ours in one call; there is none where
    the legacy API lacks dX or dW."""
    if case["kind"] == "batch_norm":
        return ratio(legacy(case, "backward"), ours(case, "backward"))
    theirs = [legacy(case, part) for part in ("dX", "dW")]
    own = [ours(case, part) for part in ("dX", "dW")]
    if (bias := legacy(case, "dB")) is not None:
        theirs.append(bias)
        own = [ours(case, "all")]
    return None if None in theirs or None in own else sum(filter(None, theirs)) / sum(filter(None, own))


# --- what they come to ----------------------------------------------------------------------------------------------


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


def slower_than_legacy(cases: Iterable[Case]) -> list[tuple[str, float]]:
    """What took longer than cuDNN's legacy API by more than noise, in the median and at best, and by what factor."""
    slower = []
    for case in cases:
        for part in ("dX", "dW", "dB") if case["kind"] == "conv" else ("forward", "backward"):
            factor = ratio(ours(case, part), legacy(case, part))
            at_best = ratio(ours(case, part, figure="minimum"), legacy(case, part, figure="minimum"))
            if factor is not None and min(factor, at_best or factor) > NOISE:
                slower.append((f"{case['name']} {part}", factor))
    return sorted(slower, key=lambda entry: -entry[1])


def slower_than_torch(cases: Iterable[Case]) -> list[tuple[str, float]]:
    factors = [(case["name"], 1 / value) for case in cases if (value := torch_ratio(case)) is not None]
    return sorted((entry for entry in factors if entry[1] > TORCH_SLACK), key=lambda entry: -entry[1])


def failures(results: dict[str, Any]) -> list[tuple[str, str]]:
    """What did not run at all, and why."""
    failed = []
    for case in results["cases"]:
        if "error" in case:
            failed.append((case["name"], case["error"]))
            continue
        figures = case["results"]["ours"]
        by_mode = {"": figures} if case["kind"] == "batch_norm" else figures
        for mode, parts in by_mode.items():
            failed += [(f"{case['name']} {mode} {part}", timing["error"])
                       for part, timing in parts.items() if "error" in timing]  # fmt: skip
    return failed


def goals(results: dict[str, Any]) -> list[Goal]:
    conv = of_kind(results, "conv")
    norms = of_kind(results, "batch_norm")
    with_legacy = [case for case in conv if legacy(case, "dX") or legacy(case, "dW")]
    norms_with_legacy = [case for case in norms if legacy(case, "backward")]
    with_torch = [case for case in conv if torch_ratio(case) is not None]
    found = [
        none_of("no convolution slower than the legacy API", slower_than_legacy(conv), len(with_legacy)),
        none_of("no convolution more than 10 % slower than PyTorch", slower_than_torch(conv), len(with_torch)),
        none_of("no batch normalization slower than the legacy API", slower_than_legacy(norms), len(norms_with_legacy)),
        none_of(
            "no batch normalization more than 10 % slower than PyTorch",
            slower_than_torch(norms),
            sum(torch_ratio(case) is not None for case in norms),
        ),
    ]
    host = (results.get("host") or {}).get("ours") or {}
    for key, name in (("outputs_3", "host time, 3 outputs"), ("outputs_1", "host time, 1 output")):
        found.append(below(name, host.get(key), HOST_GOALS[key], "us"))
    first = results.get("first_calls") or {}
    again = ("heuristic_again", "benchmark_again")
    remembered = [(first.get(key) or {}).get("precompiled_ms") for key in again]
    heuristic = (first.get("heuristic") or {}).get("new_shape_ms")
    found.append(below("first call by heuristics", heuristic, FIRST_GOALS["heuristic"], "ms"))
    slowest = max(filter(None, remembered), default=None)
    found.append(below("first call by a remembered precompiled choice", slowest, FIRST_GOALS["remembered"], "ms"))
    checks = results.get("checks") or []
    wrong = [(check["name"], check["error"] or math.nan) for check in checks if not check["ok"]]
    found.append(none_of("every result checked is right", wrong, len(checks)))
    failed = failures(results)
    entry = f"{len(failed)} did not" + (f", as {failed[0][0]}: {failed[0][1]}" if failed else "")
    found.append(Goal("every call ran", "MISSED" if failed else "PASS", entry))
    return found


def none_of(name: str, exceptions: list[tuple[str, float]], measured: int) -> Goal:
    if measured == 0:
        return Goal(name, "NOT MEASURED", "no case")
    worst = ", ".join(f"{case} {value:.3g}" for case, value in exceptions[:3])
    detail = f"{len(exceptions)} of {measured}" + (f"; the worst: {worst}" if worst else "")
    return Goal(name, "MISSED" if exceptions else "PASS", detail)


def below(name: str, value: float | None, limit: float, unit: str) -> Goal:
    if value is None:
        return Goal(name, "NOT MEASURED", f"goal {limit:g} {unit}")
    return Goal(name, "PASS" if value < limit else "MISSED", f"{value:.2f} {unit}, goal {limit:g} {unit}")


# --- what is written ------------------------------------------------------------------------------------------------


def summary(results: dict[str, Any]) -> str:
    lines = ["geometric means, speed of gradsmith (above 1: it is faster)"]
    comparisons: tuple[tuple[str, str, Callable[[Case], float | None]], ...] = (
        ("conv, torch / ours, dX+dW+dB", "conv", torch_ratio),
        ("conv, legacy / ours, dX+dW+dB", "conv", legacy_ratio),
        ("batch norm, torch / ours, backward", "batch_norm", torch_ratio),
        ("batch norm, legacy / ours, backward", "batch_norm", legacy_ratio),
    )
    for title, kind, ratio_of in comparisons:
        groups = ratios_by_group(of_kind(results, kind), ratio_of)
        for group, entries in groups.items():
            worst_case, worst = min(entries, key=lambda entry: entry[1])
            mean = geometric_mean(value for _, value in entries)
            lines.append(f"  {title:36} {group:14} {mean:6.2f}  of {len(entries):2}, least {worst:.2f} {worst_case}")
    for title, slower in (
        ("slower than the legacy API", slower_than_legacy(results["cases"])),
        ("more than 10 % slower than PyTorch", slower_than_torch(results["cases"])),
    ):
        lines.append(f"{title}: {len(slower)}")
        lines += [f"  {factor:5.2f}x {name}" for name, factor in slower[:12]]
    lines += [f"left out for lack of time: {json.dumps(results.get('left_out', {}))}"]
    lines += [f"control: {json.dumps(results.get('control', {}))}"]
    lines += [f"host us: {json.dumps(results.get('host', {}))}"]
    lines += [f"first calls: {json.dumps(results.get('first_calls', {}))}"]
    return "\n".join([*lines, *map(str, goals(results))])


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}" if value < 1 else f"{value:.3f}"


def factor_text(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def markdown(results: dict[str, Any]) -> str:
    machine = results.get("machine", {})
    lines = [f"{key}: {value}  " for key, value in machine.items()]
    heading = ["case", "type", "layout"] + [f"{who} {part}" for who in ("ours", "torch") for part in CONV_PARTS]
    heading += [*(f"legacy {part}" for part in CONV_PARTS[:3]), "heuristic all", "torch/ours", "legacy/ours"]
    lines += ["", *table_head(heading)]
    for case in of_kind(results, "conv"):
        times = [ours(case, part) for part in CONV_PARTS] + [torch_time(case, part) for part in CONV_PARTS]
        times += [*(legacy(case, part) for part in CONV_PARTS[:3]), ours(case, "all", "heuristic")]
        cells = [case["case"], case["type"], case["layout"], *map(number, times)]
        lines.append(row([*cells, factor_text(torch_ratio(case)), factor_text(legacy_ratio(case))]))
    heading = ["case", "types", "layout", "ours forward", "ours backward", "torch forward"]
    heading += ["torch cudnn backward", "torch native backward", "legacy forward", "legacy backward"]
    heading += ["torch/ours", "legacy/ours"]
    lines += ["", *table_head(heading)]
    for case in of_kind(results, "batch_norm"):
        peers = [figure_at(case.get("torch"), source, "backward", "median") for source in ("cudnn", "native")]
        times = [ours(case, "forward"), ours(case, "backward"), torch_time(case, "forward"), *peers]
        times += [legacy(case, "forward"), legacy(case, "backward")]
        cells = [case["case"], f"{case['type']}/{case['scale_type']}", case["layout"], *map(number, times)]
        lines.append(row([*cells, factor_text(torch_ratio(case)), factor_text(legacy_ratio(case))]))
    return "\n".join(lines) + "\n"


def row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def table_head(names: list[str]) -> list[str]:
    return [row(names), row(["---"] * len(names))]


def draw(groups: dict[str, list[tuple[str, float]]], title: str, path: Path) -> None:
    """A panel of horizontal bars for each type and layout."""
    if not groups:
        return
    matplotlib = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "font.size": 7, "svg.hashsalt": "gradsmith"})
    pyplot = importlib.import_module("matplotlib.pyplot")
    rows = (len(groups) + 1) // 2
    tallest = max(map(len, groups.values()))
    size = (10, rows * (0.14 * tallest + 0.7) + 0.3)
    figure, axes = pyplot.subplots(rows, 2, figsize=size, squeeze=False, layout="constrained")
    for axis in axes.flat[len(groups) :]:
        axis.set_visible(False)
    for axis, (group, entries) in zip(axes.flat, groups.items(), strict=False):
        names = [name for name, _ in reversed(entries)]
        values = [value for _, value in reversed(entries)]
        axis.barh(names, values, color=["#2f7d4f" if value >= 1 else "#b5483a" for value in values])
        axis.axvline(1, color="black", linewidth=0.8)
        for y, value in enumerate(values):
            beside = 1 if 0.8 < value < 1 else value  # not across the line at 1
            axis.text(beside, y, f" {value:.2f}", va="center", fontsize=6)
        axis.set_title(f"{group}: geometric mean {geometric_mean(values):.2f}", fontsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title, fontsize=10)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def write_json(results: dict[str, Any], folder: Path) -> None:
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def write(results: dict[str, Any], folder: Path) -> None:
    write_json(results, folder)
    (folder / "results.md").write_text(markdown(results), encoding="utf-8")
    text = summary(results)
    (folder / "summary.txt").write_text(text + "\n", encoding="utf-8")
    conv = of_kind(results, "conv")
    gpu = results.get("machine", {}).get("gpu", "")
    charts = (
        ("conv_torch.svg", "ConvGrad, dX + dW + dB: PyTorch's time / gradsmith's", conv, torch_ratio),
        ("conv_legacy.svg", "ConvGrad, dX + dW + dB: cuDNN's legacy API's time / gradsmith's", conv, legacy_ratio),
        (
            "batch_norm_torch.svg",
            "BatchNormalizationGrad: PyTorch's time / gradsmith's",
            of_kind(results, "batch_norm"),
            torch_ratio,
        ),
        (
            "batch_norm_legacy.svg",
            "BatchNormalizationGrad: cuDNN's legacy SPATIAL mode's time / gradsmith's",
            of_kind(results, "batch_norm"),
            legacy_ratio,
        ),
    )
    for name, title, cases, ratio_of in charts:
        try:
            draw(ratios_by_group(cases, ratio_of), f"{title} ({gpu})", folder / name)
        except ImportError as error:
            print(f"no charts: {error}", file=sys.stderr)
            break
    print(text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="results.json of gpu_benchmark.py")
    parser.add_argument("--out", type=Path, help="where table and charts go; default: beside the results")
    options = parser.parse_args()
    folder = options.out or options.results.parent
    folder.mkdir(parents=True, exist_ok=True)
    results = json.loads(options.results.read_text(encoding="utf-8"))
    write(results, folder)
    return 1 if any(goal.verdict == "MISSED" for goal in goals(results)) else 0


if __name__ == "__main__":
    sys.exit(main())
