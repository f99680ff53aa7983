"""What kernels on patterns were measured at beside PyTorch, from the records of docs/gpu-runs. Needs no GPU.

bench/gpu_summary.py writes the table of docs/performance.md, and docs/site those of the operators' pages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpu_figures import geometric_mean
from gpu_goals import ENOUGH_BYTES
from gpu_report import row, table_head

RECORDS = "docs/gpu-runs"
CARD = "H200"
TYPES = ("float", "half")

POOLING_GRADIENTS = ("MaxPoolGrad", "MaxPoolXYGrad", "AveragePoolGrad")
VOLUME = r"(\d+x){7}\d+"  # five dims of X; a window's size, stride and pad
PLANE = r"(\d+x){6}\d+( |$)"
# The operators of each row, which of their shapes are in it, and how those are called.
ROWS: list[tuple[tuple[str, ...], str, str]] = [
    (("SigmoidGrad", "LeakyReluGrad"), "", ""),
    (("ReluGrad", "ThresholdedReluGrad", "ClipGrad", "HardSigmoidGrad", "HardSwishGrad", "SoftsignGrad"), "", ""),
    (("TanhGrad", "EluGrad", "CeluGrad", "SeluGrad", "SoftplusGrad"), "", ""),
    (("SwishGrad", "QuickGeluGrad", "FastGeluGrad", "MishGrad"), "", ""),
    (("ExpGrad", "Expm1Grad", "LogGrad", "Log1pGrad", "SqrtGrad", "ReciprocalGrad", "AbsGrad", "ErfGrad"), "", ""),
    (("SinGrad", "CosGrad", "TanGrad", "AsinGrad", "AcosGrad", "AtanGrad", "SinhGrad", "CoshGrad"), "", ""),
    (("AddGrad", "SubGrad"), "", ""),
    (("MulGrad", "DivGrad", "MaxGrad", "MinGrad", "PowGrad"), "", ""),
    (("GeluGrad",), "", ""),
    (("PReluGrad",), "", ""),
    (("SwiGluGrad", "GeGluGrad", "GluGrad", "ReGluGrad"), "", ""),
    (("WhereGrad", "InPlaceAccumulatorV2"), "", ""),
    (("DropoutGrad", "BitmaskDropoutGrad"), "", ""),
    (("BiasReluGrad", "BiasGeluGrad", "BiasFastGeluGrad", "BiasSiluGrad"), "", ""),
    (("ReduceSumGrad", "ReduceMeanGrad", "ReduceL1Grad", "ReduceL2Grad", "ReduceLogSumExpGrad"), "", ""),
    (("LpNormalizationGrad",), "", ""),
    (("SoftmaxGrad", "LogSoftmaxGrad"), "", ""),
    (("LayerNormalizationGrad", "SimplifiedLayerNormalizationGrad"), "", ""),
    (("SkipLayerNormalizationGrad",), "", ""),
    (("InstanceNormalizationGrad",), "", ""),
    (("GroupNormalizationGrad",), "", ""),
    (("MeanVarianceNormalizationGrad",), "", ""),
    (("SoftmaxCrossEntropyWithLabelsGrad",), "", ""),
    (("SoftmaxCrossEntropyLossGrad", "SoftmaxCrossEntropyLossInternalGrad"), "", ""),
    (("MaxPoolGrad", "MaxPoolXYGrad"), PLANE, " in two dims"),
    (("AveragePoolGrad",), PLANE, " in two dims"),
    (POOLING_GRADIENTS, VOLUME, " in three dims"),
    (("MaxPool", "AveragePool"), "", ""),
    (("GlobalMaxPool", "GlobalAveragePool"), "", ""),
    (("GlobalMaxPoolGrad", "GlobalAveragePoolGrad"), "", ""),
]


@dataclass(frozen=True)
class Measured:
    op: str
    type: str
    shape: str
    bytes: float
    milliseconds: float
    share_of_copy: float  # of the speed of a copy of as many bytes
    over_ours: dict[str, float]  # the times of peers
    card: str
    record: str

    @property
    def day(self) -> str:
        return self.record[:10]


def read_records(folder: Path) -> Iterator[Measured]:
    """All cases, oldest first by the names of their files."""
    for path in sorted(folder.glob("*.json"), key=lambda path: path.stem):
        run = json.loads(path.read_text(encoding="utf-8"))
        if "machine" in run:
            continue  # of gpu_benchmark, as bench/results has them
        for case in run.get("cases", ()):
            if "ms" in case or "us" in case:
                yield measured(case, run, path.stem)


def measured(case: dict[str, Any], run: dict[str, Any], record: str) -> Measured:
    milliseconds = case["ms"] if "ms" in case else case["us"] / 1e3
    copied = run["copy_gb_s"] * 1e6 * milliseconds
    size = case["bytes"] if "bytes" in case else case["of_copy"] * copied
    over_ours = {name: time / milliseconds for name, time in case.get("peers_ms", {}).items() if time}
    if "torch_over_ours" in case:
        over_ours["torch"] = case["torch_over_ours"]
    card = run["gpu"].removeprefix("NVIDIA ").split()[0]
    return Measured(case["op"], case["type"], case["shape"], size, milliseconds, size / copied, over_ours, card, record)


def newest(cases: Iterable[Measured]) -> list[Measured]:
    """Of each operator, type, shape and card the case of the newest record."""
    return list({(one.op, one.type, one.shape, one.card): one for one in cases}.values())


def patterns(cases: Sequence[Measured]) -> list[str]:
    """A table: shares of a copy's speed, and the times of peers over ours."""
    types = ", ".join(TYPES)
    heading = [f"geometric means (least): {types}", "cases", "of a copy", "PyTorch / ours", "torch.compile / ours"]
    lines = table_head([*heading, "figures of"])
    for ops, shapes, called in ROWS:
        of_row = [one for one in cases if one.op in ops and one.card == CARD and re.match(shapes, one.shape)]
        of_types = [[one for one in newest(of_row) if one.type == type_name] for type_name in TYPES]
        shares = [[one.share_of_copy for one in of_type if one.bytes >= ENOUGH_BYTES] for of_type in of_types]
        told = [", ".join(str(len(of_type)) for of_type in of_types), means(shares)]
        told += [means(ratios(of_types, peer)) for peer in ("torch", "compile")]
        lines.append(row([", ".join(ops) + called, *told, links(of_types)]))
    return lines


def ratios(of_types: Sequence[Sequence[Measured]], peer: str) -> list[list[float]]:
    return [[one.over_ours[peer] for one in of_type if peer in one.over_ours] for of_type in of_types]


def means(of_types: Sequence[Sequence[float]]) -> str:
    return ", ".join(f"{geometric_mean(of):.2f} ({min(of):.2f})" for of in of_types if of)


def links(of_types: Sequence[Sequence[Measured]]) -> str:
    """To the records, as docs/performance.md has them."""
    records = sorted({one.record for of_type in of_types for one in of_type})
    return ", ".join(f"[{name[5:].replace('_', ' ')}](gpu-runs/{name}.json)" for name in records)
