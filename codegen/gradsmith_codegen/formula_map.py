"""Whether the pattern `map` computes formulas whose tensors have dims that are aligned at their ends."""

from __future__ import annotations

from collections.abc import Iterator

from .broadcasting import is_broadcast, is_sum, joined, lead
from .formula_misfit import MAX_MAP_TENSORS, MAX_SCALARS, Problem
from .formula_tree import Index, Reduce, parts
from .model import Formula, Op, Tensor
from .suggestions import listing


def problems(op: Op) -> list[Problem]:
    """Why it does not; none where it does."""
    return [*(list(_nested_reductions(op)) or _of_tensors(op)), *_over_the_limits(op)]


def _of_tensors(op: Op) -> Iterator[Problem]:
    sums = {formula.name: formula for formula in op.formulas if is_sum(formula)}
    whole = lead(op)
    words = op.bits
    optional = next((one for one in op.read_inputs if one.optional), None)
    if optional and not _is_told_by_others(op, whole):
        dims = f"tells the dims, {whole.shape_text}, and the type"
        message = f"'{optional.name}' is optional, and no input that is always there {dims}"
        yield f"the formulas fit no pattern: {message}", optional.span
        return
    for tensor in (*[one for one in op.inputs if one not in words], *op.outputs):
        is_summed = tensor in op.outputs and tensor.name in sums
        problem = (
            _tensor_problem(tensor)
            or _type_problem(op, tensor, whole)
            or (
                _sum_problem(op, sums[tensor.name], tensor, whole)
                if is_summed
                else _shape_problem(op, tensor, whole)
            )
        )
        if problem:
            yield f"the formulas fit no pattern: {problem}", tensor.span


def _is_told_by_others(op: Op, whole: Tensor) -> bool:
    """Inputs that are always there say which dims and which type a call has."""
    numbers = [one for one in op.inputs if not one.optional and not one.is_mask and one not in op.bits]
    together = joined(op, whole.shape)
    bound = {one.shape[0].symbol for one in numbers if len(one.shape) == 1}
    return any(one.shape == whole.shape for one in numbers) or (bool(together) and bound >= set(together))


def _over_the_limits(op: Op) -> Iterator[Problem]:
    count, scalars = len(op.inputs) + len(op.outputs), len(op.scalars) + len(op.givens)
    if count > MAX_MAP_TENSORS:
        message = f"the formulas fit no pattern: a map has {MAX_MAP_TENSORS} tensors at most, not {count}"
        yield message, op.at("formulas")
    if scalars > MAX_SCALARS:
        message = f"the formulas read {scalars} attributes; a map is given {MAX_SCALARS} at most"
        yield message, op.at("formulas")


def _nested_reductions(op: Op) -> Iterator[Problem]:
    outputs = {tensor.name for tensor in op.outputs}
    for tensor in op.bits if op.has_sums else ():
        yield f"no map sums and reads bits, as those of '{tensor.name}'", tensor.span
    for formula in op.formulas:
        for part in parts(formula.tree):
            if isinstance(part, Index):
                message = f"no map tells places along '{part.dim.name}'"
                yield message, formula.place(part)
            is_whole = part is formula.tree and is_sum(formula) and formula.name in outputs
            if isinstance(part, Reduce) and not is_whole:
                over = f" over {listing([dim.name for dim in part.dims])}" if part.dims else ""
                message = (
                    f"no pattern schedules '{part.operation}'{over} here: a map computes elements from those "
                    "at their place, and can sum what an output is as a whole"
                )
                yield message, formula.place(part)


def _tensor_problem(tensor: Tensor) -> str:
    if tensor.list:
        return f"a map has single tensors, and '{tensor.name}' is a list"
    if tensor.may_be_on_host:
        return f"a map reads its inputs on the device, and '{tensor.name}' may lie on the host"
    return ""


def _type_problem(op: Op, tensor: Tensor, whole: Tensor) -> str:
    if tensor.is_mask and tensor in op.inputs:
        return ""
    if tensor.type != whole.type:
        return (
            f"a map has one element type, and '{tensor.name}' is {tensor.type}, '{whole.name}' {whole.type}"
        )
    others = [one.value for one in op.types_of(tensor) if not one.is_floating]
    if tensor is whole and others:
        return f"a map computes floating numbers, and '{tensor.name}' is {listing(others)}"
    return ""


def _shape_problem(op: Op, tensor: Tensor, whole: Tensor) -> str:
    if tensor in op.outputs and tensor.shape != whole.shape:
        shapes = f"'{tensor.name}' is {tensor.shape_text}, '{whole.name}' {whole.shape_text}"
        remedy = "; write 'sum(...)'" if is_broadcast(op, tensor.shape, whole.shape) else ""
        return f"a map's outputs are alike, and {shapes}{remedy}"
    if not is_broadcast(op, tensor.shape, whole.shape):
        return (
            f"'{tensor.name}' of {tensor.shape_text} is not broadcast to '{whole.name}' of {whole.shape_text}"
        )
    return ""


def _sum_problem(op: Op, formula: Formula, tensor: Tensor, whole: Tensor) -> str:
    """The oracle takes the dims of a sum from an input that is broadcast to what is summed."""
    is_like_an_input = any(one.shape == tensor.shape and not one.optional for one in op.inputs)
    if not is_like_an_input or not is_broadcast(op, tensor.shape, whole.shape):
        return f"'{tensor.name}' of {tensor.shape_text} is a sum, and no input of that shape is broadcast"
    over = {dim.name for dim in formula.tree.dims} if isinstance(formula.tree, Reduce) else set()
    lacking = whole.shape.symbols - tensor.shape.symbols
    if not lacking or (over and over != lacking):  # of other dims, which have names, rows tell more
        return f"'{tensor.name}' is a sum, and lacks no dim of '{whole.name}'"
    return ""
