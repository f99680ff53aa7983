"""Inputs that are added to each other have one gradient, which one output is: `gradient_of: [A, B]`."""

from __future__ import annotations

from pathlib import Path

import pytest
from gradsmith_codegen import render
from gradsmith_codegen.artefacts import artefacts
from gradsmith_codegen.explanation import explanation
from gradsmith_codegen.formatting import formatted
from gradsmith_codegen.kernel_headers import KernelHeaders
from gradsmith_codegen.loader import source_of
from gradsmith_codegen.model import Schema
from gradsmith_codegen.plan import make_plan
from gradsmith_codegen.reader import read_document
from gradsmith_codegen.schema_changes import changes
from schemas import KERNELS, edited, errors, load

OF_BOTH = "gradient_of: [A, B]"
ADD = """\
schema_version: 1
domain: com.example
since_version: 1

ops:
  - name: Add
    doc: The sum of A and B.
    kernel: added::Add
    backends: [cpu]
    inputs:
      A: {type: T, shape: ["*D"]}
      B: {type: T, shape: ["*D"]}
    outputs:
      Y: {type: T, like: A}
    dims: &any_dims
      D: {length: [0, 8]}
    rows: &one_type
      double: {T: double}
    cases:
      - {name: plain, A: [2, 3]}

  - name: AddGrad
    doc: Gradient of Add.
    gradient_of: Add
    kernel: added::AddGrad
    backends: [cpu]
    inputs:
      dY: {type: T, shape: ["*D"], gradient_of: Y}
    outputs:
      dA: {type: T, like: dY, gradient_of: [A, B], doc: that of both}
    dims: *any_dims
    rows: *one_type
    cases:
      - {name: plain, dY: [2, 3]}
"""


def schema_of(text: str) -> Schema:
    schema, diagnostics = load(text)
    assert diagnostics == []
    assert schema
    return schema


def told(old: str, new: str) -> list[str]:
    documents = [read_document(source_of("ops.yaml", text))[0] for text in (old, new)]
    assert documents[0]
    assert documents[1]
    return [f"{one.effect.value}: {one.message}" for one in changes(documents[0], documents[1])]


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("gradient_of: A", ("A",)),
        ("gradient_of: [A]", ("A",)),
        (OF_BOTH, ("A", "B")),
        ("gradient_of: [B, A]", ("B", "A")),
        ('gradient_of: ["A", B]', ("A", "B")),
    ],
)
def test_a_name_or_a_list_of_names(written: str, names: tuple[str, ...]) -> None:
    schema = schema_of(edited(ADD, ("added::AddGrad", "scale::ScaleGrad"), (OF_BOTH, written)))
    assert schema.ops[1].outputs[0].gradient_of == names


@pytest.mark.parametrize("written", [OF_BOTH, "gradient_of: [B, A]"])
def test_a_kernel_says_so_too_in_whatever_order(written: str) -> None:
    schema_of(edited(ADD, (OF_BOTH, written)))


def test_of_a_kernel_that_takes_more_the_rest_is_no_entrys() -> None:
    """A forward operator that lacks an optional input of its kernel has no gradient of it."""
    alone = edited(ADD, ('      B: {type: T, shape: ["*D"]}\n', ""), (OF_BOTH, "gradient_of: A"))
    _, diagnostics = load(alone)
    assert "G511" not in [one.id for one in errors(diagnostics)]


def test_an_alias_may_repeat_a_list() -> None:
    """And then what is wrong with it is told once."""
    other = "  - name: AddGrad2" + ADD.partition("  - name: AddGrad")[2]
    twice = edited(ADD, (OF_BOTH, "gradient_of: &both [A, B]")) + "\n" + edited(other, (OF_BOTH, "gradient_of: *both"))
    assert [one.outputs[0].gradient_of for one in schema_of(twice).ops[1:]] == [("A", "B")] * 2
    assert [one.id for one in load(edited(twice, ("[A, B]", "[A, A]")))[1]] == ["G030"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("A", "[A, B]", "compatible: gradient_of of output 'dA' is A, B, was A"),
        ("[A, B]", "A", "breaking: gradient_of of output 'dA' is A, was A, B"),
        ("A", "B", "breaking: gradient_of of output 'dA' is B, was A"),
    ],
)
def test_what_it_means_to_callers(old: str, new: str, message: str) -> None:
    both = [edited(ADD, (OF_BOTH, f"gradient_of: {one}")) for one in (old, new)]
    assert told(*both) == [message]


@pytest.mark.parametrize(("old", "new"), [("[A, B]", "[B, A]"), ("A", "[A]")])
def test_what_is_the_same_to_callers(old: str, new: str) -> None:
    both = [edited(ADD, (OF_BOTH, f"gradient_of: {one}")) for one in (old, new)]
    assert told(*both) == []


def test_it_is_formatted() -> None:
    assert formatted(source_of("ops.yaml", ADD)) == ADD
    untidy = edited(ADD, (f"{OF_BOTH}, doc: that of both", "doc: that of both, gradient_of: [ A,B ]"))
    assert formatted(source_of("ops.yaml", untidy)) == ADD
    block = "dA:\n        type: T\n        like: dY\n"
    block += "        gradient_of:\n        - A\n        - B\n        doc: that of both\n"
    line = f"dA: {{type: T, like: dY, {OF_BOTH}, doc: that of both}}\n"
    assert formatted(source_of("ops.yaml", edited(ADD, (line, block)))) == ADD


def test_it_is_explained() -> None:
    plan = make_plan(schema_of(ADD), 1)
    found = explanation(plan.ops[1], plan)
    assert [one.gradient_of for one in (*found.inputs, *found.outputs)] == [["Y"], ["A", "B"]]
    assert [one.remarks for one in (*found.inputs, *found.outputs)] == ["", "required, the gradient of A and of B"]


def test_it_is_written_down_wherever_callers_look() -> None:
    files = dict(render.render(artefacts(make_plan(schema_of(ADD), 1))))
    assert "| required, the gradient of `A` and of `B` | that of both |" in files["docs/AddGrad.md"]
    assert "/// [*D], the gradient of A and of B: that of both" in files["include/gradsmith/ops/add_grad.h"]
    assert "dA : array of T (*D,), the gradient of A and of B" in files["python/gradsmith/_ops/add_grad_op.py"]
    shard = files["src/ops_shard_0.cc"]
    assert 'std::array<std::string_view, 1> kGradient0 = {"Y"};' in shard
    both = 'std::array<std::string_view, 2> kGradient1 = {\n    // 0\n    "A",\n    // 1\n    "B",\n};'
    assert both in shard
    assert shard.count(".gradient_of = kGradient1,") == 1


@pytest.mark.parametrize(
    ("said", "tensors"),
    [
        ("dA of A and B", ("A", "B")),
        ("dA of B and A", ("B", "A")),
        ("dA of A", ("A",)),
        ("dA of A and A", None),
        ("dA of A and", None),
        ("dA of A, B", None),
        ("dA of A and B and", None),
    ],
)
def test_what_a_kernel_may_say(tmp_path: Path, said: str, tensors: tuple[str, ...] | None) -> None:
    header = (KERNELS / "added/kernels.h").read_text(encoding="utf-8")
    (tmp_path / "added").mkdir()
    text = edited(header, ("dA of A and B", said))
    (tmp_path / "added/kernels.h").write_text(text, encoding="utf-8")
    kernel = KernelHeaders([tmp_path]).kernel("added::AddGrad")
    assert kernel
    if tensors:
        assert kernel.faults == ()
        assert kernel.gradients
        assert kernel.gradients.tensors == {"dY": ("Y",), "dA": tensors}
    else:
        assert len(kernel.faults) == 1
        assert f"its kGradientOf does not read from '{said.partition(', ')[2] or said}' on" in kernel.faults[0]
