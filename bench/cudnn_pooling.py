"""cuDNN's gradients of pooling on tensors of PyTorch, as a peer of bench/pooling.py."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch

# Values of cudnnDataType_t, cudnnPoolingMode_t and cudnnNanPropagation_t.
DATA_TYPES = {torch.float32: 0, torch.float64: 1, torch.float16: 2, torch.bfloat16: 9}
MAX_POOLING, AVERAGE_WITHOUT_PADDING = 0, 2
PROPAGATE_NAN = 1


@cache
def library() -> ctypes.CDLL:
    """That of PyTorch, which loads it where its version is asked for."""
    torch.backends.cudnn.version()
    return ctypes.CDLL("libcudnn.so.9")


def call(name: str, *arguments: Any) -> None:
    status = getattr(library(), name)(*arguments)
    if status != 0:
        raise RuntimeError(f"{name}: status {status}")


@cache
def handle() -> ctypes.c_void_p:
    made = ctypes.c_void_p()
    call("cudnnCreate", ctypes.byref(made))
    return made


def integers(values: Sequence[int]) -> Any:
    return (ctypes.c_int * len(values))(*values)


@cache
def tensor_descriptor(dtype: torch.dtype, dims: tuple[int, ...], strides: tuple[int, ...]) -> ctypes.c_void_p:
    made = ctypes.c_void_p()
    call("cudnnCreateTensorDescriptor", ctypes.byref(made))
    kind = ctypes.c_int(DATA_TYPES[dtype])
    call("cudnnSetTensorNdDescriptor", made, kind, ctypes.c_int(len(dims)), integers(dims), integers(strides))
    return made


@cache
def pooling_descriptor(
    mode: int, sizes: tuple[int, ...], strides: tuple[int, ...], pads: tuple[int, ...]
) -> ctypes.c_void_p:
    made = ctypes.c_void_p()
    call("cudnnCreatePoolingDescriptor", ctypes.byref(made))
    options = (ctypes.c_int(mode), ctypes.c_int(PROPAGATE_NAN), ctypes.c_int(len(sizes)))
    call("cudnnSetPoolingNdDescriptor", made, *options, integers(sizes), integers(pads), integers(strides))
    return made


def operand(tensor: Any) -> tuple[ctypes.c_void_p, ctypes.c_void_p]:
    descriptor = tensor_descriptor(tensor.dtype, tuple(tensor.shape), tuple(tensor.stride()))
    return descriptor, ctypes.c_void_p(tensor.data_ptr())


class Pooling:
    """Windows alike over all axes, whose padding counts in no mean; a call goes to PyTorch's current stream."""

    def __init__(self, mode: int, sizes: Sequence[int], strides: Sequence[int], pads: Sequence[int]) -> None:
        self.windows = (mode, tuple(sizes), tuple(strides), tuple(pads))

    def backward(self, dy: Any, x: Any, y: Any, dx: Any) -> None:
        call("cudnnSetStream", handle(), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        factor = ctypes.c_double if x.dtype == torch.float64 else ctypes.c_float
        one, zero = ctypes.byref(factor(1)), ctypes.byref(factor(0))  # of the result, and of what is there
        given = *operand(y), *operand(dy), *operand(x)
        call("cudnnPoolingBackward", handle(), pooling_descriptor(*self.windows), one, *given, zero, *operand(dx))
