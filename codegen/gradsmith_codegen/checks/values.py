"""What an attribute's value must be, as a default and in a case."""

from __future__ import annotations

import math

from ..grammar import MAX_RANK
from ..model import Attribute, AttributeKind, AttributeValue
from ..suggestions import instead


def value_problem(attribute: Attribute, value: AttributeValue) -> str:
    """What is wrong with a value of the right type; empty where nothing is."""
    return range_problem(attribute, value) or choice_problem(attribute, value)


def range_problem(attribute: Attribute, value: AttributeValue) -> str:
    """A number, or a number of a list, is out of the attribute's range, or the list is longer than any may
    be."""
    if isinstance(value, (str, bool)):
        return ""
    if isinstance(value, tuple) and len(value) > MAX_RANK:
        return f"is too long: {len(value)} entries, and lists have at most {MAX_RANK}"
    minimum, maximum = attribute.minimum, attribute.maximum
    for number in value if isinstance(value, tuple) else (value,):
        if math.isinf(number) and (maximum if number > 0 else minimum) is None:
            key, end = ("max", ".inf") if number > 0 else ("min", "-.inf")
            return f"is infinite, which no number is unless its range says so; write '{key}: {end}'"
        if minimum is not None and number < minimum:
            return f"is out of range: {number} is less than the minimum {minimum}"
        if maximum is not None and number > maximum:
            return f"is out of range: {number} is more than the maximum {maximum}"
    return ""


def choice_problem(attribute: Attribute, value: AttributeValue) -> str:
    if attribute.kind is not AttributeKind.ENUM or value in attribute.choices:
        return ""
    return f"is '{value}', which is none of its choices{instead(str(value), attribute.choices)}"
