"""What stands between formulas and the kernel patterns."""

from __future__ import annotations

from collections.abc import Sequence

from .spans import Span

# What a task of a pattern holds (runtime/patterns/map_task.h, rows_task.h); a test compares.
MAX_MAP_TENSORS, MAX_ROWS_TENSORS, MAX_SCALARS = 8, 10, 4
# What passes of rows have together (runtime/patterns/rows_passes.h).
MAX_ROWS_ARGUMENTS, MAX_ROWS_TEMPORARIES = 16, 8

Problem = tuple[str, Span]  # a sentence, and what in the schema it is about


class Misfit(Exception):
    """Why no pattern computes the formulas."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__()
        self.problems = problems


def misfit(sentence: str, span: Span) -> Misfit:
    return Misfit([(sentence, span)])


def of_entry(sentence: str, span: Span) -> Misfit:
    """About the formulas as a whole, or a tensor of theirs."""
    return Misfit([(f"the formulas fit no pattern: {sentence}", span)])


def apart(span: Span) -> Misfit:
    """Of what no single pass computes and several do, so that nobody is told of it."""
    return misfit("no single pass computes this", span)
