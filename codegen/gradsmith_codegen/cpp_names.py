"""What generated C++ calls things, by the names of the schema."""

from __future__ import annotations

import re


def snake_case(name: str) -> str:
    """`BatchNormalizationGrad` -> `batch_normalization_grad`, `Conv2DGrad` -> `conv2_d_grad`. A single letter
    that begins the name belongs to its word: `PReluGrad` -> `prelu_grad`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?<!^[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def stub_of(name: str) -> str:
    """The namespace, within the library's `generated`, of what binds the operator to its kernel."""
    return f"{snake_case(name)}_stub"


def header_guard(namespace: str, header: str) -> str:
    """`conv`, `shape_rules.h` -> `CONV_SHAPE_RULES_H_`."""
    return re.sub(r"\W", "_", f"{namespace.replace('::', '_')}_{header}_".upper(), flags=re.ASCII)


def type_parameter(name: str) -> str:
    """How C++ spells a type parameter. Nothing else that a schema names can end in an underscore, and nothing
    of the runtime that is not private to a class does."""
    return f"{name}_"
