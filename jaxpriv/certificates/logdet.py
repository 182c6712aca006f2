"""Verified logarithm of a determinant."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np

from jaxpriv.certificates.arithmetic import (
    UNIT_ROUNDOFF,
    norm_up,
    power_of_two,
    require_arithmetic,
    safely_positive,
    symmetric_array,
    up,
)
from jaxpriv.certificates.definiteness import smallest_eigenvalue_lower
from jaxpriv.certificates.doubledouble import cholesky
from jaxpriv.certificates.products import left_factor, product, right_factor
from jaxpriv.certificates.proposals import potrf, trtri


def log_determinant_bounds(matrix: np.ndarray, radius: float = 0.0) -> tuple[float, float]:
    """Bounds `(lower, upper)` of `log det A` for every symmetric A within `radius` of `matrix` (n, n).

    `radius` bounds the spectral norm of the difference; A is proven positive definite. With X any triangular matrix,
    `E = I - X' A X` and `||E||_F <= f < 1/2`: `log det A = -2 sum log |X_ii| + log det(I - E)`, of which the last term
    lies between `-tr E - f^2 / (2 (1 - f))` and `-tr E` (derived here).
    Returns (-inf, inf) where positive definiteness could not be verified.
    Raises InputError for a matrix that is not finite, square and symmetric.
    """
    require_arithmetic()
    matrix = symmetric_array(matrix, "matrix")
    unknown = -math.inf, math.inf
    diagonal = np.diagonal(matrix)
    if not safely_positive(diagonal):
        return unknown
    scaling = power_of_two(diagonal)
    scaled = matrix * np.outer(scaling, scaling)
    size = matrix.shape[0]
    with np.errstate(all="ignore"):
        factor, info = potrf(scaled, lower=0, clean=1)
        if info != 0:
            factor, _ = cholesky(scaled, np.zeros_like(scaled))
            if not np.all(np.isfinite(factor)):
                return unknown
        inverse, info = trtri(factor)
        if info != 0 or not np.all(np.isfinite(inverse)):
            return unknown
        half_hi, half_lo, first = product(left_factor(scaled), right_factor(inverse))
        hi, lo, second = product(left_factor(inverse.T), right_factor(half_hi, half_lo))
        entry = second + np.abs(inverse).T @ first * (1 + 2.0**-40)
        defect = (np.eye(size) - hi) - lo
        rounding = entry + 2 * UNIT_ROUNDOFF * (np.abs(defect) + np.abs(lo))
        size_of_defect = up((norm_up(defect) + norm_up(rounding)) * (1 + 8 * UNIT_ROUNDOFF))
    if not size_of_defect < 0.5:
        return unknown
    trace = sum(map(Fraction, np.diagonal(defect).tolist()), Fraction(0))
    trace_error = sum(map(Fraction, np.diagonal(rounding).tolist()), Fraction(0))
    square = Fraction(size_of_defect) ** 2
    low = -trace - trace_error - square / (2 * (1 - Fraction(size_of_defect)))
    high = -trace + trace_error
    if radius:
        definite = smallest_eigenvalue_lower(matrix)
        if not definite > radius:
            return unknown
        change = size * Fraction(radius) / (Fraction(definite) - Fraction(radius))
        low, high = low - change, high + change
    with decimal.localcontext() as context:
        context.prec, context.Emax, context.Emin = 60, decimal.MAX_EMAX, decimal.MIN_EMIN
        product_of_diagonals = Decimal(1)
        for value in (*np.diagonal(inverse).tolist(), *scaling.tolist()):
            product_of_diagonals *= abs(Decimal(value))
        logarithm = -2 * product_of_diagonals.ln()
        slack = (abs(logarithm) + size) * Decimal(10) ** -50
        lower = logarithm + _decimal(low) - slack
        upper = logarithm + _decimal(high) + slack
        return -_above(-lower), _above(upper)


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _above(value: Decimal) -> float:
    rounded = float(value)
    return rounded if Decimal(rounded) >= value else up(rounded)
