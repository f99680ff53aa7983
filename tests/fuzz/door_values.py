"""What comes in the place of arguments."""

from __future__ import annotations

import ctypes
import itertools
import math
import random
from array import array as typed
from collections.abc import Callable
from typing import Any

import capsules
import gradsmith
import numpy as np

DTYPES: list[Any] = [np.dtype(name) for name in ("float32", "float64", "float16")]
try:
    import ml_dtypes

    DTYPES.append(np.dtype(ml_dtypes.bfloat16))
except ModuleNotFoundError:
    pass


class Own(Exception):
    """What an argument's own code raises, and the package lets through."""


def fail(*told: Any, **keywords: Any) -> Any:
    raise Own


class Failing:
    """An argument whose own code fails, in whatever it is asked."""

    __index__ = __float__ = __iter__ = __len__ = __repr__ = __dlpack__ = __dlpack_device__ = fail
    __getitem__ = __eq__ = __hash__ = fail


class Nothing:
    """An argument whose own code returns what it must not."""

    def __index__(self) -> Any:
        return "1"

    def __float__(self) -> Any:
        return "1"

    def __iter__(self) -> Any:
        return 1

    def __len__(self) -> Any:
        return -1

    def __repr__(self) -> Any:
        return 1

    def __dlpack__(self, **keywords: Any) -> Any:
        return 1

    def __dlpack_device__(self) -> Any:
        return (1, 0)


def lying_type(chance: random.Random) -> Any:
    """Memory of bytes that says it is of another type."""
    kind = type("Lying", (np.ndarray,), {"dtype": chance.choice(DTYPES)})
    return np.zeros(chance.choice([(2, 3), (1, 1, 6), (3,), ()]), chance.choice(["u1", "i8", "V0", "S3", "c8"])).view(
        kind
    )


def lying_capsule(chance: random.Random) -> Any:
    _, lies = chance.choice(list(capsules.LIES.values()))
    return capsules.Lying(np.ones(chance.choice([(1, 1, 3), (2, 2), (1,)])), chance.random() < 0.5, **lies)


def huge(chance: random.Random) -> Any:
    """A view of one element, many times."""
    dims = [chance.choice([1, 2, 1 << 20, 1 << 31, (1 << 40) + 1]) for _ in range(chance.randint(1, 4))]
    if math.prod(dims) > 1 << 58:
        dims = dims[:1]
    return np.broadcast_to(np.ones((), chance.choice(DTYPES)), dims)


def overlapping(chance: random.Random) -> Any:
    base = np.zeros(64, chance.choice(DTYPES))
    steps = [chance.choice([0, 1, 2, -1]) * base.itemsize for _ in range(3)]
    return np.lib.stride_tricks.as_strided(base[32:], (2, 2, 3), steps)


def unaligned(chance: random.Random) -> Any:
    return np.zeros(65, "u1")[1:].view(chance.choice([">f4", "<f8", "f2"])).reshape(1, 1, -1)


BUFFERS: list[Any] = [kind * 4 for kind in (ctypes.c_float, ctypes.c_double, ctypes.c_char)]

CONSTANTS: list[Any] = [
    None,
    True,
    0,
    -1,
    1 << 40,
    -(1 << 63),
    1 << 64,
    10**4400,
    1.5,
    math.nan,
    math.inf,
    1j,
    int,
    type,
]
CONSTANTS += ["", "Y", "dX", "\ud800\0", "x" * 10**5, b"Y", (), [], {}, set(), ..., range(10**12), np.float32(1)]
CONSTANTS += [np.array("x"), Failing(), Nothing(), memoryview(b""), gradsmith.Context()]

JUNK: list[Callable[[random.Random], Any]] = [
    *[lambda chance: chance.choice(CONSTANTS)] * 16,
    lambda chance: [chance.choice([0, 1, -1, 1 << 62, 1.0, None, "1"]) for _ in range(chance.randint(0, 9))],
    lambda chance: tuple(
        chance.choice(["Y", "dX", "dW", "dB", "saved_mean", 1, ""]) for _ in range(chance.randint(0, 4))
    ),
    lambda chance: itertools.repeat(chance.choice(["Y", "dX", 1])),
    lambda chance: {chance.choice(["Y", "dX", "dW", 1]): lying_type(chance)},
    lambda chance: typed(chance.choice("bBhfd"), [1, 2, 3]),
    lambda chance: chance.choice(BUFFERS)(),
    lambda chance: np.zeros([chance.choice([0, 1, 2, 3]) for _ in range(chance.randint(0, 12))], chance.choice(DTYPES)),
    lambda chance: np.zeros((1, 1, 3), chance.choice(["i4", "c8", "O", "M8[s]", "?", "f4,f4", ">f4", "g"])),
    lambda chance: np.ma.masked_array(np.ones((1, 1, 3)), mask=True),
    *(lying_type, lying_capsule, huge, overlapping, unaligned),
]


def nested(chance: random.Random) -> Any:
    value = chance.choice(JUNK)(chance)
    for _ in range(chance.choice([1, 3, 2000])):
        value = [value]
    return value


JUNK.append(nested)
