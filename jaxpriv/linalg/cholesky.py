"""Cholesky factors that say whether they exist, and solves that stay finite when they do not."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float


def cholesky(matrix: Float[Array, "n n"]) -> tuple[Float[Array, "n n"], Bool[Array, ""]]:
    """Lower factor of a symmetric matrix, and whether it is positive definite to working precision.

    Where it is not, the factor is the identity and carries no gradient, so that nothing computed from it is NaN; the
    caller decides what the failure means (an infinite loss, an error).
    """
    matrix = 0.5 * (matrix + matrix.T)
    exists = jnp.all(jnp.isfinite(jnp.linalg.cholesky(jax.lax.stop_gradient(matrix))))
    identity = jnp.eye(matrix.shape[0], dtype=matrix.dtype)
    return jnp.linalg.cholesky(jnp.where(exists, matrix, identity)), exists


def solve_lower(factor: Float[Array, "n n"], right: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """L⁻¹ B."""
    return solve_triangular(factor, right, lower=True)


def cholesky_solve(factor: Float[Array, "n n"], right: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """(L Lᵀ)⁻¹ B."""
    return solve_triangular(factor, solve_triangular(factor, right, lower=True), lower=True, trans=1)


def log_determinant(factor: Float[Array, "n n"]) -> Float[Array, ""]:
    """log |L Lᵀ|."""
    return 2.0 * jnp.sum(jnp.log(jnp.diagonal(factor)))
