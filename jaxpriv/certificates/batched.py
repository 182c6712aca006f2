"""Rigorous bounds for many designs at once: basic secrets (one coordinate of the trace) under Gaussian noise.

Notation: Sigma a prior covariance, e the secret's unit vector, B = Sigma e, s = e'Sigma e, G = L L' + eta I,
N = Sigma + G, P = s - B' N^-1 B the posterior variance; the loss is 1/P - 1/s. For *any* Y, with v = e - Y and
R = B - N Y,

    P = v' Sigma v + |L'Y|^2 + eta |Y|^2 - R' N^-1 R,        0 <= R' N^-1 R <= |R|^2 / m  where  N >= m I  is verified,

and R = Sigma v - G Y. So the error of the solve counts squared, and near the solution Sigma v is as small as G Y, which
may be a billionth of |Sigma| |v|: that one product is evaluated in slices (`batched_products`), and P is then known to
about 1e-12 of its value where N is not close to singular. (The identity of `certificates.loss`, with the secret inside
the trace; derived here, proof in docs/batches.md.) All bounds are a priori: `gamma` times norms. Where a bound fails it
is infinite (loss) or zero, and where it is loose the width says so; the caller then takes the one-by-one certificate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxpriv.certificates.arithmetic import ROUNDED, SMALLEST, UNIT_ROUNDOFF, gamma, require_arithmetic
from jaxpriv.certificates.batched_products import applied, quadratic


_UP, _DOWN = 1 + 2.0**-49, 1 - 2.0**-49  # cover a handful of roundings of positive numbers
_SAFE = 1e100  # entries outside 1/_SAFE .. _SAFE are left to the one-by-one certificate


@dataclass(frozen=True)
class BatchBounds:
    """What was verified about m designs under p priors each; arrays (m, p) unless said otherwise.

    `upper` and `lower` bound the loss (1 / squared unit). `spread` is about how far apart they would be without any
    rounding, by what the covariances within the relative radius differ. `trial` (m, p, n) are the Y, about which
    nothing is claimed.
    """

    upper: np.ndarray
    lower: np.ndarray
    spread: np.ndarray
    trial: np.ndarray

    @property
    def loose(self) -> np.ndarray:
        """(m, p) where rounding moves the bounds apart by more than 1e-10 of the loss, or there is no bound."""
        with np.errstate(invalid="ignore"):
            return ~((self.upper - self.lower - 1.01 * self.spread <= 1e-10 * self.upper) & np.isfinite(self.upper))

    @property
    def width(self) -> np.ndarray:
        """(m,) how far the bounds are apart under the worst prior, as a share of the loss."""
        with np.errstate(invalid="ignore", divide="ignore"):
            wide = np.max((self.upper - self.lower) / self.upper, axis=1)
        return np.where(np.isfinite(wide), wide, np.inf)


def basic_loss_bounds(
    covariance: np.ndarray,
    position: np.ndarray,
    factor: np.ndarray,
    floor_variance: np.ndarray,
    definite: np.ndarray,
    relative_radius: float = 0.0,
) -> BatchBounds:
    """Bounds of the loss of one secret coordinate in each of m problems under each of p priors.

    Shapes: `covariance` (m, p, n, n), exactly symmetric; `position` (m,) of the secret; `factor` (m, n, q);
    `floor_variance` (m,); `definite` (m, p), about the least eigenvalue of the prior's own independent part (a guess: a
    wrong one costs the bound, not its truth). Padded coordinates have unit variance, no correlation and no factor. With
    `relative_radius` the bounds hold for all covariances whose entries differ by at most that fraction.
    """
    require_arithmetic()
    m, n = covariance.shape[0], covariance.shape[2]
    rows = np.arange(m)
    own = covariance[rows, :, position, position]
    with np.errstate(all="ignore"):
        good = np.all((own > 1 / _SAFE) & (own < _SAFE), axis=1) & np.all(np.isfinite(covariance), axis=(1, 2, 3))
        good &= np.all(np.isfinite(factor), axis=(1, 2)) & np.isfinite(floor_variance)
        safe = np.where(good, own[:, 0], 1.0)
        unit = np.ldexp(1.0, -np.rint(np.log2(safe) / 2).astype(int))
        scaled = np.where(good[:, None, None, None], covariance, 0.0) * (unit * unit)[:, None, None, None]
        scaled[~good] = np.eye(n)
        scaled_factor = np.where(good[:, None, None], factor, 0.0) * unit[:, None, None]
        scaled_floor = np.where(good, floor_variance, 1.0) * unit * unit
        guess = np.where(good[:, None], definite, 0.0) * (unit * unit)[:, None] + scaled_floor[:, None]
        found = _evaluate(scaled, position, scaled_factor, scaled_floor, guess, relative_radius)
        upper, lower, spread, trial = found
        upper = np.where(good[:, None], upper, np.inf) * (unit * unit)[:, None]
        lower = np.where(good[:, None], lower, 0.0) * (unit * unit)[:, None]
    return BatchBounds(upper, lower, spread * (unit * unit)[:, None], trial)


def _evaluate(
    covariance: np.ndarray,
    position: np.ndarray,
    factor: np.ndarray,
    floor: np.ndarray,
    guess: np.ndarray,
    radius: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Upper and lower bounds, what the radius alone makes of them, and Y, for secrets of about unit variance."""
    m, n = covariance.shape[0], covariance.shape[2]
    q = factor.shape[2]
    rows = np.arange(m)
    own = covariance[rows, :, position, position]
    cross = np.ascontiguousarray(covariance[rows, :, :, position])
    noise = factor @ factor.transpose(0, 2, 1)
    total = covariance + noise[:, None]
    total[:, :, np.arange(n), np.arange(n)] += floor[:, None, None]
    prior_norm, factor_square = frobenius(covariance), frobenius(factor) ** 2 * _UP
    noise_norm = factor_square + floor * np.sqrt(n) * _UP
    # What N may differ from the computed matrix by, and then what it is verified to exceed.
    spill = (gamma(q + 6) * (prior_norm + noise_norm[:, None]) + radius * prior_norm) * ROUNDED + SMALLEST
    definite = verified_definite(total, 0.9 * guess) - spill
    definite = np.where(definite > 0, definite * _DOWN, -np.inf)
    solved = _solve(total, cross)
    inner = solved[rows, :, position]
    # v = e - Y must hold exactly. For Y in [0, 1] both differences are exact (multiples of 2^-53 of at most 1);
    # elsewhere Y is moved to a multiple of 2^-49.
    coarse = np.rint((1.0 - inner) * 2.0**49) * 2.0**-49
    gap = np.where((inner >= 0.0) & (inner <= 1.0), 1.0 - inner, coarse)
    usable = np.abs(gap) <= 4.0
    solved[rows, :, position] = 1.0 - gap
    v = -solved
    v[rows, :, position] = gap
    weight = norms(solved, 2)
    against, error = applied(covariance, v)
    part, part_error = quadratic(v, against, error)
    roam, wander = np.zeros_like(part), np.zeros_like(part)
    if radius:
        reached = (np.abs(covariance) @ np.abs(v)[..., None])[..., 0] * (radius * ROUNDED)
        roam = np.einsum("mpi,mpi->mp", np.abs(v), reached) * ROUNDED + SMALLEST
        wander = norms(reached, 2)
    # L'Y, |L'Y|^2 and eta |Y|^2: squares of numbers with an absolute error.
    image = solved @ factor
    image_error = gamma(n + 4) * ROUNDED * norms(factor, 1)[:, None, :] * weight[..., None] + SMALLEST
    low_image = np.sum(np.maximum(np.abs(image) - image_error, 0.0) ** 2, axis=-1) * (1 - gamma(q + 6))
    high_image = np.sum((np.abs(image) + image_error) ** 2, axis=-1) * (1 + gamma(q + 6))
    square = np.einsum("mpi,mpi->mp", solved, solved) * floor[:, None]
    # The residual B - N Y = Sigma v - G Y: everything in it is bounded by norms, and it enters squared.
    residual = against - image @ factor.transpose(0, 2, 1) - floor[:, None, None] * solved
    reach = gamma(n + q + 12) * ROUNDED * (norms(against, 2) + 2 * noise_norm[:, None] * weight)
    reach += norms(error, 2) + wander + SMALLEST
    tail = ((norms(residual, 2) + reach) ** 2 / definite) * (1 + 2.0**-40)
    tail = np.where((definite > 0) & usable, tail, np.inf)
    low = part - part_error - roam + low_image + square * (1 - gamma(n + 6)) - tail
    high = part + part_error + roam + high_image + square * (1 + gamma(n + 6))
    slack = 8 * UNIT_ROUNDOFF * (np.abs(part) + part_error + roam + high_image + square)
    low, high = low - slack, high + slack
    own_low, own_high = (own, own) if radius == 0.0 else (own * (1 - radius) * _DOWN, own * (1 + radius) * _UP)
    # The loss (s - P) / (P s) increases with s and decreases with P.
    upper = np.where(low > 0, np.maximum(own_high - low, 0.0) / (low * own_high) * _UP, np.inf)
    known = (high > 0) & usable & np.isfinite(high) & (definite > 0)
    lower = np.where(known, np.maximum(own_low - high, 0.0) / (np.maximum(high, SMALLEST) * own_low) * _DOWN, 0.0)
    # To first order in rounding; nothing is proved from it.
    own_spread, roaming = (own_high - own_low) / (own_low * own_high), 2 * roam + wander * wander / definite
    spread = np.where((low > 0) & known, roaming / (low * high) + own_spread, 0.0)
    return upper, lower, spread, solved


def verified_definite(matrix: np.ndarray, guess: np.ndarray) -> np.ndarray:
    """Verified lower bounds (...) of the least eigenvalues of symmetric matrices (..., n, n), -inf where there is none.

    `guess` (...) is what to try: a number a little below each, in the unit of the matrices. Any R gives R'R >= 0, so
    the least eigenvalue is at least that of the difference, bounded by its diagonal and the norm of the rest: one
    product is trusted, no factorisation.
    """
    n = matrix.shape[-1]
    trace = np.trace(matrix, axis1=-2, axis2=-1)
    shifted = matrix.copy()
    shift = guess + 3 * (n + 4) * UNIT_ROUNDOFF * trace
    shifted[..., np.arange(n), np.arange(n)] -= shift[..., None]
    factor = _cholesky(shifted)
    difference = matrix - factor @ np.swapaxes(factor, -1, -2)
    mass = frobenius(factor) ** 2 * _UP
    diagonal = np.min(np.diagonal(difference, axis1=-2, axis2=-1), axis=-1)
    difference[..., np.arange(n), np.arange(n)] = 0.0
    spread = frobenius(difference) * (1 + 4 * UNIT_ROUNDOFF)
    bound = diagonal - spread - gamma(n + 4) * mass - SMALLEST
    bound = bound - 16 * UNIT_ROUNDOFF * (np.abs(diagonal) + spread + mass * n * UNIT_ROUNDOFF)
    return np.where(np.isfinite(bound), bound, -np.inf)


def batched_cost_upper(factor: np.ndarray, floor_variance: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Upper bounds (m,) of the cost tr(L L') + size eta, in squared units of the trace.

    Shapes: `factor` (m, n, q), zero at padded coordinates; `floor_variance` (m,); `size` (m,), the number of real ones.
    """
    count = factor.shape[1] * factor.shape[2]
    squares = np.sum(factor * factor, axis=(1, 2)) * (1 + gamma(count + 6))
    return (squares + floor_variance * size * _UP) * _UP + SMALLEST


def square_bounds_of(value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Doubles below and above the exact squares of non-negative doubles, both of the shape of `value`; 0 gives 0, 0."""
    square = value * value
    return np.maximum(np.nextafter(square, 0.0), 0.0), np.where(square > 0, np.nextafter(square, np.inf), square)


def norms(values: np.ndarray, axis: int) -> np.ndarray:
    """Upper bounds of the Euclidean norms along an axis; `values` of any shape, the result without that axis."""
    count = values.shape[axis]
    return np.sqrt(np.sum(values * values, axis=axis)) * (1 + (count + 8) * UNIT_ROUNDOFF) + SMALLEST


def frobenius(values: np.ndarray) -> np.ndarray:
    """Upper bounds (...) of the Frobenius norms of matrices (..., n, q)."""
    count = values.shape[-2] * values.shape[-1]
    squares = np.einsum("...ij,...ij->...", values, values)
    return np.sqrt(squares) * (1 + (count + 8) * UNIT_ROUNDOFF) + SMALLEST


def _cholesky(matrix: np.ndarray) -> np.ndarray:
    """Lower factors (..., n, n) of matrices (..., n, n), a proposal; zero where a matrix has none."""
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        pass
    flat = matrix.reshape(-1, *matrix.shape[-2:])
    if len(flat) == 1:
        return np.zeros_like(matrix)
    half = len(flat) // 2
    return np.concatenate([_cholesky(flat[:half]), _cholesky(flat[half:])]).reshape(matrix.shape)


def _solve(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Proposals (..., n) for N^-1 B of matrices (..., n, n) and columns (..., n); zero where one is singular."""
    try:
        return np.linalg.solve(matrix, right[..., None])[..., 0]
    except np.linalg.LinAlgError:
        pass
    flat, columns = matrix.reshape(-1, *matrix.shape[-2:]), right.reshape(-1, right.shape[-1])
    if len(flat) == 1:
        return np.zeros_like(right)
    half = len(flat) // 2
    parts = [_solve(flat[:half], columns[:half]), _solve(flat[half:], columns[half:])]
    return np.concatenate(parts).reshape(right.shape)
