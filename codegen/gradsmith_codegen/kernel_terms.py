"""What a kernel takes: the fields of its struct, and what the struct says of them in the terms of `ops.yaml`,
in the constants kShapes, kTypes, kLimits and kGradientOf. docs/schema.md explains their words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from . import grammar
from .data_types import TYPE_ALIASES, DataType
from .model import Backend, LengthRule
from .rule_formula import RuleFormula
from .shapes import Shape, ShapeRule

ANY = "any"  # of kShapes and kTypes: the kernel compares its arguments itself
CONSTANTS = ("kShapes", "kTypes", "kLimits", "kGradientOf")
MEMBERS = ("Attributes", "Inputs", "Outputs")

_END = r"(?:, |\Z)"
_SHAPE = re.compile(rf"(\w+) \[([^\[\]]*)\]{_END}")
_COMPUTED = re.compile(rf"(\w+) = ([\w:]+\([^()]*\)){_END}")
_IN_PLACE = re.compile(rf"(\w+) in_place_of (\w+){_END}")
_TYPE = re.compile(rf"(\w+) (\w+){_END}")
_CHOICE = re.compile(rf"(\w+) = (\w+(?: \| \w+)*)(?: on (\w+))?{_END}")
_NUMBER = r"-?(?:inf|\d+(?:\.\d+)?(?:[eE][-+]?\d{1,2})?)"
_LIMIT = re.compile(
    rf"(\w+)(?: length (?:\[(\d), (\d)\]|((?:[1-9] \* )?[A-Za-z]\w*)))?(?: multiple_of (\w+))?"
    rf"(?: axis_of (\w+))?(?: broadcast_to (\w+))?(?: (shape_only|may_be_on_host))?"
    rf"(?: min ({_NUMBER}))?(?: max ({_NUMBER}))?{_END}"
)
_VARIABLE = re.compile(r"T[0-9]*\Z")
_GRADIENT = re.compile(rf"(\w+) of (\w+(?: and \w+)*){_END}")

TYPES = {data_type.value: data_type for data_type in DataType} | TYPE_ALIASES


class Unread(Exception):
    """The arguments are what begins with the first place that is in another form, and which forms there
    are."""


@dataclass(frozen=True, slots=True)
class Shapes:
    """`X [N, C, *D], Y [N, C, *O], O = conv::OutputSpatial(D, K), Y in_place_of X`."""

    text: str
    tensors: Mapping[str, Shape]  # of inputs and outputs, by their names
    rules: Mapping[str, ShapeRule]  # by the names of symbols
    in_place: Mapping[str, str]  # outputs that may be written in place of an input

    @property
    def symbols(self) -> dict[str, bool]:
        """Whether each is a list."""
        return {dim.symbol: dim.is_list for shape in self.tensors.values() for dim in shape if dim.symbol}

    @property
    def divisors(self) -> set[str]:
        return {dim.divisor for shape in self.tensors.values() for dim in shape if dim.divisor}


@dataclass(frozen=True, slots=True)
class Types:
    """`X T, scale T1, index float, T = float | double, T1 = float on cuda`."""

    text: str
    tensors: Mapping[str, str]  # the variable of each, or the element type that it always has
    choices: Mapping[str, Mapping[Backend, frozenset[DataType]]]  # of those variables that not all types suit

    def suits(self, variable: str, data_type: DataType, backend: Backend) -> bool:
        fixed = TYPES.get(variable)
        known = self.choices.get(variable, {}).get(backend)
        if fixed:
            return data_type is fixed
        return data_type.is_floating if known is None else data_type in known


@dataclass(frozen=True, slots=True)
class Limit:
    """What a symbol or an attribute must keep."""

    text: str
    lengths: tuple[int, int] | None = None
    length: LengthRule | None = None
    multiple_of: str = ""
    axis_of: str = ""
    broadcast_to: str = ""
    of_input: str = ""  # what is said of an input: shape_only, may_be_on_host
    minimum: float | None = None
    maximum: float | None = None

    @property
    def shape_only(self) -> bool:
        """The kernel never reads the input's data."""
        return self.of_input == "shape_only"

    @property
    def may_be_on_host(self) -> bool:
        """The kernel reads the input wherever it lies."""
        return self.of_input == "may_be_on_host"


@dataclass(frozen=True, slots=True)
class Limits:
    """`D length [1, 3], K length D, M multiple_of group, pads length 2 * D min 0, momentum min 0 max 1`."""

    of: Mapping[str, Limit] = field(default_factory=dict)  # by the names of symbols and attributes


@dataclass(frozen=True, slots=True)
class Gradients:
    """`Conv, dY of Y, dX of X`: the forward operator's kernel, and which gradient each tensor is; one may be
    that of several, `dX of X and skip`."""

    text: str
    forward: str
    tensors: Mapping[str, tuple[str, ...]]


NO_LIMITS = Limits()

Fields = Mapping[str, str]  # C++ types by name

# The C++ types of attributes, by what the schema calls them: first those that hold numbers, then all of them.
NUMBER_TYPES = {"int": "std::int64_t", "float": "double", "ints": "IntList", "floats": "FloatList"}
CPP_TYPES = {**NUMBER_TYPES, "bool": "bool", "string": "std::string"}
OPTIONAL = "optional "  # begins the type of an attribute that may be absent
RUNS_ANYWHERE = "Run"  # the function of a kernel that asks the context for its backend
FOREIGN = "C++ "  # begins a type that no attribute has, be it called by a word of the schema, such as int


@dataclass(frozen=True, slots=True)
class Kernel:
    """What an operator may bind."""

    attributes: Fields | None  # types as the schema calls them: int, float, ints, AutoPad; others FOREIGN
    inputs: Mapping[str, bool] | None  # whether each must be there
    outputs: Mapping[str, bool] | None
    runs: frozenset[str]  # RunCpu, RunCuda, or one for all backends
    shapes: Shapes | None = None  # None where the kernel takes any
    types: Types | None = None  # likewise
    limits: Limits = NO_LIMITS
    gradients: Gradients | None = None  # None where it computes none
    says: tuple[tuple[str, str], ...] = ()  # the texts of the constants, by their names
    faults: tuple[str, ...] = ()  # what is wrong with what the header says of it
    lists: frozenset[str] = frozenset()  # the inputs and outputs that are lists of tensors

    @property
    def runs_anywhere(self) -> bool:
        return RUNS_ANYWHERE in self.runs

    @property
    def tensors(self) -> dict[str, bool]:
        return {**(self.inputs or {}), **(self.outputs or {})}


@dataclass(frozen=True, slots=True)
class Rule:
    """A shape rule: `Result<Dims> OutputSpatial(const Attributes& attributes, const Dims& D, const Dims& K)`,
    and the text `kOutputSpatial` that says what it computes."""

    attributes: Fields | None  # that it takes
    attributes_type: str  # the struct of these
    symbols: tuple[str, ...]  # the names of the lists of dims that it takes; empty of one without a name
    text: str = ""  # what it computes, where the header says it
    formula: RuleFormula | None = None  # of a text that reads
    fault: str = ""  # what is wrong with its text

    @property
    def arguments(self) -> int:
        """How many lists of dims."""
        return len(self.symbols)


def read_shapes(text: str) -> Shapes:
    tensors: dict[str, Shape] = {}
    rules: dict[str, ShapeRule] = {}
    in_place: dict[str, str] = {}
    form = "expected 'X [N, *D]', 'O = family::Rule(D)' or 'Y in_place_of X'"
    for start, found in _items(text, form, _SHAPE, _COMPUTED, _IN_PLACE):
        shape = _shape(found[2]) if found.re is _SHAPE else None
        rule = grammar.shape_rule(found[2]) if found.re is _COMPUTED else None
        if shape is not None and found[1] not in tensors:
            tensors[found[1]] = shape
        elif rule and found[1] not in rules:
            rules[found[1]] = rule
        elif found.re is _IN_PLACE and found[1] not in in_place:
            in_place[found[1]] = found[2]
        else:
            raise Unread(text[start:], form)
    return Shapes(text, tensors, rules, in_place)


def _shape(text: str) -> Shape | None:
    return grammar.shape(tuple(entry.strip() for entry in text.split(","))) if text else Shape()


def read_types(text: str) -> Types:
    tensors: dict[str, str] = {}
    choices: dict[str, dict[Backend, frozenset[DataType]]] = {}
    form = "expected 'X T', 'X float' or 'T = float | half'"
    for start, found in _items(text, form, _CHOICE, _TYPE):
        if found.re is _TYPE and found[1] not in tensors and (found[2] in TYPES or _VARIABLE.match(found[2])):
            tensors[found[1]] = found[2]
            continue
        words = found[2].split(" | ") if found.re is _CHOICE else []
        on = [backend for backend in Backend if found.re is _CHOICE and found[3] in (None, backend.value)]
        known = choices.setdefault(found[1], {})
        if not on or not words or not TYPES.keys() >= set(words) or not known.keys().isdisjoint(on):
            raise Unread(text[start:], form)
        known.update(dict.fromkeys(on, frozenset([TYPES[word] for word in words])))
    return Types(text, tensors, choices)


def read_limits(text: str) -> Limits:
    limits: dict[str, Limit] = {}
    form = "expected 'D length [1, 3]', 'M multiple_of group' or 'pads length 2 * D min 0 max 1e-5'"
    for start, found in _items(text, form, _LIMIT):
        lengths = (int(found[2]), int(found[3])) if found[2] else None
        length = grammar.length_rule(found[4]) if found[4] else None
        minimum, maximum = [float(number) if number else None for number in found.group(9, 10)]
        text_of_limit = found[0].removesuffix(", ")
        multiple_of, axis_of, broadcast_to, of_input = [word or "" for word in found.group(5, 6, 7, 8)]
        limit = Limit(
            text_of_limit, lengths, length, multiple_of, axis_of, broadcast_to, of_input, minimum, maximum
        )  # fmt: skip
        if limit.text == found[1] or found[1] in limits:
            raise Unread(text[start:], form)
        limits[found[1]] = limit
    return Limits(limits)


def read_gradients(text: str) -> Gradients:
    form = "expected the forward operator's kernel, then 'dX of X'"
    forward, comma, rest = text.partition(", ")
    if not comma or not grammar.is_identifier(forward):
        raise Unread(text, form)
    tensors: dict[str, tuple[str, ...]] = {}
    for start, found in _items(rest, form, _GRADIENT):
        originals = tuple(found[2].split(" and "))
        if found[1] in tensors or len(set(originals)) < len(originals):
            raise Unread(rest[start:], form)
        tensors[found[1]] = originals
    return Gradients(text, forward, tensors)


def _items(text: str, form: str, *patterns: re.Pattern[str]) -> Iterator[tuple[int, re.Match[str]]]:
    """Where each item begins, and the first pattern that it has."""
    start = 0
    while start < len(text) or not text:
        found = next((match for pattern in patterns if (match := pattern.match(text, start))), None)
        if not found:
            raise Unread(text[start:], form)
        yield start, found
        start = found.end()
