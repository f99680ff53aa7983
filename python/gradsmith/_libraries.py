"""The libraries of arrays: what _core must know of each beyond DLPack and the buffer protocol.

_core asks `find` once for each type of arrays that it meets. Libraries are imported only when one of their arrays
has come, so that none is needed.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any
from weakref import WeakValueDictionary

from . import _core, _text


class Library:
    """How the arrays of a library are read and made."""

    name: str
    array: type | None = None
    """The library's type of arrays; None where they are told by what they can do."""
    has_buffers = False
    """Arrays are read through the buffer protocol, else through DLPack."""
    exchanges = True
    """The functions of `__dlpack_c_exchange_api__` are used where the type has them for sure."""
    is_writable = True
    """Arrays may be given as `out`."""
    is_recording: Callable[[], bool] | None = None
    """Tells whether `requires_grad` of an array matters."""
    requires_grad: Any = None
    """What describes that attribute in the type of arrays; not None where `is_recording` is not."""
    written: Callable[[tuple[Any, ...]], Any] | None = None
    """Is told of the arrays that were given as `out`."""
    is_negated: Callable[[Any], bool] | None = None
    """Tells whether an array's values are the negatives of those in its memory."""
    lacks_memory: Callable[[Any], bool] | None = None
    """Tells whether an array has elements, but no memory where its address is."""
    place_of: Callable[[Any], Any] | None = None
    """Tells an array's device where DLPack has one name for several; `adopt` is given it. None: DLPack tells."""
    dtypes: tuple[Any, ...] = ()
    """The library's objects for the element types, in the order of ELEMENT_TYPES. None, for BFloat16, is the dtype of
    the input that outputs are made like."""
    empty: Callable[[tuple[int, ...], Any, Any], Any] | None = None
    """Makes an array of some dims and dtype on the device of another; None: memory is made and `adopt`ed."""

    plain_empty: Callable[[tuple[int, ...], Any], Any] | None = None
    """The same where there is one device, for a dtype that is not None."""

    empty_strided: tuple[Callable[..., Any] | None, Callable[..., Any] | None] = (None, None)
    """Make arrays of some dims, strides and dtype on the CPU and on the current CUDA device; None: `empty` does. Only
    for libraries that exchange."""

    functions: Mapping[str, int] = {}
    """The addresses of PyTorch's functions that _core calls without Python between, as far as there are."""

    def implementation_of(self, kind: type) -> Any:
        """What describes the attribute in which arrays of a type tell the address that those functions take; None where
        they are not for arrays of the type."""
        return None

    def key_set(self, array: Any) -> int:
        """What those functions make arrays by that are like another; 0 where they cannot."""
        return 0

    def dtype_of(self, kind: type) -> Any:
        """What describes the attribute that tells the dtype of a type's arrays, and cannot be overridden; None where
        there is none."""
        return None

    def exchange_of(self, kind: type) -> Any:
        """The capsule with the functions that exchange a type's arrays; None where there is none, or where a class
        in Python has it, whose arrays those functions need not be for."""
        name = "__dlpack_c_exchange_api__"
        # A metaclass may say anything of its classes.
        mro, own, flags = (type.__dict__[one].__get__ for one in ("__mro__", "__dict__", "__flags__"))
        owner = next((base for base in mro(kind) if name in own(base)), None)
        is_trusted = owner is not None and (owner is self.array or not flags(owner) & _MUTABLE)
        return own(owner)[name] if is_trusted and self.exchanges else None

    def bits(self, array: Any, dtype: Any) -> Any:
        """A bfloat16 array as one of integers of 16 bits; None for others."""
        return None

    def device(self, array: Any) -> Any:
        """DLPack's type of the array's device, and its number."""
        return array.__dlpack_device__()

    def capsule(self, array: Any, stream: int | None) -> Any:
        """The array in a capsule of DLPack, ready on the stream."""
        try:
            return array.__dlpack__(stream=stream, max_version=(1, 0))
        except TypeError:  # from before DLPack 1
            return array.__dlpack__(stream=stream)

    def unreadable(self, array: Any, error: BaseException) -> str:
        """Why an array cannot be read, after its name in a sentence."""
        return f"cannot be read through DLPack: {_text.first_line(error)}"

    def channels_second(self, array: Any) -> Any:
        """A view with the last axis as the second."""
        raise NotImplementedError

    def adopt(self, memory: Any, place: Any) -> Any:
        """An array in memory that speaks DLPack, or a copy of it at the inputs' place."""
        raise NotImplementedError

    def stream(self, device: int) -> int:
        """The address of the caller's current stream."""
        return 0


_ARRAY_NAMES = {"float": "float32", "double": "float64", "MLFloat16": "float16", "BFloat16": "bfloat16"}

ELEMENT_TYPES = {name: _ARRAY_NAMES.get(name, name) for name in _core.element_types()}
"""What NumPy and PyTorch call the element types, by their names in ops.yaml, in the order of _core."""


def _dtypes_of(module: Any) -> Iterator[Any]:
    """The dtypes of NumPy or CuPy, which have none for bfloat16: that is another package's, from which an input has
    come."""
    return (None if dtype == "bfloat16" else module.dtype(dtype) for dtype in ELEMENT_TYPES.values())


def torch_dtypes() -> dict[str, Any]:
    """PyTorch's types of elements by their names in ops.yaml, in the order of _core."""
    torch = import_module("torch")
    return {name: getattr(torch, dtype) for name, dtype in ELEMENT_TYPES.items()}


class NumPy(Library):
    name = "NumPy"
    has_buffers = True

    def __init__(self) -> None:
        numpy = import_module("numpy")
        self.array = self._array = numpy.ndarray
        self._integers = numpy.uint16
        self._moveaxis = numpy.moveaxis
        self.dtypes = tuple(_dtypes_of(numpy))
        self.plain_empty = numpy.empty
        self.empty = lambda dims, dtype, like: numpy.empty(dims, self._dtype.__get__(like))
        self._dtype: Any = numpy.ndarray.dtype

    def dtype_of(self, kind: type) -> Any:
        return self._dtype if issubclass(kind, self._array) else None

    def bits(self, array: Any, dtype: Any) -> Any:
        # A subclass may have a mind of its own.
        return self._array.view(array, self._integers, self._array) if str(dtype) == "bfloat16" else None

    def channels_second(self, array: Any) -> Any:
        return self._moveaxis(array, -1, 1)


# PyTorch's functions in C++, by what _core calls them. A mangled name tells the types of parameters; where a function
# had others once, each is known.
_FUNCTIONS = {
    "is_neg": ("_ZN2at6native6is_negERKNS_6TensorE",),
    "requires_grad": ("_ZNK3c1010TensorImpl13requires_gradEv",),
    "to_dlpack": (
        "_ZN2at17toDLPackNonOwningERKNS_6TensorEP8DLTensorb",
        "_ZN2at17toDLPackNonOwningERKNS_6TensorEP8DLTensor",
    ),
    "empty_strided": (
        "_ZN2at6detail21empty_strided_genericEN3c108ArrayRefIlEES3_PNS1_9AllocatorENS1_14DispatchKeySetENS1_10ScalarTypeE",
    ),
    "cpu_allocator": ("_ZN3c1015GetCPUAllocatorEv",),
    "cuda_allocator": ("_ZN2at4cuda22getCUDADeviceAllocatorEv",),
    "wrap": ("_Z16THPVariable_WrapON2at10TensorBaseE",),
    "data": ("aoti_torch_get_data_ptr",),
    "device": ("aoti_torch_get_device_index",),
    "storage_offset": ("aoti_torch_get_storage_offset",),
    "is_in_mode": ("_ZN2at4impl27torch_function_mode_enabledEv",),
}


# The versions of PyTorch for which tests/python/test_torch_functions.py has passed. Names tell the types of parameters,
# but not what these types hold: other versions, and what comes before a release, are called by their documented ways
# alone.
_KNOWN_VERSIONS = ("2.11", "2.12", "2.13", "2.14", "2.15")


def _is_known(version: str) -> bool:
    release = re.fullmatch(r"(\d+\.\d+)\.\d+(\+.*)?", version)
    return release is not None and release[1] in _KNOWN_VERSIONS


def _addresses(extension: str) -> dict[str, int]:
    """Those of `_FUNCTIONS` that an extension, or a library that it was linked to, has."""
    try:
        library = ctypes.CDLL(extension)
    except OSError:
        return {}
    found = {}
    for name, symbols in _FUNCTIONS.items():
        symbol = next((one for one in symbols if hasattr(library, one)), None)
        address = symbol and ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value
        if address:
            found[name] = address
    return found


class PyTorch(Library):
    name = "PyTorch"

    def __init__(self) -> None:
        torch = import_module("torch")
        self.array = torch.Tensor
        self.dtypes = tuple(torch_dtypes().values())
        self.is_recording = torch.is_grad_enabled
        self.requires_grad = torch.Tensor.requires_grad
        self.is_negated = torch.Tensor.is_neg
        # The quickest functions that PyTorch has, for what torch.compile writes. They are not documented.
        quick = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
        self.empty_strided = (getattr(quick, "_empty_strided_cpu", None), getattr(quick, "_empty_strided_cuda", None))
        self.functions = _addresses(torch._C.__file__) if _is_known(torch.__version__) else {}
        # A subclass may have a mind of its own.
        self._plain: tuple[type, ...] = (torch.Tensor, torch.nn.Parameter)
        self._implementation = getattr(torch.Tensor, "_cdata", None)
        self._keys: Callable[[Any], Any] | None = getattr(torch._C, "_dispatch_keys", None)
        # What torch.autograd.graph.increment_version calls, at half the cost.
        self.written = written = torch._C._increment_version
        try:
            written(())
        except TypeError:  # older ones take one tensor
            self.written = lambda tensors: [written(tensor) for tensor in tensors]
        self._raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        self._current_stream = torch.cuda.current_stream
        self._detach = torch.Tensor.detach
        # What torch.func puts around tensors. These are not documented either.
        transforms = getattr(torch._C, "_functorch", None)
        self._is_mapped = getattr(transforms, "is_batchedtensor", None)
        self._is_wrapped = getattr(transforms, "is_functorch_wrapped_tensor", None)

    @staticmethod
    def empty(dims: tuple[int, ...], dtype: Any, like: Any) -> Any:
        return like.new_empty(dims, dtype=dtype)

    def implementation_of(self, kind: type) -> Any:
        return self._implementation if kind in self._plain else None

    @staticmethod
    def lacks_memory(array: Any) -> bool:
        try:
            return bool(array.numel()) and array.untyped_storage().data_ptr() == 0
        except (NotImplementedError, RuntimeError):  # a storage that has none to tell of
            return True

    def key_set(self, array: Any) -> int:
        keys: Any = self._keys(array) if self._keys else None
        return int(keys.raw_repr()) if hasattr(keys, "raw_repr") else 0

    def capsule(self, array: Any, stream: int | None) -> Any:
        return super().capsule(self._detach(array), stream)

    def unreadable(self, array: Any, error: BaseException) -> str:
        if str(array.layout) != "torch.strided":
            return f"is a tensor of the layout {array.layout}; expected torch.strided (call to_dense())"
        if array.is_meta:
            return "is on the device meta, which has no memory; expected the CPU or CUDA"
        if self._is_mapped is not None and self._is_mapped(array):
            return (
                "is a tensor within torch.vmap, which has no memory of its own; expected a call outside of vmap, "
                f"or of the function of this name in {_text.PACKAGE}.torch, which vmap can map"
            )
        if self._is_wrapped is not None and self._is_wrapped(array):
            return (
                "is a tensor within a transform of torch.func, which has no memory of its own; expected a call outside "
                f"of it (torch.autograd.grad and backward() work with {_text.PACKAGE}.torch)"
            )
        return super().unreadable(array, error)

    def channels_second(self, array: Any) -> Any:
        return array.movedim(-1, 1)

    def stream(self, device: int) -> int:
        # An object for the stream takes ten times as long as its address.
        address: int = self._raw_stream(device) if self._raw_stream else self._current_stream(device).cuda_stream
        return address


class CuPy(Library):
    name = "CuPy"

    def __init__(self) -> None:
        self._cupy = import_module("cupy")
        self.array = getattr(self._cupy, "ndarray", None)
        self.dtypes = tuple(_dtypes_of(self._cupy))

    def empty(self, dims: tuple[int, ...], dtype: Any, like: Any) -> Any:
        with like.device:
            return self._cupy.empty(dims, like.dtype if dtype is None else dtype)

    def channels_second(self, array: Any) -> Any:
        return self._cupy.moveaxis(array, -1, 1)

    def stream(self, device: int) -> int:
        with self._cupy.cuda.Device(device):
            address: int = self._cupy.cuda.get_current_stream().ptr
            return address


class Jax(Library):
    """Its arrays cannot be written to, so outputs are memory of ours that it adopts."""

    name = "JAX"
    is_writable = False

    def __init__(self) -> None:
        jax = import_module("jax")
        self.array = jax.Array
        self._from_dlpack = import_module("jax.dlpack").from_dlpack
        self._x64 = jax.enable_x64 if hasattr(jax, "enable_x64") else import_module("jax.experimental").enable_x64

    def unreadable(self, array: Any, error: BaseException) -> str:
        if array.is_deleted():
            return "was deleted, or donated to a compiled function; expected an array that still has its memory"
        return super().unreadable(array, error)

    @staticmethod
    def place_of(array: Any) -> Any:
        # A mesh of one device is that device.
        (device,) = array.devices()
        return device

    def adopt(self, memory: Any, place: Any) -> Any:
        # Outside of x64, JAX would make float32 of double, which the inputs are.
        with self._x64(True):
            return self._from_dlpack(memory, device=place)


class ArrayApi(Library):
    """A library that the array API standard describes, by its namespace."""

    def __init__(self, namespace: Any) -> None:
        self.name = _text.shortened(getattr(namespace, "__name__", None) or _text.type_name(namespace))
        self.namespace = namespace
        self._from_dlpack = namespace.from_dlpack

    @staticmethod
    def place_of(array: Any) -> Any:
        return getattr(array, "device", None)  # there are arrays with the namespace of others, and no more

    def adopt(self, memory: Any, place: Any) -> Any:
        array = self._from_dlpack(memory)
        return array if place is None or array.device == place else array.to_device(place)


class Bare(Library):
    """Objects with `__dlpack__`, of which nothing else is known.

    Outputs are NumPy's arrays where NumPy can hold them. On a GPU, or of bfloat16, they are objects with `__dlpack__`
    for the `from_dlpack` of whatever library the caller has.
    """

    name = "objects with __dlpack__ alone"

    def adopt(self, memory: Any, place: Any) -> Any:
        try:
            return import_module("numpy").from_dlpack(memory)
        except (BufferError, RuntimeError, ModuleNotFoundError):
            return memory


_KNOWN = {"numpy": ("ndarray", NumPy), "torch": ("Tensor", PyTorch), "cupy": ("ndarray", CuPy), "jax": ("Array", Jax)}
"""The name of the type of arrays, by package."""

_MUTABLE = 1 << 9
"""CPython's flag of classes that are made at run time, as those in Python are."""

# The namespaces of arrays that are in use, by address: they need not have a hash.
_namespaces: WeakValueDictionary[int, ArrayApi] = WeakValueDictionary()


def find(array: Any, has_buffer: bool) -> Library | None:
    """The library of an array, which is that of all arrays of its type; None for what is none."""
    kind = type(array)
    _refuse_what_only_looks_like_an_array(kind)
    for package, (name, library) in _KNOWN.items():
        array_type = getattr(sys.modules.get(package), name, None)  # whose arrays come is imported
        if isinstance(array_type, type) and issubclass(kind, array_type):
            return _only(library)
    if hasattr(kind, "__dlpack__") and hasattr(kind, "__dlpack_device__"):
        return _array_api(array.__array_namespace__()) if hasattr(kind, "__array_namespace__") else _only(Bare)
    return _of_buffers(kind) if has_buffer else None


def _of_buffers(kind: type) -> Library:
    try:
        return _only(NumPy)
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            f"{kind.__name__} is a buffer, whose outputs are arrays of NumPy, which is not installed",
            name=missing.name,
        ) from missing


def _refuse_what_only_looks_like_an_array(kind: type) -> None:
    names = {f"{str(base.__module__).partition('.')[0]}.{base.__name__}" for base in kind.__mro__}
    if "jax.Tracer" in names:
        raise TypeError(
            "a value that JAX traces has no memory; call outside of jit, grad and vmap, or through jax.pure_callback"
        )
    if "numpy.MaskedArray" in names:
        raise TypeError("the mask of a numpy.ma.MaskedArray would be ignored; pass array.filled(...) instead")


@cache
def _only(library: Callable[[], Library]) -> Library:
    return library()


def _array_api(namespace: Any) -> Library:
    known = _namespaces.get(id(namespace))
    if known is None:
        known = _namespaces[id(namespace)] = ArrayApi(namespace)
    return known


# Those that a module of this name found before it was imported anew are others.
_core.forget_libraries()
