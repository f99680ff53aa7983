"""What is worked out for the templates: places, indices, and what operators share."""

from __future__ import annotations

import re

from gradsmith_codegen.artefacts import artefacts
from gradsmith_codegen.model import Schema
from gradsmith_codegen.places import PlaceFinder
from gradsmith_codegen.plan import make_plan
from gradsmith_codegen.render import render
from schemas import CONVOLVE, SCALE, edited, load

OP = SCALE[SCALE.index("  - name: Scale") :]


def two_ops(*edits: tuple[str, str], first: str = OP) -> Schema:
    """Scale, and after it Second, which is Scale with these edits."""
    text = SCALE.replace(OP, first) + edited(OP, ("name: Scale", "name: Second"), *edits)
    schema, diagnostics = load(text)
    assert diagnostics == []
    assert schema
    return schema


def stub(schema: Schema, op: str) -> str:
    """What is generated for an op besides its rows."""
    text = dict(render(artefacts(make_plan(schema, shards=1))))["src/ops_shard_0.cc"]
    stub = f"namespace generated::{op}_stub"
    (found,) = re.findall(rf"{stub} {{.*?}}  // {stub}", text, re.DOTALL)
    return str(found)


def test_a_place_is_told_from_the_entry_that_holds_it() -> None:
    places = PlaceFinder(two_ops())
    told = {line: places[line].comment.removeprefix("// ") for line in (5, 19, 20, 21, 22)}
    assert told == {
        5: "ops.yaml: Scale, line 1 of the entry",
        19: "ops.yaml: Scale, line 15 of the entry",
        20: "ops.yaml: Scale, line 16 of the entry",
        21: "ops.yaml: Second, line 1 of the entry",
        22: "ops.yaml: Second, line 2 of the entry",
    }


def test_entries_are_in_the_order_of_their_names() -> None:
    names = [f"Op{letter}" for letter in "HGFEDCBA"]
    schema, _ = load(SCALE.replace(OP, "".join(edited(OP, ("name: Scale", f"name: {name}")) for name in names)))
    assert schema
    plan = make_plan(schema, shards=1)
    assert plan.entries(list(plan.ops)) == [f"op_{letter}_stub" for letter in "abcdefgh"]


def test_ops_that_share_attributes_have_their_own_indices() -> None:
    attributes = "    attributes: &shared\n      steps: {type: ints, default: [], length: D}\n"
    plain = "    attributes:\n      factor: {type: float, default: 1.0}\n"
    first = edited(OP, (plain, attributes))
    schema = two_ops((plain, "    attributes: *shared\n"), ('[N, "*D"]', '[N, C, "*D"]'), first=first)
    assert "length_of = 1," in stub(schema, "scale")
    assert "length_of = 2," in stub(schema, "second")


def test_what_the_kernel_says_is_asserted() -> None:
    """So that headers which the generator has not seen, or has misread, do not compile."""
    schema, _ = load(CONVOLVE)
    assert schema
    for constant, text in schema.ops[0].kernel_says:
        assert f'static_assert( Kernel::{constant} == "{text}", ' in " ".join(stub(schema, "convolve").split())
    assert [constant for constant, _ in schema.ops[0].kernel_says] == ["kShapes", "kTypes", "kLimits"]
