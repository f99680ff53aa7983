"""Types that signatures share."""

from typing import TypeVar

A = TypeVar("A")
"""An array of any library that speaks DLPack or the buffer protocol."""
