"""Dims that are two to formulas: channels are groups of them by `C: {multiple_of: groups, split: [G, K]}`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .formula_conditions import unconditional
from .model import Op, Symbol, Tensor
from .shapes import Dim, DimKind, Shape


@dataclass(frozen=True, slots=True)
class SplitDim:
    """A dim of an argument that is cut in two."""

    tensor: Tensor
    argument: int  # its number among the inputs, or the outputs
    is_output: bool
    dim: int  # counted from the last, less than 0, where a list stands before it
    attribute: str  # as many are the first of the two


def unfolded(op: Op) -> Op:
    """The operator as its formulas see it: the tensors have both dims in the place of one that is split, and
    dims that hang on an attribute as formula_conditions.py says."""
    op = unconditional(op)
    splits = _splits(op)
    if not splits:
        return op
    symbols = {one.name: one for one in op.symbols if one.name not in splits}
    for symbol in splits.values():
        for name in symbol.split:
            symbols.setdefault(name, Symbol(name, False, symbol.origin))
    return replace(
        op,
        inputs=tuple([_with_both(tensor, splits) for tensor in op.inputs]),
        outputs=tuple([_with_both(tensor, splits) for tensor in op.outputs]),
        symbols=tuple(symbols.values()),
    )


def split_dims(op: Op) -> list[SplitDim]:
    """What a call's arguments have, that of one tensor from the last to the first."""
    splits = _splits(op)
    found = []
    for tensors in (op.inputs, op.outputs):
        for argument, tensor in enumerate(tensors):
            for at, dim in reversed(list(enumerate(tensor.shape))):
                if _is_split(dim, splits):
                    place, attribute = _place(tensor.shape, at), splits[dim.symbol].multiple_of
                    found.append(SplitDim(tensor, argument, tensors is op.outputs, place, attribute))
    return found


def _splits(op: Op) -> dict[str, Symbol]:
    return {symbol.name: symbol for symbol in op.symbols if symbol.split}


def _is_split(dim: Dim, splits: dict[str, Symbol]) -> bool:
    return dim.kind is DimKind.SYMBOL and dim.symbol in splits


def _place(shape: Shape, at: int) -> int:
    return at - len(shape) if any(dim.is_list for dim in shape[:at]) else at


def _with_both(tensor: Tensor, splits: dict[str, Symbol]) -> Tensor:
    dims: list[Dim] = []
    places = []
    for dim, place in zip(tensor.shape, tensor.dim_places, strict=True):
        both = splits[dim.symbol].split if _is_split(dim, splits) else ()
        dims += [Dim(DimKind.SYMBOL, name, symbol=name) for name in both] or [dim]
        places += [place] * max(len(both), 1)
    return replace(tensor, shape=Shape(dims), dim_places=places)
