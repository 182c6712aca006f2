"""Channels that are within their limits by construction, whatever the parameters: for gradient methods.

`lipschitz_channel` spends half the limits on the scores and half on the normaliser, so the best channel may be out of
reach. `enveloped_channel` spends them all and reaches every channel within the limits. Both are differentiable almost
everywhere, compile and map; n² m operations, memory n m + n².
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxpriv.channels.channel import Channel
from jaxpriv.channels.log_domain import log_or_minus_infinity
from jaxpriv.errors import InputError


def lipschitz_channel(scores: Float[Array | np.ndarray, "n m"], allowed: Float[Array | np.ndarray, "n n"]) -> Channel:
    """f = softmax of h[x, z] = min_y (scores[y, z] + allowed[x, y]/2), McShane's largest Lipschitz minorant.

    h(·, z) changes by at most allowed/2 between two inputs, hence so does the logarithm of its normaliser, and log f by
    at most `allowed`. A channel f is of this form exactly if some σ (n,) has
    log f[x, z] − log f[y, z] <= allowed[x, y]/2 + σ_y − σ_x for all x, y, z; σ = 0 are the channels within half the
    limits, so the best loss is at most the optimum at ε/2. Derived here; proof in docs/optimal_channels.md.

    Args:
        scores: (n, m), free.
        allowed: (n, n), nats, closed under paths with a zero diagonal (`Limits.allowed`, or ε times a metric); inf
            where nothing is asked.

    Raises:
        InputError: shapes that do not fit.
    """
    _check(scores, allowed)
    return Channel(_lipschitz(jnp.asarray(scores), jnp.asarray(allowed)))


def enveloped_channel(
    log_weights: Float[Array | np.ndarray, "n m"],
    allowed: Float[Array | np.ndarray, "n n"],
    top_up_scores: Float[Array | np.ndarray, " m"] | None = None,
) -> Channel:
    """A channel within the limits for every log_weights (n, m), and equal to their softmax where that is within them.

    With k = softmax(log_weights) by rows: k⁺[x, z] = max_y e^{−c(x, y)} k[y, z] meets the limits; s its row sums (at
    least 1), a = 1/max s, r = 1 − a s, and t the least number with t + (1 − t) r within the limits as a column;
    f = (1 − t) a k⁺ + (t + (1 − t) r) oᵀ with o = softmax(top_up_scores), uniform unless given. The limits hold in
    exact arithmetic; audit the result for a claim. Derived here; proof in docs/optimal_channels.md.

    Raises:
        InputError: shapes that do not fit.
    """
    _check(log_weights, allowed)
    weights = jnp.asarray(log_weights)
    scores = jnp.zeros(weights.shape[1], weights.dtype) if top_up_scores is None else jnp.asarray(top_up_scores)
    return Channel(_enveloped(weights, jnp.asarray(allowed, weights.dtype), scores))


@jax.jit
def _lipschitz(scores: Float[Array, "n m"], allowed: Float[Array, "n n"]) -> Float[Array, "n m"]:
    lowest = jax.lax.map(lambda row: jnp.min(scores + row[:, None], axis=0), 0.5 * allowed)
    return jax.nn.log_softmax(lowest, axis=1)


@jax.jit
def _enveloped(
    log_weights: Float[Array, "n m"], limits: Float[Array, "n n"], scores: Float[Array, " m"]
) -> Float[Array, "n m"]:
    log_k = jax.nn.log_softmax(log_weights, axis=1)
    log_raised = jax.lax.map(lambda row: jnp.max(log_k - row[:, None], axis=0), limits)
    log_sums = jax.scipy.special.logsumexp(log_raised, axis=1)
    log_scale = -jnp.max(log_sums)
    rest = -jnp.expm1(log_scale + log_sums)
    apart = ~jnp.eye(len(limits), dtype=bool)
    shrink = jnp.where(apart, jnp.exp(-limits), 0.0)
    needed = jnp.max(jnp.where(apart, (shrink * rest[:, None] - rest[None, :]) / (1.0 - shrink), 0.0))
    share = jnp.maximum(0.0, needed) / (1.0 + jnp.maximum(0.0, needed))
    log_rest = log_or_minus_infinity(share + (1.0 - share) * rest)
    log_main = jnp.log1p(-share) + log_scale + log_raised
    added = log_rest[:, None] + jax.nn.log_softmax(scores)[None, :]
    return jnp.where(log_rest[:, None] > -jnp.inf, jnp.logaddexp(log_main, added), log_main)


def _check(values: Float[Array | np.ndarray, "n m"], allowed: Float[Array | np.ndarray, "n n"]) -> None:
    if values.ndim != 2 or allowed.shape != (values.shape[0], values.shape[0]):
        raise InputError(f"parameters of shape {values.shape} need limits (n, n); these have shape {allowed.shape}.")
