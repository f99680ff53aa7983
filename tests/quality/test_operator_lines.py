"""An operator stays small: what it may cost is in operator_lines.py."""

from __future__ import annotations

import statistics

import operator_lines


def test_operators_with_formulas_are_an_entry() -> None:
    lines, _ = operator_lines.count()
    assert lines
    assert {name: count for name, count in lines.items() if count > operator_lines.MOST_WITH_FORMULAS} == {}
    assert statistics.median(lines.values()) < 25


def test_operators_on_a_pattern_are_small() -> None:
    _, lines = operator_lines.count()
    assert {name: count for name, count in lines.items() if count > operator_lines.MOST_ON_A_PATTERN} == {}
