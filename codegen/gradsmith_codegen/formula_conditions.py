"""Dims that are there only where an attribute has a value, as formulas see them: `N if reduction == none`.

An input has all its dims: along those that a call lacks it is the same. An output that has such dims is two,
of which a call has one; the formula of each is what the output's is where the condition holds, or does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from .formula_dims import NamedDims
from .formula_misfit import Problem
from .formula_tree import FUNCTIONS, OPERATORS, Apply, Chosen, Name, Reduce, Tree
from .model import Formula, Op, Tensor
from .shapes import Condition, DimKind, Shape

_WHERE, _NOT, _AND, _OR = FUNCTIONS["where"], OPERATORS["not"], OPERATORS["and"], OPERATORS["or"]


def unconditional(op: Op) -> Op:
    """The operator as its formulas see it. Outputs that are two come in their places where the condition does
    not hold, and behind all others where it does."""
    condition = op.condition
    if not condition:
        return op
    twofold = {tensor.name: whole_name(op, tensor) for tensor in op.outputs if tensor.shape.condition}
    formulas: list[Formula] = []
    for formula in op.formulas:
        if formula.name not in twofold:
            formulas.append(formula)
            continue
        for holds, name in ((False, formula.name), (True, twofold[formula.name])):
            formulas.append(replace(formula, name=name, tree=_where(formula.tree, condition, holds)))
    lacking = tuple([_where_it_holds(one, False) for one in op.outputs])
    whole = [
        replace(_where_it_holds(one, True), name=twofold[one.name])
        for one in op.outputs
        if one.name in twofold
    ]
    return replace(
        op,
        inputs=tuple([_with_all_dims(tensor) for tensor in op.inputs]),
        outputs=(*lacking, *whole),
        formulas=tuple(formulas),
    )


def whole_name(op: Op, tensor: Tensor) -> str:
    """What an output is called where the condition holds: a name that nothing else has."""
    taken = {one.name for one in (*op.inputs, *op.outputs)} | {one.name for one in op.attributes}
    taken |= {one.name for one in op.symbols} | {one.name for one in op.formulas}
    condition = tensor.shape.condition
    name = f"{tensor.name}_{(condition.value or condition.attribute) if condition else ''}"
    while name in taken:
        name += "_"
    return name


def _where_it_holds(tensor: Tensor, holds: bool) -> Tensor:
    if not tensor.shape.condition:
        return tensor
    shape = tensor.shape.where(holds)
    return replace(tensor, shape=shape, dim_places=(tensor.origin,) * len(shape))


def _with_all_dims(tensor: Tensor) -> Tensor:
    """Dims of 1 that are not always there have no name, and need none."""
    if not tensor.shape.condition:
        return tensor
    kept = [dim for dim in tensor.shape if not dim.condition or dim.kind is not DimKind.CONSTANT]
    return replace(
        tensor,
        shape=Shape([dim.without_condition for dim in kept]),
        dim_places=(tensor.origin,) * len(kept),
        may_lack_dims=True,
    )


@dataclass(frozen=True, slots=True)
class SpreadInput:
    """An input that is given the dims that it lacks."""

    tensor: Tensor
    argument: int
    whole: str  # the numbers of its dims' names where the condition holds
    lacking: str  # and where it does not
    names: str  # all that it is given, as a set in C++


def spread_inputs(op: Op, dims: NamedDims) -> list[SpreadInput]:
    """Of an operator as it is declared."""
    return [
        SpreadInput(
            tensor,
            place,
            dims.listed(tensor.shape.where(True)),
            dims.listed(tensor.shape.where(False)),
            dims.set_of(tensor.shape.symbols),
        )
        for place, tensor in enumerate(op.inputs)
        if tensor.shape.condition
    ]


def twofold_outputs(op: Op) -> list[tuple[Tensor, int]]:
    """The outputs that are two, and their numbers, in the order in which others stand behind."""
    return [(tensor, place) for place, tensor in enumerate(op.outputs) if tensor.shape.condition]


def problems(op: Op) -> Iterator[Problem]:
    """Why formulas do not fit though each by itself does. An element of an input that is spread is read at
    many places; and dims of which one is two are told by where they stand."""
    spread = {tensor.name for tensor in op.inputs if tensor.shape.condition}
    for tensor in op.outputs:
        if tensor.in_place_of in spread:
            message = f"'{tensor.name}' is in place of '{tensor.in_place_of}', which lacks dims in some calls"
            yield f"the formulas fit no pattern: {message}", tensor.at("in_place_of")
    split = next((one for one in op.symbols if one.split), None)
    if split and op.condition:
        message = f"'{split.name}' is two dims, and no others hang on an attribute beside such"
        yield f"the formulas fit no pattern: {message}", split.at("split")


def _where(tree: Tree, condition: Condition, holds: bool) -> Tree:
    """What a tree is where a condition holds, or does not: without the choices that hang on it."""
    found = _known(tree, condition, holds)
    return tree if isinstance(found, bool) else found


def _known(tree: Tree, condition: Condition, holds: bool) -> Tree | bool:
    """A tree, or the truth value that the condition makes of it."""
    decided = _decided(tree, condition, holds)
    if decided is not None:
        return decided
    if isinstance(tree, Reduce):
        return replace(tree, argument=_where(tree.argument, condition, holds))
    if not isinstance(tree, Apply):
        return tree
    return _selected(tree, [_known(one, condition, holds) for one in tree.arguments])


def _decided(tree: Tree, condition: Condition, holds: bool) -> bool | None:
    """What the attribute's being compared, or read, gives; None where the condition does not say it."""
    if isinstance(tree, Name) and not condition.value and tree.name == condition.attribute:
        return holds
    if not isinstance(tree, Chosen) or not condition.value or tree.attribute.name != condition.attribute:
        return None
    if tree.value.name == condition.value:
        return holds
    return False if holds else None


def _selected(tree: Apply, arguments: list[Tree | bool]) -> Tree | bool:
    """A choice, or a truth value of truth values, some of which are known."""
    first, *others = arguments
    if tree.function is _NOT:
        return not first if isinstance(first, bool) else replace(tree, arguments=(first,))
    if tree.function is _WHERE and isinstance(first, bool):
        return others[0] if first else others[1]
    if tree.function in (_AND, _OR):
        decides = tree.function is _OR
        for known, other in ((first, others[0]), (others[0], first)):
            if isinstance(known, bool):
                return known if known is decides else other
    kept = [
        one if isinstance(known, bool) else known
        for one, known in zip(tree.arguments, arguments, strict=True)
    ]
    return replace(tree, arguments=tuple(kept))
