"""Independent, banded and block noise for several secrets and priors, as one of the solvers of `design`."""

from __future__ import annotations

import math

import numpy as np

from jaxpriv.designs.floor_problem import FloorProblem
from jaxpriv.designs.request import EFFORTS, Request
from jaxpriv.designs.solved import Solved
from jaxpriv.designs.structured.barrier import StructuredNoise
from jaxpriv.designs.structured.solve import least_structured_noise
from jaxpriv.errors import InfeasibleError


class StructuredSolver:
    """Newton's method on a barrier over the free entries of the covariance: a convex problem, solved to many digits."""

    method = "majorant"

    def __init__(self, problem: FloorProblem, request: Request):
        self.problem, self.request = problem, request
        self.pattern = problem.pattern()
        self.reason = (
            f"{problem.structure} noise is a convex family: Newton's method on its {self.pattern.count} numbers"
        )

    def at_targets(self, scale: float, floor_sd: float, shading: float, tolerance: float | None = None) -> Solved:
        """See `Solver`."""
        found = self._solve(scale, floor_sd, shading, tolerance, None)
        cost = found.value * self.problem.unit + floor_sd**2 * self.request.total_weight
        return Solved(self._factor(found), found.columns, cost, found.gap, found.steps, scale)

    def at_budget(self, budget: float, floor_sd: float, shading: float) -> Solved:
        """See `Solver`."""
        spare = (budget - floor_sd**2 * self.request.total_weight) / self.problem.unit
        try:
            found = self._solve(1.0, floor_sd, shading, None, spare)
        except InfeasibleError:
            return Solved(np.zeros((self.problem.size, 0)), [], budget, 1.0, 0, math.inf)
        return Solved(self._factor(found), found.columns, budget, found.gap, found.steps, found.value)

    def _solve(
        self, scale: float, floor_sd: float, shading: float, tolerance: float | None, budget: float | None
    ) -> StructuredNoise:
        return least_structured_noise(
            self.pattern,
            [covariance / self.problem.unit for covariance in self.problem.covariances],
            self.problem.limits(scale, shading),
            floor_variance=floor_sd**2 / self.problem.unit,
            weights=self.problem.weights,
            budget=budget,
            tolerance=0.2 * self.request.tolerance if tolerance is None else tolerance,
            max_steps=EFFORTS[self.request.effort] // 10,
        )

    def _factor(self, found: StructuredNoise) -> np.ndarray:
        """The Cholesky factor, which has the band of the covariance."""
        lower = np.linalg.cholesky(found.excess) * math.sqrt(self.problem.unit)
        if self.problem.structure == "diagonal":
            return np.diag(np.diagonal(lower))
        if self.problem.structure == "banded":
            return np.triu(lower, -(self.problem.bandwidth or 0))
        return lower
