"""Several requirements at once: the least matrix above a set of floors, and the least common scale of their targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxpriv.convex.conditional import checked_symmetric, checked_weights, order, symmetric
from jaxpriv.convex.solving import ConvexSolution, check_size, cvxpy, run
from jaxpriv.convex.whitening import checked_floor, spare_budget
from jaxpriv.errors import InputError


def least_majorant(
    floors: Sequence[np.ndarray],
    *,
    weights: np.ndarray | None = None,
    floor_sd: float = 0.0,
    solver: str = "CLARABEL",
    options: Mapping[str, Any] | None = None,
    n_max: int = 60,
) -> ConvexSolution:
    """The least noise above every floor: min tr(W G) with G ⪰ F_j for all j and G ⪰ floor_sd² I.

    `floors` are symmetric (n, n) matrices in squared units; a loss at a target is one such floor (proof in
    docs/design.md). With positive semidefinite floors this is SDP_B of Meehan & Chaudhuri (AISTATS 2021). The
    returned matrix is the solver's after one sweep G ← G + (F_j − G)₊, so it is above each floor up to rounding.

    Raises InputError (a bad argument, or a program above `n_max`) and CertificateError (the solver fails).
    """
    n = _common_order(floors, "floors")
    check_size([n] * (len(floors) + 1), n_max)
    floor_sd, cost = checked_floor(floor_sd), checked_weights(weights, n)
    above = [checked_symmetric(floor, f"floor {j}") - floor_sd**2 * np.eye(n) for j, floor in enumerate(floors)]
    scale = max(float(np.linalg.eigvalsh(floor)[-1]) for floor in above)
    if scale <= 0:
        # The floor is already above every F_j.
        noise, status, seconds = np.zeros((n, n)), "optimal", 0.0
        objective = floor_sd**2 * float(np.trace(cost))
    else:
        cp = cvxpy()
        variable = cp.Variable((n, n), PSD=True)
        weighted = cost / float(np.trace(cost))
        problem = cp.Problem(
            cp.Minimize(cp.sum(cp.multiply(weighted, variable))), [variable >> floor / scale for floor in above]
        )
        status, seconds = run(problem, solver, options, "majorant program")
        noise = scale * symmetric(variable.value)
        objective = (scale * float(problem.value) + floor_sd**2) * float(np.trace(cost))
    covariance, repair = _swept(noise, above)
    covariance += floor_sd**2 * np.eye(n)
    return ConvexSolution(
        covariance, float(np.sum(cost * covariance)), None, objective, status, solver, seconds, repair
    )


def least_scale(
    constants: Sequence[np.ndarray],
    slopes: Sequence[np.ndarray],
    budget: float,
    *,
    floor_sd: float = 0.0,
    solver: str = "CLARABEL",
    options: Mapping[str, Any] | None = None,
    n_max: int = 60,
) -> ConvexSolution:
    """The least common scale τ of several targets within a budget: floors constant_j + slope_j / τ, tr G ≤ budget.

    For a loss of target τ t⁰ the constant is −C and the slope H Hᵀ / t⁰; constants must be negative and slopes
    positive semidefinite. With β = 1/τ the floors are affine, so the program is max β with G ⪰ constant_j + β slope_j,
    G ⪰ floor_sd² I. `loss` of the result is a τ that the returned matrix meets up to rounding: after the sweep of
    `least_majorant` the excess over the budget is scaled away, which the constants' sign allows.
    """
    n = _common_order([*constants, *slopes], "constants and slopes")
    if len(constants) != len(slopes):
        raise InputError(f"{len(constants)} constants and {len(slopes)} slopes; expected one slope for each constant")
    check_size([n] * (len(constants) + 1), n_max)
    spare = spare_budget(budget, floor_sd, np.eye(n))
    below = [checked_symmetric(constant, f"constant {j}") for j, constant in enumerate(constants)]
    rising = [checked_symmetric(slope, f"slope {j}") for j, slope in enumerate(slopes)]
    for j, (constant, slope) in enumerate(zip(below, rising, strict=True)):
        rounding = 64 * n * np.finfo(float).eps
        if np.linalg.eigvalsh(constant)[-1] > rounding * np.abs(constant).max():
            raise InputError(f"constant {j} is not negative semidefinite")
        if np.linalg.eigvalsh(slope)[0] < -rounding * np.abs(slope).max() or not slope.any():
            raise InputError(f"slope {j} is not positive semidefinite and different from zero")
    below = [constant - floor_sd**2 * np.eye(n) for constant in below]
    unit = spare / n
    slope_unit = max(float(np.linalg.eigvalsh(slope)[-1]) for slope in rising) / unit
    cp = cvxpy()
    noise, inverse = cp.Variable((n, n), PSD=True), cp.Variable()
    constraints = [
        noise >> constant / unit + inverse * (slope / (unit * slope_unit))
        for constant, slope in zip(below, rising, strict=True)
    ]
    problem = cp.Problem(cp.Maximize(inverse), [*constraints, cp.trace(noise) <= n])
    status, seconds = run(problem, solver, options, "common-scale program")
    beta = float(inverse.value) / slope_unit
    above = [constant + beta * slope for constant, slope in zip(below, rising, strict=True)]
    covariance, repair = _swept(unit * symmetric(noise.value), above)
    shrink = min(1.0, spare / float(np.trace(covariance)))
    covariance = shrink * covariance + floor_sd**2 * np.eye(n)
    scale = 1 / (shrink * beta)
    return ConvexSolution(covariance, float(np.trace(covariance)), scale, 1 / beta, status, solver, seconds, repair)


def _common_order(matrices: Sequence[np.ndarray], name: str) -> int:
    if len(matrices) == 0:
        raise InputError(f"{name} is empty; give at least one (n, n) matrix")
    orders = {order(matrix, f"an entry of {name}") for matrix in matrices}
    if len(orders) > 1:
        raise InputError(f"{name} hold matrices of different orders: {sorted(orders)}")
    return orders.pop()


def _swept(noise: np.ndarray, floors: Sequence[np.ndarray]) -> tuple[np.ndarray, float]:
    """The noise raised above zero and each floor in turn, and the largest eigenvalue of what that added."""
    swept = noise
    for floor in [np.zeros_like(noise), *floors]:
        values, vectors = np.linalg.eigh(floor - swept)
        swept = symmetric(swept + (vectors * np.maximum(values, 0.0)) @ vectors.T)
    return swept, max(0.0, float(np.linalg.eigvalsh(swept - noise)[-1]))
