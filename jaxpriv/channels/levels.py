"""Privacy levels of a channel in nats: largest log-ratios between rows, differentiable; the audited ones are in audit.

−inf stands for a probability of zero. A zero beside a positive entry gives +inf, two zeros give no constraint.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jaxpriv.channels.channel import Channel


def set_level(channel: Channel, members: Bool[Array | np.ndarray, " n"]) -> Float[Array, ""]:
    """Least ε for which the channel is ε-DP on a set: max over outputs of (largest − smallest) log f inside the set.

    Every pair of members counts (equation 16 of Zhang et al., arXiv:2101.12602, needs every pair, not only the pairs
    with the secret itself). O(n m). 0 for fewer than two members; +inf where a zero meets a positive entry.
    """
    return _set_level(jnp.asarray(channel.log_matrix), jnp.asarray(members)[:, None])


def pair_levels(channel: Channel) -> Float[Array, "n n"]:
    """L[x, y] = max over z of log f[x, z] − log f[y, z], one row at a time (memory n m); not symmetric."""
    return _pair_levels(jnp.asarray(channel.log_matrix))


def geo_level(channel: Channel, distances: Float[Array | np.ndarray, "n n"]) -> Float[Array, ""]:
    """Least ε (nats per unit of distance) with f[x, z] ≤ exp(ε d(x, y)) f[y, z]: geo-indistinguishability.

    Andrés et al. (CCS 2013). Pairs at distance zero must have equal rows, else the level is +inf.
    """
    d = jnp.asarray(distances)
    levels = jnp.maximum(pair_levels(channel), 0.0)
    apart = d > 0.0
    slopes = levels / jnp.where(apart, d, 1.0)
    return jnp.max(jnp.where(apart, slopes, jnp.where(levels > 0.0, jnp.inf, 0.0)))


@jax.jit
def _pair_levels(logs: Float[Array, "n m"]) -> Float[Array, "n n"]:
    def row(own: Float[Array, " m"]) -> Float[Array, " n"]:
        reached = own > -jnp.inf
        ratio = jnp.where(reached, jnp.where(reached, own, 0.0) - logs, -jnp.inf)
        return jnp.max(ratio, axis=1)

    return jax.lax.map(row, logs)


@jax.jit
def _set_level(logs: Float[Array, "n m"], inside: Bool[Array, "n 1"]) -> Float[Array, ""]:
    high = jnp.max(jnp.where(inside, logs, -jnp.inf), axis=0)
    low = jnp.min(jnp.where(inside, logs, jnp.inf), axis=0)
    reached = high > -jnp.inf
    spread = jnp.where(reached, jnp.where(reached, high, 0.0) - jnp.where(reached, low, 0.0), 0.0)
    return jnp.max(spread)
