"""What operators there are, and for which types."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from . import _core, _device
from ._libraries import ELEMENT_TYPES
from ._text import quoted, shortened, written

_SPELLINGS = {
    **{dtype: name for name, dtype in ELEMENT_TYPES.items()},
    "single": "float", "half": "MLFloat16", "bf16": "BFloat16", "long": "int64", "bool_": "bool",
}  # fmt: skip


_MOST_TYPES = 64
"""No operator has as many type parameters."""


@dataclass(frozen=True)
class Tensor:
    """An input or an output of an operator."""

    name: str
    type: str
    """A type parameter, such as T, or a type."""
    shape: str
    optional: bool
    shape_only: bool
    """An input of which only the shape is needed."""
    shape_of: str
    """The output whose dims an input holds; empty where it is an array."""
    list: str
    """What the length is called of a list of arrays; empty where it is one array."""
    may_be_on_host: bool
    """An input, a number, that may lie on the host where the others are on a device."""
    gradient_of: tuple[str, ...]
    """The forward's tensor that this is the gradient of; empty where it is none. An output may be the gradient of
    several inputs, each of which has that very gradient."""


@dataclass(frozen=True)
class Row:
    """A combination of types that an operator takes on a backend."""

    name: str
    types: dict[str, str]
    backend: str
    repeatable: str
    """Whether two calls give the same bits: "always", "policy" (where the policy `deterministic` is on) or "never"."""
    line: int
    """Where ops.yaml has it."""


@dataclass(frozen=True)
class Operator:
    """An operator of this build."""

    name: str
    function: str
    domain: str
    since_version: int
    kernel: str
    gradient_of: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    attributes: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def has_lists(self) -> bool:
        """An argument is a list of arrays."""
        return any(one.list for one in (*self.inputs, *self.outputs))


def gradients_of_inputs(gradient: Operator) -> dict[str, str]:
    """By the forward operator's inputs, the outputs that are their gradients."""
    return {name: one.name for one in gradient.outputs for name in one.gradient_of}


@cache
def ops() -> tuple[Operator, ...]:
    """Every operator of this build, with its rows::

    >>> import gradsmith
    >>> [op.function for op in gradsmith.ops() if op.gradient_of == "ConvTranspose"]
    ['conv_transpose_grad']
    """
    return tuple(_operator(**told) for told in _core.operators())


def _operator(*, name: str, inputs: Any, outputs: Any, attributes: Any, rows: Any, **others: Any) -> Operator:
    from ._ops import FUNCTIONS  # they are made of what this module is told by

    return Operator(
        name=name,
        function=FUNCTIONS[name].__name__ if name in FUNCTIONS else "",
        inputs=tuple(Tensor(**tensor) for tensor in inputs),
        outputs=tuple(Tensor(**tensor) for tensor in outputs),
        attributes=tuple(attributes),
        rows=tuple(Row(**row) for row in rows),
        **others,
    )


def explain(op: Any, *types: Any, device: str = "cpu") -> str:
    """Says whether an operator takes these types and, if not, the nearest rows and what differs::

        >>> import gradsmith
        >>> print(gradsmith.explain("ConvGrad", "int8"))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ValueError: there is no type 'int8'; expected float, double, half (MLFloat16), bf16 (BFloat16), ...
        >>> gradsmith.explain(gradsmith.conv_grad, "half").partition(" (")[0]
        'ConvGrad(MLFloat16) on cpu is there: ConvGrad[half] on cpu'

    `op` is an operator's name or a function of this package. There is one type for each of its type parameters, by
    name (float or float32, double, half, bf16, int64) or as a dtype. `device` is "cpu", "cuda" or, for example,
    "cuda:1".
    """
    is_cuda = _device.parse(device).is_cuda
    if len(types) > _MOST_TYPES:
        raise ValueError(f"{len(types)} types were given; expected one for each type parameter of {op_name(op)}")
    spelled = [_spelling(one) for one in types]
    for one in spelled:
        if one not in ELEMENT_TYPES:
            raise ValueError(f"there is no type {quoted(one)}; expected {_names_of_types()}")
    told: str = _core.explain(op_name(op), spelled, is_cuda)
    return told


def _names_of_types() -> str:
    """Each with the short name that it has besides."""
    short = {_SPELLINGS[name]: f"{name} ({_SPELLINGS[name]})" for name in ("half", "bf16")}
    *names, last = [short.get(name, name) for name in ELEMENT_TYPES]
    return f"{', '.join(names)} or {last}"


def find_row(op: Any, *types: Any, device: str = "cpu") -> Row | None:
    """The row that takes these types, where `explain` says that it is there."""
    name, place = op_name(op), _device.parse(device)
    backend = place.backend if _core.is_built(place.is_cuda) else ""
    spelled = [_spelling(one) for one in types]
    rows = (row for one in ops() if one.name == name for row in one.rows)
    return next((row for row in rows if row.backend == backend and list(row.types.values()) == spelled), None)


def op_name(op: Any) -> str:
    """The operator's name, from that or from one of our functions."""
    from ._ops import FUNCTIONS

    for name, function in FUNCTIONS.items():
        if op is function or (isinstance(op, str) and op == function.__name__):
            return name
    return written(op)


def _spelling(element_type: Any) -> str:
    """The type as ops.yaml spells it."""
    name = element_type.__name__ if isinstance(element_type, type) else written(element_type)
    name = shortened(name).rpartition(".")[2]  # torch.float32
    return _SPELLINGS.get(name, name)


def missing_for(device: str) -> str:
    """What this machine or this build lacks to compute on "cpu" or "cuda:0"; empty where nothing is missing."""
    told: str = _core.missing_for(*_device.parse(device))
    return told


def is_available(device: str) -> bool:
    """Whether calls can run on "cpu" or "cuda:0" here."""
    return not missing_for(device)
