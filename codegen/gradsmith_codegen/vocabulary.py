"""The keys of `ops.yaml`, mapping by mapping. docs/schema.md explains each; a test keeps the two in step."""

from __future__ import annotations

from collections.abc import Mapping

from .data_types import TYPE_ALIASES, DataType
from .model import AttributeKind, Backend, Layout, Repeatable

SCHEMA_VERSION = 1
NO_FORWARD = "none"  # as `gradient_of` of an operator: no operator's name


class Keys:
    """What a mapping may hold. Both in the order in which one would write them."""

    __slots__ = ("_known", "_needed", "all", "optional", "required")

    def __init__(self, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> None:
        self.required = required
        self.optional = optional
        self.all = required + optional
        self._known = frozenset(self.all)
        self._needed = frozenset(required)

    def __contains__(self, key: object) -> bool:
        return key in self._known

    def fit(self, given: Mapping[str, object]) -> bool:
        """None is unknown and none that must be there is missing."""
        return self._known.issuperset(given) and given.keys() >= self._needed


SCHEMA = Keys(("schema_version", "domain", "since_version", "ops"), ("include", "shared"))
SCHEMA_OF_OTHERS = Keys(("schema_version", "domain", "since_version", "include"), ("ops", "shared"))
SHARED_PARTS = Keys(("schema_version", "shared"), ("domain", "since_version", "include", "ops"))
_OP_BEGIN, _OP_END = ("name", "doc"), ("backends", "inputs", "outputs", "rows", "cases")
_OF_SOME_OPS = (
    *("since_version", "history", "repeatable", "special_values", "operations"),
    *("gradient_of", "dims", "attributes", "seams"),
)
OP = Keys((*_OP_BEGIN, "kernel", *_OP_END), ("formulas", *_OF_SOME_OPS))
OP_WITH_FORMULAS = Keys((*_OP_BEGIN, "formulas", *_OP_END), ("kernel", *_OF_SOME_OPS))
PARTS_OF_OP = ("formulas", "backends", "inputs", "outputs", "rows", "cases", "dims", "attributes", "seams")
_TENSOR = ("list", "shape", "like", "optional", "gradient_of", "doc")
INPUT = Keys(("type",), (*_TENSOR, "shape_only", "shape_of", "may_be_on_host", "outside"))
OUTPUT = Keys(("type",), (*_TENSOR, "in_place_of"))
SYMBOL = Keys((), ("length", "length_if", "rule", "broadcast_to", "given_by", "multiple_of", "split", "doc"))
ATTRIBUTE_OF_SOME_KINDS = ("optional", "min", "max", "length", "axis_of", "enum", "choices")
ATTRIBUTE = Keys(("type",), ("default", *ATTRIBUTE_OF_SOME_KINDS, "doc"))  # and a default, or `optional`
CASE = Keys(("name",), ("layout",))  # besides the names of tensors and attributes

REVISION = Keys(("version", "change"))
SPECIAL_VALUE = Keys(("what", "test"))
SEAM = Keys(("at", "gives"))

# The keys that only some types of attributes have.
ATTRIBUTE_KIND_KEYS = {
    AttributeKind.INT: Keys((), ("optional", "min", "max", "axis_of")),
    AttributeKind.FLOAT: Keys((), ("optional", "min", "max")),
    AttributeKind.INTS: Keys((), ("optional", "min", "max", "length")),
    AttributeKind.ENUM: Keys(("enum", "choices")),
    AttributeKind.BOOL: Keys((), ("optional",)),
    AttributeKind.FLOATS: Keys((), ("optional", "min", "max", "length")),
    AttributeKind.STRING: Keys((), ("optional",)),
}

ATTRIBUTE_KINDS = {kind.value: kind for kind in AttributeKind}
BACKENDS = {backend.value: backend for backend in Backend}
REPEATABLE = {word.value: word for word in Repeatable}
LAYOUTS = {layout.value: layout for layout in Layout}
TYPES = {data_type.value: data_type for data_type in DataType} | TYPE_ALIASES

# The enumerators of the runtime's enums (gradsmith/attributes.h), in order.
RUNTIME_ENUMS = {
    "AutoPad": ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"),
    "LossReduction": ("mean", "sum", "none"),
}
