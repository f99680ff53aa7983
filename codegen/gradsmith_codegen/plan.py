"""From the schema to what is written: shards, and each op with the indices and names that C++ needs.

The tables of the runtime (`gradsmith/schema.h`) refer to symbols, attributes and type parameters by index;
the indices are worked out here, so that a template only prints them.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from . import (
    formula_conditions,
    formula_cpp,
    formula_data,
    formula_kernels,
    formula_rows_cpp,
    model,
    operation_count,
)
from .formula_conditions import SpreadInput
from .formula_data import FormulaData, NamedFormulaData
from .formula_kernels import FunctorNames, KernelMacro
from .formula_rows_cpp import Functor
from .formula_splits import SplitDim, split_dims
from .formula_steps import Step, Steps, steps_of
from .kernel_operands import FamilyOperands
from .library import BUILTIN, Library
from .text import Text, cpp_comment

NamedShapes = tuple[tuple[str, tuple[int, ...]], ...]


def snake_case(name: str) -> str:
    """`BatchNormalizationGrad` -> `batch_normalization_grad`, `Conv2DGrad` -> `conv2_d_grad`. A single letter
    that begins the name belongs to its word: `PReluGrad` -> `prelu_grad`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?<!^[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def shard_of(name: str, shards: int) -> int:
    """The same for every run and machine, and independent of the other ops."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % shards


def stub_of(name: str) -> str:
    """The namespace, within the library's `generated`, of what binds the operator to its kernel."""
    return f"{snake_case(name)}_stub"


def type_parameter(name: str) -> str:
    """How C++ spells a type parameter. Nothing else that a schema names can end in an underscore, and nothing
    of the runtime that is not private to a class does."""
    return f"{name}_"


@dataclass(frozen=True)
class Place:
    """A line of the schema, told from the entry that holds it.

    Entry-relative, so that an edit of one entry leaves the text generated for the others as it is.
    """

    entry: str
    offset: int  # lines below the entry's first
    text: Text

    @cached_property
    def comment(self) -> str:
        return cpp_comment(self.text)

    @cached_property
    def stub(self) -> str:
        """The namespace of the operator whose entry it is."""
        return stub_of(self.entry)


@dataclass(frozen=True)
class RowPlan:
    """One combination of an op; it has a row of the dispatch table for each backend."""

    row: model.Row
    place: Place
    library: Library

    @property
    def name(self) -> str:
        return self.row.name

    @cached_property
    def cpp_types(self) -> list[str]:
        """A type of the runtime's is no name of a library beside it."""
        runtime = self.library.runtime
        names = [data_type.cpp_type for _, data_type in self.row.types]
        return [runtime + name if name[0].isupper() else name for name in names]

    @cached_property
    def enumerators(self) -> list[str]:
        return [f"DataType::{data_type.cpp_enumerator}" for _, data_type in self.row.types]

    @cached_property
    def sentence(self) -> str:
        """`half (T = MLFloat16)`, for messages."""
        bindings = ", ".join(f"{parameter} = {data_type.value}" for parameter, data_type in self.row.types)
        return f"{self.name} ({bindings})"


@dataclass(frozen=True)
class CountedArguments:
    """By whose number in a call a kernel tells how long its lists are."""

    role: str  # inputs, or outputs where no input is a list
    single: int  # how many are no lists
    lists: int


@dataclass(frozen=True)
class RowsPass:
    """A pass of rows over memory, which gives some of an operator's outputs or all."""

    op: model.Op
    first_functor: str
    step: Step
    place: int

    @property
    def mark(self) -> str:
        """What tells its names from those of the first pass."""
        return str(self.place + 1) if self.place else ""

    @property
    def name(self) -> str:
        """What its kernels are found by. Behind the first pass it is a name that no operator can have."""
        return f"{self.op.name}_{self.mark}" if self.place else self.op.name

    @property
    def functor(self) -> str:
        return f"{self.first_functor}{self.mark}"

    @cached_property
    def functor_parts(self) -> Functor:
        return formula_rows_cpp.functor(self.op, self.step.op, self.step.schedule, self.step.slots)

    @cached_property
    def is_of_math(self) -> bool:
        """Some functions of its functor may be approximated."""
        return any(formula_kernels.is_of_math(one.lines) for one in self.functor_parts.methods)

    @cached_property
    def kernels(self) -> list[KernelMacro]:
        """The macros that make its kernels."""
        functor = FunctorNames(self.functor, self.is_of_math)
        return formula_kernels.of_rows(self.op, self.step.op, self.step.schedule, functor)

    @property
    def operands(self) -> list[model.Tensor]:
        """In the pattern's order."""
        return self.step.schedule.operands


@dataclass(frozen=True)
class OpPlan:
    """An op with everything that its header, stub, tests and page say of it."""

    op: model.Op
    schema: model.Schema
    library: Library
    shard: int
    place: Place
    rows: tuple[RowPlan, ...]
    places: PlaceFinder | _OwnPlaces
    forward: model.Op | None  # the operator whose gradient this one is

    @property
    def name(self) -> str:
        return self.op.name

    @property
    def file(self) -> Text:
        """That of its entry."""
        return self.schema.files.at(self.op.line).name

    @property
    def line(self) -> int:
        """That of its entry, within the file."""
        return self.schema.files.line(self.op.line)

    @cached_property
    def snake(self) -> str:
        return snake_case(self.op.name)

    @cached_property
    def stub(self) -> str:
        return stub_of(self.name)

    @cached_property
    def page(self) -> str:
        """The name of its page, which is not that of the page that lists all. Case does not tell files apart
        everywhere."""
        return f"{self.name}_" if self.name.lower() == "readme" else self.name

    def repeatable_on(self, backend: model.Backend) -> model.Repeatable:
        return dict(self.op.repeatable).get(backend, model.Repeatable.POLICY)

    def scalar(self, attribute: model.Attribute) -> str:
        """The attribute as formulas are given it."""
        value = f"given.{attribute.name}{'.value_or(0)' if attribute.is_optional else ''}"
        is_real = attribute.kind is model.AttributeKind.FLOAT
        return value if is_real else f"static_cast<double>({value})"

    def given(self, name: str) -> str:
        """Whether an input or an attribute is there, as formulas are given it."""
        place = self.input_indices.get(name)
        if place is None:
            return f"given.{name}.has_value() ? 1.0 : 0.0"
        return f"internal::ArgumentAt(inputs, {place}) != nullptr ? 1.0 : 0.0"

    @property
    def since_version(self) -> int:
        return self.op.since_version or self.schema.since_version

    @cached_property
    def names(self) -> list[str]:
        """What the generated C++ takes from the schema as it is, and what may be a macro elsewhere."""
        tensors = [tensor.name for tensor in self.op.inputs + self.op.outputs]
        attributes = [attribute.name for attribute in self.op.attributes]
        return sorted({self.name, *tensors, *attributes, *map(type_parameter, self.type_parameters)})

    @cached_property
    def guard(self) -> str:
        return f"{self.library.guard}_OPS_{self.snake.upper()}_H_"

    @property
    def has_formulas(self) -> bool:
        return bool(self.op.formulas)

    @cached_property
    def operations(self) -> Text | None:
        """How many operations of arithmetic a call makes, as dims and attributes say it."""
        return operation_count.counted(self.op)

    @property
    def runs_on_cuda(self) -> bool:
        return model.Backend.CUDA in self.op.backends

    @property
    def functor(self) -> str:
        """The struct, within the library's `generated`, that holds the formulas."""
        return f"{self.name}Formula"

    @cached_property
    def steps(self) -> Steps | None:
        """How the formulas are computed where they name dims: by a map, or by passes of rows."""
        return steps_of(self.op) if self.op.formulas else None

    @cached_property
    def of_formulas(self) -> model.Op:
        """The operator as formulas see it where dims hang on an attribute."""
        return formula_conditions.unconditional(self.op)

    @property
    def condition(self) -> str:
        """In C++, with what attributes dims are there that hang on one; empty where none do."""
        found = self.op.condition
        if not found or not self.op.formulas:
            return ""
        enum = next(one.enum for one in self.op.attributes if one.name == found.attribute)
        given = f"given.{found.attribute}"
        return f"{given} == ::gradsmith::{enum}::{found.value}" if found.value else given

    def condition_value(self, condition: model.Condition) -> int:
        """The number of the value with which dims are there."""
        attribute = next(one for one in self.op.attributes if one.name == condition.attribute)
        return attribute.choices.index(condition.value) if condition.value else 1

    @property
    def spread_inputs(self) -> list[SpreadInput]:
        """The inputs that formulas read as if they had all dims."""
        return formula_conditions.spread_inputs(self.op, self.steps.dims) if self.steps else []

    @property
    def twofold_outputs(self) -> list[tuple[model.Tensor, int]]:
        """The outputs that are two to formulas, and their numbers."""
        return formula_conditions.twofold_outputs(self.op)

    @cached_property
    def splits(self) -> list[SplitDim]:
        """The arguments' dims that are two to the formulas."""
        return split_dims(self.op)

    @property
    def has_rows(self) -> bool:
        """The formulas are computed by the pattern `rows`."""
        return self.steps is not None and not self.steps.is_map

    @cached_property
    def passes(self) -> list[RowsPass]:
        """Those of rows."""
        if self.steps is None or self.steps.is_map:
            return []
        return [RowsPass(self.op, self.functor, one, place) for place, one in enumerate(self.steps.passes)]

    @property
    def has_map_sums(self) -> bool:
        return self.op.has_sums and not self.steps

    @property
    def _counts(self) -> list[tuple[str, ...]]:
        """Of dims, which formulas are given; the same in all passes."""
        return self.steps.passes[0].schedule.counts if self.steps else []

    @cached_property
    def functor_body(self) -> list[str]:
        """The statements of a map's functor."""
        return formula_cpp.functor_body(self.of_formulas, self._counts)

    @property
    def scalar_count(self) -> int:
        """How many numbers formulas are given: attributes, counts of dims, and what is there."""
        return len(self.op.scalars) + len(self._counts) + len(self.op.givens)

    @property
    def asks_for_inputs(self) -> bool:
        """Formulas ask whether inputs are there."""
        return not self.input_indices.keys().isdisjoint(self.op.givens)

    @property
    def asks_for_attributes(self) -> bool:
        return not self.attribute_indices.keys().isdisjoint(self.op.givens)

    @property
    def scalar_arguments(self) -> str:
        """What the generated function is given that makes the numbers for the formulas."""
        arguments = ["attributes", *(["dims"] if self.steps else [])]
        return ", ".join([*arguments, *(["inputs"] if self.asks_for_inputs else [])])

    @property
    def operands(self) -> list[model.Tensor]:
        """What a kernel is handed: all arguments of rows, what a map reads and writes."""
        if self.steps is None:
            return [*self.op.read_inputs, *self.op.outputs]
        of_map = self.steps.passes[0].schedule.operands
        return of_map if self.steps.is_map else [*self.op.inputs, *self.of_formulas.outputs]

    @property
    def input_count(self) -> int:
        """How many of the operands are inputs."""
        return len(self.op.inputs if self.has_rows else self.op.read_inputs)

    @property
    def masks(self) -> str:
        """In C++ the set of a map's inputs that are masks; empty where there are none."""
        bits = sum(1 << place for place, one in enumerate(self.operands) if one.is_mask)
        return bin(bits) if bits else ""

    @property
    def bits(self) -> str:
        """The same of a map's inputs of words, of which bits are read."""
        words = self.op.bits
        bits = sum(1 << place for place, one in enumerate(self.operands) if one in words)
        return bin(bits) if bits else ""

    @staticmethod
    def operand_ref(inputs: str, tensor: model.Tensor, place: int, is_const: bool = False) -> str:
        """An input as a map is given it: one that is absent may lack its place."""
        if tensor.optional:
            return f"internal::OperandOrAbsent(internal::ArgumentAt({inputs}, {place}))"
        return f"{inputs}[{place}]" if is_const else f"internal::Unconst({inputs}[{place}])"

    @property
    def optional_inputs(self) -> str:
        """The same of a map's inputs that may be absent."""
        inputs = self.operands[: self.input_count]
        bits = sum(1 << place for place, one in enumerate(inputs) if one.optional)
        return bin(bits) if bits else ""

    @property
    def lead(self) -> int:
        """The operand whose dims and type stand for the call's."""
        if self.steps is not None and not self.steps.is_map:
            return self.steps.dims.lead_operand
        words = self.op.bits
        numbers = [
            one
            for one in self.operands
            if not one.is_mask and one not in words and not (one.optional and one in self.op.inputs)
        ]
        return self.operands.index(numbers[0])

    @cached_property
    def oracle(self) -> FormulaData:
        """What the tests' oracle is made of where there are formulas."""
        return formula_data.of(self.op, self.forward)

    @cached_property
    def named_oracle(self) -> NamedFormulaData:
        """The same where formulas name dims."""
        names = self.steps.dims.names if self.steps else ()
        return formula_data.named(self.op, self.forward, names)

    @cached_property
    def family(self) -> str:
        """Of the kernel; empty where there are formulas."""
        return self.op.kernel.split("::")[0]

    @property
    def test_family(self) -> str:
        """The header, below tests/reference, that has the oracle."""
        if self.has_formulas:
            return "named_formula" if self.steps else "formula"
        return self.family

    @cached_property
    def kernel_struct(self) -> str:
        return self.op.kernel.partition("::")[2]

    @property
    def kernel_namespace(self) -> str:
        return self.library.namespace_of(self.op.kernel)

    @cached_property
    def kernel_place(self) -> Place:
        return self.places[self.op.at("kernel").line]

    @cached_property
    def type_parameters(self) -> tuple[str, ...]:
        return self.op.type_parameters

    @cached_property
    def template_parameters(self) -> list[str]:
        return [f"typename {type_parameter(name)}" for name in self.type_parameters]

    @cached_property
    def template_arguments(self) -> list[str]:
        return list(map(type_parameter, self.type_parameters))

    @cached_property
    def backends(self) -> str:
        """`cpu, cuda`."""
        return ", ".join(backend.value for backend in self.op.backends)

    @cached_property
    def required_inputs(self) -> list[model.Tensor]:
        return [tensor for tensor in self.op.inputs if not tensor.optional]

    @cached_property
    def kernel_inputs(self) -> list[model.Tensor]:
        """Those that the kernel is given: a shape that an input holds is that of an output."""
        return [tensor for tensor in self.op.inputs if not tensor.shape_of]

    @cached_property
    def rules(self) -> list[model.Symbol]:
        """Those that a function computes."""
        return [symbol for symbol in self.op.symbols if symbol.rule and not symbol.rule.is_sum]

    @cached_property
    def counted_arguments(self) -> CountedArguments:
        of_inputs = any(tensor.list for tensor in self.op.inputs)
        tensors = self.op.inputs if of_inputs else self.op.outputs
        lists = sum(bool(tensor.list) for tensor in tensors)
        return CountedArguments("inputs" if of_inputs else "outputs", len(tensors) - lists, lists)

    @staticmethod
    def position(tensors: Sequence[model.Tensor], index: int) -> str:
        """Where one of the tensors stands among a call's, or the first of a list: `2 + 3 * length`."""
        lists = sum(bool(tensor.list) for tensor in tensors[:index])
        terms = [str(index - lists)] if index > lists or not lists else []
        return " + ".join([*terms, *([f"{lists} * length" if lists > 1 else "length"] if lists else [])])

    def argument(self, role: str, tensors: Sequence[model.Tensor], index: int) -> str:
        """What a kernel is given for one of the tensors."""
        position = self.position(tensors, index)
        if tensors[index].list:
            return f"{role}.subspan({position}, length)"
        return f"internal::ArgumentAt({role}, {position})"

    @cached_property
    def gathered_dims(self) -> list[str]:
        """The statements that add what the typed InferShapes of an operator with lists is given."""
        return [_addition(tensor) for tensor in self.op.inputs]

    def rank_of(self, name: str) -> str:
        """Of a kernel's input; of a list that of all its tensors."""
        is_list = self.op.inputs[self.input_indices[name]].list
        return ".front().rank()" if is_list else "->rank()"

    def shapes_of(self, case: model.Case) -> tuple[NamedShapes, NamedShapes]:
        """Those of the inputs and of the outputs, of a list's tensors one after another."""
        inputs = self.op.inputs
        lists = sum(bool(tensor.list) for tensor in (*inputs, *self.op.outputs))
        length = (len(case.all_shapes) - len(inputs) - len(self.op.outputs)) // lists + 1 if lists else 0
        count = sum(length if tensor.list else 1 for tensor in inputs)
        return case.all_shapes[:count], case.all_shapes[count:]

    @cached_property
    def symbol_indices(self) -> dict[str, int]:
        return {symbol.name: i for i, symbol in enumerate(self.op.symbols)}

    @cached_property
    def attribute_indices(self) -> dict[str, int]:
        return {attribute.name: i for i, attribute in enumerate(self.op.attributes)}

    @cached_property
    def defaults(self) -> list[model.Attribute]:
        """The attributes that have one."""
        return [attribute for attribute in self.op.attributes if not attribute.is_optional]

    @cached_property
    def axes(self) -> list[model.Attribute]:
        """The attributes that are axes, which a kernel is given counted from the first dim."""
        return [attribute for attribute in self.op.attributes if attribute.axis_of]

    @cached_property
    def input_indices(self) -> dict[str, int]:
        return {tensor.name: i for i, tensor in enumerate(self.op.inputs)}

    @cached_property
    def attributes_identity(self) -> object:
        """Equal for ops whose attributes are one list of the schema, aliased, and mean the same in each."""
        axes = tuple(self.input_indices.get(attribute.axis_of, 0) for attribute in self.op.attributes)
        return (id(self.op.attributes), axes, tuple(symbol.name for symbol in self.op.symbols))

    @cached_property
    def rows_identity(self) -> object:
        """Equal for ops whose rows are one list of the schema, aliased, and mean the same in each."""
        return (id(self.op.rows), self.type_parameters)

    @cached_property
    def shapes(self) -> dict[str, tuple[model.Dim, ...]]:
        """The different shapes that the tensors have, by their text."""
        return {tensor.shape_text: tensor.shape for tensor in self.op.inputs + self.op.outputs}

    @cached_property
    def shape_indices(self) -> dict[str, int]:
        return {text: i for i, text in enumerate(self.shapes)}

    @property
    def is_of_math(self) -> bool:
        """Some functions of a map's functor may be approximated."""
        return formula_kernels.is_of_math(self.functor_body)

    @property
    def has_fast_math(self) -> bool:
        """Some functions of its kernels may be approximated."""
        return any(one.is_of_math for one in self.passes) if self.has_rows else self.is_of_math

    @property
    def map_kernels(self) -> list[KernelMacro]:
        """The macros that make the kernels of a map."""
        functor = FunctorNames(self.functor, self.is_of_math)
        return formula_kernels.of_map(self.op, self.has_map_sums, functor)

    def attributes_of(self, case: model.Case) -> list[tuple[model.Attribute, model.AttributeValue]]:
        """What the case sets, in the order of the attributes struct."""
        given = dict(case.attributes)
        return [(a, given[a.name]) for a in self.op.attributes if a.name in given] if given else []

    def rule_call(self, rule: model.ShapeRule) -> tuple[str, list[str]]:
        """The C++ function and what it is given."""
        symbols = [f"symbols[{self.symbol_indices[name]}]" for name in rule.arguments]
        first = self.op.symbols[self.symbol_indices[rule.arguments[0]]] if rule.arguments else None
        if rule.is_broadcast and first and first.of_each:
            places = [self.symbol_indices[first.name], len(self.op.symbols)]
            return "internal::BroadcastDimsOfEach", ["symbols", *map(str, places)]
        if rule.is_broadcast:
            return "internal::BroadcastDims", [f"{{{', '.join(symbols)}}}"]
        namespace, name = self.library.namespace_of(rule.function), rule.function.partition("::")[2]
        return f"::{namespace}::{name}", ["KernelAttributes(attributes)", *symbols]

    @cached_property
    def broadcasts(self) -> bool:
        """A shape is what others broadcast to."""
        return any(symbol.rule and symbol.rule.is_broadcast for symbol in self.op.symbols)


def _addition(tensor: model.Tensor) -> str:
    if tensor.optional:
        return f"in.AddAbsent({'true' if tensor.list else 'false'});"
    given = f"inputs.{tensor.name}"
    return f"in.Add({f'internal::HoldingShape({given})' if tensor.shape_of else given});"


class PlaceFinder(dict[int, Place]):
    """Tells which op's entry a line lies in; aliases point into entries other than their user's."""

    def __init__(self, schema: model.Schema) -> None:
        super().__init__()
        self._files = schema.files
        ops = schema.all_ops or schema.ops
        self._lines = [op.line for op in ops]
        self._names = [op.name for op in ops]

    def __missing__(self, line: int) -> Place:
        index = max(0, bisect_right(self._lines, line) - 1)
        entry, offset = self._names[index], line - self._lines[index]
        text = Text(self._files.at(line).name, f": {entry}, line {offset + 1} of the entry")
        self[line] = place = Place(entry, offset, text)
        return place

    def of(self, op: model.Op) -> PlaceFinder | _OwnPlaces:
        """The places of what an op has."""
        return self if self._files.is_of_entries else _OwnPlaces(self, op)

    def is_in_entry(self, line: int, op: model.Op) -> bool:
        """The line is of an entry of the op's file, and not of parts that no entry has or of another file."""
        index = bisect_right(self._lines, line) - 1
        file = self._files.at(op.line)
        return index >= 0 and self._files.at(line) is file and self._files.at(self._lines[index]) is file


class _OwnPlaces:
    """Places of an op that has parts which are in no entry of its file: these have the place of its own."""

    def __init__(self, places: PlaceFinder, op: model.Op) -> None:
        self._places = places
        self._op = op

    def __getitem__(self, line: int) -> Place:
        return self._places[line if self._places.is_in_entry(line, self._op) else self._op.line]


@dataclass(frozen=True)
class Plan:
    schema: model.Schema
    library: Library
    shards: int
    ops: tuple[OpPlan, ...]
    families: tuple[FamilyOperands, ...] = ()  # of handwritten kernels

    @staticmethod
    def entries(ops: list[OpPlan]) -> list[str]:
        """The namespaces of the ops in whose entries the schema has rows of these ops."""
        return sorted({row.place.stub for op in ops for row in op.rows})

    @cached_property
    def other_entries(self) -> list[tuple[str, Text, int]]:
        """Of operators that were not selected, in whose entries rows stand: namespace, file and line."""
        selected = {op.name for op in self.ops}
        stubs = {row.place.stub for op in self.ops for row in op.rows if row.place.entry not in selected}
        files = self.schema.files
        return [
            (stub_of(op.name), files.at(op.line).name, files.line(op.line))
            for op in self.schema.all_ops
            if stub_of(op.name) in stubs
        ]

    @staticmethod
    def names(ops: list[OpPlan]) -> list[str]:
        return sorted({name for op in ops for name in op.names})

    def page_of(self, name: str) -> str:
        return self._pages[name]

    @cached_property
    def _pages(self) -> dict[str, str]:
        return {op.name: op.page for op in self.ops}

    def gradients_of(self, op: OpPlan) -> list[OpPlan]:
        return self._gradients.get(op.name, [])

    @cached_property
    def _gradients(self) -> dict[str, list[OpPlan]]:
        """By the name of the forward op."""
        gradients: dict[str, list[OpPlan]] = {}
        for op in self.ops:
            gradients.setdefault(op.op.gradient_of, []).append(op)
        return gradients

    @property
    def is_selection(self) -> bool:
        return self.library.is_selection

    def shard(self, index: int) -> list[OpPlan]:
        return [op for op in self.ops if op.shard == index]


def make_plan(
    schema: model.Schema,
    shards: int,
    library: Library = BUILTIN,
    families: tuple[FamilyOperands, ...] = (),
) -> Plan:
    places = PlaceFinder(schema)

    # Aliased rows are one object, and are planned once, but where each of their ops says another place.
    row_plans: dict[object, tuple[RowPlan, ...]] = {}

    def rows_of(op: model.Op) -> tuple[RowPlan, ...]:
        key = id(op.rows) if schema.files.is_of_entries else op.name
        if key not in row_plans:
            found = places.of(op)
            row_plans[key] = tuple([RowPlan(row, found[row.origin.line], library) for row in op.rows])
        return row_plans[key]

    by_name = {op.name: op for op in schema.ops}
    ops = tuple(
        OpPlan(
            op=op,
            schema=schema,
            library=library,
            shard=shard_of(op.name, shards),
            place=places[op.line],
            rows=rows_of(op),
            places=places.of(op),
            forward=by_name.get(op.gradient_of),
        )
        for op in schema.ops
    )
    return Plan(schema, library, shards, ops, families)
