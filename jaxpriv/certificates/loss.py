"""Rigorous bounds of the loss of secrets under Gaussian noise: the largest precision gain of an adversary.

Notation: joint prior covariance `[[S, B'], [B, Sigma]]` of the secret and the trace, `N = Sigma + G`,
`Q = B' N^-1 B`, `P = S - Q` the secret's posterior covariance; the loss is `lambda_max(P^-1 - S^-1)`.

The certificate is an identity: for *any* Y, with `R = B - N Y`,

    Q = Y' B + R' Y + R' N^-1 R,        0 <= R' N^-1 R <= |R|^2 / m   where  N >= m I  is verified,

so an inexact solve costs its error squared, and only the residual has to be accurate. (Derived here; proof in
docs/design.md.) With uncertain arrays the same Y is used: `P' = Z' J' Z + Y' G Y - R'^T N'^-1 R'` with `Z = (I; -Y)`
and J' the joint covariance, so entrywise radii enter through `|Z|`.
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
    UNIT_ROUNDOFF,
    down,
    float64_array,
    fraction_down,
    fraction_up,
    power_of_two,
    require_arithmetic,
    safely_positive,
    scale_down,
    scale_up,
    symmetric_array,
    up,
)
from jaxpriv.certificates.compound import compound_bounds
from jaxpriv.certificates.doubledouble import two_product
from jaxpriv.certificates.release import Release
from jaxpriv.errors import InputError


NEGLIGIBLE = 2.0**-56


@dataclass(frozen=True)
class LossBound:
    """Bounds of a loss (1 / squared unit of the secret): the true one lies in `[lower, upper]`.

    `upper` is `inf` where no finite value could be verified, `lower` is 0 where nothing could be.
    """

    upper: float
    lower: float


_UNKNOWN = LossBound(math.inf, 0.0)


def loss_bounds(
    covariance: np.ndarray,
    joints: Sequence[tuple[np.ndarray, np.ndarray]],
    factor: np.ndarray,
    floor_variance: float,
    *,
    covariance_radius: Any = None,
    cross_radius: Any = None,
    variance_radius: Any = None,
    times: Sequence[np.ndarray | None] | None = None,
) -> list[LossBound]:
    """Bounds of the loss of each secret under noise of covariance `factor @ factor.T + floor_variance I`.

    Shapes: `covariance` (n, n), `factor` (n, q); each joint is `(cross (n, k), variance (k, k))`, the covariance of the
    trace with the secret and the secret's own. The loss is `lambda_max(variance^-1 Q P^-1)`. The arrays are taken to be
    exact, unless radii are given: numbers, arrays, or (for the last two) lists of one for each joint, bounding each
    entry of the difference between the true and the given joint covariance; the bounds then hold for all of them.
    `times` gives, for each joint, the time 0..s-1 of each of its k coordinates; where it is not None the bounds are of
    the product of balls instead: of the least mean of d over diagonals D = diag(d_time) above the precision gain.
    Raises InputError for arrays that are not finite, of the wrong shape, or not symmetric; numerical trouble never
    raises, it gives `inf` and 0. Theorem 3.4 of Meehan & Chaudhuri (AISTATS 2021) turns a loss into a privacy level;
    the bounds are derived here (proof in docs/design.md).
    """
    require_arithmetic()
    covariance = symmetric_array(covariance, "covariance")
    size = covariance.shape[0]
    factor = float64_array(factor, "factor")
    if factor.ndim != 2 or factor.shape[0] != size:
        raise InputError(f"factor must have shape ({size}, q); it has shape {factor.shape}.")
    floor_variance = float(float64_array(floor_variance, "floor_variance"))
    if floor_variance < 0:
        raise InputError(f"floor_variance must not be negative; it is {floor_variance}.")
    checked = [_check_joint(joint, size, i) for i, joint in enumerate(joints)]
    radii = None
    if not (covariance_radius is None and cross_radius is None and variance_radius is None):
        radii = [
            (_radius(cross_radius, i, len(checked), cross.shape), _radius(variance_radius, i, len(checked), own.shape))
            for i, (cross, own) in enumerate(checked)
        ]
        covariance_radius = _radius(covariance_radius, None, 1, covariance.shape)
    bounds = [_UNKNOWN] * len(checked)
    with np.errstate(all="ignore"):
        release = Release(covariance, factor, floor_variance, None if radii is None else covariance_radius)
        if not release.definite > 0:
            return bounds
        valid = [safely_positive(np.diagonal(own)) for _, own in checked]
        basic = [i for i, (_, own) in enumerate(checked) if own.shape == (1, 1) and valid[i]]
        if basic:
            cross = np.concatenate([checked[i][0] for i in basic], axis=1)
            own = np.array([checked[i][1][0, 0] for i in basic])
            both = None
            if radii is not None:
                both = (
                    np.concatenate([radii[i][0] for i in basic], axis=1),
                    np.array([radii[i][1][0, 0] for i in basic]),
                )
            for i, bound in zip(basic, _basic(release, cross, own, both), strict=True):
                bounds[i] = bound
        for i, (cross, own) in enumerate(checked):
            if own.shape[0] > 1 and valid[i]:
                labels = None if times is None else times[i]
                bounds[i] = _compound(release, cross, own, None if radii is None else radii[i], labels)
    return bounds


@dataclass(frozen=True)
class _Quadratic:
    """For pairs of secret coordinates: `Q + radius E + t` contains the true Q, `|E| <= 1`, t a Gram matrix of `tails`.

    Precisely `Q = hi + lo` up to `radius`, plus `R' N^-1 R` whose entries are at most `tails_i tails_j`. In scaled
    coordinates; `radius` covers the radii of uncertain arrays too.
    """

    hi: np.ndarray
    lo: np.ndarray
    radius: np.ndarray
    tails: np.ndarray


def _quadratic(
    release: Release, cross: np.ndarray, variance: np.ndarray, pairs: tuple[np.ndarray, np.ndarray], radii: tuple | None
) -> _Quadratic:
    """Evaluate the identity for the pairs of columns of `cross` (n, k); `variance` (k,) scales what is negligible."""
    first, second = pairs
    left_over = variance - np.einsum("ij,ij->j", cross, release.propose_solution(cross))
    negligible = NEGLIGIBLE * np.maximum(left_over, 2.0**-50 * variance)
    solution = release.solve(cross, negligible if first.size == cross.shape[1] else negligible * 2.0**-40)
    parts, magnitude = solution.parts, solution.magnitude
    left = np.concatenate([part[:, first] for part in parts] + [solution.residual_hi[:, first]] * len(parts))
    right = np.concatenate([cross[:, second]] * len(parts) + [part[:, second] for part in parts])
    products, errors = two_product(left, right)
    small = solution.residual_lo[:, first] * sum(part[:, second] for part in parts)
    rounding = solution.error + 8 * UNIT_ROUNDOFF * np.abs(solution.residual_lo)
    radius = np.einsum("ij,ij->j", rounding[:, first], magnitude[:, second])
    spread: np.ndarray | float = 0.0
    if radii is not None:
        cross_radius, own_radius = radii
        reached = magnitude.T @ cross_radius
        wandering = own_radius + reached + reached.T + magnitude.T @ (release.radius @ magnitude)
        radius = radius + wandering[first, second] * ROUNDED
        spread = (cross_radius + release.radius @ magnitude) * ROUNDED
    his, los = [], []
    for terms in np.concatenate([products, errors, small]).T.tolist():
        total = _sum(terms)
        his.append(total)
        los.append(_sum([*terms, -total]))
    hi, lo = np.array(his), np.array(los)
    radius = (radius + 2 * UNIT_ROUNDOFF * np.abs(lo)) * ROUNDED + SMALLEST
    tails = solution.residual_norms(spread) * up(1 / math.sqrt(release.definite)) * ROUNDED
    return _Quadratic(hi, lo, radius, tails)


def _basic(
    release: Release, cross: np.ndarray, own: np.ndarray, radii: tuple[np.ndarray, np.ndarray] | None
) -> list[LossBound]:
    """All one-dimensional secrets at once: `cross` (n, k), `own` (k,), scaled to variances of about 1."""
    unit = power_of_two(own)
    cross = cross * np.outer(release.scaling, unit)
    own = own * unit * unit
    number = np.arange(own.size)
    scaled, own_radius = None, np.zeros(own.size)
    if radii is not None:
        own_radius = radii[1] * unit * unit * ROUNDED + SMALLEST
        scaled = radii[0] * np.outer(release.scaling, unit) * ROUNDED + SMALLEST, np.diag(own_radius)
    quadratic = _quadratic(release, cross, own, (number, number), scaled)
    columns = zip(
        own, own_radius, quadratic.hi, quadratic.lo, quadratic.radius, quadratic.tails**2 * ROUNDED, unit, strict=True
    )
    return [_scalar_bound(*map(float, column)) for column in columns]


def _compound(
    release: Release, cross: np.ndarray, own: np.ndarray, radii: tuple | None, times: np.ndarray | None = None
) -> LossBound:
    """One secret of several dimensions: the matrix Q, then the smallest t that passes a matrix inequality."""
    unit = power_of_two(np.diagonal(own))
    both = np.outer(unit, unit)
    cross = cross * np.outer(release.scaling, unit)
    own = own * both
    own_radius = np.zeros_like(own)
    scaled = None
    if radii is not None:
        own_radius = radii[1] * both * ROUNDED + SMALLEST
        scaled = radii[0] * np.outer(release.scaling, unit) * ROUNDED + SMALLEST, own_radius
    pairs = np.triu_indices(own.shape[0])
    quadratic = _quadratic(release, cross, np.diagonal(own), pairs, scaled)
    hi, lo, radius = np.zeros_like(own), np.zeros_like(own), np.zeros_like(own)
    for full, values in ((hi, quadratic.hi), (lo, quadratic.lo), (radius, quadratic.radius)):
        full[pairs] = values
        full.T[pairs] = values
    base = float(np.max(unit))
    several = times is not None and int(np.max(times)) > 0
    labels = times if several else None
    upper, lower = compound_bounds(own, own_radius, hi, lo, radius, quadratic.tails, unit / base, labels)
    if labels is not None:
        count = int(np.max(labels)) + 1
        upper = fraction_up(Fraction(upper) / count) if math.isfinite(upper) else upper
        lower = fraction_down(Fraction(lower) / count)
    return LossBound(scale_up(upper, base), scale_down(lower, base))


def _scalar_bound(
    own: float, own_radius: float, hi: float, lo: float, radius: float, tail: float, unit: float
) -> LossBound:
    """`(V - P) / (P V)` over `V <= own + own_radius`, `own - hi - lo - radius - tail <= P`; and from the other side."""
    smallest = down(_sum([own, -hi, -lo, -radius, -tail]))
    gained = up(_sum([own_radius, hi, lo, radius, tail]))
    largest_own = down(_sum([own, own_radius])) if own_radius else own
    upper = math.inf
    if smallest > 0 and gained < math.inf and down(largest_own * smallest) > 0:
        upper = up(max(gained, 0.0) / down(largest_own * smallest))
    largest = up(_sum([own, -hi, -lo, radius]))
    surely = down(_sum([-own_radius, hi, lo, -radius]))
    smallest_own = up(_sum([own, -own_radius])) if own_radius else own
    lower = 0.0
    if surely > 0 and largest > 0 and own > own_radius:
        lower = down(surely / up(smallest_own * largest))
    return LossBound(scale_up(upper, unit), scale_down(lower, unit))


def _check_joint(joint: tuple[Any, Any], size: int, position: int) -> tuple[np.ndarray, np.ndarray]:
    cross, own = joint
    cross = float64_array(cross, f"joints[{position}] cross")
    if cross.ndim != 2 or cross.shape[0] != size or cross.shape[1] == 0:
        raise InputError(f"joints[{position}] cross must have shape ({size}, k), k >= 1; it has shape {cross.shape}.")
    return cross, symmetric_array(own, f"joints[{position}] variance", cross.shape[1])


def _radius(value: Any, position: int | None, count: int, shape: tuple[int, ...]) -> np.ndarray:
    if value is None:
        return np.zeros(shape)
    if isinstance(value, (list, tuple)) and position is not None:
        if len(value) != count:
            raise InputError(
                f"a list of radii must have one entry for each of the {count} joints; it has {len(value)}."
            )
        value = value[position]
    array = float64_array(value, "radius")
    if np.any(array < 0) or (array.ndim and array.shape != shape):
        raise InputError(f"a radius must be non-negative, a number or an array of shape {shape}.")
    return np.broadcast_to(array, shape).copy()


def _sum(values: list[float]) -> float:
    """Correctly rounded sum; NaN when it is not finite."""
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):
        return math.nan
