"""What gpu_benchmark.py's figures should come to, and where they do not."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from gpu_figures import (
    Case,
    copy_rate,
    first_call,
    geometric_mean,
    gradient_part,
    heuristic_ratio,
    legacy,
    legacy_ratio,
    of_kind,
    ours,
    ratio,
    ratios_by_group,
    torch_ratio,
)
from gpu_kinds import kind_of, kinds

BELOW = {"benchmark": 1.0, "heuristic": 0.95}  # PyTorch's time over ours, of which a run counts how many are less
NOISE = 1.03  # two medians of the same kernel differ by no more
LAYOUTS = ("NCHW", "NHWC")
TORCH_GOALS = {name: kind.torch_goals for name, kind in kinds().items()}
LEGACY_GOALS = {name: kind.legacy_goal for name, kind in kinds().items() if kind.legacy_goal is not None}
KIND_NAMES = {name: kind.title for name, kind in kinds().items()}
MEMORY_GOAL = 0.85  # of the rate of a copy
ENOUGH_BYTES = 50e6  # of a tensor, for that
HOST_GOALS = {"outputs_3": 4.0, "outputs_1": 6.0}  # microseconds
FIRST_GOALS = {"heuristic": 60.0, "remembered": 2.0}  # milliseconds, of the slowest new shape and of a median


@dataclass(frozen=True)
class Goal:
    name: str
    verdict: str  # PASS, MISSED or NOT MEASURED
    detail: str

    def __str__(self) -> str:
        return f"{self.verdict:12} {self.name}: {self.detail}"


def slower_than_legacy(cases: Iterable[Case]) -> list[tuple[str, float]]:
    """What took longer than cuDNN's legacy API by more than noise, in the median and at best, and by what factor."""
    slower = []
    for case in cases:
        for part in kind_of(case).parts:
            factor = ratio(ours(case, part), legacy(case, part))
            at_best = ratio(ours(case, part, figure="minimum"), legacy(case, part, figure="minimum"))
            if factor is not None and min(factor, at_best or factor) > NOISE:
                slower.append((f"{case['name']} {part}", factor))
    return sorted(slower, key=lambda entry: -entry[1])


def slower_than_torch(cases: Iterable[Case], slack: float) -> list[tuple[str, float]]:
    factors = [(case["name"], 1 / value) for case in cases if (value := torch_ratio(case)) is not None]
    return sorted((entry for entry in factors if entry[1] > slack), key=lambda entry: -entry[1])


def failures(results: dict[str, Any]) -> list[tuple[str, str]]:
    """What did not run at all, and why."""
    failed = []
    for case in results["cases"]:
        if "error" in case:
            failed.append((case["name"], case["error"]))
            continue
        figures = case["results"]["ours"]
        beside = {"": figures, "heuristic": case["results"].get("heuristic", {})}
        by_mode = figures if kind_of(case).by_mode else beside
        for mode, parts in by_mode.items():
            failed += [(f"{case['name']} {mode} {part}", timing["error"])
                       for part, timing in parts.items() if "error" in timing]  # fmt: skip
    return failed


def in_short(results: dict[str, Any]) -> list[str]:
    """A line for each kind of case and mode over all types and layouts, and one of first calls."""
    lines = []
    for kind, name in KIND_NAMES.items():
        cases = of_kind(results, kind)
        for mode, ratio_of in (("benchmark", torch_ratio), ("heuristic", heuristic_ratio)):
            found = [(value, case["name"]) for case in cases if (value := ratio_of(case)) is not None]
            if found:
                lines.append(f"{name}, mode {mode}: {over_torch(found, BELOW[mode])}")
        factors = [value for case in cases if (value := over_search(case)) is not None]
        if factors:
            mean = geometric_mean(factors)
            lines.append(f"{name}, heuristic's time over benchmark's: {mean:.3f}, mean of {len(factors)}")
        firsts = [(value, case["name"]) for case in cases if (value := first_call(case)) is not None]
        if firsts:
            largest, slowest = max(firsts)
            median = statistics.median(value for value, _ in firsts)
            lines.append(
                f"{name}, first call in mode heuristic: median {median:.2f} ms, largest {largest:.2f} ms {slowest}"
            )
    return lines


def over_torch(found: list[tuple[float, str]], limit: float) -> str:
    mean = geometric_mean(value for value, _ in found)
    least, name = min(found)
    below_limit = sum(value < limit for value, _ in found)
    return f"{mean:.2f} over PyTorch, mean of {len(found)}, least {least:.3f} {name}, {below_limit} below {limit}"


def over_search(case: Case) -> float | None:
    part = gradient_part(case)
    return ratio(ours(case, part, "heuristic"), ours(case, part))


def goals(results: dict[str, Any]) -> list[Goal]:
    return [*speed_goals(results), *memory_goals(results), *host_goals(results), *correctness_goals(results)]


def speed_goals(results: dict[str, Any]) -> list[Goal]:
    found = []
    for kind, name in KIND_NAMES.items():
        cases = of_kind(results, kind)
        parts = kinds()[kind].legacy_parts
        with_legacy = [case for case in cases if any(legacy(case, part) for part in parts)]
        if parts:
            found.append(none_of(f"no {name} slower than the legacy API", slower_than_legacy(cases), len(with_legacy)))
        with_torch = sum(torch_ratio(case) is not None for case in cases)
        found.append(none_of(f"no {name} slower than PyTorch", slower_than_torch(cases, NOISE), with_torch))
        found.append(means_reach(f"{name}: PyTorch's time over ours", cases, torch_ratio, partial(torch_goal, kind)))
        if kind in LEGACY_GOALS:
            found.append(
                means_reach(f"{name}: the legacy API's time over ours", cases, legacy_ratio, partial(legacy_goal, kind))
            )
    batches = [case for case in results.get("batches", []) if torch_ratio(case) is not None]
    found.append(none_of("no batch slower than PyTorch", slower_than_torch(batches, NOISE), len(batches)))
    return found


def torch_goal(kind: str, group: str) -> float:
    types, _, layout = group.rpartition(" ")
    return TORCH_GOALS[kind][types][LAYOUTS.index(layout)]


def legacy_goal(kind: str, _group: str) -> float:
    return LEGACY_GOALS[kind]


def memory_goals(results: dict[str, Any]) -> list[Goal]:
    """What waits for memory alone, beside a copy in the same run: shares of its rate, where tensors are large."""
    found: dict[str, list[tuple[str, float]]] = {kind.memory.name: [] for kind in kinds().values()}
    for case in results["cases"]:
        share = memory_share(case, copy_rate(results), ENOUGH_BYTES)
        if share is not None:
            found[kind_of(case).memory.name].append((case["name"], share))
    made = []
    for name, shares in found.items():
        below_goal = sorted((entry for entry in shares if entry[1] < MEMORY_GOAL), key=lambda entry: entry[1])
        made.append(none_of(f"{name}, {MEMORY_GOAL:g} of a copy's rate from 50 MB on", below_goal, len(shares)))
    return made


def memory_share(case: Case, rate: float | None, least_bytes: float) -> float | None:
    """The share of a copy's rate, where the case is so large."""
    memory = kind_of(case).memory
    time = ours(case, memory.part)
    return memory.moved(case) / (1e9 * time) / rate if memory.tensor(case) >= least_bytes and time and rate else None


def means_reach(
    name: str, cases: list[Case], ratio_of: Callable[[Case], float | None], goal_of: Callable[[str], float]
) -> Goal:
    """In every type and layout, by the geometric mean of its cases."""
    groups = ratios_by_group(cases, ratio_of)
    means = {group: geometric_mean(value for _, value in entries) for group, entries in groups.items()}
    if not means:
        return Goal(name, "NOT MEASURED", "no case")
    short = sorted((mean / goal_of(group), group) for group, mean in means.items() if mean < goal_of(group))
    worst = ", ".join(f"{group} {means[group]:.2f} of {goal_of(group):g}" for _, group in short[:3])
    detail = f"{len(means) - len(short)} of {len(means)} types and layouts" + (f"; the worst: {worst}" if worst else "")
    return Goal(name, "MISSED" if short else "PASS", detail)


def host_goals(results: dict[str, Any]) -> list[Goal]:
    found = []
    host = (results.get("host") or {}).get("ours") or {}
    for key, name in (("outputs_3", "host time, 3 outputs"), ("outputs_1", "host time, 1 output")):
        found.append(below(name, host.get(key), HOST_GOALS[key], "us"))
    first = results.get("first_calls") or {}
    again = ("heuristic_again", "benchmark_again")
    remembered = [(first.get(key) or {}).get("precompiled_ms") for key in again]
    slowest_new = (first.get("heuristic") or {}).get("new_shape_slowest_ms")
    found.append(below("first call by heuristics", slowest_new, FIRST_GOALS["heuristic"], "ms"))
    slowest = max(filter(None, remembered), default=None)
    found.append(below("first call by a remembered precompiled choice", slowest, FIRST_GOALS["remembered"], "ms"))
    return found


def correctness_goals(results: dict[str, Any]) -> list[Goal]:
    checks = results.get("checks") or []
    wrong = [(check["name"], check["error"] or math.nan) for check in checks if not check["ok"]]
    failed = failures(results)
    entry = f"{len(failed)} did not" + (f", as {failed[0][0]}: {failed[0][1]}" if failed else "")
    return [
        none_of("every result checked is right", wrong, len(checks)),
        Goal("every call ran", "MISSED" if failed else "PASS", entry),
    ]


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
