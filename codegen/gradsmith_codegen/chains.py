"""Chains of names that each lead to at most one other: `like`, `length` and `gradient_of` make them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


def circles(following: Mapping[str, str]) -> Iterator[list[str]]:
    """The circles, each from its first name in the mapping's order on. The last of a circle leads to that one
    again."""
    order = {name: index for index, name in enumerate(following)}
    for path, end in _walks(following):
        if end in path:
            circle = path[path.index(end) :]
            first = circle.index(min(circle, key=order.__getitem__))
            yield circle[first:] + circle[:first]


def ends(following: Mapping[str, str]) -> dict[str, str]:
    """Where the chain of each name ends, at one that leads nowhere. A name whose chain runs into a circle is
    its own end."""
    found: dict[str, str] = {}
    endless: set[str] = set()
    for path, end in _walks(following):
        if end in endless or end in path:
            endless.update(path)
            found.update(zip(path, path, strict=True))
        else:
            found.update(dict.fromkeys(path, found.get(end, end)))
    return found


def text(circle: list[str]) -> str:
    """`a -> b -> a`."""
    shown = circle if len(circle) <= _SHOWN else [*circle[: _SHOWN - 1], "...", circle[-1]]
    return " -> ".join([*shown, circle[0]])


_SHOWN = 10


def _walks(following: Mapping[str, str]) -> Iterator[tuple[list[str], str]]:
    """Names in the order in which they follow each other, each of them once in all, and the name that stopped
    the walk: one that leads nowhere, or one that was met before, in this walk or an earlier one."""
    met: set[str] = set()
    for name in following:
        path: list[str] = []
        while name in following and name not in met:
            met.add(name)
            path.append(name)
            name = following[name]  # noqa: PLW2901 - the walk starts there
        if path:
            yield path, name
