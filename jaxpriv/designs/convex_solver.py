"""The cone program of CVXPY as one of the solvers of `design`: for small problems, re-evaluated like any other."""

from __future__ import annotations

import math

import numpy as np

from jaxpriv.convex.conditional import conditional
from jaxpriv.convex.general import GeneralSolution, Requirement, Structure, general_program
from jaxpriv.convex.solving import cvxpy
from jaxpriv.designs.floor_problem import FloorProblem
from jaxpriv.designs.request import Request
from jaxpriv.designs.solved import Solved
from jaxpriv.errors import InfeasibleError


# One step of the solver more or less decides the last digits: these ask for what it can reach.
_OPTIONS = {"tol_gap_rel": 1e-10, "tol_gap_abs": 1e-10, "tol_feas": 1e-10}


class ConvexSolver:
    """CVXPY with CLARABEL. Refuses a program larger than a one-secret program of 60 points."""

    method = "convex"
    reason = "asked for: a cone program by CVXPY with CLARABEL"

    def __init__(self, problem: FloorProblem, request: Request):
        cvxpy()
        self.problem, self.request = problem, request

    def at_targets(self, scale: float, floor_sd: float, shading: float, tolerance: float | None = None) -> Solved:
        """See `Solver`."""
        found = self._solve(scale, floor_sd, shading, None)
        cost = found.value * self.problem.unit + floor_sd**2 * self.request.total_weight
        return Solved(self._factor(found), found.duals, cost, 0.0, 0, scale)

    def at_budget(self, budget: float, floor_sd: float, shading: float) -> Solved:
        """See `Solver`."""
        spare = (budget - floor_sd**2 * self.request.total_weight) / self.problem.unit
        try:
            found = self._solve(1.0, floor_sd, shading, spare)
        except InfeasibleError:
            return Solved(np.zeros((self.problem.size, 0)), [], budget, 1.0, 0, math.inf)
        return Solved(self._factor(found), found.duals, budget, 0.0, 0, found.value)

    def _solve(self, scale: float, floor_sd: float, shading: float, budget: float | None) -> GeneralSolution:
        problem = self.problem
        structure: Structure = problem.structure  # pyright: ignore[reportAssignmentType]
        requirements = []
        for limit in problem.limits(scale, shading):
            if limit.variance is None:
                mean_map, rest = limit.cross, np.zeros((problem.size, problem.size))
            else:
                given = conditional(problem.covariances[limit.prior] / problem.unit, (limit.cross, limit.variance))
                mean_map, rest = given.mean_map, given.covariance
            requirements.append(Requirement(mean_map, rest, limit.times, limit.target, limit.scales))
        return general_program(
            requirements,
            structure=structure,
            bandwidth=problem.bandwidth,
            positions=problem.positions,
            weights=problem.weights,
            floor_variance=floor_sd**2 / problem.unit,
            budget=budget,
            options=_OPTIONS,
        )

    def _factor(self, found: GeneralSolution) -> np.ndarray:
        """A factor of the solver's covariance, of its structure where it has one."""
        excess, structure = found.excess * self.problem.unit, self.problem.structure
        if structure == "diagonal":
            return np.diag(np.sqrt(np.maximum(np.diagonal(excess), 0.0)))
        if structure == "banded":
            # The solver's zeros are not exact, and its matrix may be singular.
            lift = 1e-13 * float(np.trace(excess)) / excess.shape[0]
            outside = np.abs(np.subtract.outer(*[np.arange(excess.shape[0])] * 2)) > (self.problem.bandwidth or 0)
            band = np.where(outside, 0.0, excess)
            lift += max(0.0, -float(np.linalg.eigvalsh(band)[0])) * 1.01
            return np.triu(np.linalg.cholesky(band + lift * np.eye(excess.shape[0])), -(self.problem.bandwidth or 0))
        values, vectors = np.linalg.eigh(excess)
        return vectors * np.sqrt(np.maximum(values, 0.0))
