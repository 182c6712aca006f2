"""Inner products of very long columns with a bound that does not grow with their length.

Runs of 64 rows are multiplied by conventional products, and the results added as pairs of doubles: the error is at
most `gamma_66` times the inner product of the absolute values, whatever n. (What is lost in adding the low parts is of
second order; the factor 1 + 2^-20 covers it up to n = 2^40, as it does the rounding of the bounds themselves.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxpriv.certificates.arithmetic import ROUNDED, SMALLEST, UNIT_ROUNDOFF, gamma
from jaxpriv.certificates.doubledouble import accumulate, two_product, two_sum
from jaxpriv.certificates.products import left_factor, product, right_factor


_RUN = 64
_ROWS = 1 << 16


@dataclass(frozen=True)
class Bounded:
    """A matrix (p, k) within `radius`, entry by entry, of `hi + lo`; all three have its shape."""

    hi: np.ndarray
    lo: np.ndarray
    radius: np.ndarray

    def __add__(self, other: Bounded) -> Bounded:
        hi, lo, error = accumulate([self.hi, other.hi, self.lo, other.lo])
        return Bounded(hi, lo, (self.radius + other.radius + error) * ROUNDED)

    def negative(self) -> Bounded:
        """Minus the matrix, (p, k)."""
        return Bounded(-self.hi, -self.lo, self.radius)

    def transposed(self) -> Bounded:
        """The transpose, (k, p)."""
        return Bounded(self.hi.T, self.lo.T, self.radius.T)

    def turned(self, matrix: np.ndarray) -> Bounded:
        """The transpose of `matrix` times this one, (k, k) both, in a pair of doubles."""
        absolute = np.abs(matrix.T)
        hi, lo, error = product(left_factor(matrix.T), right_factor(self.hi, self.lo))
        return Bounded(hi, lo, (error + absolute @ self.radius) * ROUNDED + SMALLEST)

    def scaled(self, number: float) -> Bounded:
        """`number` times the matrix, (p, k)."""
        hi, error = two_product(self.hi, np.full_like(self.hi, number))
        rest = number * self.lo
        lo = error + rest
        rounding = 4 * UNIT_ROUNDOFF * (np.abs(error) + np.abs(rest))
        return Bounded(hi, lo, (abs(number) * self.radius + rounding) * ROUNDED + SMALLEST)

    def symmetric(self) -> Bounded:
        """The symmetric part of a square matrix, (k, k), within the larger of the two radii."""
        both = self + self.transposed()
        hi, lo = both.hi / 2, both.lo / 2
        hi, lo = np.triu(hi) + np.triu(hi, 1).T, np.triu(lo) + np.triu(lo, 1).T
        radius = np.maximum(both.radius, both.radius.T) / 2 + SMALLEST
        return Bounded(hi, lo, radius)


def inner(
    left: np.ndarray,
    right: np.ndarray,
    right_radius: np.ndarray | None = None,
    right_norms: np.ndarray | None = None,
    left_radius: np.ndarray | None = None,
) -> Bounded:
    """`left.T @ right`, (p, k), for arrays (n, p) and (n, k).

    The exact right factor may differ from `right` by `right_radius` (n, k) entry by entry, or by columns of at most
    the norms `right_norms` (k,), the left one by `left_radius` (n, p); the smaller of the bounds is used.
    """
    shape = left.shape[1], right.shape[1]
    hi, lo, radius, entrywise = np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for start in range(0, left.shape[0], _ROWS):
        rows = slice(start, start + _ROWS)
        a, b = left[rows], right[rows]
        part, part_low = _runs(a, b)
        absolute_a, absolute_b = np.abs(a), np.abs(b)
        size = absolute_a.T @ absolute_b
        error = gamma(_RUN + 2) * size * (1 + 2.0**-20)
        if right_radius is not None:
            entrywise += absolute_a.T @ right_radius[rows]
        if left_radius is not None:
            error = error + left_radius[rows].T @ absolute_b * (1 + 2.0**-20)
        hi, low = two_sum(hi, part)
        lo, radius = lo + (low + part_low), radius + error
    entrywise = entrywise * (1 + 2.0**-20)
    if right_norms is not None:
        lengths = np.sqrt(np.sum(left * left, axis=0)) * (1 + 2.0**-20)
        by_norm = np.outer(lengths, right_norms) * ROUNDED
        entrywise = by_norm if right_radius is None else np.minimum(entrywise, by_norm)
    return Bounded(hi, lo, (radius + entrywise) * ROUNDED + SMALLEST * left.shape[0])


def _runs(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`left.T @ right`, (p, k), of at most `_ROWS` rows as a pair (hi, lo), its sums of runs all but exact."""
    count = -(-left.shape[0] // _RUN)
    padded = [np.zeros((count * _RUN, array.shape[1])) for array in (left, right)]
    for whole, array in zip(padded, (left, right), strict=True):
        whole[: array.shape[0]] = array
    a, b = (whole.reshape(count, _RUN, -1) for whole in padded)
    terms = np.matmul(np.swapaxes(a, 1, 2), b)
    low = np.zeros_like(terms[0])
    while terms.shape[0] > 1:
        half = terms.shape[0] // 2
        odd = terms[2 * half :]
        total, error = two_sum(terms[:half], terms[half : 2 * half])
        low = low + np.sum(error, axis=0)
        terms = np.concatenate([total, odd])
    return terms[0], low
