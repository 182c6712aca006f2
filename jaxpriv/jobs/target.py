"""What is asked for: how far apart two places may be told, and at which price in ε."""

from __future__ import annotations

import math
from dataclasses import dataclass

from jaxpriv.errors import InputError


MAX_RADIUS_M = 50_000.0


@dataclass(frozen=True)
class Target:
    """What is asked for: a separation in metres, ε in nats at a Rényi order, δ for the odds, the input's resolution.

    Raises `InputError` for numbers out of range.
    """

    radius_m: float
    epsilon: float
    order: float = 2.0
    delta: float = 0.01
    resolution_m: float = 0.5

    def __post_init__(self) -> None:
        if not (0 < self.radius_m <= MAX_RADIUS_M):
            raise InputError(f"the radius is {self.radius_m} m; it must be above 0 and at most {MAX_RADIUS_M:.0f} m")
        if not (self.epsilon > 0 and math.isfinite(self.epsilon)):
            raise InputError(f"epsilon is {self.epsilon}; it must be a positive, finite number of nats")
        if not (self.order > 1 and math.isfinite(self.order)):
            raise InputError(f"the order is {self.order}; it must be a finite number above 1")
        if not 0 < self.delta < 1:
            raise InputError(f"delta is {self.delta}; it must be a probability between 0 and 1")
        if not (self.resolution_m > 0 and math.isfinite(self.resolution_m)):
            raise InputError(f"the resolution is {self.resolution_m} m; it must be a positive distance")
