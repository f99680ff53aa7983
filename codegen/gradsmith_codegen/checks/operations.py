"""How many operations a call makes, as an expression of dims and attributes."""

from __future__ import annotations

from collections.abc import Iterator

from ..formula_tree import GIVEN, INDEX, PRODUCT, Apply, Given, Index, Lookup, Name, Reduce, names, parts
from ..model import Op
from ..operation_count import ARITHMETIC, multiplied, operands
from ..suggestions import did_you_mean, instead
from .registry import SHAPES, Finding, Scope, op_rule

_READ = ("operations", *SHAPES, "attributes")


_OTHERS = {Given: GIVEN, Index: INDEX, Lookup: "[ ]"}


@op_rule("G821", needs=_READ, blames=("operations",))
def no_arithmetic(op: Op, scope: Scope) -> Iterator[Finding]:
    """`operations` are counted with something else than `+`, `-`, `*`, `/` and `prod`."""
    for part in parts(op.operations.tree) if op.operations else ():
        name = part.operation if isinstance(part, Reduce) else _OTHERS.get(type(part), "")
        if isinstance(part, Apply) and part.function not in ARITHMETIC:
            name = part.function.name
        if name and name != PRODUCT and op.operations:
            message = f"'{name}' is none of '+', '-', '*', '/' and 'prod', with which operations are counted"
            yield Finding(message, op.operations.place(part))


@op_rule("G822", needs=_READ, blames=("operations",))
def unknown_count(op: Op, scope: Scope) -> Iterator[Finding]:
    """`operations` read a name that is no dim which every call shows, and no int attribute with a default."""
    known = operands(op)
    products = _multiplied(op)
    for name in names(op.operations.tree) if op.operations else ():
        if name.name not in known and name not in products and op.operations:
            message = f"'{name.name}' is no dim that every call shows, and no int attribute with a default"
            yield Finding(message + instead(name.name, sorted(known)), op.operations.place(name))


@op_rule("G823", needs=_READ, blames=("operations",))
def product_of_no_list(op: Op, scope: Scope) -> Iterator[Finding]:
    """The `prod` of `operations` is of something that is no `ints` attribute with a default."""
    known = multiplied(op)
    for name in _multiplied(op):
        if name.name not in known and op.operations:
            hint = did_you_mean(name.name, sorted(known))
            message = f"'{PRODUCT}' is of an ints attribute with a default, and '{name.name}' is none{hint}"
            yield Finding(message, op.operations.place(name))


def _multiplied(op: Op) -> list[Name]:
    """What `prod` is of."""
    found = parts(op.operations.tree) if op.operations else ()
    products = [part.argument for part in found if isinstance(part, Reduce) and part.operation == PRODUCT]
    return [argument for argument in products if isinstance(argument, Name)]
