"""Arrays that lie: what they say of themselves in Python is not believed, and what DLPack or the buffer protocol says
is checked before memory is read."""

from __future__ import annotations

import ctypes
import gc
import json
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import capsules
import gradsmith
import numpy as np
import processes
import pytest

X = np.arange(6.0).reshape(1, 1, 6)
W = np.array([[[1.0, 10.0]]])
Y = [[[10, 21, 32, 43, 54]]]

LIES: dict[str, Any] = {
    "dtype": np.dtype("float32"),
    "shape": (1, 1, 1000),
    "strides": (8, 8, 800),
    "ndim": 1,
    "size": 1 << 40,
    "nbytes": 1,
    "itemsize": 1,
    "data": None,
    "ctypes": None,
    "flags": None,
    "T": None,
    "base": None,
    "device": "meta",
    "__array_interface__": {"version": 3, "shape": (1, 1, 1000), "typestr": "<f8", "data": (8, False)},
    "__array_struct__": None,
    "__len__": lambda self: 1 << 40,
    "__getitem__": lambda self, at: None,
    "__dlpack__": lambda self, **keywords: None,
    "__dlpack_device__": lambda self: (2, 0),
    "__array_namespace__": lambda self, **keywords: None,
    "__buffer__": lambda self, flags: memoryview(b""),
    "view": lambda self, *types: None,
    "astype": lambda self, *types: None,
    "__array_finalize__": lambda self, other: None,
}


def lying(array: Any, **lies: Any) -> Any:
    return array.view(type("Lying", (np.ndarray,), lies))


@pytest.mark.parametrize("name", LIES)
@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_a_subclass_is_read_by_what_its_memory_holds(name: str, dtype: str) -> None:
    element_type = dtype if dtype == "float64" else pytest.importorskip("ml_dtypes").bfloat16
    x, w = lying(X.astype(element_type), **{name: LIES[name]}), W.astype(element_type)
    y = lying(np.full((1, 1, 5), np.nan, element_type), **{name: LIES[name]})
    assert gradsmith.conv(x, w, out={"Y": y}).Y is y
    np.testing.assert_array_equal(np.ndarray.view(y, np.ndarray), Y)
    np.testing.assert_array_equal(gradsmith.conv(x, w).Y.astype("float64"), Y)


@pytest.mark.parametrize("truly", ["uint16", "float16", "int16", ">f8", ">i8", "complex128", "S8"])
def test_elements_are_of_the_type_that_they_are_of(truly: str) -> None:
    memory = np.zeros(4000, "uint8")
    x = lying(memory[: 6 * np.dtype(truly).itemsize].view(truly).reshape(1, 1, 6), dtype=np.dtype("float64"))
    with pytest.raises(TypeError, match=r"Conv.*: (X holds|W has type) .*; expected"):
        gradsmith.conv(x, W)
    y = lying(memory[: 5 * np.dtype(truly).itemsize].view(truly).reshape(1, 1, 5), dtype=np.dtype("float64"))
    with pytest.raises(TypeError, match=r"Y (holds|has type) .*; expected"):
        gradsmith.conv(X, W, out={"Y": y})
    assert not memory.any()


@pytest.mark.parametrize("truly", ["int32", "int64", "uint8", "uint32", "bool", "longlong", "<i8"])
def test_integers_are_told_from_what_an_operator_takes(truly: str) -> None:
    x = lying(np.zeros((1, 1, 6), truly), dtype=np.dtype("float64"))
    name = "int64" if np.dtype(truly).itemsize == 8 else truly
    with pytest.raises(NotImplementedError, match=rf"No row is Conv\({name}\) on cpu"):
        gradsmith.conv(x, W)
    with pytest.raises(TypeError, match=f"Y has type {name}; expected double"):
        gradsmith.conv(X, W, out={"Y": np.zeros((1, 1, 5), truly)})


def test_elements_without_a_size_are_refused() -> None:
    """They would be divided by."""
    told = processes.check(
        """
        import gradsmith, numpy as np
        Lying = type("Lying", (np.ndarray,), {"dtype": np.dtype("float64")})
        for kind in ("V0", "S0", "U0"):
            try:
                gradsmith.conv(np.zeros((1, 1, 6), kind).view(Lying), np.ones((1, 1, 2)))
            except TypeError as error:
                print(error)
        """
    )
    assert told.count("Conv: X holds ") == 3


def test_what_has_only_a_buffer_is_read_by_that() -> None:
    ones = np.ones(2, "float32")
    x = np.array([[1, 2], [3, 6]], "float32")
    small = type("Lying", (ctypes.c_uint16 * 2,), {"dtype": np.dtype("float32"), "shape": (2,)})()
    with pytest.raises(TypeError, match=r"running_mean holds <H; expected"):
        gradsmith.batch_normalization(x, ones, ones, small, ones)
    mean = type("Lying", (ctypes.c_float * 2,), {"dtype": np.dtype("float64"), "strides": (80,)})()
    gradsmith.batch_normalization(x, ones, ones, mean, ones, momentum=0, out={"running_mean": mean})
    assert list(mean) == [2, 4]


@pytest.mark.parametrize("package", ["torch", "cupy", "jax", "jaxlib", "numpy", "no_such_package"])
def test_a_class_is_of_the_library_that_it_derives_from(package: str) -> None:
    class Tensor(capsules.Lying):
        __module__ = package

    assert isinstance(gradsmith.conv(Tensor(X), Tensor(W)).Y, np.ndarray)


def test_functions_that_exchange_are_not_called_for_a_class_in_python() -> None:
    called: list[Any] = []
    borrow = ctypes.CFUNCTYPE(None, ctypes.py_object, ctypes.c_void_p)(lambda *told: called.append(told))
    functions = (ctypes.c_void_p * 16)(1, 0, 0, 0, 0, ctypes.cast(borrow, ctypes.c_void_p))
    new = ctypes.pythonapi.PyCapsule_New
    stolen = new(ctypes.addressof(functions), b"dlpack_exchange_api", None)
    kind = type("Thief", (capsules.Lying,), {"__dlpack_c_exchange_api__": stolen})
    np.testing.assert_array_equal(gradsmith.conv(kind(X), kind(W)).Y, Y)
    assert called == []


REFUSE = """
import json, capsules, gradsmith, numpy as np
W, told = np.ones((1, 1, 2)), {}
for is_versioned in (False, True):
    for name, (expected, lies) in capsules.LIES.items():
        x = capsules.Lying(np.ones((1, 1, 3)), is_versioned, **lies)
        w = capsules.Lying(W)
        try:
            gradsmith.conv(x, w)
            error = None
        except Exception as caught:
            error = caught
        print(json.dumps([is_versioned, name, type(error).__name__, str(error), x.deleted]), flush=True)
"""


@pytest.fixture(scope="module")
def refusals() -> dict[tuple[bool, str], tuple[str, str, int]]:
    """What came of each lie, up to one that took the process down."""
    lines = map(json.loads, processes.run(REFUSE).stdout.splitlines())
    return {(is_versioned, name): tuple(told) for is_versioned, name, *told in lines}


@pytest.mark.parametrize("name", capsules.LIES)
@pytest.mark.parametrize("is_versioned", [False, True])
def test_a_capsule_that_cannot_be_so_is_refused(refusals: Any, is_versioned: bool, name: str) -> None:
    assert (is_versioned, name) in refusals, "the process was down by then"
    kind, sentence, deleted = refusals[is_versioned, name]
    assert kind == capsules.LIES[name][0].__name__, sentence
    assert sentence.startswith("Conv")
    assert "; expected" in sentence
    assert deleted == 1


def test_empty_tensors_need_no_data() -> None:
    w = capsules.Lying(np.ones((1, 1, 2)))
    assert gradsmith.conv(capsules.Lying(np.ones((0, 1, 3)), data=None, byte_offset=8), w).Y.shape == (0, 1, 2)


@pytest.mark.parametrize("is_versioned", [False, True])
def test_a_tensor_is_taken_out_of_its_capsule(is_versioned: bool) -> None:
    """Otherwise another could take it, and let go of the memory within the call."""
    x = capsules.Lying(X, is_versioned)

    class Late(capsules.Lying):
        def __dlpack__(self, **keywords: Any) -> Any:
            states.append((x.is_used, x.deleted))
            return self.capsule

    states: list[tuple[bool, int]] = []
    np.testing.assert_array_equal(gradsmith.conv(x, Late(W)).Y, Y)
    assert states == [(True, 0)]
    assert x.deleted == 1
    with pytest.raises(TypeError, match="expected a capsule of DLPack that nobody has used"):
        gradsmith.conv(x, capsules.Lying(W))
    assert x.deleted == 1


@pytest.mark.parametrize("flags", [1, 2, 3])
def test_what_is_read_only_or_a_copy_is_not_written_to(flags: int) -> None:
    y = capsules.Lying(np.zeros((1, 1, 5)), True, flags=flags)
    with pytest.raises(ValueError, match="output Y is read-only"):
        gradsmith.conv(capsules.Lying(X), capsules.Lying(W), out={"Y": y})
    x = capsules.Lying(X, True, flags=flags)
    np.testing.assert_array_equal(gradsmith.conv(x, capsules.Lying(W)).Y, Y)


def of_numpy() -> Any:
    return type("Once", (np.ndarray,), {"__new__": lambda kind, array: array.view(kind)})


def of_dlpack() -> Any:
    return type("Once", (capsules.Lying,), {})


def of_a_namespace() -> Any:
    """One that has no hash."""

    class Namespace(SimpleNamespace):
        __hash__ = None

    namespace = Namespace(__name__="once", from_dlpack=np.from_dlpack)
    return type("Once", (capsules.Lying,), {"__array_namespace__": lambda self, **keywords: namespace})


@pytest.mark.parametrize("make", [of_numpy, of_dlpack, of_a_namespace], ids=lambda make: make.__name__)
def test_types_of_arrays_are_not_kept(make: Callable[[], Any]) -> None:
    def call() -> weakref.ref[type]:
        kind = make()
        gradsmith.conv(kind(X), kind(W))
        return weakref.ref(kind)

    types = [call() for _ in range(3)]
    gc.collect()
    assert [one() for one in types] == [None] * 3


def test_types_of_buffers_are_not_kept() -> None:
    ones = np.ones(2, "float32")

    def call() -> weakref.ref[type]:
        mean = type("Once", (ctypes.c_float * 2,), {})(0, 0)
        gradsmith.batch_normalization(np.ones((2, 2), "float32"), ones, ones, mean, ones)
        return weakref.ref(type(mean))

    types = [call() for _ in range(3)]
    gc.collect()
    assert [one() for one in types] == [None] * 3


MOVE = """
import ctypes, sys, gradsmith, numpy as np
how, where = sys.argv[1:]
SIZE = 1 << 20  # large enough to be given back to the system
W = np.array([[[1.0, 10.0]]])
if how == "ctypes":
    X = ((ctypes.c_double * SIZE) * 1 * 1)()
    move = lambda: ctypes.resize(X, 4 * ctypes.sizeof(X))
else:
    X = np.ones((1, 1, SIZE))
    move = lambda: X.resize((0,), refcheck=False)

def after_move(value):
    move()
    return value

class Index:
    __index__ = lambda self: after_move(1)

class Name:
    __iter__ = lambda self: iter([after_move("Y")])

class Kind(type):
    def __getattribute__(self, name):
        if name == "__module__":
            move()
        return super().__getattribute__(name)

Into = Kind("Into", (np.ndarray,), {})
keywords = {
    "attribute": lambda: {"strides": [Index()]},
    "number": lambda: {"group": Index()},
    "outputs": lambda: {"outputs": Name()},
    "out": lambda: {"out": {"Y": np.zeros((1, 1, SIZE - 1)).view(Into)}},
}[where]()
try:
    gradsmith.conv(X, W, **keywords)
except ValueError as error:
    print(error)
"""


@pytest.mark.parametrize("where", ["attribute", "number", "outputs", "out"])
@pytest.mark.parametrize("how", ["ctypes", "numpy"])
def test_memory_that_a_callers_code_moves_is_read_where_it_is_then(how: str, where: str) -> None:
    """What has been taken of a buffer keeps neither `ctypes.resize` nor NumPy's `refcheck=False` from it."""
    told = processes.check(MOVE, how, where)
    assert {"ctypes": "X has dims [1, 1, 1048576] and a buffer of", "numpy": "X has shape [0]"}[how] in told
