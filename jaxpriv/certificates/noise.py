"""The covariance of a Gaussian mechanism as a float64 matrix with a bound of every entry's error."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from jaxpriv.certificates.arithmetic import (
    ROUNDED,
    SMALLEST,
    fraction_down,
    fraction_up,
    norm_up,
    power_of_two,
    safely_positive,
)
from jaxpriv.certificates.doubledouble import accumulate
from jaxpriv.certificates.logdet import log_determinant_bounds
from jaxpriv.certificates.products import left_factor, product, right_factor
from jaxpriv.certificates.scalars import log_bounds


def noise_matrix(factor: np.ndarray, floor_variance: float, *added: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`factor @ factor.T + floor_variance I + sum(added)`, (n, n), symmetric, and the bound of each entry's error.

    `added` are symmetric matrices (n, n), taken as exact.
    """
    size = factor.shape[0]
    terms, left_out = [floor_variance * np.eye(size), *added], np.zeros((size, size))
    if factor.shape[1]:
        hi, lo, left_out = product(left_factor(factor), right_factor(np.ascontiguousarray(factor.T)))
        terms += [hi, lo]
    total, rest, rounding = accumulate(terms)
    error = (rounding + left_out + np.abs(rest)) * ROUNDED + SMALLEST
    lower = np.tril(total)
    # Both triangles approximate the same exact matrix, so one may stand for both with its own error.
    mirrored = np.tril(error)
    return lower + np.tril(lower, -1).T, mirrored + np.tril(mirrored, -1).T


def uncertain_log_determinant(matrix: np.ndarray, error: np.ndarray) -> tuple[float, float]:
    """Bounds of `log det A` for every symmetric A whose entries differ from `matrix` (n, n) by at most `error`.

    Scaled by powers of two first, so that small rows are not drowned by the errors of large ones. (-inf, inf) where
    positive definiteness could not be verified.
    """
    diagonal = np.diagonal(matrix)
    if not safely_positive(diagonal):
        return -math.inf, math.inf
    scaling = power_of_two(diagonal)
    both = np.outer(scaling, scaling)
    low, high = log_determinant_bounds(matrix * both, norm_up(error * both + SMALLEST) * ROUNDED)
    if not (math.isfinite(low) and math.isfinite(high)):
        return -math.inf, math.inf
    halvings = 2 * sum(int(one) - 1 for one in np.frexp(scaling)[1])
    two_low, two_high = log_bounds(2.0)
    shift_low, shift_high = sorted((-halvings * Fraction(two_low), -halvings * Fraction(two_high)))
    return fraction_down(Fraction(low) + shift_low), fraction_up(Fraction(high) + shift_high)


def noise_log_determinant_lower(factor: np.ndarray, floor_variance: float) -> float:
    """Lower bound of `log det(factor @ factor.T + floor_variance I)`, -inf where nothing could be verified.

    With fewer columns than rows the determinant is `floor^(n-q) det(floor I + factor.T @ factor)`, which loses nothing
    to a floor far below the rest.
    """
    size, columns = factor.shape
    if columns >= size:
        return uncertain_log_determinant(*noise_matrix(factor, floor_variance))[0]
    if not floor_variance > SMALLEST:
        return -math.inf
    total = (size - columns) * Fraction(log_bounds(floor_variance)[0])
    if columns:
        low = uncertain_log_determinant(*noise_matrix(np.ascontiguousarray(factor.T), floor_variance))[0]
        if not math.isfinite(low):
            return -math.inf
        total += Fraction(low)
    return fraction_down(total)
