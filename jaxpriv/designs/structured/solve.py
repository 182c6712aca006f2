"""The least noise of a pattern for targets or for a budget: an interior start, then the barrier method."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxpriv.designs.structured.barrier import Interior, StructuredNoise, minimise_barrier
from jaxpriv.designs.structured.pattern import Pattern
from jaxpriv.designs.structured.requirements import GainLimit
from jaxpriv.errors import InfeasibleError


_DOUBLINGS = 200


def least_structured_noise(
    pattern: Pattern,
    covariances: Sequence[np.ndarray],
    limits: Sequence[GainLimit],
    *,
    floor_variance: float = 0.0,
    weights: np.ndarray | None = None,
    budget: float | None = None,
    tolerance: float = 1e-8,
    max_steps: int = 400,
) -> StructuredNoise:
    """The noise ηI + K, K ⪰ 0 of the pattern, that meets every limit at least tr(W K), or within tr(W K) ≤ budget at
    the least common scale of the limits that scale.

    `covariances` (n, n) are those of the priors, without η. Give everything in units in which numbers are near 1.

    Raises:
        InfeasibleError: the limits that do not scale cost more than the budget; `smallest_feasible` is what they cost.
    """
    shifted = [covariance + floor_variance * np.eye(pattern.size) for covariance in covariances]
    cost = pattern.traces(_full(weights, pattern.size))
    arguments = (pattern, shifted, list(limits), cost, floor_variance)
    if budget is None:
        interior = Interior.of(*arguments, None)
        return minimise_barrier(interior, _start_at_targets(interior), tolerance, max_steps)
    fixed = [limit for limit in limits if not limit.scales]
    unit = float(cost @ pattern.identity)
    base, spent = np.zeros(pattern.count), 0.0
    if fixed:
        alone = Interior.of(pattern, shifted, fixed, cost, floor_variance, None)
        least = minimise_barrier(alone, _start_at_targets(alone), 1e-3, max_steps)
        base, spent = least.excess[pattern.rows, pattern.columns], least.value
        base = base[np.flatnonzero(np.diff(pattern.owner, prepend=-1))]
        if not spent < budget:
            raise InfeasibleError("the fixed requirements cost more than the budget.", smallest_feasible=spent)
    interior = Interior.of(*arguments, budget)
    parameters = base + 0.5 * (budget - spent) / unit * pattern.identity
    return minimise_barrier(interior, _start_at_budget(interior, parameters), tolerance, max_steps)


def _full(weights: np.ndarray | None, size: int) -> np.ndarray:
    if weights is None:
        return np.eye(size)
    return np.diag(weights) if weights.ndim == 1 else weights


def _with_diagonals(interior: Interior, parameters: np.ndarray, share: float, scale: float | None) -> np.ndarray:
    """z with every d at `share` of its limit's mean."""
    d = [
        np.full(limit.count, share * limit.target * (scale if limit.scales and scale is not None else 1.0))
        for limit in interior.limits
        if limit.count > 1
    ]
    return np.concatenate([parameters, *d, [] if scale is None else [scale]])


def _start_at_targets(interior: Interior) -> np.ndarray:
    """White noise, doubled until it meets every limit with room to spare."""
    height = 1.0 / max(limit.target for limit in interior.limits)
    for _ in range(_DOUBLINGS):
        z = _with_diagonals(interior, height * interior.pattern.identity, 0.95, None)
        if interior.state(z) is not None:
            return _with_diagonals(interior, 2.0 * height * interior.pattern.identity, 0.95, None)
        height *= 2.0
    raise AssertionError("no noise met the limits.")


def _start_at_budget(interior: Interior, parameters: np.ndarray) -> np.ndarray:
    """The given noise at a scale that it meets with room to spare."""
    scale = 1.0
    for _ in range(_DOUBLINGS):
        z = _with_diagonals(interior, parameters, 0.95, scale)
        if interior.state(z) is not None:
            lower = _with_diagonals(interior, parameters, 0.95, 0.25 * scale)
            if interior.state(lower) is None:
                return _with_diagonals(interior, parameters, 0.95, 2.0 * scale)
            scale *= 0.25
            continue
        scale *= 4.0
    raise AssertionError("no scale met the limits.")
