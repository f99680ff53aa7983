"""The element types that an operator's rows give its tensors, against those that its kernel reads them as."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ..data_types import DataType
from ..diagnostics import Note
from ..kernel_terms import TYPES, Types
from ..model import Backend, Op, Row, Tensor
from ..suggestions import either, listing
from .kernels import header_of
from .registry import TENSORS, Finding, Scope, op_rule


@op_rule("G705", needs=("kernel", *TENSORS, "types", "rows", "backends"))
def type_of_no_kernel(op: Op, scope: Scope) -> Iterator[Finding]:
    """A row gives a tensor an element type that its kernel does not read it as (`kTypes`): it would read
    other memory than the tensor's."""
    types = scope.kernel.types if scope.kernel else None
    if types is None:
        return
    variables = dict.fromkeys(types.tensors.values())
    for variable in variables:
        tensors = [tensor for tensor in scope.tensors if types.tensors.get(tensor.name) == variable]
        if tensors:
            yield from _Variable(op, types, variable, tensors).findings()


class _Variable:
    """The tensors that a kernel reads as one type."""

    def __init__(self, op: Op, types: Types, variable: str, tensors: Sequence[Tensor]) -> None:
        self._op = op
        self._types = types
        self._variable = variable
        self._tensors = tensors
        said = f"types of {op.kernel} ({header_of(op)}): {types.text}"
        self._note = Note(said, op.at("kernel"))

    def findings(self) -> Iterator[Finding]:
        """What most of the tensors are is what they are all meant to be."""
        ((common, _),) = Counter([tensor.type for tensor in self._tensors]).most_common(1)
        leader = next(tensor for tensor in self._tensors if tensor.type == common)
        rows_at_fault: set[tuple[str, str]] = set()
        unlike = [tensor for tensor in self._tensors if tensor.type != common]
        findings = [finding for tensor in unlike for finding in self._unlike(tensor, leader, rows_at_fault)]
        yield from findings or self._unsuited(leader)

    def _unlike(self, tensor: Tensor, leader: Tensor, reported: set[tuple[str, str]]) -> Iterator[Finding]:
        """A tensor is of another type than the leader: always, which is the tensor's fault, or in a row."""
        rows = [row for row in self._op.rows if _type(tensor, row) is not _type(leader, row)]
        names = listing([one.name for one in self._tensors])
        takes = f"kernel {self._op.kernel} takes one type for {names}"
        if rows and (tensor.type in TYPES or len(rows) == len(self._op.rows)):
            yield Finding(f"{_differ(tensor, leader, rows[0])}; {takes}", tensor.at("type"), (self._note,))
            return
        for row in rows:
            if (tensor.type, row.name) not in reported:
                reported.add((tensor.type, row.name))
                message = f"{_differ(tensor, leader, row)}; {takes}"
                yield Finding(message, row.at(tensor.type), (self._note,))

    def _unsuited(self, tensor: Tensor) -> Iterator[Finding]:
        """A type that the kernel never takes, or not on a backend."""
        for row in self._op.rows:
            given = _type(tensor, row)
            refusing = [one for one in self._op.backends if not self._types.suits(self._variable, given, one)]
            if refusing:
                what = f"'{tensor.name}' is {given.value} in row '{row.name}'"
                takes = f"kernel {self._op.kernel} takes {self._suited(refusing[0])} on {refusing[0].value}"
                place = tensor.at("type") if tensor.type in TYPES else row.at(tensor.type)
                yield Finding(f"{what}; {takes}", place, (self._note,))
                if tensor.type in TYPES:
                    return

    def _suited(self, backend: Backend) -> str:
        suited = [one.value for one in DataType if self._types.suits(self._variable, one, backend)]
        return either(suited) if suited else "none"


def _type(tensor: Tensor, row: Row) -> DataType:
    return TYPES.get(tensor.type) or dict(row.types)[tensor.type]


def _differ(tensor: Tensor, leader: Tensor, row: Row) -> str:
    given, other = _type(tensor, row).value, _type(leader, row).value
    return f"'{tensor.name}' is {given} in row '{row.name}', and '{leader.name}' {other}"
