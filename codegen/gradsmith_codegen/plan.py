"""From the schema to what is written: shards, and each op with the indices and names that C++ needs.

The tables of the runtime (`gradsmith/schema.h`) refer to symbols, attributes and type parameters by index;
the indices are worked out here, so that a template only prints them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

from . import model, operation_count
from .cpp_names import snake_case, stub_of, type_parameter
from .formula_plan import FormulaPlan
from .kernel_operands import FamilyOperands
from .library import BUILTIN, Library
from .places import OwnPlaces, Place, PlaceFinder
from .rule_cpp import FamilyRules
from .shapes import ShapeRule
from .text import Text


def shard_of(name: str, shards: int) -> int:
    """The same for every run and machine, and independent of the other ops."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % shards


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
class OpPlan(FormulaPlan):
    """An op with everything that its header, stub, tests and page say of it."""

    schema: model.Schema
    library: Library
    shard: int
    place: Place
    rows: tuple[RowPlan, ...]
    places: PlaceFinder | OwnPlaces

    @property
    def name(self) -> str:
        return self.op.name

    @property
    def file(self) -> Text:
        """The file of its entry."""
        return self.schema.files.at(self.op.line).name

    @property
    def line(self) -> int:
        """The line of its entry, within the file."""
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
        return self.op.repeatable_on(backend)

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

    @cached_property
    def operations(self) -> Text | None:
        """How many operations of arithmetic a call makes, as dims and attributes say it."""
        return operation_count.counted(self.op)

    @property
    def runs_on_cuda(self) -> bool:
        return model.Backend.CUDA in self.op.backends

    @cached_property
    def family(self) -> str:
        """The kernel's family; empty where there are formulas."""
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
    def rules(self) -> list[model.Symbol]:
        """The symbols that a function computes."""
        return [symbol for symbol in self.op.symbols if symbol.rule and not symbol.rule.is_sum]

    @cached_property
    def attributes_identity(self) -> object:
        """Equal for ops whose attributes are one list of the schema, aliased, and mean the same in each."""
        axes = tuple(self.input_indices.get(attribute.axis_of, 0) for attribute in self.op.attributes)
        return (id(self.op.attributes), axes, tuple(symbol.name for symbol in self.op.symbols))

    @cached_property
    def rows_identity(self) -> object:
        """Equal for ops whose rows are one list of the schema, aliased, and mean the same in each."""
        return (id(self.op.rows), self.type_parameters)

    def rule_call(self, rule: ShapeRule) -> tuple[str, list[str]]:
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


@dataclass(frozen=True)
class Plan:
    schema: model.Schema
    library: Library
    shards: int
    ops: tuple[OpPlan, ...]
    families: tuple[FamilyOperands, ...] = ()  # of handwritten kernels
    rules: tuple[FamilyRules, ...] = ()  # of the same families

    @staticmethod
    def entries(ops: list[OpPlan]) -> list[str]:
        """The namespaces of the ops in whose entries the schema has rows of these ops."""
        return sorted({row.place.stub for op in ops for row in op.rows})

    @cached_property
    def other_entries(self) -> list[tuple[str, Text, int]]:
        """The operators that were not selected, in whose entries rows stand: namespace, file and line."""
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
        """The gradients of each forward op, by its name."""
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
    rules: tuple[FamilyRules, ...] = (),
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
    return Plan(schema, library, shards, ops, families, rules)
