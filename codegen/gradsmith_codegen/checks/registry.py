"""How a check is stated: a generator function with an id and a docstring, run for every operator or for the
schema.

A check names the parts of an operator's entry that it needs; where one of them has a fault already, the check
keeps quiet about that operator. A finding may in turn make parts faulty for the checks after it (`blames`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..diagnostics import Diagnostic, Note, Rule, Severity, register
from ..draft import Document, Draft
from ..kernel_headers import KernelHeaders
from ..kernel_terms import Kernel
from ..model import Attribute, Op, Tensor
from ..shapes import Dim
from ..spans import Span, Spanned
from .evaluation import CaseEvaluator, EvaluatedCases

TENSORS = ("inputs", "outputs")
SHAPES = (*TENSORS, "dims")


@dataclass(frozen=True, slots=True)
class Finding:
    message: str
    span: Span
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class Scope:
    """What a check of one operator may look at besides the operator."""

    draft: Draft
    document: Document
    last_line: float  # of the operator's entry
    evaluator: CaseEvaluator
    kernels: KernelHeaders

    @cached_property
    def kernel(self) -> Kernel | None:
        """What the operator's kernel takes; None where there is no such kernel."""
        return self.kernels.kernel(self.draft.op.kernel)

    @property
    def checked(self) -> Op:
        """The operator with what the checks have worked out."""
        says = self.kernel.says if self.kernel else ()
        runs_anywhere = self.kernel is not None and self.kernel.runs_anywhere
        return self.draft.op.checked(self.evaluated_cases.cases, says, runs_anywhere)

    @cached_property
    def tensors(self) -> tuple[Tensor, ...]:
        """Inputs, then outputs."""
        return self.draft.op.inputs + self.draft.op.outputs

    @cached_property
    def dims(self) -> list[tuple[Dim, Spanned]]:
        """Every entry of a shape that a tensor has for itself, and where it stands."""
        return [entry for tensor in self.tensors for entry in tensor.own_dims]

    def may_be_absent(self, tensor: Tensor) -> bool:
        """It is optional; where the kernel needs it, that alone is at fault (G703)."""
        return tensor.optional and not (self.kernel and self.kernel.tensors.get(tensor.name))

    @cached_property
    def bound(self) -> frozenset[str]:
        """Symbols in the shapes of inputs that must be there."""
        required = [tensor for tensor in self.draft.op.inputs if not self.may_be_absent(tensor)]
        return frozenset().union(*[tensor.shape.always for tensor in required])

    @cached_property
    def optionally_bound(self) -> frozenset[str]:
        """Symbols in the shapes of inputs that may be absent, or lack these dims."""
        every = frozenset().union(*[tensor.shape.symbols for tensor in self.draft.op.inputs])
        return every - self.bound

    @cached_property
    def attributes(self) -> dict[str, Attribute]:
        return {attribute.name: attribute for attribute in self.draft.op.attributes}

    @cached_property
    def type_parameters(self) -> tuple[str, ...]:
        return self.draft.op.type_parameters

    @cached_property
    def forward(self) -> Op | None:
        """The operator whose gradient this one is."""
        draft = self.document.drafts_by_name.get(self.draft.op.gradient_of)
        return draft.op if draft and draft is not self.draft else None

    def forward_with(self, *parts: str) -> Op | None:
        """The forward operator if these parts of its entry are without faults."""
        draft = self.document.drafts_by_name.get(self.draft.op.gradient_of)
        return self.forward if draft and draft.broken.isdisjoint((*parts, "gradient_of")) else None

    @cached_property
    def evaluated_cases(self) -> EvaluatedCases:
        """The operator's cases with the shapes of all tensors, if its entry allows to work them out."""
        if self.draft.broken.isdisjoint((*SHAPES, "attributes")):
            return self.evaluator.evaluate(self.draft.op)
        return EvaluatedCases(self.draft.op.cases, ())


OpCheck = Callable[[Op, Scope], Iterator[Finding]]
SchemaCheck = Callable[[Document], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class OpRule:
    rule: Rule
    function: OpCheck
    needs: tuple[str, ...]
    blames: tuple[str, ...]
    looks_at: str
    turn: int

    def run(self, scopes: Sequence[Scope]) -> Iterator[Diagnostic]:
        function, needs, looks_at = self.function, self.needs, self.looks_at
        sound: set[int] = set()  # parts, perhaps of several operators, in which nothing was found
        for scope in scopes:
            draft = scope.draft
            if draft.broken and not draft.broken.isdisjoint(needs):
                continue
            if looks_at:
                part = id(getattr(draft.op, looks_at))
                if part in sound:
                    continue
                sound.add(part)
            for finding in function(draft.op, scope):
                if looks_at:
                    sound.discard(part)
                yield self._diagnostic(finding, scope)

    def _diagnostic(self, finding: Finding, scope: Scope) -> Diagnostic:
        draft = scope.draft
        draft.broken.update(self.blames)
        diagnostic = Diagnostic(
            self.rule.id, self.rule.severity, finding.message, finding.span, finding.notes
        )
        if not draft.op.line <= finding.span.line <= scope.last_line:
            diagnostic = diagnostic.used_by(draft.op.name, draft.op.span)
        return diagnostic


@dataclass(frozen=True, slots=True)
class SchemaRule:
    rule: Rule
    function: SchemaCheck

    def run(self, document: Document) -> Iterator[Diagnostic]:
        for finding in self.function(document):
            yield Diagnostic(self.rule.id, self.rule.severity, finding.message, finding.span, finding.notes)


OP_RULES: list[OpRule] = []
OP_WARNINGS: list[OpRule] = []
SCHEMA_RULES: list[SchemaRule] = []


def op_rule(
    rule_id: str,
    needs: tuple[str, ...] = (),
    blames: tuple[str, ...] = (),
    looks_at: str = "",
    turn: int = 2,
) -> Callable[[OpCheck], OpCheck]:
    """Registers a check that looks at one operator: at a single part of it where `looks_at` names one, so
    that what several operators share by alias need not be looked at for each. Checks run in the order of
    their ids, those of an earlier turn first: what the kernel is, then whose gradient."""

    def decorate(function: OpCheck) -> OpCheck:
        rule = register(rule_id, Severity.ERROR, function.__doc__)
        OP_RULES.append(OpRule(rule, function, needs, blames, looks_at, turn))
        return function

    return decorate


def op_warning(rule_id: str, needs: tuple[str, ...] = ()) -> Callable[[OpCheck], OpCheck]:
    """Registers a check of one operator that warns, in schemas without errors."""

    def decorate(function: OpCheck) -> OpCheck:
        rule = register(rule_id, Severity.WARNING, function.__doc__)
        OP_WARNINGS.append(OpRule(rule, function, needs, (), "", 2))
        return function

    return decorate


def schema_rule(rule_id: str) -> Callable[[SchemaCheck], SchemaCheck]:
    """Registers a check that looks at all operators together."""

    def decorate(function: SchemaCheck) -> SchemaCheck:
        rule = register(rule_id, Severity.ERROR, function.__doc__)
        SCHEMA_RULES.append(SchemaRule(rule, function))
        return function

    return decorate
