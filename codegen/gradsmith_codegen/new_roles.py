"""What inputs of formulas are by how these read them: numbers, conditions, labels, tables, words of bits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from .formula_tree import (
    CALLED,
    COUNT,
    Apply,
    Bit,
    Index,
    Kind,
    Lookup,
    Name,
    Reduce,
    Tree,
    asked_for,
    parts,
)
from .suggestions import listing
from .verbs import Refused

_COMPARISONS = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
_INFINITE = "an infinite number is the default of an attribute, as in '--attribute limit=inf'"
_NO_NUMBERS = {
    "inf": _INFINITE,
    "infinity": _INFINITE,
    "nan": "no formula has NaN for a number",
    "true": "what always holds is a comparison, such as '0 == 0'",
    "false": "what never holds is a comparison, such as '0 == 1'",
    "none": "whether an input is there is asked by 'given(x)'",
}


def refuse_word(name: str) -> None:
    """Of what would be taken for an input, and is meant otherwise."""
    meant = _NO_NUMBERS.get(name.lower())
    if meant:
        raise Refused(f"the formulas would have an input '{name}': {meant}")
    if name in CALLED:
        raise Refused(
            f"the formulas would have an input '{name}', which is a function: write '{name}(...)', or call "
            "the input otherwise"
        )


class Roles:
    """Of the inputs of formulas that stand alone."""

    def __init__(self, trees: Sequence[Tree], inputs: Sequence[str]) -> None:
        self._parts = [part for tree in trees for part in parts(tree)]
        self._inputs = inputs
        asked = {one.name for tree in trees for one in asked_for(tree)}
        self.asked = [name for name in inputs if name in asked]  # whether they are there
        self.bits = {one.words.name: one.dims.name for one in self._parts if isinstance(one, Bit)}
        looked_up = {one.table.name for one in self._parts if isinstance(one, Lookup)}
        self.tables = [name for name in inputs if name in looked_up]
        looking = {one.integer.name for one in self._parts if isinstance(one, Lookup)}
        self._reads = Counter(one.name for one in self._parts if isinstance(one, Name))
        self.integers = [name for name in inputs if name in looking or self._is_label(name)]
        self._conditions = self._read_as_conditions()

    @property
    def dims(self) -> list[str]:
        """Those of single places, which formulas reduce or index."""
        reduced = [dim.name for part in self._parts if isinstance(part, Reduce) for dim in part.dims]
        indexed = [part.dim.name for part in self._parts if isinstance(part, Index)]
        return list(dict.fromkeys([*reduced, *indexed]))

    def type_of(self, name: str) -> str:
        """Empty of numbers, which have the type that rows give them."""
        if name in self.bits:
            return "uint32"
        if name in self.integers:
            return "int64"
        return "bool" if name in self._conditions else ""

    @property
    def of_rows(self) -> list[str]:
        """What has an element for each row where there are rows."""
        return [name for name in self._inputs if name in (*self.integers, *self.asked, *self._conditions)]

    def is_whole(self, name: str) -> bool:
        """It is an input that has an element for each place of a row."""
        return name in self._inputs and name not in (*self.bits, *self.tables, *self.of_rows)

    def lead(self) -> str:
        """The input whose shape outputs have."""
        numbers = [name for name in self._inputs if self.is_whole(name) and not self.type_of(name)]
        if not numbers and not self.dims:
            numbers = [name for name in self._inputs if self.type_of(name) == "bool"]
        if not numbers:
            raise Refused(
                f"the formulas read {listing(self._inputs)} alone, and no number for each place, as X is in "
                "'X * weight[label]' or 'where(condition, X, 0)': no pattern computes them"
            )
        return numbers[0]

    def refuse(self) -> None:
        """What formulas alone do not say, or no pattern computes."""
        for part in self._parts:
            if isinstance(part, Reduce) and part.operation == "sum" and not part.dims:
                raise Refused(
                    "'sum(x)' without a dim sums over what an input is broadcast to, and formulas alone do "
                    "not say which is; begin with a forward operator's entry, or with --like, such as AddGrad"
                )
        dims = self.dims
        if len(dims) > 1:
            raise Refused(
                f"the formulas reduce over {', '.join(dims)}; an entry from formulas alone has one dim that "
                "is reduced, along an axis"
            )
        for name in self._inputs:
            if 0 < self._conditions[name] < self._reads[name]:
                raise Refused(
                    f"'{name}' is read as a condition and as a number: where it is a condition, compare it, "
                    f"as in '{name} > 0'"
                )
        if self.asked and not dims and not self.tables:
            raise Refused(
                f"'given({self.asked[0]})' is of an input that may be left out, which no pattern takes where "
                "formulas neither reduce nor look up"
            )

    def _is_label(self, name: str) -> bool:
        """It is compared with places, and read nowhere else."""
        compared = 0
        for part in self._parts:
            if isinstance(part, Apply) and part.function.name in _COMPARISONS:
                one, other = part.arguments
                compared += isinstance(one, Name) and one.name == name and _is_place(other)
                compared += isinstance(other, Name) and other.name == name and _is_place(one)
        return 0 < compared == self._reads[name]

    def _read_as_conditions(self) -> Counter[str]:
        return Counter(
            argument.name
            for part in self._parts
            if isinstance(part, Apply)
            for argument, kind in zip(part.arguments, part.function.parameters, strict=True)
            if isinstance(argument, Name) and kind is Kind.TRUTH
        )


def _is_place(tree: Tree) -> bool:
    return isinstance(tree, Index) or (isinstance(tree, Reduce) and tree.operation == COUNT)
