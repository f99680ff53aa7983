"""How the tensors of formulas broadcast to each other, by their declared shapes."""

from __future__ import annotations

from .formula_tree import Reduce
from .model import Formula, Op, Symbol, Tensor
from .shapes import Shape


def is_sum(formula: Formula) -> bool:
    """The formula sums what its output is as a whole."""
    return isinstance(formula.tree, Reduce) and formula.tree.operation == "sum"


def lead(op: Op) -> Tensor:
    """The tensor that has an element at each place where the formulas are evaluated: all others are broadcast
    to it. Where there is none, the first that should be."""
    sums = {formula.name for formula in op.formulas if is_sum(formula)}
    words = op.bits
    inputs = [tensor for tensor in op.inputs if tensor not in words]
    numbers = [tensor for tensor in inputs if not tensor.is_mask and not tensor.optional]
    candidates = [*[tensor for tensor in op.outputs if tensor.name not in sums], *numbers, *inputs]
    shapes = {tensor.shape for tensor in (*inputs, *op.outputs)}
    wholes = (one for one in candidates if all(is_broadcast(op, shape, one.shape) for shape in shapes))
    return next(wholes, candidates[0])


def is_broadcast(op: Op, shape: Shape, to: Shape) -> bool:
    """Dims are aligned at their ends."""
    if shape == to:
        return True
    if len(shape) == len(to) == 1 and shape[0].is_list and to[0].is_list:
        symbol, whole = _symbol(op, shape[0].symbol), _symbol(op, to[0].symbol)
        return symbol.broadcast_to == whole.name or symbol.name in joined(op, to)
    return len(shape) <= len(to) and tuple(shape) == tuple(to)[len(to) - len(shape) :]


def joined(op: Op, shape: Shape) -> tuple[str, ...]:
    """The list symbols that broadcast together to the shape by the rule `broadcast`; none without it."""
    rule = _symbol(op, shape[0].symbol).rule if len(shape) == 1 and shape[0].is_list else None
    return rule.arguments if rule and rule.is_broadcast else ()


def _symbol(op: Op, name: str) -> Symbol:
    return next(symbol for symbol in op.symbols if symbol.name == name)
