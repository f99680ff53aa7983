"""The runtime's shape rules, once more in Python, so that a test case that cannot be is found in the schema.

Semantics of ONNX Conv-22 and ConvTranspose-22. A rule that is not here is no error: cases then give all their
shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from .model import AttributeValue

Attributes = Mapping[str, AttributeValue]
Dims = tuple[int, ...]
SymbolValue = int | Dims


class ImpossibleShape(Exception):
    """No output can have a shape; the argument says why. `attribute` names the culprit where it is one."""

    def __init__(self, message: str, attribute: str = "") -> None:
        super().__init__(message)
        self.attribute = attribute


def conv_output_spatial(attributes: Attributes, dims: Dims, kernel: Dims) -> Dims:
    """conv::OutputSpatial: floor((D + pad_begin + pad_end - eff) / stride) + 1, eff = dilation * (K - 1)
    + 1."""
    window = _Window(attributes, dims, kernel)
    pads = window.pads()
    output = []
    for axis, size in enumerate(dims):
        stride, effective = window.strides[axis], window.effective(axis)
        if window.auto_pad.startswith("SAME"):
            output.append(-(-size // stride))
            continue
        padded = size + pads[axis] + pads[len(dims) + axis]
        if padded < effective and size > 0:
            raise ImpossibleShape(
                f"the filter covers {effective} positions of axis {axis}, the padded input has {padded}"
            )
        output.append(0 if padded < effective else (padded - effective) // stride + 1)
    return tuple(output)


def conv_transposed_output_spatial(attributes: Attributes, dims: Dims, kernel: Dims) -> Dims:
    """conv::TransposedOutputSpatial: stride * (D - 1) + output_padding + eff - pad_begin - pad_end."""
    window = _Window(attributes, dims, kernel)
    pads = window.pads()
    output_padding = _integers(attributes, "output_padding") or (0,) * len(dims)
    for axis, extra in enumerate(output_padding):
        limit = max(window.strides[axis], window.dilations[axis])
        if extra >= limit:
            raise ImpossibleShape(
                f"output_padding {extra} of axis {axis} must be less than its stride or dilation, {limit}",
                "output_padding",
            )
    output_shape = _integers(attributes, "output_shape")
    if output_shape:
        if window.auto_pad == "VALID":
            raise ImpossibleShape("output_shape sets the pads, auto_pad VALID allows none", "output_shape")
        if any(pads):
            raise ImpossibleShape("output_shape sets the pads, so that none may be given", "pads")
        return output_shape
    output = []
    for axis, size in enumerate(dims):
        stride = window.strides[axis]
        if window.auto_pad.startswith("SAME") or size == 0:
            output.append(size * stride)
            continue
        full = stride * (size - 1) + output_padding[axis] + window.effective(axis)
        extent = full - pads[axis] - pads[len(dims) + axis]
        if extent < 0:
            raise ImpossibleShape(f"the pads of axis {axis} take away more than its {full} positions", "pads")
        output.append(extent)
    return tuple(output)


class _Window:
    """What the two convolutions make of their attributes; empty lists are defaults."""

    def __init__(self, attributes: Attributes, dims: Dims, kernel: Dims) -> None:
        rank = len(dims)
        given = _integers(attributes, "kernel_shape")
        if given and given != kernel:
            raise ImpossibleShape(
                f"kernel_shape is {list(given)}, the filter has {list(kernel)}", "kernel_shape"
            )
        if 0 in kernel:
            raise ImpossibleShape(f"the filter's spatial dims must be at least 1, not {list(kernel)}")
        self.strides = _integers(attributes, "strides") or (1,) * rank
        self.dilations = _integers(attributes, "dilations") or (1,) * rank
        self.auto_pad = str(attributes.get("auto_pad", "NOTSET"))
        self._pads = _integers(attributes, "pads") or (0,) * (2 * rank)
        self._kernel = kernel

    def pads(self) -> Dims:
        if self.auto_pad != "NOTSET" and any(self._pads):
            raise ImpossibleShape(
                f"auto_pad {self.auto_pad} sets the pads, so that none may be given", "pads"
            )
        return self._pads

    def effective(self, axis: int) -> int:
        return self.dilations[axis] * (self._kernel[axis] - 1) + 1


def _integers(attributes: Attributes, name: str) -> Dims:
    return cast(Dims, attributes.get(name, ()))


def _group_divides_filter(attributes: Attributes, shapes: Mapping[str, Dims]) -> None:
    """W is (M, C / group, K...) or, transposed, (C, M / group, K...): each group has the same share of its
    rows."""
    group = cast(int, attributes.get("group", 1))
    if "W" in shapes and shapes["W"] and shapes["W"][0] % group:
        raise ImpossibleShape(f"group {group} does not divide the {shapes['W'][0]} rows of 'W'", "group")


SHAPE_RULES: dict[str, Callable[..., Dims]] = {
    "conv::OutputSpatial": conv_output_spatial,
    "conv::TransposedOutputSpatial": conv_transposed_output_spatial,
}

# What kernels demand of their arguments beyond what a schema can say.
KERNEL_DEMANDS: dict[str, Callable[[Attributes, Mapping[str, Dims]], None]] = dict.fromkeys(
    ("conv::Conv", "conv::ConvGrad", "conv::ConvTranspose", "conv::ConvTransposeGrad"), _group_divides_filter
)
