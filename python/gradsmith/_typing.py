"""Types that signatures share."""

from typing import Any, Protocol, TypeVar


class SupportsDLPack(Protocol):
    """An array of NumPy, PyTorch, CuPy, JAX or another library. `__dlpack_device__`, which it must have as well, is not
    in the types of JAX's arrays."""

    def __dlpack__(self) -> Any: ...


class SupportsBuffer(Protocol):
    """An array of the standard library, or a view of memory."""

    def __buffer__(self, flags: int, /) -> memoryview: ...


A = TypeVar("A", bound=SupportsDLPack | SupportsBuffer)
"""An array of any library; all arrays of a call are of one."""
