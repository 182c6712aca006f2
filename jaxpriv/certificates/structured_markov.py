"""Products with the covariance of a sum of products of Matérn processes, with a bound of every rounding.

A Matérn process of order p + 1/2, p = 0, 1, 2, and variance 1 is the first coordinate of a Markov chain whose states
have the identity as covariance at every time. Over a gap d, with x = sqrt(2p+1) d / lengthscale,

    Phi(x) = exp(A x) = e^-x (I + x M + x^2 M^2 / 2),   M = A + I nilpotent,   A + A' <= 0,

and the kernel is `Phi(x)_11`. So `|Phi(x)|_2 <= 1`: |exp(A x) v| cannot grow, as its square has the derivative
`v(x)' (A + A') v(x)`. For a product of kernels the transitions multiply as Kronecker products, for a sum the products
with a vector add. Proofs and constants in docs/long_traces.md.

Nothing is trusted about how the states were computed. With exact transitions Phi_i and *any* proposed states f^_i of
`f_i = Phi_i (f_(i-1) + e_1 x_(i-1))`, the error obeys `|f_i - f^_i| <= |f_(i-1) - f^_(i-1)| + |rho_i|`, with the
residual `rho_i = f^_i - Phi_i (f^_(i-1) + e_1 x_(i-1))`: a running sum of residual norms, each evaluated with a bound.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from jaxpriv.certificates.arithmetic import SMALLEST, UNIT_ROUNDOFF, gamma, require_arithmetic
from jaxpriv.errors import CertificateError


_FAR = 700.0  # scaled distance beyond which e^-x, times any power that occurs, is below 1e-290
_EXPONENTIAL = 8  # units of roundoff granted to numpy.exp (4 units in the last place), checked by `_require_exp`
_DISTANCE = 5  # rounding of x: the gap, sqrt(2p+1), two operations, and second-order terms
_ROWS = 1 << 16
_A, _B = math.sqrt(1 / 3), math.sqrt(8 / 3)
_COEFFICIENTS = {
    0: (np.array([[1.0]]),),
    1: (np.eye(2), np.array([[1.0, 1.0], [-1.0, -1.0]])),
    2: (
        np.eye(3),
        np.array([[1.0, _A, 0.0], [-_A, 1.0, _B], [0.0, -_B, -2.0]]),
        np.array([[1 / 3, _A, math.sqrt(2) / 3], [-_A, -1.0, -_B / 2], [math.sqrt(2) / 3, _B / 2, 2 / 3]]),
    ),
}
_KERNEL = {0: (1.0,), 1: (1.0, 1.0), 2: (1.0, 1.0, 1 / 3)}


@dataclass(frozen=True)
class Factor:
    """A Matérn kernel of variance 1: order p and length scale, in the unit of the times."""

    order: int
    lengthscale: float

    @property
    def states(self) -> int:
        return self.order + 1


@dataclass(frozen=True)
class Term:
    """`variance` times a product of Matérn kernels; no factor is a constant. The variance is exact."""

    variance: Fraction
    factors: tuple[Factor, ...]

    @property
    def states(self) -> int:
        return math.prod(factor.states for factor in self.factors)


@dataclass(frozen=True)
class Chain:
    """The transitions of one term between sorted times: `transitions` (n, m, m), the first unused.

    `size` (n,) bounds the Frobenius norm of each computed and exact transition, `error` (n,) that of their difference.
    """

    transitions: np.ndarray
    size: np.ndarray
    error: np.ndarray


def chain(term: Term, times: np.ndarray) -> Chain:
    """The n transitions of a term between `times` (n,), sorted; m is the number of the term's states."""
    _require_exp()
    gaps = np.diff(times, prepend=times[:1])
    total = np.ones((times.size, 1, 1))
    size, units = np.ones(times.size), np.zeros(times.size)
    for factor in term.factors:
        x, decay = _decay(factor, gaps)
        coefficients = _COEFFICIENTS[factor.order]
        matrix = np.zeros((times.size, factor.states, factor.states))
        weight = np.zeros(times.size)
        power = decay
        for coefficient in coefficients:
            matrix += power[:, None, None] * coefficient
            weight += power * np.linalg.norm(coefficient)
            power = power * x
        states = total.shape[1] * factor.states
        total = np.einsum("nij,nkl->nikjl", total, matrix).reshape(times.size, states, states)
        # Frobenius norms of the terms' absolute values bound both the rounding and the matrix itself.
        size = size * weight
        units = units + _units(factor, x)
    return Chain(total, size * (1 + 2.0**-30) + SMALLEST, size * units * (UNIT_ROUNDOFF * (1 + 2.0**-30)) + SMALLEST)


def kernel_columns(terms: tuple[Term, ...], times: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Kernel values between `times` (n,) and `chosen` (k,), (n, k), and a bound of the rounding of each."""
    _require_exp()
    gaps = np.abs(times[:, None] - chosen[None, :])
    values, errors = np.zeros_like(gaps), np.zeros_like(gaps)
    for term in terms:
        value, units = np.ones_like(gaps), np.zeros_like(gaps)
        for factor in term.factors:
            x, decay = _decay(factor, gaps)
            value = value * (decay * np.polynomial.polynomial.polyval(x, _KERNEL[factor.order]))
            units = units + _units(factor, x)
        value = float(term.variance) * value
        errors += np.abs(value) * (units + 2) * UNIT_ROUNDOFF
        values += value
        errors += np.abs(values) * UNIT_ROUNDOFF
    return values, errors * (1 + 2.0**-30) + SMALLEST


def exact_block(terms: tuple[Term, ...], times: np.ndarray, nugget: Fraction) -> tuple[list[list[Fraction]], Fraction]:
    """The covariance of the values at `times` (k,), (k, k), rational, and a bound of its error in spectral norm.

    Evaluated with 60 digits: x carries a relative error of a few 1e-60, so each term one of at most x times that, and
    x e^-x is below 1.
    """
    exact = [Fraction(time) for time in times.tolist()]
    block = [[Fraction(0)] * len(exact) for _ in exact]
    with localcontext() as context:
        context.prec = 60
        for i, first in enumerate(exact):
            for j in range(i + 1):
                gap = abs(first - exact[j])
                value = sum((term.variance * _exact_value(term, gap) for term in terms), Fraction(0))
                block[i][j] = block[j][i] = value + (nugget if i == j else 0)
    total = sum((term.variance for term in terms), Fraction(0))
    return block, len(exact) * total * Fraction(1, 10**50)


def _exact_value(term: Term, gap: Fraction) -> Fraction:
    value = Decimal(1)
    for factor in term.factors:
        distance = gap / Fraction(factor.lengthscale)
        x = Decimal(2 * factor.order + 1).sqrt() * (Decimal(distance.numerator) / Decimal(distance.denominator))
        x = min(x, Decimal(2000))
        polynomial = (Decimal(1), 1 + x, 1 + x * (1 + x / 3))[factor.order]
        value *= (-x).exp() * polynomial
    return Fraction(value)


def term_product(
    term: Term, transitions: Chain, forward: np.ndarray, backward: np.ndarray, vector: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The term's covariance times `vector` (n,), (n,) in sorted order, and a bound (n,) of the error of each entry.

    `forward` and `backward` (n, m) are proposals of the states `f_i = Phi_i (f_(i-1) + e_1 v_(i-1))` and
    `b_i = Phi_(i+1)' (b_(i+1) + e_1 v_(i+1))`, zero at their ends.
    """
    require_arithmetic()
    size = vector.size
    wander = np.zeros((2, size))
    for start in range(1, size, _ROWS):
        rows = slice(start, min(start + _ROWS, size))
        before = slice(rows.start - 1, rows.stop - 1)
        part = transitions.transitions[rows], transitions.size[rows], transitions.error[rows]
        wander[0, rows] = _residuals(*part, forward[rows], forward[before], vector[before], False)
        wander[1, before] = _residuals(*part, backward[before], backward[rows], vector[rows], True)
    # What the ends were proposed to be, instead of zero, is error as well.
    wander[0, 0], wander[1, -1] = np.linalg.norm(forward[0]), np.linalg.norm(backward[-1])
    reach = np.cumsum(wander[0]) + np.cumsum(wander[1][::-1])[::-1]
    reach *= 1 + 2 * gamma(size + 4)
    variance = float(term.variance)
    left, right = forward[:, 0], backward[:, 0]
    values = variance * (left + right + vector)
    rounding = 6 * UNIT_ROUNDOFF * (np.abs(left) + np.abs(right) + np.abs(vector))
    return values, variance * (reach + rounding) * (1 + 2.0**-30) + SMALLEST


def _residuals(
    matrices: np.ndarray,
    size: np.ndarray,
    error: np.ndarray,
    states: np.ndarray,
    origins: np.ndarray,
    entering: np.ndarray,
    transposed: bool,
) -> np.ndarray:
    """Bounds (r,) of the norms of `states - Phi (origins + e_1 entering)` for the exact Phi, row by row.

    `matrices` (r, m, m) are computed transitions, transposed if asked, `size` and `error` (r,) as in `Chain`; `states`
    and `origins` are (r, m), `entering` (r,).
    """
    moved = origins.copy()
    moved[:, 0] += entering
    width = moved.shape[1]
    image = np.zeros_like(moved)
    for j in range(width):
        image += (matrices[:, j, :] if transposed else matrices[:, :, j]) * moved[:, j : j + 1]
    residual = np.sqrt(np.sum((states - image) ** 2, axis=1))
    length = np.sqrt(np.sum(moved**2, axis=1))
    # The computed image is off by at most gamma_(m+1) |Phi||moved|, `moved` by a rounding, the difference by another.
    spread = error + (width + 6) * UNIT_ROUNDOFF * size
    return (residual + spread * length) * (1 + 2.0**-30) + SMALLEST


def _decay(factor: Factor, gaps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scaled distances x and e^-x, each of the shape of `gaps`."""
    with np.errstate(over="ignore"):
        x = np.minimum((math.sqrt(2 * factor.order + 1) / factor.lengthscale) * gaps, _FAR)
    return x, np.exp(-x)


def _units(factor: Factor, x: np.ndarray) -> np.ndarray:
    """Relative error, in roundoffs, of each computed term `e^-x x^j c_j` and of the sum and product it enters.

    Of the shape of `x`. A relative error of _DISTANCE roundoffs in x moves the term by at most (j + x) times that; the
    exponential, j - 1 products, the coefficient (3 roundoffs), two products and the sum over j add the rest.
    """
    return _DISTANCE * (factor.order + x) + (_EXPONENTIAL + 3 * factor.order + 12)


@functools.cache
def _require_exp() -> None:
    """numpy.exp is within 4 units in the last place on a sample of its range here; CertificateError if not."""
    require_arithmetic()
    points = -np.concatenate([np.linspace(0.0, 700.0, 200), np.geomspace(1e-12, 1.0, 56)])
    with localcontext() as context:
        context.prec = 40
        for x, value in zip(points.tolist(), np.exp(points).tolist(), strict=True):
            exact = Decimal(x).exp()
            if abs(Decimal(value) - exact) > exact * Decimal(3) * Decimal(2) ** -53:
                raise CertificateError("numpy.exp is less accurate on this machine than its bound here assumes.")
