"""The loss of a secret of several dimensions, once the matrix Q is known within a radius.

Everything is in the secret's scaled coordinates: variance V, posterior P = V - Q, and `loss = lambda_max` of
`P^-1 - V^-1` relative to `E^-2`, E a diagonal of powers of two. With W = V E^-2 V,

    P^-1 - V^-1 <= t E^-2   if and only if   T(t) = [[P, -Q], [-Q, t W - Q]] >= 0,

by a congruence with diag(I, V^-1) and a Schur complement. The upper bound is the smallest t tried that passes a
verified test; the lower bound exhibits vectors: for z = V b and any c,  `z'(P^-1 - V^-1) z >= 2 c'z - c'P c - b'V b`.
(Derived here; proof in docs/design.md.)
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from jaxpriv.certificates.arithmetic import ROUNDED, SMALLEST, UNIT_ROUNDOFF, fraction_down, norm_up, power_of_two
from jaxpriv.certificates.definiteness import accurate_margin_of
from jaxpriv.certificates.doubledouble import accumulate, cholesky, multiply
from jaxpriv.certificates.products import left_factor, product, right_factor
from jaxpriv.certificates.proposals import trtri


# Relative steps above the best known lower bound at which the inequality is tried, in turn.
_STEPS = np.concatenate([2.0 ** np.arange(-53.0, -10.0, 1.5), 4.0 ** np.arange(-5.0, 13.0)])
_ATTEMPTS = 6


def compound_bounds(
    own: np.ndarray,
    own_radius: np.ndarray,
    hi: np.ndarray,
    lo: np.ndarray,
    radius: np.ndarray,
    tails: np.ndarray,
    unit: np.ndarray,
) -> tuple[float, float]:
    """`(upper, lower)` of the loss, `(inf, 0)` where nothing could be verified.

    `own`, `own_radius`, `hi`, `lo`, `radius` have shape (k, k), `tails` and `unit` (the diagonal of E) shape (k,):
    Q is `hi + lo` within `radius`, plus a Gram matrix with entries at most `tails_i tails_j`; V is `own` within
    `own_radius`.
    """
    if not all(np.all(np.isfinite(array)) for array in (own, hi, lo, radius, tails)):
        return math.inf, 0.0
    posterior_hi, posterior_lo, rounding = accumulate([own, -hi, -lo])
    radius = (radius + rounding) * ROUNDED + SMALLEST
    basis = _whitening(own)
    total = (radius + np.outer(tails, tails)) * ROUNDED
    inequality = _Inequality(own, own_radius, posterior_hi, posterior_lo, total, unit, basis)
    estimate, image, solved = inequality.propose()
    if not (np.all(np.isfinite(solved)) and np.all(np.isfinite(image))):
        return math.inf, 0.0
    lower = _exhibited(own, own_radius, posterior_hi, posterior_lo, radius, image, solved, unit)
    base = lower if lower > 0 else estimate
    if not 0 < base < math.inf:
        base = norm_up(hi)
    return _passing(inequality, base), lower


def _whitening(own: np.ndarray) -> np.ndarray:
    """A float64 matrix X with `X' V X` close to I, from a double-double factor; the identity where that fails.

    Any X is valid. This one makes W = V E^-2 V, whose condition number is the square of V's, harmless.
    """
    factor, _ = cholesky(own, np.zeros_like(own))
    inverse, info = trtri(factor) if np.all(np.isfinite(factor)) else (factor, 1)
    return inverse if info == 0 and np.all(np.isfinite(inverse)) else np.eye(own.shape[0])


def _exhibited(
    own: np.ndarray,
    own_radius: np.ndarray,
    posterior_hi: np.ndarray,
    posterior_lo: np.ndarray,
    radius: np.ndarray,
    image: np.ndarray,
    solved: np.ndarray,
    unit: np.ndarray,
) -> float:
    """Lower bound from the vectors b = `image` and c = `solved`, in exact rational arithmetic."""
    b = [Fraction(x) for x in image.tolist()]
    c = [Fraction(x) for x in solved.tolist()]
    matrix = _fractions(own)
    towards = [sum(x * y for x, y in zip(row, b, strict=True)) for row in matrix]
    gain = sum((2 * x - y) * v for x, y, v in zip(c, b, towards, strict=True))
    for part in (posterior_hi, posterior_lo):
        gain -= sum(
            x * sum(m * y for m, y in zip(row, c, strict=True)) for x, row in zip(c, _fractions(part), strict=True)
        )
    absolute_b, absolute_c = np.abs(image), np.abs(solved)
    wander = own_radius @ absolute_b * ROUNDED
    slack = float((2 * absolute_c + absolute_b) @ wander + absolute_c @ radius @ absolute_c) * ROUNDED
    length = sum(
        ((abs(v) + Fraction(w)) / Fraction(e)) ** 2
        for v, w, e in zip(towards, wander.tolist(), unit.tolist(), strict=True)
    )
    if not (math.isfinite(slack) and length > 0):
        return 0.0
    return max(fraction_down((gain - Fraction(slack)) / length), 0.0)


class _Inequality:
    """`diag(X, X)' T(t) diag(X, X)` for a batch of t, in double-double, with a bound of each entry's error."""

    def __init__(
        self,
        own: np.ndarray,
        own_radius: np.ndarray,
        posterior_hi: np.ndarray,
        posterior_lo: np.ndarray,
        radius: np.ndarray,
        unit: np.ndarray,
        basis: np.ndarray,
    ):
        self.unit, self.basis = unit, basis
        # An uncertain V is replaced by the larger V + ||radius|| I: P^-1 - V^-1 can only grow.
        wide = np.diag(np.full(own.shape[0], norm_up(own_radius) if np.any(own_radius) else 0.0))
        own_hi, own_lo, own_error = accumulate([own, wide])
        self.quadratic = self._sandwich(*accumulate([own, wide, -posterior_hi, -posterior_lo]))
        self.posterior = self._sandwich(posterior_hi, posterior_lo, np.zeros_like(own))
        absolute = np.abs(basis)
        self.radius = absolute.T @ radius @ absolute * ROUNDED
        rows_hi, rows_lo, rows_error = product(
            left_factor(own_hi / unit[:, None], own_lo / unit[:, None]), right_factor(basis)
        )
        rows_error = rows_error + own_error / unit[:, None] @ absolute * ROUNDED
        square_hi, square_lo, error = product(left_factor(rows_hi.T, rows_lo.T), right_factor(rows_hi, rows_lo))
        reach = rows_error.T @ (2 * np.abs(rows_hi) + rows_error)
        self.square = square_hi, square_lo, error + (reach + reach.T) * ROUNDED

    def _sandwich(self, hi: np.ndarray, lo: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        absolute = np.abs(self.basis)
        half_hi, half_lo, first = product(left_factor(self.basis.T), right_factor(hi, lo))
        full_hi, full_lo, second = product(left_factor(half_hi, half_lo), right_factor(self.basis))
        return full_hi, full_lo, (second + (first + absolute.T @ error) @ absolute) * ROUNDED

    def propose(self) -> tuple[float, np.ndarray, np.ndarray]:
        """Proposals: the loss, and `b = V^-1 z`, `c = P^-1 z` for the top eigenvector z."""
        quadratic, posterior, posterior_low = self.quadratic[0], self.posterior[0], self.posterior[1]
        try:
            gain = quadratic + quadratic @ np.linalg.solve(posterior, quadratic)
            spread = self.unit[:, None] * self.basis
            gain = spread @ gain @ spread.T
            values, vectors = np.linalg.eigh((gain + gain.T) / 2)
            inner = spread.T @ vectors[:, -1:]
            target = quadratic @ inner
            step = np.linalg.solve(posterior, target)
            again, again_low, _ = product(left_factor(posterior, posterior_low), right_factor(step))
            step = step + np.linalg.solve(posterior, target - again - again_low)
        except np.linalg.LinAlgError:
            nothing = np.full(self.unit.shape, np.nan)
            return math.nan, nothing, nothing
        return float(values[-1]), (self.basis @ inner)[:, 0], (self.basis @ (inner + step))[:, 0]

    def __call__(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        t = t[:, None, None]
        square_hi, square_lo, square_error = self.square
        quadratic_hi, quadratic_lo, quadratic_error = self.quadratic
        posterior_hi, posterior_lo, posterior_error = self.posterior
        scaled_hi, scaled_lo, rounding = multiply(square_hi, square_lo, t)
        corner_hi, corner_lo, error = accumulate([scaled_hi, -quadratic_hi, scaled_lo, -quadratic_lo + 0 * t])
        error = error + rounding + t * square_error + quadratic_error + self.radius
        size = self.radius.shape[0]
        shape = (t.shape[0], 2 * size, 2 * size)
        hi, lo, reach = np.empty(shape), np.empty(shape), np.empty(shape)
        head, foot = slice(None, size), slice(size, None)
        for full, first, across, corner in (
            (hi, posterior_hi, -quadratic_hi, corner_hi),
            (lo, posterior_lo, -quadratic_lo, corner_lo),
            (reach, self.radius + posterior_error, self.radius + quadratic_error, error),
        ):
            full[:, head, head], full[:, foot, foot] = first, corner
            full[:, head, foot] = full[:, foot, head] = across
        return _symmetric(hi), _symmetric(lo), _symmetric(reach) * ROUNDED + SMALLEST


def _symmetric(batch: np.ndarray) -> np.ndarray:
    """The upper triangle, mirrored: entries of a product and of its transpose may be rounded differently."""
    upper = np.triu(batch)
    return upper + np.swapaxes(np.triu(batch, 1), -1, -2)


def _passing(inequality: _Inequality, base: float) -> float:
    """The smallest t found for which T(t) >= 0 is verified."""
    tried = base * (1 + np.concatenate([[0.0], _STEPS]))
    best, below = _first_passing(inequality, tried)
    if best < math.inf and best - below > 8 * UNIT_ROUNDOFF * best:
        between = below + (best - below) * np.linspace(0.0, 1.0, 18)[1:-1]
        best = min(best, _first_passing(inequality, between)[0])
    return best


def _first_passing(inequality: _Inequality, tried: np.ndarray) -> tuple[float, float]:
    """The first t that passes, and the one before it (or 0)."""
    hi, lo, reach = inequality(tried)
    size = hi.shape[-1]
    diagonal = np.diagonal(hi, axis1=-2, axis2=-1)
    scaling = power_of_two(np.where(diagonal > SMALLEST, diagonal, 1.0))
    both = scaling[:, :, None] * scaling[:, None, :]
    hi, lo, reach = hi * both, lo * both, reach * both
    norms = np.sqrt(np.sum(reach * reach, axis=(-2, -1))) * ROUNDED + SMALLEST
    shift = norms * (1 + 2.0**-20) + 8 * (size + 4) * 2.0**-100 * size
    moved = accumulate([hi, -shift[:, None, None] * np.eye(size), lo])
    factors = cholesky(moved[0], moved[1])
    candidates = np.flatnonzero(np.all(np.isfinite(factors[0]), axis=(-2, -1)))
    for i in candidates[:_ATTEMPTS]:
        if accurate_margin_of(hi[i], lo[i], 0.0, (factors[0][i], factors[1][i])) >= norms[i]:
            return float(tried[i]), float(tried[i - 1]) if i else 0.0
    return math.inf, 0.0


def _fractions(matrix: np.ndarray) -> list[list[Fraction]]:
    return [[Fraction(x) for x in row] for row in matrix.tolist()]
