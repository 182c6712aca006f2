"""What is asked for: how far apart two places may be told, and the goal, an ε, an error or an uncertainty."""

from __future__ import annotations

import math
import sys
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
    of each coordinate of each secret must keep under every prior). `effort` limits the steps of the solver. `unit` is
    that of all distances: metres for positions, "" for the unit of a series' own column, whatever it is. Raises
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
    unit: Literal["m", ""] = "m"

    def __post_init__(self) -> None:
        largest = MAX_RADIUS_M if self.unit else sys.float_info.max
        if not (0 < self.radius_m <= largest):
            most = f" and at most {MAX_RADIUS_M:.0f} m" if self.unit else " and finite"
            raise InputError(f"the radius is {self.said(self.radius_m)}; it must be above 0{most}")
        if sum(goal is not None for goal in (self.epsilon, self.budget_m, self.uncertainty_m)) != 1:
            raise InputError(
                "give exactly one goal: --epsilon (how much may be told), --budget (how far points may move) or "
                "--uncertainty (what must stay unknown)"
            )
        if self.epsilon is not None and not (self.epsilon > 0 and math.isfinite(self.epsilon)):
            raise InputError(f"epsilon is {self.epsilon}; it must be a positive, finite number of nats")
        for name, value in (("budget", self.budget_m), ("uncertainty", self.uncertainty_m)):
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise InputError(f"the {name} is {self.said(value)}; it must be a positive {self._length}")
        if not (self.order > 1 and math.isfinite(self.order)):
            raise InputError(f"the order is {self.order}; it must be a finite number above 1")
        if not 0 < self.delta < 1:
            raise InputError(f"delta is {self.delta}; it must be a probability between 0 and 1")
        if not (self.resolution_m > 0 and math.isfinite(self.resolution_m)):
            raise InputError(f"the resolution is {self.said(self.resolution_m)}; it must be a positive {self._length}")
        if self.effort not in get_args(Effort):
            raise InputError(f"the effort is {self.effort!r}; choose one of {', '.join(get_args(Effort))}")

    def said(self, value: float | str) -> str:
        """Write a distance with its unit; without one for a series."""
        return f"{value} {self.unit}".rstrip()

    @property
    def _length(self) -> str:
        return "distance" if self.unit else "number"
