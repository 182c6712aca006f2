"""What every design does at the end: stay within the budget, state its bounds, say how it ended."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxpriv.certificates.arithmetic import square_bounds
from jaxpriv.certificates.cost import cost_upper
from jaxpriv.certificates.verb import Certificate, certify
from jaxpriv.designs.request import Request
from jaxpriv.designs.result import Design, DesignResult
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.collection import AnySecret


# A target is shaded before it is designed for, so that rounding does not take the certified loss above it.
SHADINGS = (1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
_SHRINK = 1.0 - 2.0**-42


def floor_cost_upper(floor_sd: float, request: Request) -> float:
    """An upper bound of what a floor of that standard deviation costs, in squared units."""
    return math.nextafter(square_bounds(floor_sd)[1] * request.total_weight * (1.0 + 2.0**-50), math.inf)


def within_budget(factor: np.ndarray, floor_sd: float, budget: float, request: Request) -> np.ndarray:
    """The factor, scaled down by so little that its verified cost, floor included, is within the budget."""
    floor = square_bounds(floor_sd)[1]
    while not (cost := cost_upper(factor, floor, request.weights)) <= budget:
        spare = budget - floor_cost_upper(floor_sd, request)
        used = cost - floor_cost_upper(floor_sd, request)
        factor = factor * min(_SHRINK, math.sqrt(max(spare, 0.0) / used) if used > 0.0 else 0.0)
    return factor


def infeasible(
    prior: Prior | Sequence[Prior],
    secrets: AnySecret | Sequence[AnySecret],
    floor_sd: float,
    needed: float,
    request: Request,
) -> Design:
    """What is returned for a budget that the floor and the fixed requirements use up: the floor, and its worth.

    `needed` is the cost that must be exceeded, in squared units.
    """
    one = prior[0] if isinstance(prior, Sequence) else prior
    mechanism = GaussianMechanism(np.zeros((one.size, 0)), floor_sd, request.resolution)
    certificate = certify(prior, secrets, mechanism, order=request.order, bound=request.bound)
    cost = cost_upper(mechanism.factor, square_bounds(floor_sd)[1], request.weights)
    stats = {"method": "none", "reason": "infeasible", "needed": needed, "floor_sd": floor_sd}
    return Design(mechanism, certificate.epsilon, cost, 0.0, 1.0, DesignResult.budget_infeasible, stats, certificate)


def finished(
    mechanism: GaussianMechanism,
    certificate: Certificate,
    cost: float,
    achieved: float,
    lower: float,
    request: Request,
    met: bool,
    stats: dict[str, Any],
) -> Design:
    """A design from verified numbers: `achieved` is the quantity that was minimised, `lower` its lower bound."""
    gap = (achieved - lower) / achieved if math.isfinite(achieved) and achieved > 0.0 else float(achieved != 0.0)
    if gap < 0.0 and met:
        raise AssertionError(f"the lower bound {lower!r} exceeds the achieved {achieved!r}: a bound is wrong.")
    if not met:
        result = DesignResult.not_certified if request.budget is not None else DesignResult.target_not_certified
    else:
        result = DesignResult.optimal if gap <= request.tolerance else DesignResult.suboptimal
    stats = {"floor_sd": float(mechanism.floor_sd), **stats}
    return Design(mechanism, certificate.epsilon, cost, lower, float(gap), result, stats, certificate)
