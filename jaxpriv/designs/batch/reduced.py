"""A basic secret under several priors, reduced to few directions: what is prepared once for a problem.

The noise is G = eta I + V V', V = Q B with Q (n, r) orthonormal. With N_j = Sigma_j + eta I, A_j = Q'N_j^-1 Q and
w_j = Q'(e - eta N_j^-1 e), the posterior variance of the secret under prior j is

    P_j(B) = eta - eta^2 (N_j^-1)_ee + c'(I + B'A_j B)^-1 c,        c = B'w_j,

a sum of non-negative terms in which nothing of the size n is factorised. (Woodbury's identity on both sides of the
secret; proof in docs/batches.md.)
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float, Int

from jaxpriv.designs.batch.closed_form import direction
from jaxpriv.linalg.ordering import after


DIRECTIONS = 18  # r: columns of Q
COLUMNS = 6  # of B: the noise has at most as many directions as active priors, which are few
_SPREAD = 1e-14  # weight of the mean prior's own directions against those of designs


def singles(
    covariance: Float[Array, "p n n"], position: Int[Array, ""], power: Float[Array, ""]
) -> tuple[Float[Array, "n p"]]:
    """The directions of the best noise under each prior alone."""
    return (jax.vmap(direction, in_axes=(0, None, None), out_axes=1)(covariance, position, power),)


def reduce(
    covariance: Float[Array, "p n n"],
    position: Int[Array, ""],
    mask: Bool[Array, " n"],
    floor: Float[Array, ""],
    columns: Float[Array, "n q"],
    factor: Float[Array, "n J"],
    power: Float[Array, ""],
) -> tuple[Array, ...]:
    """Q (n, r), A (p, r, r), w (p, r), the constant parts (p,) of P, T (r, r), and a B to start from (r, J).

    `columns` are directions that Q should contain; `factor` is a design to start from, or zero.
    """
    n = covariance.shape[-1]
    secret = jnp.zeros(n, covariance.dtype).at[position].set(1.0)
    mean = jnp.where(mask[:, None] & mask[None, :], jnp.mean(covariance, axis=0), 0.0)
    wanted = jnp.concatenate([columns, secret[:, None]], axis=1)
    values, vectors = jnp.linalg.eigh(wanted @ wanted.T + _SPREAD * mean / jnp.trace(mean))
    r = min(DIRECTIONS, n)
    basis = jnp.where(mask[:, None], vectors[:, ::-1][:, :r], 0.0)
    identity = jnp.eye(n, dtype=covariance.dtype)
    shifted = after(covariance, vectors) + floor * identity
    factors = jnp.linalg.cholesky(shifted)
    right = jnp.broadcast_to(jnp.concatenate([basis, secret[:, None]], axis=1), (covariance.shape[0], n, r + 1))
    half = solve_triangular(factors, right, lower=True)
    inner = jnp.einsum("pia,pib->pab", half, half)
    gram, along, own = inner[:, :r, :r], inner[:, :r, r], inner[:, r, r]
    weight = basis[position][None, :] - floor * along
    # Coordinates X with B = T X in which the priors' information about every direction is about the same: a prior that
    # is sure of a direction to a thousandth of the rest needs as much less noise there.
    information = jnp.linalg.cholesky(after(jnp.mean(gram, axis=0), gram) + jnp.eye(r, dtype=gram.dtype) / power)
    half_way = solve_triangular(information, jnp.eye(r, dtype=gram.dtype), lower=True).T
    given = basis.T @ factor
    count = min(COLUMNS, r)
    fresh = jnp.zeros((r, COLUMNS)).at[:count, :count].set(jnp.diag(jnp.sqrt(jnp.maximum(values[::-1][:count], 1e-6))))
    start = jnp.where(jnp.sum(given**2) > 0.0, given, fresh)
    return basis, gram, weight, floor - floor**2 * own, half_way, start


def losses_of(
    gram: Float[Array, "p r r"],
    weight: Float[Array, "p r"],
    constant: Float[Array, " p"],
    inverse: Float[Array, " p"],
    noise: Float[Array, "r J"],
) -> tuple[Float[Array, " p"], Float[Array, "p r J"]]:
    """The losses 1/P_j − 1/s_j and their gradients in B; `inverse` is 1/s_j."""
    image = jnp.einsum("pab,bj->paj", gram, noise)
    c = weight @ noise
    inner = jnp.eye(noise.shape[1], dtype=noise.dtype) + jnp.einsum("aj,pak->pjk", noise, image)
    solved = _solve_small(inner, c)
    posterior = constant + jnp.sum(c * solved, axis=1)
    a = weight - jnp.einsum("paj,pj->pa", image, solved)
    loss = 1.0 / posterior - inverse
    gradient = (-2.0 / posterior**2)[:, None, None] * a[:, :, None] * solved[:, None, :]
    return loss, gradient


def _solve_small(matrix: Float[Array, "p J J"], right: Float[Array, "p J"]) -> Float[Array, "p J"]:
    """Gauss–Jordan without pivoting, for positive definite matrices: no LAPACK call, and vectorised over a batch."""
    size = matrix.shape[-1]

    def eliminate(k, table):
        row = jax.lax.dynamic_index_in_dim(table, k, 1, keepdims=False)
        row = row / jax.lax.dynamic_index_in_dim(row, k, 1, keepdims=True)
        column = jax.lax.dynamic_index_in_dim(table, k, 2, keepdims=False)
        here = (jnp.arange(size) == k)[None, :, None]
        return jnp.where(here, row[:, None, :], table - column[:, :, None] * row[:, None, :])

    table = jnp.concatenate([matrix, right[:, :, None]], axis=2)
    return jax.lax.fori_loop(0, size, eliminate, table)[:, :, size]
