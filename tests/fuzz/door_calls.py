"""One random call of the package: what python_door makes many of."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import capsules
import door_oracle as oracle
import gradsmith
import numpy as np
from door_values import DTYPES, JUNK, Own

REFUSALS = (TypeError, ValueError, NotImplementedError, MemoryError)
LONGEST_SENTENCE = 2000
TOLERANCE = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 1e-4, "float64": 1e-10}

Compute = Callable[[list[Any]], oracle.Arrays]


class Call:
    """A right call, with what must come of it."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.dtype = chance.choice(DTYPES)
        make = chance.choice([self._convolution, self._convolution, self._batch_normalization])
        make()
        self.keywords: dict[str, Any] = {**self.attributes}
        self.given = list(self.inputs)
        self.wanted = set(self.expected)
        self.guards: list[tuple[Any, Any]] = [(one, one.copy()) for one in self.inputs if one is not None]
        self.is_right = True

    def numbers(self, *dims: int) -> Any:
        """Small integers, so that sums of products are exact."""
        count = math.prod(dims)
        return np.array([self.chance.randint(-3, 3) for _ in range(count)], self.dtype).reshape(dims)

    def each(self, low: int, high: int, count: int) -> tuple[int, ...]:
        return tuple(self.chance.randint(low, high) for _ in range(count))

    def _convolution(self) -> None:
        chance, rank = self.chance, self.chance.randint(1, 3)
        group, n, c, m = chance.choice([1, 1, 2]), chance.choice([0, 1, 1, 2]), *self.each(1, 3, 2)
        attributes: dict[str, Any] = {
            "strides": self.each(1, 3, rank),
            "dilations": self.each(1, 2, rank),
            "group": group,
        }
        attributes["pads"] = self.each(0, 2, 2 * rank)
        kernel, image = self.each(1, 3, rank), self.each(5, 8, rank)
        self.attributes = attributes
        compute: Compute
        w, x = self.numbers(m * group, c, *kernel), self.numbers(n, c * group, *image)
        small = self.numbers(n, m * group, *oracle.out_dims(image, kernel, attributes))
        bias = chance.choice([None, "M"])
        self.name = chance.choice(["conv", "conv_grad", "conv_transpose", "conv_transpose_grad"])
        if self.name == "conv":
            b = bias and self.numbers(m * group)
            self.inputs, compute = [x, w, b], lambda given: oracle.conv(attributes, *given)
        elif self.name == "conv_grad":
            self.inputs, compute = [small, x, w], lambda given: oracle.conv_grad(attributes, *given)
        else:
            compute = self._transposed(small, x, w, bias and self.numbers(c * group))
        self.expected = compute([None if one is None else one.astype("float64") for one in self.inputs])

    def _transposed(self, small: Any, x: Any, w: Any, bias: Any) -> Compute:
        """The image is as large as output_padding says beyond what its convolution reads."""
        told, rank, image = dict(self.attributes), w.ndim - 2, x.shape[2:]
        least = [
            s * (o - 1) + d * (k - 1) + 1 - told["pads"][i] - told["pads"][rank + i]
            for i, (s, o, d, k) in enumerate(
                zip(told["strides"], small.shape[2:], told["dilations"], w.shape[2:], strict=True)
            )
        ]
        self.attributes["output_padding"] = tuple(a - b for a, b in zip(image, least, strict=True))
        if self.name == "conv_transpose":
            self.inputs = [small, w, bias]
            return lambda given: oracle.conv_transpose(told, image, *given)
        self.inputs = [x, small, w]
        return lambda given: oracle.conv_transpose_grad(told, *given)

    def _batch_normalization(self) -> None:
        chance = self.chance
        dims = (chance.randint(2, 4), chance.randint(1, 4), *self.each(1, 4, chance.randint(0, 3)))
        x, (scale, bias, mean) = self.numbers(*dims), (self.numbers(dims[1]) for _ in range(3))
        self.attributes = {"epsilon": chance.choice([0.25, 1.0])}
        self.name = chance.choice(["batch_normalization", "batch_normalization_grad"])
        if self.name == "batch_normalization":
            self.attributes["momentum"] = chance.choice([0.0, 0.5, 1.0])
            self.inputs = [x, scale, bias, mean, np.abs(mean)]
            compute: Callable[..., oracle.Arrays] = oracle.batch_normalization
        else:
            self.inputs = [self.numbers(*dims), x, scale, mean, np.abs(mean)]
            compute = oracle.batch_normalization_grad
        self.expected = compute(self.attributes, *(one.astype("float64") for one in self.inputs))


# Arrays that mean the same.


class Plain(np.ndarray):
    """A subclass that says nothing that is so."""

    dtype = property(lambda self: np.dtype("int8"))
    shape = property(lambda self: (1 << 40,))
    strides = property(lambda self: (1 << 40,))
    ndim = 77
    nbytes = itemsize = size = -1
    __array_interface__: Any = None

    def __len__(self) -> int:
        return 1 << 40


def apart(array: Any, chance: random.Random) -> Any:
    """The same elements with others between them."""
    wide = np.full((*array.shape, 2), 3, array.dtype)
    wide[..., 0] = array
    return wide[..., 0]


def innermost(array: Any, chance: random.Random) -> Any:
    """The same elements with the channels innermost."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1) if array.ndim > 2 else array


def readonly(array: Any, chance: random.Random) -> Any:
    array = array.copy()
    array.flags.writeable = False
    return array


SAME_ARRAYS: list[Callable[[Any, random.Random], Any]] = [apart, innermost, readonly]
SAME_ARRAYS += [lambda array, chance: array.view(Plain)]
SAME_ARRAYS += [lambda array, chance: memoryview(array) if array.dtype.char in "fde" else array]


# Changes of a call.


def _has_capsules(call: Call) -> bool:
    return any(isinstance(one, capsules.Lying) for one in call.given)


def same_array(call: Call) -> None:
    if _has_capsules(call):
        return
    places = [i for i, one in enumerate(call.given) if one is not None]
    at = call.chance.choice(places)
    call.given[at] = call.chance.choice(SAME_ARRAYS)(call.inputs[at], call.chance)


def as_capsules(call: Call) -> None:
    if call.dtype == np.float64 and "out" not in call.keywords:
        call.given = [one if one is None else capsules.Lying(one, call.chance.random() < 0.5) for one in call.inputs]


FORMS: list[Callable[[list[str]], Any]] = [tuple, list, iter, set, lambda names: (one for one in names)]


def fewer_outputs(call: Call) -> None:
    if "out" in call.keywords:
        return
    names = [name for name in call.expected if call.name != "batch_normalization" or call.chance.random() < 0.5]
    if call.name == "batch_normalization":
        names = ["Y", *(name for name in names if name != "Y")]
    elif call.name.endswith("grad"):
        names = call.chance.sample(names, call.chance.randint(1, len(names)))
    call.wanted = set(names)
    call.keywords["outputs"] = call.chance.choice(FORMS)(names)


def into_arrays(call: Call) -> None:
    """Arrays to write to, with elements around them that must stay as they are."""
    if _has_capsules(call):
        return
    out = {}
    for name in call.wanted:
        dims = call.expected[name].shape
        around = np.full((*dims[:-1], dims[-1] + 8), 7, call.dtype)
        call.guards += [(around[..., :4], around[..., :4].copy()), (around[..., -4:], around[..., -4:].copy())]
        out[name] = around[..., 4:-4]
    call.keywords["out"] = out


def same_attribute(call: Call) -> None:
    name = call.chance.choice(list(call.attributes))
    value = call.attributes[name]
    forms: list[Any] = [np.int64, int] if isinstance(value, int) else [np.float64, float]
    forms = forms if not isinstance(value, tuple) else [list, np.array, lambda all: tuple(map(np.int32, all)), tuple]
    call.keywords[name] = call.chance.choice(forms)(value)


def junk_input(call: Call) -> None:
    call.given[call.chance.randrange(len(call.given))] = call.chance.choice(JUNK)(call.chance)
    call.is_right = False


def junk_keyword(call: Call) -> None:
    names = [*call.attributes, "outputs", "out", "context", "auto_pad", "kernel_shape", "output_shape", "x" * 10**5]
    call.keywords[call.chance.choice(names)] = call.chance.choice(JUNK)(call.chance)
    call.is_right = False


def junk_output(call: Call) -> None:
    call.keywords["out"] = dict.fromkeys(call.expected, call.chance.choice(JUNK)(call.chance))
    call.is_right = False


SAME = [same_array, same_array, as_capsules, fewer_outputs, into_arrays, same_attribute]
HOSTILE = [junk_input, junk_input, junk_keyword, junk_keyword, junk_output]


def make(chance: random.Random) -> bool:
    """Makes a call; returns whether it was not refused."""
    if chance.random() < 0.1:
        return _refusal(lambda: _other(chance)) is None
    call = Call(chance)
    for change in chance.sample(SAME, chance.randint(0, 3)):
        change(call)
    if chance.random() < 0.6:
        for change in chance.sample(HOSTILE, chance.randint(1, 2)):
            change(call)
    results: list[Any] = []
    refusal = _refusal(lambda: results.append(getattr(gradsmith, call.name)(*call.given, **call.keywords)))
    if call.is_right:
        if refusal is not None:
            raise AssertionError(f"a right call of {call.name} is refused") from refusal
        _check(call, results[0])
    for array, before in call.guards:
        np.testing.assert_array_equal(array, before, err_msg="memory was written to that is not an output's")
    return refusal is None


def _refusal(call: Callable[[], Any]) -> Exception | None:
    """What a call is refused by; None where it is made."""
    try:
        call()
        return None
    except Own as error:
        return error
    except REFUSALS as error:
        assert type(error).__module__ in ("builtins", "numpy._core._exceptions", "numpy.exceptions"), type(error)
        assert str(error) or isinstance(error, MemoryError), "an error without a sentence"
        assert len(str(error)) <= LONGEST_SENTENCE, f"a sentence of {len(str(error))} characters"
        return error


def _check(call: Call, result: Any) -> None:
    for name, expected in call.expected.items():
        got = getattr(result, name)
        if name not in call.wanted:
            assert got is None
            continue
        got = np.asarray(got).astype("float64")
        assert got.shape == expected.shape, name
        scale = max(1.0, float(np.abs(expected).max(initial=0)))
        np.testing.assert_allclose(got, expected, rtol=0, atol=TOLERANCE[call.dtype.name] * scale, err_msg=name)


WORDS = ["Conv", "ConvGrad", "conv_grad", "BatchNormalization", "half", "float", "cpu", "cuda:0", "=", ",", "#"]
WORDS += ["X=1x1x3", "W=1x1x2", "pads=1,1", "strides=0", "layout=NHWC", "accumulate=dX"]
WORDS += ["X=" + "9x" * 99, "\0", "\ud800", "x" * 5000]


def _other(chance: random.Random) -> None:
    """What is not an operator."""
    junk = [chance.choice([chance.choice(WORDS), chance.choice(JUNK)(chance)]) for _ in range(chance.randint(1, 4))]
    line = " ".join(chance.choice(WORDS) for _ in range(chance.randint(1, 5)))
    policies = ["deterministic", "allow_tf32", "workspace_limit", "search_mode"]
    policies += ["search_budget_seconds", "first_choice_seconds"]
    match chance.randrange(5):
        case 0:
            gradsmith.explain(*junk)
        case 1:
            gradsmith.Context(**{chance.choice(policies): junk[0]})
        case 2:
            gradsmith.tune(chance.choice([line, [line], junk[0]]), device="cpu", progress=False)
        case 3:
            gradsmith.is_available(junk[0])
        case _:
            gradsmith.policy(**{chance.choice([*policies, "x" * 10**5]): junk[0]})
