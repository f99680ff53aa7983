"""The table of kernels on patterns, and the records that it is made of."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import gpu_patterns
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
RECORDS = REPOSITORY / gpu_patterns.RECORDS


def case(op: str, shape: str, milliseconds: float, size: float = 1e8, **peers: float | None) -> dict[str, Any]:
    return {"op": op, "type": "half", "shape": shape, "bytes": size, "ms": milliseconds, "peers_ms": peers}


def record(folder: Path, name: str, *cases: dict[str, Any], gpu: str = "NVIDIA H200") -> None:
    (folder / f"{name}.json").write_text(json.dumps({"gpu": gpu, "copy_gb_s": 4000.0, "cases": cases}))


def row_of(folder: Path, ops: str) -> str:
    (found,) = [
        line for line in gpu_patterns.patterns(list(gpu_patterns.read_records(folder))) if line.startswith(f"| {ops} |")
    ]
    return found


def test_of_each_case_the_newest_record_counts(tmp_path: Path) -> None:
    record(
        tmp_path, "2026-11-27_all", case("PReluGrad", "8x8", 0.025, torch=0.1), case("PReluGrad", "9x9", 0.1, torch=0.1)
    )
    record(tmp_path, "2026-11-28_prelu", case("PReluGrad", "8x8", 0.05, torch=0.1))
    links = "[11-27 all](gpu-runs/2026-11-27_all.json), [11-28 prelu](gpu-runs/2026-11-28_prelu.json)"
    assert row_of(tmp_path, "PReluGrad") == f"| PReluGrad | 0, 2 | 0.35 (0.25) | 1.41 (1.00) |  | {links} |"


def test_a_peer_that_the_newest_record_lacks_is_no_older_one(tmp_path: Path) -> None:
    record(tmp_path, "2026-11-27_all", case("PReluGrad", "8x8", 0.05, torch=0.1, compile=0.1))
    record(tmp_path, "2026-11-28_prelu", case("PReluGrad", "8x8", 0.05, torch=0.1, compile=None))
    assert "| 2.00 (2.00) |  |" in row_of(tmp_path, "PReluGrad")


def test_small_tensors_have_no_share_of_a_copy(tmp_path: Path) -> None:
    record(tmp_path, "2026-11-28_prelu", case("PReluGrad", "8x8", 0.05, size=4.9e7, torch=0.1))
    assert "| 0, 1 |  | 2.00 (2.00) |" in row_of(tmp_path, "PReluGrad")


def test_another_card_is_in_no_row(tmp_path: Path) -> None:
    record(tmp_path, "2026-11-28_prelu", case("PReluGrad", "8x8", 0.05), gpu="NVIDIA H100 80GB HBM3")
    assert row_of(tmp_path, "PReluGrad") == "| PReluGrad | 0, 0 |  |  |  |  |"


def test_volumes_are_in_a_row_of_their_own(tmp_path: Path) -> None:
    plane, volume = (case("AveragePoolGrad", shape, 0.05) for shape in ("8x64x9x9x3x1x1 NHWC", "8x64x9x9x9x3x1x1"))
    record(tmp_path, "2026-11-28_pooling", plane, volume)
    assert row_of(tmp_path, "AveragePoolGrad in two dims").startswith("| AveragePoolGrad in two dims | 0, 1 |")
    assert "in three dims | 0, 1 |" in row_of(tmp_path, "MaxPoolGrad, MaxPoolXYGrad, AveragePoolGrad in three dims")


def test_every_operator_that_was_measured_is_in_a_row() -> None:
    told = {op for ops, _, _ in gpu_patterns.ROWS for op in ops}
    elsewhere = {
        "BatchNormalizationGrad",
        "BatchNormFormula",
    }  # the tables of batch normalization, and docs/lab/rows.md
    assert {one.op for one in gpu_patterns.read_records(RECORDS)} == told | elsewhere


def test_every_record_is_the_newest_of_something_or_cited_in_the_lab() -> None:
    cases = list(gpu_patterns.read_records(RECORDS))
    kept = {one.record for one in gpu_patterns.newest(cases)}
    pages = "".join(path.read_text(encoding="utf-8") for path in (REPOSITORY / "docs/lab").glob("*.md"))
    cited = set(re.findall(r"gpu-runs/([\w-]+)\.json", pages))
    assert {one.record for one in cases} - kept - cited == set()


@pytest.mark.parametrize("path", sorted(RECORDS.glob("*.json")), ids=lambda path: path.stem)
def test_a_record_is_named_by_its_day(path: Path) -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\d_\w+", path.stem)
