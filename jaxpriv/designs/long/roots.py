"""The roots of the curves: the powers and directions of the least noise for a target, and the target of a budget."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jaxpriv.designs.long.curves import Curves, Point


_CLOSE = 1e-11  # of log(λ_i/t) at a root
_ROUNDING = 1e-6  # of the same, below which a step that does not help ends the iteration
_ENOUGH = 1e-10  # of the logarithm of the power within a budget; below that rounding stops the iteration
_STEPS = 60
_SWEEPS = 12


@dataclass(frozen=True)
class Roots:
    """The positive eigenvalues of the floor, (k,) descending, its eigenvectors (n, k), and the loss t of the floor."""

    powers: np.ndarray
    directions: np.ndarray
    loss: float


def roots_for_loss(curves: Curves, loss: float, start: np.ndarray | None = None) -> Roots:
    """The k roots of λ_i(M(μ)) = t by safeguarded Newton steps in the logarithms; `start` (k,) guesses them.

    1/t ≤ μ_k ≤ … ≤ μ_1 ≤ tr(H (V + I/t) Hᵀ) − what the prior takes off, which is at most ‖H‖_F²/t for a prior that is
    not one-sided. One evaluation tightens all k brackets.
    """
    regression = curves.regression()
    square = regression.T @ regression
    above = float(np.trace(square)) / loss
    if curves.prior.one_sided:
        above += float(np.sum(square * curves.variance))
    width = curves.width
    low = np.full(width, 1.0 / loss) * (1.0 - 1e-12)
    high = np.full(width, above) * (1.0 + 1e-12)
    powers, directions = np.zeros(width), np.zeros((curves.cross.shape[0], width))
    mu = float(np.sqrt(low[0] * high[0])) if start is None else float(start[0])
    for i in range(width):
        if start is not None:
            mu = float(start[i])
        mu = mu if low[i] < mu < high[i] else math.sqrt(low[i] * high[i])
        before = math.inf
        for _ in range(_STEPS):
            point = curves(mu)
            above_target = point.values > loss
            low = np.where(above_target, np.maximum(low, mu), low)
            high = np.where(above_target, high, np.minimum(high, mu))
            powers[i], directions[:, i] = mu, point.directions[:, i]
            distance = math.log(point.values[i] / loss) if point.values[i] > 0.0 else -math.inf
            # Newton's steps square the distance; one that does not even halve it is down to rounding.
            if abs(distance) <= _CLOSE or 0.5 * before < abs(distance) < _ROUNDING:
                break
            before = abs(distance)
            new = _newton(point, i, distance)
            new = new if low[i] < new < high[i] else math.sqrt(low[i] * high[i])
            if abs(new - mu) <= 4e-16 * mu:
                break
            mu = new
        if i + 1 < width and start is None:
            mu = _newton(point, i + 1, math.log(max(point.values[i + 1] / loss, 1e-300)))
    return Roots(powers, directions, loss)


def roots_for_budget(curves: Curves, budget: float) -> Roots:
    """The t at which the roots add up to `budget`, and the roots. For k = 1 no iteration: t = λ(budget).

    For k > 1 each curve is replaced by its tangent in the logarithms, on which t is found by bisection.
    """
    if curves.width == 1:
        point = curves(budget)
        return Roots(np.array([budget]), point.directions, float(point.values[0]))
    width = curves.width
    mu = np.full(width, budget / width)
    loss = math.nan
    points: list[Point] = []
    for sweep in range(_SWEEPS):
        points = [curves(mu[0])] * width if sweep == 0 else [curves(float(one)) for one in mu]
        values = np.array([point.values[i] for i, point in enumerate(points)])
        slopes = np.array([point.slopes[i] for i, point in enumerate(points)]) * mu / values
        new, loss = _tangent_powers(np.log(values), np.minimum(slopes, -1e-3), np.log(mu), budget)
        moved = float(np.max(np.abs(np.log(new / mu))))
        # A long step leaves the range of the tangents.
        mu = new if moved < 3.0 else mu * (new / mu) ** (3.0 / moved)
        if moved <= _ENOUGH:
            break
    directions = np.stack([point.directions[:, i] for i, point in enumerate(points)], axis=1)
    return Roots(mu, directions, loss)


def _newton(point: Point, i: int, distance: float) -> float:
    slope = point.slopes[i] * point.mu / point.values[i] if point.values[i] > 0.0 else -1.0
    step = -distance / min(slope, -1e-6)
    return point.mu * math.exp(min(max(step, -50.0), 50.0))


def _tangent_powers(
    heights: np.ndarray, slopes: np.ndarray, places: np.ndarray, budget: float
) -> tuple[np.ndarray, float]:
    """Powers on the tangents whose sum is `budget`, and their common t."""

    def powers(log_loss: float) -> np.ndarray:
        return np.exp(np.clip(places + (log_loss - heights) / slopes, -600.0, 600.0))

    low, high = float(np.min(heights)) - 1.0, float(np.max(heights)) + 1.0
    while np.sum(powers(low)) < budget and low > -1e3:
        low -= 2.0
    while np.sum(powers(high)) > budget and high < 1e3:
        high += 2.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        if np.sum(powers(middle)) > budget:
            low = middle
        else:
            high = middle
    found = powers(high)
    return found * (budget / np.sum(found)), math.exp(high)
