"""Wrong calls: the exception fits, and its sentence names the op, the argument, what was expected and what came."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradsmith
import numpy as np
import problems
import pytest

DY, X, W = problems.arrays()


def call(**changes: Any) -> Any:
    """conv_grad of the small problem with some arguments replaced."""
    arguments = {"dY": DY, "X": X, "W": W, **changes}
    return gradsmith.conv_grad(**arguments)


def unaligned() -> Any:
    return np.frombuffer(bytes(37), "float32", count=9, offset=1).reshape(problems.X_DIMS)


def odd_stride() -> Any:
    pairs = np.zeros(9, [("x", "float32"), ("y", "uint8")])
    return pairs["x"].reshape(problems.X_DIMS)


@pytest.mark.parametrize(
    ("changes", "kind", "sentence"),
    [
        pytest.param({"W": [1.0]}, TypeError, "ConvGrad: W is [1.0] (list); expected an array", id="no array"),
        pytest.param({"dY": None}, TypeError, "ConvGrad: dY is None (NoneType); expected", id="required input"),
        pytest.param({"X": X.astype("int16")}, TypeError, "X holds int16; expected float, double", id="no such type"),
        pytest.param({"X": X.astype(int)}, TypeError, "X has type int64; expected float (T)", id="integers"),
        pytest.param({"X": X.astype(">f4")}, TypeError, "X holds >f4; expected", id="byte order"),
        pytest.param({"X": X.astype("float64")}, TypeError, "X has type double; expected float (T)", id="types differ"),
        pytest.param({"X": unaligned()}, ValueError, "X has data 1 byte past a multiple of 4; ", id="alignment"),
        pytest.param({"X": odd_stride()}, ValueError, "X has a stride of 45 bytes at dimension 0", id="stride"),
        pytest.param({"X": X[:, :, ::-1]}, ValueError, "X has strides [9, 9, -3, 1], negative", id="negative"),
        pytest.param({"strides": (2, 2)}, ValueError, "dY has O = [2, 2]; expected [1, 1]", id="shape"),
        pytest.param({"strides": 2}, TypeError, "strides is 2 (int); expected a sequence of int", id="no list"),
        pytest.param({"strides": "22"}, TypeError, "strides is '22' (str); expected a sequence", id="text"),
        pytest.param({"strides": (1, 0.5)}, TypeError, "strides is (1, 0.5) (tuple); expected", id="fraction"),
        pytest.param({"strides": (0, 1)}, ValueError, "strides is [0, 1], with 0; expected", id="range"),
        pytest.param({"strides": (1,) * 9}, ValueError, "expected at most 8 values", id="too long"),
        pytest.param({"group": 2**70}, ValueError, "expected integers of 64 bits", id="too large"),
        pytest.param({"group": 1.5}, TypeError, "group is 1.5 (float); expected an integer", id="no integer"),
        pytest.param({"auto_pad": 1}, TypeError, "auto_pad is 1 (int); expected a name", id="no name"),
        pytest.param({"auto_pad": "SAME_UPER"}, ValueError, "did you mean 'SAME_UPPER'", id="name"),
        pytest.param({"stride": (2, 2)}, TypeError, "is no argument 'stride'; did you mean 'strides'?", id="keyword"),
        pytest.param({"dw": W}, TypeError, "there is no argument 'dw'; expected one of dY, X, W, kernel", id="unlike"),
        pytest.param({"outputs": ("dx",)}, ValueError, "dX, dW, dB; did you mean 'dX'?", id="output's case"),
        pytest.param({"out": {"dx": X}}, ValueError, "dX, dW, dB; did you mean 'dX'?", id="case of one to write"),
        pytest.param({"outputs": "dQ"}, ValueError, "outputs holds 'dQ'; expected names of", id="no output"),
        pytest.param({"outputs": ()}, ValueError, "outputs asks for nothing; expected names", id="nothing"),
        pytest.param({"outputs": iter([])}, ValueError, "outputs asks for nothing; expected", id="nothing, iterated"),
        pytest.param({"outputs": (1,)}, TypeError, "outputs holds 1; expected names", id="no name of output"),
        pytest.param({"out": {"dQ": X}}, ValueError, "out holds 'dQ'; expected", id="no output to write"),
        pytest.param({"out": (X,)}, TypeError, "out is tuple of 1; expected a dict", id="too few to write"),
        pytest.param({"out": X}, TypeError, "out is numpy.ndarray; expected a dict", id="one to write"),
        pytest.param({"outputs": "dW", "out": {"dX": X}}, ValueError, "which outputs does not ask for", id="unwanted"),
        pytest.param({"out": {"dX": X}}, ValueError, "output dX overlaps input X", id="overlap"),
        pytest.param({"out": {"dB": np.zeros(1)}}, TypeError, "dB has type double; expected float", id="out type"),
        pytest.param({"out": {"dB": ""}}, TypeError, "output dB is '' (str); expected an array", id="out"),
        pytest.param({"X": memoryview(b"1234").cast("h")}, TypeError, "X holds h; expected float", id="shorts"),
        pytest.param({"auto_pad": "\ud800"}, ValueError, r"auto_pad is '\ud800'; expected one of", id="no UTF-8"),
        pytest.param({"outputs": "\ud800"}, ValueError, r"outputs holds '\ud800'; expected", id="no UTF-8, output"),
        pytest.param({"W": ["\u00e4" * 99]}, TypeError, f"W is ['{58 * chr(0xE4)}... (list); expected", id="cut"),
    ],
)
def test_wrong_calls_say_what_is_wrong(changes: dict[str, Any], kind: type[Exception], sentence: str) -> None:
    with pytest.raises(kind) as caught:
        call(**changes)
    assert sentence in str(caught.value)
    assert str(caught.value).startswith("ConvGrad")


def test_unaligned_memory_is_refused_as_by_the_library() -> None:
    """Its sentence names the row; what has no elements is nowhere."""
    into = np.frombuffer(bytearray(37), "float32", count=9, offset=1).reshape(problems.X_DIMS)
    for changes, name in (({"X": unaligned()}, "X"), ({"out": {"dX": into}}, "dX")):
        row = r"ConvGrad\[float\] on cpu \(ops.yaml:\d+\)"
        with pytest.raises(ValueError, match=f"^{row}: {name} has data 1 byte past a multiple of 4; expected"):
            call(**changes)
    x = np.ones((1, 2, 3), "float32")
    nothing = np.frombuffer(bytes(9), "float32", count=0, offset=1).reshape(0, 2, 3)
    assert gradsmith.conv(nothing, x).Y.shape == (0, 1, 1)


def test_outputs_that_are_no_sequence() -> None:
    with pytest.raises(TypeError, match=r"^ConvGrad: outputs is 3.*; expected names of outputs: "):
        call(outputs=3)


def test_required_outputs_must_be_asked_for_as_the_documentation_says() -> None:
    x = np.ones((2, 3), "float32")
    with pytest.raises(ValueError, match=r"^BatchNormalization\[float\] .*: output Y is absent; it is required$"):
        gradsmith.batch_normalization(x, *[np.ones(3, "float32")] * 4, outputs="saved_mean")
    assert "The outputs to compute, by name, Y among them." in (gradsmith.batch_normalization.__doc__ or "")


def test_only_what_is_near_is_suggested_of_outputs() -> None:
    with pytest.raises(ValueError, match="expected names of outputs: dX, dW, dB$"):
        call(outputs="dQ")
    x = np.ones((2, 3), "float32")
    with pytest.raises(ValueError, match="saved_inv_std; did you mean 'saved_mean'"):
        gradsmith.batch_normalization(x, *[np.ones(3, "float32")] * 4, outputs=("Y", "save_mean"))


def test_a_read_only_array_is_not_written_to() -> None:
    mine = np.zeros(1, "float32")
    mine.flags.writeable = False
    with pytest.raises(ValueError, match="output dB is read-only; expected an array to write to"):
        call(out={"dB": mine})


def test_a_combination_without_a_row_names_the_nearest() -> None:
    x = np.ones((2, 3), "float64")
    with pytest.raises(NotImplementedError) as caught:
        gradsmith.batch_normalization_grad(x, x, *[np.ones(3, "float16")] * 3)
    assert "No row is BatchNormalizationGrad" in str(caught.value)
    assert "nearest: BatchNormalizationGrad[double]" in str(caught.value)


def mixed() -> None:
    torch = pytest.importorskip("torch")
    call(X=torch.zeros(problems.X_DIMS))


def jax_out() -> None:
    jax = pytest.importorskip("jax")
    inputs = [jax.numpy.asarray(array) for array in (DY, X, W)]
    gradsmith.conv_grad(*inputs, out={"dB": jax.numpy.zeros(1, "float32")})


@pytest.mark.parametrize(
    ("wrong", "kind", "sentence"),
    [
        (mixed, TypeError, "ConvGrad: X is an array of PyTorch, the inputs before it are of NumPy"),
        (jax_out, ValueError, "output dB is read-only"),
    ],
)
def test_libraries_are_not_mixed_nor_is_what_is_fixed_written_to(
    wrong: Callable[[], None], kind: type[Exception], sentence: str
) -> None:
    with pytest.raises(kind) as caught:
        wrong()
    assert sentence in str(caught.value)


def test_no_memory_is_a_memory_error() -> None:
    """The output would have 2^55 bytes."""
    x = np.broadcast_to(np.float32(1), (1 << 26, 1, 1 << 26))
    with pytest.raises(MemoryError):
        gradsmith.conv(x, np.ones((2, 1, 1), "float32"))


def test_a_failed_call_leaves_the_outputs_alone() -> None:
    mine = np.full(problems.X_DIMS, 7, "float32")
    with pytest.raises(ValueError, match="expected"):
        call(strides=(2, 2), out={"dX": mine})
    assert (mine == 7).all()


@pytest.mark.parametrize(
    ("of", "kind", "sentence"),
    [
        (lambda x: torch_complex(x).conj().imag, ValueError, "its negative bit is set"),
        (lambda x: torch_complex(x)[:, :1, :1, :1].conj().imag, ValueError, "call resolve_neg()"),
        (lambda x: pytest.importorskip("torch")._neg_view(x), ValueError, "its negative bit is set"),
        (lambda x: torch_complex(x).conj(), TypeError, "X holds complex64; expected float"),
        (lambda x: x.to_sparse(), TypeError, "X is a tensor of the layout torch.sparse_coo; expected torch.strided"),
        (lambda x: x.to("meta"), TypeError, "X is on the device meta, which has no memory"),
    ],
)
def test_tensors_that_mean_more_than_their_memory_are_refused(
    of: Callable[[Any], Any], kind: type[Exception], sentence: str
) -> None:
    torch = pytest.importorskip("torch")
    dy, x, w = (torch.from_numpy(array) for array in problems.arrays())
    with pytest.raises(kind) as caught:
        gradsmith.conv_grad(dy, of(x), w)
    assert str(caught.value).startswith("ConvGrad: X")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def torch_complex(x: Any) -> Any:
    return pytest.importorskip("torch").complex(x, x)


def test_the_negative_bit_matters_for_outputs_and_can_be_resolved() -> None:
    torch = pytest.importorskip("torch")
    dy, x, w = (torch.from_numpy(array) for array in problems.arrays())
    negated = torch_complex(-x).conj().imag
    problems.check(gradsmith.conv_grad(dy, negated.resolve_neg(), w))
    with pytest.raises(ValueError, match="output dX is a view whose values are the negatives"):
        gradsmith.conv_grad(dy, x, w, out={"dX": torch.complex(x, x).conj().imag})
    ours = pytest.importorskip("gradsmith.torch")
    problems.check(ours.conv_grad(dy, negated, w))  # PyTorch resolves it for its own operators


class Bare:
    """An array that says what it is told to say."""

    def __init__(self, place: Any = (1, 0), error: BaseException | None = None) -> None:
        self.place = place
        self.error = error

    def __dlpack__(self, **keywords: Any) -> Any:
        if self.error:
            raise self.error
        return X.__dlpack__(**keywords)

    def __dlpack_device__(self) -> Any:
        return self.place


@pytest.mark.parametrize(
    ("place", "kind", "sentence"),
    [
        ("cpu", TypeError, "is 'cpu' (str); expected a sequence of integers"),
        (None, TypeError, "is None (NoneType); expected a sequence of integers"),
        ((1.0, None), TypeError, "is (1.0, None) (tuple); expected a sequence of integers"),
        ((1,), TypeError, "is (1,); expected a type of devices and the number of one"),
        ((2, -1), TypeError, "is (2, -1); expected a type of devices"),
        ((2, 1 << 40), TypeError, "expected a type of devices"),
        ((1 << 70, 0), ValueError, "expected integers of 64 bits"),
    ],
)
def test_what_devices_cannot_be(place: Any, kind: type[Exception], sentence: str) -> None:
    with pytest.raises(kind) as caught:
        gradsmith.conv(Bare(place), Bare())
    assert str(caught.value).startswith("Conv: X's __dlpack_device__ is ")
    assert sentence in str(caught.value)


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (BufferError("no\nmore"), "no"),
        (BufferError("a" * 240), "a" * 240),
        (BufferError("a" * 10_000_000), "a" * 240 + "..."),
        (BufferError("\x1b[31mred\r\0\ud800 \N{GREEK SMALL LETTER PI}"), r"\x1b[31mred\r\x00\ud800 π"),
        (Mute(), f"{__name__}.Mute"),
    ],
    ids=["lines", "short", "long", "unprintable", "mute"],
)
def test_what_an_arrays_own_error_says_is_cut(error: Exception, told: str) -> None:
    with pytest.raises(TypeError) as caught:
        gradsmith.conv(Bare(error=error), Bare())
    assert str(caught.value) == f"Conv: X cannot be read through DLPack: {told}"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), MemoryError("none")])
def test_interrupts_and_lack_of_memory_are_no_fault_of_the_array(error: BaseException) -> None:
    class Interrupted:
        def __index__(self) -> int:
            raise error

    with pytest.raises(type(error)) as caught:
        gradsmith.conv(Bare(error=error), Bare())
    assert caught.value is error
    with pytest.raises(type(error)):
        call(group=Interrupted())
    with pytest.raises(TypeError, match="X cannot be read through DLPack: busy"):
        gradsmith.conv(Bare(error=BufferError("busy")), Bare())


@pytest.mark.parametrize("is_donated", [False, True])
def test_arrays_of_jax_that_are_gone_are_refused(is_donated: bool) -> None:
    jax = pytest.importorskip("jax")
    x, w = jax.numpy.ones((1, 1, 3, 3), "float32"), jax.numpy.ones((1, 1, 2, 2), "float32")
    if is_donated:
        jax.jit(lambda one: one * 2, donate_argnums=0)(x)
    else:
        x.delete()
    with pytest.raises(TypeError, match=r"Conv: X was deleted, or donated to a compiled function; expected"):
        gradsmith.conv(x, w)


def test_masks_are_not_ignored() -> None:
    with pytest.raises(TypeError, match=r"pass array\.filled"):
        call(X=np.ma.masked_array(X, mask=X > 0))


def test_traced_values_of_jax_are_refused() -> None:
    jax = pytest.importorskip("jax")
    with pytest.raises(TypeError, match="jax.pure_callback"):
        jax.jit(lambda x: call(X=x).dW)(jax.numpy.asarray(X))


def test_autograd_learns_of_what_was_written_to() -> None:
    torch = pytest.importorskip("torch")
    x, w = torch.ones(1, 1, 2, 2), torch.ones(1, 1, 1, 1)
    saved, factor = torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2, requires_grad=True)
    total = (saved * factor).sum()
    gradsmith.conv(x, w, out={"Y": saved})
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        total.backward()
    with pytest.raises(ValueError, match="output Y requires a gradient"):
        gradsmith.conv(x, w, out={"Y": factor})
    with torch.no_grad():
        gradsmith.conv(x, 2 * w, out={"Y": factor})
    assert torch.equal(factor, 2 * x)
