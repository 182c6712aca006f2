"""Products in slices, against exact rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from jaxpriv.certificates.arithmetic import gamma
from jaxpriv.certificates.batched_products import applied, quadratic


def exact_product(matrix: np.ndarray, vector: np.ndarray) -> list[Fraction]:
    numbers = [Fraction(float(x)) for x in vector]
    return [sum((Fraction(float(a)) * x for a, x in zip(row, numbers, strict=True)), Fraction(0)) for row in matrix]


def cancelling(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """A matrix close to one of rank one, and a vector that it nearly annihilates."""
    direction = rng.standard_normal(n)
    matrix = np.outer(direction, direction) + 1e-9 * rng.standard_normal((n, n))
    vector = rng.standard_normal(n)
    return matrix, vector - direction * (direction @ vector) / (direction @ direction)


def graded(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Entries of every magnitude, subnormal ones and zeros among them."""
    matrix = rng.standard_normal((n, n)) * np.exp2(rng.integers(-1074, 300, (n, n)))
    vector = rng.standard_normal(n) * np.exp2(rng.integers(-1074, 300, n))
    matrix[rng.random((n, n)) < 0.2] = 0.0
    return matrix, vector


def halves(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Entries half way between two multiples of the grid, all at the largest size, all of one sign: no room is left."""
    top = np.nextafter(1.0, 0.0)
    return np.full((n, n), top) - np.exp2(rng.integers(-53, -20, (n, n))), np.full(n, top / n)


@pytest.mark.parametrize("make", [cancelling, graded, halves])
@pytest.mark.parametrize("n", [1, 2, 5, 33, 64])
@pytest.mark.parametrize("exponent", [0, -350, 350])
def test_the_error_of_a_product_is_bounded_and_tiny(rng, make, n, exponent):
    matrix, vector = make(rng, n)
    # Beyond what the cut reaches nothing may be claimed but what is true.
    matrix = matrix * 2.0**exponent if make is not graded else matrix
    values, errors = applied(matrix[None], vector[None])
    exact = exact_product(matrix, vector)
    for value, error, true in zip(values[0], errors[0], exact, strict=True):
        assert abs(Fraction(float(value)) - true) <= Fraction(float(error))
    if make is not graded:
        # 2^-21 of a plain product's bound, and a rounding of the value.
        largest = np.max(np.abs(matrix)) * np.sum(np.abs(vector))
        assert np.all(errors[0] <= 8 * 2.0**-21 * gamma(n + 3) * largest + 2.0**-52 * np.abs(values[0]) + 1e-289)
    total, spread = quadratic(vector[None], values, errors)
    true = sum((Fraction(float(x)) * y for x, y in zip(vector, exact, strict=True)), Fraction(0))
    assert abs(Fraction(float(total[0])) - true) <= Fraction(float(spread[0]))


def test_what_is_not_finite_or_too_large_has_no_finite_error(rng):
    matrix, vector = rng.standard_normal((4, 6, 6)), rng.standard_normal((4, 6))
    matrix[0, 2, 3] = np.nan
    matrix[1, 2, 3] = np.inf
    matrix[2] *= 2.0**405
    vector[3] *= 2.0**405
    with np.errstate(all="ignore"):
        values, errors = applied(matrix, vector)
    assert not np.any(np.isfinite(errors) & np.isfinite(values))
