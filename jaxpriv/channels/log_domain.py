"""Sums of exponentials in which minus infinity stands for zero, with gradients that are finite there."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def log_sum_exp(values: Float[Array, "*shape"], axis: int) -> Float[Array, "*rest"]:
    """log Σ exp along `axis`; −inf where every term is −inf, and there the derivative is zero instead of NaN."""
    top = jax.lax.stop_gradient(jnp.max(values, axis=axis, keepdims=True))
    some = top > -jnp.inf
    total = jnp.sum(jnp.exp(values - jnp.where(some, top, 0.0)), axis=axis, keepdims=True)
    result = jnp.where(some, top + jnp.log(jnp.where(some, total, 1.0)), -jnp.inf)
    return jnp.squeeze(result, axis=axis)


def log_or_minus_infinity(values: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """log of non-negative values; −inf with derivative zero where a value is zero."""
    positive = values > 0.0
    return jnp.where(positive, jnp.log(jnp.where(positive, values, 1.0)), -jnp.inf)


@jax.jit
def log_matrix_product(left: Float[Array, "n m"], right: Float[Array, "m k"]) -> Float[Array, "n k"]:
    """log(exp(left) @ exp(right)), one row at a time: memory m k, and no entry underflows to zero."""
    return jax.lax.map(lambda row: log_sum_exp(row[:, None] + right, axis=0), left)
