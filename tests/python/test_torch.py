"""gradsmith.torch: autograd, torch.library and torch.compile, and PyTorch's own operators as peers."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import gradsmith
import pytest

torch: Any = pytest.importorskip("torch")
if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 4):
    pytest.skip("torch.library.custom_op came with PyTorch 2.4", allow_module_level=True)

import gradsmith.torch as ours  # noqa: E402 - after the check that it can be imported
from gradsmith import _autograd  # noqa: E402

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
@pytest.mark.parametrize("wanted", [(0, 1, 2, 3, 4), (0, 1), (1,), (4,)], ids=str)
def test_gradcheck_of_skip_layer_normalization(wanted: tuple[int, ...], device: str) -> None:
    """Of Y and of the sum that it is made of, with respect to both of its terms, which share a gradient."""
    inputs = [leaf(*dims, device=device) for dims in ((3, 5), (3, 5), (5,), (5,), (5,))]
    given = tuple(one if place in wanted else one.detach() for place, one in enumerate(inputs))

    def outputs(*given: Any) -> tuple[Any, Any]:
        made = ours.skip_layer_normalization(*given, epsilon=0.25)
        return made.Y, made.total

    assert torch.autograd.gradcheck(outputs, given)


def normalized(x: Any, skip: Any, gamma: Any) -> tuple[Any, Any]:
    """What PyTorch's own operators make of it: Y and the sum."""
    total = x + skip
    return torch.nn.functional.layer_norm(total, gamma.shape, gamma, eps=0.25), total


def losses_of(made: Any, read: tuple[str, ...]) -> Any:
    """Of the outputs that are read."""
    weights = torch.arange(15, dtype=torch.double).reshape(3, 5).sin()
    y, total = (made.Y, made.total) if hasattr(made, "Y") else made
    return sum(((one * weights).sum() for name, one in (("Y", y), ("total", total)) if name in read), start=0)


def given_to(monkeypatch: pytest.MonkeyPatch, op: str) -> list[dict[str, Any]]:
    """The inputs of calls of an operator that are made from now on, by their names."""
    calls: list[dict[str, Any]] = []
    registration = _autograd._REGISTRATIONS[op]
    names = [tensor.name for tensor in registration.op.inputs]

    def record(*inputs: Any, function: Any = registration.function, **keywords: Any) -> Any:
        calls.append(dict(zip(names, inputs, strict=False)))
        return function(*inputs, **keywords)

    monkeypatch.setattr(registration, "function", record)
    return calls


@pytest.mark.parametrize("read", [("Y",), ("total",), ("Y", "total")], ids="_".join)
def test_what_nothing_reads_has_no_gradient(monkeypatch: pytest.MonkeyPatch, read: tuple[str, ...]) -> None:
    """It is absent where that may be, and zeros where the gradient operator has to be given it."""
    inputs = [leaf(3, 5, device="cpu"), leaf(3, 5, device="cpu"), leaf(5, device="cpu")]
    expected = torch.autograd.grad(losses_of(normalized(*inputs), read), inputs, materialize_grads=True)
    calls = given_to(monkeypatch, "SkipLayerNormalizationGrad")
    found = torch.autograd.grad(losses_of(ours.skip_layer_normalization(*inputs, epsilon=0.25), read), inputs)
    for got, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(got, wanted)
    (call,) = calls
    assert (call.get("dTotal") is None) == ("total" not in read)
    assert bool(call["dY"].any()) == ("Y" in read)
    assert call["dY"].shape == (3, 5)
    assert call["dY"].dtype == torch.double


@pytest.mark.parametrize("read", [("Y",), ("total",)], ids="_".join)
def test_what_is_compiled_may_leave_outputs_unread(read: tuple[str, ...]) -> None:
    inputs = [leaf(3, 5, device="cpu"), leaf(3, 5, device="cpu"), leaf(5, device="cpu")]

    def loss(*given: Any) -> Any:
        return losses_of(ours.skip_layer_normalization(*given, epsilon=0.25), read)

    torch.compiler.reset()
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    expected = torch.autograd.grad(loss(*inputs), inputs)
    for got, wanted in zip(torch.autograd.grad(compiled(*inputs), inputs), expected, strict=True):
        torch.testing.assert_close(got, wanted)


def test_inputs_that_share_a_gradient_have_each_its_own_memory() -> None:
    x, skip, gamma = leaf(3, 5, device="cpu"), leaf(3, 5, device="cpu"), leaf(5, device="cpu")
    losses_of(ours.skip_layer_normalization(x, skip, gamma, epsilon=0.25), ("Y",)).backward()
    expected = torch.autograd.grad(losses_of(normalized(x, skip, gamma), ("Y",)), skip)[0]
    x.grad.zero_()
    torch.testing.assert_close(skip.grad, expected)


def test_of_inputs_that_share_a_gradient_one_may_have_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    x, skip, gamma = leaf(3, 5, device="cpu").detach(), leaf(3, 5, device="cpu"), leaf(5, device="cpu").detach()
    losses_of(ours.skip_layer_normalization(x, skip, gamma, epsilon=0.25), ("Y", "total")).backward()
    expected = torch.autograd.grad(losses_of(normalized(x, skip, gamma), ("Y", "total")), skip)[0]
    torch.testing.assert_close(skip.grad, expected)
    assert x.grad is None
    assert gamma.grad is None


@pytest.mark.parametrize("read", [("Y",), ("Y", "total")], ids="_".join)
def test_an_input_that_is_given_twice_has_both_gradients(read: tuple[str, ...]) -> None:
    x, gamma = leaf(3, 5, device="cpu"), leaf(5, device="cpu")
    found = torch.autograd.grad(losses_of(ours.skip_layer_normalization(x, x, gamma, epsilon=0.25), read), (x, gamma))
    expected = torch.autograd.grad(losses_of(normalized(x, x, gamma), read), (x, gamma))
    for got, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(got, wanted)


class Stop(torch.autograd.Function):
    """Passes a tensor on, and no gradient back."""

    @staticmethod
    def forward(ctx: Any, tensor: Any) -> Any:
        return tensor.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> None:
        return None


def test_where_no_gradient_arrives_none_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = [leaf(3, 5, device="cpu"), leaf(3, 5, device="cpu"), leaf(5, device="cpu")]
    calls = given_to(monkeypatch, "SkipLayerNormalizationGrad")
    made = ours.skip_layer_normalization(*inputs)
    (Stop.apply(made.Y).sum() + Stop.apply(made.total).sum()).backward()
    assert [one.grad for one in inputs] == [None] * 3
    assert calls == []


def test_where_one_gradient_of_two_does_not_arrive_the_other_counts() -> None:
    inputs = [leaf(3, 5, device="cpu"), leaf(3, 5, device="cpu"), leaf(5, device="cpu")]
    made = ours.skip_layer_normalization(*inputs)
    (Stop.apply(made.Y).sum() + made.total.sum()).backward()
    x, skip, gamma = (one.grad for one in inputs)
    torch.testing.assert_close(x, torch.ones_like(x))
    torch.testing.assert_close(skip, torch.ones_like(skip))
    torch.testing.assert_close(gamma, torch.zeros_like(gamma))


def test_of_lists_zeros_stand_for_what_is_absent() -> None:
    """As in the gradient of an operator that gives a list, and whose gradient takes one."""
    one = torch.ones(2, dtype=torch.double)
    outlines = _autograd._outlines([one, torch.ones(3, 1)])
    assert [tuple(made.shape) for made in _autograd._filled(None, outlines, one)] == [(2,), (3, 1)]
    first, second = _autograd._filled([one, None], outlines, one)
    assert first is one
    assert (second.dtype, second.shape, second.any().item()) == (torch.float, (3, 1), False)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("attributes", CONV_TRANSPOSE)
def test_gradcheck_of_conv_transpose(attributes: dict[str, Any], device: str) -> None:
    inputs = conv_inputs(attributes, device, transposed=True)
    assert torch.autograd.gradcheck(lambda *given: ours.conv_transpose(*given, **attributes).Y, inputs)


BATCH_NORMALIZATIONS = ["batch_normalization", "batch_normalization_relu"]


@pytest.mark.parametrize("name", BATCH_NORMALIZATIONS)
@pytest.mark.parametrize("device", DEVICES)
def test_gradcheck_of_batch_normalization(device: str, name: str) -> None:
    torch.manual_seed(0)  # ReLU's bend is far enough from all numbers
    function = getattr(ours, name)
    assert torch.autograd.gradcheck(lambda *given: function(*given, epsilon=0.25).Y, batch_norm_inputs(device))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["conv", "conv_transpose", *BATCH_NORMALIZATIONS])
def test_opcheck_of_forwards(name: str, device: str) -> None:
    inputs: Any = batch_norm_inputs(device)
    if name not in BATCH_NORMALIZATIONS:
        inputs = conv_inputs({}, device, transposed=name == "conv_transpose")
    torch.library.opcheck(getattr(OPS, name).default, inputs)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("is_recording", [False, True])
@pytest.mark.parametrize("outputs", [["dX", "dW", "dB"], ["dB"], ["dB", "dX"]])
def test_opcheck_of_a_gradient(outputs: list[str], is_recording: bool, device: str) -> None:
    x, w, b = (one.detach() for one in conv_inputs({}, device))
    y = ours.conv(x, w, b).Y
    arguments = [one.requires_grad_(is_recording) for one in (y, x, w)]
    torch.library.opcheck(OPS.conv_grad.default, arguments, {"outputs": outputs})


@pytest.mark.parametrize("is_recording", [False, True])
def test_opcheck_of_the_other_gradients(is_recording: bool) -> None:
    x, w, _ = (one.detach() for one in conv_inputs({}, "cpu", transposed=True))
    arguments = [one.requires_grad_(is_recording) for one in (ours.conv_transpose(x, w).Y, x, w)]
    torch.library.opcheck(OPS.conv_transpose_grad.default, arguments, {"outputs": ["dX", "dW", "dB"]})
    torch.library.opcheck(OPS.conv_transpose_grad.default, arguments)  # all outputs
    x, scale, *_ = (one.detach() for one in batch_norm_inputs("cpu"))
    arguments = [x.requires_grad_(is_recording), x.flip(0), scale.requires_grad_(is_recording), *[scale.detach()] * 2]
    torch.library.opcheck(OPS.batch_normalization_grad.default, arguments, {"outputs": ["dX", "dBias"]})


@pytest.mark.parametrize("dtype", ["double", "half", "bfloat16"])
def test_opcheck_of_outputs_whose_type_no_input_has(dtype: str) -> None:
    """Statistics of half and bf16 rows are float."""
    x, skip, gamma = (torch.randn(*dims).to(getattr(torch, dtype)) for dims in ((3, 5), (3, 5), (5,)))
    made = ours.skip_layer_normalization(x, skip, gamma)
    assert made.mean.dtype == (torch.double if dtype == "double" else torch.float)
    torch.library.opcheck(OPS.skip_layer_normalization.default, (x, skip, gamma.requires_grad_()))
    saved = (made.total, gamma, made.mean, made.inv_std)
    torch.library.opcheck(OPS.skip_layer_normalization_grad.default, (x, *(one.detach() for one in saved)))


@pytest.mark.parametrize("is_recording", [False, True])
def test_opcheck_of_mixed_types(is_recording: bool) -> None:
    """Each output has the type that the schema gives it, which need not be that of the first input."""
    x = torch.randn(4, 3, 5, dtype=torch.half).requires_grad_(is_recording)
    scale, b = (torch.randn(3).requires_grad_(is_recording) for _ in range(2))
    statistics = torch.zeros(3), torch.ones(3)
    torch.library.opcheck(OPS.batch_normalization.default, (x, scale, b, *statistics))
    arguments = (x.detach().flip(0).requires_grad_(is_recording), x, scale, *statistics)
    torch.library.opcheck(OPS.batch_normalization_grad.default, arguments, {"outputs": ["dX", "dScale", "dBias"]})


@pytest.mark.parametrize("dims", [(2, 4, 5, 6), (1, 4, 5, 1), (2, 1, 5, 6), (2, 4, 1, 1)])
def test_opcheck_of_channels_last(dims: tuple[int, ...]) -> None:
    """Strides, too, are what the fake implementation says, also where dims of one element make them ambiguous."""
    x = torch.randn(dims).to(memory_format=torch.channels_last)
    w = torch.randn(6, dims[1], 1, 1).to(memory_format=torch.channels_last)
    torch.library.opcheck(OPS.conv.default, (x, w))
    y = ours.conv(x, w).Y
    torch.library.opcheck(OPS.conv_grad.default, (y, x, w), {"outputs": ["dX", "dW", "dB"]})


def loss_of_conv(x: Any, w: Any, b: Any) -> Any:
    return ours.conv(x, w, b, strides=(2, 2)).Y.sin().sum()


def loss_of_conv_grad(x: Any, w: Any, b: Any) -> Any:
    gradients = ours.conv_grad(x[:, :1, :3, :5].repeat(1, 6, 1, 1), x, w)
    return gradients.dX.sin().sum() + gradients.dW.cos().sum() + (gradients.dB * b).sum()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("loss", [loss_of_conv, loss_of_conv_grad])
def test_compile_gives_the_same_gradients(loss: Any, backend: str, device: str) -> None:
    if backend == "inductor" and device == "cpu" and not shutil.which(os.environ.get("CXX", "g++")):
        pytest.skip("inductor needs a C++ compiler")
    if backend == "inductor" and device == "cuda" and not find_spec("triton"):
        pytest.skip("inductor needs triton on a GPU")
    inputs = conv_inputs({}, device)
    expected = torch.autograd.grad(loss(*inputs), inputs)
    torch.compiler.reset()
    compiled = torch.compile(loss, backend=backend, fullgraph=True)
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
    for got, wanted in zip(torch.autograd.grad(mine, inputs, dy), torch.autograd.grad(peer, inputs, dy), strict=True):
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


def recorded(monkeypatch: pytest.MonkeyPatch, *ops: str) -> list[tuple[str, Any]]:
    """The calls of operators that are made from now on, each with its context."""
    calls: list[tuple[str, Any]] = []
    for op in ops:
        registration = _autograd._REGISTRATIONS[op]

        def record(*inputs: Any, op: str = op, function: Any = registration.function, **keywords: Any) -> Any:
            calls.append((op, keywords["context"]))
            return function(*inputs, **keywords)

        monkeypatch.setattr(registration, "function", record)
    return calls


@pytest.mark.parametrize("device", DEVICES)
def test_backward_passes_have_the_policies_of_the_forward(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    """The second one, too; and they are the very context, with its progress and its memory."""
    calls = recorded(monkeypatch, "Conv", "ConvGrad")
    x, w, b = conv_inputs({}, device)
    with gradsmith.policy(deterministic=True, search_mode="default", on_search_progress=max) as context:
        y = ours.conv(x, w, b).Y
    (dx,) = torch.autograd.grad(y.sin().sum(), x, create_graph=True)
    dx.sin().sum().backward()
    assert [op for op, _ in calls[:3]] == ["Conv", "ConvGrad", "Conv"]
    assert len(calls) > 3
    assert all(one is context for _, one in calls)
    calls.clear()
    with gradsmith.policy(deterministic=True):
        OPS.conv(x, w, b).sum().backward()
    assert [(op, one and one.deterministic) for op, one in calls] == [("Conv", None), ("ConvGrad", True)]


@pytest.mark.skipif(not _autograd._IS_GUARDED, reason="torch.compile looks at context variables since PyTorch 2.15")
@pytest.mark.parametrize("device", DEVICES)
def test_what_is_compiled_has_the_policies_of_its_forward(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    """Those of each call, whatever surrounds the backward pass, and whatever was compiled before."""
    calls = recorded(monkeypatch, "Conv", "ConvGrad")
    torch.compiler.reset()
    compiled = torch.compile(loss_of_conv, backend="aot_eager", fullgraph=True)
    for policies in ({"deterministic": True}, {}, {"allow_tf32": True, "cache": "off"}, {"deterministic": True}):
        calls.clear()
        with gradsmith.policy(**policies) as context:
            loss = compiled(*conv_inputs({}, device))
        with gradsmith.policy(threads=1):
            loss.backward()
        assert [op for op, _ in calls] == ["Conv", "ConvGrad"]
        assert [one for _, one in calls] == [context] * 2


@pytest.mark.parametrize("outputs", [None, "dX", ["dB", "dX"], ("dW", "dW"), {"dW": 0}.keys()], ids=str)
def test_outputs_are_asked_for_as_in_the_functions_without_autograd(outputs: Any) -> None:
    x, w, _ = (one.detach() for one in conv_inputs({}, "cpu"))
    dy = ours.conv(x, w).Y
    plain = gradsmith.conv_grad(dy, x, w, outputs=outputs)
    for got, wanted in zip(ours.conv_grad(dy, x, w, outputs=outputs), plain, strict=True):
        assert (got is None) == (wanted is None)
        assert got is None or torch.equal(got, wanted)


@pytest.mark.parametrize("outputs", ["dQ", ("dX", "dQ"), (1,), 3, (), [], {}.keys()], ids=str)
def test_wrong_outputs_are_refused_as_in_the_functions_without_autograd(outputs: Any) -> None:
    x, w, _ = (one.detach() for one in conv_inputs({}, "cpu"))
    dy = ours.conv(x, w).Y
    with pytest.raises((TypeError, ValueError)) as plain:
        gradsmith.conv_grad(dy, x, w, outputs=outputs)
    with pytest.raises(plain.type) as caught:
        ours.conv_grad(dy, x, w, outputs=outputs)
    assert str(caught.value) == str(plain.value)


def test_what_is_compiled_may_not_ask_for_nothing() -> None:
    x, w, _ = (one.detach() for one in conv_inputs({}, "cpu"))
    dy = ours.conv(x, w).Y
    compiled = torch.compile(lambda *given: ours.conv_grad(*given, outputs=()), backend="aot_eager")
    with pytest.raises(Exception, match="outputs asks for nothing"):
        compiled(dy, x, w)


SMALL = (torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2))


@pytest.mark.parametrize(
    ("inputs", "keywords", "kind", "sentence"),
    [
        (SMALL[:1], {}, TypeError, "missing a required argument: 'W'; expected conv(X, W, B=None, *, kernel_shape="),
        ((*SMALL, None, None), {}, TypeError, "too many positional arguments; expected conv(X, W,"),
        (SMALL, {"stride": (1, 1)}, TypeError, "there is no argument 'stride'; did you mean 'strides'?"),
        (SMALL, {"stride": None}, TypeError, "there is no argument 'stride'; did you mean 'strides'?"),
        (SMALL, {"outputs": "Y"}, TypeError, "there is no argument 'outputs'; expected one of X, W, B, kernel_shape,"),
        (SMALL, {"X": SMALL[0]}, TypeError, "multiple values for argument 'X'; expected conv("),
        ((SMALL[0], 3), {}, TypeError, "W is 3 (int); expected a torch.Tensor"),
        ((SMALL[0].numpy(), SMALL[1]), {}, TypeError, "(ndarray); expected a torch.Tensor"),
        ((*SMALL, [1.0]), {}, TypeError, "B is [1.0] (list); expected a torch.Tensor"),
        ((SMALL[0],), {"W": None}, TypeError, "W is None (NoneType); expected an array"),
        ((None, None), {}, TypeError, "X is None (NoneType); expected an array"),
        (SMALL, {"group": "2"}, TypeError, "attribute group is '2' (str); expected an integer"),
        (SMALL, {"group": 1 << 70}, ValueError, "expected integers of 64 bits"),
        (SMALL, {"strides": 2}, TypeError, "attribute strides is 2 (int); expected a sequence of integers"),
        (SMALL, {"auto_pad": 1}, TypeError, "attribute auto_pad is 1 (int); expected a name"),
        (SMALL, {"auto_pad": "\ud800"}, ValueError, r"attribute auto_pad is '\ud800'; expected one of"),
    ],
)
def test_wrong_arguments_are_refused_in_the_librarys_words(
    inputs: tuple[Any, ...], keywords: dict[str, Any], kind: type[Exception], sentence: str
) -> None:
    with pytest.raises(kind) as caught:
        ours.conv(*inputs, **keywords)
    assert str(caught.value).startswith("Conv")
    assert sentence in str(caught.value)
    assert "gradsmith::" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_other_errors_are_not_taken_for_wrong_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*inputs: Any, **keywords: Any) -> Any:
        raise RuntimeError("a fault below")

    monkeypatch.setattr(_autograd._REGISTRATIONS["Conv"], "function", fail)
    with pytest.raises(RuntimeError, match="a fault below"):
        ours.conv(*SMALL)


def test_attributes_may_be_none_for_their_defaults() -> None:
    x, w = SMALL
    assert torch.equal(ours.conv(X=x, W=w, group=None, auto_pad=None, strides=None).Y, gradsmith.conv(x, w).Y)


def test_statistics_have_no_gradient() -> None:
    result = ours.batch_normalization(*batch_norm_inputs("cpu"))
    assert result.Y.requires_grad
    assert [one.requires_grad for one in result[1:]] == [False] * 4


def test_running_statistics_alone_have_a_gradient_of_nothing() -> None:
    x, *others = (one.detach() for one in batch_norm_inputs("cpu"))
    others[-1].requires_grad_()
    ours.batch_normalization(x, *others).Y.sum().backward()
    assert others[-1].grad is None


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
    monkeypatch.setattr(_libraries, "find", lambda array, has_buffer: adaptor)
    x, w, b = (one.detach().as_subclass(Older) for one in conv_inputs({}, "cpu"))
    result = gradsmith.conv_grad(gradsmith.conv(x, w, b).Y, x, w)
    expected = gradsmith.conv_grad(*(one.as_subclass(torch.Tensor) for one in (gradsmith.conv(x, w, b).Y, x, w)))
    for got, wanted in zip(result, expected, strict=True):
        assert torch.equal(got.as_subclass(torch.Tensor), wanted)


def test_tensors_are_made_also_where_pytorch_has_no_quick_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not documented, so that another version may be without; DLPack's functions stand in."""
    from gradsmith import _libraries

    class Other(torch.Tensor):
        pass

    adaptor = _libraries.PyTorch()
    assert callable(adaptor.empty_strided[0])
    adaptor.empty_strided = (None, None)
    monkeypatch.setattr(_libraries, "find", lambda array, has_buffer: adaptor)
    for memory_format in (torch.contiguous_format, torch.channels_last):
        x, w, b = (one.detach() for one in conv_inputs({}, "cpu"))
        x = x.to(memory_format=memory_format)
        got, wanted = gradsmith.conv(*(one.as_subclass(Other) for one in (x, w, b))).Y, gradsmith.conv(x, w, b).Y
        assert torch.equal(got, wanted)
        assert got.stride() == wanted.stride()


# What a gradient operator can be asked for, and so be differentiated through.
SUBSETS = [["dX"], ["dW"], ["dB"], ["dW", "dX"], ["dX", "dB"], ["dB", "dW"], ["dX", "dW", "dB"]]


def gradcheck_of_a_gradient(name: str, inputs: tuple[Any, ...], **settings: Any) -> None:
    """Through every number that the operator gives, at once."""
    function = getattr(OPS, name).default
    assert torch.autograd.gradcheck(lambda *given: tuple(function(*given, **settings)), inputs)


@pytest.mark.parametrize("outputs", SUBSETS, ids=str)
@pytest.mark.parametrize("name", ["conv_grad", "conv_transpose_grad"])
def test_gradients_of_a_convolutions_gradients(name: str, outputs: list[str]) -> None:
    is_transposed = name == "conv_transpose_grad"
    x, w, b = conv_inputs({"group": 2}, "cpu", transposed=is_transposed)
    settings: dict[str, Any] = {"group": 2, "strides": (2, 1), "pads": (0, 1, 1, 0)}
    forward = ours.conv_transpose if is_transposed else ours.conv
    dy = torch.randn_like(forward(x, w, b, **settings).Y).requires_grad_()
    gradcheck_of_a_gradient(name, (dy, x, w), **settings, outputs=outputs)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("attributes", CONV)
def test_gradgradcheck_of_conv(attributes: dict[str, Any], device: str) -> None:
    inputs = conv_inputs(attributes, device)
    assert torch.autograd.gradgradcheck(lambda *given: ours.conv(*given, **attributes).Y, inputs)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("attributes", CONV_TRANSPOSE)
def test_gradgradcheck_of_conv_transpose(attributes: dict[str, Any], device: str) -> None:
    inputs = conv_inputs(attributes, device, transposed=True)
    assert torch.autograd.gradgradcheck(lambda *given: ours.conv_transpose(*given, **attributes).Y, inputs)


@pytest.mark.parametrize("name", BATCH_NORMALIZATIONS)
@pytest.mark.parametrize("device", DEVICES)
def test_gradgradcheck_of_batch_normalization(device: str, name: str) -> None:
    torch.manual_seed(0)
    function = getattr(ours, name)
    assert torch.autograd.gradgradcheck(lambda *given: function(*given, epsilon=0.25).Y, batch_norm_inputs(device))


def test_a_bias_has_no_second_gradient_through_relu() -> None:
    """What ReLU stops does not change with it but in jumps."""
    torch.manual_seed(0)
    x, scale, b, *running = batch_norm_inputs("cpu")
    y = ours.batch_normalization_relu(x, scale, b, *running, epsilon=0.25).Y
    assert 0 < (y == 0).sum() < y.numel()
    upstream = torch.randn_like(y).requires_grad_()
    of_upstream, of_x, of_scale, of_b = second_gradients(y, upstream, [x, scale, b])
    assert of_b is None or not of_b.any()
    assert all(one.any() for one in (of_upstream, of_x, of_scale))
    assert not of_upstream[y == 0].any()


@pytest.mark.parametrize("outputs", [["dX"], ["dScale"], ["dBias"], ["dBias", "dX"], ["dScale", "dBias"]], ids=str)
def test_gradients_of_batch_normalizations_gradients(outputs: list[str]) -> None:
    """The statistics follow X, as they do where a forward saved them."""
    x, scale, *_ = batch_norm_inputs("cpu")
    dy = torch.randn_like(x).requires_grad_()

    def gradients(dy: Any, x: Any, scale: Any) -> tuple[Any, ...]:
        inv_std = (x.detach().var((0, 2), correction=0) + 0.25).rsqrt()
        statistics = (x.detach().mean((0, 2)), inv_std)
        return tuple(OPS.batch_normalization_grad(dy, x, scale, *statistics, epsilon=0.25, outputs=outputs))

    assert torch.autograd.gradcheck(gradients, (dy, x, scale))


@pytest.mark.parametrize("name", ["conv", *BATCH_NORMALIZATIONS])
def test_third_derivatives(name: str) -> None:
    """Second derivatives are made of operators that have gradients, and so forth."""
    if name == "conv":
        inputs = tuple(leaf(*dims, device="cpu") for dims in ((1, 1, 3, 2), (2, 1, 2, 2), (2,)))
        differentiable = inputs
    else:
        zeros, ones = torch.zeros(2, dtype=torch.double), torch.ones(2, dtype=torch.double)
        differentiable = (leaf(3, 2, 2, device="cpu"), leaf(2, device="cpu"), leaf(2, device="cpu"))
        inputs = (*differentiable, zeros, ones)
    function = getattr(ours, name)

    def gradients(*given: Any) -> Any:
        y = function(*given, *inputs[len(given) :]).Y
        return torch.autograd.grad((y.sin() * y).sum(), given[:2], create_graph=True)

    assert torch.autograd.gradgradcheck(gradients, differentiable)


def second_gradients(y: Any, dy: Any, inputs: list[Any]) -> Any:
    """Of a sum of products with the gradients of y."""
    first = torch.autograd.grad(y, inputs, dy, create_graph=True)
    return torch.autograd.grad(sum((one * one).sum() for one in first), [dy, *inputs], allow_unused=True)


def test_second_gradients_are_pytorchs() -> None:
    x, w, b = conv_inputs({"group": 2}, "cpu")
    mine = ours.conv(x, w, b, group=2, strides=(2, 1), pads=(1, 0, 1, 0)).Y
    peer = torch.nn.functional.conv2d(x, w, b, stride=(2, 1), padding=(1, 0), groups=2)
    dy = torch.randn_like(peer).requires_grad_()
    for got, wanted in zip(second_gradients(mine, dy, [x, w, b]), second_gradients(peer, dy, [x, w, b]), strict=True):
        torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("types", "tolerance"),
    [
        ((torch.float64, torch.float64, torch.float64), 1e-10),
        ((torch.float32, torch.float32, torch.float32), 1e-4),
        ((torch.float16, torch.float32, torch.float32), 2e-2),
        ((torch.float16, torch.float16, torch.float16), 5e-2),
        ((torch.bfloat16, torch.bfloat16, torch.float32), 2e-1),
    ],
    ids=str,
)
@pytest.mark.parametrize("dims", [(6, 3), (4, 3, 5), (2, 3, 4, 3), (3, 2, 1, 2, 3)])
def test_second_gradients_of_batch_normalization_are_pytorchs(
    dims: tuple[int, ...], types: tuple[Any, Any, Any], tolerance: float, device: str
) -> None:
    torch.manual_seed(0)
    channels = dims[1]
    x = torch.randn(dims, device=device).to(types[0])
    dy = torch.randn(dims, device=device).to(types[0])
    scale, b = (torch.randn(channels, device=device).to(types[1]) for _ in range(2))
    running = [torch.ones(channels, dtype=types[2], device=device) for _ in range(2)]
    given = [one.clone().requires_grad_() for one in (x, scale, b)]
    wide = [one.double().requires_grad_() for one in (x, scale, b)]
    upstream, upstream_wide = dy.clone().requires_grad_(), dy.double().requires_grad_()
    mine = second_gradients(ours.batch_normalization(*given, *running, epsilon=0.1).Y, upstream, given)
    y = torch.nn.functional.batch_norm(wide[0], None, None, *wide[1:], training=True, eps=0.1)
    peer = second_gradients(y, upstream_wide, wide)
    for one, got, wanted in zip([upstream, *given], mine, peer, strict=True):
        if wanted is None or got is None:
            assert got is None or not got.any()
            continue
        assert (got.dtype, got.shape) == (one.dtype, one.shape)
        assert (got.double() - wanted).abs().max() <= tolerance * max(wanted.abs().max(), 1)


@pytest.mark.parametrize("dims", [(0, 3, 4), (2, 0, 4), (2, 3, 0)])
def test_second_gradients_of_what_is_empty(dims: tuple[int, ...]) -> None:
    zeros = torch.zeros(dims[1], dtype=torch.double)
    inputs = [leaf(*dims, device="cpu"), leaf(dims[1], device="cpu"), leaf(dims[1], device="cpu")]
    y = ours.batch_normalization(*inputs, zeros, zeros).Y
    upstream = torch.ones_like(y).requires_grad_()
    made = second_gradients(y, upstream, inputs)
    assert [one.shape for one in made[:2]] == [upstream.shape, inputs[0].shape]


def test_saved_statistics_have_no_gradient_of_their_own() -> None:
    x, scale, mean, inv_std = leaf(4, 3, device="cpu"), *(leaf(3, device="cpu") for _ in range(3))
    with pytest.raises(ValueError, match=r"BatchNormalizationGrad: saved_mean requires a gradient .* that of X"):
        ours.batch_normalization_grad(x, x, scale, mean, inv_std.detach())
    with pytest.raises(ValueError, match=r"saved_inv_std requires a gradient"):
        ours.batch_normalization_grad(x, x, scale, mean.detach(), inv_std)
    with torch.no_grad():
        assert ours.batch_normalization_grad(x, x, scale, mean, inv_std).dX.shape == x.shape


def test_only_the_second_gradients_that_are_needed_are_computed() -> None:
    calls: list[str] = []
    x, w, _ = conv_inputs({}, "cpu")

    class Recorder(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if function.namespace == "gradsmith":
                calls.append(f"{function.name()} {(kwargs or {}).get('outputs', '')}".strip())
            return function(*args, **(kwargs or {}))

    dy = torch.randn_like(ours.conv(x, w).Y)
    of_dy = ours.conv_grad(dy.requires_grad_(), x, w.detach(), outputs=["dX", "dB"])
    of_w = ours.conv_grad(dy.detach(), x, w, outputs=["dB", "dX"])
    with Recorder():
        of_dy.dX.sum().backward()  # not dB's part
        of_w.dX.sum().backward()
    assert calls == ["gradsmith::conv", "gradsmith::conv_grad ['dW']"]
    assert x.grad is None


def test_derivatives_in_forward_mode_are_refused() -> None:
    x, w = torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2)

    def convolve(tensor: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = gradsmith.torch.conv(tensor, w).Y
        return result

    with pytest.raises(NotImplementedError, match="Conv: X has a tangent"):
        torch.func.jvp(convolve, (x,), (torch.ones_like(x),))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
        with pytest.raises(NotImplementedError, match="Conv: X has a tangent"):
            convolve(dual)
        with pytest.raises(NotImplementedError, match="ConvGrad: dY has a tangent"):
            gradsmith.torch.conv_grad(torch.autograd.forward_ad.make_dual(w, w), x, w)
        with pytest.raises(NotImplementedError, match="Conv: X has a tangent"):
            gradsmith.torch.conv(W=w, X=dual)
        assert convolve(x).shape == (1, 1, 2, 2)


def test_of_several_gradients_the_fullest_serves() -> None:
    full = next(op for op in gradsmith.ops() if op.name == "ConvGrad")
    partial = replace(full, name="PartialConvGrad", outputs=full.outputs[:2])
    again = replace(full, name="ConvGradAgain")
    for operators in ([full, partial, again], [partial, full, again]):
        assert _autograd._gradients(operators) == {"Conv": full}


X, W, B = torch.randn(3, 2, 4, 7, 6), torch.randn(6, 2, 3, 3, 2), torch.randn(3, 6)
DY = torch.randn(2, 6, 3, 3, 5)
STATISTICS = torch.rand(3, 4)


def convolved(*given: Any) -> Any:
    return ours.conv(*given, group=2, strides=(2, 1))


def gradients(*given: Any) -> Any:
    return ours.conv_grad(*given, group=2, strides=(2, 1))


def gradient_of_w(*given: Any) -> Any:
    return [ours.conv_grad(*given, group=2, strides=(2, 1), outputs="dW").dW]


# A function, its arguments, and which dim of each vmap maps.
MAPPED = [
    pytest.param(convolved, (X, W, B), (0, 2, 0), id="all"),
    pytest.param(convolved, (X[0], W[:, :, 0], B), (None, None, 0), id="bias"),
    pytest.param(convolved, (X, W[:, :, 0]), (0, None), id="no bias"),
    pytest.param(gradients, (DY, X, W[:, :, 0]), (2, 0, None), id="gradients"),
    pytest.param(gradient_of_w, (DY, X, W), (2, 0, 2), id="one gradient"),
    pytest.param(ours.batch_normalization, (X, *[STATISTICS] * 4), (0, *[0] * 4), id="several outputs"),
    pytest.param(ours.batch_normalization_grad, (X, X, *[STATISTICS] * 3), (0, 0, *[0] * 3), id="its gradients"),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("function", "inputs", "dims"), MAPPED)
def test_vmap_gives_what_a_call_for_each_slice_does(function: Any, inputs: Any, dims: Any) -> None:
    mapped = torch.vmap(function, dims)(*inputs)
    slices = [[one] * 3 if dim is None else one.unbind(dim) for one, dim in zip(inputs, dims, strict=True)]
    for at, wanted in enumerate(map(function, *slices)):
        for output, expected in zip(mapped, wanted, strict=True):
            torch.testing.assert_close(output[at], expected, rtol=0, atol=0)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("function", "inputs", "dims"), MAPPED)
def test_vmap_of_no_slices(function: Any, inputs: Any, dims: Any) -> None:
    none = [one if dim is None else one.narrow(dim, 0, 0) for one, dim in zip(inputs, dims, strict=True)]
    slices = [one if dim is None else one.select(dim, 0) for one, dim in zip(inputs, dims, strict=True)]
    for output, expected in zip(torch.vmap(function, dims)(*none), function(*slices), strict=True):
        assert (output.shape, output.dtype) == ((0, *expected.shape), expected.dtype)


def test_vmap_has_gradients_and_may_be_nested() -> None:
    x, w = X.double().requires_grad_(), W.movedim(2, 0).double().requires_grad_()

    def all_pairs(convolve: Any) -> Any:
        return torch.vmap(lambda one: torch.vmap(lambda other: convolve(one, other))(w))(x)

    made = all_pairs(lambda one, other: ours.conv(one, other, group=2).Y)
    peer = all_pairs(lambda one, other: torch.nn.functional.conv2d(one, other, groups=2))
    torch.testing.assert_close(made, peer)
    weight = torch.randn_like(peer)
    found, expected = (torch.autograd.grad((one * weight).sum(), (x, w)) for one in (made, peer))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_wrong_arguments_within_vmap_are_refused_in_the_librarys_words() -> None:
    with pytest.raises(ValueError, match=r"^Conv\[float\] on cpu .*: W has shape \[6, 2, 3, 2\]"):
        torch.vmap(lambda x: ours.conv(x, W[:, :, 0]))(X)


def test_transforms_of_functions_without_autograd_are_refused_with_what_to_do() -> None:
    w = W[:, :, 0]
    told = "has no memory of its own; expected a call outside of"
    sentence = f"X is a tensor within torch.vmap, which {told} vmap, or of the function of this name in gradsmith.torch"
    with pytest.raises(TypeError, match=f"^Conv: {sentence}"):
        torch.vmap(lambda x: gradsmith.conv(x, w, group=2).Y)(X)
    with pytest.raises(TypeError, match=rf"^ConvGrad: output dW is a tensor within torch.vmap, which {told} vmap"):
        x, y, out = X[0], gradsmith.conv(X[0], w, group=2).Y, W.movedim(2, 0)
        torch.vmap(lambda dw: gradsmith.conv_grad(y, x, w, group=2, outputs="dW", out={"dW": dw}).dW)(out)
    with pytest.raises(TypeError, match=rf"^Conv: X is a tensor within a transform of torch.func, which {told} it"):
        torch.func.grad(lambda x: gradsmith.conv(x, w, group=2).Y.sum())(X[0])
