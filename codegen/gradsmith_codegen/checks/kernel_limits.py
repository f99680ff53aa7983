"""Lengths, multiples and ranges of an operator's symbols and attributes, against what its kernel takes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from ..diagnostics import Note
from ..kernel_terms import Limit
from ..model import Attribute, LengthRule, Op
from ..shapes import Dim, DimKind
from ..spans import Span
from .kernel_shapes import compare
from .kernels import header_of
from .registry import SHAPES, Finding, Scope, op_rule

_NEEDS = ("kernel", *SHAPES, "attributes")


@op_rule("G324", needs=_NEEDS, blames=("dims",))
def symbol_of_no_kernel(op: Op, scope: Scope) -> Iterator[Finding]:
    """A list symbol may have a length that the kernel does not take (`kLimits`), or a dim need not be the
    multiple that the kernel takes it for."""
    symbols = _symbols(op, scope)
    limits = scope.kernel.limits.of if scope.kernel else {}
    for name, limit in limits.items():
        if symbols and symbols.dims_of(name):
            yield from symbols.findings(name, limit)


@op_rule("G409", needs=_NEEDS, blames=("attributes",))
def attribute_beyond_the_kernel(op: Op, scope: Scope) -> Iterator[Finding]:
    """An attribute may have a value, or a length, that the kernel does not take (`kLimits`)."""
    symbols = _symbols(op, scope)
    limits = scope.kernel.limits.of if scope.kernel else {}
    for attribute in op.attributes:
        limit = limits.get(attribute.name)
        if limit:
            for what, key in _attribute_problems(op, attribute, limit, symbols):
                yield Finding(f"attribute '{attribute.name}' {what}", attribute.at(key), (_note(op, limit),))


def _symbols(op: Op, scope: Scope) -> _Symbols | None:
    """Which of the operator's the kernel's are, where the shapes fit."""
    comparison = compare(op, scope) if scope.kernel and scope.kernel.limits.of else None
    fits = comparison is not None and not [*comparison.findings()]
    return _Symbols(op, scope, comparison.dims) if comparison and fits else None


def _note(op: Op, limit: Limit) -> Note:
    return Note(f"in {op.kernel} ({header_of(op)}): {limit.text}", op.at("kernel"))


class _Symbols:
    """The kernel's symbols, and which of the operator's dims they take."""

    def __init__(self, op: Op, scope: Scope, dims: Mapping[str, tuple[Dim, ...]]) -> None:
        self._op = op
        self._scope = scope
        self._dims = dims
        self._symbols = {symbol.name: symbol for symbol in op.symbols}

    def dims_of(self, name: str) -> tuple[Dim, ...]:
        """Nothing where the operator has no tensor with the kernel's symbol."""
        return self._dims.get(name, ())

    def has_length_of(self, name: str, dims: tuple[Dim, ...]) -> bool:
        return self.same_length((Dim(DimKind.SYMBOL, f"*{name}", name, is_list=True),), dims)

    def findings(self, name: str, limit: Limit) -> Iterator[Finding]:
        dims, takes = self._dims[name], f"kernel {self._op.kernel} takes"
        given = _text(dims)
        low, high = self._length(dims)
        if limit.lengths and not (limit.lengths[0] <= low and high <= limit.lengths[1]):
            least, most = limit.lengths
            message = f"'{given}' has {_range(low, high)} dims; {takes} {_range(least, most)}"
            yield self._finding(message, dims, "length", limit)
        other = self._dims.get(limit.length.symbol) if limit.length else None
        if other and not self.same_length(dims, other):
            message = f"'{given}' need not have as many dims as '{_text(other)}', as {takes} it"
            yield self._finding(f"{message}; write 'length: {_text(other)}'", dims, "length", limit)
        whole = self._dims.get(limit.broadcast_to)
        if whole and not self._is_broadcast(dims, whole):
            message = f"'{given}' need not broadcast to '{_text(whole)}', as {takes} it"
            remedy = f"write 'broadcast_to: {_text(whole)}'"
            yield self._finding(f"{message}; {remedy}", dims, "broadcast_to", limit)
        axis = limit.length.symbol if limit.length and limit.length.symbol not in self._dims else ""
        if axis and not self._is_before(dims, axis):
            message = f"'{given}' need not be the dims before '{axis}', as {takes} it; write 'length: {axis}'"
            yield self._finding(message, dims, "length", limit)
        if limit.multiple_of in self._scope.attributes and not self._is_multiple(dims, limit.multiple_of):
            message = f"'{given}' need not be a multiple of '{limit.multiple_of}', as {takes} it"
            remedy = f"write '{given}: {{multiple_of: {limit.multiple_of}}}' under 'dims'"
            yield self._finding(f"{message}; {remedy}", dims, "multiple_of", limit)

    def _is_broadcast(self, dims: tuple[Dim, ...], whole: tuple[Dim, ...]) -> bool:
        """It is said to be, or is the last of the other's dims."""
        if dims and whole[-len(dims) :] == dims:
            return True
        if len(dims) != 1 or len(whole) != 1 or not dims[0].is_list:
            return False
        return self._symbols[dims[0].symbol].broadcast_to == whole[0].symbol

    def _is_before(self, dims: tuple[Dim, ...], axis: str) -> bool:
        return len(dims) == 1 and dims[0].is_list and self._symbols[dims[0].symbol].length_axis == axis

    def same_length(self, one: tuple[Dim, ...], other: tuple[Dim, ...]) -> bool:
        (low, high), alike = self._length(one), self._length(one) == self._length(other)
        return alike and (low == high or self._root(one) == self._root(other))

    def _length(self, dims: tuple[Dim, ...]) -> tuple[int, int]:
        lists = [self._symbols[dim.symbol] for dim in dims if dim.is_list]
        single = len(dims) - len(lists)
        least, most = ([one.all_lengths[end] for one in lists] for end in (0, 1))
        return single + sum(least), single + sum(most)

    def _root(self, dims: tuple[Dim, ...]) -> list[str]:
        """Whose lengths they have."""
        lists = [self._symbols[dim.symbol] for dim in dims if dim.is_list]
        return [symbol.length_of or symbol.name for symbol in lists]

    def _is_multiple(self, dims: tuple[Dim, ...], divisor: str) -> bool:
        """It is said to be one, or the shape of an input divides it."""
        name = dims[0].symbol
        if name and self._symbols[name].multiple_of == divisor:
            return True
        inputs = [tensor for tensor in self._op.inputs if not self._scope.may_be_absent(tensor)]
        dims_of_inputs = [dim for tensor in inputs for dim in tensor.shape]
        return any(name and (dim.symbol, dim.divisor) == (name, divisor) for dim in dims_of_inputs)

    def _finding(self, message: str, dims: tuple[Dim, ...], key: str, limit: Limit) -> Finding:
        return Finding(message, self._place(dims, key), (_note(self._op, limit),))

    def _place(self, dims: tuple[Dim, ...], key: str) -> Span:
        """The symbol's entry, or the first shape that has the dims."""
        if len(dims) == 1 and dims[0].symbol in self._scope.draft.declared:
            return self._symbols[dims[0].symbol].at(key)
        for tensor in self._scope.tensors:
            if tensor.shape and not tensor.shape_source and set(dims) <= set(tensor.shape):
                return tensor.at("shape")
        return self._op.at("inputs")


def _text(dims: tuple[Dim, ...]) -> str:
    return ", ".join([dim.symbol or dim.text for dim in dims])


def _range(low: float, high: float) -> str:
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _number(value: float) -> str:
    """As the schema may have it: 1, 0.5 or 1.0e-05."""
    text = f"{value:.0f}" if value.is_integer() and abs(value) < 2**53 else repr(value)
    return text if "." in text else text.replace("e", ".0e")


def _reaches_below(attribute: Attribute, least: float) -> bool:
    """Where it has no 'min', it may be any finite number."""
    return least > -math.inf if attribute.minimum is None else attribute.minimum < least


def _reaches_above(attribute: Attribute, most: float) -> bool:
    return most < math.inf if attribute.maximum is None else attribute.maximum > most


def _attribute_problems(
    op: Op, attribute: Attribute, limit: Limit, symbols: _Symbols | None
) -> Iterator[tuple[str, str]]:
    """What is wrong, and at which key."""
    takes = f"kernel {op.kernel} takes"
    least, most = limit.minimum, limit.maximum
    if limit.axis_of and attribute.axis_of != limit.axis_of:
        remedy = f"write 'axis_of: {limit.axis_of}'"
        yield f"is an axis of '{limit.axis_of}' to kernel {op.kernel}; {remedy}", "axis_of"
    if least is not None and _reaches_below(attribute, least):
        said = _number(least)
        yield f"may be less than {said}, which is the least that {takes}; write 'min: {said}'", "min"
    if most is not None and _reaches_above(attribute, most):
        said = _number(most)
        yield f"may be more than {said}, which is the most that {takes}; write 'max: {said}'", "max"
    dims = symbols.dims_of(limit.length.symbol) if symbols and limit.length else None
    if symbols and limit.length and dims:
        yield from _length_problems(attribute, limit.length, dims, symbols, takes)


def _length_problems(
    attribute: Attribute, length: LengthRule, dims: tuple[Dim, ...], symbols: _Symbols, takes: str
) -> Iterator[tuple[str, str]]:
    given = attribute.length
    expected = f"{length.factor} * {_text(dims)}" if length.factor > 1 else _text(dims)
    if len(dims) != 1 or not dims[0].is_list:
        yield f"can have no length of '{_text(dims)}', as {takes} it; make that a list symbol", "length"
    elif given is None:
        yield f"has no length, and {takes} {expected}; write 'length: {expected}'", "length"
    elif given.factor != length.factor or not symbols.has_length_of(given.symbol, dims):
        has = f"{given.factor} * {given.symbol}" if given.factor > 1 else given.symbol
        yield f"has the length {has}; {takes} {expected}", "length"
