"""Lists of arrays, as callers in Python meet them."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

gradsmith: Any = pytest.importorskip("gradsmith", reason="the Python package is not on PYTHONPATH: build it first")
if not hasattr(gradsmith, "concat"):
    pytest.skip("the package on PYTHONPATH has other operators", allow_module_level=True)
RATE = np.array(0.5, "float32")


def numbers(*shapes: tuple[int, ...], dtype: str = "float32") -> list[Any]:
    random = np.random.default_rng(1)
    return [np.array(random.integers(-8, 8, shape), dtype) for shape in shapes]


@pytest.mark.parametrize("kind", [list, tuple])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_list_of_any_length_is_taken(count: int, kind: Any) -> None:
    parts = numbers(*[(2, size, 3) for size in range(count)])
    whole = gradsmith.concat(kind(parts), axis=1).Y
    np.testing.assert_array_equal(whole, np.concatenate(parts, axis=1))
    gradients = gradsmith.concat_grad(whole, kind(parts), axis=-2).dX
    assert type(gradients) is list
    for gradient, part in zip(gradients, parts, strict=True):
        np.testing.assert_array_equal(gradient, part)


def test_parallel_lists_are_computed_place_by_place() -> None:
    shapes = [(2, 3), (), (4,)]
    weights, gradients, velocities = (numbers(*shapes) for _ in range(3))
    scale = [np.array(factor, "float32") for factor in (1, 2, 4)]
    result = gradsmith.descend(weights, gradients, velocities, RATE, scale, momentum=0.25)
    for i, factor in enumerate((1, 2, 4)):
        np.testing.assert_array_equal(result.new_V[i], 0.25 * velocities[i] + factor * gradients[i])
        np.testing.assert_array_equal(result.new_W[i], weights[i] - 0.5 * result.new_V[i])
    one = gradsmith.descend(weights, gradients, velocities, RATE, outputs="new_W")
    assert one.new_V is None
    assert [array.shape for array in one.new_W] == shapes


def test_lists_are_written_to_and_in_place() -> None:
    weights, velocities = numbers((2, 3), (4,)), numbers((2, 3), (4,))
    expected = gradsmith.descend(weights, weights, velocities, RATE)
    into = [np.empty((2, 3), "float32"), None]
    made = gradsmith.descend(weights, [one.copy() for one in weights], velocities, RATE, out={"new_V": into})
    assert made.new_V[0] is into[0]
    for result in (made, gradsmith.descend(weights, expected.new_V, velocities, RATE, out=(weights, None))):
        assert len(result.new_W) == 2
    np.testing.assert_array_equal(made.new_V[1], expected.new_V[1])
    assert result.new_W[1] is weights[1]


@pytest.mark.parametrize(
    ("change", "error", "told"),
    [
        ({"dW": []}, ValueError, "Descend: dW has 0 arrays; expected 2, as many as W"),
        ({"V": numbers((2,))}, ValueError, "Descend: V has 1 array; expected 2, as many as W"),
        (
            {"dW": numbers((2,), (5,))},
            ValueError,
            r"dW\[1\] has shape \[5\].*expected 3 \(D\[1\] = \[3\] from W\[1\]\)",
        ),
        ({"dW": numbers((2,), (3,), dtype="int32")}, TypeError, r"dW\[0\] has type int32; expected float \(T\)"),
        ({"V": [*numbers((2,)), 7]}, TypeError, r"V\[1\] is 7 \(int\); expected an array"),
        ({"V": numbers((2,))[0]}, TypeError, r"V is array\(.* \(numpy.ndarray\); expected a list or tuple of arrays"),
        ({"V": None}, TypeError, "Descend: V is None; expected a list or tuple of arrays"),
        ({"out": {"new_W": numbers((2,))}}, ValueError, "new_W has 1 array; expected 2, as many as W"),
        ({"out": {"new_W": 3}}, TypeError, "new_W is 3 .*; expected a list or tuple of arrays"),
        ({"outputs": "new_X"}, ValueError, "new_W, new_V; did you mean 'new_W'"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], error: type[Exception], told: str) -> None:
    lists = numbers((2,), (3,))
    given = {"W": lists, "dW": lists, "V": lists, "rate": RATE} | change
    with pytest.raises(error, match=told):
        gradsmith.descend(**given)


def test_no_arrays_are_refused() -> None:
    with pytest.raises(ValueError, match="Concat: X has 0 arrays; expected 1 to 2000"):
        gradsmith.concat([])


def test_what_sums_is_told() -> None:
    told = r"dY has shape \[4\], S = 4 from dY; expected 5 by sum\(P\), P\[0\] = 2 from X\[0\], P\[1\] = 3 from X\[1\]"
    with pytest.raises(ValueError, match=told):
        gradsmith.concat_grad(numbers((4,))[0], numbers((2,), (3,)))


def test_the_table_tells_lists() -> None:
    (op,) = [op for op in gradsmith.ops() if op.name == "Descend"]
    assert [one.list for one in op.inputs] == ["n", "n", "n", "", "n"]
    assert [one.name for one in op.inputs if one.may_be_on_host] == ["rate"]


def test_what_pytorch_passes_and_is_returned_is_told_apart() -> None:
    from gradsmith._torch_lists import flat, grouped, named, of_those_asked

    descend, gradient = (next(op for op in gradsmith.ops() if op.name == name) for name in ("Descend", "ConcatGrad"))
    assert flat([1, [2, (3,)], None]) == [1, 2, 3, None]
    assert grouped(descend, ["new_W", "new_V"], [1, 2, 3, 4]) == [[1, 2], [3, 4]]
    assert grouped(gradient, ["dX"], [1, 2, 3]) == [[1, 2, 3]]
    assert of_those_asked([1, 2], [True, False]) == [1, None]
    assert of_those_asked(None, [True, True]) == [None, None]
    assert of_those_asked(1, True) == 1
    assert named(descend.inputs[0], (5, 6)) == [("W[0]", 5), ("W[1]", 6)]
    assert named(descend.inputs[3], 7) == [("rate", 7)]


def test_lines_of_problems_have_lists() -> None:
    parsed = gradsmith._core.parse_problem("Descend float W=2x3,scalar dW=2x3,scalar V=2x3,scalar rate=scalar")
    dims = [(2, 3), ()]
    assert parsed["inputs"] == [dims, dims, dims, (), None]
    assert parsed["outputs"] == ("new_W", "new_V")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("Concat float X=2x3,2xx", "'X=2x3,2xx': expected dims such as 128x64 or scalar, with commas between"),
        ("Concat float X=2x3,", "'X=2x3,': expected dims such as 128x64 or scalar, with commas between"),
        ("Descend float W=2,3 dW=2 V=2,3 rate=scalar", "dW has 1 tensor; expected 2, as many as W"),
        ("Descend float rate=scalar", "no list of tensors is given, which would tell how many each list has"),
        ("Descend float W=2,3 dW=2,4 V=2,3 rate=scalar", r"dW\[1\] has shape \[4\]"),
        ("Descend float W=2,3 dW=2,3 V=2,3 rate=scalar,scalar", "expected dims such as 128x64x56x56, or scalar"),
        ("Descend float W=2,3 dW=2,3 rate=scalar", r"input V\[0\] is absent; it is required"),
    ],
)
def test_what_is_wrong_with_a_line_of_lists_is_named(line: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        gradsmith._core.parse_problem(line)


def test_bench_measures_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    from gradsmith import _bench

    monkeypatch.setattr(_bench, "_times", lambda call, seconds: [0.001])
    shapes = "2x3,4,scalar"
    measured = _bench.measure(f"Descend half_float_state W={shapes} dW={shapes} V={shapes} rate=scalar", "cpu", 0)
    elements = 2 * 3 + 4 + 1
    # W, dW and new_W are of half, V and new_V of float, as is the rate.
    assert measured.megabytes == (3 * 2 * elements + 2 * 4 * elements + 4) / 1e6
    assert measured.gigaoperations == 5 * elements / 1e9
    measured = _bench.measure("Concat float X=2x1x3,2x4x3 axis=1", "cpu", 0)
    assert measured.megabytes == 2 * (2 * 5 * 3) * 4 / 1e6
    # The gradient's lists are as long as those of the forward.
    assert _bench.measure("ConcatGrad float X=2x1x3,2x4x3 axis=1", "cpu", 0).megabytes == measured.megabytes


def test_calls_with_lists_come_back_from_their_lines(tmp_path: Path) -> None:
    lines = [
        "Concat float X=2,3",
        "Descend float W=2x3,scalar dW=2x3,scalar V=2x3,scalar rate=scalar outputs=new_W",
        "Descend float W=2 dW=2 V=2 rate=scalar scale=scalar",
    ]
    file = tmp_path / "problems.txt"
    program = f"from gradsmith import _bench\nfor line in {lines!r}:\n    _bench.measure(line, 'cpu', 0)"
    environment = {**os.environ, "GRADSMITH_RECORD": str(file)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
    assert [line for line in file.read_text().splitlines() if not line.startswith("#")] == lines


def test_schemas_of_pytorch_have_lists() -> None:
    from gradsmith._ops import TORCH_SCHEMAS

    assert TORCH_SCHEMAS["Concat"].startswith("(Tensor[] X, *, SymInt axis=0, ")
    assert "Tensor rate, Tensor?[]? scale=None, *, " in TORCH_SCHEMAS["Descend"]


def test_lists_are_differentiated_by_pytorch() -> None:
    torch = pytest.importorskip("torch")
    functions: Any = import_module("gradsmith.torch")
    parts = [torch.ones(2, size, requires_grad=size != 3) for size in (1, 3, 2)]
    others = [part.detach().clone().requires_grad_(part.requires_grad) for part in parts]
    weights = torch.arange(12.0).reshape(2, 6)
    (functions.concat(parts, axis=1).Y * weights).sum().backward()
    (torch.cat(others, 1) * weights).sum().backward()
    for part, other in zip(parts, others, strict=True):
        torch.testing.assert_close(part.grad, other.grad)
    rate = torch.tensor(0.5)
    result = functions.descend(others, others, others, rate, outputs="new_W")
    assert result.new_V is None
    torch.testing.assert_close(result.new_W[2], 0.25 * others[2])
    with pytest.raises(TypeError, match=r"Concat: X\[1\] is 3 \(int\); expected a torch.Tensor"):
        functions.concat([parts[0], 3])
