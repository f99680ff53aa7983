"""What is wrong with a formula by itself. What does not fit the operator's entry is in `checks.formulas`."""

from __future__ import annotations

from collections.abc import Collection

from .diagnostics import Diagnostic
from .faults import fault
from .spans import Span
from .suggestions import did_you_mean


@fault("G801")
def syntax(problem: str) -> str:
    """A formula does not read as an expression."""
    return problem


def cut_off(span: Span, name: str, whole: str) -> Diagnostic:
    """Where YAML ends a formula at a comma."""
    return syntax(
        span, f"a comma ends a formula within {{ }} that is not quoted; write '{name}: \"{whole}\"'"
    )


@fault("G802")
def unknown_function(name: str, known: Collection[str]) -> str:
    """A formula calls a function that does not exist."""
    hint = did_you_mean(name, known) or f"; there are {', '.join(known)}"
    return f"unknown function '{name}'{hint}"


@fault("G803")
def wrong_count(name: str, expected: str, given: int) -> str:
    """A formula calls a function with too few or too many arguments."""
    return f"'{name}' takes {expected} argument{'' if expected == '1' else 's'}, not {given}"
