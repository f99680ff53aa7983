"""What the Python package calls an operator, its arguments and its results, and how it documents them."""

from __future__ import annotations

import keyword
import math
from dataclasses import dataclass
from functools import cached_property

from . import model, operation_count
from .argument_plan import NamedShapes
from .cpp_example import is_plain
from .data_types import DataType
from .lists import list_of
from .plan import OpPlan, Plan
from .text import Text, py_string

# What a package itself holds, the types that its annotations spell, and what its part of torch.ops has of
# its own.
PACKAGE_NAMES = frozenset(
    """cache explain get_cmake_dir is_available missing_for ops policy torch tune
    dict float int str name""".split()
)
# The keywords that every function has, that for PyTorch included.
FUNCTION_KEYWORDS = frozenset("outputs out context policies".split())

_NUMPY_TYPES = {data_type.value: data_type.numpy_name for data_type in DataType if data_type.numpy_name}
_KINDS = {
    model.AttributeKind.INT: "int",
    model.AttributeKind.FLOAT: "float",
    model.AttributeKind.INTS: "sequence of int",
    model.AttributeKind.ENUM: "str",
    model.AttributeKind.BOOL: "bool",
    model.AttributeKind.FLOATS: "sequence of float",
    model.AttributeKind.STRING: "str",
}
_STUB_KINDS = {
    **_KINDS,
    model.AttributeKind.INTS: "Sequence[int]",
    model.AttributeKind.FLOATS: "Sequence[float]",
}
_TORCH_KINDS = {
    model.AttributeKind.INT: "SymInt",
    model.AttributeKind.FLOAT: "float",
    model.AttributeKind.INTS: "SymInt[]",
    model.AttributeKind.ENUM: "str",
    model.AttributeKind.BOOL: "bool",
    model.AttributeKind.FLOATS: "float[]",
    model.AttributeKind.STRING: "str",
}


def identifier(name: str, taken: frozenset[str] = frozenset()) -> str:
    """The name, or with an underscore behind it where Python or we have another use for it."""
    return f"{name}_" if keyword.iskeyword(name) or name in taken else name


def function_name(op: OpPlan) -> str:
    return identifier(op.snake, PACKAGE_NAMES)


@dataclass(frozen=True)
class Parameter:
    """An argument of the function: an input or an attribute."""

    name: str
    default: str  # as Python writes it; empty where there is none
    kind: str  # as the docstring says it
    stub_type: str
    torch: str  # as a torch.library schema declares it
    doc: Text

    @cached_property
    def declared(self) -> str:
        """`group=1`, or `X`."""
        return f"{self.name}={self.default}" if self.default else self.name

    @cached_property
    def stub(self) -> str:
        """`group: int = 1`, or `X: _A`."""
        default = "..." if self.default.startswith("float(") else self.default
        return f"{self.name}: {self.stub_type}" + (f" = {default}" if default else "")

    def stub_of(self, array: str) -> str:
        """Of an input, for one type of arrays: `X: Tensor`."""
        return self.stub.replace(": _A", f": {array}", 1).replace("[_A", f"[{array}", 1)


@dataclass(frozen=True)
class PythonOp:
    """An operator as a function of the package."""

    plan: OpPlan
    has_gradient: bool
    known_attributes: dict[object, list[Parameter]]  # by the identity of the list; shared by all operators

    @property
    def name(self) -> str:
        return self.plan.name

    @cached_property
    def function(self) -> str:
        return function_name(self.plan)

    @cached_property
    def result(self) -> str:
        return f"{self.name}Result"

    @cached_property
    def inputs(self) -> list[Parameter]:
        tensors = self.plan.op.inputs
        required = max((i for i, tensor in enumerate(tensors) if not tensor.optional), default=-1)
        return [self._input(tensor, has_default=i > required) for i, tensor in enumerate(tensors)]

    @cached_property
    def attributes(self) -> list[Parameter]:
        identity = self.plan.attributes_identity
        if identity not in self.known_attributes:
            made = [self._attribute(attribute) for attribute in self.plan.op.attributes]
            self.known_attributes[identity] = made
        return self.known_attributes[identity]

    @cached_property
    def outputs(self) -> list[tuple[str, model.Tensor]]:
        """The field of the result and the tensor."""
        return [(identifier(tensor.name), tensor) for tensor in self.plan.op.outputs]

    @property
    def required(self) -> list[str]:
        """The outputs that every call must ask for."""
        return [field for field, tensor in self.outputs if not tensor.optional]

    @cached_property
    def output_names(self) -> str:
        """`("dX", "dW", "dB")`."""
        names = ", ".join(py_string(tensor.name) for tensor in self.plan.op.outputs)
        return f"({names},)" if len(self.plan.op.outputs) == 1 else f"({names})"

    @cached_property
    def output_type(self) -> str:
        """`Literal["dX", "dW", "dB"]`."""
        return f"Literal[{', '.join(_literal(tensor.name) for tensor in self.plan.op.outputs)}]"

    @property
    def has_lists(self) -> bool:
        return self.plan.op.has_lists

    @staticmethod
    def result_type(tensor: model.Tensor) -> str:
        """Of an output's field of the named tuple, as the stub has it."""
        if tensor.list:
            return "list[_A]"
        return "_A"

    @property
    def given_output_type(self) -> str:
        """What is given for an output to write to."""
        some = "_A | Sequence[_A | None]"
        return some if any(tensor.list for tensor in self.plan.op.outputs) else "_A"

    def shape(self, tensor: model.Tensor) -> str:
        """As Python writes it: `(N, C, *D)`, `(C,)`."""
        dims = ", ".join(dim.text for dim in tensor.shape)
        return f"({dims},)" if len(tensor.shape) == 1 else f"({dims})"

    def _input(self, tensor: model.Tensor, has_default: bool) -> Parameter:
        name = identifier(tensor.name, FUNCTION_KEYWORDS)
        optional = ", optional" if tensor.optional else ""
        if tensor.shape_of:
            return Parameter(
                name=name,
                default="None" if has_default else "",
                kind=f"sequence of int, the dims of {tensor.shape_of}{optional}",
                stub_type="Sequence[int] | None" if tensor.optional else "Sequence[int]",
                torch=f"SymInt[]{'?' if tensor.optional else ''} {name}{'=None' if has_default else ''}",
                doc=tensor.doc,
            )
        one = f"array of {tensor.type} {self.shape(tensor)}"
        where = ", also on the host" if tensor.may_be_on_host else ""
        stub_type = f"Sequence[_A{' | None' if tensor.optional else ''}]" if tensor.list else "_A"
        torch = f"Tensor{'?' if tensor.optional else ''}[]" if tensor.list else "Tensor"
        return Parameter(
            name=name,
            default="None" if has_default else "",
            kind=(f"sequence of {tensor.list} {one.replace('array', 'arrays')}" if tensor.list else one)
            + where
            + optional,
            stub_type=f"{stub_type} | None" if tensor.optional else stub_type,
            torch=f"{torch}{'?' if tensor.optional else ''} {name}{'=None' if has_default else ''}",
            doc=tensor.doc,
        )

    def _attribute(self, attribute: model.Attribute) -> Parameter:
        default = "None" if _is_none(attribute) else _literal(attribute.default)
        kind = _KINDS[attribute.kind] + (" or None" if attribute.is_optional else "")
        name = identifier(attribute.name, FUNCTION_KEYWORDS)
        return Parameter(
            name=name,
            default=default,
            kind=", ".join(map(py_string, attribute.choices)) or kind,
            stub_type=_stub_type(attribute),
            torch=f"{_TORCH_KINDS[attribute.kind]}{_torch_default(attribute, name, default)}",
            doc=attribute.doc,
        )

    @cached_property
    def operations(self) -> str:
        """How many operations of arithmetic a call makes, as Python reads it; empty where nothing says."""
        return operation_count.expression(self.plan.op)

    @cached_property
    def torch_schema(self) -> str:
        """As torch.library takes it. What has a gradient returns all its outputs, each of which autograd then
        knows; the others return a list of those that are asked for, None for all. The policies are a
        context's text; None: those that surround the call."""
        inputs = [parameter.torch for parameter in self.inputs]
        keywords = [parameter.torch for parameter in self.attributes]
        if not self.has_gradient:
            keywords.append("str[]? outputs=None")
        keywords.append("str? policies=None")
        kinds = ["Tensor[]" if tensor.list else "Tensor" for tensor in self.plan.op.outputs]
        returned = ", ".join(kinds) if self.has_gradient else "Tensor[]"
        arguments = [*inputs, "*", *keywords] if keywords else inputs
        return f"({', '.join(arguments)}) -> {_tuple_if_several(returned)}"

    @cached_property
    def example(self) -> Example | None:
        case = next(filter(is_plain, self.plan.op.cases), None)
        given = {tensor.type for tensor in self.plan.op.inputs if not tensor.optional}
        row = next((r.row for r in self.plan.rows if given <= _numpy_types(r.row).keys()), None)
        return Example(self, case, row) if case and row else None


@dataclass(frozen=True)
class Example:
    """A call that a doctest runs: the shapes of a case of the schema, in the types of a row."""

    op: PythonOp
    case: model.Case
    row: model.Row

    @cached_property
    def arguments(self) -> list[tuple[str, str]]:
        """The inputs that are given, and how NumPy makes them."""
        shapes = self.op.plan.shapes_of(self.case)[0]
        taken = frozenset({self.op.plan.library.name, "np"})  # what the example spells besides
        return [
            (identifier(parameter.name, taken), self._value(tensor, _shapes_of(shapes, tensor)))
            for parameter, tensor in zip(self.op.inputs, self.op.plan.op.inputs, strict=True)
            if not tensor.optional
        ]

    def _value(self, tensor: model.Tensor, shapes: list[tuple[int, ...]]) -> str:
        if tensor.shape_of:
            return str(shapes[0])
        made = [f"np.ones({shape}, np.{_numpy_types(self.row)[tensor.type]})" for shape in shapes]
        return f"[{', '.join(made)}]" if tensor.list else made[0]

    @cached_property
    def call(self) -> str:
        given = dict(self.case.attributes)
        keywords = [
            f"{identifier(name, FUNCTION_KEYWORDS)}={_literal(value)}" for name, value in given.items()
        ]
        positional = [name for name, _ in self.arguments]
        return f"{self.op.plan.library.name}.{self.op.function}({', '.join([*positional, *keywords])})"

    @cached_property
    def results(self) -> list[tuple[str, str]]:
        """What is asked of the fields of the result, and their shapes."""
        shapes = self.op.plan.shapes_of(self.case)[1]
        return [
            (f"[one.shape for one in result.{field}]", str(_shapes_of(shapes, tensor)))
            if tensor.list
            else (f"result.{field}.shape", str(_shapes_of(shapes, tensor)[0]))
            for field, tensor in self.op.outputs
        ]


@dataclass(frozen=True)
class PythonPlan:
    """What the package's templates see."""

    plan: Plan

    @cached_property
    def ops(self) -> list[PythonOp]:
        known: dict[object, list[Parameter]] = {}
        return [PythonOp(op, bool(self.plan.gradients_of(op)), known) for op in self.plan.ops]


def _shapes_of(shapes: NamedShapes, tensor: model.Tensor) -> list[tuple[int, ...]]:
    """Of a tensor, or of those of a list."""
    return [shape for name, shape in shapes if list_of(name) == tensor.name]


def _tuple_if_several(types: str) -> str:
    return f"({types})" if "," in types else types


def _is_none(attribute: model.Attribute) -> bool:
    """Python's default is None: the library's own, or that nothing is given."""
    return attribute.kind.is_list or attribute.is_optional


def _is_infinite(attribute: model.Attribute) -> bool:
    return isinstance(attribute.default, float) and math.isinf(attribute.default)


def _torch_default(attribute: model.Attribute, name: str, default: str) -> str:
    """A schema of PyTorch has no word for infinity; None stands for the default."""
    if _is_none(attribute) or _is_infinite(attribute):
        return f"? {name}=None"
    return f" {name}={default}"


def _literal(value: model.AttributeValue | None) -> str:
    if isinstance(value, float) and math.isinf(value):
        return f"float({py_string(str(value))})"
    return py_string(value) if isinstance(value, str) else repr(value)


def _stub_type(attribute: model.Attribute) -> str:
    if attribute.choices:
        return f"Literal[{', '.join(_literal(choice) for choice in attribute.choices)}]"
    optional = " | None" if _is_none(attribute) else ""
    return _STUB_KINDS[attribute.kind] + optional


def _numpy_types(row: model.Row) -> dict[str, str]:
    """NumPy's names for the type parameters and element types that have one."""
    bound = {parameter: data_type.numpy_name for parameter, data_type in row.types}
    return {name: numpy for name, numpy in (_NUMPY_TYPES | bound).items() if numpy}
