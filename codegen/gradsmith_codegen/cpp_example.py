"""A call in C++ that a page shows: the shapes of a case of the schema, in the types of a row."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from . import model
from .data_types import DataType
from .plan import OpPlan

_RESERVED = "context"  # what the example calls so itself
_LARGEST = 1000  # elements of a tensor


@dataclass(frozen=True)
class CppTensor:
    """An argument and the memory that it is in."""

    field: str
    variable: str
    element: str
    dims: tuple[int, ...]
    is_read: bool

    @property
    def elements(self) -> int:
        return math.prod(self.dims)

    @property
    def memory(self) -> str:
        """The statement that makes it; a vector of truth values is no memory of them."""
        if self.element == "bool":
            return f"std::array<bool, {self.elements}> {self.variable} = {{}};"
        value = f", {self.element}{{1}}" if self.is_read else ""
        return f"std::vector<{self.element}> {self.variable}({self.elements}{value});"

    @property
    def argument(self) -> str:
        dims = ", ".join(map(str, self.dims))
        return f".{self.field} = {{{self.variable}.data(), {{{dims}}}}}"


@dataclass(frozen=True)
class CppExample:
    op: OpPlan
    case: model.Case
    row: model.Row

    @cached_property
    def inputs(self) -> list[CppTensor]:
        tensors = [tensor for tensor in self.op.op.inputs if not tensor.optional]
        return list(self._tensors(tensors, is_read=True, taken=(_RESERVED,)))

    @cached_property
    def outputs(self) -> list[CppTensor]:
        taken = (_RESERVED, *[tensor.variable for tensor in self.inputs])
        return list(self._tensors(self.op.op.outputs, is_read=False, taken=taken))

    @property
    def tensors(self) -> list[CppTensor]:
        return [*self.inputs, *self.outputs]

    @property
    def headers(self) -> list[str]:
        """Of the standard library."""
        elements = {tensor.element for tensor in self.tensors}
        needs = {
            "array": "bool" in elements,
            "cstdint": any(one.startswith("std::") for one in elements),
            "vector": elements != {"bool"},
        }
        return [header for header, is_needed in needs.items() if is_needed]

    @property
    def types(self) -> str:
        return ", ".join(_cpp(data_type) for _, data_type in self.row.types)

    @property
    def attributes(self) -> list[tuple[model.Attribute, model.AttributeValue]]:
        return self.op.attributes_of(self.case)

    def _tensors(
        self, tensors: Sequence[model.Tensor], is_read: bool, taken: Sequence[str]
    ) -> Iterator[CppTensor]:
        shapes = dict(self.case.all_shapes)
        bound = dict(self.row.types)
        for tensor in tensors:
            data_type = bound.get(tensor.type) or self.op.op.types_of(tensor)[0]
            variable = f"{tensor.name}_data" if tensor.name in taken else tensor.name
            yield CppTensor(tensor.name, variable, _cpp(data_type), shapes[tensor.name], is_read)


def cpp_example(op: OpPlan) -> CppExample | None:
    """None of operators with lists of tensors or with shapes that inputs hold, and where no case is small."""
    if op.op.has_lists or any(one.shape_of for one in op.required_inputs):
        return None
    case = next(filter(is_plain, op.op.cases), None)
    return CppExample(op, case, op.rows[0].row) if case else None


def is_plain(case: model.Case) -> bool:
    """Something is computed, from few elements."""
    sizes = [math.prod(dims) for _, dims in case.all_shapes]
    return (
        case.layout is model.Layout.CONTIGUOUS and bool(sizes) and all(0 < size <= _LARGEST for size in sizes)
    )


def _cpp(data_type: DataType) -> str:
    name = data_type.cpp_type
    return f"gradsmith::{name}" if name[0].isupper() else name
