"""Verified semidefiniteness and eigenvalue bounds of symmetric float64 matrices.

The test trusts one matrix product and no factorisation. For *any* matrix R, `R' R` is positive semidefinite, so
`lambda_min(A) >= min_i D_ii - ||offdiag D||_F` with `D = A - R' R`, whatever R is; R is a Cholesky factor of `A - c I`
so that D is close to `c I`. (Derived here, after Rump, *Verification of positive definiteness*, BIT 46, 2006.)
Matrices are first scaled by powers of two to a diagonal near one: exact, and it makes the test independent of units.
Where float64 fails, the factor and the product are repeated in double-double, which decides down to about 1e-28 of the
diagonal.
"""

from __future__ import annotations

import numpy as np

from jaxpriv.certificates.arithmetic import (
    LARGEST,
    SMALLEST,
    UNIT_ROUNDOFF,
    down,
    gamma,
    norm_up,
    power_of_two,
    require_arithmetic,
    safely_positive,
    symmetric_array,
    up,
)
from jaxpriv.certificates.doubledouble import accumulate, cholesky, two_sum
from jaxpriv.certificates.products import left_factor, product_terms, right_factor
from jaxpriv.certificates.proposals import potrf, trtri


def is_semidefinite(matrix: np.ndarray, radius: float | np.ndarray = 0.0) -> bool:
    """Whether every symmetric matrix within `radius` of `matrix` (n, n) is proven positive semidefinite.

    `radius` is a number (a bound of the spectral norm of the difference) or an array (n, n) (a bound of each entry).
    False means "not proven": so do a matrix with a non-positive diagonal entry (unless its whole row is zero) or with
    entries outside 1e-290..1e290. Raises InputError for a matrix that is not finite, square and symmetric.
    """
    require_arithmetic()
    matrix = symmetric_array(matrix, "matrix")
    return semidefinite_pair(matrix, None, radius)


def semidefinite_pair(hi: np.ndarray, lo: np.ndarray | None, radius: float | np.ndarray = 0.0) -> bool:
    """`is_semidefinite` of the exact sum of two symmetric matrices, already validated."""
    if np.ndim(radius) == 0 and float(radius) == 0.0:
        used = np.any(hi != 0, axis=0) if lo is None else np.any(hi != 0, axis=0) | np.any(lo != 0, axis=0)
        hi = hi[np.ix_(used, used)]
        lo = None if lo is None else lo[np.ix_(used, used)]
        if hi.size == 0:
            return True
    diagonal = np.diagonal(hi)
    if not safely_positive(diagonal):
        return False
    scaling = power_of_two(diagonal)
    both = np.outer(scaling, scaling)
    hi = hi * both
    lo = None if lo is None else lo * both
    if np.max(np.abs(hi)) > 4:  # then some 2x2 minor is negative
        return False
    if np.ndim(radius) == 0:
        reach = up(float(radius) * float(np.max(scaling)) ** 2 * (1 + 4 * UNIT_ROUNDOFF))
    else:
        reach = norm_up(np.asarray(radius) * both)
    with np.errstate(all="ignore"):
        if lo is None or norm_up(lo) < 1e-15:
            spill = 0.0 if lo is None else norm_up(lo)
            if margin(hi, propose(hi, reach + spill)) - spill >= reach:
                return True
        return accurate_margin(hi, lo, 0.0, reach) >= reach


def propose(matrix: np.ndarray, reach: float = 0.0) -> np.ndarray | None:
    """Cholesky factor (upper) of the matrix less a little more than `reach` times the identity; None if it fails."""
    size = matrix.shape[0]
    shift = reach + 3 * (size + 4) * UNIT_ROUNDOFF * float(np.trace(matrix))
    shifted = matrix - shift * np.eye(size)
    factor, info = potrf(shifted, lower=0, clean=1, overwrite_a=1)
    return factor if info == 0 else None


def margin(matrix: np.ndarray, factor: np.ndarray | None) -> float:
    """Lower bound of the smallest eigenvalue from any matrix `factor` (n, n), by one float64 product."""
    if factor is None:
        return -np.inf
    size = matrix.shape[0]
    difference = matrix - factor.T @ factor
    mass = norm_up(factor) ** 2 * (1 + 4 * UNIT_ROUNDOFF)
    diagonal = float(np.min(np.diagonal(difference)))
    spread = norm_up(_off_diagonal(difference)) * (1 + 4 * UNIT_ROUNDOFF)
    bound = diagonal - 4 * UNIT_ROUNDOFF * abs(diagonal) - spread - gamma(size + 4) * mass - SMALLEST
    return down(bound - 4 * UNIT_ROUNDOFF * (abs(diagonal) + spread)) if np.isfinite(bound) else -np.inf


def accurate_margin(hi: np.ndarray, lo: np.ndarray | None, error: float | np.ndarray, reach: float) -> float:
    """As `margin` in double-double, with its own factor; `error` bounds each entry of the matrix minus `hi + lo`."""
    size = hi.shape[0]
    lo = np.zeros_like(hi) if lo is None else lo
    shift = reach * (1 + 2.0**-20) + 8 * (size + 4) * 2.0**-100 * float(np.trace(hi))
    shifted_hi, shifted_lo = two_sum(hi, -shift * np.eye(size))
    factor = cholesky(shifted_hi, shifted_lo + lo)
    if not np.all(np.isfinite(factor[0])):
        return -np.inf
    return accurate_margin_of(hi, lo, error, factor)


def accurate_margin_of(
    hi: np.ndarray, lo: np.ndarray, error: float | np.ndarray, factor: tuple[np.ndarray, np.ndarray]
) -> float:
    """Lower bound of the smallest eigenvalue from any double-double matrix `factor`, by one accurate product."""
    upper_hi, upper_lo = factor
    terms, left_out = product_terms(left_factor(upper_hi.T, upper_lo.T), right_factor(upper_hi, upper_lo))
    first, second, rounding = accumulate([hi, lo] + [-term for term in terms])
    total = first + second
    entry = rounding + left_out + error + UNIT_ROUNDOFF * np.abs(total) + SMALLEST
    size = hi.shape[0]
    diagonal = float(np.min(np.diagonal(total) - 2 * np.diagonal(entry)))
    spread = (norm_up(_off_diagonal(total)) + norm_up(entry)) * (1 + 8 * UNIT_ROUNDOFF)
    bound = diagonal - spread - 8 * UNIT_ROUNDOFF * (abs(diagonal) + spread)
    return down(bound) if np.isfinite(bound) and size else -np.inf


def smallest_eigenvalue_lower(matrix: np.ndarray) -> float:
    """Lower bound of the smallest eigenvalue of a symmetric matrix (n, n); `-inf` outside 1e-290..1e290.

    Raises InputError for a matrix that is not finite, square and symmetric.
    """
    require_arithmetic()
    matrix = symmetric_array(matrix, "matrix")
    unit = _unit(matrix)
    if unit is None:
        return 0.0 if not np.any(matrix) else -np.inf
    scaled = matrix * unit
    lowest = float(eigenvalue_bounds(scaled)[0][0])
    with np.errstate(all="ignore"):
        estimate = float(np.linalg.eigvalsh(scaled)[0])
        size = matrix.shape[0]
        if estimate > 0:
            lowest = max(lowest, margin(scaled, propose(scaled, 0.9 * estimate)))
        if lowest < 0.5 * estimate or lowest <= 0:
            factor = cholesky(scaled, np.zeros_like(scaled))
            if np.all(np.isfinite(factor[0])):
                inverse, info = trtri(factor[0])
                if info == 0:
                    for share in (0.9, 0.1, 0.01):
                        shift = share / norm_up(inverse) ** 2
                        moved = two_sum(scaled, -shift * np.eye(size))
                        trial = cholesky(*moved)
                        if np.all(np.isfinite(trial[0])):
                            lowest = max(lowest, accurate_margin_of(scaled, np.zeros_like(scaled), 0.0, trial))
                            break
    return down(lowest / unit) if np.isfinite(lowest) else -np.inf


def largest_eigenvalue_upper(matrix: np.ndarray) -> float:
    """Upper bound of the largest eigenvalue of a symmetric matrix (n, n); `inf` outside 1e-290..1e290.

    Raises InputError for a matrix that is not finite, square and symmetric.
    """
    return float(eigenvalue_bounds(matrix)[1][-1])


def eigenvalue_bounds(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bounds `(lower, upper)` of all eigenvalues, ascending, each (n,).

    With `A ~ Q D Q'`, r >= ||A - Q D Q'||, s >= ||Q' Q - I||: `|lambda_i - d_i| <= r + s |d_i|` (Weyl; Ostrowski).
    Infinite where the entries are outside 1e-290..1e290. Raises InputError for a matrix that is not finite, square and
    symmetric.
    """
    require_arithmetic()
    matrix = symmetric_array(matrix, "matrix")
    size = matrix.shape[0]
    unit = _unit(matrix)
    if unit is None:
        reach = 0.0 if not np.any(matrix) else np.inf
        return np.full(size, -reach), np.full(size, reach)
    scaled = matrix * unit
    values, vectors = np.linalg.eigh(scaled)
    weighted = vectors * values
    slack = gamma(size + 4) * (1 + 2.0**-30)
    mass = norm_up(vectors)
    residual = scaled - weighted @ vectors.T
    away = norm_up(residual) * (1 + 4 * UNIT_ROUNDOFF) + slack * norm_up(weighted) * mass + SMALLEST
    skew = norm_up(vectors.T @ vectors - np.eye(size)) * (1 + 4 * UNIT_ROUNDOFF) + slack * mass * mass
    if not (np.isfinite(away) and skew < 0.5):
        return np.full(size, -np.inf), np.full(size, np.inf)
    reach = (away + skew * np.abs(values)) * (1 + 2.0**-40)
    lower = np.nextafter(np.nextafter(values - reach, -np.inf) / unit, -np.inf)
    upper = np.nextafter(np.nextafter(values + reach, np.inf) / unit, np.inf)
    return lower, upper


def dominates(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether `first - second` (n, n each) is proven positive semidefinite.

    Noise with covariance `first` then has no larger loss for any secret than noise with covariance `second`
    (Corollary 7.2.2 of Meehan & Chaudhuri, AISTATS 2021). False means "not proven". Raises InputError for matrices that
    are not finite, square, symmetric and of one size.
    """
    require_arithmetic()
    first = symmetric_array(first, "first")
    second = symmetric_array(second, "second", first.shape[0])
    with np.errstate(all="ignore"):
        hi, lo = two_sum(first, -second)
    if not np.all(np.isfinite(hi) & np.isfinite(lo)):
        return False
    return semidefinite_pair(hi, lo)


def _off_diagonal(matrix: np.ndarray) -> np.ndarray:
    off = matrix.copy()
    off.flat[:: matrix.shape[0] + 1] = 0
    return off


def _unit(matrix: np.ndarray) -> float | None:
    largest = float(np.max(np.abs(matrix)))
    if not SMALLEST < largest < LARGEST:
        return None
    return 2.0 ** -int(np.frexp(largest)[1])
