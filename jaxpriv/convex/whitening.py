"""Coordinates in which a design program is well scaled, and the way back from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxpriv.convex.conditional import Conditional, checked_positive, symmetric
from jaxpriv.convex.solving import ConvexSolution, cvxpy, lifted
from jaxpriv.errors import InfeasibleError


class Whitened:
    """The program in coordinates where independent noise of variance `noise_unit` above the floor is near the identity.

    With B = (C + (floor^2 + unit) I)^{-1/2} the variable is B (G - floor^2 I) B, so that the matrix inequality has
    entries of order one whatever the units of the trace and however small the budget is.
    """

    def __init__(self, mean_map: np.ndarray, covariance: np.ndarray, noise_unit: float, floor_sd: float):
        self.noise_unit, self.size = noise_unit, len(covariance)
        values, vectors = np.linalg.eigh(covariance)
        values = np.maximum(values, 0.0) + floor_sd**2 + noise_unit
        self.white = symmetric((vectors / np.sqrt(values)) @ vectors.T)
        self.colour = symmetric((vectors * np.sqrt(values)) @ vectors.T)
        gain = self.white @ mean_map
        self.loss_unit = float(np.linalg.norm(gain, 2) ** 2) or 1.0
        self.gain = gain / np.sqrt(self.loss_unit)

    def schur(self, noise: Any, loss: Any) -> Any:
        """The matrix (k + n, k + n) that is PSD exactly where the loss, in `loss_unit`, is met."""
        fixed = np.eye(self.size) - self.noise_unit * self.white @ self.white
        return cvxpy().bmat([[loss * np.eye(self.gain.shape[1]), self.gain.T], [self.gain, fixed + noise]])

    def cost(self, noise: Any, weights: np.ndarray) -> Any:
        """The weighted trace of the noise above the floor, in units of `noise_unit` tr W."""
        inner = self.colour @ weights @ self.colour / (self.noise_unit * np.trace(weights))
        return cvxpy().sum(cvxpy().multiply(inner, noise))

    def noise(self, noise: np.ndarray) -> np.ndarray:
        """The noise covariance above the floor, (n, n) in squared units, of a solver's variable."""
        return self.colour @ noise @ self.colour


def checked_floor(floor_sd: float) -> float:
    """A finite floor of at least zero; InputError otherwise."""
    if isinstance(floor_sd, (int, float)) and floor_sd == 0:
        return 0.0
    return checked_positive(floor_sd, "floor_sd", "units of the trace, or 0 for none")


def spare_budget(budget: float, floor_sd: float, cost: np.ndarray) -> float:
    """What the budget leaves above the floor; InfeasibleError when it leaves nothing."""
    budget = checked_positive(budget, "budget", "squared units")
    least = checked_floor(floor_sd) ** 2 * float(np.trace(cost))
    if budget <= least:
        raise InfeasibleError(f"a noise floor of {floor_sd:g} alone costs {least:g}; the budget is {budget:g}", least)
    return budget - least


def solution(
    given: Conditional,
    above_floor: np.ndarray,
    floor_sd: float,
    weights: np.ndarray,
    objective: float,
    status: str,
    solver: str,
    seconds: float,
) -> ConvexSolution:
    """The result for a solver's noise above the floor (n, n): lifted to be PSD, its cost and loss recomputed."""
    covariance, repair = lifted(above_floor)
    covariance += floor_sd**2 * np.eye(len(covariance))
    cost, loss = float(np.sum(weights * covariance)), given.loss(covariance)
    return ConvexSolution(covariance, cost, loss, objective, status, solver, seconds, repair)
