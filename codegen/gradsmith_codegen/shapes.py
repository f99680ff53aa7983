"""The shapes of tensors, as a schema declares them: dims that are symbols, and what computes a symbol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property

from .rule_formula import RuleFormula


class DimKind(Enum):
    SYMBOL = "symbol"  # N, or *D: the symbol says whether it is a list
    QUOTIENT = "quotient"  # C / group
    CEIL = "ceil"  # ceil(N / 32)
    CONSTANT = "constant"  # 3


@dataclass(frozen=True, slots=True)
class Condition:
    """`reduction == none`: an enum attribute has a value; or `keepdims`, where that is empty: a bool one
    is true."""

    attribute: str
    value: str = ""

    @property
    def text(self) -> str:
        return f"{self.attribute} == {self.value}" if self.value else self.attribute

    def holds(self, attributes: Mapping[str, object]) -> bool:
        """Whether it does with these values of attributes."""
        value = attributes.get(self.attribute)
        return value == self.value if self.value else value is True


@dataclass(frozen=True, slots=True)
class Dim:
    """One entry of a shape: a value, which many shapes have. Where it stands is for the tensor to say."""

    kind: DimKind
    text: str
    symbol: str = ""
    is_list: bool = False
    divisor: str = ""
    constant: int = 0  # the dim itself, or the divisor of CEIL
    condition: Condition | None = None  # with which it is there; None where it always is

    @property
    def without_condition(self) -> Dim:
        if not self.condition:
            return self
        return replace(self, text=self.text.partition(" if ")[0], condition=None)


class Shape(tuple[Dim, ...]):
    """The dims of a tensor: a value, which many tensors have."""

    @cached_property
    def text(self) -> str:
        return "[" + ", ".join([dim.text for dim in self]) + "]"

    @cached_property
    def symbols(self) -> frozenset[str]:
        return frozenset([dim.symbol for dim in self if dim.symbol])

    @cached_property
    def always(self) -> frozenset[str]:
        """The symbols that it has whatever attributes are."""
        return frozenset([dim.symbol for dim in self if dim.symbol and not dim.condition])

    @cached_property
    def condition(self) -> Condition | None:
        """On which dims hang; checks see to it that there is one alone."""
        return next((dim.condition for dim in self if dim.condition), None)

    def where(self, holds: bool) -> Shape:
        """The dims that are there where the condition holds, or does not."""
        if not self.condition:
            return self
        return Shape([dim.without_condition for dim in self if holds or not dim.condition])

    @cached_property
    def lists(self) -> list[Dim]:
        """The list symbols, of which there should be no more than one."""
        return [dim for dim in self if dim.is_list]


# The shape rules that are of no family: the dims to which all its lists broadcast, and the sum of a dim over
# the tensors of a list.
BROADCAST = "broadcast"
SUM = "sum"


@dataclass(frozen=True, slots=True)
class ShapeRule:
    """`conv::OutputSpatial(D, K)`: a family's function of the attributes and of other symbols; or
    `broadcast(P, Q)` or `sum(P)`, of symbols alone."""

    function: str
    arguments: tuple[str, ...]
    # What a rule of a family computes; None where its header does not say it.
    formula: RuleFormula | None = field(default=None, compare=False, repr=False)

    @property
    def is_broadcast(self) -> bool:
        return self.function == BROADCAST

    @property
    def is_sum(self) -> bool:
        return self.function == SUM

    @property
    def is_of_family(self) -> bool:
        return not self.is_broadcast and not self.is_sum

    @property
    def text(self) -> str:
        return f"{self.function}({', '.join(self.arguments)})"
