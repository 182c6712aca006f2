"""Pointwise maximal leakage of channels between finite alphabets: the definition itself."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from jaxpriv.errors import InputError
from jaxpriv.shapes import Scalar


Probabilities = Float[Array | np.ndarray, " n"]
Channel = Float[Array | np.ndarray, "n m"]

_SUM = 1e-6


def finite_leakage(prior: Probabilities, channel: Channel) -> Float[Array, " m"]:
    """ℓ(X→y) = log max_{x: p(x) > 0} Q(y | x)/p(y), (m,), in nats.

    Args:
        prior: p, (n,), probabilities of the private values.
        channel: Q, (n, m), each row the law of the output given one private value.

    0 for outputs that never occur. Saeidian et al. (arXiv:2205.04935, definition 2).

    Raises:
        InputError: shapes that do not fit, negative entries, sums other than 1 (not for traced values).
    """
    prior, channel = _checked(prior, channel)
    output = prior @ channel
    largest = jnp.max(jnp.where((prior > 0.0)[:, None], channel, 0.0), axis=0)
    occurs = output > 0.0
    ratio = jnp.where(occurs, largest, 1.0) / jnp.where(occurs, output, 1.0)
    # Rounding may take a leakage of 0 below it.
    return jnp.maximum(jnp.log(ratio), 0.0)


def finite_delta(prior: Probabilities, channel: Channel, epsilon: Scalar) -> Float[Array, ""]:
    """δ(ε) = P(ℓ(X→Y) > ε). A step function of ε: its derivative in ε is 0 wherever there is one."""
    prior, channel = _checked(prior, channel)
    return jnp.sum(jnp.where(finite_leakage(prior, channel) > epsilon, prior @ channel, 0.0))


def finite_epsilon(prior: Probabilities, channel: Channel, delta: Scalar) -> Float[Array, ""]:
    """ε(δ): the least ε ≥ 0 with P(ℓ(X→Y) > ε) ≤ δ, in nats; with δ = 0 the largest leakage of any output."""
    prior, channel = _checked(prior, channel)
    leakage, output = finite_leakage(prior, channel), prior @ channel
    order = jnp.argsort(-leakage)
    sorted_leakage = leakage[order]
    # P(ℓ ≥ the i-th largest): the first whose total exceeds δ is the least level that may not be exceeded more often.
    above = jnp.cumsum(output[order])
    enough = above > delta
    return jnp.where(jnp.any(enough), sorted_leakage[jnp.argmax(enough)], 0.0)


def _checked(prior: Probabilities, channel: Channel) -> tuple[Float[Array, " n"], Float[Array, "n m"]]:
    rows = jnp.asarray(channel)
    weights = jnp.asarray(prior)
    if weights.ndim != 1 or rows.ndim != 2 or rows.shape[0] != weights.shape[0] or 0 in rows.shape:
        raise InputError(f"prior and channel have shapes {weights.shape} and {rows.shape}; expected (n,) and (n, m).")
    for name, array in (("prior", weights[None]), ("channel", rows)):
        if isinstance(array, Tracer):
            continue
        values = np.asarray(array)
        if not np.all(values >= 0.0) or np.max(np.abs(values.sum(axis=1) - 1.0)) > _SUM:
            raise InputError(f"the {name} holds no probabilities: entries must not be negative and must sum to 1.")
    return weights, rows
