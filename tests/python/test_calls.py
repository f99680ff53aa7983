"""A call: what goes in, what comes out, and whose memory it is."""

from __future__ import annotations

import ctypes
import importlib
import inspect
import sys
from array import array as typed
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import gradsmith
import numpy as np
import problems
import pytest
from gradsmith import _core, _libraries

ml_dtypes = pytest.importorskip("ml_dtypes")
TYPES = ["float32", "float64", "float16", ml_dtypes.bfloat16]


def from_numpy(library: str) -> Any:
    """The function that turns NumPy's arrays into those of a library."""
    if library == "jax":
        jax = pytest.importorskip("jax")
        jax.config.update("jax_enable_x64", True)
        return jax.numpy.asarray
    if library == "torch":
        torch = pytest.importorskip("torch")
        types = {"float32": torch.float32, "float64": torch.float64, "float16": torch.float16}
        return lambda array: torch.tensor(array.astype("float64"), dtype=types.get(str(array.dtype), torch.bfloat16))
    return lambda array: array


@pytest.mark.parametrize("library", ["numpy", "jax", "torch"])
@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_outputs_are_of_the_inputs_library_and_type(library: str, dtype: Any) -> None:
    inputs = [from_numpy(library)(array) for array in problems.arrays(dtype)]
    result = gradsmith.conv_grad(*inputs)
    problems.check(result)
    for output in result:
        assert type(output) is type(inputs[0])
        assert output.dtype == inputs[0].dtype


def test_outputs_that_are_not_asked_for_are_none() -> None:
    result = gradsmith.conv_grad(*problems.arrays(), outputs=("dB", "dX"))
    assert result.dW is None
    np.testing.assert_array_equal(result.dX, problems.DX)
    assert gradsmith.conv_grad(*problems.arrays(), outputs="dW").dX is None


def test_the_result_is_a_named_tuple_in_the_order_of_the_schema() -> None:
    result = gradsmith.conv_grad(*problems.arrays())
    assert isinstance(result, gradsmith.ConvGradResult)
    assert result._fields == ("dX", "dW", "dB")
    dX, dW, dB = result
    assert (dX is result.dX, dW is result.dW, dB is result.dB) == (True, True, True)


@pytest.mark.parametrize("form", [dict, tuple, list])
def test_out_is_written_to_and_returned(form: type) -> None:
    mine = np.full(problems.X_DIMS, np.nan, "float32")
    out = {"dX": mine} if form is dict else form([mine, None, None])
    result = gradsmith.conv_grad(*problems.arrays(), out=out)
    assert result.dX is mine
    problems.check(result)


def test_out_may_be_the_input_that_an_output_replaces() -> None:
    x = np.random.default_rng(1).normal(size=(4, 3, 2)).astype("float32")
    ones, zeros = np.ones(3, "float32"), np.zeros(3, "float32")
    mean, variance = np.zeros(3, "float32"), np.ones(3, "float32")
    out = {"running_mean": mean, "running_var": variance}
    result = gradsmith.batch_normalization(x, ones, zeros, mean, variance, momentum=0.5, out=out)
    assert result.running_mean is mean
    np.testing.assert_allclose(mean, 0.5 * x.mean(axis=(0, 2)), rtol=1e-5, atol=1e-7)


def test_an_optional_input_may_be_left_out() -> None:
    _, x, w = problems.arrays()
    plain = gradsmith.conv(x, w).Y
    biased = gradsmith.conv(x, w, np.array([3], "float32")).Y
    np.testing.assert_array_equal(biased, plain + 3)


def test_strided_inputs_are_read_where_they_are() -> None:
    dY, x, w = problems.arrays()
    wide = np.full((1, 1, 3, 6), np.nan, "float32")
    wide[..., ::2] = x
    problems.check(gradsmith.conv_grad(np.broadcast_to(dY[:, :, :1, :1], dY.shape), wide[..., ::2], w))


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_outputs_are_channels_last_where_an_input_is(library: str, which: int) -> None:
    random = np.random.default_rng(3)
    dims = [(2, 6, 4, 5), (2, 4, 5, 7), (6, 4, 2, 3)]
    inputs: list[Any] = [random.integers(-3, 4, shape).astype("float32") for shape in dims]
    expected = gradsmith.conv_grad(*inputs)
    assert [output.flags.c_contiguous for output in expected] == [True] * 3
    inputs[which] = np.moveaxis(np.ascontiguousarray(np.moveaxis(inputs[which], 1, -1)), -1, 1)
    if library == "torch":
        torch = pytest.importorskip("torch")
        inputs = [torch.from_numpy(array) for array in inputs]
    result = [np.asarray(output) for output in gradsmith.conv_grad(*inputs)]
    for got, wanted in zip(result, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
    assert [np.moveaxis(output, 1, -1).flags.c_contiguous for output in result[:2]] == [True, True]


def test_read_only_inputs_are_read() -> None:
    inputs = problems.arrays()
    for array in inputs:
        array.flags.writeable = False
    problems.check(gradsmith.conv_grad(*inputs))


def test_a_memoryview_is_an_array() -> None:
    inputs = [memoryview(array) for array in problems.arrays()]
    result = gradsmith.conv_grad(*inputs)
    assert isinstance(result.dX, np.ndarray)
    problems.check(result)


def test_whatever_has_buffers_is_an_array() -> None:
    mean, variance, wide = typed("f", [0, 0]), (ctypes.c_float * 2)(1, 1), (ctypes.c_double * 2)(1, 1)
    x = np.array([[1, 2], [3, 6]], "float32")
    ones = np.ones(2, "float32")
    with pytest.raises(TypeError, match=r"running_var has type double; expected float"):
        gradsmith.batch_normalization(x, ones, ones, mean, wide)
    result = gradsmith.batch_normalization(x, ones, ones, mean, variance, momentum=0, out={"running_mean": mean})
    assert result.running_mean is mean
    assert list(mean) == [2, 4]


class Bare:
    """An array of a library that nobody knows."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class OlderBare(Bare):
    """From before DLPack 1."""

    def __dlpack__(self, **keywords: Any) -> Any:
        if "max_version" in keywords:
            raise TypeError
        return self.array.__dlpack__(**keywords)


@pytest.mark.parametrize("kind", [Bare, OlderBare])
def test_what_only_speaks_dlpack_is_an_array(kind: type[Bare]) -> None:
    result = gradsmith.conv_grad(*(kind(array) for array in problems.arrays()))
    assert [type(output) for output in result] == [np.ndarray] * 3
    assert result.dX.flags.writeable
    problems.check(result)
    mine = np.zeros(problems.X_DIMS, "float32")
    inputs = [Bare(array) for array in problems.arrays()]
    assert gradsmith.conv_grad(*inputs, out={"dX": inputs[1].__class__(mine)}).dX.array is mine
    np.testing.assert_array_equal(mine, problems.DX)


def test_what_numpy_cannot_hold_speaks_dlpack() -> None:
    torch = pytest.importorskip("torch")
    result = gradsmith.conv_grad(*(Bare(torch.tensor(array).bfloat16()) for array in problems.arrays()))
    assert not isinstance(result.dX, np.ndarray)
    tensors = [torch.from_dlpack(output) for output in result]
    assert {tensor.dtype for tensor in tensors} == {torch.bfloat16}
    problems.check(gradsmith.ConvGradResult(*tensors))


def test_arrays_of_the_standard_say_what_their_library_is() -> None:
    strict = pytest.importorskip("array_api_strict")
    inputs = [strict.asarray(array) for array in problems.arrays()]
    result = gradsmith.conv_grad(*inputs)
    assert {type(output) for output in result} == {type(inputs[0])}
    problems.check(gradsmith.ConvGradResult(*(np.asarray(np.from_dlpack(output)) for output in result)))

    class Named:
        """Its namespace is not the package that its class is from."""

        def __init__(self, array: Any) -> None:
            self.array = array

        def __array_namespace__(self) -> Any:
            return strict

        def __dlpack__(self, **keywords: Any) -> Any:
            return self.array.__dlpack__(**keywords)

        def __dlpack_device__(self) -> Any:
            return self.array.__dlpack_device__()

    result = gradsmith.conv_grad(*(Named(array) for array in inputs))
    assert {type(output) for output in result} == {type(inputs[0])}


@pytest.mark.parametrize(
    ("auto_pad", "pads"),
    [("NOTSET", (1, 1, 0, 0)), ("SAME_LOWER", (1, 1, 0, 0)), ("SAME_UPPER", (0, 0, 1, 1))],
)
def test_output_shape_sets_the_pads(auto_pad: Any, pads: tuple[int, ...]) -> None:
    """By ONNX's rule: of an odd number the larger half is at the end for SAME_UPPER, otherwise at the beginning."""
    random = np.random.default_rng(7)
    x, w = (random.integers(-3, 4, dims).astype(np.float32) for dims in ((2, 3, 3, 4), (3, 2, 2, 3)))
    shape = (5, 8)  # 6 and 9 without pads
    told = {"strides": (2, 2), "output_shape": shape, "auto_pad": auto_pad}
    y = gradsmith.conv_transpose(x, w, **told).Y
    np.testing.assert_array_equal(y, gradsmith.conv_transpose(x, w, strides=(2, 2), pads=pads).Y)
    dy = random.integers(-3, 4, y.shape).astype(np.float32)
    gradients = gradsmith.conv_transpose_grad(dy, x, w, **told)
    for made, expected in zip(
        gradients, gradsmith.conv_transpose_grad(dy, x, w, strides=(2, 2), pads=pads), strict=True
    ):
        np.testing.assert_array_equal(made, expected)
    assert np.abs(gradients.dW).max() > 0


def test_calls_that_differ_in_one_thing_do_not_share_what_is_kept() -> None:
    """Kernels, forms and wishes are kept from call to call."""
    dY, x, w = problems.arrays()
    assert gradsmith.conv(x, w).Y.shape == (1, 1, 2, 2)
    assert gradsmith.conv(x[:, :, :2], w).Y.shape == (1, 1, 1, 2)
    strides = [1, 1]
    assert gradsmith.conv(x, w, strides=strides).Y.shape == (1, 1, 2, 2)
    strides[0] = 2
    assert gradsmith.conv(x, w, strides=strides).Y.shape == (1, 1, 1, 2)
    nested = (np.int64(1), 2)
    assert [gradsmith.conv(x, w, strides=nested).Y.shape for _ in range(2)] == [(1, 1, 2, 1)] * 2
    outputs = ["dB"]
    assert gradsmith.conv_grad(dY, x, w, outputs=outputs).dW is None
    outputs[0] = "dW"
    assert gradsmith.conv_grad(dY, x, w, outputs=outputs).dW is not None
    biased = gradsmith.conv(x, w, np.ones(1, "float32")).Y
    np.testing.assert_array_equal(biased, gradsmith.conv(x, w).Y + 1)
    tall = np.ones((2, 3, 4, 5), "float32")
    filters = np.ones((3, 3, 1, 1), "float32")
    last = np.moveaxis(np.ascontiguousarray(np.moveaxis(tall, 1, -1)), -1, 1)
    strides_of = [gradsmith.conv(one, filters).Y.strides for one in (tall, last, tall)]
    assert strides_of == [tall.strides, last.strides, tall.strides]


def test_the_cost_of_the_calls_below_can_be_told() -> None:
    op = _core.Op("ConvGrad", gradsmith.ConvGradResult)
    result = gradsmith.conv_grad(*problems.arrays())
    seconds = op.time(problems.arrays(), (None,) * 6, None, result, gradsmith.Context().policies, 10)
    assert 0 < seconds < 1
    problems.check(result)


def test_types_may_differ_where_the_schema_lets_them() -> None:
    x = np.ones((2, 3, 2), "float16")
    stats = np.ones(3, "float32")
    result = gradsmith.batch_normalization_grad(x, x, stats.astype("float16"), stats, stats)
    assert [output.dtype.name for output in result] == ["float16"] * 3
    result = gradsmith.batch_normalization_grad(x, x, stats, stats, stats)
    assert [output.dtype.name for output in result] == ["float16", "float32", "float32"]


def test_empty_arrays_go_in_and_out() -> None:
    _, x, w = problems.arrays()
    result = gradsmith.conv_grad(np.ones((0, 1, 2, 2), "float32"), x[:0], w)
    assert result.dX.shape == (0, 1, 3, 3)
    np.testing.assert_array_equal(result.dW, np.zeros(problems.W_DIMS))


def test_signatures_are_the_schemas() -> None:
    for op in gradsmith.ops():
        parameters = inspect.signature(getattr(gradsmith, op.function)).parameters.values()
        positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        keywords = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        assert positional == [tensor.name for tensor in op.inputs]
        assert keywords == [*op.attributes, "outputs", "out", "context"]
    defaults = {p.name: p.default for p in inspect.signature(gradsmith.conv_grad).parameters.values()}
    assert defaults["group"] == 1
    assert defaults["strides"] is None
    assert defaults["auto_pad"] == "NOTSET"
    assert inspect.signature(gradsmith.batch_normalization_grad).parameters["epsilon"].default == 1e-5


def test_outputs_of_jax_are_the_memory_that_was_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    jax = pytest.importorskip("jax")
    inputs = [jax.numpy.asarray(array) for array in problems.arrays()]
    gradsmith.conv_grad(*inputs)
    adaptor, written = _libraries._only(_libraries.Jax), []
    adopt = adaptor.adopt

    def adopt_and_tell(memory: Any, place: Any) -> Any:
        written.append(np.from_dlpack(memory).ctypes.data)
        return adopt(memory, place)

    monkeypatch.setattr(adaptor, "adopt", adopt_and_tell)
    result = gradsmith.conv_grad(*inputs)
    assert [output.unsafe_buffer_pointer() for output in result] == written


def test_cupys_stream_is_the_current_one_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for CuPy, which needs a GPU."""
    current: list[int] = [0]

    @contextmanager
    def device(number: int) -> Iterator[None]:
        current.append(number)
        yield
        current.pop()

    cuda = SimpleNamespace(Device=device, get_current_stream=lambda: SimpleNamespace(ptr={0: 100, 1: 101}[current[-1]]))
    made: list[tuple[Any, ...]] = []
    cupy = SimpleNamespace(cuda=cuda, dtype=np.dtype, empty=lambda *told: made.append((current[-1], *told)))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    adaptor = _libraries.CuPy()
    assert [adaptor.stream(number) for number in (0, 1)] == [100, 101]
    adaptor.empty((2,), None, SimpleNamespace(device=device(1), dtype="float16"))
    assert made == [(1, (2,), "float16")]


def test_doubles_of_jax_stay_doubles_outside_of_x64() -> None:
    jax = pytest.importorskip("jax")
    x64 = jax.enable_x64 if hasattr(jax, "enable_x64") else importlib.import_module("jax.experimental").enable_x64
    with x64(True):
        inputs = [jax.numpy.asarray(array) for array in problems.arrays("float64")]
    with x64(False):
        result = gradsmith.conv_grad(*inputs)
        assert {one.dtype.name for one in result} == {"float64"}
        problems.check(result)
        single = gradsmith.conv_grad(*(jax.numpy.asarray(array) for array in problems.arrays("float32")))
        assert {one.dtype.name for one in single} == {"float32"}


def test_outputs_of_jax_are_not_copied_from_elsewhere() -> None:
    """What is adopted keeps its memory while it lives, and not longer: many calls do not pile up."""
    resource = pytest.importorskip("resource")
    jax = pytest.importorskip("jax")
    x = jax.numpy.ones((1, 64, 64, 64), "float32")
    w = jax.numpy.ones((64, 64, 1, 1), "float32")
    kept = [gradsmith.conv(x, w).Y for _ in range(2)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(100):
        gradsmith.conv(x, w)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 20 * 1024  # kilobytes; each Y has 1024
    assert all(float(array[0, 0, 0, 0]) == 64 for array in kept)
