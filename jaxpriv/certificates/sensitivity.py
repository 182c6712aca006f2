"""Rigorous differential privacy of Gaussian noise: the largest squared Mahalanobis length of a set of changes."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from jaxpriv.certificates.arithmetic import (
    LARGEST,
    ROUNDED,
    SMALLEST,
    UNIT_ROUNDOFF,
    float64_array,
    fraction_up,
    power_of_two,
    require_arithmetic,
    safely_positive,
    square_bounds,
    up,
)
from jaxpriv.certificates.definiteness import semidefinite_pair
from jaxpriv.certificates.noise import noise_matrix
from jaxpriv.certificates.products import left_factor, product, right_factor
from jaxpriv.errors import InputError


_STEPS = np.concatenate([2.0 ** np.arange(-44.0, -4.0, 4.0), [0.0625, 0.25, 1.0]])


def squared_sensitivity(mechanism: Any, shape: Any) -> float:
    """Upper bound of `mu^2 = sup u' E' G^-1 E u` over `|u| <= 1`: two inputs may differ by any E u.

    `shape` is a number r (E = r I, an l2 ball of that radius) or E itself, (n, q'). The release is mu-Gaussian
    differentially private: Renyi loss `order mu^2 / 2` at every order, `mu^2 / 2` zero-concentrated. The bound t is
    accepted when `t G - E E'` is verified to be positive semidefinite; inf where nothing could be verified, as for a
    singular G. Raises InputError for a factor, floor or shape that is not finite or does not fit.
    """
    require_arithmetic()
    factor = float64_array(mechanism.factor, "the mechanism's factor")
    floor = square_bounds(float(float64_array(mechanism.floor_sd, "the mechanism's floor_sd")))[0]
    size = factor.shape[0]
    moves = float64_array(shape, "the sensitivity")
    if moves.ndim == 0:
        if not 0 < float(moves) < math.inf:
            raise InputError(f"the sensitivity is a radius of {float(moves)}; expected a positive, finite distance.")
        # With fewer columns than rows some direction has the floor's noise and no more: this is exact.
        plain = fraction_up(Fraction(float(moves)) ** 2 / Fraction(floor)) if floor > 0 else math.inf
        if factor.shape[1] < size:
            return plain
        moves = float(moves) * np.eye(size)
    else:
        plain = math.inf
    if moves.ndim != 2 or moves.shape[0] != size or moves.shape[1] == 0:
        raise InputError(f"the sensitivity has shape {moves.shape}; expected a number or a matrix ({size}, q).")
    if not np.any(moves):
        return 0.0
    with np.errstate(all="ignore"):
        return min(plain, _verified(factor, floor, moves))


def _verified(factor: np.ndarray, floor: float, moves: np.ndarray) -> float:
    noise, noise_error = noise_matrix(factor, floor)
    if not safely_positive(np.diagonal(noise)):
        return math.inf
    scaling = power_of_two(np.diagonal(noise))
    both = np.outer(scaling, scaling)
    noise, noise_error = noise * both, noise_error * both + SMALLEST
    unit = 2.0 ** -int(np.frexp(np.max(np.abs(moves * scaling[:, None])))[1])
    spread = moves * scaling[:, None] * unit
    hi, lo, error = product(left_factor(spread), right_factor(np.ascontiguousarray(spread.T)))
    error = (error + np.abs(lo)) * ROUNDED + SMALLEST
    hi, error = (np.tril(one) + np.tril(one, -1).T for one in (hi, error))
    estimate = _estimate(noise, spread)
    if not 0 < estimate < LARGEST:
        return math.inf
    for step in _STEPS:
        level = estimate * (1 + step)
        share = 1 / level
        gap = noise - share * hi
        rounding = noise_error + share * error + 4 * UNIT_ROUNDOFF * (share * np.abs(hi) + np.abs(gap))
        if semidefinite_pair(gap, None, rounding * ROUNDED):
            # The level that was tested is 1/share, within a rounding of `level`.
            return fraction_up(Fraction(up(up(level))) / Fraction(unit) ** 2)
    return math.inf


def _estimate(noise: np.ndarray, spread: np.ndarray) -> float:
    try:
        values = np.linalg.eigvalsh(spread.T @ np.linalg.solve(noise, spread))
    except np.linalg.LinAlgError:
        return math.nan
    return float(values[-1])
