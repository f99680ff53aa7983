"""The kernels of formulas on CUDA: which there are, by types, and with which functions each computes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .formula_cpp import MATH
from .formula_schedule import Role, Schedule, bound_type
from .model import DataType, Op, Row
from .selection import type_of

# What kernels call the element types, and C++.
SUFFIXES = {
    DataType.FLOAT: ("f32", "float"),
    DataType.DOUBLE: ("f64", "double"),
    DataType.MLFLOAT16: ("f16", "__half"),
    DataType.BFLOAT16: ("bf16", "__nv_bfloat16"),
}
_SHORT = (DataType.MLFLOAT16, DataType.BFLOAT16)
# The same of kernels that serve half and bf16 both (runtime/cuda/kernels/short_float.cuh).
_SHARED = ("short", "gradsmith::cuda::ShortFloat")


@dataclass(frozen=True, slots=True)
class KernelMacro:
    """A macro that defines an operator's kernels for some types, and what it is given behind their name."""

    name: str
    functor: str
    types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FunctorNames:
    """A functor within C++, and what it is where its functions are rounded to 16 bits."""

    precise: str
    is_of_math: bool

    def of(self, is_short: bool) -> str:
        fast = self.is_of_math and is_short
        return f"{self.precise}Of<::gradsmith::formula::Fast>" if fast else self.precise


def is_of_math(lines: Iterable[str]) -> bool:
    """Whether statements of a functor call what may be approximated."""
    return any(f"{MATH}::" in line for line in lines)


def of_rows(op: Op, part: Op, schedule: Schedule, functor: FunctorNames) -> list[KernelMacro]:
    """One for each combination of types in a part of an operator, or for two that are alike but for half and
    bf16. Rows with columns are never computed across memory."""
    has_columns = schedule.inputs[Role.COLUMN] or schedule.outputs[Role.COLUMN]
    found: dict[tuple[DataType, DataType], list[Row]] = {}
    for row in part.rows:
        bound = dict(row.types)
        first = bound_type(bound, schedule.first)
        second = bound_type(bound, schedule.second) if schedule.second else first
        found.setdefault((first, second), []).append(row)
    macros = []
    for kinds, name in _shared(op, functor, found).items():
        (first, first_cpp), (second, second_cpp) = kinds
        is_one = first == second
        suffix = first if is_one else f"{first}_{second}"
        types = (first_cpp,) if is_one and not has_columns else (first_cpp, second_cpp)
        macro = "_OF_COLUMNS" if has_columns else "_OF" if is_one else "_OF_TWO"
        macros.append(KernelMacro(f"GRADSMITH_ROWS_KERNELS{macro}", name, (suffix, *types)))
    return macros


def of_map(op: Op, has_sums: bool, functor: FunctorNames) -> list[KernelMacro]:
    """One for each type, or for half and bf16 together."""
    found: dict[tuple[DataType, ...], list[Row]] = {}
    for row in op.rows:
        found.setdefault((type_of(row),), []).append(row)
    macro = f"GRADSMITH_MAP_{'SUM_' if has_sums else ''}KERNELS_OF"
    return [KernelMacro(macro, name, kinds[0]) for kinds, name in _shared(op, functor, found).items()]


def _shared(
    op: Op, functor: FunctorNames, found: dict[tuple[DataType, ...], list[Row]]
) -> dict[tuple[tuple[str, str], ...], str]:
    """The functor of each combination of types, as kernels call them. Two that have one functor and are alike
    but for half and bf16 are one."""
    functors = {kinds: functor.of(all(_is_short(op, row) for row in rows)) for kinds, rows in found.items()}
    made = {}
    for kinds, name in functors.items():
        is_shared = any(kind in _SHORT for kind in kinds) and functors.get(_other_format(kinds)) == name
        made[tuple(_SHARED if is_shared and kind in _SHORT else SUFFIXES[kind] for kind in kinds)] = name
    return made


def _other_format(kinds: tuple[DataType, ...]) -> tuple[DataType, ...]:
    """The types with bf16 for half, and half for bf16."""
    other = {DataType.MLFLOAT16: DataType.BFLOAT16, DataType.BFLOAT16: DataType.MLFLOAT16}
    return tuple(other.get(kind, kind) for kind in kinds)


def _is_short(op: Op, row: Row) -> bool:
    """Whether all numbers that the operator gives are rounded to 16 bits."""
    kinds = [bound_type(dict(row.types), tensor.type) for tensor in op.outputs]
    return all(kind in _SHORT for kind in kinds if kind.is_floating)
