"""An operator's arguments as C++ needs them: where each stands in a call, and what a case gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from . import model
from .shapes import Dim

NamedShapes = tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True)
class CountedArguments:
    """By whose number in a call a kernel tells how long its lists are."""

    role: str  # inputs, or outputs where no input is a list
    single: int  # how many are no lists
    lists: int


@dataclass(frozen=True)
class ArgumentPlan:
    """The tensors, dims and attributes of an op, by their indices."""

    op: model.Op

    @cached_property
    def required_inputs(self) -> list[model.Tensor]:
        return [tensor for tensor in self.op.inputs if not tensor.optional]

    @cached_property
    def kernel_inputs(self) -> list[model.Tensor]:
        """The inputs that the kernel is given: a shape that an input holds is that of an output."""
        return [tensor for tensor in self.op.inputs if not tensor.shape_of]

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
    def attribute_indices(self) -> dict[str, int]:
        return {attribute.name: i for i, attribute in enumerate(self.op.attributes)}

    @cached_property
    def symbol_indices(self) -> dict[str, int]:
        return {symbol.name: i for i, symbol in enumerate(self.op.symbols)}

    @cached_property
    def shapes(self) -> dict[str, tuple[Dim, ...]]:
        """The different shapes that the tensors have, by their text."""
        return {tensor.shape_text: tensor.shape for tensor in self.op.inputs + self.op.outputs}

    @cached_property
    def shape_indices(self) -> dict[str, int]:
        return {text: i for i, text in enumerate(self.shapes)}

    @cached_property
    def gradient_indices(self) -> dict[tuple[str, ...], int]:
        """What tensors are gradients of, each once."""
        found = dict.fromkeys(one.gradient_of for one in self.op.inputs + self.op.outputs if one.gradient_of)
        return {names: i for i, names in enumerate(found)}

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

    def rank_of(self, name: str) -> str:
        """What follows a kernel's input in C++ to give its rank, or that of all tensors of a list."""
        is_list = self.op.inputs[self.input_indices[name]].list
        return ".front().rank()" if is_list else "->rank()"

    @cached_property
    def gathered_dims(self) -> list[str]:
        """The statements that add what the typed InferShapes of an operator with lists is given."""
        return [_addition(tensor) for tensor in self.op.inputs]

    def shapes_of(self, case: model.Case) -> tuple[NamedShapes, NamedShapes]:
        """The shapes of the inputs and of the outputs; those of a list's tensors one after another."""
        inputs = self.op.inputs
        lists = sum(bool(tensor.list) for tensor in (*inputs, *self.op.outputs))
        length = (len(case.all_shapes) - len(inputs) - len(self.op.outputs)) // lists + 1 if lists else 0
        count = sum(length if tensor.list else 1 for tensor in inputs)
        return case.all_shapes[:count], case.all_shapes[count:]

    def attributes_of(self, case: model.Case) -> list[tuple[model.Attribute, model.AttributeValue]]:
        """What the case sets, in the order of the attributes struct."""
        given = dict(case.attributes)
        return [(a, given[a.name]) for a in self.op.attributes if a.name in given] if given else []


def _addition(tensor: model.Tensor) -> str:
    if tensor.optional:
        return f"in.AddAbsent({'true' if tensor.list else 'false'});"
    given = f"inputs.{tensor.name}"
    return f"in.Add({f'internal::HoldingShape({given})' if tensor.shape_of else given});"
