"""The defaults of attributes are ONNX's, where ONNX has the operator, and a gradient has its forward operator's."""

from __future__ import annotations

import math
from typing import Any

import pytest
from formula_language import OPS

onnx = pytest.importorskip("onnx")

ONNX = {schema.name: schema for schema in onnx.defs.get_all_schemas() if schema.domain in ("", "ai.onnx")}
OTHER_NAMES = {"SwiGlu": "SwiGLU", "SimplifiedLayerNormalization": "RMSNormalization"}  # which they have in ONNX
NAMES = {name: OTHER_NAMES.get(name, name) for name in OPS if OTHER_NAMES.get(name, name) in ONNX}

# Attributes that ONNX has not as such, or without a default, by operator; what we have, and why.
NO_ATTRIBUTE: dict[tuple[str, str], tuple[Any, str]] = {
    ("Clip", "min"): (-math.inf, "in ONNX an optional input, without which nothing is too small"),
    ("Clip", "max"): (math.inf, "in ONNX an optional input, without which nothing is too large"),
    ("Dropout", "ratio"): (0.5, "in ONNX an optional input, whose text says 0.5"),
    **{
        (name, "axis"): (-1, "in ONNX a list of axes, an optional input, without which all are reduced")
        for name in ("ReduceSum", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceLogSumExp")
    },
    ("MeanVarianceNormalization", "epsilon"): (1e-9, "a constant of ONNX's function"),
    ("GroupNormalization", "num_groups"): (1, "ONNX requires it"),
    ("Softmax", "coerced"): (False, "as since ONNX's version 13; before it, rows were coerced"),
    ("LogSoftmax", "coerced"): (False, "as since ONNX's version 13; before it, rows were coerced"),
}
# ONNX's own are absent there, which says what an empty list does; those of windows are required.
LISTS = {"kernel_shape", "strides", "pads", "dilations", "output_padding", "output_shape"}
# What only ONNX Runtime's operators have, or only ours.
ELSEWHERE: dict[tuple[str, str], tuple[Any, str]] = {
    ("QuickGelu", "alpha"): (1.702, "ONNX Runtime's"),
    ("BatchNormalizationRelu", "epsilon"): (1e-5, "BatchNormalization's"),
    ("BatchNormalizationRelu", "momentum"): (0.9, "BatchNormalization's"),
    ("BitmaskDropout", "ratio"): (0.5, "Dropout's"),
    ("SkipLayerNormalization", "axis"): (-1, "LayerNormalization's"),
    ("SkipLayerNormalization", "epsilon"): (1e-12, "ONNX Runtime's"),
    ("SoftmaxCrossEntropyWithLabels", "ignore_index"): (None, "SoftmaxCrossEntropyLoss's"),
    ("SoftmaxCrossEntropyLossInternalGrad", "reduction"): ("mean", "SoftmaxCrossEntropyLoss's"),
}
# A gradient that ONNX has not with its forward operator's attribute, and needs it in place of a tensor.
OF_GRADIENTS: dict[tuple[str, str], tuple[Any, str]] = {
    ("MaxPoolGrad", "x_shape"): ([], "of the tensor that it is not given")
}


def defaults_of(name: str) -> dict[str, Any]:
    """Those of `ops.yaml`; None where an attribute has none."""
    return {key: one.get("default") for key, one in OPS[name].get("attributes", {}).items()}


def of_onnx(name: str) -> dict[str, Any]:
    """None where a call may leave an attribute out that has no default. Texts are bytes in ONNX."""
    attributes = {key: one.default_value for key, one in ONNX[NAMES[name]].attributes.items() if not one.required}
    values = {key: onnx.helper.get_attribute_value(one) if one.name else None for key, one in attributes.items()}
    return {key: one.decode() if isinstance(one, bytes) else one for key, one in values.items()}


def is_default(ours: Any, theirs: Any) -> bool:
    """ONNX's numbers are those of floats."""
    if isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=2**-24)
    return bool(ours == theirs)


@pytest.mark.parametrize("name", NAMES)
def test_defaults_are_of_onnx(name: str) -> None:
    theirs = of_onnx(name)
    for key, ours in defaults_of(name).items():
        if (name, key) in NO_ATTRIBUTE:
            expected, _ = NO_ATTRIBUTE[name, key]
            assert key not in theirs
            assert ours == expected, key
        elif key in LISTS:
            assert ours == []
            assert theirs.get(key) is None
        else:
            assert is_default(ours, theirs[key]), (key, ours, theirs[key])


def test_the_constant_of_a_function() -> None:
    """ONNX's MeanVarianceNormalization has its epsilon among the nodes that it is made of."""
    nodes = ONNX["MeanVarianceNormalization"].function_body.node
    constants = [node.attribute[0].t for node in nodes if node.op_type == "Constant"]
    numbers = [onnx.numpy_helper.to_array(one) for one in constants if one.data_type == onnx.TensorProto.FLOAT]
    epsilon, _ = NO_ATTRIBUTE["MeanVarianceNormalization", "epsilon"]
    assert any(one.size == 1 and is_default(epsilon, float(one.reshape(()))) for one in numbers)


@pytest.mark.parametrize("name", [name for name, op in OPS.items() if "gradient_of" in op and name not in NAMES])
def test_defaults_of_gradients_are_those_of_their_forwards(name: str) -> None:
    forward = OPS[name]["gradient_of"]
    given = defaults_of(forward) if forward in OPS else {}
    known = {(name, key): value for key, value in given.items()}
    known |= {key: value for key, (value, _) in {**OF_GRADIENTS, **ELSEWHERE}.items()}
    for key, ours in defaults_of(name).items():
        assert ours == known[name, key], key


@pytest.mark.parametrize("name", [name for name, op in OPS.items() if "gradient_of" not in op and name not in NAMES])
def test_defaults_of_others(name: str) -> None:
    for key, ours in defaults_of(name).items():
        assert ours == ELSEWHERE[name, key][0], key


def test_exceptions_are_there() -> None:
    for name, key in (*NO_ATTRIBUTE, *ELSEWHERE, *OF_GRADIENTS):
        assert key in defaults_of(name)
