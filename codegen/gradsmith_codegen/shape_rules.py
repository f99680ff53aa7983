"""The runtime's shape rules, once more in Python, so that a test case that cannot be is found in the schema.

Semantics of ONNX Conv-22 and ConvTranspose-22. A rule that is not here is no error: cases then give all their
shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    output_padding = _integers(attributes, "output_padding", len(dims)) or (0,) * len(dims)
    for axis, extra in enumerate(output_padding):
        limit = max(window.strides[axis], window.dilations[axis])
        if extra >= limit:
            raise ImpossibleShape(
                f"output_padding {extra} of axis {axis} must be less than its stride or dilation, {limit}",
                "output_padding",
            )
    output_shape = _integers(attributes, "output_shape", len(dims))
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
        if len(kernel) != rank:
            raise ImpossibleShape(f"the filter has {len(kernel)} spatial dims, the input {rank}")
        given = _integers(attributes, "kernel_shape", rank)
        if given and given != kernel:
            raise ImpossibleShape(
                f"kernel_shape is {list(given)}, the filter has {list(kernel)}", "kernel_shape"
            )
        if 0 in kernel:
            raise ImpossibleShape(f"the filter's spatial dims must be at least 1, not {list(kernel)}")
        self.strides = _integers(attributes, "strides", rank, minimum=1) or (1,) * rank
        self.dilations = _integers(attributes, "dilations", rank, minimum=1) or (1,) * rank
        self.auto_pad = str(attributes.get("auto_pad", "NOTSET"))
        self._pads = _integers(attributes, "pads", 2 * rank) or (0,) * (2 * rank)
        self._kernel = kernel

    def pads(self) -> Dims:
        if self.auto_pad != "NOTSET" and any(self._pads):
            raise ImpossibleShape(
                f"auto_pad {self.auto_pad} sets the pads, so that none may be given", "pads"
            )
        return self._pads

    def effective(self, axis: int) -> int:
        return self.dilations[axis] * (self._kernel[axis] - 1) + 1


def _integers(attributes: Attributes, name: str, length: int, minimum: int = 0) -> Dims:
    """A list attribute's value. The schema mostly says how long it is and how small its numbers; rules rely
    on it."""
    value = attributes.get(name, ())
    if not isinstance(value, tuple):
        raise ImpossibleShape(f"the rule takes a list of integers as '{name}'", name)
    if len(value) not in (0, length):
        raise ImpossibleShape(f"'{name}' must have {length} entries, not {len(value)}", name)
    if value and min(value) < minimum:
        raise ImpossibleShape(f"'{name}' must be at least {minimum}, not {min(value)}", name)
    return cast(Dims, value)


_SHAPE_RULES: dict[str, Callable[[Attributes, Dims, Dims], Dims]] = {
    "conv::OutputSpatial": conv_output_spatial,
    "conv::TransposedOutputSpatial": conv_transposed_output_spatial,
}


def knows(function: str) -> bool:
    return function in _SHAPE_RULES


def apply(function: str, attributes: Attributes, arguments: Sequence[SymbolValue]) -> Dims:
    """What the shape rule computes from these symbols."""
    dims = [argument for argument in arguments if isinstance(argument, tuple)]
    if len(arguments) != 2 or len(dims) != 2:
        raise ImpossibleShape(f"{function} takes two lists of dims: the input's and the filter's")
    return _SHAPE_RULES[function](attributes, dims[0], dims[1])
