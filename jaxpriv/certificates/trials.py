"""The one inequality behind every lower bound, evaluated so that nothing in it has to be trusted.

Let a secret have joint covariance `J = [[Sigma, B], [B', S]]` with the trace, and M(G) be its precision gain under
noise G. For any vectors u (n,), b and w (k,), with `z = S b`,

    z' M(G) z >= 2 u'B b - (u; -w)' J (u; -w) - u' G u.                                                           (*)

Proof. With `H = B S^-1`, `C = Sigma - B S^-1 B'`: `M = H'(C + G)^-1 H`, and `z'M z >= 2 u'H z - u'(C + G) u` for
every u. Here `H z = B b`, and `u'B S^-1 B'u >= 2 w'B'u - w'S w` for every w. So every term is a polynomial in the
given arrays: no inverse, and no optimality of u, b or w, is relied on. (Derived here.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from jaxpriv.certificates.arithmetic import ROUNDED, SMALLEST, UNIT_ROUNDOFF, float64_array, symmetric_array
from jaxpriv.certificates.definiteness import semidefinite_pair
from jaxpriv.certificates.doubledouble import two_product
from jaxpriv.certificates.products import left_factor, product, right_factor
from jaxpriv.errors import InputError


@dataclass(frozen=True)
class Trial:
    """Sums over trial vectors: `linear` is at most the sum of `2 u'B b`, `curvature` at least that of the J terms,
    `length` at least that of `|S b|^2` (times the target, where there is one), or for the product of balls the
    number of times multiplied by the largest share of one time; `columns` are the u (n, l)."""

    linear: Fraction
    curvature: Fraction
    length: Fraction
    columns: np.ndarray


def evaluate(
    covariance: np.ndarray,
    cross: np.ndarray,
    variance: np.ndarray,
    u: np.ndarray,
    b: np.ndarray,
    w: np.ndarray,
    times: np.ndarray | None = None,
) -> Trial | None:
    """Both sides of (*) without the G term, summed over the columns of u (n, l), b, w (k, l); None if not finite.

    `times` (k,), the time 0..s-1 of each coordinate, asks for the length of the product of balls: where M is below
    diag(d_time) with a mean of d of at most t, the sum of the z'M z is at most `t` times that length.
    """
    if not semidefinite_pair(variance, None):
        return None
    with np.errstate(all="ignore"):
        image = product(left_factor(cross), right_factor(b))
        linear = _inner(u, *image)
        joint = np.block([[covariance, cross], [cross.T, variance]])
        vectors = np.concatenate([u, -w])
        curvature = _inner(vectors, *product(left_factor(joint), right_factor(vectors)))
    if linear is None or curvature is None or not np.all(np.isfinite(b)):
        return None
    rows = [[Fraction(x) for x in row] for row in variance.tolist()]
    labels = [0] * len(rows) if times is None else times.tolist()
    lengths = [Fraction(0)] * (max(labels) + 1)
    for column in b.T.tolist():
        exact = [Fraction(x) for x in column]
        for time, row in zip(labels, rows, strict=True):
            lengths[time] += sum(x * y for x, y in zip(row, exact, strict=True)) ** 2
    length = len(lengths) * max(lengths)
    return Trial(2 * linear[0], curvature[1], length, u)


def vectors_from(
    cross: np.ndarray, variance: np.ndarray, solution: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Trial vectors (u, b, w) from V (n, k) and Z (k, k): z the columns of a root of Z, `b = S^-1 z`, `u = V z`."""
    values, vectors = np.linalg.eigh((weight + weight.T) / 2)
    kept = values > 1e-15 * max(float(values[-1]), 0.0)
    roots = vectors[:, kept] * np.sqrt(values[kept])
    u = solution @ roots
    try:
        return u, np.linalg.solve(variance, roots), np.linalg.solve(variance, cross.T @ u)
    except np.linalg.LinAlgError:
        return u, np.full_like(roots, np.nan), np.full((cross.shape[1], u.shape[1]), np.nan)


def check_problem(covariance: Any, joint: Any, position: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Validated float64 (covariance, cross, variance). Raises InputError."""
    covariance = symmetric_array(covariance, f"covariance of joints[{position}]")
    cross, variance = joint
    cross = float64_array(cross, f"joints[{position}] cross")
    size = covariance.shape[0]
    if cross.ndim != 2 or cross.shape[0] != size or cross.shape[1] == 0:
        raise InputError(f"joints[{position}] cross must have shape ({size}, k), k >= 1; it has shape {cross.shape}.")
    return covariance, cross, symmetric_array(variance, f"joints[{position}] variance", cross.shape[1])


def _inner(left: np.ndarray, hi: np.ndarray, lo: np.ndarray, error: np.ndarray) -> tuple[Fraction, Fraction] | None:
    """Bounds of the sum of `left * (hi + lo)`, entries of the right factor known within `error`."""
    products, errors = two_product(left, hi)
    plain = left * lo
    slack = float(np.sum(np.abs(left) * (error + 2 * UNIT_ROUNDOFF * np.abs(lo)))) * ROUNDED + SMALLEST
    terms = np.concatenate([products.ravel(), errors.ravel(), plain.ravel()]).tolist()
    try:
        total = math.fsum(terms)
        rest = math.fsum([*terms, -total])
    except (OverflowError, ValueError):
        return None
    if not (math.isfinite(total) and math.isfinite(rest) and math.isfinite(slack)):
        return None
    centre = Fraction(total) + Fraction(rest)
    reach = Fraction(slack) + abs(Fraction(rest)) * Fraction(1, 2**52)
    return centre - reach, centre + reach
