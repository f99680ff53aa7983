"""What the GPU benchmark measures: the cases of bench/suites, and those made of them."""

from __future__ import annotations

import functools
import math
from pathlib import Path

Case = dict[str, str]  # a line of a suite, by column

SUITES = Path(__file__).resolve().parent / "suites"
TYPES = {"f16": "float16", "bf16": "bfloat16", "tf32": "float32", "f32": "float32", "f64": "float64"}

SIZES = {"f16": 2, "bf16": 2, "tf32": 4, "f32": 4, "f64": 8}  # bytes

BATCHES = (1, 4, 16, 64, 256, 1024)
BATCH_LAYERS = ("rn50_1x1_56", "rn50_3x3_28", "rn50_3x3_7", "unet_3x3_256", "sd_3x3_64")
SWEEP_TYPES = ("f16", "f32")  # in NHWC, where a batch or a limit of workspace changes


def read_suite(path: Path) -> list[Case]:
    heading, *lines = path.read_text(encoding="utf-8").splitlines()
    columns = heading.split("\t")
    return [dict(zip(columns, line.split("\t"), strict=True)) for line in lines]


def write_suite(cases: list[Case], path: Path) -> None:
    """As the program and read_suite read it; all cases have the columns of the first."""
    columns = list(cases[0]) if cases else []
    lines = [columns, *([case[column] for column in columns] for case in cases)]
    path.write_text("".join("\t".join(line) + "\n" for line in lines), encoding="utf-8")


def case_name(case: Case) -> str:
    scale = f"/{case['scale_type']}" if case.get("scale_type") else ""
    return f"{case['case']} {case['type']}{scale} {case['layout']}"


def is_wanted(case: Case, filters: str) -> bool:
    return not filters or any(part in case_name(case) for part in filters.split(","))


def sweep_cases() -> list[Case]:
    """The convolutions in the types and the layout of the sweeps."""
    cases = read_suite(SUITES / "conv.tsv")
    return [case for case in cases if case["layout"] == "NHWC" and case["type"] in SWEEP_TYPES]


def batch_cases() -> list[Case]:
    """Five layers at each batch, named as rn50_3x3_28_n16; the largest come last, as they may not fit."""
    layers = [case for case in sweep_cases() if case["case"] in BATCH_LAYERS]
    return [{**case, "case": f"{case['case']}_n{batch}", "N": str(batch)} for batch in BATCHES for case in layers]


def layer_and_batch(name: str) -> tuple[str, int]:
    """What batch_cases made a case's name of."""
    layer, _, batch = name.rpartition("_n")
    return layer, int(batch)


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def bias_bytes(kind: str, name: str) -> int | None:
    """Of dY, which a bias gradient reads, in a case of one of bench/suites' two kinds of convolutions."""
    found = suite_by_name(kind).get(name)
    return None if found is None else math.prod(ConvShape(found).y) * SIZES[found["type"]]


@functools.cache
def suite_by_name(kind: str) -> dict[str, Case]:
    path = SUITES / f"{kind}.tsv"
    return {case_name(case): case for case in read_suite(path)} if path.exists() else {}


class ConvShape:
    """Dims and the rest of convolution_backward's arguments; 1-d in NHWC is taken as 2-d of height 1, which is the only
    way to have PyTorch compute it with channels last."""

    def __init__(self, case: Case) -> None:
        transposed = "output_padding" in case
        spatial, kernel, stride, pad, dilation = (
            numbers(case[name]) for name in ("spatial", "kernel", "stride", "pad", "dilation")
        )
        output_padding = numbers(case["output_padding"]) if transposed else [0] * len(spatial)
        self.last = case["layout"] == "NHWC"
        if self.last and len(spatial) == 1:
            spatial, kernel, stride, dilation = ([1, *values] for values in (spatial, kernel, stride, dilation))
            pad, output_padding = [0, *pad], [0, *output_padding]
        images, channels, filters, groups = (int(case[name]) for name in ("N", "C", "K", "groups"))
        reach = [a * (k - 1) + 1 for k, a in zip(kernel, dilation, strict=True)]
        if transposed:
            outputs = [
                s * (d - 1) + r - 2 * p + o
                for d, s, r, p, o in zip(spatial, stride, reach, pad, output_padding, strict=True)
            ]
        else:
            outputs = [(d + 2 * p - r) // s + 1 for d, s, r, p in zip(spatial, stride, reach, pad, strict=True)]
        self.x = [images, channels, *spatial]
        self.w = [channels, filters // groups, *kernel] if transposed else [filters, channels // groups, *kernel]
        self.y = [images, filters, *outputs]
        self.rest = ([filters], stride, pad, dilation, transposed, output_padding, groups)
