"""From a proposed strategy to a certified mechanism."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import solve_triangular

from jaxpriv.certificates.arithmetic import SMALLEST, UNIT_ROUNDOFF, gamma, norm_up
from jaxpriv.designs.matrix_mechanism.bounds import total_error_upper
from jaxpriv.designs.matrix_mechanism.participations import Participations
from jaxpriv.designs.matrix_mechanism.result import MatrixMechanism
from jaxpriv.designs.matrix_mechanism.sensitivity import Sensitivity, sensitivity
from jaxpriv.designs.result import DesignResult
from jaxpriv.errors import InputError
from jaxpriv.mechanisms.gaussian import GaussianMechanism


_MARGIN = 1.0 + 2.0**-45


class Found(NamedTuple):
    """A strategy of any scale, the lower bound, what it is about, and counts; `first` are the steps to which a Toeplitz
    strategy is most sensitive."""

    strategy: np.ndarray
    lower: float
    bound: str
    stats: dict[str, Any]
    first: np.ndarray | None = None


def finished(
    matrix: Float[np.ndarray, "m n"],
    found: Found,
    participations: Participations | np.ndarray | None,
    changes: np.ndarray | None,
    structure: str,
    mu: float,
    tolerance: float,
    floor_sd: float | None,
    resolution: float,
) -> MatrixMechanism:
    """Scale the strategy until its verified sensitivity is at most μ, and certify what it costs."""
    rank, size = found.strategy.shape
    strategy, determined = found.strategy, rank == size
    noising: Any = None
    if determined:
        if not np.array_equal(strategy, np.tril(strategy)):
            strategy = _lower_triangular(strategy)
        noising = np.asarray(solve_triangular(strategy, np.eye(size), lower=True))
        determined = bool(np.all(np.isfinite(noising)))
    for attempt in range(4):
        bounds = _bounds(strategy, participations, changes, found)
        if determined:
            bounds = _of_noise(strategy, noising, bounds)
        if not np.isfinite(bounds.scalar):
            raise InputError("the workload is singular to working precision; leave out steps or add queries.")
        if attempt and bounds.scalar <= mu:
            break
        scale = mu / (bounds.scalar * _MARGIN)
        strategy = strategy * scale
        if determined:
            noising = noising / scale
    if determined:
        decoder = matrix @ noising
        cost = total_error_upper(matrix, noising)
    else:
        decoder = np.linalg.lstsq(strategy.T, matrix.T, rcond=None)[0].T
        cost = norm_up(decoder) ** 2 * (1.0 + 8.0 * UNIT_ROUNDOFF)
    mechanism = None
    if determined:
        weight = norm_up(matrix) ** 2
        least = 2.0 * resolution
        floor = max(least, 1e-4 * float(np.sqrt(cost / weight))) if floor_sd is None else float(floor_sd)
        mechanism = GaussianMechanism(noising, floor, resolution)
        cost = (cost + floor**2 * weight) * (1.0 + 8.0 * UNIT_ROUNDOFF)
    gap = (cost - found.lower) / cost
    stats = {"structure": structure, "bound": found.bound, **found.stats}
    result = DesignResult.optimal if gap <= tolerance else DesignResult.suboptimal
    return MatrixMechanism(
        matrix, strategy, decoder, mechanism, bounds.scalar, bounds.vector, cost, found.lower, gap, result, stats
    )


def _bounds(strategy, participations, changes, found: Found) -> Sensitivity:
    if changes is not None and not isinstance(participations, Participations):
        return sensitivity(strategy, changes=changes)
    bounds = sensitivity(strategy, participations)
    if found.first is None or len(found.first) == 1:
        return bounds
    closed = _of_decreasing(strategy, found.first)
    return Sensitivity(min(bounds.scalar, closed.scalar), min(bounds.vector, closed.vector))


def _of_decreasing(strategy: np.ndarray, first: np.ndarray) -> Sensitivity:
    """Positive coefficients that do not increase (of the matrix as it is): the first steps possible are the worst."""
    column = strategy[:, 0]
    toeplitz = all(np.array_equal(strategy[j:, j], column[: len(column) - j]) for j in range(len(column)))
    if not (toeplitz and np.all(column >= 0.0) and np.all(np.diff(column) <= 0.0)):
        return Sensitivity(np.inf, np.inf)
    moved = np.sum(strategy[:, first], axis=1)
    bound = norm_up(moved) * (1.0 + 4.0 * gamma(len(first) + 2))
    return Sensitivity(bound, bound)


def _lower_triangular(strategy: np.ndarray) -> np.ndarray:
    """The lower-triangular L with LᵀL = CᵀC and a positive diagonal."""
    upper = np.asarray(np.linalg.qr(strategy[:, ::-1], mode="r"))
    lower = upper[::-1, ::-1]
    return lower * np.where(np.diagonal(lower) < 0.0, -1.0, 1.0)[:, None]


def _of_noise(strategy: np.ndarray, noising: np.ndarray, bounds: Sensitivity) -> Sensitivity:
    """Bounds for the noise L ξ itself: ‖L⁻¹u‖ ≤ ‖C u‖/(1 − ‖C L − I‖)."""
    size = len(strategy)
    away = norm_up(strategy @ noising - np.eye(size)) * (1.0 + 4.0 * UNIT_ROUNDOFF)
    away += gamma(size + 4) * norm_up(np.abs(strategy) @ np.abs(noising)) * (1.0 + 2.0**-30) + SMALLEST
    if not away < 0.5:
        return Sensitivity(np.inf, np.inf)
    factor = (1.0 + 4.0 * UNIT_ROUNDOFF) / (1.0 - away)
    return Sensitivity(bounds.scalar * factor, bounds.vector * factor)
