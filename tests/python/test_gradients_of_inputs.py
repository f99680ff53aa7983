"""Which gradient is that of which input, as PyTorch's autograd takes them from the table of operators."""

from __future__ import annotations

import gradsmith
from gradsmith import _table


def test_what_has_no_gradient_is_known() -> None:
    """PyTorch's autograd would take another's for zero, without a word."""
    by_name = {op.name: op for op in gradsmith.ops()}
    lacking = {
        (gradient.gradient_of, tensor.name)
        for gradient in by_name.values()
        if gradient.gradient_of in by_name
        for tensor in by_name[gradient.gradient_of].inputs
        if tensor.name not in _table.gradients_of_inputs(gradient)
    }
    normalizations = ("BatchNormalization", "BatchNormalizationRelu")
    running = {(name, tensor) for name in normalizations for tensor in ("running_mean", "running_var")}
    masks = {("Where", "condition"), ("Dropout", "mask"), ("BitmaskDropout", "mask")}
    losses = ("SoftmaxCrossEntropyLoss", "SoftmaxCrossEntropyWithLabels")
    assert lacking == running | masks | {(name, tensor) for name in losses for tensor in ("label", "weight")}


def test_inputs_that_are_added_share_a_gradient() -> None:
    (gradient,) = [op for op in gradsmith.ops() if op.name == "SkipLayerNormalizationGrad"]
    shared = {"X": "dX", "skip": "dX", "gamma": "dGamma", "beta": "dBeta", "bias": "dBias"}
    assert _table.gradients_of_inputs(gradient) == shared
