"""The last, small step of a structured certificate: from Q or P of one secret, within radii, to its loss; exactly.

Rational arithmetic on k x k matrices: however nearly singular the secret's own covariance is, nothing is lost here.
With V_- <= V <= V_+ and P_- <= P <= P_+,  `P_+^-1 - V_-^-1 <= M <= P_-^-1 - V_+^-1`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from jaxpriv.certificates.arithmetic import UNIT_ROUNDOFF, fraction_down, fraction_up, norm_up, up
from jaxpriv.certificates.definiteness import largest_eigenvalue_upper
from jaxpriv.certificates.loss import LossBound
from jaxpriv.certificates.product import farthest_pair, least_diagonal
from jaxpriv.certificates.structured_sums import Bounded


Matrix = list[list[Fraction]]
UNKNOWN = LossBound(math.inf, 0.0)


@dataclass(frozen=True)
class Variance:
    """A secret's own covariance, (k, k): the exact one is within `radius`, in spectral norm, of `values`."""

    values: Matrix
    radius: Fraction

    def rounded(self) -> np.ndarray:
        """The values as float64, (k, k)."""
        return np.array([[float(x) for x in row] for row in self.values])


def fractions(array: np.ndarray) -> Matrix:
    """The exact values of a float64 matrix (p, k), row by row."""
    return [[Fraction(x) for x in row] for row in array.tolist()]


def loss_from_parts(
    variance: Variance, basis: np.ndarray, part: Bounded, tail: float, gained: bool, times: np.ndarray | None
) -> LossBound:
    """The loss of a secret from `T' Q T` (`gained`) or `T' P T`, T = `basis` (k, k), any invertible matrix.

    `part` holds the matrix, (k, k), up to a Gram matrix of norm at most `tail`, which adds to Q and takes off P.
    `variance` is in squared units of the secret, the loss in 1 / that; `inf` and 0 where nothing could be verified.
    `times` (k,), the time 0..s-1 of each coordinate, asks for the product of balls, as in `compound_bounds`, divided by
    the number of times.
    """
    reach = norm_up(part.radius)
    parts = (part.hi, part.lo)
    if not all(np.all(np.isfinite(array)) for array in (*parts, basis)) or not math.isfinite(reach + tail):
        return UNKNOWN
    middle = _plus(fractions(part.hi), fractions(part.lo))
    turn = fractions(basis)
    own = _product(_transposed(turn), _product(variance.values, turn))
    spread = Fraction(reach)
    if gained:
        middle = _plus(own, middle, -1)
        spread += variance.radius * sum((x * x for row in turn for x in row), Fraction(0))
    low = _inverse(_shifted(middle, -spread - Fraction(tail)))
    high = _inverse(_shifted(middle, spread))
    own_high = _inverse(_shifted(variance.values, variance.radius))
    own_low = _inverse(_shifted(variance.values, -variance.radius))
    if low is None or high is None or own_high is None or own_low is None:
        return UNKNOWN
    above = _plus(_product(turn, _product(low, _transposed(turn))), own_high, -1)
    below = _plus(_product(turn, _product(high, _transposed(turn))), own_low, -1)
    labels = [0] * len(turn) if times is None else times.tolist()
    return LossBound(_upper(above, labels), _lower(below, labels))


def _upper(matrix: Matrix, labels: Sequence[int]) -> float:
    """An upper bound of the largest eigenvalue of `matrix`, (k, k), or of the least mean of d, diag(d_time) above it.

    `labels` (k,) are the times of the coordinates; with one time it is the eigenvalue.
    """
    if len(matrix) == 1:
        return max(fraction_up(matrix[0][0]), 0.0)
    values = np.array([[float(x) for x in row] for row in matrix])
    slack = norm_up(UNIT_ROUNDOFF * np.abs(values)) * (1 + 4 * UNIT_ROUNDOFF)
    if not math.isfinite(slack):
        return math.inf
    count = max(labels) + 1
    if count == 1:
        return up(max(largest_eigenvalue_upper(values), 0.0) + slack)
    diagonal = least_diagonal(values, np.array(labels))
    excess = up(max(largest_eigenvalue_upper(values - np.diag(diagonal[labels])), 0.0) + 2 * slack)
    excess = excess + 2 * UNIT_ROUNDOFF * float(np.max(diagonal))
    total = sum((Fraction(x) + Fraction(excess) for x in diagonal.tolist()), Fraction(0))
    return fraction_up(total / count) if math.isfinite(excess) else math.inf


def _lower(matrix: Matrix, labels: Sequence[int]) -> float:
    """A lower bound of the largest eigenvalue of `matrix` M (k, k), or of z'M z over the number of times.

    z has unit length at each of the times `labels` (k,).
    """
    values = np.array([[float(x) for x in row] for row in matrix])
    if not np.all(np.isfinite(values)):
        return 0.0
    count = max(labels) + 1
    direction = np.linalg.eigh(values)[1][:, -1] if count == 1 else farthest_pair(values, np.array(labels))
    exact = [Fraction(x) for x in direction.tolist()]
    gain = _dot(exact, [_dot(row, exact) for row in matrix])
    lengths = [Fraction(0)] * count
    for time, x in zip(labels, exact, strict=True):
        lengths[time] += x * x
    length = max(lengths)
    return max(fraction_down(gain / (length * count)), 0.0) if length > 0 else 0.0


def _plus(first: Matrix, second: Matrix, sign: int = 1) -> Matrix:
    return [[x + sign * y for x, y in zip(a, b, strict=True)] for a, b in zip(first, second, strict=True)]


def _shifted(matrix: Matrix, shift: Fraction) -> Matrix:
    return [[x + shift if i == j else x for j, x in enumerate(row)] for i, row in enumerate(matrix)]


def _transposed(matrix: Matrix) -> Matrix:
    return [list(column) for column in zip(*matrix, strict=True)]


def _product(first: Matrix, second: Matrix) -> Matrix:
    columns = _transposed(second)
    return [[_dot(row, column) for column in columns] for row in first]


def _dot(first: list[Fraction], second: list[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(first, second, strict=True)), Fraction(0))


def _inverse(matrix: Matrix) -> Matrix | None:
    """The inverse of a positive definite matrix, (k, k); None where it is not one: all pivots must be positive."""
    size = len(matrix)
    rows = [list(row) + [Fraction(int(i == j)) for j in range(size)] for i, row in enumerate(matrix)]
    for i in range(size):
        pivot = rows[i][i]
        if pivot <= 0:
            return None
        rows[i] = [x / pivot for x in rows[i]]
        for j in range(size):
            if j != i and rows[j][i]:
                factor = rows[j][i]
                rows[j] = [x - factor * y for x, y in zip(rows[j], rows[i], strict=True)]
    return [row[size:] for row in rows]
