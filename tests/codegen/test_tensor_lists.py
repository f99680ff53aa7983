"""Lists of tensors: which symbols each tensor has of its own, the shapes of cases, and what kernels say of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from gradsmith_codegen.kernel_headers import KernelHeaders
from schemas import HEADERS, SCALE, edited, load

JOIN = edited(
    SCALE,
    ('X: {type: T, shape: [N, "*D"]}', 'X: {type: T, list: n, shape: [P, "*D"]}'),
    ("Y: {type: T, like: X}", 'Y: {type: T, shape: [S, "*D"]}'),
    ("D: {length: [0, 3]}", "D: {length: [0, 3]}\n      S: {rule: sum(P)}"),
    ("X: [2, 3]}", "X: [[2, 3], [4, 3], [0, 3]]}"),
)
ADD = edited(SCALE, ("X: {type: T, shape", "X: {type: T, list: n, shape"), ("X: [2, 3]}", "X: [[2, 3], [2, 3]]}"))
KERNEL = """\
struct Join {
  static constexpr std::string_view kShapes = "X [P, *B], Y [S, *B], S = sum(P)";
  static constexpr std::string_view kTypes = "any";
  struct Attributes {};
  struct Inputs {
    RequiredInputs X;
  };
  struct Outputs {
    std::span<const TensorRef> Y;
  };
};
"""


def told(text: str) -> list[str]:
    return [f"{diagnostic.id}: {diagnostic.message}" for diagnostic in load(text)[1]]


@pytest.mark.parametrize(("text", "own"), [(JOIN, {"P"}), (ADD, set())])
def test_a_symbol_of_lists_alone_is_one_of_each(text: str, own: set[str]) -> None:
    schema, diagnostics = load(text)
    assert diagnostics == []
    assert schema
    assert {symbol.name for symbol in schema.ops[0].symbols if symbol.of_each} == own


def test_dims_of_each_broadcast_together() -> None:
    text = edited(
        ADD,
        ('shape: [N, "*D"]', 'shape: ["*P"]'),
        ("like: X", 'shape: ["*D"]'),
        ("D: {length: [0, 3]}", "P: {length: [0, 3]}\n      D: {length: [0, 3], rule: broadcast(P)}"),
        ("[[2, 3], [2, 3]]", "[[2, 1], [3], []]"),
    )
    schema, diagnostics = load(text)
    assert diagnostics == []
    assert schema
    assert schema.ops[0].cases[0].all_shapes[-1] == ("Y", (2, 3))


def test_a_case_has_the_shapes_of_all_tensors() -> None:
    schema, _ = load(JOIN)
    assert schema
    shapes = (("X[0]", (2, 3)), ("X[1]", (4, 3)), ("X[2]", (0, 3)), ("Y", (6, 3)))
    assert schema.ops[0].cases[0].all_shapes == shapes


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("[4, 3]", "[4, 5]", "G605: case 'plain': 'X[1]' makes D [5], but it is [3]"),
        ("[0, 3]]", "[0, 3]], Y: [7, 3]", "G605: case 'plain': 'Y' makes S 7, but sum(P[0], P[1], P[2]) is 6"),
        ("[4, 3]", ", ".join(["[4, 3]"] * 1999), "G610: case 'plain': 'X' has 2001 tensors, more than 2000"),
    ],
)
def test_a_case_that_does_not_fit_is_told(old: str, new: str, fault: str) -> None:
    assert told(edited(JOIN, (old, new))) == [fault]


@pytest.mark.parametrize("rule", ["S = sum(B)", "B = sum(P)", "S = sum(P, P)"])
def test_a_sum_that_a_kernel_cannot_mean_is_told(tmp_path: Path, rule: str) -> None:
    (tmp_path / "family").mkdir()
    header = tmp_path / "family/kernels.h"
    header.write_text(KERNEL.replace("S = sum(P)", rule))
    kernel = KernelHeaders([tmp_path]).kernel("family::Join")
    assert kernel
    assert kernel.faults == (f"kShapes has the rule {rule}, which is for two single dims of its shapes",)
    header.write_text(KERNEL)
    right = KernelHeaders([tmp_path]).kernel("family::Join")
    assert right
    assert right.faults == ()


def test_fields_of_kernels_tell_lists() -> None:
    kernel = HEADERS.kernel("lists::Join")
    assert kernel
    assert kernel.lists == {"X", "Z"}
    assert kernel.tensors == {"X": True, "rate": False, "Y": True, "Z": False}
