"""Lifting noise over floors it does not meet, at the least cost to first order, in low-rank pieces."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from jaxpriv.designs.majorant.stack import FloorStack, grouping
from jaxpriv.linalg.ordering import after


SPECTRAL_LIMIT = 3e8
"""Largest J n^3 for which every floor gets an eigendecomposition of its own in a lift."""

_PASSES = 3


def lift_all(
    stack: FloorStack, noise: Float[Array, "n n"], beta: ArrayLike = 1.0, *, spectral: bool | None = None
) -> tuple[Float[Array, "n n"], Float[Array, "n q"]]:
    """Noise that meets every floor, from any symmetric G, and the columns X that were added: the result is G + X X^T.

    Meeting the floors costs at most the sum of the traces of their excess over G. `spectral` chooses between
    `lift_spectral` and `lift_grouped`; None decides by size.
    """
    if stack.count * stack.size**3 <= SPECTRAL_LIMIT if spectral is None else spectral:
        return lift_spectral(stack, noise, beta)
    return lift_grouped(stack, noise, beta)


def lift_spectral(
    stack: FloorStack, noise: Float[Array, "n n"], beta: ArrayLike = 1.0
) -> tuple[Float[Array, "n n"], Float[Array, "n q"]]:
    """One sweep G <- G + (F_j - G)_+ over the floors in order, each the least lift for its floor.

    G + (F_j - G)_+ dominates F_j and later lifts only add. F_j - G has at most k positive eigenvalues.
    """
    owner = jnp.asarray(stack.prior_index)
    factors = stack.factors(after(jnp.asarray(beta, noise.dtype), noise))
    k = stack.rank

    def step(current: Array, j: Array) -> tuple[Array, Array]:
        values, vectors = jnp.linalg.eigh(factors[j] @ factors[j].T - stack.prior(owner[j]) - current)
        columns = vectors[:, -k:] * jnp.sqrt(jnp.maximum(values[-k:], 0.0))
        return current + columns @ columns.T, columns

    lifted, columns = jax.lax.scan(step, noise, jnp.arange(stack.count))
    return lifted, columns.transpose(1, 0, 2).reshape(stack.size, -1)


def lift_grouped(
    stack: FloorStack, noise: Float[Array, "n n"], beta: ArrayLike = 1.0
) -> tuple[Float[Array, "n n"], Float[Array, "n q"]]:
    """A lift of one factorisation a prior (four for very many floors); for noise that nearly meets them.

    With A = Sigma_p + s_p I + G a floor is met exactly when its loss M = U^T A^-1 U is at most I. Adding
    V (M - I)_+ V^T along V = A^-1 U, its columns scaled to |v|^-2, costs the least trace to first order in the excess
    and leaves an excess of second order; after a few passes, U (I - M^-1)_+ U^T removes the rest exactly, since
    U^T (A + U D U^T)^-1 U = (M^-1 + D)^-1. The floors of one prior are lifted side by side, priors in order. What was
    added enters A by the Woodbury identity while it is of low rank, else by a new factorisation.
    """
    priors = len(stack.covariance_index)
    members, mask, _ = grouping(stack.prior_index, priors)
    n, k = stack.size, stack.rank
    width = members.shape[1]
    update = _PASSES * width * k <= n // 4
    factors = stack.factors(after(jnp.asarray(beta, noise.dtype), noise))

    def one_prior(current: Array, entry: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        p, chosen, valid = entry
        wide = factors[chosen] * valid[:, None, None]
        side_by_side = wide.transpose(1, 0, 2).reshape(n, -1)
        prior = stack.prior(p)
        chol = _factorised(prior + current)
        plain = jax.scipy.linalg.cho_solve((chol, True), side_by_side)
        pieces: list[Array] = []
        for turn in range(_PASSES + 1):
            v = plain
            if update and pieces:
                added = jnp.concatenate(pieces, axis=1)
                inside = jax.scipy.linalg.cho_solve((chol, True), added)
                small = _factorised(jnp.eye(added.shape[1], dtype=v.dtype) + added.T @ inside)
                v = plain - inside @ jax.scipy.linalg.cho_solve((small, True), added.T @ plain)
            elif pieces:
                chol = _factorised(prior + current)
                v = jax.scipy.linalg.cho_solve((chol, True), side_by_side)
            v = v.reshape(n, width, k).transpose(1, 0, 2)
            gains = jnp.einsum("jna,jnb->jab", wide, v)
            values, vectors = jnp.linalg.eigh((gains + jnp.swapaxes(gains, 1, 2)) / 2)
            if turn < _PASSES:
                v = v @ vectors
                squares = jnp.maximum(jnp.sum(v**2, axis=1, keepdims=True), 1e-300)
                columns = v * jnp.sqrt(jnp.maximum(values - 1.0, 0.0))[:, None, :] / squares
            else:
                rest = jnp.maximum(1.0 - 1.0 / jnp.maximum(values, 1e-300), 0.0)
                columns = wide @ vectors * jnp.sqrt(rest)[:, None, :]
            columns = columns.transpose(1, 0, 2).reshape(n, -1)
            current = current + columns @ columns.T
            pieces.append(columns)
        return current, jnp.concatenate(pieces, axis=1)

    entries = (jnp.arange(priors), jnp.asarray(members), jnp.asarray(mask, noise.dtype))
    lifted, columns = jax.lax.scan(one_prior, noise, entries)
    return lifted, columns.transpose(1, 0, 2).reshape(n, -1)


def _factorised(a: Float[Array, "m m"]) -> Float[Array, "m m"]:
    """The lower Cholesky factor of a plus rounding: 4e-15 of its mean eigenvalue on the diagonal."""
    m = a.shape[0]
    return jnp.linalg.cholesky((a + a.T) / 2 + 4e-15 * jnp.trace(a) / m * jnp.eye(m, dtype=a.dtype))


def compress(*factors: Float[Array, "n _"]) -> Float[Array, "n q"]:
    """One factor for the sum of L L^T, columns orthogonal and in falling order of power, q = min(n, all columns)."""
    wide = jnp.concatenate(factors, axis=1)
    n, q = wide.shape
    if q >= n:
        values, vectors = jnp.linalg.eigh(wide @ wide.T)
        return (vectors * jnp.sqrt(jnp.maximum(values, 0.0)))[:, ::-1]
    _, vectors = jnp.linalg.eigh(wide.T @ wide)
    return (wide @ vectors)[:, ::-1]
