"""The suites of convolutions: what their cases say of tensors, and cases made of them."""

from __future__ import annotations

import math

from gpu_suites import SIZES, SUITES, Case, numbers, read_suite, suite_by_name

BATCHES = (1, 4, 16, 64, 256, 1024)
BATCH_LAYERS = ("rn50_1x1_56", "rn50_3x3_28", "rn50_3x3_7", "unet_3x3_256", "sd_3x3_64")
SWEEP_TYPES = ("f16", "f32")  # in NHWC, where a batch or a limit of workspace changes


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


def bias_bytes(kind: str, name: str) -> int | None:
    """Of dY, which a bias gradient reads, in a case of one of bench/suites' two kinds of convolutions."""
    found = suite_by_name(kind).get(name)
    return None if found is None else math.prod(ConvShape(found).y) * SIZES[found["type"]]


class ConvShape:
    """Dims and the rest of convolution_backward's arguments; 1-d in NHWC is taken as 2-d of height 1, which is the only
    way to have PyTorch compute it with channels last. The column pad_end, where a suite has it, is the padding at the
    end of each axis. PyTorch has one number for both ends: it is told of the lesser, and has a longer x, or y of a
    transposed convolution, which begins so many elements ahead of ours, or ends as many behind where that is
    negative."""

    def __init__(self, case: Case) -> None:
        transposed = "output_padding" in case
        spatial, kernel, stride, pad, pad_end, dilation, output_padding = self.axes(case)
        self.last = case["layout"] == "NHWC"
        images, channels, filters, groups = (int(case[name]) for name in ("N", "C", "K", "groups"))
        reach = [a * (k - 1) + 1 for k, a in zip(kernel, dilation, strict=True)]
        pads = [p + q for p, q in zip(pad, pad_end, strict=True)]
        if transposed:
            outputs = [
                s * (d - 1) + r - p + o
                for d, s, r, p, o in zip(spatial, stride, reach, pads, output_padding, strict=True)
            ]
        else:
            outputs = [(d + p - r) // s + 1 for d, s, r, p in zip(spatial, stride, reach, pads, strict=True)]
        self.x = [images, channels, *spatial]
        self.w = [channels, filters // groups, *kernel] if transposed else [filters, channels // groups, *kernel]
        self.y = [images, filters, *outputs]
        ahead, none = [p - q for p, q in zip(pad, pad_end, strict=True)], [0] * len(pad)
        self.x_ahead, self.y_ahead = (none, ahead) if transposed else (ahead, none)
        self.torch_x, self.torch_y = longer(self.x, self.x_ahead), longer(self.y, self.y_ahead)
        least = [min(both) for both in zip(pad, pad_end, strict=True)]
        self.rest = ([filters], stride, least, dilation, transposed, output_padding, groups)

    @staticmethod
    def axes(case: Case) -> list[list[int]]:
        """Of the columns that have a number for each axis, and for one axis of NHWC those of height 1."""
        one_each = {"spatial": 1, "kernel": 1, "stride": 1, "pad": 0, "pad_end": 0, "dilation": 1, "output_padding": 0}
        count = len(numbers(case["spatial"]))
        texts = {"pad_end": case["pad"], "output_padding": ",".join("0" * count)} | case
        added = 1 if count == 1 and case["layout"] == "NHWC" else 0
        return [[*[height] * added, *numbers(texts[name])] for name, height in one_each.items()]


def longer(dims: list[int], ahead: list[int]) -> list[int]:
    return [*dims[:2], *(d + abs(a) for d, a in zip(dims[2:], ahead, strict=True))]
