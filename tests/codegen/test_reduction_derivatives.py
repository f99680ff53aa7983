"""The gradients of `ops.yaml` whose formulas name dims, against derivatives that SymPy makes of the forward
formulas, through their reductions. Every tensor has a few elements, each a symbol of its own."""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import mpmath
import pytest
import sympy
from formula_language import (
    IN_DOUBLE,
    OPS,
    SYMBOLIC,
    Slope,
    Words,
    defaults,
    evaluated,
    gradients,
    has_rows,
    is_condition,
    named,
    with_wrong_signs,
)

GRADIENTS = [name for name in gradients() if has_rows(OPS[name])]
SIZES = (2, 3, 1)  # of the dims of the largest tensor; further ones have one place
OTHER_SIZES = {  # which reduce other dims
    "InstanceNormalization": (2, 1, 3),
    "GroupNormalization": (2, 1, 2, 2),
    "MeanVarianceNormalization": (3, 2, 1),
}
POINTS = 12
LABELS = (2, 0, 1)  # of samples in turn, less than the classes


@dataclass(frozen=True)
class Dim:
    name: str


@dataclass(frozen=True)
class Array:
    """Cells by their places along dims, which have names."""

    dims: tuple[str, ...]
    cells: Mapping[tuple[int, ...], Any]

    def at(self, place: Mapping[str, int]) -> Any:
        return self.cells[tuple(place[dim] for dim in self.dims)]


class Sizes:
    """How many places each dim has."""

    def __init__(self, op: Any) -> None:
        shapes = [dims_of(op, tensor) for tensor in (*op["inputs"].values(), *op["outputs"].values())]
        largest = max(shapes, key=len)
        sizes = OTHER_SIZES.get(op["name"], SIZES)
        self.by_name = dict(zip(largest, (*sizes, *[1] * len(largest)), strict=False))

    def places(self, dims: Iterable[str]) -> list[dict[str, int]]:
        names = list(dims)
        ranges = [range(self.by_name[name]) for name in names]
        return [dict(zip(names, place, strict=True)) for place in itertools.product(*ranges)]

    def array(self, dims: tuple[str, ...], cell: Callable[[dict[str, int]], Any]) -> Array:
        return Array(dims, {tuple(place.values()): cell(place) for place in self.places(dims)})


def dims_of(op: Any, tensor: Any) -> tuple[str, ...]:
    while "shape" not in tensor:
        tensor = {**op["outputs"], **op["inputs"]}[tensor["like"]]
    names = [str(dim).lstrip("*") for dim in tensor["shape"] if dim != 1]
    return tuple(part for name in names for part in op["dims"].get(name, {}).get("split", [name]))


def words_by_name(words: Words, sizes: Sizes) -> dict[str, Callable[..., Any]]:
    """Functions of cells as functions of arrays, and the reductions."""

    def lifted(function: Callable[..., Any]) -> Callable[..., Any]:
        def apply(*arguments: Any) -> Array:
            arrays = [one if isinstance(one, Array) else Array((), {(): one}) for one in arguments]
            dims = tuple(dict.fromkeys(dim for one in arrays for dim in one.dims))
            return sizes.array(dims, lambda place: function(*[one.at(place) for one in arrays]))

        return apply

    def total(values: list[Any]) -> Any:
        return functools.reduce(words["+"], values)

    def mean(values: list[Any]) -> Any:
        return words["/"](total(values), words["number"](len(values)))

    def variance(values: list[Any]) -> Any:
        center = mean(values)
        deviations = [words["-"](one, center) for one in values]
        return mean([words["*"](one, one) for one in deviations])

    def reducing(reduce: Callable[[list[Any]], Any]) -> Callable[..., Array]:
        def apply(array: Array, *over: Dim) -> Array:
            reduced = [one.name for one in over]
            kept = tuple(dim for dim in array.dims if dim not in reduced)
            return sizes.array(
                kept, lambda place: reduce([array.at({**place, **inner}) for inner in sizes.places(reduced)])
            )

        return apply

    largest_of, larger = reducing(lambda values: functools.reduce(words["max"], values)), lifted(words["max"])

    def largest(*arguments: Any) -> Any:
        return (largest_of if isinstance(arguments[-1], Dim) else larger)(*arguments)

    def looked_up(table: Array, integers: Array) -> Array:
        zero = words["number"](0)
        return sizes.array(integers.dims, lambda place: table.cells.get((int(integers.at(place)),), zero))

    return {
        **{name: lifted(function) for name, function in words.items()},
        "index": lambda dim: sizes.array((dim.name,), lambda place: words["number"](place[dim.name])),
        "lookup": looked_up,
        "given": lambda is_there: Array((), {(): bool(is_there)}),
        "sum": reducing(total),
        "mean": reducing(mean),
        "variance": reducing(variance),
        "max": largest,
        "count": lambda *over: Array((), {(): words["number"](math.prod(sizes.by_name[one.name] for one in over))}),
    }


def scalars(values: Mapping[str, Any]) -> dict[str, Any]:
    """Texts stay as they are."""
    return {name: one if isinstance(one, str) else Array((), {(): one}) for name, one in values.items()}


class Derivatives:
    """Of the sum of a forward operator's outputs, each times its gradient, with respect to its inputs."""

    def __init__(self, name: str, attributes: tuple[tuple[str, float | str], ...]) -> None:
        """`name` is that of the gradient operator."""
        self.op = OPS[name]
        self.forward = OPS[self.op["gradient_of"]]
        self.sizes = Sizes(self.forward)
        self.dims = {one: Dim(one) for one in self.sizes.by_name}
        self.attributes = dict(attributes)
        inputs = {key: (dims_of(self.forward, one), one) for key, one in self.forward["inputs"].items()}
        self.labels = {key: self.some_labels(dims) for key, (dims, one) in inputs.items() if one["type"] == "Tind"}
        symbols = {key: self.symbols(key, dims) for key, (dims, _) in inputs.items() if key not in self.labels}
        self.arguments = [symbol for array in symbols.values() for symbol in array.cells.values()]
        exact = scalars({key: exactly(value) for key, value in self.attributes.items()} | {"pi": sympy.pi})
        self.outputs = evaluated(
            self.forward, {**exact, **symbols, **self.labels, **self.dims}, words_by_name(SYMBOLIC, self.sizes)
        )
        self.given = {  # the gradient operator's inputs that are gradients, by the output that each is of
            one["gradient_of"]: key for key, one in self.op["inputs"].items() if "gradient_of" in one
        }
        weights = {key: self.symbols(f"d{key}", self.outputs[key].dims) for key in self.given}
        loss = sum(
            weights[key].cells[place] * cell for key in self.given for place, cell in self.outputs[key].cells.items()
        )
        self.all_arguments = [*self.arguments, *[one for array in weights.values() for one in array.cells.values()]]
        self.expressions = {  # by an output, and an input whose gradient it is
            (output, key): {place: sympy.diff(loss, one) for place, one in symbols[key].cells.items()}
            for output, tensor in self.op["outputs"].items()
            for key in named(tensor["gradient_of"])
        }
        self.slopes = {
            slope: {place: sympy.lambdify(self.all_arguments, one, "mpmath") for place, one in cells.items()}
            for slope, cells in self.expressions.items()
        }
        self.symbols_of = symbols
        self.weights = weights
        self.values = {
            key: {place: sympy.lambdify(self.arguments, cell, "mpmath") for place, cell in array.cells.items()}
            for key, array in self.outputs.items()
        }

    def some_labels(self, dims: tuple[str, ...]) -> Array:
        labels = itertools.cycle(LABELS)
        return self.sizes.array(dims, lambda place: sympy.Integer(next(labels)))

    def symbols(self, name: str, dims: tuple[str, ...]) -> Array:
        return self.sizes.array(
            dims, lambda place: sympy.Symbol(f"{name}_{'_'.join(map(str, place.values()))}", real=True)
        )

    def point(self, numbers: random.Random) -> dict[Any, float]:
        return {symbol: numbers.choice((-1, 1)) * numbers.uniform(0.25, 3) for symbol in self.all_arguments}

    def expected(self, at: Mapping[Any, float]) -> dict[Slope, dict[tuple[int, ...], float]]:
        with mpmath.workdps(60):
            arguments = [mpmath.mpf(at[symbol]) for symbol in self.all_arguments]
            return {
                key: {place: float(slope(*arguments)) for place, slope in slopes.items()}
                for key, slopes in self.slopes.items()
            }

    def computed(self, op: Any, at: Mapping[Any, float], **beside: float) -> dict[str, Array]:
        """What the gradient's formulas give; `beside` is what it alone is given, the same number everywhere."""
        given: dict[str, Any] = {**scalars(self.attributes), **scalars({"pi": math.pi, **beside}), **self.dims}
        for key, array in self.labels.items():
            given[key] = Array(array.dims, {place: float(one) for place, one in array.cells.items()})
        for output, key in self.given.items():
            given[key] = Array(
                self.weights[output].dims, {place: at[one] for place, one in self.weights[output].cells.items()}
            )
        with mpmath.workdps(60):
            arguments = [mpmath.mpf(at[symbol]) for symbol in self.arguments]
            for key in op["inputs"]:
                if key in self.symbols_of:
                    array = self.symbols_of[key]
                    given[key] = Array(array.dims, {place: at[one] for place, one in array.cells.items()})
                elif key in self.values:  # what the forward operator gave
                    cells = {place: float(value(*arguments)) for place, value in self.values[key].items()}
                    given[key] = Array(self.outputs[key].dims, cells)
        return evaluated(op, given, words_by_name(IN_DOUBLE, self.sizes))


def exactly(value: float | str) -> Any:
    """A number, or a truth value or a text as it is."""
    return value if isinstance(value, bool | str) else sympy.Rational(value)


derivatives = functools.cache(Derivatives)


def attributes_of(op: Any) -> list[tuple[tuple[str, float | str], ...]]:
    """Every value of integers that have few, of truth values and of enums, beside the defaults of others."""
    values = defaults(op)
    integers = {key: one for key, one in op.get("attributes", {}).items() if one["type"] == "int"}
    few = {key: one for key, one in integers.items() if {"min", "max"} <= one.keys()}
    ranges: list[list[tuple[str, float | str]]] = [
        [(key, float(one)) for one in range(few[key]["min"], few[key]["max"] + 1)] if key in few else [(key, value)]
        for key, value in values.items()
        if key != "axis"
    ]
    ranges += [[(key, False), (key, True)] for key, one in op.get("attributes", {}).items() if one["type"] == "bool"]
    enums = {key: one for key, one in op.get("attributes", {}).items() if one["type"] == "enum"}
    ranges += [[(key, choice) for choice in one["choices"]] for key, one in enums.items()]
    of_labels = [key for key, one in integers.items() if one.get("optional")]
    without = list(itertools.product(*ranges))
    return [*without, *[(*values, (key, float(LABELS[1]))) for values in without for key in of_labels]]


def compare(name: str, op: Any) -> None:
    for attributes in attributes_of(OPS[op["gradient_of"]]):  # which has its gradient's as well
        compare_with(derivatives(name, attributes), op)


def compare_with(peer: Derivatives, op: Any, **beside: float) -> None:
    """What is given beside what the forward operator has is added to the gradient."""
    numbers = random.Random(31)
    for _ in range(POINTS):
        at = peer.point(numbers)
        found = peer.computed(op, at, **beside)
        for (output, key), cells in peer.expected(at).items():
            dims = dims_of(peer.forward, peer.forward["inputs"][key])
            for place, value in cells.items():
                own = found[output].at(dict(zip(dims, place, strict=True))) - sum(beside.values())
                assert math.isclose(own, value, rel_tol=1e-10, abs_tol=1e-12), (output, key, place, value)


def test_there_are_some() -> None:
    assert len(GRADIENTS) >= 6


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient_is_the_derivative(name: str) -> None:
    compare(name, OPS[name])


@pytest.mark.parametrize("name", GRADIENTS)
def test_a_wrong_sign_is_noticed(name: str) -> None:
    op = OPS[name]
    for key, text in op["formulas"].items():
        if is_condition(str(text)):
            continue  # which has no sign
        for wrong in with_wrong_signs(str(text)):
            with pytest.raises((AssertionError, ValueError, OverflowError)):
                compare(name, {**op, "formulas": {**op["formulas"], key: wrong}})


LOSS, INTERNAL = "SoftmaxCrossEntropyLossGrad", "SoftmaxCrossEntropyLossInternalGrad"


def compare_internal(formulas: Mapping[str, Any], attributes: tuple[tuple[str, float | str], ...], bias: float) -> None:
    """It is the gradient of no operator by its entry: of the same as LOSS, whose inputs it has, and a bias."""
    op = {**OPS[INTERNAL], "outputs": OPS[LOSS]["outputs"], "formulas": formulas}
    compare_with(derivatives(LOSS, attributes), op, **({"bias": bias} if bias else {}))


VARIANTS = [(one, bias) for one in attributes_of(OPS[OPS[LOSS]["gradient_of"]]) for bias in (0.0, 0.75)]


@pytest.mark.parametrize(("attributes", "bias"), VARIANTS)
def test_the_internal_gradient_is_the_derivative(attributes: tuple[tuple[str, float | str], ...], bias: float) -> None:
    compare_internal(OPS[INTERNAL]["formulas"], attributes, bias)


def is_noticed(formulas: Mapping[str, Any], attributes: tuple[tuple[str, float | str], ...], bias: float) -> bool:
    try:
        compare_internal(formulas, attributes, bias)
    except (AssertionError, ValueError, OverflowError):
        return True
    return False


@pytest.mark.parametrize(("attributes", "bias"), VARIANTS)
def test_a_wrong_sign_of_the_internal_gradient_is_noticed(
    attributes: tuple[tuple[str, float | str], ...], bias: float
) -> None:
    """In each variant that has a use for it: a mean divides by the sum of what is scaled, and others by nothing."""
    formulas = OPS[INTERNAL]["formulas"]
    without_use = {"scale"} if ("reduction", "mean") in attributes else {"factor", "total"}
    for key in [name for name, text in formulas.items() if not is_condition(str(text))]:
        for wrong in with_wrong_signs(str(formulas[key])):
            is_of_bias = not bias and wrong.endswith(" - bias")
            needed = key not in without_use and not is_of_bias
            assert is_noticed({**formulas, key: wrong}, attributes, bias) == needed, (key, wrong)
