"""The coupling mechanism: every group's data leave with one and the same law, moved as little as possible.

With γ_s a coupling of what is known of group s, λ̂_s, and a common target μ, the channel C_s(x)[y] = γ_s[x, y]/λ̂_s[x]
sends λ̂_s to μ. Kawamoto and Murakami (arXiv:1907.05991). Host code, in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from jaxpriv.channels.channel import Channel
from jaxpriv.distribution.divergences import check_distribution
from jaxpriv.distribution.sinkhorn import entropic_coupling
from jaxpriv.distribution.transport import check_cost, minimax_coupling, optimal_coupling
from jaxpriv.errors import CertificateError, InputError
from jaxpriv.precision import double_precision


Kind = Literal["cost", "minimax", "independent", "entropic"]
_entropic = jax.jit(entropic_coupling, static_argnames=("tolerance", "max_steps"))
_MARGIN = 1e-9  # total variation by which an entropic output law may miss the target


@dataclass(frozen=True)
class CouplingMechanism:
    """One channel for each group.

    Attributes:
        channels: C_s, each (n, m).
        known: λ̂, (groups, n); `target`: μ, (m,); `distance`: d, (n, m).
        kind: "cost", least expected distance; "minimax", least largest distance; "independent", the target drawn
            without looking; "entropic", the exponential mechanism with the target as output law.
        losses: expected distance under λ̂_s, for each group, in the unit of the distance.
        worst: largest distance that a group's data can be moved. Rows of unseen inputs are not counted.
        scale: η of the entropic kind.
        unseen: boolean (groups, n), inputs with λ̂_s = 0; and `unseen_rule`, what their rows are.
    """

    channels: tuple[Channel, ...]
    known: np.ndarray
    target: np.ndarray
    distance: np.ndarray
    kind: Kind
    losses: np.ndarray
    worst: np.ndarray
    scale: float | None
    unseen: np.ndarray
    unseen_rule: Literal["target", "nearest"]

    def outputs(self, true: Any = None) -> np.ndarray:
        """The laws of the output, (groups, m): under λ̂, or under the `true` distributions (groups, n)."""
        laws = self.known if true is None else check_groups(true, self.known.shape[1], len(self.known))
        return np.stack([law @ probabilities(one) for law, one in zip(laws, self.channels, strict=True)])


def probabilities(channel: Channel) -> np.ndarray:
    """The channel's probabilities in float64 on the host, whatever the global precision is."""
    return np.exp(np.asarray(channel.log_matrix, dtype=np.float64))


def coupling_mechanism(
    known: Any,
    target: Any,
    distance: Any,
    *,
    kind: Kind = "cost",
    scale: float | None = None,
    unseen: Literal["target", "nearest"] = "target",
) -> CouplingMechanism:
    """The coupling mechanism that sends each group's known distribution to one target.

    Args:
        known: λ̂, (groups, n).
        target: μ, (m,); see `barycentre` for the best one.
        distance: d, (n, m) non-negative, between inputs and outputs.
        kind: see `CouplingMechanism`. "cost" is a linear program, or a north-west corner where d is Monge in the order
            given; "minimax" exact flow; "entropic" needs `scale`.
        scale: η, in the unit of the distance: the entropic kind is (2/η)-geo-indistinguishable besides.
        unseen: the row of an input that λ̂_s does not have. "target" draws from μ, and what is claimed about the true
            distribution stays finite; "nearest" moves to the nearest output, and voids it.

    Raises:
        InputError: bad distributions, shapes, distance or scale.
        CertificateError: a solver failed, or the entropic iteration did not reach the target to 1e-9.
    """
    mu = check_distribution(target, "target")
    cost = check_cost(distance)
    if cost.shape[1] != mu.size:
        raise InputError(f"distance has shape {cost.shape} for a target over {mu.size} outputs.")
    groups = check_groups(known, cost.shape[0])
    if kind not in ("cost", "minimax", "independent", "entropic"):
        raise InputError(f"kind is {kind!r}; expected 'cost', 'minimax', 'independent' or 'entropic'.")
    if (kind == "entropic") != (scale is not None):
        raise InputError("scale goes with kind='entropic', and is needed there.")
    if scale is not None and not (np.isfinite(scale) and scale > 0.0):
        raise InputError(f"scale is {scale}; expected a positive, finite distance.")
    if unseen not in ("target", "nearest"):
        raise InputError(f"unseen is {unseen!r}; expected 'target' or 'nearest'.")
    missing = groups == 0.0
    channels, losses, worst = [], [], []
    for s, law in enumerate(groups):
        rows = _rows(law, mu, cost, kind, scale, s)
        seen = ~missing[s]
        moved = law[:, None] * rows
        losses.append(float(np.sum(moved * cost)))
        worst.append(float(np.max(cost[seen][rows[seen] > 0.0])))
        if kind != "entropic":
            rows[missing[s]] = mu if unseen == "target" else _nearest(cost[missing[s]])
        # The kinds other than the entropic one have exact zeros; each row is divided by its own sum.
        channels.append(Channel.from_matrix(rows / np.sum(rows, axis=1, keepdims=True)))
    return CouplingMechanism(
        tuple(channels), groups, mu, cost, kind, np.array(losses), np.array(worst), scale, missing, unseen
    )


def check_groups(values: Any, size: int, count: int | None = None) -> np.ndarray:
    """Distributions of several groups, (groups, size), as float64. Raises InputError as `check_distribution`."""
    listed: Sequence[Any] = list(np.asarray(values)) if np.ndim(values) == 2 else list(values)
    if not listed or (count is not None and len(listed) != count):
        raise InputError(f"{len(listed)} distributions were given; expected {count or 'at least one'}.")
    return np.stack([check_distribution(one, f"group {s}", size) for s, one in enumerate(listed)])


def _rows(law, mu, cost, kind: Kind, scale: float | None, s: int) -> np.ndarray:
    if kind == "independent":
        return np.repeat(mu[None], law.size, axis=0)
    if scale is not None:
        with double_precision():
            found = _entropic(jnp.asarray(cost), jnp.asarray(law), jnp.asarray(mu), scale)
            if not float(found.error) <= _MARGIN:
                raise CertificateError(
                    f"the entropic coupling of group {s} is {float(found.error):.2g} in total variation from the "
                    f"target after {int(found.steps)} steps; raise the scale {scale:g}."
                )
            return np.exp(np.asarray(found.log_channel))
    plan = (optimal_coupling if kind == "cost" else minimax_coupling)(law, mu, cost).plan
    sums = plan.sum(axis=1, keepdims=True)
    if np.any((law > 0.0) & (sums[:, 0] <= 0.0)):
        # A mass below the solver's resolution: it goes to where it costs least.
        lost = (law > 0.0) & (sums[:, 0] <= 0.0)
        plan[lost] = np.where(mu > 0.0, _nearest(np.where(mu > 0.0, cost[lost], np.inf)), 0.0)
        sums = plan.sum(axis=1, keepdims=True)
    return np.where(sums > 0.0, plan / np.where(sums > 0.0, sums, 1.0), mu)


def _nearest(cost: np.ndarray) -> np.ndarray:
    return np.eye(cost.shape[1])[np.argmin(cost, axis=1)] if len(cost) else np.zeros((0, cost.shape[1]))
