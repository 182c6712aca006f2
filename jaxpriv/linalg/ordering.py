"""Keeping independent factorisations from running at the same time."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array


def after(x: Array, done: Array) -> Array:
    """x, available only once `done` has been computed (NaN if the first entry of `done` is).

    On CPUs the batched LAPACK kernels of jaxlib 0.10.2 hand their parts to the thread pool that runs them and wait:
    when as many of them run at once as the pool has threads, all wait for ever (stack of the hang: every worker in
    ParallelBatchMap). Any two factorisations without a path of data between them can meet, and under vmap every one is
    batched, so each waits for the one before. The comparison is not folded away, because it is false for NaN.
    """
    first = jnp.ravel(done)[0]
    return jnp.where(first == first, x, jnp.nan)
