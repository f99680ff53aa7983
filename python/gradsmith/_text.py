"""How sentences quote what a caller gave: in few characters whatever its size, and whatever its own code does."""

from __future__ import annotations

from array import array
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, defaultdict, deque
from collections.abc import Callable, ItemsView, KeysView, Mapping, ValuesView
from itertools import islice
from reprlib import Repr
from types import MappingProxyType
from typing import Any

PACKAGE = __package__
"""The name of this package: gradsmith, or that of a library of own operators, which has these modules too."""

LONGEST = 60
"""So many characters of a text are quoted."""

_LONGEST_LINE = 240
"""So many characters of another library's sentence are told."""

_WIDEST = 1024
"""The most bits of an integer that is quoted in digits, which take quadratic time."""


class _Short(Repr):
    """The repr of one value that holds others, of which no more is looked at than is quoted."""

    def __init__(self) -> None:
        super().__init__()
        self._left = LONGEST + 1  # each has a character at least
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdeque = self.maxarray = LONGEST
        self.maxstring = self.maxother = 4 * LONGEST  # escapes take up to ten characters, and are cut later

    def repr1(self, x: Any, level: int) -> str:
        self._left -= 1
        return super().repr1(x, level) if self._left >= 0 else self.fillvalue

    def repr_dict(self, x: Mapping[Any, Any], level: int) -> str:
        if level <= 0:
            return "{...}"
        # The base sorts all keys first.
        items = [f"{self.repr1(key, level - 1)}: {self.repr1(one, level - 1)}" for key, one in islice(x.items(), 20)]
        return "{" + ", ".join(items) + "}"

    def repr_int(self, x: int, level: int) -> str:
        return int.__repr__(x) if x.bit_length() <= _WIDEST else f"an integer of {x.bit_length()} bits"

    def repr_bytes(self, x: bytes, level: int) -> str:
        return repr(x[: LONGEST + 1])

    def repr_instance(self, x: Any, level: int) -> str:
        # The base quotes the whole, and cuts it then.
        if isinstance(x, _MAPPINGS):
            return f"{type(x).__name__}({self.repr_dict(x, level)})"
        if isinstance(x, _VIEWS):
            return f"{type(x).__name__}({self.repr_list(list(islice(x, LONGEST)), level)})"
        return super().repr_instance(x, level)


_MAPPINGS = (OrderedDict, defaultdict, Counter, ChainMap, UserDict, MappingProxyType)
_VIEWS = (UserList, KeysView, ValuesView, ItemsView)
_HOLDERS = (*_MAPPINGS, *_VIEWS, deque, array)

_FIRST: dict[type, Callable[[Any], Any]] = {
    str: lambda text: str.__getitem__(text, slice(LONGEST + 1)),
    bytes: lambda text: bytes.__getitem__(text, slice(LONGEST + 1)),
    bytearray: lambda text: bytearray.__getitem__(text, slice(LONGEST + 1)),
    int: int.__pos__,
    dict: lambda items: dict(islice(dict.items(items), LONGEST)),
    list: lambda items: list(islice(list.__iter__(items), LONGEST)),
    tuple: lambda items: tuple(islice(tuple.__iter__(items), LONGEST)),
    set: lambda items: set(islice(set.__iter__(items), LONGEST)),
    frozenset: lambda items: frozenset(islice(frozenset.__iter__(items), LONGEST)),
}
"""What is looked at of values that may be of any size, by the type that has their repr."""


def quoted(value: object) -> str:
    """The repr of a value, cut where it is long. Of one whose repr fails it is said what it is."""
    return _of_code(_repr, value)


def written(value: object) -> str:
    """The same without quotes: a text itself, the repr of what holds others, and what `str` makes of all else."""
    return _of_code(str if isinstance(value, str) or not isinstance(value, (*_FIRST, *_HOLDERS)) else _repr, value)


def _of_code(tell: Callable[[object], str], value: object) -> str:
    try:
        return shortened(tell(value))
    except MemoryError:
        raise
    except Exception:
        return f"a {type_name(value)}"


def _repr(value: Any) -> str:
    for kind, first in _FIRST.items():  # a subclass may have a repr of its own
        if isinstance(value, kind) and getattr(type(value), "__repr__", None) is kind.__repr__:
            return _Short().repr(first(value))
    return _Short().repr(value) if isinstance(value, _HOLDERS) else repr(value)


def shortened(text: str) -> str:
    """A text, cut where it is long."""
    return text if len(text) <= LONGEST else text[:LONGEST] + "..."


def first_line(error: BaseException) -> str:
    """The first line of what an error says, cut where it is long, with escapes for what cannot be printed."""
    try:
        line = str.__getitem__(str(error), slice(_LONGEST_LINE + 1)).partition("\n")[0]
    except MemoryError:
        raise
    except Exception:
        return type_name(error)
    shown = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in line)
    return shown if len(shown) <= _LONGEST_LINE else shown[:_LONGEST_LINE] + "..."


def type_name(value: object) -> str:
    """The name of a value's type, with its module but for Python's own: "numpy.ndarray"."""
    kind = type(value)
    module, name = (_of_type(kind, attribute) for attribute in ("__module__", "__qualname__"))
    return name if module == "builtins" else f"{module}.{name}"


def class_name(value: object) -> str:
    """The name of a value's type alone: "ndarray"."""
    return _of_type(type(value), "__qualname__")


def _of_type(kind: type, attribute: str) -> str:
    """What `type` itself says; a metaclass, or a class's own attribute, may say anything."""
    told = type.__dict__[attribute].__get__(kind)
    return shortened(told) if isinstance(told, str) else "?"
