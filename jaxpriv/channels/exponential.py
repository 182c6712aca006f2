"""The exponential mechanism on a map: publish z with probability falling off exponentially with its distance from x."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float

from jaxpriv.channels.channel import Channel
from jaxpriv.errors import InputError
from jaxpriv.shapes import Scalar


def exponential_channel(
    distances: Float[Array | np.ndarray, "n m"],
    rates: Float[Array | np.ndarray, " n"] | Scalar,
    log_base: Float[Array | np.ndarray, " m"] | None = None,
) -> Channel:
    """f[x, z] ∝ v(z) exp(−a_x d[x, z]), with rates a (n,) or one for all, per unit of distance, and base measure v.

    Differentiable in every argument. With one rate a for all, |log f[x, z] − log f[y, z]| ≤ 2 a d(x, y) when d obeys
    the triangle inequality (half from the score, half from the normaliser; the factor 2 is tight), and a d(x, y) on
    sets where every row has the same normaliser, such as a torus.

    Raises InputError: a rate that is negative or not finite (traced values pass).
    """
    if not isinstance(rates, Tracer) and not bool(np.all(np.isfinite(np.asarray(rates)) & (np.asarray(rates) >= 0.0))):
        raise InputError("a rate of the exponential mechanism is negative or not finite.")
    stack = (
        np if all(isinstance(value, (np.ndarray, float, type(None))) for value in (distances, rates, log_base)) else jnp
    )
    scores = -stack.reshape(stack.asarray(rates), (-1, 1)) * stack.asarray(distances)
    return Channel.from_log_weights(scores if log_base is None else scores + stack.asarray(log_base)[None, :])


def exponential_mechanism(
    distances: Float[Array | np.ndarray, "n m"],
    epsilon: Float[Array | np.ndarray, " n"] | Scalar,
    sensitivity: Float[Array | np.ndarray, " n"] | Scalar,
) -> Channel:
    """The exponential mechanism of McSherry and Talwar (2007) with score −d and rate ε/(2Δ), ε and Δ per row or common.

    ε-DP on any set on which the rows share ε and Δ and on which no score moves by more than Δ (`score_sensitivity`):
    rows of different Δ carry no such guarantee.

    Raises InputError: ε or Δ not positive and finite.
    """
    for name, value in (("epsilon", epsilon), ("the sensitivity", sensitivity)):
        if not isinstance(value, Tracer):
            host = np.asarray(value)
            if not np.all(np.isfinite(host)) or np.any(host <= 0.0):
                raise InputError(
                    f"{name} must be positive and finite; a set of one place, or of coincident ones, has "
                    "sensitivity 0 and needs another place in it."
                )
    stack = np if all(isinstance(value, (np.ndarray, float, int)) for value in (epsilon, sensitivity)) else jnp
    return exponential_channel(distances, stack.asarray(epsilon) / (2.0 * stack.asarray(sensitivity)))


def score_sensitivity(
    scores: Float[Array | np.ndarray, "n m"], members: Bool[Array | np.ndarray, " n"]
) -> Float[Array, ""]:
    """Δ_Φ = max over outputs z and x, y in Φ of |u(x, z) − u(y, z)|; 0 for fewer than two members.

    Equal to the diameter of Φ for u = −d when the outputs contain Φ, smaller for outputs elsewhere, and not the
    diameter at all for scores that are no metric, such as −d².
    """
    inside = jnp.asarray(members)[:, None]
    values = jnp.asarray(scores)
    spread = jnp.max(jnp.where(inside, values, -jnp.inf), axis=0) - jnp.min(jnp.where(inside, values, jnp.inf), axis=0)
    return jnp.maximum(jnp.max(spread), 0.0)
