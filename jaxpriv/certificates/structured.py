"""Rigorous bounds of a secret's loss from products with the prior covariance, which is never formed.

Notation: E (n, k) selects the secret S, V = Sigma_SS, c = Sigma E, `N = Sigma + G`, `G = L L' + eta I`, P is the
secret's posterior covariance and Q = V - P. For *any* Y, with `R = c - N Y`,

    Q = Y'c + c'Y - Y' Sigma Y - Y' G Y + R' N^-1 R,                                                           (gained)
    P = (E - Y)' Sigma (E - Y) + Y' G Y - R' N^-1 R,                                                        (posterior)

with `0 <= R' N^-1 R <= |R|^2 / m` where `N >= m I`, m = nugget + eta, is known on paper. So an inexact Y costs its
error squared, one product with Sigma has to be bounded, and neither `H = c V^-1` nor the covariance given the secret
is computed. The first identity loses nothing when the secret's coordinates nearly repeat each other, the second when P
is far below V. For a one-sided prior, whose products are with some Sigma~ <= Sigma but whose columns c are Sigma's, the
first holds with Sigma~ and gives a loss no less than the true one.

Columns are turned by a matrix T close to P^-1/2, so that errors are relative to what an adversary still does not know.
(Derived here; proofs in docs/long_traces.md.)
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
    fraction_down,
    norm_up,
    power_of_two,
    require_arithmetic,
    safely_positive,
    up,
)
from jaxpriv.certificates.doubledouble import two_sum
from jaxpriv.certificates.loss import LossBound
from jaxpriv.certificates.structured_proposals import Proposals
from jaxpriv.certificates.structured_rational import UNKNOWN, Variance, fractions, loss_from_parts
from jaxpriv.certificates.structured_sums import Bounded, inner


_TIGHT = 1e-10  # relative width of a loss below which one identity is enough


@dataclass(frozen=True)
class _Problem:
    """One secret under one noise."""

    prior: Any
    chosen: np.ndarray
    cross: np.ndarray
    cross_radius: np.ndarray
    factor: np.ndarray
    floor_variance: float
    definite: float


def structured_loss_bounds(
    prior: Any,
    secrets: Sequence[Sequence[int]],
    factor: np.ndarray,
    floor_variance: float,
    *,
    times: Sequence[np.ndarray | None] | None = None,
) -> list[LossBound]:
    """Bounds of the loss of each secret (its positions) under noise `factor @ factor.T + floor_variance I`.

    `prior` is a `StructuredPrior`, `factor` (n, q); `times` gives, for each secret, the time 0..s-1 of each coordinate,
    where the bound is to be of the product of balls. In 1 / squared unit of the trace, `inf` and 0 where nothing could
    be verified, which is always so without a nugget and a floor.
    """
    require_arithmetic()
    nugget = float(prior.nugget)
    if not (math.isfinite(nugget) and math.isfinite(floor_variance)):
        return [UNKNOWN] * len(secrets)
    definite = fraction_down(Fraction(nugget) + Fraction(floor_variance))
    if not definite > 0:
        return [UNKNOWN] * len(secrets)
    proposals = Proposals(prior, factor, floor_variance)
    bounds = []
    with np.errstate(all="ignore"):
        for i, indices in enumerate(secrets):
            chosen = np.asarray(indices, dtype=int)
            parts = np.asarray(prior.columns(chosen)), np.asarray(prior.columns_error(chosen))
            problem = _Problem(prior, chosen, *parts, factor, floor_variance, definite)
            labels = None if times is None else times[i]
            if labels is not None and int(np.max(labels)) == 0:
                labels = None
            bounds.append(_loss(problem, proposals, labels))
    return bounds


def own_variance(prior: Any, chosen: np.ndarray, cross: np.ndarray, cross_radius: np.ndarray) -> Variance:
    """The secret's covariance, to many digits where the prior offers them (`exact_block`), else from its columns."""
    if hasattr(prior, "exact_block"):
        return Variance(*prior.exact_block(chosen))
    own, radius = cross[chosen], cross_radius[chosen]
    middle = (own + own.T) / 2
    return Variance(fractions(middle), Fraction(norm_up(radius + np.abs(own - own.T) + UNIT_ROUNDOFF * np.abs(middle))))


def _loss(problem: _Problem, proposals: Proposals, labels: np.ndarray | None) -> LossBound:
    own = problem.cross[problem.chosen]
    if not (safely_positive(np.diagonal(own)) and _finite(problem.cross, problem.cross_radius)):
        return UNKNOWN
    variance = own_variance(problem.prior, problem.chosen, problem.cross, problem.cross_radius)
    solution = proposals.solution(problem.chosen, problem.cross)
    if not np.all(np.isfinite(solution)):
        return UNKNOWN
    basis = _basis(variance.rounded(), problem.cross.T @ solution)
    turned = solution @ basis
    bound = loss_from_parts(variance, basis, *_gained(problem, basis, turned), True, labels)
    if problem.prior.one_sided:
        return LossBound(bound.upper, 0.0)  # the lower one is of the loss under the smaller covariance
    if bound.upper <= bound.lower * (1 + _TIGHT):
        return bound
    other = loss_from_parts(variance, basis, *_posterior(problem, basis, turned), False, labels)
    return LossBound(min(bound.upper, other.upper), max(bound.lower, other.lower))


def _finite(*parts: np.ndarray) -> bool:
    return all(bool(np.all(np.isfinite(part))) for part in parts)


def _basis(own: np.ndarray, quadratic: np.ndarray) -> np.ndarray:
    """T with `T' P T` close to I; where the estimate of P is not positive definite, powers of two."""
    try:
        return np.linalg.inv(np.linalg.cholesky(own - (quadratic + quadratic.T) / 2)).T
    except np.linalg.LinAlgError:
        return np.diag(power_of_two(np.diagonal(own)))


def _gained(problem: _Problem, basis: np.ndarray, solution: np.ndarray) -> tuple[Bounded, float]:
    """`T'Q T` without its tail, (k, k), and a bound of the tail's norm, from `solution` Y T (n, k)."""
    image = problem.prior.bounded_product(solution)
    reached = inner(problem.cross, solution, None, None, problem.cross_radius).turned(basis)
    quadratic = inner(solution, image.values, image.entries, image.norms)
    noise, pushed, radius = _noise(problem, solution, np.zeros_like(solution))
    total = reached + reached.transposed() + quadratic.negative() + noise.negative()
    cross = problem.cross @ basis
    magnitude = np.abs(problem.cross) @ np.abs(basis)
    radius = radius + problem.cross_radius @ np.abs(basis) * ROUNDED
    radius = radius + (basis.shape[0] + 4) * UNIT_ROUNDOFF * (magnitude + np.abs(pushed) + np.abs(image.values))
    return total.symmetric(), _tail(problem, cross - image.values - pushed, radius, image.norms)


def _posterior(problem: _Problem, basis: np.ndarray, solution: np.ndarray) -> tuple[Bounded, float]:
    """`T'P T` without its tail, and a bound of the tail's norm."""
    rest = -solution
    rest[problem.chosen] += basis
    # The columns are E T - rest: exactly `solution` outside the secret, there a number and its rounding.
    spill = np.zeros_like(solution)
    solution = solution.copy()
    solution[problem.chosen], spill[problem.chosen] = two_sum(basis, -rest[problem.chosen])
    spill = np.abs(spill)
    image = problem.prior.bounded_product(rest)
    noise, pushed, radius = _noise(problem, solution, spill)
    radius = radius + 4 * UNIT_ROUNDOFF * (np.abs(image.values) + np.abs(pushed))
    total = inner(rest, image.values, image.entries, image.norms) + noise
    return total.symmetric(), _tail(problem, image.values - pushed, radius, image.norms)


def _noise(problem: _Problem, solution: np.ndarray, spill: np.ndarray) -> tuple[Bounded, np.ndarray, np.ndarray]:
    """`Y'G Y` (k, k) for the Y within `spill` of `solution`, and G Y (n, k) with a bound for each entry of it."""
    factor, floor = problem.factor, problem.floor_variance
    width = factor.shape[1]
    plain = inner(solution, solution, spill, None, spill)
    crossed = spill.T @ spill * (1 + 2.0**-20)
    square = Bounded(plain.hi, plain.lo, plain.radius + crossed).scaled(floor)
    pushed = floor * solution
    magnitude = np.abs(pushed)
    radius = floor * spill
    if width:
        reached = inner(factor, solution, spill)
        values, reach = reached.hi, reached.radius + np.abs(reached.lo)
        absolute = np.abs(values)
        pushed = pushed + factor @ values
        magnitude = magnitude + np.abs(factor) @ absolute
        radius = radius + np.abs(factor) @ reach
        # The low parts are of the size of the radius already; they are left to it.
        error = 2 * (width + 4) * UNIT_ROUNDOFF * (absolute.T @ absolute)
        error += absolute.T @ reach + reach.T @ absolute + reach.T @ reach
        square = square + Bounded(values.T @ values, np.zeros_like(error), error * ROUNDED + SMALLEST)
    return square, pushed, radius * ROUNDED + 2 * (width + 4) * UNIT_ROUNDOFF * magnitude


def _tail(problem: _Problem, residual: np.ndarray, radius: np.ndarray, norms: np.ndarray) -> float:
    """A bound of |R|^2 / m: `radius` is without the product's own error, whose columns have at most `norms`."""
    reach = np.abs(residual) * (1 + 4 * UNIT_ROUNDOFF) + radius * ROUNDED
    columns = np.array([norm_up(reach[:, j]) + norms[j] for j in range(reach.shape[1])])
    return up(float(np.sum(columns**2)) * ROUNDED / problem.definite)


def structured_trial(
    prior: Any, chosen: np.ndarray, columns: np.ndarray, w: np.ndarray, b: np.ndarray
) -> tuple[Fraction, Fraction, Fraction] | None:
    """Bounds for trial vectors: `linear` from below, `curvature` and `length` from above; None where not finite.

    For the columns u of `columns` (n, l) and those of w, b (k, l), with z = V b and any noise G, the precision gain M
    has `sum z'M z >= linear - curvature - sum u'G u` where linear is the sum of the 2 u'Sigma E b, curvature that of
    the `(u - E w)'Sigma (u - E w)`, and length that of the |z|^2: the inequality of `trials`, the secret being part of
    the trace.
    """
    cross, cross_radius = np.asarray(prior.columns(chosen)), np.asarray(prior.columns_error(chosen))
    if not _finite(cross, cross_radius, columns):
        return None
    variance = own_variance(prior, chosen, cross, cross_radius)
    moved = columns.copy()
    moved[chosen] -= w
    image = prior.bounded_product(moved)
    with np.errstate(all="ignore"):
        quadratic = inner(moved, image.values, image.entries, image.norms)
        reached = inner(cross, columns, None, None, cross_radius)
    parts = (quadratic.hi, quadratic.lo, quadratic.radius, reached.hi, reached.lo, reached.radius, b)
    if not _finite(*parts):
        return None
    curvature = Fraction(0)
    linear, length = Fraction(0), Fraction(0)
    for j in range(columns.shape[1]):
        curvature += sum(Fraction(float(part[j, j])) for part in (quadratic.hi, quadratic.lo, quadratic.radius))
        exact = [Fraction(x) for x in b[:, j].tolist()]
        for i, value in enumerate(exact):
            centre = Fraction(float(reached.hi[i, j])) + Fraction(float(reached.lo[i, j]))
            linear += 2 * (centre * value - abs(value) * Fraction(float(reached.radius[i, j])))
        # |(V + D) b| <= |V b| + |D| |b| entry by entry, and |b| is at most the sum of its entries.
        wander = variance.radius * sum(abs(y) for y in exact)
        for row in variance.values:
            length += (abs(sum(x * y for x, y in zip(row, exact, strict=True))) + wander) ** 2
    return linear, curvature, length


def square_sum(columns: np.ndarray) -> Fraction:
    """An upper bound of the sum of squares of `columns`, (n, l)."""
    total = Fraction(0)
    for j in range(columns.shape[1]):
        one = inner(columns[:, j : j + 1], columns[:, j : j + 1])
        total += sum(Fraction(float(part[0, 0])) for part in (one.hi, one.lo, one.radius))
    return total
