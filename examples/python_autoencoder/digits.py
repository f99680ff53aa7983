"""Handwritten digits, 8x8 pixels each (../data)."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Images = NDArray[np.float32]

FILE = Path(__file__).resolve().parents[1] / "data/optical_digits.csv"
SIDE = 8
HELD_OUT_SHARE = 6  # one image in so many


class Digits(NamedTuple):
    """Images of pixels from 0 to 1, in the order (image, channel, row, column)."""

    training: Images
    held_out: Images
    held_out_digits: NDArray[np.int64]


def read(random: np.random.Generator) -> Digits:
    table = np.loadtxt(FILE, delimiter=",", dtype=np.int64)
    random.shuffle(table)
    images = (table[:, :-1] / 16).astype(np.float32).reshape(-1, 1, SIDE, SIDE)
    count = len(images) // HELD_OUT_SHARE
    return Digits(images[count:], images[:count], table[:count, -1])
