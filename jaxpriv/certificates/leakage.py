"""Rigorous upper bounds of the pointwise maximal leakage of Gaussian mechanisms.

Leakage has the law I + χ²_l / 2 (Theorem 3.2 of Liu, Kawano and Cao, arXiv:2511.10771): an upper bound of the mutual
information I and of the rank l give one of every level. Ranks are structural: the number of coordinates of the secret,
or of the trace. With secret T, trace X, release Z and N = Cov(Z),

    I(T; Z) = 1/2 (log det Cov(T) + log det N - log det Cov((T, Z))),    I(X; Z) = 1/2 (log det N - log det G),

and, for the certified loss t of T (its largest precision gain), I(T; Z) <= 1/2 sum log(1 + t lambda_j(Cov(T))), with
equality for a T of one coordinate (derived here). The smaller one is kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from jaxpriv.certificates.arithmetic import (
    ROUNDED,
    SMALLEST,
    float64_array,
    fraction_up,
    require_arithmetic,
    square_bounds,
)
from jaxpriv.certificates.definiteness import eigenvalue_bounds
from jaxpriv.certificates.loss import loss_bounds
from jaxpriv.certificates.noise import noise_log_determinant_lower, noise_matrix, uncertain_log_determinant
from jaxpriv.certificates.scalars import chi_square_quantile, chi_square_tail, log_bounds
from jaxpriv.certificates.verb import host_arrays
from jaxpriv.errors import InputError


@dataclass(frozen=True)
class LeakageBound:
    """Upper bounds of what a Gaussian release leaks: `information` in nats (never below the true one), and the rank.

    Holds for the prior covariance, factor and floor as exact float64 arrays, and for any mean.
    """

    information: float
    rank: int

    def epsilon(self, delta: float) -> float:
        """The leakage (nats) that is exceeded with probability at most `delta` over data and noise, rounded up.

        `delta` is an average over the prior. InputError unless 0 < delta < 1.
        """
        quantile = chi_square_quantile(self.rank, delta)
        if not (math.isfinite(self.information) and math.isfinite(quantile)):
            return math.inf
        return fraction_up(Fraction(self.information) + Fraction(quantile) / 2)

    def delta(self, epsilon: float) -> float:
        """The probability that the leakage exceeds `epsilon` (nats), rounded up."""
        if math.isnan(epsilon):
            raise InputError("epsilon is not a number.")
        if not epsilon > self.information:
            return 1.0
        if math.isinf(epsilon):
            return 0.0
        # Rounded down: a smaller quantile is exceeded more often.
        return chi_square_tail(max(-fraction_up(-2 * (Fraction(epsilon) - Fraction(self.information))), 0.0), self.rank)


def secret_leakage(prior: Any, secrets: Sequence[Any], mechanism: Any) -> tuple[LeakageBound, ...]:
    """Bounds of what a release leaks about each secret by itself.

    Arguments as for `certify`: `prior` has `.covariance` (n, n), each secret `.joint(prior)`, the mechanism `.factor`
    (n, q) and `.floor_sd`. A bound that cannot be verified is infinite. Raises InputError for bad arguments.
    """
    require_arithmetic()
    factor, floor = _noise(mechanism)
    covariance, joints = host_arrays(prior, list(secrets))
    _check_sizes(covariance, factor)
    errors = [one.rounding(covariance) if hasattr(one, "rounding") else (0.0, 0.0) for one in secrets]
    errors = [
        (np.broadcast_to(across, cross.shape) * ROUNDED, np.broadcast_to(within, own.shape) * ROUNDED)
        for (across, within), (cross, own) in zip(errors, joints, strict=True)
    ]
    radii = {}
    if any(np.any(across) or np.any(within) for across, within in errors):
        radii = {
            "covariance_radius": 0.0,
            "cross_radius": [across for across, _ in errors],
            "variance_radius": [within for _, within in errors],
        }
    losses = loss_bounds(covariance, joints, factor, floor, **radii)
    with np.errstate(all="ignore"):
        seen = noise_matrix(factor, floor, covariance)
        total = uncertain_log_determinant(*seen)[1] if any(own.size > 1 for _, own in joints) else math.inf
        return tuple(
            LeakageBound(_information(joint, error, seen, total, loss.upper), joint[1].shape[0])
            for joint, error, loss in zip(joints, errors, losses, strict=True)
        )


def trace_leakage(prior: Any, mechanism: Any) -> LeakageBound:
    """Bound of what a release leaks about the whole trace of n coordinates, of rank n.

    Infinite for noise of lower rank without a floor. Raises InputError for bad arguments.
    """
    require_arithmetic()
    factor, floor = _noise(mechanism)
    covariance, _ = host_arrays(prior, [])
    _check_sizes(covariance, factor)
    with np.errstate(all="ignore"):
        below = noise_log_determinant_lower(factor, floor)
        above = uncertain_log_determinant(*noise_matrix(factor, floor, covariance))[1]
    return LeakageBound(_half(above, -below), covariance.shape[0])


def _information(
    joint: tuple[np.ndarray, np.ndarray],
    error: tuple[np.ndarray, np.ndarray],
    seen: tuple[np.ndarray, np.ndarray],
    total: float,
    loss: float,
) -> float:
    """Upper bound of I(T; Z); `seen` is N with its errors, `total` an upper bound of its log determinant."""
    (cross, own), (cross_error, own_error) = joint, error
    bound = _from_loss(own, own_error, loss)
    if own.shape[0] == 1:
        return bound
    matrix = np.block([[own, cross.T], [cross, seen[0]]])
    radius = np.block([[own_error, cross_error.T], [cross_error, seen[1]]])
    within, together = uncertain_log_determinant(own, own_error)[1], uncertain_log_determinant(matrix, radius)[0]
    return min(bound, _half(within, total, -together))


def _from_loss(own: np.ndarray, own_error: np.ndarray, loss: float) -> float:
    largest = eigenvalue_bounds(own)[1]
    spread = float(np.sqrt(np.sum(own_error**2))) * ROUNDED + (SMALLEST if np.any(own_error) else 0.0)
    if not (math.isfinite(loss) and np.all(np.isfinite(largest))):
        return math.inf
    steps = [fraction_up(1 + Fraction(loss) * max(Fraction(one) + Fraction(spread), 0)) for one in largest.tolist()]
    if math.inf in steps:
        return math.inf
    return fraction_up(sum((Fraction(log_bounds(step)[1]) for step in steps), Fraction(0)) / 2)


def _half(*terms: float) -> float:
    if not all(math.isfinite(term) for term in terms):
        return math.inf
    return max(fraction_up(sum(map(Fraction, terms), Fraction(0)) / 2), 0.0)


def _noise(mechanism: Any) -> tuple[np.ndarray, float]:
    """The factor, and the variance of the floor rounded down: less noise can only leak more."""
    factor = float64_array(mechanism.factor, "the mechanism's factor")
    if factor.ndim != 2:
        raise InputError(f"the mechanism's factor must have shape (n, q); it has shape {factor.shape}.")
    floor = float(float64_array(mechanism.floor_sd, "the mechanism's floor_sd"))
    if floor < 0:
        raise InputError(f"the mechanism's floor_sd must not be negative; it is {floor}.")
    return factor, square_bounds(floor)[0]


def _check_sizes(covariance: np.ndarray, factor: np.ndarray) -> None:
    if factor.shape[0] != covariance.shape[0]:
        raise InputError(
            f"the mechanism is for traces of {factor.shape[0]} coordinates, the prior for {covariance.shape[0]}."
        )
