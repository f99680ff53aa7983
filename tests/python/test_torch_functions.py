"""Tensors that _core reads and makes by PyTorch's own C++ functions are as PyTorch's, and so are those where it lacks
the functions."""

from __future__ import annotations

import gc
import sys
import weakref
from pathlib import Path
from typing import Any

import gradsmith
import pytest

torch: Any = pytest.importorskip("torch")

from gradsmith import _libraries  # noqa: E402 - after the check that PyTorch can be imported

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
FORMATS = [torch.contiguous_format, torch.channels_last]
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


def tensors(device: str = "cpu", dtype: Any = torch.float32, memory_format: Any = torch.contiguous_format) -> list[Any]:
    """dY, X, W with more channels than one, so that the formats differ."""
    dims = ((2, 4, 3, 4), (2, 3, 5, 6), (4, 3, 3, 3))
    generator = torch.Generator().manual_seed(0)
    made = [torch.randn(one, generator=generator) for one in dims]
    return [one.to(device=device, dtype=dtype, memory_format=memory_format) for one in made]


def check_as_pytorchs(got: Any, like: Any) -> None:
    """That a tensor is what `torch.empty_like` gives, in memory of its own."""
    wanted = torch.empty_like(like)
    assert type(got) is torch.Tensor
    for name in ("shape", "dtype", "device", "layout", "requires_grad", "is_leaf", "_base", "grad_fn"):
        assert getattr(got, name) == getattr(wanted, name), name
    assert got.stride() == wanted.stride()
    assert got.storage_offset() == 0
    assert got.is_inference() == wanted.is_inference()
    assert got.untyped_storage().nbytes() == got.numel() * got.element_size()
    assert got.untyped_storage().resizable()
    assert torch._C._dispatch_keys(got).raw_repr() == torch._C._dispatch_keys(wanted).raw_repr()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("memory_format", FORMATS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_outputs_are_tensors_with_storages_of_their_own(dtype: Any, memory_format: Any, device: str) -> None:
    dy, x, w = tensors(device, dtype, memory_format)
    first = gradsmith.conv_grad(dy, x, w)  # by PyTorch's function for Python, if it is the first of all calls
    for _ in range(3):
        result = gradsmith.conv_grad(dy, x, w)
        check_as_pytorchs(result.dX, x)
        check_as_pytorchs(result.dW, w)
        check_as_pytorchs(result.dB, torch.empty(4, dtype=dtype, device=device))
        assert len({one.untyped_storage().data_ptr() for one in (dy, x, w, *first, *result)}) == 9
        for one, before in zip(result, first, strict=True):
            assert torch.equal(one, before)
            one.resize_(1000).fill_(1)  # none of another's memory


def test_outputs_can_be_differentiated_through() -> None:
    y = gradsmith.conv(*tensors()[1:]).Y.requires_grad_()
    (y * y).sum().backward()
    assert torch.equal(y.grad, 2 * y.detach())


def test_inference_mode() -> None:
    with torch.inference_mode():
        dy, x, w = tensors()
        for one in gradsmith.conv_grad(dy, x, w):
            check_as_pytorchs(one, one)
    for one in gradsmith.conv_grad(dy, x, w):
        check_as_pytorchs(one, one)
        assert not one.is_inference()


@pytest.fixture
def with_functions(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes tensors of a new type, of which _core knows nothing yet, whose library has no other functions."""

    def of(functions: dict[str, int]) -> Any:
        class Other(torch.Tensor):
            __torch_function__ = torch._C._disabled_torch_function_impl

        adaptor = _libraries.PyTorch()
        adaptor.functions = functions
        adaptor._plain = (Other,)
        monkeypatch.setattr(_libraries, "find", lambda array, has_buffer: adaptor)
        return lambda one: torch.Tensor._make_subclass(Other, one)

    return of


def test_the_key_set_may_be_learned_in_inference_mode(with_functions: Any) -> None:
    as_other = with_functions(_libraries.PyTorch().functions)
    x, w = (as_other(one) for one in tensors()[1:])
    with torch.inference_mode():
        gradsmith.conv(x, w)
        check_as_pytorchs(gradsmith.conv(x, w).Y, torch.empty(2, 4, 3, 4))
    check_as_pytorchs(gradsmith.conv(x, w).Y, torch.empty(2, 4, 3, 4))


@pytest.mark.parametrize(
    ("version", "known"),
    [
        ("2.10.1", False),
        ("2.11.0+cu130", True),
        ("2.16.0", False),
        ("2.15.1", True),
        ("2.15.1a0+git", False),
        ("", False),
    ],
)
def test_versions_that_have_not_been_tried_are_called_by_documented_ways(version: str, known: bool) -> None:
    assert _libraries._is_known(version) == known


@pytest.mark.skipif(not _libraries._is_known(torch.__version__), reason="this PyTorch is called by its documented ways")
def test_pytorch_has_the_functions() -> None:
    missing = set(_libraries._FUNCTIONS) - set(_libraries.PyTorch().functions)
    assert missing <= {"cuda_allocator"}  # one for the CPU has none


@pytest.mark.parametrize("hidden", [*_libraries._FUNCTIONS, "all"])
@pytest.mark.parametrize("memory_format", FORMATS, ids=str)
def test_each_function_may_be_missing(hidden: str, memory_format: Any, with_functions: Any) -> None:
    dy, x, w = tensors(memory_format=memory_format)
    found = _libraries.PyTorch().functions
    as_other = with_functions({name: at for name, at in found.items() if hidden not in (name, "all")})
    expected = gradsmith.conv_grad(dy, x, w)
    for _ in range(2):
        result = gradsmith.conv_grad(*(as_other(one) for one in (dy, x, w)))
        for got, wanted in zip(result, expected, strict=True):
            check_as_pytorchs(got, wanted)
            assert torch.equal(got, wanted)
    for refused in (as_other(torch._neg_view(x)), as_other(x).requires_grad_()):
        with pytest.raises(ValueError, match=r"negative bit|requires a gradient"):
            gradsmith.conv(refused, as_other(w))


@pytest.mark.parametrize("symbols", [{}, dict.fromkeys(_libraries._FUNCTIONS, ("no_such_function",))], ids=len)
def test_what_is_not_found_is_left_out(symbols: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_libraries, "_FUNCTIONS", symbols)
    assert _libraries._addresses(torch._C.__file__) == {}
    assert _libraries._addresses("/no/such/library") == {}


class Answering(torch.overrides.TorchFunctionMode):
    """A mode that tells another address of a tensor."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer
        self.answered = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func == torch.Tensor._cdata.__get__:
            self.answered += 1
            return self.answer
        return func(*args, **(kwargs or {}))


class Passing(torch.overrides.TorchFunctionMode):
    """A mode that has functions see other tensors, which are gone when they return."""

    def __init__(self, change: Any) -> None:
        super().__init__()
        self.change = change

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*(self.change(one) if isinstance(one, torch.Tensor) else one for one in args), **(kwargs or {}))


@pytest.mark.parametrize("answer", ["nonsense", -1, 0, 16, 10**30], ids=str)
def test_modes_of_torch_functions_may_answer_anything(answer: Any) -> None:
    inputs = tensors()
    expected = gradsmith.conv_grad(*inputs)
    mode = Answering(answer)
    with mode:
        assert inputs[0]._cdata == answer
        result = gradsmith.conv_grad(*inputs)
    assert mode.answered == 1  # by the test alone
    assert all(torch.equal(one, two) for one, two in zip(result, expected, strict=True))


@pytest.mark.parametrize("change", [torch.Tensor.clone, torch.Tensor.detach], ids=lambda change: change.__name__)
def test_modes_of_torch_functions_may_pass_other_tensors_on(change: Any) -> None:
    x, w = torch.randn(8, 16, 64, 64), torch.randn(8, 16, 3, 3)
    expected = gradsmith.conv(x, w).Y
    for _ in range(20):
        with Passing(change), torch.device("cpu"):
            result = gradsmith.conv(x, w).Y
        assert torch.equal(result, expected)


def wrapper(tensor: Any) -> Any:
    """A tensor that says that it is like another, and has no memory."""

    class Wrapper(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise NotImplementedError

    shape, strides = tensor.shape, tensor.stride()
    return torch.Tensor._make_wrapper_subclass(Wrapper, shape, strides, storage_offset=54, dtype=tensor.dtype)


@pytest.mark.parametrize(
    "empty",
    [lambda one: torch._efficientzerotensor((len(one) + 1, *one.shape[1:]))[1:], wrapper],
    ids=["zeros", "wrapper"],
)
def test_tensors_without_memory_are_refused_whatever_their_offset(empty: Any) -> None:
    dy, x, w = tensors()
    without = empty(x)
    assert without.storage_offset() > 0
    with pytest.raises((ValueError, TypeError), match=r"\bX\b.*(null data|no memory)"):
        gradsmith.conv(without, w)
    with pytest.raises((ValueError, TypeError), match=r"(null data|no memory)"):
        gradsmith.conv_grad(dy, x, w, out=(without, torch.empty_like(w), torch.empty(4)))


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.parametrize("device", DEVICES)
def test_nothing_is_left_of_ten_thousand_calls(device: str) -> None:
    inputs = tensors(device)

    def call(times: int) -> Any:
        for _ in range(times):
            result = gradsmith.conv_grad(*inputs)
        return weakref.ref(result.dX), weakref.ref(result.dB)

    call(1000)
    gc.collect()
    counts = [sys.getrefcount(one) for one in inputs]
    held = torch.cuda.memory_allocated() if device == "cuda" else 0
    resident = resident_bytes() if sys.platform == "linux" else 0
    last = call(10_000)
    gc.collect()
    assert all(one() is None for one in last)
    assert [sys.getrefcount(one) for one in inputs] == counts
    assert device == "cpu" or torch.cuda.memory_allocated() == held
    # A tensor that stayed would be of 500 bytes or more.
    assert sys.platform != "linux" or resident_bytes() - resident < 2 << 20


@pytest.mark.gpu
def test_an_output_is_on_the_device_of_the_inputs_where_another_is_current() -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("there is one GPU")
    inputs = tensors("cuda:1")
    for _ in range(3):
        assert {one.device.index for one in gradsmith.conv_grad(*inputs)} == {1}


@pytest.mark.gpu
def test_outputs_are_of_the_caching_allocator_and_their_memory_waits_for_other_streams() -> None:
    inputs = tensors("cuda")
    gradsmith.conv_grad(*inputs)
    before = torch.cuda.memory_allocated()
    made = gradsmith.conv_grad(*inputs).dX
    assert torch.cuda.memory_allocated() > before
    other = torch.cuda.Stream()
    address = made.data_ptr()
    with torch.cuda.stream(other):
        torch.cuda._sleep(100_000_000)
    made.record_stream(other)
    del made
    assert torch.empty_like(inputs[1]).data_ptr() != address
    torch.cuda.synchronize()
