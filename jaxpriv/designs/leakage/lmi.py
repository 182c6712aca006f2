"""Leakage as a matrix inequality: the posterior covariance at least κ times the prior's, which is a floor on the noise.

Theorem 3.6 of Liu, Kawano and Cao (arXiv:2511.10771): with κ_l(ε, δ) = exp((q_l(δ) − 2ε)/l) the condition Γ ⪰ κ Σ
suffices for (ε, δ)-pointwise maximal leakage, and for l = 1 it is also necessary. Its Schur complement is a floor, so
the least noise is a positive part, and floors of several notions combine through the majorant. Pure JAX.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxpriv.designs.spectral import Weights, unweighted, weight_root
from jaxpriv.floors.cip import infinite_unless
from jaxpriv.linalg.cholesky import cholesky, cholesky_solve
from jaxpriv.linalg.spectral import positive_part, symmetric
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.collection import AnySecret
from jaxpriv.secrets.conditional import conditional
from jaxpriv.shapes import Scalar


def leakage_floor(
    secret: Float[Array, "n n"],
    cross: Float[Array, "n m"],
    released: Float[Array, "m m"],
    information: Scalar,
    rank: int | None = None,
) -> Float[Array, "m m"]:
    """F with (ε, δ)-leakage of X through Z + N(0, Θ) wherever Θ ⪰ F: Σ_ZX Σ⁻¹ Σ_XZ / (1 − κ) − Σ_ZZ.

    Args:
        secret: Σ, the prior covariance of what is private.
        cross: Σ_XZ.
        released: Σ_ZZ, before the noise.
        information: τ = 2ε − q_l(δ) > 0; κ = exp(−τ/l).
        rank: l, an upper bound of the rank of Σ_XZ known from its structure; by default min(n, m). Larger is safe.

    Infinite where Σ is not positive definite.
    """
    rank = min(cross.shape) if rank is None else rank
    kept = -jnp.expm1(-jnp.asarray(information, secret.dtype) / rank)
    with jax.default_matmul_precision("highest"):
        factor, exists = cholesky(secret)
        explained = symmetric(cross.T @ cholesky_solve(factor, cross))
        return infinite_unless(exists, explained / kept - released)


def leakage_lmi_noise(
    secret: Float[Array, "n n"],
    cross: Float[Array, "n m"],
    released: Float[Array, "m m"],
    information: Scalar,
    *,
    rank: int | None = None,
    weights: Weights = None,
) -> Float[Array, "m m"]:
    """The noise of least tr(W Θ) above `leakage_floor`: W^−½ (W^½ F W^½)₊ W^−½."""
    floor = leakage_floor(secret, cross, released, information, rank)
    if weights is None:
        return positive_part(floor)
    with jax.default_matmul_precision("highest"):
        root = weight_root(weights)
        half = unweighted(positive_part(root @ floor @ root), weights)
        return symmetric(unweighted(half.T, weights))


def leakage_lmi_noise_linear(
    signal: Float[Array, "m m"], information: Scalar, rank: int | None = None
) -> Float[Array, "m m"]:
    """Corollary 3.7: for a release C X + noise the floor is K κ/(1 − κ) with K = C Σ Cᵀ the `signal`."""
    rank = signal.shape[0] if rank is None else rank
    return symmetric(signal) / jnp.expm1(jnp.asarray(information, signal.dtype) / rank)


def secret_leakage_floor(prior: Prior, secret: AnySecret, information: Scalar) -> Float[Array, "n n"]:
    """The floor for one secret T inside a released trace: H (Cov T + κ/(1 − κ) Cov T) Hᵀ − Σ, (n, n).

    It is the floor of conditional inferential privacy with I/t replaced by κ/(1 − κ) Cov T, so the two combine. For one
    number of variance v it is exact, and equal to that of the loss t = (e^τ − 1)/v. Derived here; proof in
    docs/leakage_designs.md.
    """
    parts = conditional(prior, secret)
    share = 1.0 / jnp.expm1(jnp.asarray(information, parts.residual.dtype) / parts.variance.shape[0])
    with jax.default_matmul_precision("highest"):
        floor = symmetric(parts.regression @ (share * parts.variance) @ parts.regression.T) - parts.residual
    return infinite_unless(parts.exists, floor)
