"""One prior and one secret coordinate, for many problems at once: the rank-one noise of least power or of a budget.

With X = (Sigma + mu I)^-1 Sigma e the noise mu u u', u = X / |X|, is optimal for its power mu, and leaves the posterior
variance P(mu) = mu X_S. For a target, P(mu) = sum_i q_i^2 d_i / (1 + d_i / mu) with Sigma = U diag(d) U', q = U'e, is
inverted by Newton's method on 1/P as a function of 1/mu, which is concave and increasing (a weighted harmonic mean), so
that the steps from 0 are monotone. (Derived here; proof in docs/batches.md.)
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float, Int

from jaxpriv.linalg.ordering import after


_STEPS = 14


def direction(covariance: Float[Array, "n n"], position: Int[Array, ""], power: Float[Array, ""]) -> Float[Array, " n"]:
    """The unit vector u ∝ (Σ + μ I)⁻¹ Σ e of the optimal noise of power μ."""
    shifted = covariance + power * jnp.eye(covariance.shape[0], dtype=covariance.dtype)
    factor = jnp.linalg.cholesky(shifted)
    half = solve_triangular(factor, covariance[:, position][:, None], lower=True)
    solved = solve_triangular(factor, half, lower=True, trans=1)[:, 0]
    return solved / jnp.linalg.norm(solved)


def for_target(
    covariance: Float[Array, "n n"], position: Int[Array, ""], loss: Float[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, " n"]]:
    """μ and u of the noise of least power whose loss is `loss`, without a floor."""
    values, vectors = jnp.linalg.eigh(covariance)
    values = jnp.maximum(values, 0.0)
    weights = vectors[position] ** 2
    wanted = loss + 1.0 / covariance[position, position]

    def step(_, x):
        share = weights * values / (1.0 + x * values)
        posterior = jnp.sum(share)
        slope = jnp.sum(share * values / (1.0 + x * values)) / posterior**2
        return x + jnp.maximum(wanted - 1.0 / posterior, 0.0) / slope

    x = jax.lax.fori_loop(0, _STEPS, step, jnp.zeros_like(wanted))
    power = 1.0 / jnp.maximum(x, jnp.finfo(x.dtype).tiny)
    return power, direction(after(covariance, vectors), position, power)


def for_budget(
    covariance: Float[Array, "n n"], position: Int[Array, ""], power: Float[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, " n"]]:
    """μ and u for a power that is given (the budget without the floor's part on the other coordinates)."""
    return power, direction(covariance, position, power)
