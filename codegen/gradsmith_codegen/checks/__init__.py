"""What must hold of a schema whose text is in order: one rule is one function with one id.

Modules by theme. Checks run in the order of their turns, then of their ids, and a fault that one finds
silences those after it that build on what is at fault.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from ..diagnostics import Diagnostic, has_errors
from ..draft import Document
from ..kernel_headers import KernelHeaders
from ..model import Schema
from . import (
    attributes,
    broadcasts,
    cases,
    formulas,
    gradients,
    history,
    kernel_limits,
    kernel_shapes,
    kernel_types,
    kernels,
    lengths,
    lists,
    names,
    operations,
    repeatable,
    seams,
    shapes,
    splits,
    types,
)
from .evaluation import CaseEvaluator
from .registry import OP_RULES, OP_WARNINGS, SCHEMA_RULES, Scope

MODULES = (
    names,
    types,
    shapes,
    lengths,
    splits,
    broadcasts,
    lists,
    kernel_shapes,
    kernel_limits,
    kernel_types,
    attributes,
    gradients,
    cases,
    kernels,
    formulas,
    operations,
    repeatable,
    seams,
    history,
)


def check(
    document: Document, headers: KernelHeaders, found: Sequence[Diagnostic] = ()
) -> tuple[Schema, list[Diagnostic]]:
    """Runs all checks, and those that warn where neither they nor what was `found` before has errors. The
    schema's cases have the shapes of all tensors, where these could be worked out."""
    diagnostics = [finding for rule in SCHEMA_RULES for finding in rule.run(document)]
    scopes = _scopes(document, headers)
    for rule in sorted(OP_RULES, key=lambda rule: (rule.turn, rule.rule.id)):
        diagnostics += rule.run(scopes)
    if not has_errors([*found, *diagnostics]):
        diagnostics += [finding for rule in OP_WARNINGS for finding in rule.run(scopes)]
    ops = tuple([scope.checked for scope in scopes])
    schema = Schema(document.files, document.version, document.domain, document.since_version, ops)
    return schema, diagnostics


def _scopes(document: Document, headers: KernelHeaders) -> list[Scope]:
    evaluator = CaseEvaluator()
    return [
        Scope(draft, document, last_line, evaluator, headers)
        for draft, last_line in zip(document.drafts, _last_lines(document), strict=True)
    ]


def _last_lines(document: Document) -> list[float]:
    lines = [draft.op.line for draft in document.drafts]
    return [following - 1 for _, following in pairwise([*lines, math.inf])]
