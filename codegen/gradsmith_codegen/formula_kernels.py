"""The kernels of formulas on CUDA: which there are, by types, and with which functions each computes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .data_types import DataType
from .formula_cpp import MATH
from .formula_schedule import Role, Schedule, bound_type
from .model import Op, Row
from .selection import type_of

# What kernels call the element types, and C++.
SUFFIXES = {
    DataType.FLOAT: ("f32", "float"),
    DataType.DOUBLE: ("f64", "double"),
    DataType.MLFLOAT16: ("f16", "__half"),
    DataType.BFLOAT16: ("bf16", "__nv_bfloat16"),
}
_SHORT = (DataType.MLFLOAT16, DataType.BFLOAT16)
# What a kernel that serves both half and bf16 calls its element type (runtime/cuda/kernels/short_float.cuh).
_SHARED = ("short", "gradsmith::cuda::ShortFloat")


@dataclass(frozen=True, slots=True)
class KernelMacro:
    """A macro that defines an operator's kernels for some types, and what it is given behind their name."""

    name: str
    functor: str
    types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FunctorNames:
    """A functor within C++, and what it is in kernels, also where its results are rounded to 16 bits."""

    precise: str
    is_of_math: bool

    def of(self, is_short: bool) -> str:
        math = "Fast" if is_short else "Device"
        return f"{self.precise}Of<::gradsmith::formula::{math}>" if self.is_of_math else self.precise


def is_of_math(lines: Iterable[str]) -> bool:
    """Whether statements of a functor call what may be approximated."""
    return any(f"{MATH}::" in line for line in lines)


def of_rows(op: Op, part: Op, schedule: Schedule, functor: FunctorNames) -> list[KernelMacro]:
    """One for each combination of types in a part of an operator. Rows with columns are never computed across
    memory, and a flat row is a map."""
    has_columns = schedule.inputs[Role.COLUMN] or schedule.outputs[Role.COLUMN]
    found: dict[tuple[str, tuple[str, ...]], list[Row]] = {}
    for row in part.rows:
        bound = dict(row.types)
        first = SUFFIXES[bound_type(bound, schedule.first)]
        second = SUFFIXES[bound_type(bound, schedule.second)] if schedule.second else first
        suffix = first[0] if first == second else f"{first[0]}_{second[0]}"
        macro = "_OF" if first == second else "_OF_TWO"
        macro = "_OF_COLUMNS" if has_columns else "_OF_FLAT" if schedule.is_flat else macro
        types = (first[1],) if macro == "_OF" else (first[1], second[1])
        found.setdefault((f"GRADSMITH_ROWS_KERNELS{macro}", (suffix, *types)), []).append(row)
    return [
        KernelMacro(macro, functor.of(all(_is_short(op, row) for row in rows)), types)
        for (macro, types), rows in found.items()
    ]


def map_macro(op: Op, has_sums: bool) -> str:
    """The macro that makes a map's kernels for all types: with sums, or where inputs may be broadcast by
    their shapes, or with neither."""
    numbers = [one for one in op.read_inputs if one not in op.bits]
    is_broadcast = any(one.shape != op.outputs[0].shape for one in numbers)
    return f"GRADSMITH_MAP_{'SUM_' if has_sums else 'BROADCAST_' if is_broadcast else ''}KERNELS"


def of_map(op: Op, has_sums: bool, functor: FunctorNames) -> list[KernelMacro]:
    """One for each type, or for half and bf16 together: where they have one functor, and nothing is
    summed, for sums take longer in a kernel for both."""
    found: dict[DataType, list[Row]] = {}
    for row in op.rows:
        found.setdefault(type_of(row), []).append(row)
    functors = {kind: functor.of(all(_is_short(op, row) for row in rows)) for kind, rows in found.items()}
    is_shared = not has_sums and len({functors.get(kind) for kind in _SHORT}) == 1
    macro = f"{map_macro(op, has_sums)}_OF"
    macros = {}
    for kind, name in functors.items():
        types = _SHARED if is_shared and kind in _SHORT else SUFFIXES[kind]
        macros[types] = KernelMacro(macro, name, types)
    return list(macros.values())


def _is_short(op: Op, row: Row) -> bool:
    """Whether all numbers that the operator gives are rounded to 16 bits."""
    kinds = [bound_type(dict(row.types), tensor.type) for tensor in op.outputs]
    return all(kind in _SHORT for kind in kinds if kind.is_floating)
