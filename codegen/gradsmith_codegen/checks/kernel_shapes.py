"""The shapes that an operator gives its tensors, against those that its kernel takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..diagnostics import Note
from ..kernel_terms import Shapes
from ..model import Op, Tensor
from ..shapes import Dim, DimKind, Shape, ShapeRule
from ..spans import Span
from .kernels import has_its_tensors, header_of
from .registry import SHAPES, Finding, Scope, op_rule


@op_rule("G323", needs=("kernel", *SHAPES, "attributes"), blames=("dims",))
def shape_of_no_kernel(op: Op, scope: Scope) -> Iterator[Finding]:
    """A shape, or the rule that computes one, is not what the kernel says in `kShapes`: it would read other
    memory than the tensor's."""
    comparison = compare(op, scope)
    if comparison:
        yield from comparison.findings()


def compare(op: Op, scope: Scope) -> ShapeComparison | None:
    """None where the kernel takes any shapes, or other tensors."""
    shapes = scope.kernel.shapes if scope.kernel and has_its_tensors(op, scope.kernel) else None
    return ShapeComparison(op, shapes) if shapes else None


@dataclass(frozen=True, slots=True)
class ShapeComparison:
    """The kernel's symbols take dims of the operator's shapes, the same ones throughout. The operator may
    call symbols otherwise, and say more than the kernel: [N, C, H, W] for [N, C, *D]."""

    op: Op
    shapes: Shapes
    dims: dict[str, tuple[Dim, ...]] = field(default_factory=dict)  # by the kernel's symbols

    def findings(self) -> Iterator[Finding]:
        differing: set[str] = set()
        for tensor in self.op.inputs + self.op.outputs:
            shape = self.shapes.tensors.get(tensor.name)
            if shape is None or tensor.like in differing:
                continue
            place = self._difference(tensor, shape)
            if place is not None:
                differing.add(tensor.name)
                message = f"'{tensor.name}' is {tensor.shape_text}; kernel {self.op.kernel} takes "
                yield self._finding(message + self._text(shape), _place(tensor, place))
        if not differing:
            for symbol, rule in self.shapes.rules.items():
                yield from self._rule_findings(symbol, rule)

    def _difference(self, tensor: Tensor, taken: Shape) -> int | None:
        """Which of the tensor's dims does not fit, or how many it has where that does not; None if all do."""
        given = tensor.shape
        if given.condition:  # which no kernel's shape has
            return next(i for i, dim in enumerate(given) if dim.condition)
        if len(taken.lists) > 1:
            return self._difference_of_lists(given, taken)
        start = next((i for i, dim in enumerate(taken) if dim.is_list), len(taken))
        extra = len(given) - len(taken)  # dims that the kernel's list symbol takes, but for one
        has_list = start < len(taken)
        if extra < -1 or (extra != 0 and not has_list):
            return len(given)
        end = start + extra + 1 if has_list else start
        for i, dim in enumerate(given):
            if not start <= i < end and not self._fits(dim, taken[i if i < start else i - extra]):
                return i
        listed = given[start:end]
        return start if has_list and self.dims.setdefault(taken[start].symbol, listed) != listed else None

    def _difference_of_lists(self, given: Shape, taken: Shape) -> int | None:
        """The same where the kernel's shape has several lists: each takes one of the operator's, or what it
        takes elsewhere."""
        start = 0
        for dim in taken:
            known = self.dims.get(dim.symbol) if dim.is_list else None
            end = start + (1 if known is None else len(known))
            if end > len(given):
                return len(given)
            if dim.is_list and (given[start:end] != known if known is not None else not given[start].is_list):
                return start
            if dim.is_list:
                self.dims.setdefault(dim.symbol, given[start:end])
            elif not self._fits(given[start], dim):
                return start
            start = end
        return None if start == len(given) else start

    def _fits(self, given: Dim, taken: Dim) -> bool:
        if given.is_list:
            return False
        if taken.kind is DimKind.CONSTANT:
            return given.text == taken.text
        if taken.kind is DimKind.CEIL or (taken.kind is DimKind.QUOTIENT and self._has_divisor(taken)):
            if (given.kind, given.divisor, given.constant) != (taken.kind, taken.divisor, taken.constant):
                return False
            given = Dim(DimKind.SYMBOL, given.symbol, symbol=given.symbol)
        return self.dims.setdefault(taken.symbol, (given,)) == (given,)

    def _has_divisor(self, dim: Dim) -> bool:
        """What an operator does not have as an attribute is 1 to the kernel."""
        return any(attribute.name == dim.divisor for attribute in self.op.attributes)

    def _rule_findings(self, name: str, rule: ShapeRule) -> Iterator[Finding]:
        dims = self.dims.get(name)
        if dims is None:
            return
        arguments = tuple(self._names(argument) for argument in rule.arguments)
        expected = ShapeRule(rule.function, arguments)
        symbols = {symbol.name: symbol for symbol in self.op.symbols}
        is_one = len(dims) == 1 and dims[0].is_list is not rule.is_sum
        symbol = symbols.get(dims[0].symbol) if is_one else None
        if symbol is None:
            what = "single dim" if rule.is_sum else "list symbol"
            message = f"[{self._names(name)}] must be a {what} with the rule {expected.text}"
            yield self._finding(f"{message} for kernel {self.op.kernel}", self.op.at("outputs"))
        elif symbol.rule != expected:
            what = f"has the rule {symbol.rule.text}" if symbol.rule else "has no rule"
            message = f"'{symbol.name}' {what}; kernel {self.op.kernel} takes {expected.text}"
            yield self._finding(message, symbol.at("rule"))

    def _names(self, symbol: str) -> str:
        """What the operator has for one of the kernel's symbols."""
        dims = self.dims.get(symbol)
        return ", ".join([dim.symbol or dim.text for dim in dims]) if dims else symbol

    def _text(self, shape: Shape) -> str:
        """The kernel's shape in the operator's words, where these are known."""
        return "[" + ", ".join([self._dim_text(dim) for dim in shape]) + "]"

    def _dim_text(self, dim: Dim) -> str:
        known = self.dims.get(dim.symbol)
        text = ", ".join([one.text for one in known]) if known else dim.text.partition(" / ")[0]
        return f"{text} / {dim.divisor}" if dim.divisor and self._has_divisor(dim) else text

    def _finding(self, message: str, place: Span) -> Finding:
        said = f"shapes of {self.op.kernel} ({header_of(self.op)}): {self.shapes.text}"
        return Finding(message, place, (Note(said, self.op.at("kernel")),))


def _place(tensor: Tensor, dim: int) -> Span:
    """Of one of the tensor's dims, or of its shape where it has no such dim or no shape of its own."""
    if tensor.like:
        return tensor.at("like")
    return tensor.dim_places[dim].span if dim < len(tensor.dim_places) else tensor.at("shape")
