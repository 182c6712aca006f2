"""The loss of a secret of several dimensions, once the matrix Q is known within a radius.

Everything is in the secret's scaled coordinates: variance V, posterior P = V - Q, and `loss = lambda_max` of
`P^-1 - V^-1` relative to `E^-2`, E a diagonal of powers of two. With W = V E^-2 V,

    P^-1 - V^-1 <= t E^-2   if and only if   T(t) = [[P, -Q], [-Q, t W - Q]] >= 0,

by a congruence with diag(I, V^-1) and a Schur complement. The upper bound is the smallest t tried that passes a
verified test; the lower bound exhibits vectors: for z = V b and any c,  `z'(P^-1 - V^-1) z >= 2 c'z - c'P c - b'V b`.
For the product of balls E^-1 is replaced by any diagonal that is constant within each time (`product.py`).
(Derived here; proof in docs/design.md.)
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from jaxpriv.certificates.arithmetic import (
    ROUNDED,
    SMALLEST,
    UNIT_ROUNDOFF,
    fraction_down,
    fraction_up,
    norm_up,
    power_of_two,
)
from jaxpriv.certificates.definiteness import accurate_margin_of
from jaxpriv.certificates.doubledouble import accumulate, cholesky, multiply
from jaxpriv.certificates.product import farthest_pair, least_diagonal
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
    times: np.ndarray | None = None,
) -> tuple[float, float]:
    """`(upper, lower)` of the loss, `(inf, 0)` where nothing could be verified.

    `own`, `own_radius`, `hi`, `lo`, `radius` have shape (k, k), `tails` and `unit` (the diagonal of E) shape (k,):
    Q is `hi + lo` within `radius`, plus a Gram matrix with entries at most `tails_i tails_j`; V is `own` within
    `own_radius`. With `times` (k,), the time 0..s-1 of each coordinate, the bounds are of the product of balls: the
    upper one of the least sum of d over D = diag(d_time) above M = E (P^-1 - V^-1) E, the lower one of z'M z for some z
    of at most unit length at each time.
    """
    if not all(np.all(np.isfinite(array)) for array in (own, hi, lo, radius, tails)):
        return math.inf, 0.0
    posterior_hi, posterior_lo, rounding = accumulate([own, -hi, -lo])
    radius = (radius + rounding) * ROUNDED + SMALLEST
    basis = _whitening(own)
    total = (radius + np.outer(tails, tails)) * ROUNDED
    inequality = _Inequality(own, own_radius, posterior_hi, posterior_lo, total, 1 / unit, basis)
    gain = inequality.gain()
    if not np.all(np.isfinite(gain)):
        return math.inf, 0.0
    estimate, direction = _top(gain)
    if times is not None:
        direction = farthest_pair(gain, times)
    image, solved = inequality.propose(unit * direction)
    if not (np.all(np.isfinite(solved)) and np.all(np.isfinite(image))):
        return math.inf, 0.0
    lower = _exhibited(own, own_radius, posterior_hi, posterior_lo, radius, image, solved, 1 / unit, times)
    if times is None:
        base = lower if lower > 0 else estimate
        return _passing(inequality, base if 0 < base < math.inf else norm_up(hi)), lower
    spread = np.sqrt(least_diagonal(gain, times))
    shaped = _Inequality(own, own_radius, posterior_hi, posterior_lo, total, spread[times] / unit, basis)
    height = sum((Fraction(x) ** 2 for x in spread.tolist()), Fraction(0))
    upper = _passing(shaped, 1.0)
    return (fraction_up(Fraction(upper) * height) if math.isfinite(upper) else math.inf), lower


def _top(matrix: np.ndarray) -> tuple[float, np.ndarray]:
    values, vectors = np.linalg.eigh(matrix)
    return float(values[-1]), vectors[:, -1]


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
    spread: np.ndarray,
    times: np.ndarray | None,
) -> float:
    """Lower bound from the vectors b = `image` and c = `solved`, in exact rational arithmetic.

    `spread` (k,) is E^-1. The length of z is its Euclidean one, or with `times` the largest at any time.
    """
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
    lengths: dict[int, Fraction] = {}
    labels = [0] * len(towards) if times is None else times.tolist()
    for v, w, e, time in zip(towards, wander.tolist(), spread.tolist(), labels, strict=True):
        lengths[time] = lengths.get(time, Fraction(0)) + ((abs(v) + Fraction(w)) * Fraction(e)) ** 2
    length = max(lengths.values())
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
        spread: np.ndarray,
        basis: np.ndarray,
    ):
        """`spread` (k,) is the diagonal S in W = V S^2 V; any positive float64 numbers."""
        self.spread, self.basis = spread, basis
        # An uncertain V is replaced by the larger V + ||radius|| I: P^-1 - V^-1 can only grow.
        wide = np.diag(np.full(own.shape[0], norm_up(own_radius) if np.any(own_radius) else 0.0))
        own_hi, own_lo, own_error = accumulate([own, wide])
        self.quadratic = self._sandwich(*accumulate([own, wide, -posterior_hi, -posterior_lo]))
        self.posterior = self._sandwich(posterior_hi, posterior_lo, np.zeros_like(own))
        absolute = np.abs(basis)
        self.radius = absolute.T @ radius @ absolute * ROUNDED
        spread_hi, spread_lo, spread_error = multiply(own_hi, own_lo, np.broadcast_to(spread[:, None], own_hi.shape))
        rows_hi, rows_lo, rows_error = product(left_factor(spread_hi, spread_lo), right_factor(basis))
        rows_error = rows_error + (own_error * spread[:, None] + spread_error) @ absolute * ROUNDED + SMALLEST
        square_hi, square_lo, error = product(left_factor(rows_hi.T, rows_lo.T), right_factor(rows_hi, rows_lo))
        reach = rows_error.T @ (2 * np.abs(rows_hi) + rows_error)
        self.square = square_hi, square_lo, error + (reach + reach.T) * ROUNDED

    def _sandwich(self, hi: np.ndarray, lo: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        absolute = np.abs(self.basis)
        half_hi, half_lo, first = product(left_factor(self.basis.T), right_factor(hi, lo))
        full_hi, full_lo, second = product(left_factor(half_hi, half_lo), right_factor(self.basis))
        return full_hi, full_lo, (second + (first + absolute.T @ error) @ absolute) * ROUNDED

    def gain(self) -> np.ndarray:
        """An estimate of S^-1 (P^-1 - V^-1) S^-1, (k, k); NaN where a solve failed."""
        quadratic, posterior = self.quadratic[0], self.posterior[0]
        try:
            gain = quadratic + quadratic @ np.linalg.solve(posterior, quadratic)
        except np.linalg.LinAlgError:
            return np.full_like(quadratic, np.nan)
        rows = self.basis / self.spread[:, None]
        gain = rows @ gain @ rows.T
        return (gain + gain.T) / 2

    def propose(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Proposals `b = V^-1 z`, `c = P^-1 z` (k,)."""
        quadratic, posterior, posterior_low = self.quadratic[0], self.posterior[0], self.posterior[1]
        try:
            inner = self.basis.T @ z
            target = quadratic @ inner
            step = np.linalg.solve(posterior, target)
            again, again_low, _ = product(left_factor(posterior, posterior_low), right_factor(step[:, None]))
            step = step + np.linalg.solve(posterior, target - again[:, 0] - again_low[:, 0])
        except np.linalg.LinAlgError:
            return np.full(z.shape, np.nan), np.full(z.shape, np.nan)
        return self.basis @ inner, self.basis @ (inner + step)

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
