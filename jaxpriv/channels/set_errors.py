"""The inference error that a protection set can promise: the prior error of a set, and its exact worst case under ε-DP.

For a set Φ, E(Φ) is the least expected distance to a guess given only that the secret lies in Φ. If the channel is
ε-differentially private on Φ, the posterior inside Φ stays within factors e^±ε of the prior (equations 16 and 17 of
Zhang et al., arXiv:2101.12602), which gives e^-ε E(Φ). The exact worst case is larger: only the ratios r(x) between
1 and e^ε are at an adversary's disposal,

    E*(Φ, ε) = min over guesses g and r in [1, e^ε]^Φ of Σ π r d(g, ·) / Σ π r,

a linear-fractional minimum, attained by r = e^ε on the k places nearest to g and 1 on the others for some k, and by a
channel of two outputs (derived here; proof in docs/channels.md).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jaxpriv.channels.inference import Guesses, guess_distances, least_losses
from jaxpriv.channels.prior import DiscretePrior
from jaxpriv.shapes import Scalar


def set_error(
    prior: DiscretePrior, members: Bool[Array | np.ndarray, " n"], guesses: Guesses = None
) -> Float[Array, ""]:
    """E(Φ) = min over guesses of Σ_{x in Φ} π(x)/π(Φ) d(g, x), in the unit of the locations.

    +inf for a set without prior mass: nothing is promised about what never happens. Not monotone in Φ.
    """
    weights = jnp.where(jnp.asarray(members), jnp.asarray(prior.probabilities), 0.0)
    mass = jnp.sum(weights)
    some = mass > 0.0
    return jnp.where(some, least_losses((weights / jnp.where(some, mass, 1.0))[None], prior, guesses)[0], jnp.inf)


def worst_set_error(
    prior: DiscretePrior, members: Bool[Array | np.ndarray, " n"], epsilon: Scalar, guesses: Guesses = None
) -> Float[Array, ""]:
    """E*(Φ, ε): the least conditional error inside Φ over all channels that are ε-DP on Φ.

    Between e^-ε E(Φ) and E(Φ). For guesses="half" half of its value at the prior's places; for guesses="plane" the
    larger of that and e^-ε E(Φ): both are lower bounds for an adversary who guesses anywhere.
    """
    if isinstance(guesses, str):
        half = 0.5 * worst_set_error(prior, members, epsilon)
        if guesses == "half":
            return half
        return jnp.maximum(half, jnp.exp(-jnp.asarray(epsilon)) * set_error(prior, members, guesses))
    weights = jnp.where(jnp.asarray(members), jnp.asarray(prior.probabilities), 0.0)
    return _worst_error(weights, guess_distances(prior, guesses), jnp.asarray(epsilon, weights.dtype))


def robust_set_error(
    prior: DiscretePrior,
    members: Bool[Array | np.ndarray, " n"],
    epsilon: Scalar,
    deviation: Scalar,
    guesses: Guesses = None,
) -> Float[Array, ""]:
    """The least conditional error inside Φ for every adversary prior π′ with |log π′/π| ≤ deviation: E*(Φ, ε + 2 β).

    The ratios r π′/π range over a factor e^{ε + 2β} (derived here; proof in docs/channels.md). For k releases of the
    same secret pass k ε. No positive error survives an adversary who is sure: the deviation is then unbounded.
    """
    return worst_set_error(prior, members, jnp.asarray(epsilon) + 2.0 * jnp.asarray(deviation), guesses)


def worst_error_margin(
    prior: DiscretePrior,
    members: Bool[Array | np.ndarray, " n"],
    epsilon: Scalar,
    min_error: Scalar,
    guesses: Float[Array | np.ndarray, "g 2"] | None = None,
) -> Float[Array, ""]:
    """min over guesses of Σ_{x in Φ} π(x) [(d − E)₊ − e^ε (E − d)₊]: non-negative if and only if E*(Φ, ε) ≥ E.

    The test without sorting: for a fixed threshold E the worst ratio is e^ε exactly where d(g, x) < E. It is a sum
    over the members, so that running sums decide it for all windows of an order at once.
    """
    weights = jnp.where(jnp.asarray(members), jnp.asarray(prior.probabilities), 0.0)
    excess = guess_distances(prior, guesses) - min_error
    gain = jnp.exp(jnp.asarray(epsilon, weights.dtype))
    return jnp.min(jnp.where(excess < 0.0, gain * excess, excess) @ weights)


@jax.jit
def _worst_error(
    weights: Float[Array, " n"], distances: Float[Array, "g n"], epsilon: Float[Array, ""]
) -> Float[Array, ""]:
    some = jnp.sum(weights) > 0.0
    safe = jnp.where(some, weights, 1.0)
    gain = jnp.expm1(epsilon)

    def at_guess(row: Float[Array, " n"]) -> Float[Array, ""]:
        order = jnp.argsort(row)
        near, mass = row[order], safe[order]
        upper = jnp.sum(mass * near) + gain * jnp.cumsum(mass * near)
        lower = jnp.sum(mass) + gain * jnp.cumsum(mass)
        return jnp.min(upper / lower)

    return jnp.where(some, jnp.min(jax.vmap(at_guess)(distances)), jnp.inf)
