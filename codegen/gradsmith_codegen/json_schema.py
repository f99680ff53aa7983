"""A JSON Schema of the schema's files, for editors: keys, kinds of values and words, which it takes from the
tables that the reader goes by. What only a whole operator tells, such as which symbols a shape may have, it
does not know.

It is of draft 7, which all editors know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from . import grammar, scalars, vocabulary
from .grammar import REFERENCE
from .model import OUTPUTS, AttributeKind
from .vocabulary import Keys

FILE_NAME = "ops.schema.json"

Json = dict[str, Any]

_DRAFT = "http://json-schema.org/draft-07/schema#"
_LARGEST_VERSION = 2**31 - 1

_NAME: Json = {"type": "string", "minLength": 1}
_FLAG: Json = {"type": "boolean"}
_NUMBER: Json = {"type": "number"}
_INTEGER: Json = {"type": "integer", "minimum": scalars.INT64_MIN, "maximum": scalars.INT64_MAX}
_INTEGERS: Json = {"type": "array", "items": _INTEGER}
_NUMBERS: Json = {"type": "array", "items": _NUMBER}
_EXPRESSION: Json = {"type": ["string", "number"], "minLength": 1}
_EXPRESSIONS: Json = {"type": "object", "minProperties": 1, "additionalProperties": _EXPRESSION}
_VERSION: Json = {"type": "integer", "minimum": 1, "maximum": _LARGEST_VERSION}


def text() -> str:
    """The file's text."""
    return json.dumps(json_schema(), indent=2) + "\n"


def json_schema() -> Json:
    """The schema, as what `json` writes."""
    return {
        "$schema": _DRAFT,
        "title": "Gradsmith's operators",
        "description": "What ops.yaml may hold; docs/schema.md explains each key.",
        **_file(),
        "definitions": {
            "operator": _operator(),
            "input": _tensor(vocabulary.INPUT),
            "output": _tensor(vocabulary.OUTPUT),
            "symbol": _symbol(),
            "attribute": _attribute(),
            "row": {
                "type": "object",
                "propertyNames": _text(grammar.IDENTIFIER),
                "additionalProperties": _words(vocabulary.TYPES),
            },
            "case": {**_mapping(vocabulary.CASE, _CASE_VALUES), "additionalProperties": _CASE_VALUE},
        },
    }


# ----------------------------------------------------------------------------------------------------
# Mappings


def _mapping(keys: Keys, values: dict[str, Json]) -> Json:
    """Of a mapping whose values are described by their keys: all of these and no other."""
    return {
        "type": "object",
        "properties": {key: values[key] for key in keys.all},
        "required": list(keys.required),
        "additionalProperties": False,
    }


def _file() -> Json:
    """What there must be depends on what the file is for: its own operators, others', or shared parts."""
    others = [key for key in vocabulary.SCHEMA_OF_OTHERS.required if key != "include"]
    return {
        **_mapping(Keys(("schema_version",), vocabulary.SCHEMA.all[1:]), _FILE_VALUES),
        "if": {"anyOf": [{"required": ["ops"]}, {"required": ["include"]}]},
        "then": {"required": others},
        "else": {"if": {"required": ["shared"]}, "else": {"required": list(vocabulary.SCHEMA.required)}},
    }


def _named(what: str, definition: str, names: re.Pattern[str] = grammar.IDENTIFIER) -> Json:
    """Of a mapping from names to parts of an operator."""
    return {
        "description": what,
        "type": "object",
        "propertyNames": {**_text(names), "maxLength": grammar.MAX_NAME},
        "additionalProperties": _reference(definition),
    }


def _operator() -> Json:
    """A kernel computes it or formulas do: either is missing where the other is."""
    of_either = {*vocabulary.OP.required} & {*vocabulary.OP_WITH_FORMULAS.required}
    needed = tuple(key for key in vocabulary.OP.all if key in of_either)
    optional = tuple(key for key in vocabulary.OP.all if key not in of_either)
    return {**_mapping(Keys(needed, optional), _OP_VALUES), **_one_of("kernel", "formulas")}


def _tensor(keys: Keys) -> Json:
    sources = [key for key in ("shape", "like", "shape_of") if key in keys]
    values = _OUTPUT_VALUES if keys is vocabulary.OUTPUT else _TENSOR_VALUES
    tensor = {**_mapping(keys, values), **_one_of(*sources)}
    if "shape_of" in keys:
        of_values = ("list", "gradient_of", "shape_only", "may_be_on_host")
        tensor["dependencies"] = {"shape_of": {"properties": dict.fromkeys(of_values, False)}}
    return tensor


def _symbol() -> Json:
    """What a length is where an attribute is true stands beside a number or a range."""
    conditional: Json = {"length_if": {"required": ["length"], "properties": {"length": _RANKS}}}
    return {**_mapping(vocabulary.SYMBOL, _SYMBOL_VALUES), "dependencies": conditional}


def _attribute() -> Json:
    """Which keys it may have, and what its default is, depends on its type."""
    kinds = [
        {"if": _has("type", {"const": kind.value}), "then": _of_kind(keys, _DEFAULTS[kind])}
        for kind, keys in vocabulary.ATTRIBUTE_KIND_KEYS.items()
    ]
    absence: Json = {
        "if": _has("optional", {"const": True}),
        "then": {"properties": {"default": False}},
        "else": {"required": ["default"]},
    }
    return {**_mapping(vocabulary.ATTRIBUTE, _ATTRIBUTE_VALUES), "allOf": [*kinds, absence]}


def _of_kind(keys: Keys, default: Json) -> Json:
    others = [key for key in vocabulary.ATTRIBUTE_OF_SOME_KINDS if key not in keys]
    properties: Json = {"default": default, **dict.fromkeys(others, False)}
    if default in (_INTEGER, _INTEGERS):
        properties |= dict.fromkeys([key for key in ("min", "max") if key in keys], _INTEGER)
    return {"properties": properties, **({"required": list(keys.required)} if keys.required else {})}


# ----------------------------------------------------------------------------------------------------
# What is said of values


def _reference(definition: str) -> Json:
    return _or_part({"$ref": f"#/definitions/{definition}"})


def _or_part(value: Json) -> Json:
    """A mapping or a list, or a reference to one of an included file. What is said of it stays outermost."""
    value = dict(value)
    said = {"description": value.pop("description")} if "description" in value else {}
    return {**said, "if": {"type": "string"}, "then": _text(REFERENCE), "else": value}


def _one_of(*keys: str) -> Json:
    """One of the keys is there, and no other."""
    return {"oneOf": [{"required": [key]} for key in keys]}


def _has(key: str, value: Json) -> Json:
    return {"properties": {key: value}, "required": [key]}


def _text(*patterns: re.Pattern[str]) -> Json:
    """A text that is of one of these languages."""
    either = "|".join(pattern.pattern.removesuffix(r"\Z") for pattern in patterns)
    return {"type": "string", "pattern": f"^(?:{either})$"}


def _words(words: Iterable[str]) -> Json:
    return {"enum": list(words)}


def _list(items: Json, least: int = 0) -> Json:
    return {"type": "array", "items": items, **({"minItems": least} if least else {})}


def _either(*values: Json) -> Json:
    return {"anyOf": list(values)}


def _told(what: str, value: Json) -> Json:
    return {"description": what, **value}


_CONTROLS = r"\x00-\x08\x0a-\x1f\x7f"
_DOC = _told(
    "What it is or does, in a line.",
    {"type": "string", "pattern": rf"^[^{_CONTROLS}]*[^\s{_CONTROLS}][^{_CONTROLS}]*$"},
)
_DIM = _either(_text(*grammar.DIMS), {"type": "integer", "minimum": 0, "maximum": 999_999_999})
_RANK: Json = {"type": "integer", "minimum": 0, "maximum": grammar.MAX_RANK}
_RANKS = _either(_RANK, {**_list(_RANK, 2), "maxItems": 2})
_LENGTH = _either(_RANKS, _text(grammar.IDENTIFIER))

_OP_VALUES: dict[str, Json] = {
    "name": _told(
        "CamelCase: the C++ function, its structs and its header are called after it.",
        {**_text(grammar.OP_NAME), "maxLength": grammar.MAX_NAME},
    ),
    "doc": _told("What it computes, in a line.", _DOC | {}),
    "kernel": _told("The handwritten kernel, a struct of family/kernels.h.", _text(grammar.KERNEL)),
    "formulas": {
        "description": "What each output is, as an expression of inputs and attributes.",
        "type": "object",
        "minProperties": 1,
        "additionalProperties": _EXPRESSION,
    },
    "backends": _told("Where it runs.", {**_list(_words(vocabulary.BACKENDS), 1), "uniqueItems": True}),
    "inputs": {**_named("The inputs, in the order of the arguments.", "input"), "minProperties": 1},
    "outputs": {**_named("The outputs, in the order of the arguments.", "output"), "minProperties": 1},
    "rows": {
        **_named("The combinations of element types.", "row", grammar.LOWER_NAME),
        "minProperties": 1,
    },
    "cases": _told("The test cases.", _list(_reference("case"), 1)),
    "since_version": _told("The version within the domain, where it is not the file's.", _VERSION),
    "history": _told(
        "The versions that there were, from since_version on, and what each brought.",
        _list(
            {
                "type": "object",
                "properties": {
                    "version": _told("A version within the domain.", _VERSION),
                    "change": _told("What it brought, in a line.", _DOC | {}),
                },
                "required": list(vocabulary.REVISION.required),
                "additionalProperties": False,
            },
            1,
        ),
    ),
    "seams": _told(
        "Places where formulas choose between sides, and what they give there.",
        _list(
            {
                "type": "object",
                "properties": {
                    "at": _told("The inputs' elements there.", _EXPRESSIONS),
                    "gives": _told("The outputs' elements, or of a sum each term.", _EXPRESSIONS),
                },
                "required": list(vocabulary.SEAM.required),
                "additionalProperties": False,
            },
            1,
        ),
    ),
    "special_values": _told(
        "What comes of NaN, infinities, ties and empty rows where formulas do not show it.",
        _list(
            {
                "type": "object",
                "properties": {
                    "what": _told("What comes of which values, in a line.", _DOC | {}),
                    "test": _told("The test that holds it.", _DOC | {}),
                },
                "required": list(vocabulary.SPECIAL_VALUE.required),
                "additionalProperties": False,
            },
            1,
        ),
    ),
    "repeatable": _told(
        "Whether two calls give the same bits: always, as those of formulas do, where the context is "
        "deterministic, or never.",
        _either(
            _words(vocabulary.REPEATABLE),
            {
                "type": "object",
                "properties": {backend: _words(vocabulary.REPEATABLE) for backend in vocabulary.BACKENDS},
                "additionalProperties": False,
            },
        ),
    ),
    "operations": _told("How many operations of arithmetic a call makes.", _EXPRESSION),
    "gradient_of": _told("The operator whose gradient this is.", _NAME),
    "dims": _named("The symbols that shapes share.", "symbol"),
    "attributes": _named("The attributes, in the order of the arguments.", "attribute"),
}

_OP_VALUES |= {key: _or_part(_OP_VALUES[key]) for key in vocabulary.PARTS_OF_OP}

_FILE_VALUES: dict[str, Json] = {
    "schema_version": _told("The version of this format.", {"const": vocabulary.SCHEMA_VERSION}),
    "domain": _told("The operators' ONNX domain.", _text(grammar.DOMAIN)),
    "since_version": _told("The operators' version within the domain.", _VERSION),
    "include": _told(
        "Other files of operators or parts, by their paths from this one.",
        {**_list(_NAME, 1), "uniqueItems": True},
    ),
    "shared": _told("Parts that operators, also of other files, have in common.", {"type": "object"}),
    "ops": _told(
        "The operators, in the order in which they are documented.", _list(_reference("operator"), 1)
    ),
}

_TENSOR_VALUES: dict[str, Json] = {
    "type": _told(
        "A type parameter, such as T, that rows bind; or an element type.", _text(grammar.IDENTIFIER)
    ),
    "list": _told(
        "It is a list of tensors, and this is what its length is called.", _text(grammar.IDENTIFIER)
    ),
    "shape": _or_part(
        _told(
            'Its dims: N, "*D" in quotes for a list of them, C / group, ceil(N / 32), 3; or N if keepdims.',
            _list(_DIM),
        )
    ),
    "like": _told("The tensor whose shape it has.", _NAME),
    "shape_of": _told("The output whose dims it holds, as int64 on the host.", _NAME),
    "optional": _told("It may be absent; an absent output is not computed.", _FLAG),
    "gradient_of": _told("The tensor of the forward operator that it is the gradient of.", _NAME),
    "shape_only": _told("Only its shape is needed; its data are never read.", _FLAG),
    "may_be_on_host": _told("It is one number, on the host or on the device.", _FLAG),
    "outside": _told(
        "What a lookup makes of an integer that is no place: ignored, refused, refused unless ATTRIBUTE.",
        _NAME,
    ),
    "in_place_of": _told("The input to whose memory it may be written.", _NAME),
    "doc": _DOC,
}

_OUTPUT_VALUES = {
    **_TENSOR_VALUES,
    "gradient_of": _told(
        "The forward operator's input that it is the gradient of, or a list of those that share it.",
        _either(_NAME, {**_list(_NAME, 1), "uniqueItems": True}),
    ),
}

_SYMBOL_VALUES: dict[str, Json] = {
    "length": _told(
        "How many dims a list has: a number, [min, max], another list symbol or an axis.", _LENGTH
    ),
    "length_if": {
        "description": "How many dims a list has where this bool attribute is true: a number or [min, max].",
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": _RANKS,
    },
    "rule": _told(
        "What computes the dims: family::Function(D, K), broadcast(P, Q) or sum(P).", _text(grammar.RULE)
    ),
    "broadcast_to": _told("The list symbol that its dims broadcast to.", _NAME),
    "given_by": _told(
        f"The attribute that gives its dims; or {OUTPUTS}, those that the caller passes.", _NAME
    ),
    "multiple_of": _told("The int attribute that a single dim must be a multiple of.", _NAME),
    "split": _told(
        "The two dims that the dim is to formulas, the first as large as multiple_of.",
        {**_list(_text(grammar.IDENTIFIER), 2), "maxItems": 2},
    ),
    "doc": _DOC,
}

_ATTRIBUTE_VALUES: dict[str, Json] = {
    "type": _told("What its value is.", _words(vocabulary.ATTRIBUTE_KINDS)),
    "default": {"description": "Its value where none is given."},
    "optional": _told("It has no default, and its absence means something.", _FLAG),
    "min": _told("The least value of the number, or of each number of the list.", _NUMBER),
    "max": _told("The largest value of the number, or of each number of the list.", _NUMBER),
    "length": _told(
        "How many entries the list has: D or 2 * D, of the list symbol D.", _text(grammar.MULTIPLE)
    ),
    "axis_of": _told("The input that it is an axis of.", _NAME),
    "enum": _told("The C++ enum.", _words(vocabulary.RUNTIME_ENUMS)),
    "choices": _or_part(
        _told("The enumerators, all of them, in order.", {**_list(_NAME), "uniqueItems": True})
    ),
    "doc": _DOC,
}

_DEFAULTS: dict[AttributeKind, Json] = {
    AttributeKind.INT: _INTEGER,
    AttributeKind.FLOAT: _NUMBER,
    AttributeKind.INTS: _INTEGERS,
    AttributeKind.ENUM: _NAME,
    AttributeKind.BOOL: _FLAG,
    AttributeKind.FLOATS: _NUMBERS,
    AttributeKind.STRING: {"type": "string"},
}

_CASE_VALUES: dict[str, Json] = {
    "name": _told(
        "Unique within the operator; it names tests.",
        {**_text(grammar.LOWER_NAME), "maxLength": grammar.MAX_NAME},
    ),
    "layout": _told("How the tensors lie in memory.", _words(vocabulary.LAYOUTS)),
}

# A case gives a tensor its shape, a list of tensors their shapes, and an attribute its value.
_CASE_VALUE: Json = {
    "anyOf": [
        {"type": ["string", "number", "boolean"]},
        _NUMBERS,
        _list(_INTEGERS),
    ]
}
