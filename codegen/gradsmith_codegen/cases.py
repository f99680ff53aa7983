"""Works out the shapes of all tensors of a test case, as the runtime will: given shapes bind the symbols,
shape rules compute the others, and every declared shape follows."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import cast

from . import scalars, shape_rules
from .diagnostics import counted
from .lists import MAX_LENGTH, list_of, spelled_out
from .model import AttributeValue, Case, Op, Symbol, Tensor
from .shape_rules import Dims, ImpossibleShape, SymbolValue
from .shapes import Dim, DimKind

MAX_ELEMENTS = 2**31 - 1  # of a tensor in a test


class Impossible(Enum):
    """Why a case cannot be."""

    RANK = auto()  # a shape has too few or too many dims
    MISMATCH = auto()  # two shapes disagree
    DIVISION = auto()  # channels that the divisor does not divide
    ATTRIBUTE_LENGTH = auto()  # a list attribute does not fit the spatial dims
    RULE = auto()  # a shape rule or the kernel refuses
    INCOMPLETE = auto()  # a shape does not follow from what is given
    VALUE = auto()  # an attribute's value is none that it may have
    AXIS = auto()  # an attribute is no axis of the tensor that it is one of
    SIZE = auto()  # a negative dim, or too many elements


@dataclass(eq=False)
class Problem(Exception):
    """`key` is the entry of the case that is at fault, `other` one that disagrees with it, `symbol` one whose
    shape rule is at fault; each may be absent."""

    reason: Impossible
    message: str
    key: str = ""
    other: str = ""
    symbol: str = ""


def all_shapes(op: Op, case: Case) -> tuple[tuple[str, Dims], ...]:
    """Name and shape of every input, then of every output; of a list those of its tensors. Raises Problem."""
    return _Evaluation(spelled_out(op, _list_length(op, case)) if op.has_lists else op, case).run()


def _list_length(op: Op, case: Case) -> int:
    """How many tensors the lists have in this case."""
    counts = Counter([list_of(name) for name, _ in case.shapes if list_of(name) != name])
    if not counts:
        names = " or ".join([f"'{tensor.name}'" for tensor in op.inputs + op.outputs if tensor.list])
        raise Problem(Impossible.INCOMPLETE, f"nothing tells how many tensors {names} has")
    (first, length), *others = counts.items()
    for name, count in others:
        if count != length:
            message = (
                f"'{name}' has {counted(count, 'tensor')}, and '{first}' {length}: lists have one length"
            )
            raise Problem(Impossible.MISMATCH, message, name, first)
    if length > MAX_LENGTH:
        raise Problem(Impossible.SIZE, f"'{first}' has {length} tensors, more than {MAX_LENGTH}", first)
    return length


class _Evaluation:
    def __init__(self, op: Op, case: Case) -> None:
        self._case = case
        self._given = dict(case.shapes)
        self._attributes: dict[str, AttributeValue] = {
            a.name: a.default for a in op.attributes if a.default is not None
        }
        self._attributes.update(case.attributes)
        self._declared = op
        self._op = self._with_dims_of_case(op)
        self._symbols = {symbol.name: symbol for symbol in op.symbols}
        self._values: dict[str, SymbolValue] = {}
        self._axes: dict[str, int] = {}  # attributes that are axes, counted from the first dim
        self._origins: dict[str, str] = {}  # the entry of the case that bound a symbol
        self._ceilings: list[tuple[Tensor, Dim, int]] = []  # given for ceil(N / 32), to be compared at last

    def _with_dims_of_case(self, op: Op) -> Op:
        """The operator with the dims that are there with the case's attributes."""
        condition = op.condition
        if condition is None:
            return op
        holds = condition.holds(self._attributes)

        def those_there(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            return tuple([replace(one, shape=one.shape.where(holds)) for one in tensors])

        return replace(op, inputs=those_there(op.inputs), outputs=those_there(op.outputs))

    def run(self) -> tuple[tuple[str, Dims], ...]:
        given, op = self._given, self._op
        if given:
            self._check_sizes(self._case.shapes)
            self._set_axes()
            self._bind_all([tensor for tensor in op.inputs + op.outputs if tensor.name in given])
        self._check_promises()
        for symbol in op.symbols:
            if symbol.given_by:
                self._take_given(symbol)
        self._check_promises()
        for symbol in op.symbols:
            if symbol.rule:
                self._apply_rule(symbol)
        self._check_promises()
        known: dict[int, Dims] = {}
        shapes = []
        for tensor in op.inputs + op.outputs:
            shape = known.get(id(tensor.shape))
            if shape is None:
                shape = known[id(tensor.shape)] = self._expand(tensor)
            shapes.append((tensor.name, shape))
        self._check_ceilings()
        self._check_sizes(shapes)
        return tuple(shapes)

    # -- Axes ---

    def _set_axes(self) -> None:
        """Attributes that are axes of an input, counted from its first dim; one that is counted from the last
        hangs on the input's rank."""
        for attribute in self._op.attributes:
            if not attribute.axis_of:
                continue
            axis, rank = self._integer(attribute.name), self._rank_of(attribute.axis_of)
            if rank is not None and not -rank <= axis < rank:
                ranges = f"from {-rank} to {rank - 1}" if rank else "of which it has none"
                message = f"'{attribute.name}' is {axis}; it is an axis of '{attribute.axis_of}', {ranges}"
                raise Problem(Impossible.AXIS, message, self._key_of(attribute.name), attribute.axis_of)
            if axis >= 0 or rank is not None:
                self._axes[attribute.name] = axis if axis >= 0 else axis + cast(int, rank)

    def _rank_of(self, name: str) -> int | None:
        """Of an input that the case gives, or one of the same shape."""
        declared = next(tensor.shape for tensor in self._op.inputs if tensor.name == name)
        alike = [tensor.name for tensor in self._op.inputs + self._op.outputs if tensor.shape == declared]
        return next((len(self._given[other]) for other in [name, *alike] if other in self._given), None)

    def _key_of(self, attribute: str) -> str:
        return attribute if attribute in dict(self._case.attributes) else ""

    # -- Symbols from shapes ---

    def _bind_all(self, tensors: list[Tensor]) -> None:
        """A shape of several lists waits for the tensor that tells where these end."""
        while tensors:
            waiting = [tensor for tensor in tensors if len(self._lists_without_length(tensor)) > 1]
            if len(waiting) == len(tensors):
                names = " and ".join([dim.symbol for dim in self._lists_without_length(tensors[0])])
                message = f"nothing that is given tells how many dims {names} of '{tensors[0].name}' have"
                raise Problem(Impossible.INCOMPLETE, message, tensors[0].name)
            for tensor in tensors:
                if tensor not in waiting:
                    self._bind(tensor, self._given[tensor.name])
            tensors = waiting

    def _lists_without_length(self, tensor: Tensor) -> list[Dim]:
        return [dim for dim in tensor.shape.lists if self._known_length(dim.symbol) is None]

    def _known_length(self, name: str) -> int | None:
        """What an axis, another tensor or the schema says of a list's length."""
        symbol = self._symbols[name]
        if symbol.length_axis:
            return self._axes.get(symbol.length_axis)
        length = self._length(name)
        return symbol.fixed_length(self._condition_holds(symbol)) if length is None else length

    def _lengths_of(self, symbol: Symbol) -> tuple[int, int]:
        """What the schema says of a list's length with the case's attributes."""
        return symbol.lengths(self._condition_holds(symbol))

    def _condition_holds(self, symbol: Symbol) -> bool:
        return bool(symbol.length_if and self._attributes.get(symbol.length_if.attribute))

    def _condition_of(self, tensor: Tensor) -> str:
        """What lengths of a shape hang on, for messages."""
        lists = [self._symbols[dim.symbol] for dim in tensor.shape.lists]
        names = dict.fromkeys([one.length_if.attribute for one in lists if one.length_if])
        told = [f" where '{one}' is {str(bool(self._attributes.get(one))).lower()}" for one in names]
        declared = (*self._declared.inputs, *self._declared.outputs)
        condition = next(one.shape.condition for one in declared if one.name == tensor.name)
        if condition:
            value = self._attributes.get(condition.attribute)
            told.append(
                f" where '{condition.attribute}' is {str(value).lower() if value in (True, False) else value}"
            )
        return "".join(told)

    def _bind(self, tensor: Tensor, shape: Dims) -> None:
        """Matches a shape with the declared one: free symbols take its dims, bound ones must agree."""
        axis = 0
        if len(tensor.shape.lists) <= 1:
            rest = len(shape) - sum(not dim.is_list for dim in tensor.shape)
            self._check_rank(tensor, shape, rest)
            lengths = {dim.symbol: rest for dim in tensor.shape.lists}
        else:
            lengths = self._lengths(tensor, shape)
        for dim in tensor.shape:
            if dim.is_list:
                list_length = lengths[dim.symbol]
                self._set(tensor, dim.symbol, shape[axis : axis + list_length])
                axis += list_length
                continue
            if dim.kind is DimKind.SYMBOL:
                self._set(tensor, dim.symbol, shape[axis])
            elif dim.kind is DimKind.QUOTIENT:
                self._bind_quotient(tensor, dim, shape[axis])
            elif dim.kind is DimKind.CEIL:
                self._ceilings.append((tensor, dim, shape[axis]))
            elif dim.constant != shape[axis]:
                message = f"dim {axis} of '{tensor.name}' must be {dim.constant}, not {shape[axis]}"
                raise Problem(Impossible.MISMATCH, message, tensor.name)
            axis += 1

    def _lengths(self, tensor: Tensor, shape: Dims) -> dict[str, int]:
        """How many dims each of several lists has: the one that is not known otherwise has the rest."""
        known = {dim.symbol: self._known_length(dim.symbol) for dim in tensor.shape.lists}
        single = len(tensor.shape) - len(tensor.shape.lists)
        rest = len(shape) - single - sum([length or 0 for length in known.values()])
        lengths = {name: rest if length is None else length for name, length in known.items()}
        bounds = {name: self._lengths_of(self._symbols[name]) for name in lengths}
        fits = all(bounds[name][0] <= length <= bounds[name][1] for name, length in lengths.items())
        if not fits or single + sum(lengths.values()) != len(shape):
            is_so = f"is {tensor.shape_text}{self._condition_of(tensor)}"
            message = f"'{tensor.name}' {is_so} and cannot have rank {len(shape)}"
            raise Problem(Impossible.RANK, message, tensor.name)
        return lengths

    def _check_rank(self, tensor: Tensor, shape: Dims, list_length: int) -> None:
        minimum = maximum = 0
        origin = ""
        for dim in tensor.shape:
            if dim.is_list:
                symbol = self._symbols[dim.symbol]
                minimum, maximum = self._lengths_of(symbol)
                bound = next((name for name in (symbol.name, symbol.length_of) if name in self._values), "")
                if symbol.length_axis in self._axes:
                    minimum = maximum = self._axes[symbol.length_axis]
                elif bound:
                    minimum = maximum = len(self._dims(bound))
                    origin = self._origins.get(bound, "")
        fixed = len(shape) - list_length
        if not minimum <= list_length <= maximum:
            ranks = str(fixed + minimum) if minimum == maximum else f"{fixed + minimum} to {fixed + maximum}"
            is_so = f"is {tensor.shape_text}{self._condition_of(tensor)}"
            message = f"'{tensor.name}' {is_so} and must have rank {ranks}, not {len(shape)}"
            raise Problem(Impossible.RANK, message, tensor.name, origin)

    def _bind_quotient(self, tensor: Tensor, dim: Dim, size: int) -> None:
        divisor = self._integer(dim.divisor)
        whole = self._values.get(dim.symbol)
        if whole is None:
            self._set(tensor, dim.symbol, size * divisor)
        elif self._quotient(dim) != size:
            message = f"'{tensor.name}' has {size} where {dim.text} is {self._quotient(dim)}"
            raise Problem(Impossible.MISMATCH, message, tensor.name, self._origins.get(dim.symbol, ""))

    def _set(self, tensor: Tensor, name: str, value: SymbolValue) -> None:
        known = self._values.setdefault(name, value)
        if known != value:
            message = f"'{tensor.name}' makes {name} {_text(value)}, but it is {_text(known)}"
            raise Problem(Impossible.MISMATCH, message, tensor.name, self._origins.get(name, ""))
        self._origins.setdefault(name, tensor.name)

    # -- Attributes and rules ---

    def _check_promises(self) -> None:
        """What the schema says of symbols that have a value by now."""
        self._check_attribute_lengths()
        for symbol in self._op.symbols:
            if symbol.multiple_of:
                self._check_multiple(symbol)
            if symbol.broadcast_to:
                self._check_broadcast(symbol)

    def _check_attribute_lengths(self) -> None:
        for attribute in self._op.attributes:
            if not attribute.kind.is_list or not attribute.length:
                continue
            value = self._attributes.get(attribute.name)
            length = self._length(attribute.length.symbol)
            if not value or length is None:
                continue
            count, expected = len(value) if isinstance(value, tuple) else 1, attribute.length.factor * length
            if count != expected:
                name, factor = attribute.length.symbol, attribute.length.factor
                per = f"{factor} for each of the" if factor > 1 else "one for each of the"
                entries = f"{expected} entries, {per} {length} dims of {name}"
                message = f"'{attribute.name}' must have {entries}, not {count}"
                raise Problem(Impossible.ATTRIBUTE_LENGTH, message, attribute.name)

    def _length(self, name: str) -> int | None:
        """What symbols that have a value say of a list's length."""
        root = self._symbols[name].length_of or name
        alike = [one.name for one in self._op.symbols if root in (one.name, one.length_of)]
        return next((len(self._dims(one)) for one in alike if one in self._values), None)

    def _check_multiple(self, symbol: Symbol) -> None:
        divisor, value = self._integer(symbol.multiple_of), self._values.get(symbol.name, 0)
        if isinstance(value, int) and value % divisor:
            raise self._indivisible(symbol.multiple_of, symbol.name)

    def _take_given(self, symbol: Symbol) -> None:
        """The dims that an attribute gives."""
        value = self._attributes.get(symbol.given_by, ())
        if isinstance(value, int) and not symbol.is_list:
            self._set_given(symbol, value)
            return
        if not isinstance(value, tuple) or not value:
            return
        length = self._known_length(symbol.name)
        least, most = self._lengths_of(symbol) if length is None else (length, length)
        fits = least <= len(value) <= most
        known = cast(Dims, self._give(symbol, cast(Dims, value)))
        if not fits or known != value:
            message = f"'{symbol.given_by}' gives {symbol.name} as {list(value)}, and it is {_text(known)}"
            many = f"'{symbol.given_by}' gives {symbol.name} {len(value)} dims, which it cannot have"
            key, origin = self._key_of(symbol.given_by), self._origins.get(symbol.name, "")
            raise Problem(Impossible.MISMATCH, message if fits else many, key, origin)

    def _set_given(self, symbol: Symbol, value: int) -> None:
        """The single dim that an attribute is."""
        known = self._give(symbol, value)
        if known != value:
            message = f"'{symbol.given_by}' gives {symbol.name} as {value}, and it is {_text(known)}"
            origin = self._origins.get(symbol.name, "")
            raise Problem(Impossible.MISMATCH, message, self._key_of(symbol.given_by), origin)

    def _give(self, symbol: Symbol, value: SymbolValue) -> SymbolValue:
        """What a symbol is once an attribute has given it a value."""
        if symbol.name not in self._values:
            self._values[symbol.name] = value
            self._origins[symbol.name] = self._key_of(symbol.given_by)
        return self._values[symbol.name]

    def _check_broadcast(self, symbol: Symbol) -> None:
        dims, whole = self._values.get(symbol.name), self._values.get(symbol.broadcast_to)
        if not isinstance(dims, tuple) or not isinstance(whole, tuple):
            return
        fits = len(dims) <= len(whole) and all(
            dim in (1, other) for dim, other in zip(dims[::-1], whole[::-1], strict=False)
        )
        if not fits:
            target = f"{symbol.broadcast_to} = {_text(whole)}"
            message = f"{symbol.name} = {_text(dims)} does not broadcast to {target}"
            origin = self._origins.get(symbol.name, "")
            raise Problem(Impossible.MISMATCH, message, origin, self._origins.get(symbol.broadcast_to, ""))

    def _apply_rule(self, symbol: Symbol) -> None:
        rule = symbol.rule
        if rule is None or not shape_rules.knows(rule):
            return
        arguments = [self._values[name] for name in rule.arguments if name in self._values]
        if len(arguments) < len(rule.arguments):
            return
        try:
            value = shape_rules.apply(rule, self._attributes, arguments)
        except ImpossibleShape as problem:
            raise Problem(Impossible.RULE, str(problem), problem.attribute) from None
        known = self._values.setdefault(symbol.name, value)
        if known != value:
            origin = self._origins.get(symbol.name, "")
            message = f"'{origin}' makes {symbol.name} {_text(known)}, but {rule.text} is {_text(value)}"
            raise Problem(Impossible.MISMATCH, message, origin)

    # -- Shapes from symbols ---

    def _expand(self, tensor: Tensor) -> Dims:
        shape: list[int] = []
        for dim in tensor.shape:
            if dim.kind is DimKind.CONSTANT:
                shape.append(dim.constant)
                continue
            value = self._values.get(dim.symbol)
            if value is None:
                raise self._incomplete(tensor, dim)
            if dim.kind is DimKind.QUOTIENT:
                shape.append(self._quotient(dim))
            elif dim.kind is DimKind.CEIL:
                shape.append(self._ceiling(dim))
            elif isinstance(value, tuple):
                shape.extend(value)
            else:
                shape.append(value)
        return tuple(shape)

    def _incomplete(self, tensor: Tensor, dim: Dim) -> Problem:
        rule = self._symbols[dim.symbol].rule
        if rule and not shape_rules.knows(rule):
            need = f"a case must give a shape that has {dim.symbol}"
            message = f"the generator cannot work out {rule.text}, so {need}"
            return Problem(Impossible.INCOMPLETE, message, symbol=dim.symbol)
        why = f"nothing that is given sets {dim.symbol}"
        return Problem(Impossible.INCOMPLETE, f"the shape of '{tensor.name}' cannot be worked out: {why}")

    def _quotient(self, dim: Dim) -> int:
        divisor, whole = self._integer(dim.divisor), self._values[dim.symbol]
        if not isinstance(whole, int) or whole % divisor:
            raise self._indivisible(dim.divisor, dim.symbol)
        return whole // divisor

    def _ceiling(self, dim: Dim) -> int:
        """Of a dim whose symbol has a value, as it has where the tensor's shape could be worked out."""
        value = self._values[dim.symbol]
        return -(-(math.prod(value) if isinstance(value, tuple) else value) // dim.constant)

    def _check_ceilings(self) -> None:
        for tensor, dim, size in self._ceilings:
            if self._ceiling(dim) != size:
                message = f"'{tensor.name}' has {size} where {dim.text} is {self._ceiling(dim)}"
                raise Problem(Impossible.MISMATCH, message, tensor.name, self._origins.get(dim.symbol, ""))

    def _indivisible(self, attribute: str, symbol: str) -> Problem:
        divisor, whole = self._integer(attribute), self._values[symbol]
        key = attribute if attribute in dict(self._case.attributes) else ""
        message = f"{attribute} {divisor} does not divide {symbol} = {_text(whole)}"
        return Problem(Impossible.DIVISION, message, key, self._origins.get(symbol, ""))

    def _check_sizes(self, shapes: tuple[tuple[str, Dims], ...] | list[tuple[str, Dims]]) -> None:
        for name, shape in shapes:
            if shape and min(shape) < 0:
                raise Problem(Impossible.SIZE, f"'{name}' has a negative dim: {_text(shape)}", name)
            if _has_more(shape, MAX_ELEMENTS):
                message = f"'{name}' of shape {_text(shape)} has more than {MAX_ELEMENTS} elements"
                raise Problem(Impossible.SIZE, message, name)

    # -- Values ---

    def _integer(self, attribute: str) -> int:
        value = self._attributes[attribute]
        return value if isinstance(value, int) else 1

    def _dims(self, symbol: str) -> Dims:
        value = self._values[symbol]
        return value if isinstance(value, tuple) else (value,)


def _has_more(shape: Dims, limit: int) -> bool:
    """Whether a tensor of this shape has more elements than the limit."""
    elements = 1
    for size in () if 0 in shape else shape:
        elements *= size
        if elements > limit:
            return True
    return False


def _text(value: SymbolValue) -> str:
    return scalars.list_text(value) if isinstance(value, tuple) else str(value)
