"""ONNX's own backend node tests of the forwards, through ours. Their inputs and outputs come with the onnx package."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import gradsmith
import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

Run = Callable[[list[Any], dict[str, Any]], list[Any]]


def conv(inputs: list[Any], attributes: dict[str, Any]) -> list[Any]:
    return [gradsmith.conv(*inputs, **attributes).Y]


def conv_transpose(inputs: list[Any], attributes: dict[str, Any]) -> list[Any]:
    return [gradsmith.conv_transpose(*inputs, **attributes).Y]


def batch_normalization(inputs: list[Any], attributes: dict[str, Any]) -> list[Any]:
    """ONNX's running variance is made of the biased one, ours of the unbiased, as PyTorch's and cuDNN's are."""
    assert attributes.pop("training_mode") == 1
    result = gradsmith.batch_normalization(*inputs, **attributes)
    count = inputs[0].size // inputs[0].shape[1]
    kept = attributes.get("momentum", 0.9) * inputs[4]
    variance = kept + (result.running_var - kept) * (count - 1) / count
    return [result.Y, result.running_mean, variance.astype(inputs[4].dtype)]


def pool(name: str) -> Run:
    """ONNX has ints for what is true or false."""

    def run(inputs: list[Any], attributes: dict[str, Any]) -> list[Any]:
        for flag in {"ceil_mode", "count_include_pad"} & set(attributes):
            attributes[flag] = bool(attributes[flag])
        return [one for one in getattr(gradsmith, name)(*inputs, **attributes) if one is not None]

    return run


RUNS: dict[str, Run] = {
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "BatchNormalization": batch_normalization,
    "MaxPool": pool("max_pool"),
    "AveragePool": pool("average_pool"),
    "GlobalMaxPool": pool("global_max_pool"),
    "GlobalAveragePool": pool("global_average_pool"),
}


# The package has its nodes here. Its own collector makes the cases of every operator there is, which takes long.
NODES = "onnx.backend.test.case.node"
MODULES = (
    "conv",
    "convtranspose",
    "batch_normalization",
    "maxpool",
    "averagepool",
    "globalmaxpool",
    "globalaveragepool",
)


def cases() -> list[Any]:
    """The node tests of our operators; batch normalization with given statistics is none of ours."""
    for module in MODULES:
        import_module(f"{NODES}.{module}")
    return [
        pytest.param(case, id=case.name)
        for case in import_module(NODES)._NodeTestCases
        if case.model.graph.node[0].op_type in RUNS
        and not is_inference(case.model.graph.node[0])
        and case.data_sets[0][0][0].dtype != np.uint8
    ]


def is_inference(node: Any) -> bool:
    return node.op_type == "BatchNormalization" and "training_mode" not in {one.name for one in node.attribute}


@pytest.mark.parametrize("case", cases())
def test_node(case: Any) -> None:
    (node,) = case.model.graph.node
    attributes = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
    attributes = {name: one.decode() if isinstance(one, bytes) else one for name, one in attributes.items()}
    for inputs, expected in case.data_sets:
        results = RUNS[node.op_type](list(inputs), attributes.copy())
        for got, wanted in zip(results[: len(expected)], expected, strict=True):
            assert got.dtype == wanted.dtype
            np.testing.assert_allclose(got, wanted, rtol=case.rtol, atol=1e-6)


def test_there_are_nodes_of_every_forward() -> None:
    found = {parameter.values[0].model.graph.node[0].op_type for parameter in cases()}
    assert found == set(RUNS)
