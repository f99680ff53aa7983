"""How many operations of arithmetic a call makes, as an entry or its formulas say, and as Python reads it: by
names with an underscore, which no operator's function has (templates/python_ops.py.jinja)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from . import formula_operations
from .formula_tree import OPERATORS, Apply, Name, Number, Precedence, Reduce, Tree, names
from .model import AttributeKind, Op, Symbol, Tensor
from .shapes import DimKind, Shape
from .text import Text

ARITHMETIC = {OPERATORS[mark]: mark for mark in ("+", "-", "*", "/", "- ")}


def counted(op: Op) -> Text | None:
    """The expression as the schema has it, or as it follows from the formulas."""
    if op.operations:
        return op.operations.text
    tree = formula_operations.counted(op)
    return Text(_text(tree, lambda name: name, Precedence.SUM)) if tree else None


def operands(op: Op) -> dict[str, str]:
    """What the expression may read, and how Python reads it: dims that every call shows, how long lists of
    tensors are, and attributes. A list of dims stands for their product. What each tensor of a list has of
    its own is that of the tensors at one `place`."""
    found = {**_of_each(op)}
    for tensor in _shown(op):
        if tensor.list:
            found.setdefault(tensor.list, f'_len(dims["{tensor.name}"])')
        else:
            found = {**_dims_of(op, tensor, f'dims["{tensor.name}"]'), **found}
    for attribute in op.attributes:
        if attribute.kind is AttributeKind.INT and not attribute.is_optional:
            found.setdefault(attribute.name, f'given.get("{attribute.name}", {attribute.default})')
    return found


def multiplied(op: Op) -> dict[str, str]:
    """The attributes that `prod` may be of, and how Python reads their numbers."""
    lists = [one for one in op.attributes if one.kind is AttributeKind.INTS and not one.is_optional]
    return {one.name: f'given.get("{one.name}", {one.default})' for one in lists}


def _shown(op: Op) -> list[Tensor]:
    """The tensors of which every call shows the dims that computes all outputs."""
    return [*[tensor for tensor in op.inputs if not tensor.optional], *op.outputs]


def _of_each(op: Op) -> dict[str, str]:
    """The dims that the tensors at one place of the lists have."""
    own, found = {symbol.name for symbol in op.symbols if symbol.of_each}, dict[str, str]()
    for tensor in _shown(op):
        if tensor.list:
            found = {**_dims_of(op, tensor, f'dims["{tensor.name}"][place]'), **found}
    return {name: text for name, text in found.items() if name in own}


def _dims_of(op: Op, tensor: Tensor, whole: str) -> dict[str, str]:
    """Nothing where it is open where a list ends, or dims hang on an attribute."""
    shape = tensor.shape
    if tensor.shape_of or shape.condition:
        return {}
    condition = op.length_condition
    if not condition or len(shape.lists) < 2:
        return _slices(op, shape, whole, condition=False)
    default = next(one.default for one in op.attributes if one.name == condition)
    holds, fails = (_slices(op, shape, whole, condition=one) for one in (True, False))
    given = f'given.get("{condition}", {default})'
    return {
        name: text if text == holds[name] else f"({holds[name]} if {given} else {text})"
        for name, text in fails.items()
        if name in holds
    }


def _slices(op: Op, shape: Shape, whole: str, *, condition: bool) -> dict[str, str]:
    """Where a tensor's dims are those of each symbol, where the attribute of `length_if` has a value."""
    lengths = [_length(op, dim.symbol, whole, condition) if dim.is_list else "1" for dim in shape]
    if lengths.count("") > 1:
        return {}
    open_at = lengths.index("") if "" in lengths else len(shape)
    found: dict[str, str] = {}
    for place, dim in enumerate(shape):
        # What lies behind the list is counted from the end.
        start = _sum(lengths[:place]) if place <= open_at else f"-{_sum(lengths[place:])}"
        if dim.is_list and lengths[place] == "0":
            found.setdefault(dim.symbol, "1")
        elif dim.is_list:
            behind = lengths[place + 1 :]
            end = f"-{_sum(behind)}" if "" not in behind else _sum([*lengths[:place], lengths[place]])
            found.setdefault(dim.symbol, f"_prod({whole}[{_cut(start)}:{_cut(end)}])")
        elif dim.kind is DimKind.SYMBOL:
            found.setdefault(dim.symbol, f"{whole}[{start}]")
    return found


def _length(op: Op, name: str, whole: str, condition: bool) -> str:
    """How many dims a list has, in Python; empty where the rest of the shape tells."""
    symbols: Mapping[str, Symbol] = {one.name: one for one in op.symbols}
    symbol = symbols[name]
    if symbol.length_of:
        return _length(op, symbol.length_of, whole, condition)
    fixed = symbol.fixed_length(condition)
    if fixed is not None and not symbol.length_axis:
        return str(fixed)
    axis = next((one for one in op.attributes if one.name == symbol.length_axis), None)
    if axis and not axis.is_optional:
        return f'given.get("{axis.name}", {axis.default}) % _len({whole})'
    return ""


def _sum(lengths: Sequence[str]) -> str:
    """Numbers are added up."""
    number = sum(int(one) for one in lengths if one.isdigit())
    words = [f"({one})" for one in lengths if not one.isdigit()]
    text = " + ".join([*words, str(number)] if number or not words else words)
    return f"({text})" if len(words) > 0 and (len(words) > 1 or number) else text


def _cut(bound: str) -> str:
    """A bound that leaves off nothing is none."""
    return "" if bound in ("0", "-0") else bound


def expression(op: Op) -> str:
    """The expression in Python; empty where nothing says it, or a call does not show its dims. Where it reads
    what each tensor of a list has of its own, it is the sum over all places of the lists."""
    tree = op.operations.tree if op.operations else formula_operations.counted(op)
    known = {**multiplied(op), **operands(op)}
    read = {one.name for one in names(tree)} if tree else set()
    if not tree or not read <= known.keys():
        return ""
    text = _text(tree, lambda name: known[name], Precedence.SUM)
    if read.isdisjoint(_of_each(op)):
        return text
    listed = next(tensor.name for tensor in _shown(op) if tensor.list)
    return f'_sum({text} for place in _range(_len(dims["{listed}"])))'


def _text(tree: Tree, name_of: Callable[[str], str], least: Precedence) -> str:
    """In brackets where it binds less tightly than what it is a part of."""
    if isinstance(tree, Number):
        return f"{tree.value:.17g}"
    if isinstance(tree, Name):
        return name_of(tree.name)
    if isinstance(tree, Reduce):
        return f"_prod({_text(tree.argument, name_of, Precedence.SUM)})"
    if not isinstance(tree, Apply):
        raise NotImplementedError("a function among operations")  # the checks refuse it
    own = tree.function.precedence
    mark = ARITHMETIC[tree.function]
    first = _text(tree.arguments[0], name_of, own)
    if len(tree.arguments) == 1:
        return f"-{first}"
    text = f"{first} {mark} {_text(tree.arguments[1], name_of, Precedence(own + 1))}"
    return f"({text})" if own < least else text
