"""gradsmith.torch: autograd, torch.library and torch.compile, and PyTorch's own operators as peers."""

from __future__ import annotations

from typing import Any

import gradsmith
import pytest

torch: Any = pytest.importorskip("torch")
if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 4):
    pytest.skip("torch.library.custom_op came with PyTorch 2.4", allow_module_level=True)

import gradsmith.torch as ours  # noqa: E402 - after the check that it can be imported

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
OPS = torch.ops.gradsmith

CONV = [
    {},
    {"group": 2, "strides": (2, 1), "pads": (0, 1, 1, 0)},
    {"dilations": (2, 1), "auto_pad": "SAME_LOWER"},
]
CONV_TRANSPOSE = [
    {},
    {"group": 2, "strides": (2, 3), "pads": (0, 1, 1, 0), "output_padding": (1, 2)},
    {"dilations": (1, 2), "pads": (1, 0, 1, 2)},
]


def leaf(*dims: int, device: str) -> Any:
    return torch.randn(*dims, dtype=torch.double, device=device, requires_grad=True)


def conv_inputs(attributes: dict[str, Any], device: str, transposed: bool = False) -> tuple[Any, Any, Any]:
    """X, W, B with four channels in and six out."""
    group = attributes.get("group", 1)
    w = (4, 6 // group) if transposed else (6, 4 // group)
    return leaf(2, 4, 5, 6, device=device), leaf(*w, 3, 2, device=device), leaf(6, device=device)


def batch_norm_inputs(device: str) -> tuple[Any, ...]:
    zeros, ones = torch.zeros(3, dtype=torch.double, device=device), torch.ones(3, dtype=torch.double, device=device)
    return leaf(4, 3, 5, device=device), leaf(3, device=device), leaf(3, device=device), zeros, ones


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("attributes", CONV)
def test_gradcheck_of_conv(attributes: dict[str, Any], device: str) -> None:
    inputs = conv_inputs(attributes, device)
    assert torch.autograd.gradcheck(lambda *given: ours.conv(*given, **attributes).Y, inputs)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("attributes", CONV_TRANSPOSE)
def test_gradcheck_of_conv_transpose(attributes: dict[str, Any], device: str) -> None:
    inputs = conv_inputs(attributes, device, transposed=True)
    assert torch.autograd.gradcheck(lambda *given: ours.conv_transpose(*given, **attributes).Y, inputs)


@pytest.mark.parametrize("device", DEVICES)
def test_gradcheck_of_batch_normalization(device: str) -> None:
    assert torch.autograd.gradcheck(
        lambda *given: ours.batch_normalization(*given, epsilon=0.25).Y, batch_norm_inputs(device)
    )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["conv", "conv_transpose", "batch_normalization"])
def test_opcheck_of_forwards(name: str, device: str) -> None:
    inputs: Any = batch_norm_inputs(device)
    if name != "batch_normalization":
        inputs = conv_inputs({}, device, transposed=name == "conv_transpose")
    torch.library.opcheck(getattr(OPS, name).default, inputs)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("outputs", [["dX", "dW", "dB"], ["dB"], ["dB", "dX"]])
def test_opcheck_of_a_gradient(outputs: list[str], device: str) -> None:
    x, w, b = (one.detach() for one in conv_inputs({}, device))
    y = ours.conv(x, w, b).Y
    torch.library.opcheck(OPS.conv_grad.default, (y, x, w), {"outputs": outputs})


def test_opcheck_of_the_other_gradients() -> None:
    x, w, _ = (one.detach() for one in conv_inputs({}, "cpu", transposed=True))
    y = ours.conv_transpose(x, w).Y
    torch.library.opcheck(OPS.conv_transpose_grad.default, (y, x, w), {"outputs": ["dX", "dW", "dB"]})
    x, scale, *_ = (one.detach() for one in batch_norm_inputs("cpu"))
    arguments = (x, x, scale, scale, scale)
    torch.library.opcheck(OPS.batch_normalization_grad.default, arguments, {"outputs": ["dX", "dBias"]})


@pytest.mark.parametrize("dims", [(2, 4, 5, 6), (1, 4, 5, 1), (2, 1, 5, 6), (2, 4, 1, 1)])
def test_opcheck_of_channels_last(dims: tuple[int, ...]) -> None:
    """Strides, too, are what the fake implementation says, also where dims of one element make them ambiguous."""
    x = torch.randn(dims).to(memory_format=torch.channels_last)
    w = torch.randn(6, dims[1], 1, 1).to(memory_format=torch.channels_last)
    torch.library.opcheck(OPS.conv.default, (x, w))
    y = ours.conv(x, w).Y
    torch.library.opcheck(OPS.conv_grad.default, (y, x, w), {"outputs": ["dX", "dW", "dB"]})


@pytest.mark.parametrize("device", DEVICES)
def test_compile_gives_the_same_gradients(device: str) -> None:
    def loss(x: Any, w: Any, b: Any) -> Any:
        return ours.conv(x, w, b, strides=(2, 2)).Y.sin().sum()

    inputs = conv_inputs({}, device)
    expected = torch.autograd.grad(loss(*inputs), inputs)
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    for got, wanted in zip(torch.autograd.grad(compiled(*inputs), inputs), expected, strict=True):
        torch.testing.assert_close(got, wanted)


def test_gradients_are_pytorchs() -> None:
    """The same convolution by PyTorch's own operators."""
    x, w, b = conv_inputs({"group": 2}, "cpu")
    inputs = (x, w, b)
    mine = ours.conv(x, w, b, group=2, strides=(2, 1), pads=(1, 0, 1, 0)).Y
    peer = torch.nn.functional.conv2d(x, w, b, stride=(2, 1), padding=(1, 0), groups=2)
    torch.testing.assert_close(mine, peer)
    dy = torch.randn_like(peer)
    for got, wanted in zip(
        torch.autograd.grad(mine, inputs, dy), torch.autograd.grad(peer, inputs, dy), strict=True
    ):
        torch.testing.assert_close(got, wanted)


def test_only_what_is_needed_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    x, w, b = conv_inputs({}, "cpu")
    original = OPS.conv_grad.default

    class Recorder(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if function is original:
                asked.append(kwargs["outputs"])
            return function(*args, **(kwargs or {}))

    y = ours.conv(x, w.detach(), b).Y
    with Recorder():
        y.sum().backward()
    assert asked == [["dX", "dB"]]
    assert w.grad is None


def test_the_backward_pass_has_the_policies_of_the_forward(monkeypatch: pytest.MonkeyPatch) -> None:
    from gradsmith._policy import current

    seen = []

    def conv_grad(*inputs: Any, **keywords: Any) -> Any:
        seen.append(current())
        return gradsmith.conv_grad(*inputs, **keywords)

    monkeypatch.setattr(ours._REGISTRATIONS["ConvGrad"], "function", conv_grad)
    with gradsmith.policy(deterministic=True, search_mode="default"):
        y = ours.conv(*conv_inputs({}, "cpu")).Y
    y.sum().backward()
    assert [(one.deterministic, one.search_mode) for one in seen] == [(True, "default")]


def test_statistics_have_no_gradient() -> None:
    result = ours.batch_normalization(*batch_norm_inputs("cpu"))
    assert result.Y.requires_grad
    assert [one.requires_grad for one in result[1:]] == [False] * 4


def test_functions_without_autograd_refuse_to_lose_a_gradient() -> None:
    x, w, _ = conv_inputs({}, "cpu")
    with pytest.raises(ValueError, match=r"X requires a gradient.*gradsmith\.torch"):
        gradsmith.conv(x, w)
    with torch.no_grad():
        assert not gradsmith.conv(x, w).Y.requires_grad


def test_a_function_of_ones_own_may_call_ours() -> None:
    """As someone writes who wants only a kernel."""

    class Convolve(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return gradsmith.conv(x, w).Y

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return gradsmith.conv_grad(dy, *ctx.saved_tensors, outputs=("dX", "dW"))[:2]

    x, w, _ = conv_inputs({}, "cpu")
    assert torch.autograd.gradcheck(Convolve.apply, (x, w))


def test_arrays_without_the_exchange_functions_are_read_through_dlpack(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of PyTorch before 2.10 are."""
    from gradsmith import _libraries

    class Older(torch.Tensor):
        pass

    adaptor = _libraries.PyTorch()
    adaptor.exchanges = False
    monkeypatch.setattr(_libraries, "find", lambda kind: adaptor)
    x, w, b = (one.detach().as_subclass(Older) for one in conv_inputs({}, "cpu"))
    result = gradsmith.conv_grad(gradsmith.conv(x, w, b).Y, x, w)
    expected = gradsmith.conv_grad(*(one.as_subclass(torch.Tensor) for one in (gradsmith.conv(x, w, b).Y, x, w)))
    for got, wanted in zip(result, expected, strict=True):
        assert torch.equal(got.as_subclass(torch.Tensor), wanted)
