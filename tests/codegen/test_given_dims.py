"""Dims that broadcast to others, dims that an attribute, an input or the caller gives, and words of bits."""

from __future__ import annotations

import pytest
from gradsmith_codegen import render
from gradsmith_codegen.artefacts import artefacts
from gradsmith_codegen.plan import make_plan
from gradsmith_codegen.shape_rules import ImpossibleShape, apply
from gradsmith_codegen.shapes import ShapeRule
from schemas import SCALE, edited, load
from test_axes import HEADERS, PICK, of_pick

CROP = edited(
    SCALE,
    ("Y: {type: T, like: X}", 'Y: {type: T, shape: [N, "*O"]}'),
    ("D: {length: [0, 3]}", "D: {length: [0, 3]}\n      O: {length: D, given_by: size}"),
    ("factor: {type: float, default: 1.0}", "size: {type: ints, default: [], min: 0, length: D}"),
    ("X: [2, 3]}", "X: [2, 3], size: [5]}"),
)
BLEND = edited(
    SCALE,
    ('X: {type: T, shape: [N, "*D"]}', 'X: {type: T, shape: ["*D"]}\n      slope: {type: T, shape: ["*S"]}'),
    ("D: {length: [0, 3]}", "D: {length: [0, 3]}\n      S: {length: [0, 3], broadcast_to: D}"),
)


def told(text: str) -> list[str]:
    _, diagnostics = load(text)
    return [f"{diagnostic.id}: {diagnostic.message}" for diagnostic in diagnostics]


def shapes(text: str) -> dict[str, tuple[int, ...]]:
    schema, diagnostics = load(text)
    assert diagnostics == []
    assert schema
    return dict(schema.ops[0].cases[0].all_shapes)


def test_an_attribute_gives_the_dims_of_a_case() -> None:
    assert shapes(CROP)["Y"] == (2, 5)


def test_the_output_of_a_case_gives_them_where_the_attribute_does_not() -> None:
    assert shapes(edited(CROP, (", size: [5]", ", Y: [2, 7]")))["Y"] == (2, 7)
    caller = edited(CROP, ("given_by: size", "given_by: outputs"), (", size: [5]", ", Y: [2, 7]"))
    assert shapes(caller)["Y"] == (2, 7)


ONE = edited(
    CROP,
    ('"*O"]', "O]"),
    ("O: {length: D, given_by: size}", "O: {given_by: size}"),
    ("{type: ints, default: [], min: 0, length: D}", "{type: int, default: 4, min: 1}"),
    (", size: [5]", ", size: 5"),
)


@pytest.mark.parametrize(
    ("text", "gives"), [(CROP, "'size' gives O as [5], and it is [7]"), (ONE, "'size' gives O as 5, and it is 7")]
)
def test_the_output_of_a_case_is_as_the_attribute_says(text: str, gives: str) -> None:
    assert shapes(text)["Y"] == (2, 5)
    assert shapes(edited(text, ("X: [2, 3]", "X: [2, 3], Y: [2, 5]")))["Y"] == (2, 5)
    (fault,) = told(edited(text, ("X: [2, 3]", "X: [2, 3], Y: [2, 7]")))
    assert fault.startswith(f"G605: case 'plain': {gives}")


@pytest.mark.parametrize("length", ["D", "[0, 1]"])
def test_an_attribute_gives_no_more_dims_than_there_are(length: str) -> None:
    """As many as another list has, or as the schema allows."""
    text = edited(
        CROP, ("default: [], min: 0, length: D", "default: [], min: 0"), ("O: {length: D", f"O: {{length: {length}")
    )
    assert shapes(text)["Y"] == (2, 5)
    (fault,) = told(edited(text, ("size: [5]", "size: [5, 6]")))
    assert fault.startswith("G605: case 'plain': 'size' gives O 2 dims, which it cannot have")


def test_a_case_that_gives_neither_is_incomplete() -> None:
    (fault,) = told(edited(CROP, (", size: [5]", "")))
    assert fault.startswith("G609: ")
    assert "nothing that is given sets O" in fault


HELD = edited(
    SCALE,
    ('X: {type: T, shape: [N, "*D"]}', 'X: {type: T, shape: [N, "*D"]}\n      size: {type: int64, shape_of: Y}'),
    ("Y: {type: T, like: X}", 'Y: {type: T, shape: [N, "*O"]}'),
    ("D: {length: [0, 3]}", "D: {length: [0, 3]}\n      O: {length: D}"),
    ("X: [2, 3]}", "X: [2, 3], size: [2, 5]}"),
)


def test_an_input_holds_the_dims_of_a_case() -> None:
    assert shapes(HELD) == {"X": (2, 3), "size": (2, 5), "Y": (2, 5)}
    assert shapes(edited(HELD, ("size: [2, 5]", "Y: [2, 7]")))["size"] == (2, 7)
    (fault,) = told(edited(HELD, ("size: [2, 5]", "size: [3, 5]")))
    assert fault.startswith("G605: case 'plain': 'size' makes N 3, but it is 2")


def test_what_holds_dims_is_not_the_kernels() -> None:
    schema, _ = load(HELD)
    assert schema
    files = dict(render.render(artefacts(make_plan(schema, 1))))
    shard = files["src/ops_shard_0.cc"]
    assert '        .shape_of = "Y",\n' in shard
    assert "in.X = internal::ArgumentAt(inputs, 0);" in shard
    assert "in.size" not in shard
    assert "in[1] = internal::HoldingShape(inputs.size);" in shard
    assert "size : sequence of int, the dims of Y\n" in files["python/gradsmith/_ops/scale_op.py"]
    assert "SymInt[] size" in files["python/gradsmith/_ops/__init__.py"]
    assert "TensorView<const ::std::int64_t> size" in files["include/gradsmith/ops/scale.h"]


@pytest.mark.parametrize(("count", "words"), [(0, 0), (1, 1), (32, 1), (33, 2)])
def test_words_of_bits(count: int, words: int) -> None:
    text = edited(
        SCALE,
        ('X: {type: T, shape: [N, "*D"]}', "X: {type: T, shape: [N]}"),
        ("Y: {type: T, like: X}", "Y: {type: T, shape: [ceil( N/32 )]}"),
        ("    dims:\n      D: {length: [0, 3]}\n", ""),
        ("X: [2, 3]}", f"X: [{count}]}}"),
    )
    assert shapes(text)["Y"] == (words,)
    (fault,) = told(edited(text, (f"X: [{count}]}}", f"X: [{count}], Y: [{words + 1}]}}")))
    assert fault == f"G605: case 'plain': 'Y' has {words + 1} where ceil(N / 32) is {words}"


def test_dims_that_nothing_gives_are_refused() -> None:
    (fault,) = told(edited(CROP, (", given_by: size", "")))
    assert fault.startswith("G314: 'O' in the shape of output 'Y' is bound by no input and no rule")


@pytest.mark.parametrize("slope", ["[2, 3, 4]", "[3, 4]", "[4]", "[1]", "[]", "[2, 1, 1]"])
def test_what_broadcasts(slope: str) -> None:
    assert shapes(edited(BLEND, ("X: [2, 3]}", f"X: [2, 3, 4], slope: {slope}}}")))["Y"] == (2, 3, 4)


@pytest.mark.parametrize("slope", ["[3]", "[2, 3]", "[2, 3, 1, 1]", "[0]"])
def test_what_does_not_broadcast(slope: str) -> None:
    (fault,) = told(edited(BLEND, ("X: [2, 3]}", f"X: [2, 3, 4], slope: {slope}}}")))
    assert fault.partition(":")[0] in ("G605", "G604")


def test_more_dims_than_there_are_do_not_broadcast() -> None:
    """Also where the last of them do."""
    longer = ("S: {length: [0, 3]", "S: {length: [0, 4]")
    (fault,) = told(edited(BLEND, longer, ("X: [2, 3]}", "X: [2, 3, 4], slope: [1, 2, 3, 4]}")))
    assert fault.startswith("G605: case 'plain': S = [1, 2, 3, 4] does not broadcast to D = [2, 3, 4]")


@pytest.mark.parametrize(
    ("lists", "whole"),
    [
        ([(2, 1, 4), (3, 1)], (2, 3, 4)),
        ([(), (5,), (1, 1, 1)], (1, 1, 5)),
        ([(1,), (0,)], (0,)),
        ([(0, 1), (3,)], (0, 3)),
        ([(3, 1, 2), (2, 1), (4, 2)], None),
        ([(0,), (2,)], None),
    ],
)
def test_what_broadcasts_together(lists: list[tuple[int, ...]], whole: tuple[int, ...] | None) -> None:
    if whole is not None:
        assert apply(ShapeRule("broadcast", ("P", "Q")), {}, lists) == whole
    else:
        with pytest.raises(ImpossibleShape, match="would be both"):
            apply(ShapeRule("broadcast", ("P", "Q")), {}, lists)


def test_the_tables_of_the_runtime() -> None:
    def shard(text: str) -> str:
        schema, _ = load(text)
        assert schema
        return dict(render.render(artefacts(make_plan(schema, 1))))["src/ops_shard_0.cc"]

    crop = shard(CROP)
    assert "        .given_by = 0,\n        .from_outputs = true,\n" in crop
    caller = shard(edited(CROP, ("given_by: size", "given_by: outputs"), (", size: [5]", ", Y: [2, 7]")))
    assert ".given_by" not in caller
    assert "        .from_outputs = true,\n" in caller
    blend = shard(edited(BLEND, ("X: [2, 3]}", "X: [2, 3], slope: [3]}")))
    assert "        .broadcast_to = 0,\n" in blend


def test_a_kernel_says_that_dims_broadcast() -> None:
    expected = "G324: 'S' need not broadcast to 'D', as kernel sample::Blend takes it; write 'broadcast_to: D'"
    assert expected in of_pick(("S: {length: [0, 8], broadcast_to: D,", "S: {length: [0, 8],"))


def test_an_operator_may_have_a_version_of_its_own() -> None:
    schema, diagnostics = load(edited(SCALE, ("    kernel:", "    since_version: 9\n    kernel:")))
    assert diagnostics == []
    assert schema
    (op,) = make_plan(schema, 1).ops
    assert (op.schema.since_version, op.since_version) == (1, 9)
    assert HEADERS.kernel("sample::Blend")
    assert "since_version: 7" in PICK
