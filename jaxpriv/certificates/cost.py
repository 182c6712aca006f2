"""Verified upper bound of what noise costs: the (weighted) trace of its covariance."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from jaxpriv.certificates.arithmetic import (
    LARGEST,
    SMALLEST,
    UNIT_ROUNDOFF,
    float64_array,
    fraction_up,
    require_arithmetic,
    symmetric_array,
)
from jaxpriv.certificates.doubledouble import two_product
from jaxpriv.certificates.products import left_factor, product, right_factor
from jaxpriv.errors import InputError


def cost_upper(factor: Any, floor_variance: float, weights: Any = None) -> float:
    """Upper bound of `tr(W G)` for `G = factor @ factor.T + floor_variance I`, in squared units of the trace.

    `factor` has shape (n, q); `weights` is None (W = I), the diagonal of W (n,), or W itself (n, n), symmetric.
    Relative slack about 1e-16. Raises InputError for arrays that are not finite, of the wrong shape or not symmetric,
    and for negative weights or floors.
    """
    require_arithmetic()
    factor = float64_array(factor, "factor")
    if factor.ndim != 2 or factor.shape[0] == 0:
        raise InputError(f"factor must have shape (n, q), n >= 1; it has shape {factor.shape}.")
    size = factor.shape[0]
    floor_variance = float(float64_array(floor_variance, "floor_variance"))
    if floor_variance < 0:
        raise InputError(f"floor_variance must not be negative; it is {floor_variance}.")
    weights = check_weights(weights, size)
    largest = float(np.max(np.abs(factor), initial=0.0))
    if largest >= LARGEST**0.5 or (weights is not None and float(np.max(np.abs(weights))) >= LARGEST):
        return math.inf
    if largest == 0.0 and floor_variance == 0.0:
        return 0.0
    unit = 2.0 ** -int(np.frexp(largest)[1]) if largest > 0 else 1.0
    weight_unit = 1.0 if weights is None else 2.0 ** -int(np.frexp(max(float(np.max(np.abs(weights))), SMALLEST))[1])
    scaled = factor * unit
    # Noise of many secrets is zero nearly everywhere; a weight belongs to a row, so then all entries stay.
    scaled = scaled[scaled != 0.0] if weights is None else scaled.ravel()
    products, errors = two_product(scaled, scaled)
    slack = SMALLEST * (1 + scaled.size)
    if weights is None:
        trace_of_weights = Fraction(size)
        terms = [products, errors]
    elif weights.ndim == 1:
        trace_of_weights = sum(map(Fraction, weights.tolist()), Fraction(0))
        weight = np.repeat(weights * weight_unit, factor.shape[1])
        weighted, weighted_errors = two_product(weight, products)
        terms = [weighted, weighted_errors, weight * errors]
        slack += 2 * UNIT_ROUNDOFF * float(np.sum(np.abs(weight * errors)))
    else:
        trace_of_weights = sum(map(Fraction, np.diagonal(weights).tolist()), Fraction(0))
        hi, lo, error = product(left_factor(weights * weight_unit), right_factor(factor * unit))
        weighted, weighted_errors = two_product(scaled, hi.ravel())
        terms = [weighted, weighted_errors, scaled * lo.ravel()]
        slack += 2 * float(np.sum(np.abs(scaled) * (error.ravel() + UNIT_ROUNDOFF * np.abs(lo.ravel()))))
    total = Fraction(math.fsum(np.concatenate(terms).tolist()))  # correctly rounded, so one unit in the last place
    total += abs(total) * Fraction(1, 2**53) + Fraction(slack)
    total /= Fraction(unit) ** 2 * Fraction(weight_unit)
    return fraction_up(total + Fraction(floor_variance) * trace_of_weights)


def check_weights(weights: Any, size: int) -> np.ndarray | None:
    """Weights of the cost as float64: None, (n,) non-negative, or (n, n) symmetric. Raises InputError."""
    if weights is None:
        return None
    array = float64_array(weights, "weights")
    if array.ndim == 2:
        return symmetric_array(array, "weights", size)
    if array.shape != (size,):
        raise InputError(f"weights must have shape ({size},) or ({size}, {size}); they have shape {array.shape}.")
    if np.any(array < 0):
        raise InputError("weights must not be negative.")
    return array
