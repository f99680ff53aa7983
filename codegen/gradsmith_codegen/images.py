"""Images of CUDA kernels, as nvcc writes them: a header, and entries with the code of one architecture each.

NVIDIA does not document the format; what is not as it is known here is refused.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from .verbs import Refused

_MAGIC, _VERSION = 0xBA55ED50, 1
_HEADER = struct.Struct("<IHHQ")  # magic, version, its own size, the size of what follows
_ENTRY = struct.Struct("<HHIQ12xI")  # kind, version, its own size, the size of its code; the architecture
_KINDS = {1: "virtual", 2: "real"}  # PTX, which a driver compiles; machine code


@dataclass(frozen=True, slots=True)
class ArchitectureCode:
    """An entry of an image."""

    architecture: int  # 90 of 9.0
    kind: str  # real, virtual; empty where it is something else
    data: bytes


def entries(image: bytes) -> Iterator[ArchitectureCode]:
    if len(image) < _HEADER.size:
        raise Refused("an image of kernels is too short")
    magic, version, size, length = _HEADER.unpack_from(image)
    if magic != _MAGIC or version != _VERSION or len(image) < size + length:
        raise Refused("an image of kernels is not of the format that is known")
    at, end = size, size + length
    while at < end:
        kind, _, head, code, architecture = _ENTRY.unpack_from(image, at)
        yield ArchitectureCode(architecture, _KINDS.get(kind, ""), image[at : at + head + code])
        at += head + code


def only(image: bytes, wanted: list[str]) -> bytes:
    """The image with the code of some architectures, told as CMake does: `90`, `90-real` or `90-virtual`."""
    found = list(entries(image))
    kept = [one for one in found if not _names(one).isdisjoint(wanted)]
    known = {name for one in found for name in _names(one)}
    missing = [one for one in wanted if one not in known]
    if missing:
        names = sorted(f"{one.architecture}-{one.kind}" for one in found)
        raise Refused(f"there is no code for architecture {missing[0]}; the library has {', '.join(names)}")
    data = b"".join([one.data for one in kept])
    header = image[: _HEADER.unpack_from(image)[2]]
    return _HEADER.pack(_MAGIC, _VERSION, len(header), len(data)) + header[_HEADER.size :] + data


def _names(entry: ArchitectureCode) -> set[str]:
    return {str(entry.architecture), f"{entry.architecture}-{entry.kind}"}
