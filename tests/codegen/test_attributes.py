"""What attributes may be, beyond numbers with a default: how they are read, and what is generated of them."""

from __future__ import annotations

import math

import pytest
from gradsmith_codegen import render
from gradsmith_codegen.artefacts import artefacts
from gradsmith_codegen.model import AttributeKind, AttributeValue
from gradsmith_codegen.plan import make_plan
from gradsmith_codegen.python_names import PythonPlan
from schemas import SCALE, edited, load

FACTOR = "factor: {type: float, default: 1.0}"

ATTRIBUTES: dict[str, tuple[AttributeKind, AttributeValue | None]] = {
    "{type: bool, default: true}": (AttributeKind.BOOL, True),
    "{type: floats, default: [0.5, 2, -.inf], min: -.inf}": (AttributeKind.FLOATS, (0.5, 2.0, -math.inf)),
    '{type: string, default: ""}': (AttributeKind.STRING, ""),
    "{type: string, default: one}": (AttributeKind.STRING, "one"),
    "{type: float, default: .inf, max: .inf}": (AttributeKind.FLOAT, math.inf),
    "{type: int, optional: true, min: 0}": (AttributeKind.INT, None),
    "{type: string, optional: true}": (AttributeKind.STRING, None),
    "{type: float, default: 1.0, optional: false}": (AttributeKind.FLOAT, 1.0),
}


def written(entry: str) -> dict[str, str]:
    """What is generated, by path."""
    schema, diagnostics = load(edited(SCALE, (FACTOR, f"factor: {entry}")))
    assert diagnostics == []
    assert schema
    return dict(render.render(artefacts(make_plan(schema, 1))))


@pytest.mark.parametrize("entry", ATTRIBUTES)
def test_the_value_that_is_read(entry: str) -> None:
    schema, diagnostics = load(edited(SCALE, (FACTOR, f"factor: {entry}")))
    assert diagnostics == []
    assert schema
    (attribute,) = schema.ops[0].attributes
    assert (attribute.kind, attribute.default) == ATTRIBUTES[entry]
    assert attribute.is_optional == (attribute.default is None)


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        ("{type: bool, default: true}", "bool factor = true;"),
        ("{type: floats, default: [0.5, 2]}", "::gradsmith::FloatList factor = {0.5, 2.0};"),
        ('{type: string, default: "a\\"b"}', '::std::string factor = "a\\"b";'),
        ("{type: float, default: .inf, max: .inf}", "factor = ::std::numeric_limits<double>::infinity();"),
        ("{type: int, optional: true}", "::std::optional<::std::int64_t> factor = {};"),
    ],
)
def test_the_field_of_the_attributes_struct(entry: str, field: str) -> None:
    header = written(entry)["include/gradsmith/ops/scale.h"]
    assert f"  {field}\n" in header or f" {field}\n" in header
    for name, needed in {"optional": "::std::optional", "string": "::std::string", "limits": "numeric_limits"}.items():
        assert (f"#include <{name}>\n" in header) == (needed in header)


@pytest.mark.parametrize(
    ("entry", "minimum", "maximum"),
    [
        ("{type: float, default: 1.0}", "-internal::kUnbounded", "internal::kUnbounded"),
        ("{type: float, default: 1.0, min: 0, max: .inf}", "0.0", "internal::kInfinity"),
        ("{type: float, default: 1.0, min: -.inf}", "-internal::kInfinity", "internal::kUnbounded"),
    ],
)
def test_a_number_is_finite_unless_its_range_says_otherwise(entry: str, minimum: str, maximum: str) -> None:
    shard = written(entry)["src/ops_shard_0.cc"]
    assert f".minimum = {minimum},\n" in shard
    assert f".maximum = {maximum},\n" in shard


@pytest.mark.parametrize(
    ("entry", "declared", "stub", "torch"),
    [
        ("{type: bool, default: false}", "factor=False", "factor: bool = False", "bool factor=False"),
        ("{type: floats, default: []}", "factor=None", "factor: Sequence[float] | None = None", "float[]? factor=None"),
        ("{type: string, default: one}", 'factor="one"', 'factor: str = "one"', 'str factor="one"'),
        ("{type: int, optional: true}", "factor=None", "factor: int | None = None", "SymInt? factor=None"),
        (
            "{type: float, default: .inf, max: .inf}",
            'factor=float("inf")',
            "factor: float = ...",
            "float? factor=None",
        ),
    ],
)
def test_what_python_has(entry: str, declared: str, stub: str, torch: str) -> None:
    schema, _ = load(edited(SCALE, (FACTOR, f"factor: {entry}")))
    assert schema
    (parameter,) = PythonPlan(make_plan(schema, 1)).ops[0].attributes
    assert (parameter.declared, parameter.stub, parameter.torch) == (declared, stub, torch)
