"""Names of devices: "cpu", "cuda", "cuda:1"."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from ._text import quoted, written


class Device(NamedTuple):
    """Where calls run, as _core takes it."""

    number: int
    is_cuda: bool

    @property
    def backend(self) -> str:
        return "cuda" if self.is_cuda else "cpu"


def parse(device: object) -> Device:
    """The device that a text, or an object of a library that is written so, names."""
    text = written(device)
    found = re.fullmatch(r"cpu(?::0)?|cuda(?::([0-9]{1,4}))?", text)
    if found is None:
        raise ValueError(f"device is {quoted(text)}; expected 'cpu', 'cuda' or, for example, 'cuda:1'")
    return Device(int(found[1] or 0), found[0].startswith("cuda"))


_DLPACK_CPU = 1


def is_on_cpu(array: Any) -> bool:
    """Whether an argument of a call lies in the memory of the CPU; what has nothing but a buffer does."""
    tell = getattr(array, "__dlpack_device__", None)
    return tell is None or tell()[0] == _DLPACK_CPU
