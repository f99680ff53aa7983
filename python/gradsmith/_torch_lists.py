"""Lists of tensors among what PyTorch passes and is returned; nothing here needs PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._table import Operator, Tensor


def flat(made: Any) -> list[Any]:
    """What an operator returned, tensors and lists of tensors, one tensor after another."""
    if isinstance(made, (tuple, list)):
        return [one for each in made for one in flat(each)]
    return [made]


def grouped(op: Operator, names: Sequence[str], items: Sequence[Any]) -> list[Any]:
    """The outputs of these names from their tensors, of those that are lists a list."""
    are_lists = {one.name: bool(one.list) for one in op.outputs}
    lists = sum(are_lists[name] for name in names)
    length = (len(items) - len(names) + lists) // lists if lists else 0
    rest = iter(items)
    return [[next(rest) for _ in range(length)] if are_lists[name] else next(rest) for name in names]


def of_those_asked(gradient: Any, asked: Any) -> Any:
    """An input's gradient; of a list those of the tensors that need one."""
    if not isinstance(asked, (list, tuple)):
        return gradient
    made = [None] * len(asked) if gradient is None else gradient
    return [one if is_asked else None for one, is_asked in zip(made, asked, strict=True)]


def slice_of(given: Any, dim: Any, place: int | None) -> Any:
    """What one call of torch.vmap is given; zeros of the same dims where `place` is None."""
    if isinstance(dim, (list, tuple)):
        return [slice_of(one, its, place) for one, its in zip(given, dim, strict=True)]
    if not isinstance(dim, int):
        return given
    if place is None:
        return given.new_zeros(given.shape[:dim] + given.shape[dim + 1 :])
    return given.select(dim, place)


def named(tensor: Tensor, value: Any) -> list[tuple[str, Any]]:
    """What is given for an input; of a list each item by its name. What is no list is told by the core."""
    if not tensor.list:
        return [(tensor.name, value)]
    items = value if isinstance(value, (list, tuple)) else ()
    return [(f"{tensor.name}[{place}]", one) for place, one in enumerate(items)]
