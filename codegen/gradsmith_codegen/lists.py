"""Operators whose arguments are lists of tensors, as what they are for lists of one length: operators of
single tensors. The runtime does the same (`core/list_schema.h`)."""

from __future__ import annotations

from dataclasses import replace

from .model import Attribute, Op, Symbol, Tensor
from .shapes import Dim, Shape

MAX_LENGTH = 2000  # of a list: kMaxListLength of the runtime


def element(name: str, place: int) -> str:
    """What messages call a tensor of a list, or the symbol that it has of its own: `X[2]`."""
    return f"{name}[{place}]"


def list_of(name: str) -> str:
    """The list's name from that of one of its tensors."""
    return name.partition("[")[0]


def spelled_out(op: Op, length: int) -> Op:
    """The operator with so many tensors in the place of each list."""
    return _Speller(op, length).op()


class _Speller:
    def __init__(self, op: Op, length: int) -> None:
        self._op = op
        self._length = length
        self._of_each = frozenset([symbol.name for symbol in op.symbols if symbol.of_each])
        self._lists = frozenset([tensor.name for tensor in op.inputs + op.outputs if tensor.list])

    def op(self) -> Op:
        op = self._op
        return replace(
            op,
            inputs=tuple([one for tensor in op.inputs for one in self._tensors(tensor)]),
            outputs=tuple([one for tensor in op.outputs for one in self._tensors(tensor)]),
            symbols=tuple([one for symbol in op.symbols for one in self._symbols(symbol)]),
            attributes=tuple(map(self._attribute, op.attributes)),
        )

    def _tensors(self, tensor: Tensor) -> list[Tensor]:
        if not tensor.list:
            return [tensor]
        return [
            replace(
                tensor,
                name=element(tensor.name, place),
                shape=Shape([self._dim(dim, place) for dim in tensor.shape]),
                like=element(tensor.like, place) if tensor.like in self._lists else tensor.like,
                list="",
            )
            for place in range(self._length)
        ]

    def _dim(self, dim: Dim, place: int) -> Dim:
        return replace(dim, symbol=self._name(dim.symbol, place))

    def _name(self, symbol: str, place: int) -> str:
        return element(symbol, place) if symbol in self._of_each else symbol

    def _symbols(self, symbol: Symbol) -> list[Symbol]:
        rule = symbol.rule
        if rule and not self._of_each.isdisjoint(rule.arguments):
            terms = [element(name, place) for name in rule.arguments for place in range(self._length)]
            return [replace(symbol, rule=replace(rule, arguments=tuple(terms)))]
        if not symbol.of_each:
            return [symbol]
        return [
            replace(
                symbol,
                name=element(symbol.name, place),
                length_of=self._name(symbol.length_of, place),
                broadcast_to=self._name(symbol.broadcast_to, place),
            )
            for place in range(self._length)
        ]

    def _attribute(self, attribute: Attribute) -> Attribute:
        """What is an axis of a list is one of its first tensor, whose rank all have."""
        is_of_list = attribute.axis_of in self._lists
        return replace(attribute, axis_of=element(attribute.axis_of, 0)) if is_of_list else attribute
