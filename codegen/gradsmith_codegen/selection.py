"""A part of a schema's operators: the rows that a program needs, and no others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from . import vocabulary
from .data_types import DataType
from .faults import instead_of_backend, instead_of_type
from .model import Backend, Op, Row, Schema
from .problem_lines import Problem
from .suggestions import instead
from .text import printable
from .verbs import Refused

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Selection:
    """What is asked for. All where nothing is."""

    ops: tuple[str, ...] = ()  # selectors: `ConvGrad`, or one row of it, `ConvGrad:float`
    types: tuple[str, ...] = ()  # what rows compute in that no selector names
    backends: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()  # whose rows are selected as well

    def __bool__(self) -> bool:
        return bool(self.names_ops or self.types or self.backends)

    @property
    def names_ops(self) -> bool:
        return bool(self.ops or self.problems)


def select(schema: Schema, wanted: Selection) -> Schema:
    """The schema with those rows alone. What the others' entries hold keeps its place."""
    by_name = {op.name: op for op in schema.ops}
    types = [
        _known(word, vocabulary.TYPES, "element type", instead_of_type)
        for word in dict.fromkeys(wanted.types)
    ]
    backends = [
        _known(word, vocabulary.BACKENDS, "backend", instead_of_backend)
        for word in dict.fromkeys(wanted.backends)
    ]
    rows: dict[str, dict[str, Row]] = {}
    for selector in wanted.ops if wanted.names_ops else by_name:
        name, colon, row = selector.partition(":")
        op = _known(name, by_name, "operator")
        found = {row: _row(op, row)} if colon else {one.name: one for one in _of_types(op, types)}
        if not found and wanted.ops:
            raise Refused(f"operator '{name}' has no row of type {' or '.join(wanted.types)}")
        rows.setdefault(name, {}).update(found)
    for problem in wanted.problems:
        op, of_problem = problem.find(by_name)
        rows.setdefault(op.name, {})[of_problem.name] = of_problem
    ops = [_part(op, rows[op.name], backends) for op in schema.ops if rows.get(op.name)]
    for op in ops:
        if not op.backends and wanted.names_ops:
            raise Refused(f"operator '{op.name}' has no backend {' or '.join(wanted.backends)}")
    selected = tuple([op for op in ops if op.backends])
    if not selected:
        raise Refused("no row is of the types and backends that are selected")
    return replace(schema, ops=selected, all_ops=schema.ops)


def type_of(row: Row) -> DataType:
    """What a row computes in: its first floating type, not that of labels or masks."""
    types = [one for _, one in row.types]
    return next((one for one in types if one.is_floating), types[0])


def _known(
    word: str, known: Mapping[str, T], what: str, hint: Callable[[str, Collection[str]], str] = instead
) -> T:
    if word not in known:
        raise Refused(f"there is no {what} '{printable(word)}'{hint(word, known)}")
    return known[word]


def _row(op: Op, name: str) -> Row:
    return _known(name, {row.name: row for row in op.rows}, f"row of operator '{op.name}' called")


def _of_types(op: Op, types: Sequence[DataType]) -> Iterator[Row]:
    for row in op.rows:
        if not types or type_of(row) in types:
            yield row


def _part(op: Op, rows: Collection[str], backends: Sequence[Backend]) -> Op:
    """Rows stay in their order, and are the same object where all are there: operators share them."""
    kept = tuple([row for row in op.rows if row.name in rows])
    return replace(
        op,
        rows=op.rows if kept == op.rows else kept,
        backends=tuple([one for one in op.backends if not backends or one in backends]),
    )
