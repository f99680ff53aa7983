"""Capsules of DLPack that say whatever a test wants them to say."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

# A capsule keeps the pointer to its name.
KINDS, USED = (b"dltensor", b"dltensor_versioned"), b"used_dltensor"

_new = ctypes.pythonapi.PyCapsule_New
_new.argtypes, _new.restype = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p], ctypes.py_object
_name = ctypes.pythonapi.PyCapsule_GetName
_name.argtypes, _name.restype = [ctypes.py_object], ctypes.c_char_p

DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Tensor(ctypes.Structure):
    """DLPack's DLTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_index", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


class Lying:
    """An array of double whose capsule says, in some fields, something else than is so."""

    def __init__(
        self, array: Any, is_versioned: bool = False, place: Any = (1, 0), flags: int = 0, **lies: Any
    ) -> None:
        self._array, self._place = np.ascontiguousarray(array, "float64"), place
        self.deleted = 0
        self._kept: list[Any] = []
        self._managed: Any = Versioned(1, 0) if is_versioned else Managed()
        self._managed.deleter = DELETER(self._delete)
        if is_versioned:
            self._managed.flags = flags
        dims = self._numbers(lies.pop("shape", self._array.shape))
        strides = self._numbers(lies.pop("strides", None))
        told = {"data": self._array.ctypes.data, "device_type": 1, "ndim": self._array.ndim, "code": 2, "bits": 64}
        told |= {"lanes": 1, "shape": dims, "strides": strides}
        for field, value in {**told, **lies}.items():
            setattr(self._managed.tensor, field, value)
        self.capsule = _new(ctypes.addressof(self._managed), KINDS[is_versioned], None)

    def _numbers(self, values: Any) -> Any:
        if values is None:
            return None
        self._kept.append((ctypes.c_int64 * len(values))(*values))
        return ctypes.addressof(self._kept[-1])

    def _delete(self, address: int) -> None:
        self.deleted += address == ctypes.addressof(self._managed)

    @property
    def is_used(self) -> bool:
        return bool(_name(self.capsule).startswith(USED))

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> Any:
        return self._place


LIES: dict[str, tuple[type[Exception], dict[str, Any]]] = {
    "fewer than no axes": (ValueError, {"ndim": -1}),
    "the fewest axes": (ValueError, {"ndim": -(2**31)}),
    "the most axes": (ValueError, {"ndim": 2**31 - 1}),
    "an axis too many": (ValueError, {"ndim": 9, "shape": (1,) * 9}),
    "no axes": (ValueError, {"ndim": 0}),
    "no dims": (ValueError, {"shape": None}),
    "no data": (ValueError, {"data": None}),
    "no data, at an offset": (ValueError, {"data": None, "byte_offset": 1 << 40}),
    "an offset around the address space": (ValueError, {"byte_offset": 2**64 - 8}),
    "an offset to addresses that there are none of": (ValueError, {"byte_offset": 2**63}),
    "an offset past all memory": (ValueError, {"byte_offset": 2**57}),
    "an offset within an element": (ValueError, {"byte_offset": 3}),
    "a negative dim": (ValueError, {"shape": (1, 1, -3)}),
    "the most negative dim": (ValueError, {"shape": (1, 1, -(2**63))}),
    "dims whose product is too large": (ValueError, {"shape": (2**31, 2**31, 2**31)}),
    "dims whose product wraps to 0": (ValueError, {"shape": (2**32, 2**32, 1)}),
    "dims that reach around the address space": (ValueError, {"shape": (1, 1, 2**60)}),
    "strides that reach around the address space": (ValueError, {"strides": (1, 1, 2**59)}),
    "strides whose sum wraps": (ValueError, {"shape": (1, 3, 3), "strides": (1, 2**62, 2**62)}),
    "a negative stride": (ValueError, {"strides": (1, 1, -1)}),
    "bits of no type": (TypeError, {"bits": 8}),
    "no bits": (TypeError, {"bits": 0}),
    "two lanes": (TypeError, {"bits": 32, "lanes": 2}),
    "no lanes": (TypeError, {"lanes": 0}),
    "short integers": (TypeError, {"code": 0, "bits": 16}),
    "a type of the future": (TypeError, {"code": 200}),
    "a device of no kind": (TypeError, {"device_type": 9}),
    "another device than __dlpack_device__": (ValueError, {"device_type": 2}),
    "__dlpack_device__ of another device": (ValueError, {"place": (2, 0)}),
}
"""What a capsule may say of an array of 1 x 1 x 3, and what comes of it."""
