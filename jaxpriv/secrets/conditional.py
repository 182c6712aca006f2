"""The prior split by a secret: what a shift of the secret moves, and what stays uncertain when it is known."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxpriv.linalg.cholesky import cholesky, cholesky_solve
from jaxpriv.linalg.spectral import symmetric
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.collection import AnySecret
from jaxpriv.secrets.secret import Secret


class Conditional(eqx.Module):
    """The law of the trace given a secret T: X | T ~ N(μ + H (T − μ_T), C).

    Attributes:
        regression: H = Cov(X, T) Cov(T)⁻¹, (n, k): how a shift of the secret moves the mean of every fix.
        residual: C = Σ − H Cov(T) Hᵀ, (n, n): the covariance that is left when the secret is known.
        variance: Cov(T), (k, k).
        exists: False where Cov(T) is singular to working precision (perfectly correlated secrets); H is then zero.
    """

    regression: Float[Array, "n k"]
    residual: Float[Array, "n n"]
    variance: Float[Array, "k k"]
    exists: Bool[Array, ""]


def conditional(prior: Prior, secret: AnySecret) -> Conditional:
    """H and C of Meehan and Chaudhuri (AISTATS 2021, section 3), for any linear secret.

    For fixes of the trace the rows S of H are the identity and the rows and columns S of C are zero, exactly; the rest
    of C is formed as Σ − H Bᵀ − B Hᵀ + H Cov(T) Hᵀ, in which the error of H counts only squared.
    Differentiable, and in the dtype of the caller.
    """
    cross, variance = (jnp.asarray(part) for part in secret.joint(prior))
    return _conditional(jnp.asarray(prior.covariance), cross, variance, _positions(secret))


def from_joint(
    covariance: Float[Array, "n n"],
    cross: Float[Array, "n k"],
    variance: Float[Array, "k k"],
    positions: Int[Array, " k"] | tuple[int, ...] | None = None,
) -> Conditional:
    """`conditional` from the arrays Σ, Cov(X, T) and Cov(T).

    `positions` says where the fixes are that T consists of, if it does; an array of them may be traced.
    """
    return _conditional(covariance, cross, variance, positions)


def _positions(secret: AnySecret) -> tuple[int, ...] | None:
    return secret.indices if isinstance(secret, Secret) else None


def _conditional(covariance, cross, variance, positions) -> Conditional:
    with jax.default_matmul_precision("highest"):
        factor, exists = cholesky(variance)
        regression = jnp.where(exists, cholesky_solve(factor, cross.T).T, 0.0)
        if positions is not None:
            rows = jnp.asarray(positions)
            regression = regression.at[rows].set(jnp.eye(rows.shape[0], dtype=regression.dtype))
        shared = regression @ cross.T
        residual = symmetric(covariance - shared - shared.T + regression @ variance @ regression.T)
        if positions is not None:
            residual = residual.at[rows, :].set(0.0).at[:, rows].set(0.0)
    return Conditional(regression, residual, variance, exists)
