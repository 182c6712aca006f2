"""Closed-form levels of exponential mechanisms with several rates: the paper's, corrected, and a finer one.

For rates a_x = ε_k/(2 D_k) in set k. The level on a union of two sets is *not* the cross-set expression alone: pairs
inside one set may have the larger level when budgets differ, so all of these take the maximum with them.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxpriv.shapes import Scalar


def union_bound(
    epsilons: Float[Array | np.ndarray, "2"], diameters: Float[Array | np.ndarray, "2"], map_diameter: Scalar
) -> Float[Array, ""]:
    """max(ε_i, ε_j, (D(X)/2)(ε_i/D_i + ε_j/D_j)): a level on Φ_i ∪ Φ_j.

    Zhang et al. (arXiv:2101.12602) state the last term, which covers pairs across the sets; the maximum covers all
    (derived here; counterexample to the last term alone in docs/channels.md).
    """
    e, d = jnp.asarray(epsilons), jnp.asarray(diameters)
    return jnp.maximum(jnp.max(e), 0.5 * map_diameter * jnp.sum(e / d))


def map_bound(
    epsilons: Float[Array | np.ndarray, " K"], diameters: Float[Array | np.ndarray, " K"], map_diameter: Scalar
) -> Float[Array, ""]:
    """D(X) max_k ε_k/D_k: a level on the whole map."""
    return jnp.asarray(map_diameter) * jnp.max(jnp.asarray(epsilons) / jnp.asarray(diameters))


def refined_pair_bounds(
    distances: Float[Array | np.ndarray, "n m"], rates: Float[Array | np.ndarray, " n"]
) -> Float[Array, "n n"]:
    """max_z (b d(y,z) − a d(x,z)) + max_z (a d(x,z) − b d(y,z)) for all pairs, a and b the rates of x and y, (n, n).

    Score and normaliser bounded apart: never above the closed forms, never below the exact level. O(n² m).
    """
    return _refined(jnp.asarray(rates)[:, None] * jnp.asarray(distances))


@jax.jit
def _refined(scores: Float[Array, "n m"]) -> Float[Array, "n n"]:
    gaps = jax.lax.map(lambda row: jnp.max(scores - row[None, :], axis=1), scores)
    return gaps + gaps.T
