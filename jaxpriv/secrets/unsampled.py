"""The secret of where somebody was at a time without a fix."""

from __future__ import annotations

import math

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from jaxpriv.errors import InputError
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.radius import checked_radius


class UnsampledSecret(eqx.Module):
    """The position at a time at which the trace has no fix; needs a prior that knows the process between fixes.

    Args:
        time: in the unit of the prior's times.
        radius: the largest separation of two hypotheses, in the unit of the trace.
    """

    time: Float[Array | np.ndarray, ""]
    radius: Float[Array | np.ndarray, ""]

    def __init__(self, time: float, radius: float):
        if not math.isfinite(time):
            raise InputError(f"time is {time}; expected a finite time.")
        self.time = np.asarray(time, dtype=np.float64)
        self.radius = checked_radius(radius)

    @property
    def size(self) -> int:
        """1."""
        return 1

    @property
    def n_times(self) -> int:
        """1."""
        return 1

    def joint(self, prior: Prior) -> tuple[Float[Array, "n 1"], Float[Array, "1 1"]]:
        """Covariance of the fixes with the process at `time`, and its variance there."""
        if not hasattr(prior, "joint_at"):
            raise InputError(
                "a secret between fixes needs a ProcessPrior: a covariance matrix says nothing about other times."
            )
        return prior.joint_at(self.time)  # pyright: ignore[reportAttributeAccessIssue]
