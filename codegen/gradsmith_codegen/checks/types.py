"""Type parameters and the rows that bind them."""

from __future__ import annotations

from collections.abc import Iterator

from ..data_types import DataType
from ..diagnostics import Note
from ..model import Op, Row
from ..suggestions import did_you_mean, listing, nearest
from .registry import TENSORS, Finding, Scope, op_rule

_NEEDS = (*TENSORS, "types", "rows")


@op_rule("G201", needs=_NEEDS, blames=("rows",))
def unbound_type_parameter(op: Op, scope: Scope) -> Iterator[Finding]:
    """A type parameter is unbound: a tensor has it, and a row gives it no element type."""
    bound = {name for row in op.rows for name, _ in row.types}
    for parameter in scope.type_parameters:
        if parameter not in bound and not nearest(parameter, bound - {*scope.type_parameters}):
            tensor = next(tensor for tensor in scope.tensors if tensor.type == parameter)
            yield Finding(f"type parameter '{parameter}' is bound by no row", tensor.at("type"))
    wanted = [parameter for parameter in scope.type_parameters if parameter in bound]
    for row in op.rows:
        names = [name for name, _ in row.types]
        lacking = [parameter for parameter in wanted if parameter not in names]
        if lacking:
            tensor = next(tensor for tensor in scope.tensors if tensor.type == lacking[0])
            note = Note(f"'{tensor.name}' has type {tensor.type}", tensor.at("type"))
            yield Finding(
                f"row '{row.name}' does not bind type parameter {listing(lacking)}", row.span, (note,)
            )


@op_rule("G202", needs=_NEEDS, blames=("rows",))
def unused_type_parameter(op: Op, scope: Scope) -> Iterator[Finding]:
    """A row binds a type parameter that no tensor has."""
    known = set(scope.type_parameters)
    for row in op.rows:
        for name, _ in row.types:
            if name not in known:
                hint = did_you_mean(name, [one for one in known if one not in dict(row.types)])
                yield Finding(
                    f"row '{row.name}' binds '{name}', which is the type of no tensor{hint}", row.at(name)
                )


@op_rule("G203", needs=_NEEDS, blames=("rows",), looks_at="rows")
def duplicate_row(op: Op, scope: Scope) -> Iterator[Finding]:
    """Two rows bind the same types."""
    first: dict[tuple[tuple[str, DataType], ...], Row] = {}
    for row in op.rows:
        known = first.setdefault(row.types, row)
        if known is not row:
            note = Note("first declared here", known.span)
            yield Finding(f"row '{row.name}' has the same types as row '{known.name}'", row.span, (note,))


@op_rule("G204", needs=_NEEDS)
def no_type_parameter(op: Op, scope: Scope) -> Iterator[Finding]:
    """All tensors of an operator have fixed types, so that rows have nothing to bind."""
    if not scope.type_parameters:
        yield Finding(
            f"operator '{op.name}' has no type parameter; give a tensor type T, and bind T in rows", op.span
        )
