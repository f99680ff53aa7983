"""An operator's formulas as C++ needs them: the functor, its operands and numbers, and the tests' oracle."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from . import (
    formula_conditions,
    formula_cpp,
    formula_data,
    formula_kernels,
    formula_lookups,
    formula_rows_cpp,
    model,
)
from .argument_plan import ArgumentPlan
from .formula_conditions import SpreadInput
from .formula_data import FormulaData, NamedFormulaData, SeamData
from .formula_kernels import FunctorNames, KernelMacro
from .formula_rows_cpp import Functor
from .formula_splits import SplitDim, split_dims
from .formula_steps import Step, Steps, steps_of
from .shapes import Condition


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
        """Its tensors in the pattern's order."""
        return self.step.schedule.operands


@dataclass(frozen=True)
class FormulaPlan(ArgumentPlan):
    """What is planned of the formulas of an op, where it has some."""

    forward: model.Op | None  # the operator whose gradient this one is

    @property
    def has_formulas(self) -> bool:
        return bool(self.op.formulas)

    @property
    def functor(self) -> str:
        """The struct, within the library's `generated`, that holds the formulas."""
        return f"{self.op.name}Formula"

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

    def condition_value(self, condition: Condition) -> int:
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
        """The passes of rows over memory; none where the formulas are a map."""
        if self.steps is None or self.steps.is_map:
            return []
        return [RowsPass(self.op, self.functor, one, place) for place, one in enumerate(self.steps.passes)]

    @cached_property
    def refused_inputs(self) -> list[list[str]]:
        """Of each input of integers of which those outside of a table are refused, what the runtime is given
        to check them on the CPU."""
        return [self._checked(one) for one in self.op.inputs if self.has_rows and one.refuses_outside]

    def _checked(self, integers: model.Tensor) -> list[str]:
        inputs = "split.inputs()" if self.splits else "inputs"
        argument = f"internal::ArgumentAt({inputs}, {self.input_indices[integers.name]})"
        return [f'"{integers.name}"', argument, self._places(integers), *self._never_refused(integers)]

    def _places(self, integers: model.Tensor) -> str:
        """The dim of the table, and how many places a call has along it, in C++."""
        dim = formula_lookups.dim_of(self.op, integers)
        named = self.steps.dims.set_of([dim]) if self.steps else ""
        return f'{{"{dim}", dims.Count({named})}}'

    @staticmethod
    def _never_refused(integers: model.Tensor) -> list[str]:
        name = integers.never_refused
        return [f'{{"{name}", static_cast<const Given*>(attributes)->{name}}}'] if name else []

    @property
    def has_map_sums(self) -> bool:
        return self.op.has_sums and not self.steps

    @property
    def _counts(self) -> list[tuple[str, ...]]:
        """The counts of dims that formulas are given; the same in all passes."""
        return self.steps.passes[0].schedule.counts if self.steps else []

    @cached_property
    def functor_body(self) -> list[str]:
        """The statements of a map's functor."""
        return formula_cpp.functor_body(self.of_formulas, self._counts)

    @property
    def is_of_math(self) -> bool:
        """Some functions of a map's functor may be approximated."""
        return formula_kernels.is_of_math(self.functor_body)

    @property
    def has_fast_math(self) -> bool:
        """Some functions of its kernels may be approximated."""
        return any(one.is_of_math for one in self.passes) if self.has_rows else self.is_of_math

    @property
    def map_macro(self) -> str:
        """The macro that makes the kernels of a map for all types."""
        return formula_kernels.map_macro(self.of_formulas, self.has_map_sums)

    @property
    def map_kernels(self) -> list[KernelMacro]:
        """The macros that make the kernels of a map."""
        functor = FunctorNames(self.functor, self.is_of_math)
        return formula_kernels.of_map(self.of_formulas, self.has_map_sums, functor)

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
        """In C++ the set of a map's inputs of words, of which bits are read; empty where there are none."""
        words = self.op.bits
        bits = sum(1 << place for place, one in enumerate(self.operands) if one in words)
        return bin(bits) if bits else ""

    @property
    def optional_inputs(self) -> str:
        """In C++ the set of a map's inputs that may be absent; empty where there are none."""
        inputs = self.operands[: self.input_count]
        bits = sum(1 << place for place, one in enumerate(inputs) if one.optional)
        return bin(bits) if bits else ""

    @staticmethod
    def operand_ref(inputs: str, tensor: model.Tensor, place: int, is_const: bool = False) -> str:
        """An input as a map is given it: one that is absent may lack its place."""
        if tensor.optional:
            return f"internal::OperandOrAbsent(internal::ArgumentAt({inputs}, {place}))"
        return f"{inputs}[{place}]" if is_const else f"internal::Unconst({inputs}[{place}])"

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
    def seam_data(self) -> SeamData:
        return formula_data.of_seams(self.op)

    @cached_property
    def named_oracle(self) -> NamedFormulaData:
        """What the tests' oracle is made of where formulas name dims."""
        names = self.steps.dims.names if self.steps else ()
        return formula_data.named(self.op, self.forward, names)
