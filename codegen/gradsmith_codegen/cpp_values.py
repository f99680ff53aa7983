"""Types and values of attributes and tensors, as generated C++ spells them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import cast

from . import model, text, vocabulary
from .cpp_names import type_parameter
from .data_types import DataType


def bound(value: float | None, otherwise: str) -> str:
    if value is None:
        return otherwise
    infinity = "internal::kInfinity"
    return repr(float(value)) if math.isfinite(value) else f"{'-' if value < 0 else ''}{infinity}"


def field_type(attribute: model.Attribute) -> str:
    kind = {
        model.AttributeKind.INT: "::std::int64_t",
        model.AttributeKind.FLOAT: "double",
        model.AttributeKind.INTS: "::gradsmith::IntList",
        model.AttributeKind.ENUM: f"::gradsmith::{attribute.enum}",
        model.AttributeKind.BOOL: "bool",
        model.AttributeKind.FLOATS: "::gradsmith::FloatList",
        model.AttributeKind.STRING: "::std::string",
    }[attribute.kind]
    return f"::std::optional<{kind}>" if attribute.is_optional else kind


def field_default(attribute: model.Attribute) -> str:
    """What the field of the attributes struct is where nothing is given."""
    return "{}" if attribute.default is None else field_value(attribute, attribute.default)


def argument_type(tensor: model.Tensor, kind: str) -> str:
    """The type of a field that holds one of a kind, or a list of these."""
    return f"::std::vector<::gradsmith::{kind}>" if tensor.list else f"::gradsmith::{kind}"


def headers(op: model.Op) -> list[str]:
    """The headers of the standard library that an operator's structs need, in order."""
    attributes = op.attributes
    values = [value for one in attributes for value in _listed(one)]
    needs = {
        "cstdint": True,
        "limits": any(isinstance(value, float) and math.isinf(value) for value in values),
        "optional": any(one.is_optional for one in attributes),
        "string": any(one.kind is model.AttributeKind.STRING for one in attributes),
        "vector": op.has_lists,
    }
    return [header for header, is_needed in needs.items() if is_needed]


def _listed(attribute: model.Attribute) -> Sequence[object]:
    return attribute.default if isinstance(attribute.default, tuple) else (attribute.default,)


@cache
def braces(values: tuple[int, ...]) -> str:
    return f"{{{', '.join(map(_integer, values))}}}"


def field_value(attribute: model.Attribute, value: model.AttributeValue) -> str:
    """The value as the attributes struct takes it."""
    if attribute.kind is model.AttributeKind.ENUM:
        return f"::gradsmith::{attribute.enum}::{value}"
    return text.cpp_string(value) if isinstance(value, str) else _number(attribute, value)


def dynamic_value(attribute: model.Attribute, value: model.AttributeValue) -> str:
    """The value as gradsmith::Attribute takes it."""
    if isinstance(value, str):
        return text.cpp_string(value)
    list_type = "FloatList" if attribute.kind.is_real else "IntList"
    return (list_type if isinstance(value, tuple) else "") + _number(attribute, value)


def _number(attribute: model.Attribute, value: model.AttributeValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        if attribute.kind.is_real:
            return f"{{{', '.join(map(_real, value))}}}"
        return braces(cast(tuple[int, ...], value))
    return _real(cast(float, value)) if attribute.kind.is_real else _integer(cast(int, value))


def _real(value: float) -> str:
    infinity = "::std::numeric_limits<double>::infinity()"
    return repr(float(value)) if math.isfinite(value) else f"{'-' if value < 0 else ''}{infinity}"


def _integer(value: int) -> str:
    """C++ has no literal for the least 64-bit integer."""
    return f"({value + 1} - 1)" if value == -(2**63) else str(value)


@cache
def element_type(name: str) -> str:
    """The C++ type of a tensor's elements, as it can be spelled beside fields of any name."""
    if name not in vocabulary.TYPES:
        return type_parameter(name)
    found = data_type(name)
    if found.cpp_type == found.value:  # the library's own, or a word of C++
        return f"::gradsmith::{found.value}" if found.value[0].isupper() else found.value
    return f"::{found.cpp_type}"


def data_type(name: str) -> DataType:
    return vocabulary.TYPES[name]
