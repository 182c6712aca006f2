"""The arguments of `design`, checked before any work."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.floors.requirements import GeoIndistinguishability, Requirement
from jaxpriv.precision import host_array
from jaxpriv.priors.protocol import Prior
from jaxpriv.priors.structured import is_structured


STRUCTURES = ("joint", "block", "diagonal", "banded")
METHODS = ("spectral", "majorant", "gradient", "convex")
BOUNDS = ("ball", "product")
FLOOR_SHARE = 1e-8  # of the noise power that the default floor may cost
GAP_TOLERANCE = 1e-6
EFFORTS = {"low": 400, "normal": 4000, "high": 20000}  # steps of the ascent
LARGEST_SIZE = 5000


@dataclass(frozen=True)
class Request:
    """A checked problem. Exactly one of `epsilon` (nats), `budget` (squared units) and `uncertainty` is set."""

    size: int
    epsilon: float | tuple[float, ...] | None
    budget: float | None
    uncertainty: float | None
    order: float
    structure: str
    weights: np.ndarray | None
    floor_sd: float | None
    resolution: float
    tolerance: float
    effort: str
    least_floor_sd: float = 0.0  # what the requirements ask of every coordinate
    method: str | None = None
    bound: Literal["ball", "product"] = "ball"
    bandwidth: int | None = None

    @property
    def total_weight(self) -> float:
        """tr W: what a unit of noise on every coordinate costs."""
        if self.weights is None:
            return float(self.size)
        return float(np.sum(self.weights) if self.weights.ndim == 1 else np.trace(self.weights))

    def floor_for(self, cost: float) -> float:
        """The floor's standard deviation when the whole noise costs about `cost`."""
        if self.floor_sd is not None:
            return max(self.floor_sd, self.least_floor_sd)
        default = max(2.0 * self.resolution, math.sqrt(FLOOR_SHARE * max(cost, 0.0) / self.total_weight))
        return max(default, self.least_floor_sd)


def check_request(
    priors: Sequence[Prior],
    *,
    epsilon: float | Sequence[float] | None,
    budget: float | None,
    uncertainty: float | None,
    order: float,
    structure: str,
    weights: Any,
    floor_sd: float | None,
    resolution: float,
    tolerance: float,
    effort: str,
    requirements: Sequence[Requirement],
    method: str | None = None,
    bound: str = "ball",
    bandwidth: int | None = None,
) -> Request:
    """Raises InputError for the first argument that is wrong."""
    for one in priors:
        if (not is_structured(one) and not hasattr(one, "covariance")) or not hasattr(one, "size"):
            raise InputError(f"prior is a {type(one).__name__}; expected a GaussianPrior or a ProcessPrior.")
    prior = priors[0]
    if any(one.size != prior.size for one in priors):
        raise InputError(f"the priors have {sorted({one.size for one in priors})} coordinates; expected the same.")
    if sum(goal is not None for goal in (epsilon, budget, uncertainty)) != 1:
        raise InputError(
            "give exactly one of epsilon (a target in nats), budget (a total trace in squared units) and uncertainty "
            "(the half-width that must be left, in units of the trace)."
        )
    if epsilon is not None:
        meaning = "a loss in nats; without any noise it is infinite, and 0 needs infinite noise"
        if not isinstance(epsilon, (int, float, str, np.floating)):
            epsilon = tuple(_positive(one, "epsilon", meaning) for one in epsilon)
        else:
            epsilon = _positive(epsilon, "epsilon", meaning)
    if uncertainty is not None:
        uncertainty = _positive(uncertainty, "uncertainty", "a standard deviation in units of the trace")
    if budget is not None:
        budget = _positive(budget, "budget", "a total noise variance in squared units of the trace")
    order = _positive(order, "order", "a Rényi order above 1")
    if order <= 1.0:
        raise InputError(f"order is {order:g}; expected a Rényi order above 1.")
    if structure not in STRUCTURES:
        raise InputError(f"structure is {structure!r}; expected one of {', '.join(map(repr, STRUCTURES))}.")
    if method is not None and method not in METHODS:
        raise InputError(f"method is {method!r}; expected None or one of {', '.join(map(repr, METHODS))}.")
    if bound not in BOUNDS:
        raise InputError(f"bound is {bound!r}; expected one of {', '.join(map(repr, BOUNDS))}.")
    _check_bandwidth(bandwidth, structure, prior.size)
    if floor_sd is not None and not (math.isfinite(floor_sd) and floor_sd >= 0.0):
        raise InputError(f"floor_sd is {floor_sd}; expected a standard deviation of at least 0.")
    if not (math.isfinite(resolution) and resolution >= 0.0):
        raise InputError(f"resolution is {resolution}; expected a step of at least 0, in units of the trace.")
    if floor_sd is not None and floor_sd > 0.0 and floor_sd < 2.0 * resolution:
        raise InputError(
            f"floor_sd {floor_sd:g} is below twice the resolution {resolution:g}: noise finer than the data's own step "
            "can be undone. Raise floor_sd to at least twice the resolution."
        )
    if not (math.isfinite(tolerance) and tolerance > 0.0):
        raise InputError(f"tolerance is {tolerance}; expected a positive relative gap.")
    if effort not in EFFORTS:
        raise InputError(f"effort is {effort!r}; expected one of {', '.join(map(repr, EFFORTS))}.")
    if prior.size > LARGEST_SIZE and not is_structured(prior):
        raise InputError(
            f"a trace of {prior.size} coordinates is above the limit of {LARGEST_SIZE} for this prior: use a kernel "
            "made of Matérn kernels, thin the trace, or protect windows of it with one prior each."
        )
    return Request(
        prior.size,
        epsilon,
        budget,
        uncertainty,
        order,
        structure,
        _weights(weights, prior.size),
        None if floor_sd is None else float(floor_sd),
        float(resolution),
        float(tolerance),
        effort,
        max(
            (one.floor_sd(prior.size) for one in requirements if isinstance(one, GeoIndistinguishability)), default=0.0
        ),
        method,
        bound,  # pyright: ignore[reportArgumentType]
        bandwidth,
    )


def _positive(value: Any, name: str, meaning: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is {value!r}; expected a number: {meaning}.") from error
    if not (math.isfinite(number) and number > 0.0):
        raise InputError(f"{name} is {number:g}; expected a positive, finite number: {meaning}.")
    return number


def _check_bandwidth(bandwidth: int | None, structure: str, size: int) -> None:
    if structure != "banded":
        if bandwidth is not None:
            raise InputError("bandwidth is for structure='banded' only.")
        return
    whole = isinstance(bandwidth, (int, np.integer)) and not isinstance(bandwidth, bool)
    if bandwidth is None or not whole or not 0 <= bandwidth < size:
        raise InputError(
            f"bandwidth is {bandwidth!r}; structure='banded' needs a whole number from 0 (independent noise) to "
            f"{size - 1} (any covariance): over how many steps the noise may be correlated."
        )


def _weights(weights: Any, size: int) -> np.ndarray | None:
    if weights is None:
        return None
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
