"""What the GPU benchmark measures: the cases of bench/suites."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

Case = dict[str, str]  # a line of a suite, by column

SUITES = Path(__file__).resolve().parent / "suites"
TYPES = {"f16": "float16", "bf16": "bfloat16", "tf32": "float32", "f32": "float32", "f64": "float64"}

# Relative errors (2-norm) that rounding explains, against float64.
LIMITS = {"f16": 1e-3, "bf16": 8e-3, "tf32": 2e-3, "f32": 5e-6, "f64": 1e-13}

SIZES = {"f16": 2, "bf16": 2, "tf32": 4, "f32": 4, "f64": 8}  # bytes


def read_suite(path: Path) -> list[Case]:
    heading, *lines = path.read_text(encoding="utf-8").splitlines()
    columns = heading.split("\t")
    return [dict(zip(columns, line.split("\t"), strict=True)) for line in lines]


def suite(name: str) -> Callable[[], list[Case]]:
    return lambda: read_suite(SUITES / f"{name}.tsv")


def suite_text(cases: list[Case]) -> str:
    """As the program and read_suite read it; all cases have the columns of the first."""
    columns = list(cases[0]) if cases else []
    lines = [columns, *([case[column] for column in columns] for case in cases)]
    return "".join("\t".join(line) + "\n" for line in lines)


def write_suite(cases: list[Case], path: Path) -> None:
    path.write_text(suite_text(cases), encoding="utf-8")


def case_name(case: Case) -> str:
    scale = f"/{case['scale_type']}" if case.get("scale_type") else ""
    return f"{case['case']} {case['type']}{scale} {case['layout']}"


def is_wanted(case: Case, filters: str) -> bool:
    return not filters or any(part in case_name(case) for part in filters.split(","))


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


@functools.cache
def suite_by_name(kind: str) -> dict[str, Case]:
    path = SUITES / f"{kind}.tsv"
    return {case_name(case): case for case in read_suite(path)} if path.exists() else {}
