"""The runtime's shape rules, once more in Python, so that a test case that cannot be is found in the schema.

Semantics of ONNX Conv-22, ConvTranspose-22, MaxPool-22 and AveragePool-22, and of ONNX's broadcasting. A
rule that is not here is no error: cases then give all their shapes. tests/python/test_shape_rules.py holds
the two together: it draws thousands of attributes and dims, and fails where they differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from .model import AttributeValue
from .shapes import BROADCAST, SUM

Attributes = Mapping[str, AttributeValue]
Dims = tuple[int, ...]
SymbolValue = int | Dims


class ImpossibleShape(Exception):
    """No output can have a shape; the argument says why. `attribute` names the culprit where it is one."""

    def __init__(self, message: str, attribute: str = "") -> None:
        super().__init__(message)
        self.attribute = attribute


def conv_output_spatial(attributes: Attributes, dims: Dims, kernel: Dims) -> Dims:
    """conv::OutputSpatial: how many windows of the filter's dims there are."""
    return _Window(attributes, dims, kernel, "filter").outputs(dims)


def pool_pooled_spatial(attributes: Attributes, dims: Dims) -> Dims:
    """pool::PooledSpatial: how many windows of the dims 'kernel_shape' there are."""
    kernel = _integers(attributes, "kernel_shape", len(dims), minimum=1)
    if not kernel:
        raise ImpossibleShape("'kernel_shape' gives the window's dims and must be there")
    return _Window(attributes, dims, kernel, "window").outputs(dims)


def pool_global_spatial(_: Attributes, dims: Dims) -> Dims:
    """pool::GlobalSpatial: ones."""
    return (1,) * len(dims)


def conv_transposed_output_spatial(attributes: Attributes, dims: Dims, kernel: Dims) -> Dims:
    """conv::TransposedOutputSpatial: stride * (D - 1) + output_padding + eff - pad_begin - pad_end."""
    window = _Window(attributes, dims, kernel, "filter")
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


def broadcast(*lists: Dims) -> Dims:
    """The dims to which all lists broadcast: aligned at the last, and those of 1 take any size."""
    whole: list[int] = []
    for dims in lists:
        whole = [1] * (len(dims) - len(whole)) + whole
        for axis, size in enumerate(dims, start=len(whole) - len(dims)):
            if 1 not in (size, whole[axis]) and size != whole[axis]:
                message = f"dim {axis} would be both {whole[axis]} and {size}"
                raise ImpossibleShape(
                    f"{_listed(lists)} do not broadcast: {message}; expected equal dims, or 1"
                )
            whole[axis] = size if whole[axis] == 1 else whole[axis]
    return tuple(whole)


def _listed(lists: Sequence[Dims]) -> str:
    return " and ".join([str(list(dims)) for dims in lists])


class _Window:
    """What convolutions and pooling make of their attributes; empty lists are defaults. `what` a window is
    called."""

    def __init__(self, attributes: Attributes, dims: Dims, kernel: Dims, what: str) -> None:
        rank = len(dims)
        self._what = what
        self._rounds_up = attributes.get("ceil_mode", False) is True
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

    def outputs(self, dims: Dims) -> Dims:
        """How many windows there are along each axis of an input of these dims."""
        pads = self.pads()
        return tuple(
            self._output(axis, size, pads[axis], pads[len(dims) + axis]) for axis, size in enumerate(dims)
        )

    def _output(self, axis: int, size: int, pad_begin: int, pad_end: int) -> int:
        """floor((size + pad_begin + pad_end - effective) / stride) + 1. With ceil_mode, which auto_pad leaves
        nothing to do, that is rounded up, and no window begins in the pads at the end."""
        stride, effective = self.strides[axis], self.effective(axis)
        if self.auto_pad.startswith("SAME"):
            return -(-size // stride)
        padded = size + pad_begin + pad_end
        output = max((padded - effective) // stride + 1, 0)
        if self._rounds_up and self.auto_pad == "NOTSET":
            whole = max(-(-(padded - effective) // stride) + 1, 0)
            output = min(whole, -(-(size + pad_begin) // stride))
        if output == 0 and size > 0:
            raise ImpossibleShape(
                f"the {self._what} covers {effective} positions of axis {axis}, the padded input has {padded}"
            )
        return output

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


_SHAPE_RULES: dict[str, Callable[..., Dims]] = {
    "conv::OutputSpatial": conv_output_spatial,
    "conv::TransposedOutputSpatial": conv_transposed_output_spatial,
    "pool::PooledSpatial": pool_pooled_spatial,
    "pool::GlobalSpatial": pool_global_spatial,
}
_LISTS = {1: "one list of dims, the input's", 2: "two lists of dims: the input's and the filter's"}


def knows(function: str) -> bool:
    return function in _SHAPE_RULES or function in (BROADCAST, SUM)


def apply(function: str, attributes: Attributes, arguments: Sequence[SymbolValue]) -> SymbolValue:
    """What the shape rule computes from these symbols."""
    dims = [argument for argument in arguments if isinstance(argument, tuple)]
    if function == SUM:
        return sum([argument for argument in arguments if isinstance(argument, int)])
    if function == BROADCAST:
        return broadcast(*dims)
    rule = _SHAPE_RULES[function]
    taken = 1 if function.startswith("pool::") else 2
    if len(arguments) != taken or len(dims) != taken:
        raise ImpossibleShape(f"{function} takes {_LISTS[taken]}")
    return rule(attributes, *dims)
