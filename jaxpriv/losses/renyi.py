"""Rényi divergences of Gaussians and of discrete distributions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxpriv.errors import InputError
from jaxpriv.linalg.cholesky import cholesky, log_determinant, solve_lower
from jaxpriv.linalg.spectral import symmetric
from jaxpriv.shapes import Scalar


def check_order(order: Scalar, above: float = 0.0) -> None:
    """Refuse a Rényi order that is not a number above `above`, or is 1. Traced orders pass unchecked."""
    if isinstance(order, (int, float)) and not (above < order < float("inf") and order != 1.0):
        raise InputError(f"order is {order}; expected a finite Rényi order above {above:g}, other than 1.")


def renyi_equal_covariance(
    difference: Float[Array, " n"], covariance: Float[Array, "n n"], order: Scalar
) -> Float[Array, ""]:
    """D_λ(N(m, V) ‖ N(0, V)) = (λ/2) mᵀ V⁻¹ m in nats (Meehan and Chaudhuri, AISTATS 2021, equation 2).

    Infinite where V is not positive definite to working precision.
    """
    check_order(order)
    with jax.default_matmul_precision("highest"):
        factor, exists = cholesky(jnp.asarray(covariance))
        whitened = solve_lower(factor, jnp.asarray(difference)[:, None])[:, 0]
        return jnp.where(exists, 0.5 * order * jnp.sum(whitened**2), jnp.inf)


def renyi_gaussian(
    mean_difference: Float[Array, " n"],
    covariance_1: Float[Array, "n n"],
    covariance_2: Float[Array, "n n"],
    order: Scalar,
) -> Float[Array, ""]:
    """D_λ(N(m, V₁) ‖ N(0, V₂)) in nats, λ > 0, λ ≠ 1; `kl_gaussian` is its limit at 1.

    With V_* = λ V₂ + (1−λ) V₁ the divergence is (λ/2) mᵀ V_*⁻¹ m − log(|V_*| |V₁|^(λ−1) |V₂|^(−λ)) / (2(λ−1)), finite
    for λ > 1 exactly when V_* is positive definite (Gil, Alajaji and Linder, 2013). Both covariances must be positive
    definite; the value is infinite where one of the three is not, to working precision.
    """
    check_order(order)
    order = jnp.asarray(order)
    first, second = symmetric(jnp.asarray(covariance_1)), symmetric(jnp.asarray(covariance_2))
    with jax.default_matmul_precision("highest"):
        mixed, mixed_exists = cholesky(order * second + (1.0 - order) * first)
        factor_1, exists_1 = cholesky(first)
        factor_2, exists_2 = cholesky(second)
        whitened = solve_lower(mixed, jnp.asarray(mean_difference)[:, None])[:, 0]
        logs = log_determinant(mixed) + (order - 1.0) * log_determinant(factor_1) - order * log_determinant(factor_2)
        value = 0.5 * order * jnp.sum(whitened**2) - 0.5 * logs / (order - 1.0)
        # Rounding may take a divergence of nearly equal laws below its least value.
        return jnp.where(mixed_exists & exists_1 & exists_2, jnp.maximum(value, 0.0), jnp.inf)


def kl_gaussian(
    mean_difference: Float[Array, " n"], covariance_1: Float[Array, "n n"], covariance_2: Float[Array, "n n"]
) -> Float[Array, ""]:
    """KL(N(m, V₁) ‖ N(0, V₂)) in nats; infinite where a covariance is not positive definite to working precision."""
    first = symmetric(jnp.asarray(covariance_1))
    with jax.default_matmul_precision("highest"):
        factor_1, exists_1 = cholesky(first)
        factor_2, exists_2 = cholesky(jnp.asarray(covariance_2))
        whitened = solve_lower(factor_2, jnp.asarray(mean_difference)[:, None])[:, 0]
        ratio = solve_lower(factor_2, factor_1)
        value = 0.5 * (
            jnp.sum(ratio**2)
            - first.shape[0]
            + jnp.sum(whitened**2)
            + log_determinant(factor_2)
            - log_determinant(factor_1)
        )
        return jnp.where(exists_1 & exists_2, jnp.maximum(value, 0.0), jnp.inf)


def renyi_discrete(p: Float[Array, " m"], q: Float[Array, " m"], order: Scalar) -> Float[Array, ""]:
    """D_λ(p ‖ q) = log Σ p^λ q^(1−λ) / (λ−1) in nats for probability vectors, λ > 0, λ ≠ 1.

    Outcomes with p = 0 count nothing. An outcome with p > 0 and q = 0 makes the value infinite for λ > 1 and counts
    nothing for λ < 1, where the value is infinite only if no outcome is shared. Computed in logarithms.
    """
    check_order(order)
    p, q = jnp.asarray(p), jnp.asarray(q)
    shared = (p > 0.0) & (q > 0.0)
    log_p = jnp.log(jnp.where(shared, p, 1.0))
    log_q = jnp.log(jnp.where(shared, q, 1.0))
    terms = order * log_p + (1.0 - order) * log_q
    any_shared = jnp.any(shared)
    # With nothing shared the sum is taken over harmless terms, so that its derivative is 0 and not NaN.
    total = jax.scipy.special.logsumexp(terms, b=jnp.where(any_shared, shared, True).astype(terms.dtype))
    value = jnp.maximum(total / (order - 1.0), 0.0)
    impossible = jnp.any((p > 0.0) & (q == 0.0)) & (jnp.asarray(order) > 1.0)
    return jnp.where(any_shared & ~impossible, value, jnp.inf)
