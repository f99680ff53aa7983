"""How many operations of arithmetic a call makes: from the expression of an entry to Python."""

from __future__ import annotations

from .formula_tree import OPERATORS, Apply, Name, Number, Precedence, Tree
from .model import AttributeKind, DimKind, Op, Tensor

ARITHMETIC = {OPERATORS[mark]: mark for mark in ("+", "-", "*", "/", "- ")}


def operands(op: Op) -> dict[str, str]:
    """What the expression may read, and how Python reads it: dims that every call shows, and attributes. A
    list of dims stands for their product."""
    found: dict[str, str] = {}
    for tensor in (*op.inputs, *op.outputs):
        if tensor in op.outputs or not tensor.optional:
            found = {**_dims_of(tensor), **found}
    for attribute in op.attributes:
        if attribute.kind is AttributeKind.INT and not attribute.is_optional:
            found.setdefault(attribute.name, f'given.get("{attribute.name}", {attribute.default})')
    return found


def _dims_of(tensor: Tensor) -> dict[str, str]:
    """Nothing where several lists leave open where one ends, or dims hang on an attribute."""
    shape, whole = tensor.shape, f'dims["{tensor.name}"]'
    if len(shape.lists) > 1 or tensor.shape_of or tensor.list or shape.condition:
        return {}
    start = next((place for place, dim in enumerate(shape) if dim.is_list), len(shape))
    found: dict[str, str] = {}
    for place, dim in enumerate(shape):
        at = place if place < start else place - len(shape)  # behind the list from the end
        if dim.is_list:
            rest = len(shape) - 1 - place
            found[dim.symbol] = f"_prod({whole}[{place}:{-rest if rest else ''}])"
        elif dim.kind is DimKind.SYMBOL:
            found.setdefault(dim.symbol, f"{whole}[{at}]")
    return found


def expression(op: Op) -> str:
    """The expression in Python; empty where the entry has none."""
    return _text(op.operations.tree, operands(op), Precedence.SUM) if op.operations else ""


def _text(tree: Tree, names: dict[str, str], least: Precedence) -> str:
    """In brackets where it binds less tightly than what it is a part of."""
    if isinstance(tree, Number):
        return f"{tree.value:.17g}"
    if isinstance(tree, Name):
        return names[tree.name]
    if not isinstance(tree, Apply):
        raise NotImplementedError("a function among operations")  # the checks refuse it
    own = tree.function.precedence
    mark = ARITHMETIC[tree.function]
    first = _text(tree.arguments[0], names, own)
    if len(tree.arguments) == 1:
        return f"-{first}"
    text = f"{first} {mark} {_text(tree.arguments[1], names, Precedence(own + 1))}"
    return f"({text})" if own < least else text
