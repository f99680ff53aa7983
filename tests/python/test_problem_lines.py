"""Problems on a line, as `tune` and `bench` take them: what is wrong is said of the operator that the line names."""

from __future__ import annotations

from pathlib import Path

import gradsmith
import pytest
import yaml

DECLARED = yaml.safe_load((Path(__file__).resolve().parents[2] / "ops.yaml").read_text(encoding="utf-8"))["ops"]
CONV = "ConvGrad float X=8x3x9x9 W=4x3x3x3"
OPS = f"the name of one of the {len(DECLARED)} ops"
ROWS_OF_CONV = ", ".join(next(op["rows"] for op in DECLARED if op["name"] == "Conv"))
NAMES = "layout, outputs, accumulate, dY, X, W, kernel_shape, strides, pads, dilations, group, auto_pad"

WORDS = f"layout, outputs, accumulate, or an input or attribute of ConvGrad: {NAMES}"


def fault_of(line: str) -> str:
    with pytest.raises(ValueError) as told:
        gradsmith.tune(line, device="cpu")
    return str(told.value)


@pytest.mark.parametrize(
    ("line", "op", "fault"),
    [
        ("ConvGrad float X=8x3x9x9 W=4x4x3x3", "ConvGrad", "W has shape [4, 4, 3, 3], 4 at dimension 1; expected 3"),
        ("ConvGrad float X=8x3x9x9", "ConvGrad", "input W is absent; it is required"),
        (f"{CONV} strides=2,2,2", "ConvGrad", "attribute strides is [2, 2, 2], 3 values; expected 2"),
        (f"{CONV} strides=0,0", "ConvGrad", "attribute strides is [0, 0], with 0"),
        (f"{CONV} auto_pad=SMAE", "ConvGrad", "attribute auto_pad is 'SMAE'"),
        (f"{CONV} dilations=9,9", "ConvGrad", "conv::OutputSpatial(D, K) with D = [9, 9]"),
        ("ConvTransposeGrad float X=8x3x9x9 W=4x4x3x3", "ConvTransposeGrad", "W has shape [4, 4, 3, 3]"),
        (
            "BatchNormalizationGrad float X=8x2 scale=2 saved_mean=2 saved_inv_std=2",
            "BatchNormalizationGrad",
            "input dY is absent; expected its dims, which would follow from B of BatchNormalization alone",
        ),
        ("BatchNormalizationGrad float X=8x2 scale=2", "BatchNormalizationGrad", "input saved_mean is absent"),
    ],
)
def test_the_operator_of_the_line_is_named_not_its_forward(line: str, op: str, fault: str) -> None:
    told = fault_of(line)
    assert told.startswith(f"{op}[float] on cpu (ops.yaml:")
    assert f"): {fault}" in told


@pytest.mark.parametrize(
    ("line", "expected", "nearest"),
    [
        (f"{CONV} stride=2,2", WORDS, "strides"),
        (f"{CONV} layuot=NHWC", WORDS, "layout"),
        ("X=1x1x3 float ConvGard", OPS, ""),
        ("ConvGard float X=1x1x3", OPS, "ConvGrad"),
        ("conv_grad float X=1x1x3", OPS, "ConvGrad"),
        ("Conv flaot", f"the name of a row of Conv on cpu: {ROWS_OF_CONV}", "float"),
        (f"{CONV} B=4", WORDS, ""),
        (f"{CONV} momentum=2", WORDS, ""),
    ],
)
def test_the_nearest_name_is_suggested(line: str, expected: str, nearest: str) -> None:
    suggestion = f"; did you mean '{nearest}'?" if nearest else ""
    told = fault_of(line)
    assert told.endswith(f": expected {expected}{suggestion}")
    assert told.split("'")[1] in line.split()
