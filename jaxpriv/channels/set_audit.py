"""One protection set of a channel under audit: its real level and what an adversary who knows it infers.

Host code on the members' rows alone, so that a thousand small sets of a large map are quick.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from jaxpriv.channels.channel import Channel
from jaxpriv.channels.exact_levels import ExactRows, Level, exact_set_level
from jaxpriv.channels.inference import narrowed_error
from jaxpriv.channels.prior import DiscretePrior
from jaxpriv.channels.set_errors import set_error, worst_set_error


_BELOW = 1.0 - 1e-11  # what rounding may add to a sum over the places of a map, many times over


@dataclass(frozen=True)
class SetAudit:
    """One protection set: its members, the nominal and the real level, and what a narrowed adversary infers.

    `nominal` is None where no level was claimed. `least_narrowed_error` is the least error over outputs of an adversary
    who knows that the secret is in the set; `promised_error` = E*(Φ, real level) bounds it (and, over a partition, the
    conditional error of every output) from below.
    """

    members: tuple[int, ...]
    nominal: float | None
    level: Level
    prior_error: float
    promised_error: float
    least_narrowed_error: float
    worst_output: int

    @property
    def holds(self) -> bool:
        """Whether the nominal level holds, up to 1e-9 of it (what rounding of a row to a table may add)."""
        return self.nominal is None or self.level.value <= self.nominal * (1.0 + 1e-9)


def audit_set(
    rows: ExactRows,
    channel: Channel,
    prior: DiscretePrior,
    members: Bool[np.ndarray, " n"],
    guess_distances: Float[np.ndarray, "g n"] | None,
) -> SetAudit:
    """Audit a set of places, (n,), under the prior in which the adversary believes.

    `guess_distances` (g, n) are what a guess costs, by `design_guesses` times its factor; None for the whole plane.
    """
    level = exact_set_level(rows, members)
    if guess_distances is None:
        errors = np.asarray(narrowed_error(channel, prior, members, "plane"))
        before = float(set_error(prior, members, "plane"))
        promised = float(worst_set_error(prior, members, min(level.value, 700.0), "plane"))
    else:
        near, weights = guess_distances[:, members], np.asarray(prior.probabilities)[members]
        errors = _narrowed_errors(np.asarray(channel.log_matrix)[members], weights, near)
        some = bool(np.sum(weights) > 0.0)
        before = float(np.min(near @ weights) / np.sum(weights)) if some else math.inf
        promised = worst_error(weights, near, min(level.value, 700.0)) if some else math.inf
    return SetAudit(
        members=tuple(int(place) for place in np.flatnonzero(members)),
        nominal=None,
        level=level,
        prior_error=before,
        promised_error=_BELOW * promised if math.isfinite(level.value) else 0.0,
        least_narrowed_error=float(np.min(errors)),
        worst_output=int(np.argmin(errors)),
    )


def worst_error(weights: Float[np.ndarray, " k"], distances: Float[np.ndarray, "g k"], epsilon: float) -> float:
    """E* of a set from its members' prior masses and their distances to the guesses, on the host."""
    order = np.argsort(distances, axis=1)
    near, mass = np.take_along_axis(distances, order, axis=1), weights[order]
    gain = math.expm1(epsilon)
    upper = np.sum(mass * near, axis=1, keepdims=True) + gain * np.cumsum(mass * near, axis=1)
    lower = np.sum(mass, axis=1, keepdims=True) + gain * np.cumsum(mass, axis=1)
    return float(np.min(upper / lower))


def _narrowed_errors(
    logs: Float[np.ndarray, "k m"], weights: Float[np.ndarray, " k"], distances: Float[np.ndarray, "g k"]
) -> Float[np.ndarray, " m"]:
    kept = weights > 0.0
    if not np.any(kept):
        return np.full(logs.shape[1], np.inf)
    top = np.max(logs[kept], axis=0)
    some = top > -np.inf
    joint = weights[kept, None] * np.exp(logs[kept] - np.where(some, top, 0.0))
    risks = np.min(distances[:, kept] @ joint, axis=0)
    return np.where(some, risks / np.where(some, np.sum(joint, axis=0), 1.0), np.inf)
