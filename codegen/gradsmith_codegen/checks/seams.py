"""Seams of formulas: what they place, what they say of it, and in which words."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ..formula_tree import CONSTANTS, Apply, Kind, Name, Number, Tree, parts
from ..model import AttributeKind, Formula, Op, Seam
from ..suggestions import instead
from .registry import TENSORS, Finding, Scope, op_rule

# Numbers that have a name in a seam, beside those of formulas.
NUMBERS = ("nan", "inf")
_NEEDS = ("seams", "formulas", *TENSORS, "attributes", "rows")
_NUMBERS_OF = (AttributeKind.FLOAT, AttributeKind.INT)


@op_rule("G824", needs=("seams",))
def seams_of_a_kernel(op: Op, scope: Scope) -> Iterator[Finding]:
    """Seams are those of formulas, and stand beside a handwritten kernel."""
    if op.seams and op.kernel:
        yield Finding(f"'seams' are those of formulas; tests of {op.kernel} look at its own", op.at("seams"))


@op_rule("G825", needs=_NEEDS)
def no_place(op: Op, scope: Scope) -> Iterator[Finding]:
    """A seam places something else than inputs of numbers that formulas read, or says what something gives
    that is no output."""
    inputs = _placed(op)
    outputs = [tensor.name for tensor in op.outputs]
    for seam in _seams(op):
        for one in seam.places:
            if one.name not in inputs:
                what = f"'{one.name}' is no input of numbers that formulas read"
                yield Finding(what + instead(one.name, inputs), one.span)
        for one in seam.gives:
            if one.name not in outputs:
                yield Finding(f"'{one.name}' is no output{instead(one.name, outputs)}", one.span)


@op_rule("G826", needs=_NEEDS)
def unknown_name_in_seam(op: Op, scope: Scope) -> Iterator[Finding]:
    """A seam reads a name that is no attribute, no number and no input; or, in the place of an input, one
    that it places itself."""
    numbers = [one.name for one in op.attributes if one.kind in _NUMBERS_OF and not one.is_optional]
    known = [*numbers, *CONSTANTS, *NUMBERS]
    for seam in _seams(op):
        placed = {one.name for one in seam.places}
        free = [name for name in _placed(op) if name not in placed]
        for formulas, inputs in ((seam.places, free), (seam.gives, _placed(op))):
            for one in formulas:
                yield from _unknown(one, [*inputs, *known], placed)


def _unknown(formula: Formula, known: Collection[str], placed: Collection[str]) -> Iterator[Finding]:
    for part in parts(formula.tree):
        if isinstance(part, Name) and part.name not in known:
            is_placed = part.name in placed
            what = "is placed by this seam itself" if is_placed else "is nothing that a seam can read"
            yield Finding(f"'{part.name}' {what}{instead(part.name, known)}", formula.place(part))


@op_rule("G827", needs=_NEEDS)
def no_number(op: Op, scope: Scope) -> Iterator[Finding]:
    """What a seam says is no number of one place: it compares, reduces or looks up."""
    for seam in _seams(op):
        for one in (*seam.places, *seam.gives):
            for part in parts(one.tree):
                if not _is_of_numbers(part):
                    yield Finding(f"'{one.name}' is a number of one place; this is none", one.place(part))
                    break


def _is_of_numbers(tree: Tree) -> bool:
    if isinstance(tree, Apply):
        return {tree.function.result, *tree.function.parameters} == {Kind.NUMBER}
    return isinstance(tree, Number | Name)


def _seams(op: Op) -> tuple[Seam, ...]:
    return op.seams if op.formulas else ()


def _placed(op: Op) -> list[str]:
    words = op.bits
    return [one.name for one in op.read_inputs if not one.is_mask and one not in words]
