"""The floor of a secret: noise is private enough exactly when its covariance dominates it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxpriv.linalg.spectral import symmetric
from jaxpriv.losses.renyi import check_order
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.collection import AnySecret
from jaxpriv.secrets.conditional import Conditional, conditional
from jaxpriv.shapes import Scalar


def target_loss(epsilon: Scalar, secret: AnySecret, order: Scalar = 2.0) -> Float[Array, ""]:
    """t = 2ε/(λ s r²): the largest λ_max(M) that gives at most `epsilon` nats at order λ, in inverse squared units."""
    check_order(order, above=1.0)
    radius = jnp.asarray(secret.radius)
    return 2.0 * jnp.asarray(epsilon) / (jnp.asarray(order) * secret.n_times * radius**2)


def cip_floor(prior: Prior, secret: AnySecret, loss: Scalar) -> Float[Array, "n n"]:
    """F(t) = H Hᵀ/t − C, (n, n): λ_max(M) ≤ t ⇔ G ⪰ F(t), for every G. Proof in docs/design.md.

    F has exactly k positive eigenvalues when the secret consists of fixes, and at most k otherwise.
    """
    parts = conditional(prior, secret)
    return infinite_unless(parts.exists, floor_of_parts(parts, jnp.asarray(loss)))


def infinite_unless(exists: Bool[Array, ""], matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The matrix, or ∞ on the diagonal where the secret's own covariance is singular and nothing is known to do."""
    return jnp.where(exists, matrix, jnp.diag(jnp.full(matrix.shape[0], jnp.inf, matrix.dtype)))


def floor_of_parts(parts: Conditional, loss: Float[Array, ""]) -> Float[Array, "n n"]:
    """`cip_floor` from the conditional prior."""
    with jax.default_matmul_precision("highest"):
        return symmetric(parts.regression @ parts.regression.T / loss - parts.residual)
