"""What the GPU benchmark knows of a family of kernels: a module gpu_FAMILY for each folder of bench/gpu, found here."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from gpu_suites import Case

FOLDER = Path(__file__).resolve().parent / "gpu"

Line = dict[str, Any]  # what the program says of a case, with PyTorch's figures under "torch"
Rows = list[list[str]]  # a table, its heading first


@dataclass(frozen=True)
class Checks:
    """Small cases whose results are held to PyTorch's in float64."""

    heading: str
    shapes: list[str]
    types: list[str]
    outputs: Callable[[Any, Case, Path], dict[str, Any]]
    """Of each output what was saved, what is expected, and how far apart they may be; the Checker helps."""


@dataclass(frozen=True)
class Memory:
    """A part that waits for memory alone."""

    name: str
    part: str
    tensor: Callable[[Line], float]
    """Bytes of the tensor that has to be large for that."""
    moved: Callable[[Line], float]
    """Bytes that the part moves at least."""


@dataclass(frozen=True)
class Kind:
    """Cases that are measured and shown in one way."""

    name: str
    title: str
    """In sentences, "convolution"."""
    short: str
    """In tables."""
    op: str
    parts: tuple[str, ...]
    gradient: str
    """The part that is all of the gradient."""
    outputs: str
    """Those of the gradient, as charts and tables name them."""
    rows: Callable[[list[Line]], Rows]
    """The table of such cases."""
    torch_goals: dict[str, tuple[float, float]]
    """What PyTorch's time over ours is to come to, in NCHW and in NHWC: geometric means of a type's cases."""
    memory: Memory
    legacy_parts: tuple[str, ...] = ()
    """Of what cuDNN's legacy API has one where it has the case; none where it has no such operator."""
    legacy_time: Callable[[Line], tuple[float | None, float | None]] | None = None
    """Its time for the gradient, and ours for the same."""
    legacy_name: str = "cuDNN's legacy API"
    legacy_goal: float | None = None
    by_mode: bool = True
    """Whether the program gives all parts by mode, or the parts by search and the gradient by heuristics beside."""
    torch_sources: tuple[str, ...] = ()
    """PyTorch's ways, of which the better counts; none where it has one."""
    operations: int = 1
    """How often the gradient makes the operations that the program counts."""
    bytes: str = "bytes"
    """Where the program says what the gradient moves at least: every input read once, every output written once."""
    has_roofline: bool = True
    checks: Checks | None = None


@dataclass(frozen=True)
class Part:
    """Cases that are measured in one way."""

    name: str
    weight: float  # its share of the time, where that is limited
    cases: Callable[[], list[Case]]
    torch: Callable[[Any, Case, Line], dict[str, Any]] | None  # by PyTorch, after the program's line
    kind: str = ""  # of the cases, if not the name
    arguments: tuple[str, ...] = ()  # to the program
    results: str = "cases"  # where they go
    option: str = ""  # what the help says of the part's own option; none where it has none
    must_be_named: bool = False


def _nothing(_results: dict[str, Any]) -> list[Any]:
    return []


@dataclass(frozen=True)
class Family:
    """What a module gpu_FAMILY has under the name FAMILY."""

    kinds: tuple[Kind, ...]
    parts: tuple[Part, ...]
    host: Callable[[Any], dict[str, float]] | None = None
    """What PyTorch's call takes on the host that the program's --host measures of ours."""
    summary: Callable[[dict[str, Any]], list[str]] = _nothing
    """Lines of a run beside those of all kinds."""
    tables: Callable[[dict[str, Any]], list[Rows]] = _nothing
    draw: Callable[[dict[str, Any], Path], None] | None = None
    """Draws charts beside those of all kinds into a folder."""


@functools.cache
def families() -> tuple[Family, ...]:
    names = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
    return tuple(import_module(f"gpu_{name}").FAMILY for name in names)


@functools.cache
def kinds() -> dict[str, Kind]:
    return {kind.name: kind for family in families() for kind in family.kinds}


def kind_of(case: Line) -> Kind:
    return kinds()[case["kind"]]


def parts() -> tuple[Part, ...]:
    return tuple(part for family in families() for part in family.parts)
