"""ONNX's own backend node tests of every operator that ONNX has as well, through ours. Their inputs and outputs come
with the onnx package."""

from __future__ import annotations

import functools
import pkgutil
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


def plain(name: str) -> Run:
    """Inputs and attributes as ONNX has them; what is not given is None."""

    def run(inputs: list[Any], attributes: dict[str, Any]) -> list[Any]:
        return [one for one in getattr(gradsmith, name)(*inputs, **attributes) if one is not None]

    return run


def folded(name: str) -> Run:
    """ONNX's have any number of tensors, ours two."""

    def run(inputs: list[Any], attributes: dict[str, Any]) -> list[Any]:
        return [functools.reduce(lambda a, b: getattr(gradsmith, name)(a, b, **attributes).Y, inputs)]

    return run


def reduction(name: str) -> Run:
    """ONNX's axes are an operand, in these tests one axis or none, which are all; ours are of one axis, which goes."""

    def run(inputs: list[Any], attributes: dict[str, Any]) -> list[Any]:
        x, axes = inputs
        flat, axis = (x, int(axes[0])) if axes.size else (x.reshape(-1), 0)
        y = getattr(gradsmith, name)(flat, axis=axis).Y
        if not attributes.get("keepdims", 1):
            return [y]
        return [np.expand_dims(y, axis) if axes.size else y.reshape((1,) * x.ndim)]

    return run


def clip(inputs: list[Any], _: dict[str, Any]) -> list[Any]:
    """ONNX's bounds are operands."""
    x, low, high = (*inputs, None, None)[:3]
    bounds = {name: float(one) for name, one in (("min", low), ("max", high)) if one is not None}
    return [gradsmith.clip(x, **bounds).Y]


def dropout(inputs: list[Any], attributes: dict[str, Any]) -> list[Any]:
    """ONNX draws the mask, which ours is given."""
    x, ratio, training_mode = inputs
    assert training_mode
    return [gradsmith.dropout(x, attributes["mask"], ratio=float(ratio)).Y, attributes["mask"]]


def gelu(inputs: list[Any], attributes: dict[str, Any]) -> list[Any]:
    """ONNX has an attribute where we have two operators."""
    function = gradsmith.fast_gelu if attributes.get("approximate") == "tanh" else gradsmith.gelu
    return [function(*inputs).Y]


def layer_normalization(inputs: list[Any], attributes: dict[str, Any]) -> list[Any]:
    """ONNX's statistics keep the dims that are normalized."""
    x, axis = inputs[0], attributes.get("axis", -1)
    result = gradsmith.layer_normalization(*inputs, **attributes)
    kept = (*x.shape[:axis], *[1] * len(x.shape[axis:]))
    return [result.Y, result.mean.reshape(kept), result.inv_std.reshape(kept)]


ONNX = {schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""}
OTHER_NAMES = {"SwiGlu": "SwiGLU", "SimplifiedLayerNormalization": "RMSNormalization"}  # which they have in ONNX
BY_NAME = {OTHER_NAMES.get(op.name, op.name): op.function for op in gradsmith.ops()}
SHARED = {name: function for name, function in BY_NAME.items() if name in ONNX}
OTHERS: dict[str, Run] = {
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "BatchNormalization": batch_normalization,
    "Clip": clip,
    "Dropout": dropout,
    "Gelu": gelu,
    "LayerNormalization": layer_normalization,
    **{name: folded(function) for name, function in SHARED.items() if name in ("Max", "Min")},
    **{name: pool(function) for name, function in SHARED.items() if name.endswith("Pool")},
    **{name: reduction(function) for name, function in SHARED.items() if name.startswith("Reduce")},
}
RUNS: dict[str, Run] = {name: OTHERS.get(name) or plain(function) for name, function in SHARED.items()}

# Operands that are no numbers of the operator's type: masks, axes, labels, indices.
NO_NUMBERS = {
    "Dropout": {1, 2},
    "Where": {0},
    "SoftmaxCrossEntropyLoss": {1},
    **{name: {1} for name in SHARED if name.startswith("Reduce")},
}
LEFT_OUT = {
    "test_swiglu_alpha": "ours has no alpha, which is 1",
    **dict.fromkeys(("test_max_one_input", "test_min_one_input"), "ours have two inputs"),
    **dict.fromkeys(
        ("test_reduce_sum_empty_axes_input_noop", "test_reduce_sum_empty_axes_input_noop_example"),
        "nothing is reduced",
    ),
    **dict.fromkeys(
        (
            *("test_dropout_default", "test_dropout_default_old", "test_dropout_random_old"),
            *("test_dropout_default_ratio", "test_dropout_default_mask", "test_dropout_default_mask_ratio"),
        ),
        "nothing is dropped outside of training, which our context does not know",
    ),
    **dict.fromkeys(
        ("test_training_dropout", "test_training_dropout_default", "test_training_dropout_zero_ratio"),
        "the mask is not given, which ours need",
    ),
    **dict.fromkeys(
        ("test_batchnorm_epsilon", "test_batchnorm_example"),
        "batch normalization with given statistics is none of ours",
    ),
}


# The package has its nodes here. Its own collector makes the cases of every operator there is, which takes long.
NODES = import_module("onnx.backend.test.case.node")


@functools.cache
def nodes() -> list[Any]:
    """The tests of one node that is one of our operators."""
    with np.errstate(all="ignore"):  # they divide by 0 on purpose
        for module in pkgutil.iter_modules(NODES.__path__):
            if module.name.replace("_", "") in {name.lower() for name in RUNS}:
                import_module(f"{NODES.__name__}.{module.name}")
    single = [case for case in NODES._NodeTestCases if len(case.model.graph.node) == 1]
    return [case for case in single if op_type(case) in RUNS]


def op_type(case: Any) -> str:
    return str(case.model.graph.node[0].op_type)


def has_our_types(case: Any) -> bool:
    """No operator of ours has rows of integers."""
    inputs = case.data_sets[0][0]
    numbers = [one for place, one in enumerate(inputs) if place not in NO_NUMBERS.get(op_type(case), set())]
    return {str(one.dtype) for one in numbers} <= {"float16", "bfloat16", "float32", "float64"}


def cases() -> list[Any]:
    return [pytest.param(case, id=case.name) for case in nodes() if has_our_types(case) and case.name not in LEFT_OUT]


def with_holes(node: Any, inputs: list[Any]) -> list[Any]:
    """The inputs, of which a node names those that are not given by an empty text."""
    given = iter(inputs)
    return [next(given) if name else None for name in node.input]


@pytest.mark.parametrize("case", cases())
def test_node(case: Any) -> None:
    (node,) = case.model.graph.node
    attributes = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
    attributes = {name: one.decode() if isinstance(one, bytes) else one for name, one in attributes.items()}
    for inputs, expected in case.data_sets:
        if node.op_type == "Dropout":
            attributes["mask"] = expected[1]
        results = RUNS[node.op_type](with_holes(node, inputs), attributes.copy())
        for got, wanted in zip(results[: len(expected)], expected, strict=True):
            assert got.dtype == wanted.dtype
            assert got.shape == wanted.shape
            np.testing.assert_allclose(got, wanted, rtol=case.rtol, atol=1e-6)


def test_there_are_nodes_of_every_forward() -> None:
    """Of every operator of the library that ONNX has."""
    assert {op_type(parameter.values[0]) for parameter in cases()} == set(SHARED)
    assert len(SHARED) >= 62


def test_what_is_left_out_is_there() -> None:
    assert set(LEFT_OUT) <= {case.name for case in nodes() if has_our_types(case)}
