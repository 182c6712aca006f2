"""The exact smallest ε of a channel under each notion: points or distributions, plain or relative to a distance.

A channel has (ε, D)-differential privacy for a relation Φ if D(A(x) ‖ A(x')) ≤ ε for every pair of Φ, and (ε, D)-
distribution privacy for a set Ψ of pairs of distributions if D(λ₀A ‖ λ₁A) ≤ ε for each. The extended notions divide by
a distance. Definitions of Kawamoto and Murakami (ESORICS 2019, arXiv:1812.00939; arXiv:1907.05991). In float64; levels
of the max divergence are rounded up by what the sums and logarithms can lose, others are exact up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxpriv.channels.channel import Channel
from jaxpriv.distribution.divergences import Divergence, Name, approximate_max_divergence, by_name, check_distribution
from jaxpriv.distribution.relations import check_relation
from jaxpriv.distribution.transport import check_cost
from jaxpriv.errors import InputError
from jaxpriv.precision import double_precision


@dataclass(frozen=True)
class Level:
    """The smallest ε of a channel on a set of pairs.

    Attributes:
        epsilon: nats where the divergence is a logarithm; infinite if some pair is told apart for certain, or if two
            different distributions at distance 0 are told apart at all.
        pair: positions of the worst pair; in the relation, or in the list of pairs of distributions.
        values: the divergence of every pair asked about, in that order.
        both_orders: whether each pair was also tried reversed.
    """

    epsilon: float
    pair: tuple[int, ...]
    values: np.ndarray
    both_orders: bool


def point_level(
    channel: Channel,
    relation: Any,
    divergence: Name | Divergence = "max",
    *,
    distance: Any = None,
    delta: float = 0.0,
    both_orders: bool = True,
) -> Level:
    """The smallest ε with D(A(x) ‖ A(x')) ≤ ε, or ≤ ε d(x, x') where a distance is given, over the pairs of Φ.

    Args:
        relation: Φ, booleans (n, n). With `both_orders` each pair is tried both ways, which matters for divergences
            that are not symmetric.
        distance: (n, n), for the extended notion.
        delta: of (ε, δ)-differential privacy; for divergence "max" only.

    Raises InputError for bad arguments.
    """
    allowed = check_relation(relation, channel.n_inputs)
    np.fill_diagonal(allowed, False)
    if both_orders:
        allowed = allowed | allowed.T
    pairs = np.argwhere(allowed)
    if not len(pairs):
        return Level(0.0, (0, 0), np.zeros(0), both_orders)
    with double_precision():
        rows = np.asarray(jnp.asarray(channel.matrix, jnp.float64))
        values = _divergences(rows[pairs[:, 0]], rows[pairs[:, 1]], _chosen(divergence, delta))
    if divergence == "max":
        values = values + _lost(1)
    apart = None if distance is None else check_cost(distance, allowed.shape)[pairs[:, 0], pairs[:, 1]]
    return _worst(values, apart, pairs, both_orders)


def distribution_level(
    channel: Channel | Sequence[Channel],
    pairs: Sequence[tuple[Any, Any]],
    divergence: Name | Divergence = "max",
    *,
    distance: Callable[[np.ndarray, np.ndarray], float] | None = None,
    delta: float = 0.0,
    both_orders: bool = True,
) -> Level:
    """The smallest ε with D(λ₀A ‖ λ₁A) ≤ ε, or ≤ ε d(λ₀, λ₁) where a distance is given, over pairs of distributions.

    Args:
        channel: one channel; or a list of channels, for auxiliary inputs: then each pair is ((s₀, λ₀), (s₁, λ₁)), and
            the laws compared are λ₀A(s₀) and λ₁A(s₁).
        pairs: of distributions over the inputs.
        distance: between two distributions, such as `wasserstein` with a metric.

    Raises InputError for bad arguments, an empty list among them.
    """
    if len(pairs) == 0:
        raise InputError("no pair of distributions was given.")
    if isinstance(channel, Channel):
        channels, labelled = [channel], [((0, a), (0, b)) for a, b in pairs]
    else:
        channels, labelled = list(channel), list(pairs)
    laws, apart = [], []
    with double_precision():
        matrices = [np.asarray(jnp.asarray(one.matrix, jnp.float64)) for one in channels]
        for position, ((s, first), (t, second)) in enumerate(labelled):
            if not (0 <= s < len(channels) and 0 <= t < len(channels)):
                raise InputError(f"pair {position} names an auxiliary input outside 0 … {len(channels) - 1}.")
            p = check_distribution(first, f"pairs[{position}][0]", matrices[s].shape[0])
            q = check_distribution(second, f"pairs[{position}][1]", matrices[t].shape[0])
            laws.append((p @ matrices[s], q @ matrices[t]))
            if distance is not None:
                apart.append(float(distance(p, q)))
        if both_orders:
            laws += [(b, a) for a, b in laws]
            apart += apart
        values = _divergences(
            np.stack([a for a, _ in laws]), np.stack([b for _, b in laws]), _chosen(divergence, delta)
        )
    positions = np.arange(len(laws))[:, None] % len(pairs)
    return _worst(values, None if distance is None else np.array(apart), positions, both_orders)


def _chosen(divergence: Name | Divergence, delta: float) -> Divergence:
    if not 0.0 <= delta < 1.0:
        raise InputError(f"delta is {delta}; expected a probability from 0 to below 1.")
    if delta == 0.0:
        return by_name(divergence)
    if divergence != "max":
        raise InputError("delta goes with the divergence 'max' only.")
    # Below 0 the pair is already within (0, δ).
    return lambda p, q: jnp.maximum(approximate_max_divergence(p, q, delta), 0.0)


def _lost(terms: int) -> float:
    """What the log-ratio of two sums of so many non-negative products can lose to rounding."""
    return 4.0 * (terms + 8) * 2.0**-53


def _divergences(first: np.ndarray, second: np.ndarray, divergence: Divergence) -> np.ndarray:
    values = np.asarray(jax.jit(jax.vmap(divergence))(jnp.asarray(first), jnp.asarray(second)))
    if np.any(np.isnan(values)):
        raise InputError(f"the divergence of pair {int(np.argmax(np.isnan(values)))} is not a number.")
    return values


def _worst(values: np.ndarray, apart: np.ndarray | None, pairs: np.ndarray, both_orders: bool) -> Level:
    ratios = values
    if apart is not None:
        near = apart == 0.0
        ratios = np.where(near, np.where(values > 0.0, np.inf, 0.0), values / np.where(near, 1.0, apart))
    worst = int(np.argmax(ratios))
    return Level(float(ratios[worst]), tuple(int(i) for i in pairs[worst]), values, both_orders)
