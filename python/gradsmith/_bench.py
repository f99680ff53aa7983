"""Timing calls."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

import gradsmith

from . import _core, _device
from ._libraries import ELEMENT_TYPES, torch_dtypes
from ._ops import FUNCTIONS, OPERATIONS

_MOST_CALLS = 10_000
_FEWEST_CALLS = 5
_SIZES_OF_PRODUCTS_ON_CPU = (512, 1024, 2048)
_SIZES_OF_PRODUCTS = (4096,)


def default_problems() -> list[str]:
    """Those of runtime/FAMILY/problems.txt, and of runtime/patterns for operators by formulas, of the operators that
    there are and in their order."""
    order = {op.name: number for number, op in enumerate(gradsmith.ops())}
    files = (Path(__file__).parent / "_problems").glob("*.txt")
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    known = [(order[line.split()[0]], line) for line in lines if line.split()[0] in order]
    return [line for _, line in sorted(known, key=lambda one: one[0])]


@dataclass(frozen=True)
class Measured:
    """Times of one call, in milliseconds; what it must move, each input read once and each output written once, and
    what share of the speed of a copy of as much it has by its median; how many operations it makes, in billions, 0
    where ops.yaml has none; and its share of the limit, which a copy or a matrix product of as much sets, whichever
    takes longer. The limit is the best of what was seen, of the call too, so that no share of it passes 1. Counts of
    operations are of all outputs: where some are not wanted, neither they nor the limit are known."""

    problem: str
    device: str
    calls: int
    median_ms: float
    best_ms: float
    megabytes: float
    share_of_copy: float
    gigaoperations: float | None
    share_of_limit: float | None
    note: str = ""
    """What of the line is timed in another way; empty where nothing is."""


@dataclass(frozen=True)
class Prepared:
    """The call that a line describes, on arrays that are made."""

    parsed: dict[str, Any]
    inputs: list[Any]
    make: Callable[[Sequence[int], str], Any]
    wait: Callable[[], None]

    def run(self) -> Any:
        """The outputs, made anew, when they are there."""
        keywords = {**self.parsed["attributes"], "outputs": self.parsed["outputs"]}
        outputs = FUNCTIONS[self.parsed["op"]](*self.inputs, **keywords)
        self.wait()
        return outputs


def prepare(problem: str, device: str) -> Prepared:
    parsed = _core.parse_problem(problem)
    make, wait = _arrays_on(device)
    inputs = [
        _made(make, dims, element_type, parsed["channels_last"]) if element_type else held
        for dims, element_type, held in zip(parsed["inputs"], _types_of(parsed), _held(parsed), strict=True)
    ]
    return Prepared(parsed, inputs, make, wait)


def measure(problem: str, device: str, seconds: float) -> Measured:
    """Times the calls that a line describes, outputs made anew each time."""
    prepared = prepare(problem, device)
    parsed, inputs, make, wait = prepared.parsed, prepared.inputs, prepared.make, prepared.wait
    outputs = prepared.run()
    moved = _bytes_of(_inputs_read(parsed["op"], inputs)) + _bytes_of(outputs)
    operations = _operations(parsed, inputs, outputs)
    times = _times(prepared.run, seconds)
    median, best = statistics.median(times), min(times)
    copy = _copy_seconds(make, wait, moved, seconds / 4)
    lead = next((one for one in _types_of(parsed) if one), "float")
    product = _product_seconds(make, wait, operations or 0, lead, seconds / 4)
    limit = min(max(copy, product), best)
    return Measured(
        problem,
        device,
        len(times),
        median * 1e3,
        best * 1e3,
        moved / 1e6,
        copy / median,
        None if operations is None else operations / 1e9,
        None if operations is None else limit / median,
        _note_of(parsed),
    )


def _note_of(parsed: dict[str, Any]) -> str:
    """Calls from Python have no way to add to what is there."""
    accumulated = ", ".join(parsed["accumulated"])
    return f"timed without adding: {accumulated} written anew" if accumulated else ""


def _inputs_read(name: str, inputs: Sequence[Any]) -> list[Any]:
    """Those of which more than the shape is needed."""
    given = zip(_op(name).inputs, inputs, strict=True)
    return [array for tensor, array in given if not (tensor.shape_only or tensor.shape_of)]


def _bytes_of(arrays: Any) -> int:
    """Of one array, or of those of several that are there."""
    if arrays is None:
        return 0
    if isinstance(arrays, (tuple, list)):
        return sum(map(_bytes_of, arrays))
    count = math.prod(arrays.shape)
    return int(count * arrays.dtype.itemsize)


def _operations(parsed: dict[str, Any], inputs: Sequence[Any], outputs: Any) -> float | None:
    """How many operations of arithmetic the call makes; None where not all outputs are made, whose operations ops.yaml
    counts together."""
    count, op = OPERATIONS.get(parsed["op"]), _op(parsed["op"])
    if count is None:
        return 0
    if outputs is None or any(one is None for one in outputs):
        return None
    tensors = zip((*op.inputs, *op.outputs), (*inputs, *outputs), strict=True)
    return float(count({tensor.name: _dims_of(given) for tensor, given in tensors}, parsed["attributes"]))


def _dims_of(given: Any) -> Any:
    """Of an array, or of each of a list; None of what is neither."""
    if isinstance(given, list):
        return [_dims_of(one) for one in given]
    return getattr(given, "shape", None)


def _product_seconds(
    make: Callable[[Sequence[int], str], Any],
    wait: Callable[[], None],
    operations: float,
    element_type: str,
    seconds: float,
) -> float:
    """What the best speed of matrix products would make of so many operations. Small ones are slow where threads must
    be woken for each, large ones where a cache is small. On the CPU what is shorter than float is multiplied in float,
    as the kernels there do."""
    if operations == 0:
        return 0
    is_numpy = type(make((1,), "float")).__module__ == "numpy"
    multiplied = "float" if is_numpy and element_type != "double" else element_type
    sizes = _SIZES_OF_PRODUCTS_ON_CPU if is_numpy else _SIZES_OF_PRODUCTS
    return operations * min(_seconds_of_an_operation(make, wait, size, multiplied, seconds) for size in sizes)


def _seconds_of_an_operation(
    make: Callable[[Sequence[int], str], Any], wait: Callable[[], None], size: int, element_type: str, seconds: float
) -> float:
    """In the fastest product of two square matrices."""
    matrix = make((size, size), element_type)

    def multiply() -> None:
        matrix @ matrix
        wait()

    multiply()
    return min(_times(multiply, seconds)) / (2 * size**3)


def _copy_seconds(
    make: Callable[[Sequence[int], str], Any], wait: Callable[[], None], moved: int, seconds: float
) -> float:
    """The median time of a copy that reads and writes so many bytes together."""
    source, target = (make((max(moved // 8, 1),), "float") for _ in range(2))

    def copy() -> None:
        target[...] = source
        wait()

    copy()
    return statistics.median(_times(copy, seconds))


def _made(make: Callable[[Sequence[int], str], Any], dims: Any, element_type: str, channels_last: bool) -> Any:
    """An array, or a list of them where there are the dims of several."""
    if isinstance(dims, list):
        return [_laid_out(make, one, element_type, channels_last) for one in dims]
    return _laid_out(make, dims, element_type, channels_last)


def _laid_out(
    make: Callable[[Sequence[int], str], Any], dims: Sequence[int], element_type: str, channels_last: bool
) -> Any:
    if not channels_last or len(dims) < 3:
        return make(dims, element_type)
    array = make((dims[0], *dims[2:], dims[1]), element_type)
    return array.movedim(-1, 1) if hasattr(array, "movedim") else import_module("numpy").moveaxis(array, -1, 1)


def _times(call: Callable[[], None], seconds: float) -> list[float]:
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < _FEWEST_CALLS or (time.perf_counter() < end and len(times) < _MOST_CALLS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return times


def _op(name: str) -> gradsmith.Operator:
    return next(one for one in gradsmith.ops() if one.name == name)


def _held(parsed: dict[str, Any]) -> list[Sequence[int] | None]:
    """What each input that holds a shape holds; None for others, and for one that the line leaves out."""
    given = zip(_op(parsed["op"]).inputs, parsed["inputs"], strict=True)
    return [dims if tensor.shape_of else None for tensor, dims in given]


def _types_of(parsed: dict[str, Any]) -> list[str | None]:
    """The type of each input; None for an optional one that the line leaves out, and for one that is no array."""
    op = _op(parsed["op"])
    row = next(one for one in op.rows if one.name == parsed["row"])
    return [
        None if tensor.shape_of or dims is None else row.types.get(tensor.type, tensor.type)
        for tensor, dims in zip(op.inputs, parsed["inputs"], strict=True)
    ]


def _arrays_on(device: str) -> tuple[Callable[[Sequence[int], str], Any], Callable[[], None]]:
    """What makes arrays on a device, and what waits until its work is done."""
    place = _device.parse(device)
    if missing := gradsmith.missing_for(device):
        raise RuntimeError(f"{device} cannot be used: {missing}")
    if not place.is_cuda:
        numpy = _library("numpy", "NumPy")

        def make(dims: Sequence[int], element_type: str) -> Any:
            name = ELEMENT_TYPES[element_type]
            dtype = _library("ml_dtypes", "ml_dtypes").bfloat16 if name == "bfloat16" else name
            return numpy.ones(dims, dtype)

        return make, lambda: None
    torch, dtypes = _library("torch", "PyTorch"), torch_dtypes()
    return (
        lambda dims, element_type: torch.ones(tuple(dims), dtype=dtypes[element_type], device=device),
        lambda: torch.cuda.synchronize(device),
    )


def _library(module: str, name: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(f"bench makes its arrays with {name}, which is not installed") from missing


def plot(rows: Sequence[Measured]) -> str:
    """The medians as bars of an SVG, on a logarithmic axis."""
    low = math.floor(math.log10(min(row.median_ms for row in rows)))
    high = max(math.ceil(math.log10(max(row.median_ms for row in rows))), low + 1)
    label, width, step = 620, 360, 24
    height = step * (len(rows) + 2)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{label + width + 90}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for decade in range(low, high + 1):
        x = label + width * (decade - low) / (high - low)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{step}" y2="{height - step}" stroke="#ccc"/>')
        parts.append(f'<text x="{x:.1f}" y="{height - 8}" text-anchor="middle">{10.0**decade:g} ms</text>')
    for number, row in enumerate(rows):
        y = step * (number + 1)
        length = width * (math.log10(row.median_ms) - low) / (high - low)
        parts.append(f'<text x="{label - 6}" y="{y + 16}" text-anchor="end">{escape(row.problem)}</text>')
        parts.append(f'<rect x="{label}" y="{y + 4}" width="{length:.1f}" height="{step - 8}" fill="#4878a8"/>')
        parts.append(f'<text x="{label + length + 4:.1f}" y="{y + 16}">{row.median_ms:.4g}</text>')
    return "\n".join([*parts, "</svg>", ""])
