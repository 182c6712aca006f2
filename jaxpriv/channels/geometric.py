"""The truncated geometric mechanism on equally spaced places of a line."""

from __future__ import annotations

import numpy as np

from jaxpriv.channels.channel import Channel
from jaxpriv.errors import InputError


def truncated_geometric(count: int, epsilon: float) -> Channel:
    """Two-sided geometric noise on 0 … count − 1, cut to the ends; ε in nats per step.

    f(z|x) = α^|x−z| (1 − α)/(1 + α) inside and α^|x−z|/(1 + α) at the two ends, α = e^-ε (Ghosh, Roughgarden and
    Sundararajan, 2009). Its slope is exactly ε, and after the optimal remap no ε-geo-indistinguishable mechanism on the
    line loses less, whatever the prior.

    Raises InputError: fewer than two places, or ε not positive and finite.
    """
    if not (isinstance(count, (int, np.integer)) and count >= 2):
        raise InputError(f"count is {count!r}; expected at least two places.")
    if not (np.isfinite(epsilon) and epsilon > 0.0):
        raise InputError(f"epsilon is {epsilon}; expected a positive finite number.")
    steps = np.abs(np.arange(count)[:, None] - np.arange(count)[None, :])
    logs = -epsilon * steps - np.log1p(np.exp(-epsilon))
    logs[:, 1:-1] += np.log(-np.expm1(-epsilon))
    return Channel(logs)
