"""The shapes of cases, worked out once for operators of one signature."""

from __future__ import annotations

from dataclasses import dataclass

from ..cases import Problem, all_shapes
from ..model import Attribute, Case, Op
from ..shape_rules import Dims
from .values import value_problem

Shapes = tuple[tuple[str, Dims], ...]


@dataclass(frozen=True, slots=True)
class EvaluatedCases:
    """An operator's cases, with the shapes of all tensors where these could be worked out; and those that
    cannot be."""

    cases: tuple[Case, ...]
    impossible: tuple[tuple[Case, Problem], ...]


class CaseEvaluator:
    """Operators of a family mostly have the same shapes and cases; what one of them needs is kept for the
    others."""

    def __init__(self) -> None:
        self._signatures: dict[object, int] = {}
        self._attribute_signatures: dict[int, object] = {}  # by the attributes' id: many are aliased
        self._evaluated: dict[tuple[int, int], EvaluatedCases] = {}
        self._shapes: dict[object, Shapes | Problem] = {}

    def evaluate(self, op: Op) -> EvaluatedCases:
        signature = self._signatures.setdefault(self._signature(op), len(self._signatures))
        key = (signature, id(op.cases))  # aliased cases are one object
        if key not in self._evaluated:
            self._evaluated[key] = self._evaluate(op, signature)
        return self._evaluated[key]

    def _signature(self, op: Op) -> object:
        """All of an operator that the shapes of its cases depend on."""
        attributes = self._attribute_signatures.get(id(op.attributes))
        if attributes is None:
            attributes = _attributes_signature(op.attributes)
            self._attribute_signatures[id(op.attributes)] = attributes
        return (
            op.kernel,
            tuple([(tensor.name, tensor.shape.text, tensor.list) for tensor in op.inputs]),
            tuple([(tensor.name, tensor.shape.text, tensor.list) for tensor in op.outputs]),
            tuple(
                [
                    (
                        *(s.name, s.min_length, s.max_length, s.length_of, s.length_axis, s.multiple_of),
                        s.length_if,
                        s.broadcast_to,
                        s.given_by,
                        s.rule and s.rule.text,
                    )
                    for s in op.symbols
                ]
            ),
            attributes,
        )

    def _evaluate(self, op: Op, signature: int) -> EvaluatedCases:
        attributes = {attribute.name: attribute for attribute in op.attributes}
        cases: list[Case] = []
        impossible: list[tuple[Case, Problem]] = []
        for case in op.cases:
            result = self._case_shapes(op, attributes, case, signature)
            if isinstance(result, Problem):
                impossible.append((case, result))
                result = ()
            cases.append(_with_shapes(case, result))
        return EvaluatedCases(tuple(cases), tuple(impossible))

    def _case_shapes(
        self, op: Op, attributes: dict[str, Attribute], case: Case, signature: int
    ) -> Shapes | Problem:
        """Empty where an attribute's value is at fault, about which other checks speak."""
        key = (signature, case.shapes, case.attributes)
        known = self._shapes.get(key)
        if known is None:
            if any(value_problem(attributes[name], value) for name, value in case.attributes):
                known = ()
            else:
                known = _shapes_or_problem(op, case)
            self._shapes[key] = known
        return known


def _shapes_or_problem(op: Op, case: Case) -> Shapes | Problem:
    try:
        return all_shapes(op, case)
    except Problem as problem:
        return problem


def _with_shapes(case: Case, shapes: Shapes) -> Case:
    return Case(case.name, case.shapes, case.attributes, case.layout, case.origin, shapes)


def _attributes_signature(attributes: tuple[Attribute, ...]) -> object:
    return tuple(
        [(a.name, a.default, a.minimum, a.maximum, a.choices, a.length, a.axis_of) for a in attributes]
    )
