"""What is asked for: how far apart two places may be told, and the goal, an ε, an error or an uncertainty."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from jaxpriv.errors import InputError


Effort = Literal["low", "normal", "high"]
MAX_RADIUS_M = 50_000.0


@dataclass(frozen=True)
class Target:
    """What is asked for: a separation in metres, a goal, a Rényi order, δ for the odds, the input's resolution.

    The goal is exactly one of `epsilon` (nats, of each secret under each prior), `budget_m` (displacement of points,
    root mean square over the trace, floor and grid included) and `uncertainty_m` (the half-width that the 68 % interval
    of each coordinate of each secret must keep under every prior). `effort` limits the steps of the solver. Raises
    `InputError` for numbers out of range.
    """

    radius_m: float
    epsilon: float | None = None
    order: float = 2.0
    delta: float = 0.01
    resolution_m: float = 0.5
    budget_m: float | None = None
    uncertainty_m: float | None = None
    effort: Effort = "normal"

    def __post_init__(self) -> None:
        if not (0 < self.radius_m <= MAX_RADIUS_M):
            raise InputError(f"the radius is {self.radius_m} m; it must be above 0 and at most {MAX_RADIUS_M:.0f} m")
        if sum(goal is not None for goal in (self.epsilon, self.budget_m, self.uncertainty_m)) != 1:
            raise InputError(
                "give exactly one goal: --epsilon (how much may be told), --budget (how far points may move) or "
                "--uncertainty (what must stay unknown)"
            )
        if self.epsilon is not None and not (self.epsilon > 0 and math.isfinite(self.epsilon)):
            raise InputError(f"epsilon is {self.epsilon}; it must be a positive, finite number of nats")
        for name, value in (("budget", self.budget_m), ("uncertainty", self.uncertainty_m)):
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise InputError(f"the {name} is {value} m; it must be a positive distance")
        if not (self.order > 1 and math.isfinite(self.order)):
            raise InputError(f"the order is {self.order}; it must be a finite number above 1")
        if not 0 < self.delta < 1:
            raise InputError(f"delta is {self.delta}; it must be a probability between 0 and 1")
        if not (self.resolution_m > 0 and math.isfinite(self.resolution_m)):
            raise InputError(f"the resolution is {self.resolution_m} m; it must be a positive distance")
        if self.effort not in get_args(Effort):
            raise InputError(f"the effort is {self.effort!r}; choose one of {', '.join(get_args(Effort))}")
