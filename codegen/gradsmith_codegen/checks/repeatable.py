"""Whether calls give the same bits, as an operator says it."""

from __future__ import annotations

from collections.abc import Iterator

from ..model import Op, Repeatable
from .registry import Finding, Scope, op_rule


@op_rule("G819", needs=("repeatable", "formulas"))
def formulas_that_do_not_repeat(op: Op, scope: Scope) -> Iterator[Finding]:
    """Formulas are said to give other bits (`repeatable`), though calls of them give the same ones always."""
    said = [word.value for _, word in op.repeatable if word is not Repeatable.ALWAYS]
    if op.formulas and said:
        message = f"'repeatable' says '{said[0]}'; what formulas compute is repeatable always"
        yield Finding(message, op.at("repeatable"))
