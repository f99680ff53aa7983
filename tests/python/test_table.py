"""What the package tells of itself: ops, explain, missing_for, the cache, tune."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gradsmith
import numpy as np
import problems
import pytest
import yaml
from gradsmith import _bench, _table, _tuning


def test_ops_are_those_of_the_schema(repository: Path) -> None:
    schema = yaml.safe_load((repository / "ops.yaml").read_text())
    declared = [
        (op["name"], list(op["inputs"]), list(op["outputs"]), list(op.get("attributes", {})), list(op["rows"]))
        for op in schema["ops"]
    ]
    told = [
        (
            op.name,
            [tensor.name for tensor in op.inputs],
            [tensor.name for tensor in op.outputs],
            sorted(op.attributes),
            [row.name for row in op.rows if row.backend == "cpu"],
        )
        for op in gradsmith.ops()
    ]
    assert told == [(*others, sorted(attributes), rows) for *others, attributes, rows in declared]


def test_the_lines_of_rows_are_those_of_the_schema(repository: Path) -> None:
    lines = (repository / "ops.yaml").read_text().splitlines()
    for op in gradsmith.ops():
        for row in op.rows:
            assert lines[row.line - 1].strip().startswith(f"{row.name}: ")


@pytest.mark.parametrize("spelled", ["half", "float16", np.float16, np.dtype("float16")])
def test_explain_takes_names_and_dtypes(spelled: object) -> None:
    told = gradsmith.explain("ConvGrad", spelled)
    assert told.startswith("ConvGrad(MLFloat16) on cpu is there: ConvGrad[half] on cpu")


def test_explain_says_what_is_nearest() -> None:
    told = gradsmith.explain(gradsmith.batch_normalization_grad, "double", "double", "bf16")
    assert told.startswith("No row is BatchNormalizationGrad(double, double, BFloat16) on cpu.")
    assert "nearest: BatchNormalizationGrad[double] on cpu" in told
    assert "There is no op 'conv_gard'" in gradsmith.explain("conv_gard", "half")


def test_explain_says_what_the_build_lacks() -> None:
    told = gradsmith.explain("ConvGrad", "half", device="cuda")
    is_built = "built without CUDA" not in gradsmith.missing_for("cuda:0")
    assert ("is there: ConvGrad[half] on cuda" in told) == is_built
    assert ("is declared: ConvGrad[half] on cuda" in told) == (not is_built)
    assert (_table.find_row("ConvGrad", "half", device="cuda") is not None) == is_built
    assert told.endswith("kernel conv::ConvGrad." if is_built else "(CMake option GRADSMITH_CUDA).")


def test_explain_refuses_what_it_does_not_know() -> None:
    with pytest.raises(ValueError, match="there is no type 'int8'; expected float, double, half .* or bool"):
        gradsmith.explain("ConvGrad", "int8")
    with pytest.raises(ValueError, match=r"expected float, double, half \(MLFloat16\), bf16 \(BFloat16\), int32,"):
        gradsmith.explain("ConvGrad", "flaot")


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "cuda:", "cuda:-1", "cuda:99999999999", "cpu:1", "nonsense", ""])
def test_devices_are_read_alike_everywhere(device: str) -> None:
    readers: list[Callable[[], Any]] = [
        lambda: gradsmith.explain("ConvGrad", "half", device=device),
        lambda: gradsmith.missing_for(device),
        lambda: gradsmith.is_available(device),
        lambda: gradsmith.tune("", device=device),
        lambda: gradsmith.tune(gradsmith.conv_grad, *problems.arrays(), device=device),
        lambda: _bench.measure(_bench.default_problems()[0], device, 0),
    ]
    for read in readers:
        with pytest.raises(ValueError, match=f"device is '{device}'; expected 'cpu', 'cuda' or, for example, 'cuda:1'"):
            read()


def test_names_need_not_be_utf8() -> None:
    name = "\ud800"
    assert gradsmith.explain(name, "half").startswith(r"There is no op '\ud800'")
    readers: list[Callable[[], Any]] = [
        lambda: gradsmith.explain("Conv", name),
        lambda: gradsmith.missing_for(name),
        lambda: gradsmith.tune(name, device="cpu"),
    ]
    for read in readers:
        with pytest.raises(ValueError, match=r"'\\ud800'.* expected"):
            read()


def test_a_device_may_be_a_librarys_object() -> None:
    torch = pytest.importorskip("torch")
    assert gradsmith.missing_for(torch.device("cpu")) == ""
    assert gradsmith.explain("ConvGrad", "half", device=torch.device("cuda", 1)).partition(":")[0].count("on cuda")


def test_the_cpu_lacks_nothing() -> None:
    assert gradsmith.missing_for("cpu") == ""
    assert gradsmith.is_available("cpu")
    assert gradsmith.is_available("cuda:0") == (gradsmith.missing_for("cuda:0") == "")


def test_the_cache_goes_to_a_file_and_back(tmp_path: Path) -> None:
    file = tmp_path / "choices.txt"
    gradsmith.cache.export(file)
    gradsmith.cache.load(file)
    assert all(isinstance(choice, gradsmith.cache.Choice) for choice in gradsmith.cache.choices())
    with pytest.raises(ValueError, match="cannot read"):
        gradsmith.cache.load(tmp_path / "none.txt")


def test_tune_checks_calls_and_lines_on_the_cpu() -> None:
    mine = np.full(1, 7, "float32")
    nothing = gradsmith.Tuned((), "nothing to choose: the CPU backend has one kernel for each problem")
    assert gradsmith.tune(gradsmith.conv_grad, *problems.arrays(), out={"dB": mine}) == nothing
    assert mine == 7
    line = "ConvGrad half X=2x3x6x5 W=4x3x3x2 strides=1,2"
    assert gradsmith.tune(f"# a comment\n{line}\n", device="cpu") == nothing
    assert gradsmith.tune([line], device="cpu") == nothing
    with pytest.raises(ValueError, match="W has shape .*, 2 at dimension 1; expected 3"):
        gradsmith.tune(["ConvGrad half X=2x3x6x5 W=4x2x3x2"], device="cpu")
    with pytest.raises(TypeError, match="expected them with a function"):
        gradsmith.tune("ConvGrad half X=2x3x6x5 W=4x3x3x2", problems.DX, device="cpu")


def test_tune_searches_as_it_is_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(_tuning, "_prepare", lambda function, arguments, keywords, context: seen.append(context))
    gradsmith.tune(gradsmith.conv_grad, mode="heuristic", budget=2.5)
    gradsmith.tune(gradsmith.conv_grad)
    assert [(one.search_mode, one.search_budget_seconds) for one in seen] == [("heuristic", 2.5), ("benchmark", 10.0)]


def test_tune_takes_functions_with_autograd() -> None:
    torch = pytest.importorskip("torch")
    with_autograd = importlib.import_module("gradsmith.torch")
    dY, X, W = (torch.from_numpy(array).requires_grad_() for array in problems.arrays())
    for function, arguments in ((with_autograd.conv, (X, W)), (with_autograd.conv_grad, (dY, X, W))):
        assert gradsmith.tune(function, *arguments).note.startswith("nothing to choose")
    with pytest.raises(ValueError, match="W has shape"):
        gradsmith.tune(with_autograd.conv, X, W.expand(1, 2, 2, 2))


def test_tune_refuses_what_it_cannot_tune() -> None:
    expected = "expected one of gradsmith or gradsmith.torch"
    with pytest.raises(TypeError, match=f"tune got the function print; {expected}"):
        gradsmith.tune(print, 1)
    with pytest.raises(TypeError, match=expected):
        gradsmith.tune(gradsmith.explain, "Conv", "half")
    for given in (3, [3], b"ConvGrad"):
        with pytest.raises(TypeError, match=r"tune got .* \((int|bytes)\); expected a function of gradsmith"):
            gradsmith.tune(given, device="cpu")
    with pytest.raises(TypeError, match="tune got a context; expected it to be entered"):
        gradsmith.tune(gradsmith.conv_grad, *problems.arrays(), context=gradsmith.Context())
    for budget in (float("nan"), -1.0):
        with pytest.raises(ValueError, match=f"budget is {budget}; expected seconds, 0 or more"):
            gradsmith.tune("", device="cpu", budget=budget)
