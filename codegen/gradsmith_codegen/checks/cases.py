"""Test cases: values that attributes may have, and shapes that can be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from ..cases import Impossible, Problem
from ..diagnostics import Note
from ..lists import list_of
from ..model import Attribute, AttributeValue, Case, Op
from ..spans import Span
from .registry import SHAPES, Finding, Scope, op_rule
from .values import choice_problem, range_problem

_SHAPES_AND_ATTRIBUTES = (*SHAPES, "attributes")


@op_rule("G601", looks_at="cases")
def duplicate_case(op: Op, scope: Scope) -> Iterator[Finding]:
    """Two cases of an operator have the same name."""
    first: dict[str, Case] = {}
    for case in op.cases:
        known = first.setdefault(case.name, case)
        if known is not case:
            yield Finding(
                f"duplicate case '{case.name}'", case.span, (Note("first declared here", known.span),)
            )


@op_rule("G602", needs=("attributes",))
def value_out_of_range(op: Op, scope: Scope) -> Iterator[Finding]:
    """A case gives an attribute a number out of its range, or a list of more than 8."""
    yield from _value_problems(op, scope, range_problem)


@op_rule("G603", needs=("attributes",))
def value_no_choice(op: Op, scope: Scope) -> Iterator[Finding]:
    """A case gives an enum attribute a value that is none of its choices."""
    yield from _value_problems(op, scope, choice_problem)


def _value_problems(
    op: Op, scope: Scope, find: Callable[[Attribute, AttributeValue], str]
) -> Iterator[Finding]:
    attributes = scope.attributes
    problems = [
        (case, Problem(Impossible.VALUE, f"attribute '{name}' {problem}", name))
        for case in op.cases
        for name, value in case.attributes
        if (problem := find(attributes[name], value))
    ]
    yield from _findings(op, scope, problems)


def _impossible(op: Op, scope: Scope, reason: Impossible) -> Iterator[Finding]:
    found = [entry for entry in scope.evaluated_cases.impossible if entry[1].reason is reason]
    yield from _findings(op, scope, found)


def _findings(op: Op, scope: Scope, problems: Sequence[tuple[Case, Problem]]) -> Iterator[Finding]:
    """Of each case; but what no case fits that gives it is itself at fault, and told once."""
    if not problems:
        return
    of_key = Counter([problem.key for _, problem in problems])
    given = Counter([key for case in op.cases for key, _ in (*case.shapes, *case.attributes)])
    told: set[str] = set()
    for case, problem in problems:
        key = problem.key
        place = _declared(scope, problem) if 1 < of_key[key] == given[key] else None
        if problem.symbol:
            yield from _rule_findings(op, scope, case, problem)
        elif not place:
            yield _case_finding(case, problem)
        elif key not in told:
            told.add(key)
            message = f"none of the {of_key[key]} cases that give '{key}' fits it: {problem.message}"
            yield Finding(message, place, (Note(f"in case '{case.name}'", case.at(list_of(key))),))


def _declared(scope: Scope, problem: Problem) -> Span | None:
    """Where it is said what the cases do not fit."""
    attribute = scope.attributes.get(problem.key)
    if attribute and problem.reason is Impossible.ATTRIBUTE_LENGTH:
        return attribute.at("length")
    if attribute and problem.reason is Impossible.VALUE:
        return attribute.span
    tensor = next((tensor for tensor in scope.tensors if tensor.name == list_of(problem.key)), None)
    if tensor and problem.reason is Impossible.RANK:
        return tensor.at("like" if tensor.like else "shape")
    return None


def _rule_findings(op: Op, scope: Scope, case: Case, problem: Problem) -> Iterator[Finding]:
    """At the rule, so that it is said once and not of every case. A rule that is at fault itself is told
    elsewhere."""
    symbol = next(symbol for symbol in op.symbols if symbol.name == problem.symbol)
    if symbol.rule and scope.kernels.says_nothing_of(symbol.rule.function):
        note = Note(f"case '{case.name}' gives none", case.span)
        yield Finding(problem.message, symbol.at("rule"), (note,))


def _case_finding(case: Case, problem: Problem) -> Finding:
    span = case.at(list_of(problem.key)) if problem.key else case.span
    other = case.at(list_of(problem.other)) if problem.other and problem.other != problem.key else span
    notes = (Note(f"because of '{problem.other}'", other),) if other != span else ()
    return Finding(f"case '{case.name}': {problem.message}", span, notes)


@op_rule("G604", needs=_SHAPES_AND_ATTRIBUTES)
def wrong_rank(op: Op, scope: Scope) -> Iterator[Finding]:
    """A case gives a shape of the wrong rank."""
    yield from _impossible(op, scope, Impossible.RANK)


@op_rule("G605", needs=_SHAPES_AND_ATTRIBUTES)
def mismatch(op: Op, scope: Scope) -> Iterator[Finding]:
    """The shapes of a case disagree about a symbol."""
    yield from _impossible(op, scope, Impossible.MISMATCH)


@op_rule("G606", needs=_SHAPES_AND_ATTRIBUTES)
def indivisible(op: Op, scope: Scope) -> Iterator[Finding]:
    """A shape of a case divides by an attribute, such as channels by group, and there is a remainder."""
    yield from _impossible(op, scope, Impossible.DIVISION)


@op_rule("G607", needs=_SHAPES_AND_ATTRIBUTES)
def wrong_length(op: Op, scope: Scope) -> Iterator[Finding]:
    """A case gives a list attribute that does not fit the spatial dims."""
    yield from _impossible(op, scope, Impossible.ATTRIBUTE_LENGTH)


@op_rule("G608", needs=_SHAPES_AND_ATTRIBUTES)
def refused(op: Op, scope: Scope) -> Iterator[Finding]:
    """The shape rule or the kernel refuses a case: the filter is larger than the padded input, pads are given
    twice, group does not divide the filter's rows."""
    yield from _impossible(op, scope, Impossible.RULE)


@op_rule("G609", needs=_SHAPES_AND_ATTRIBUTES)
def incomplete(op: Op, scope: Scope) -> Iterator[Finding]:
    """A case gives too little: a tensor's shape does not follow from it."""
    yield from _impossible(op, scope, Impossible.INCOMPLETE)


@op_rule("G611", needs=_SHAPES_AND_ATTRIBUTES)
def no_axis(op: Op, scope: Scope) -> Iterator[Finding]:
    """An attribute of a case is no axis of the tensor that it is one of (`axis_of`)."""
    yield from _impossible(op, scope, Impossible.AXIS)


@op_rule("G610", needs=_SHAPES_AND_ATTRIBUTES)
def wrong_size(op: Op, scope: Scope) -> Iterator[Finding]:
    """A tensor of a case has a negative dim, or more than 2^31 - 1 elements."""
    yield from _impossible(op, scope, Impossible.SIZE)
