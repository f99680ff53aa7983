"""Gradients where numbers are special: zeros of both signs, the smallest and the largest doubles, infinities, NaN and
seams. What formulas give there is what the derivative comes to, what the entry's seams say, or what stands here with
its reason. That pages say the same is in test_explain.py.

An infinity is put into the derivative as a number far beyond all doubles, and a zero as it is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping

import mpmath
import pytest
from formula_language import IN_DOUBLE, OPS, Slope, evaluated
from test_derivatives import GRADIENT, GRADIENTS, derivatives, is_mask, is_same, said

Point = Mapping[str, float]

INF, NAN = math.inf, math.nan
LARGEST, SMALLEST = 1.7976931348623157e308, 5e-324
FAR = mpmath.mpf(10) ** 400
LITTLE = 1e-150  # which the root of 1 / FAR is not
HUGE, TINY = 1e300, 1e-300  # beyond which a step of a formula may overflow, or come to nothing
SPECIAL = (0.0, -0.0, SMALLEST, -SMALLEST, 1e-310, LARGEST, -LARGEST, INF, -INF, NAN)
PAIRED = (0.0, -0.0, -1.0, 2.5, SMALLEST, LARGEST, -LARGEST, INF, -INF, NAN)

# Where a gradient of one tensor gives something else than the derivative comes to: the operator, X, what it gives, why.
OF_ONE = [  # no mapping: zeros of two signs are one key
    ("CosGrad", INF, NAN, "a sine has no limit"),
    ("CosGrad", -INF, NAN, "a sine has no limit"),
    ("SinGrad", INF, NAN, "a cosine has no limit"),
    ("SinGrad", -INF, NAN, "a cosine has no limit"),
    ("TanGrad", INF, NAN, "a tangent has no limit"),
    ("TanGrad", -INF, NAN, "a tangent has no limit"),
    ("LogGrad", 0.0, INF, "the slope has no bound; that of 1 / X"),
    ("LogGrad", -0.0, -INF, "as 1 / X has it"),
    ("SqrtGrad", 0.0, INF, "the slope has no bound"),
    ("SqrtGrad", -0.0, -INF, "the root of -0 is -0"),
    ("ReciprocalGrad", 0.0, -INF, "the slope has no bound"),
    ("ReciprocalGrad", -0.0, -INF, "the slope has no bound"),
]


def is_beyond(x: float) -> bool:
    """Where a step of a formula may overflow."""
    return not abs(x) < HUGE


# Where a gradient of two tensors is not compared, as doubles do not hold a step of its formula, or as the formula
# decides more than the derivative tells.
OF_TWO: dict[str, tuple[Callable[[Point], bool], str]] = {
    "DivGrad": (
        lambda at: (is_beyond(at["A"]) and is_beyond(at["B"])) or abs(at["B"]) < TINY,
        "a quotient of both overflows, or is of two infinities",
    ),
    **dict.fromkeys(
        ("GluGrad", "SwiGluGrad"),
        (lambda at: is_beyond(at["gate"]) and not math.isfinite(at["up"]), "an infinite up is multiplied by 0"),
    ),
    "GeGluGrad": (lambda at: is_beyond(at["gate"]), "an infinite up is multiplied by 0, and digits are too many"),
    "ReGluGrad": (lambda at: at["gate"] <= 0 and math.isnan(at["up"]), "what is not selected is not read"),
    "PowGrad": (
        lambda at: at["A"] == 0 or not TINY < abs(at["A"]) < HUGE or is_beyond(at["B"]),
        "a power or a logarithm is beyond doubles; dB is 0 where A is",
    ),
}


# Beyond these numbers the slope is that of a bound to all digits, which take seconds.
BOUNDED = {"FastGeluGrad": 1e6}


def far(x: float, name: str) -> mpmath.mpf:
    if abs(x) > BOUNDED.get(name, INF):
        return mpmath.mpf(math.copysign(BOUNDED[name], x))
    return mpmath.sign(x) * FAR if math.isinf(x) else mpmath.mpf(x)


def slope(name: str, which: Slope, at: Point) -> float | None:
    """What the derivative comes to, times dY; None where it is no real number."""
    peer = derivatives(name)
    with mpmath.workdps(900):
        values = [far(at[key], name) for key in peer.inputs]
        try:
            forward, found = peer.function(*values), peer.slopes[which](*values)
            is_real = not isinstance(found, mpmath.mpc) and not isinstance(forward, mpmath.mpc)
            return float(found * GRADIENT) if is_real else None
        except ZeroDivisionError:
            return None
        except OverflowError:  # of a function whose argument has too many digits
            return slope(name, which, {key: math.copysign(1e6, one) for key, one in at.items()})


def at_seam(name: str, known: Mapping[str, float]) -> dict[str, float]:
    """What the entry says, where it says something of the place."""
    numbers = {**known, "nan": NAN, "inf": INF}
    found: dict[str, float] = {}
    for seam in OPS[name].get("seams", []):
        if all(is_same(known[key], value) for key, value in said(seam["at"], numbers).items()):
            found |= said(seam["gives"], numbers)
    return found


def given_at(name: str, at: Point) -> dict[str, float]:
    """What the gradient's formulas are given."""
    attributes = derivatives(name).attributes
    known = {**attributes, "dY": GRADIENT, "pi": math.pi, **at}
    forward = evaluated(OPS[OPS[name]["gradient_of"]], {**attributes, "pi": math.pi, **at}, IN_DOUBLE)
    return {**known, "Y": forward["Y"]}


def agrees(found: float, expected: float) -> bool:
    """But for rounding, for what is 0 where FAR is infinity, and for a step that overflows where the
    result nearly does."""
    nearly_overflows = abs(expected) > HUGE and found * expected > 0 and math.isinf(found)
    return is_same(found, expected) or abs(found - expected) < LITTLE or nearly_overflows


def of_numbers(name: str, inputs: int) -> bool:
    forward = OPS[OPS[name]["gradient_of"]]
    return len(forward["inputs"]) == inputs and not any(is_mask(forward, key) for key in forward["inputs"])


@pytest.mark.parametrize("name", [name for name in GRADIENTS if of_numbers(name, 1)])
def test_gradients_of_one_tensor(name: str) -> None:
    compared = 0
    for x in SPECIAL:
        known = given_at(name, {"X": x})
        found = evaluated(OPS[name], known, IN_DOUBLE)["dX"]
        declared = next((gives for op, at, gives, _ in OF_ONE if op == name and has_bits(at, x)), None)
        of_seam = at_seam(name, known).get("dX")
        expected = declared if declared is not None else of_seam
        if expected is None:
            expected = NAN if math.isnan(x) else slope(name, ("dX", "X"), {"X": x})
        if expected is not None:
            compared += 1
            assert agrees(found, expected), (x, found, expected)
    assert compared >= 5


def has_bits(a: float, b: float) -> bool:
    """Zeros of two signs are two."""
    return a == b and math.copysign(1, a) == math.copysign(1, b)


@pytest.mark.parametrize("name", [name for name in GRADIENTS if of_numbers(name, 2)])
def test_gradients_of_two_tensors(name: str) -> None:
    keys = derivatives(name).inputs
    is_exception, _ = OF_TWO.get(name, (lambda _: False, ""))
    compared = 0
    for values in itertools.product(PAIRED, repeat=2):
        at = dict(zip(keys, values, strict=True))
        known = given_at(name, at)
        found = evaluated(OPS[name], known, IN_DOUBLE)
        of_seam = at_seam(name, known)
        for which in derivatives(name).slopes:
            output, _ = which
            expected = of_seam.get(output)
            if expected is None and not is_exception(at):
                expected = slope(name, which, at)
            if expected is not None:
                compared += 1
                assert agrees(found[output], expected), (at, which, found[output], expected)
    assert compared >= 30


def ordinary_points(name: str) -> list[Point]:
    """Where all functions have a slope, and of a mask both."""
    forward = OPS[OPS[name]["gradient_of"]]
    numbers = {key: 0.3 + 0.4 * place for place, key in enumerate(forward["inputs"])}
    masks = [key for key in forward["inputs"] if is_mask(forward, key)]
    chosen = itertools.product((0.0, 1.0), repeat=len(masks))
    return [{**numbers, **dict(zip(masks, one, strict=True))} for one in chosen]


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_that_arrive(name: str) -> None:
    """Where the slope is 0, as what a mask drops, none does harm."""
    for at, arriving in itertools.product(ordinary_points(name), SPECIAL):
        found = evaluated(OPS[name], {**given_at(name, at), "dY": arriving}, IN_DOUBLE)
        for which in derivatives(name).slopes:
            output, one = which[0], slope(name, which, at)
            assert one is not None
            expected = one / GRADIENT * arriving if one else 0.0
            is_right = is_same(found[output], expected) or abs(found[output] - expected) < LITTLE
            overflows = abs(arriving) == LARGEST and math.isinf(found[output]) and found[output] * expected > 0
            assert is_right or overflows, (at, arriving, output, found[output], expected)
