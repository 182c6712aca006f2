"""Projected gradient over Cholesky factors, as one of the solvers of `design`."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxpriv.designs.floor_problem import FloorProblem
from jaxpriv.designs.floor_stack import compiled_duals
from jaxpriv.designs.gradient.bound import DualBound, dual_bound
from jaxpriv.designs.gradient.loss import WorstGain
from jaxpriv.designs.ladder import MajorantSolver
from jaxpriv.designs.request import EFFORTS, Request
from jaxpriv.designs.solved import Solved
from jaxpriv.errors import InputError
from jaxpriv.searches.factors import AbstractFactor, LowRankFactor, MaskedFactor
from jaxpriv.searches.projections import TraceBudget
from jaxpriv.searches.verb import search


_SECANTS = 8
_CHECK_EVERY = 50
_REFINEMENTS = 400  # steps of the ascent


class GradientSolver:
    """The smoothed largest loss over the free entries of L, within tr(W G) = budget, until its dual bound is close.

    A target is met by a root search over budgets, each from the last one's noise.
    """

    method = "gradient"
    reason = "asked for: projected gradient over Cholesky factors, stopped by its dual bound"

    def __init__(self, problem: FloorProblem, request: Request):
        if problem.structure == "block" or request.bound != "ball":
            raise InputError(
                "method='gradient' is for structure='joint', 'diagonal' and 'banded' with bound='ball'; leave method "
                "out, or use 'majorant'."
            )
        if problem.fixed or not all(floor.scales for floor in problem.floors):
            raise InputError("method='gradient' takes no further requirements; leave method out, or use 'majorant'.")
        self.problem, self.request = problem, request
        self.start: np.ndarray | None = None
        self.steps = 0

    def at_budget(self, budget: float, floor_sd: float, shading: float) -> Solved:
        """See `Solver`."""
        problem = self.problem
        loss = WorstGain.of([one / problem.unit for one in problem.covariances], problem.limits(1.0, shading))
        bound, factor = self._search(loss, budget / problem.unit, floor_sd**2 / problem.unit)
        duals, gap = self._refined(bound, bound.achieved, floor_sd, shading)
        return Solved(factor * math.sqrt(problem.unit), duals, budget, gap, self.steps, bound.achieved)

    def at_targets(self, scale: float, floor_sd: float, shading: float, tolerance: float | None = None) -> Solved:
        """See `Solver`."""
        problem = self.problem
        floor = floor_sd**2 / problem.unit
        spent = floor * self.request.total_weight
        loss = WorstGain.of([one / problem.unit for one in problem.covariances], problem.limits(scale, shading))
        wanted = 1e-2 * self.request.tolerance if tolerance is None else tolerance
        # log of the least ratio against log of what is spent above the floor: nearly straight, with a slope near −1.
        x = math.log(sum(1.0 / float(target) for target in loss.targets))
        points: list[tuple[float, float]] = []
        bound, factor = self._search(loss, spent + math.exp(x), floor)
        for _ in range(_SECANTS):
            points.append((x, math.log(bound.achieved)))
            slope = -1.0
            if len(points) > 1 and points[-1][0] != points[-2][0]:
                slope = (points[-1][1] - points[-2][1]) / (points[-1][0] - points[-2][0])
            if abs(points[-1][1]) <= wanted:
                break
            x -= min(max(points[-1][1] / min(slope, -0.05), -5.0), 5.0)
            bound, factor = self._search(loss, spent + math.exp(x), floor)
        factor = factor * np.float64(math.sqrt(_least_multiple(loss, factor, floor)))
        cost = (spent + _weighted(factor, problem.weights)) * problem.unit
        duals, gap = self._refined(bound, scale, floor_sd, shading)
        return Solved(factor * math.sqrt(problem.unit), duals, cost, gap, self.steps, scale)

    def _refined(
        self, bound: DualBound, scale: float, floor_sd: float, shading: float
    ) -> tuple[list[np.ndarray], float]:
        """For any covariance, the duals after a few steps of the ascent on them, which closes the last digits."""
        gap = (bound.achieved - bound.lower) / bound.achieved
        ladder = MajorantSolver(self.problem, self.request)
        if self.problem.structure != "joint" or not ladder.small:
            return bound.columns, gap
        ladder.start, ladder.steps = compiled_duals(self.problem, bound.columns), _REFINEMENTS
        refined = ladder.at_targets(scale, floor_sd, shading)
        return list(refined.duals), min(gap, max(refined.gap, 0.0))

    def _search(self, loss: WorstGain, budget: float, floor: float) -> tuple[DualBound, np.ndarray]:
        problem, request = self.problem, self.request
        spare = budget - floor * request.total_weight
        noise = self._start(loss, spare, floor)

        def bound(noise: AbstractFactor) -> DualBound:
            return dual_bound(loss, noise, spare, problem.structure, problem.bandwidth, problem.weights)

        def certificate(noise: AbstractFactor) -> tuple[float, float]:
            found = bound(noise)
            return found.achieved, found.lower

        result = search(
            loss,
            noise,
            TraceBudget(budget, problem.weights, equality=True),
            free=lambda one: one.entries,
            max_steps=EFFORTS[request.effort],
            tolerance=0.5 * request.tolerance,
            check_every=_CHECK_EVERY,
            certificate=certificate,
        )
        self.steps += result.steps
        self.start = np.asarray(result.mechanism.factor)
        return bound(result.mechanism), self.start

    def _start(self, loss: WorstGain, spare: float, floor: float) -> AbstractFactor:
        """The last noise, else white noise on the diagonal or along the secrets' own directions."""
        n = self.problem.size
        if self.problem.structure == "joint":
            directions = np.concatenate([np.asarray(part.regression) for part in loss.parts], axis=1)
            rank = min(n, directions.shape[1])
            left, _, _ = np.linalg.svd(directions, full_matrices=False)
            wanted = self.start if self.start is not None else left[:, :rank] * math.sqrt(spare / rank)
            found: AbstractFactor = LowRankFactor(jnp.asarray(wanted), floor)
        else:
            width = self.problem.bandwidth or 0
            empty = MaskedFactor.banded(n, width, floor)
            wanted = self.start if self.start is not None else np.eye(n) * math.sqrt(spare / n)
            found = empty.with_factor(jnp.asarray(wanted))
        return found.perturbed(jax.random.key(0), 1e-3)


def _weighted(factor: np.ndarray, weights: np.ndarray | None) -> float:
    if weights is None:
        return float(np.sum(factor**2))
    if weights.ndim == 1:
        return float(weights @ np.sum(factor**2, axis=1))
    return float(np.sum(factor * (weights @ factor)))


def _least_multiple(loss: WorstGain, factor: np.ndarray, floor: float) -> float:
    """The least s for which s L Lᵀ + ηI meets every target, by bisection."""

    def ratio(multiple: float) -> float:
        noise = multiple * factor @ factor.T + floor * np.eye(factor.shape[0])
        return float(jnp.max(loss.values(loss.gains(jnp.asarray(noise)))))

    low, high = 0.5, 1.0
    while ratio(high) > 1.0 and high < 1e6:
        low, high = high, 2.0 * high
    for _ in range(48):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if ratio(middle) > 1.0 else (low, middle)
    return high
