"""What is said of keywords that a function does not have."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from inspect import Parameter, Signature, signature
from typing import Any

from ._text import shortened


def without_unknown(function: Any) -> Signature:
    """The signature to show of a function that takes unknown keywords to refuse them."""
    whole = signature(function)
    return whole.replace(parameters=[one for one in whole.parameters.values() if one.kind is not Parameter.VAR_KEYWORD])


def unknown(op: str, shown: Signature, names: Iterable[str]) -> TypeError:
    """The error of the first of the names, with what was likely meant."""
    name = shortened(next(iter(names)))
    known = list(shown.parameters)
    near = get_close_matches(name, known, 1) or [one for one in known if one.lower() == name.lower()]
    hint = f"did you mean '{near[0]}'?" if near else f"expected one of {', '.join(known)}"
    return TypeError(f"{op}: there is no argument '{name}'; {hint}")
