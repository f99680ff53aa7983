"""The gradients of gradient operators: what gradsmith.torch differentiates a second time with.

They are made of the operators themselves, so that they in turn have gradients. A family of kernels that has them has a
module _double_backward_FAMILY.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any


@dataclass(frozen=True)
class Call:
    """A call of a gradient operator, and what is asked about it."""

    forward: Callable[..., Any]
    """The operator whose gradient it is."""
    gradient: Callable[..., Any]
    """The gradient operator. It returns a list of the outputs that it is asked for."""
    attributes: dict[str, Any]
    inputs: dict[str, Any]
    given: dict[str, Any]
    """The gradients of the call's outputs, by name; those that are zero are left out."""
    needed: set[str]
    """The inputs whose gradients are asked for."""


@dataclass(frozen=True)
class Formulas:
    """What a family's module says."""

    gradients_of: Callable[[Call], dict[str, Any]]
    """The gradients of a call's inputs, by name."""
    assumed: tuple[str, ...] = ()
    """Inputs that are functions of others, so that a gradient of their own has no meaning: ASSUMED of the module."""


def formulas_of(family: str) -> Formulas | None:
    """By the family of the gradient operator's kernel."""
    name = f"{__name__}_{family}"
    if not family or find_spec(name) is None:
        return None
    module = import_module(name)
    return Formulas(module.gradients_of, getattr(module, "ASSUMED", ()))


def per_channel(tensor: Any) -> tuple[int, ...]:
    """The shape in which a vector of channels is broadcast over a tensor."""
    return (1, -1, *[1] * (tensor.dim() - 2))
