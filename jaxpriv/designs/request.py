"""The arguments of `design`, checked before any work."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.precision import host_array
from jaxpriv.priors.protocol import Prior


STRUCTURES = ("joint", "block")
FLOOR_SHARE = 1e-8  # of the noise power that the default floor may cost
GAP_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Request:
    """A checked problem. Exactly one of `epsilon` (nats) and `budget` (squared units) is set."""

    size: int
    epsilon: float | None
    budget: float | None
    order: float
    structure: str
    weights: np.ndarray | None
    floor_sd: float | None
    resolution: float

    @property
    def total_weight(self) -> float:
        """tr W: what a unit of noise on every coordinate costs."""
        if self.weights is None:
            return float(self.size)
        return float(np.sum(self.weights) if self.weights.ndim == 1 else np.trace(self.weights))

    def floor_for(self, cost: float) -> float:
        """The floor's standard deviation when the whole noise costs about `cost`."""
        if self.floor_sd is not None:
            return self.floor_sd
        return max(2.0 * self.resolution, math.sqrt(FLOOR_SHARE * max(cost, 0.0) / self.total_weight))


def check_request(
    prior: Prior,
    epsilon: float | None,
    budget: float | None,
    order: float,
    structure: str,
    weights: Any,
    floor_sd: float | None,
    resolution: float,
) -> Request:
    """Raises InputError for the first argument that is wrong."""
    if not hasattr(prior, "covariance") or not hasattr(prior, "size"):
        raise InputError(f"prior is a {type(prior).__name__}; expected a GaussianPrior or a ProcessPrior.")
    if (epsilon is None) == (budget is None):
        raise InputError("give exactly one of epsilon (a target in nats) and budget (a total trace in squared units).")
    if epsilon is not None:
        epsilon = _positive(
            epsilon, "epsilon", "a loss in nats; without any noise it is infinite, and 0 needs infinite noise"
        )
    if budget is not None:
        budget = _positive(budget, "budget", "a total noise variance in squared units of the trace")
    order = _positive(order, "order", "a Rényi order above 1")
    if order <= 1.0:
        raise InputError(f"order is {order:g}; expected a Rényi order above 1.")
    if structure not in STRUCTURES:
        raise InputError(f"structure is {structure!r}; expected one of {', '.join(map(repr, STRUCTURES))}.")
    if floor_sd is not None and not (math.isfinite(floor_sd) and floor_sd >= 0.0):
        raise InputError(f"floor_sd is {floor_sd}; expected a standard deviation of at least 0.")
    if not (math.isfinite(resolution) and resolution >= 0.0):
        raise InputError(f"resolution is {resolution}; expected a step of at least 0, in units of the trace.")
    if floor_sd is not None and floor_sd > 0.0 and floor_sd < 2.0 * resolution:
        raise InputError(
            f"floor_sd {floor_sd:g} is below twice the resolution {resolution:g}: noise finer than the data's own step "
            "can be undone. Raise floor_sd to at least twice the resolution."
        )
    return Request(
        prior.size,
        epsilon,
        budget,
        order,
        structure,
        _weights(weights, prior.size, structure),
        None if floor_sd is None else float(floor_sd),
        float(resolution),
    )


def _positive(value: float, name: str, meaning: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is {value!r}; expected a number: {meaning}.") from error
    if not (math.isfinite(number) and number > 0.0):
        raise InputError(f"{name} is {number:g}; expected a positive, finite number: {meaning}.")
    return number


def _weights(weights: Any, size: int, structure: str) -> np.ndarray | None:
    if weights is None:
        return None
    if structure != "joint":
        raise InputError("weights are for structure='joint' only.")
    array = host_array(weights, "weights", (1, 2))
    if array.shape not in ((size,), (size, size)):
        raise InputError(f"weights has shape {array.shape}; expected ({size},) or ({size}, {size}).")
    if array.ndim == 1:
        if np.min(array) <= 0.0:
            raise InputError(f"weights is not positive at position {int(np.argmin(array))}.")
        return array
    if not np.array_equal(array, array.T):
        raise InputError("weights is not symmetric; pass (W + W.T)/2 if that is what you mean.")
    if np.linalg.eigvalsh(array)[0] <= 0.0:
        raise InputError("weights is not positive definite.")
    return array
