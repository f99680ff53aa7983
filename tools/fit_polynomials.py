"""Prints the coefficients of runtime/patterns/cuda/kernel_math.cuh and fast_math.cuh.

Each is a polynomial whose relative error is least (Remez), found in 50 digits by mpmath, which SymPy brings:
    python tools/fit_polynomials.py
With all roundings and a power of 2 that is off by as much as 2^-22.5, on 2,000,000 numbers each, what is made of them
was off by at most this many units in the last place (tests/runtime/cuda/kernel_math_test.cc sweeps fewer):
    cdf  float 7.1, double 4.4    pdf  float 5.7, double 2.2    exp  double 0.9
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mpmath as mp

Function = Callable[[mp.mpf], mp.mpf]

GRID = 1000
ROUNDS = 12


def fitted(function: Function, weight: Function, powers: Sequence[int], low: mp.mpf, high: mp.mpf) -> list[mp.mpf]:
    """The coefficients of x^powers, highest first, for which (polynomial - function) * weight is least."""

    def at(index: int, count: int) -> mp.mpf:
        return (low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * (index + 0.5) / count)

    grid = [at(index, GRID) for index in range(GRID)]
    wanted = [(function(x), weight(x)) for x in grid]
    count = len(powers) + 1
    chosen = [GRID * index // (count - 1) for index in range(count)]
    chosen[-1] = GRID - 1
    coefficients: list[mp.mpf] = []
    for _ in range(ROUNDS):
        matrix, right = mp.matrix(count, count), mp.matrix(count, 1)
        for row, index in enumerate(chosen):
            value, scale = wanted[index]
            for column, power in enumerate(powers):
                matrix[row, column] = grid[index] ** power * scale
            matrix[row, count - 1] = (-1) ** row
            right[row] = value * scale
        coefficients = list(mp.lu_solve(matrix, right))[:-1]
        errors = [
            (mp.polyval(coefficients, x) * x ** powers[-1] - value) * scale
            for x, (value, scale) in zip(grid, wanted, strict=True)
        ]
        extremes = largest_of_each_sign(errors)
        if len(extremes) < count:
            break
        while len(extremes) > count:
            extremes.pop(0 if abs(errors[extremes[0]]) < abs(errors[extremes[-1]]) else -1)
        chosen = extremes
    print(f"// Within 2^{mp.nstr(mp.log(max(map(abs, errors)), 2), 4)}.")
    return coefficients


def largest_of_each_sign(errors: Sequence[mp.mpf]) -> list[int]:
    """Where the error is largest before it changes its sign."""
    found: list[int] = []
    for index, error in enumerate(errors):
        if not found or (error > 0) != (errors[found[-1]] > 0):
            found.append(index)
        elif abs(error) > abs(errors[found[-1]]):
            found[-1] = index
    return found


def tail(scale: str, largest: str, degree: int, middle: str) -> list[mp.mpf]:
    """Of t - middle, t = 1 / (1 + scale * a): exp(a * a / 2) * (the normal distribution's tail beyond a) / t."""
    per = mp.mpf(scale)

    def ratio(x: mp.mpf) -> mp.mpf:
        t = x + mp.mpf(middle)
        a = (1 / t - 1) / per
        return mp.erfc(a / mp.sqrt(2)) / 2 * mp.exp(a * a / 2) / t

    low = 1 / (1 + per * mp.mpf(largest)) - mp.mpf(middle)
    return fitted(ratio, lambda x: 1 / ratio(x), range(degree, -1, -1), low, 1 - mp.mpf(middle))


def exponential(degree: int) -> list[mp.mpf]:
    """Of r: what exp(r) is more than 1 + r, by r * r, for half a logarithm of 2 to either side of 0."""
    half = mp.log(2) / 2 * mp.mpf("1.0001")

    def rest(r: mp.mpf) -> mp.mpf:
        return (mp.expm1(r) - r) / r**2

    return fitted(rest, lambda r: r**2 / mp.exp(r), range(degree - 2, -1, -1), -half, half)


def main() -> None:
    mp.mp.dps = 50
    for name, coefficients, digits in (
        ("tail, 16 bits", tail("0.3", "14.3", 7, "0"), 9),
        ("tail, float", tail("0.3", "14.3", 9, "0.5"), 9),
        ("tail, double", tail("0.18", "38.6", 21, "0.5"), 17),
        ("exp, double", exponential(11), 17),
    ):
        print(name, ", ".join(mp.nstr(one, digits) for one in coefficients))


if __name__ == "__main__":
    main()
