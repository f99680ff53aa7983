"""Arrays on a GPU: the caller's memory, device and stream. PyTorch's by themselves, CuPy's and JAX's where they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradsmith
import pytest

pytestmark = pytest.mark.gpu
torch: Any = pytest.importorskip("torch")

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


def small_integers(*dims: int, dtype: Any = torch.float32) -> Any:
    """Sums of products of which are exact."""
    return torch.randint(-2, 3, dims, device="cuda").to(dtype)


def problem(dtype: Any) -> tuple[Any, Any, Any]:
    x, w = small_integers(2, 4, 9, 8, dtype=dtype), small_integers(6, 4, 3, 2, dtype=dtype)
    return small_integers(2, 6, 7, 7, dtype=dtype), x, w


def expected(dy: Any, x: Any, w: Any, **keywords: Any) -> Any:
    """On the CPU, in double."""
    return gradsmith.conv_grad(*(one.cpu().double() for one in (dy, x, w)), **keywords)


def check(result: Any, wanted: Any) -> None:
    for got, right in zip(result, wanted, strict=True):
        assert torch.equal(got.cpu(), right.to(got.dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_outputs_are_on_the_device_of_the_inputs(dtype: Any) -> None:
    inputs = problem(dtype)
    result = gradsmith.conv_grad(*inputs)
    assert all(one.device == inputs[0].device and one.dtype == dtype for one in result)
    check(result, expected(*inputs))


def test_out_is_written_to() -> None:
    dy, x, w = problem(torch.float32)
    mine = torch.full_like(w, float("nan"))
    result = gradsmith.conv_grad(dy, x, w, outputs="dW", out={"dW": mine})
    assert result.dW.data_ptr() == mine.data_ptr()
    assert torch.equal(mine.cpu(), expected(dy, x, w).dW.float())


def test_channels_last_inputs_are_read_where_they_are() -> None:
    dy, x, w = (one.to(memory_format=torch.channels_last) for one in problem(torch.float16))
    check(gradsmith.conv_grad(dy, x, w), expected(dy, x, w))


def test_work_is_on_the_callers_stream() -> None:
    """The input is made by a stream that has much to do before; a call on another stream would read too early."""
    x, w = small_integers(2, 4, 9, 8), small_integers(6, 4, 3, 2)
    gradsmith.conv(x, w)  # kernels are chosen
    stream = torch.cuda.Stream()
    late = torch.zeros_like(x)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        late.copy_(x)
        y = gradsmith.conv(late, w).Y
        is_early = not stream.query()
    stream.synchronize()
    assert is_early, "the call waited for the stream"
    assert torch.equal(y, gradsmith.conv(x, w).Y)


def test_choices_are_kept_where_the_context_says(tmp_path: Path) -> None:
    """Each cache is searched once, and calls in turn take the plans of their own."""
    inputs = problem(torch.float32)
    wanted = expected(*inputs)
    searched: list[str] = []
    own, other = (
        gradsmith.Context(
            cache=tmp_path / name,
            search_mode="benchmark",  # of which progress is told
            search_budget_seconds=0.2,
            on_search_progress=lambda *told, name=name: searched.append(name),
        )
        for name in ("own.txt", "other.txt")
    )
    with gradsmith.policy(cache="off"):
        gradsmith.cache.clear()  # of what other tests chose in memory
    for _ in range(2):
        for context in (own, other):
            check(gradsmith.conv_grad(*inputs, context=context), wanted)
            with context:
                assert len(gradsmith.cache.choices()) >= 2
            assert Path(str(context.cache)).exists()
    assert set(searched) == {"own.txt", "other.txt"}
    count = len(searched)
    for context in (own, other):
        gradsmith.conv_grad(*inputs, context=context)
    assert len(searched) == count
    with gradsmith.policy(cache="off"):
        assert not gradsmith.cache.choices()
        check(gradsmith.conv_grad(*inputs), wanted)
        assert gradsmith.cache.choices()


def test_a_call_can_be_captured() -> None:
    dy, x, w = problem(torch.float32)
    out = {"dX": torch.empty_like(x), "dW": torch.empty_like(w), "dB": torch.empty(6, device="cuda")}
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        gradsmith.conv_grad(dy, x, w, out=out)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        gradsmith.conv_grad(dy, x, w, out=out)
    for one in (dy, x, w):
        one.copy_(small_integers(*one.shape))
    graph.replay()
    torch.cuda.synchronize()
    check([out["dX"], out["dW"], out["dB"]], expected(dy, x, w))


def test_devices_are_not_mixed() -> None:
    dy, x, w = problem(torch.float32)
    with pytest.raises(ValueError, match="X"):
        gradsmith.conv_grad(dy, x.cpu(), w)


@pytest.mark.parametrize("policies", [{"deterministic": True}, {"search_mode": "benchmark"}, {"allow_tf32": True}])
def test_policies_reach_the_kernels(policies: dict[str, Any]) -> None:
    inputs = problem(torch.float32)
    with gradsmith.policy(**policies, search_budget_seconds=1):
        check(gradsmith.conv_grad(*inputs), expected(*inputs))


def test_deterministic_results_have_the_same_bits() -> None:
    dy, x, w = (torch.randn_like(one) for one in problem(torch.float32))
    with gradsmith.policy(deterministic=True):
        first, second = gradsmith.conv_grad(dy, x, w), gradsmith.conv_grad(dy, x, w)
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


def test_a_workspace_limit_of_nothing_still_leaves_a_kernel() -> None:
    inputs = problem(torch.float32)
    check(gradsmith.conv_grad(*inputs, context=gradsmith.Context(workspace_limit=0)), expected(*inputs))


def test_tune_reports_progress() -> None:
    told: list[gradsmith.Progress] = []
    problem = "ConvGrad float X=2x8x17x19 W=8x8x3x3\n"
    tuned = gradsmith.tune(problem, budget=2, progress=lambda *one: told.append(gradsmith.Progress(*one)))
    assert told
    assert tuned.chosen
    assert tuned.note == ""
    again = gradsmith.tune(problem, budget=2)
    assert again == gradsmith.Tuned((), "no choice was made that was not remembered already")
    assert all(one.tried <= one.candidates for one in told)


def test_what_only_speaks_dlpack() -> None:
    class Bare:
        def __init__(self, tensor: Any) -> None:
            self.tensor = tensor

        def __dlpack__(self, **keywords: Any) -> Any:
            return self.tensor.__dlpack__(**keywords)

        def __dlpack_device__(self) -> Any:
            return self.tensor.__dlpack_device__()

    inputs = problem(torch.float32)
    result = [torch.from_dlpack(one) for one in gradsmith.conv_grad(*(Bare(one) for one in inputs))]
    assert all(one.device == inputs[0].device for one in result)
    check(result, expected(*inputs))


def test_cupy() -> None:
    cupy = pytest.importorskip("cupy")
    inputs = problem(torch.float32)
    with cupy.cuda.Stream():
        result = gradsmith.conv_grad(*(cupy.from_dlpack(one) for one in inputs))
        assert all(isinstance(one, cupy.ndarray) for one in result)
        for got, right in zip(result, expected(*inputs), strict=True):
            assert (got.get() == right.numpy()).all()


def test_jax() -> None:
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU here")
    inputs = problem(torch.float32)
    result = gradsmith.conv_grad(*(jax.dlpack.from_dlpack(one) for one in inputs))
    for got, right in zip(result, expected(*inputs), strict=True):
        assert (jax.numpy.asarray(got) == right.numpy()).all()


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="fewer than two GPUs")
def test_each_device_has_its_own_context() -> None:
    inputs = [one.to("cuda:1") for one in problem(torch.float32)]
    result = gradsmith.conv_grad(*inputs)
    assert all(one.device == inputs[0].device for one in result)
    check(result, expected(*inputs))
