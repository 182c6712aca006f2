"""Conditional inferential privacy: the loss of a secret under a prior."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxpriv.errors import InputError
from jaxpriv.linalg.cholesky import cholesky, solve_lower
from jaxpriv.linalg.spectral import largest_eigenvalue
from jaxpriv.losses.compound import Bound, mu_squared_of_gain
from jaxpriv.losses.precision_gain import Noise, precision_gain
from jaxpriv.losses.renyi import check_order
from jaxpriv.mechanisms.gaussian import noise_covariance
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.collection import AnySecret
from jaxpriv.secrets.conditional import conditional
from jaxpriv.secrets.secret import Secret
from jaxpriv.shapes import Scalar


def mu_squared(prior: Prior, secret: AnySecret, noise: Noise, bound: Bound = "ball") -> Float[Array, ""]:
    """μ² = sup Δᵀ M Δ over the pairs of hypotheses: the secret's pairs are exactly μ-Gaussian-differentially private.

    The Rényi loss of every order λ is λ μ²/2, the Kullback–Leibler loss μ²/2, and the log-odds of a pair are normal
    with variance μ²; `gaussian_delta` is the resulting curve. `bound` says how the supremum over a compound secret is
    bounded (`mu_squared_of_gain`). A design depends on the order only through ε/λ.
    """
    return mu_squared_of_gain(precision_gain(prior, secret, noise), secret.radius, secret.n_times, bound)


def cip_loss(
    prior: Prior, secret: AnySecret, noise: Noise, order: Scalar = 2.0, bound: Bound = "ball"
) -> Float[Array, ""]:
    """ε = (λ/2) s r² λ_max(M) in nats: the (ε, λ)-conditional inferential privacy of a secret.

    Theorem 3.4 of Meehan and Chaudhuri (AISTATS 2021), evaluated by the precision gain and therefore valid for every
    noise covariance; the formula that the paper prints, 1/σ_s² + α*, holds only where the noise of the secret is
    white and independent of the rest, and under-reports otherwise.

    Cautions. A guarantee for several times implies each single one only where variances are equal and times are
    correlated at most fully; the reverse never holds: evaluate every secret that matters. For independent coordinates
    the loss is the largest of the coordinates' losses under "ball", but not under "product" or "exact", where one D
    must serve all coordinates of a time. The ε of several releases of one trace do not add: evaluate them jointly.

    Differentiable and computed in the dtype of the caller: an estimate. `certify` gives the number to publish.
    """
    check_order(order, above=1.0)
    return 0.5 * jnp.asarray(order) * mu_squared(prior, secret, noise, bound)


class LossTerms(eqx.Module):
    """The two parts of Lemma 3.2, in inverse squared units of the trace.

    Attributes:
        direct: 1/σ_s², what the published secret coordinates say by themselves.
        inferential: α*, what the other coordinates say through the prior.
    """

    direct: Float[Array, ""]
    inferential: Float[Array, ""]

    @property
    def total(self) -> Float[Array, ""]:
        """1/σ_s² + α*."""
        return self.direct + self.inferential


def direct_and_inferential(prior: Prior, secret: Secret, noise: Noise) -> LossTerms:
    """Lemma 3.2 and Theorem 3.4 of Meehan and Chaudhuri (AISTATS 2021) as printed.

    The terms are λ_max(G_SS⁻¹) and λ_max(Aᵀ(C_UU + G_UU)⁻¹A), with A the rows of H outside the secret.

    Their sum is an upper bound of λ_max(M) only where the noise of the secret is independent of the noise of the rest.

    Raises:
        InputError: a secret that is not made of fixes.
        RuntimeError: noise that couples the secret with the rest (also under `eqx.filter_jit`): the printed formula
            would under-report; use `precision_gain`.
    """
    if not isinstance(secret, Secret):
        raise InputError("the printed formula is about fixes of the trace; use precision_gain for other secrets.")
    parts = conditional(prior, secret)
    matrix = jnp.asarray(noise_covariance(noise))
    inside = jnp.array(secret.indices)
    outside = jnp.array([i for i in range(prior.size) if i not in set(secret.indices)], dtype=int)
    with jax.default_matmul_precision("highest"):
        own, own_exists = cholesky(matrix[inside][:, inside])
        inverse = solve_lower(own, jnp.eye(secret.size, dtype=matrix.dtype))
        direct = jnp.where(own_exists, largest_eigenvalue(inverse.T @ inverse), jnp.inf)
        if outside.size == 0:
            return LossTerms(direct, jnp.zeros_like(direct))
        coupled = jnp.any(matrix[inside][:, outside] != 0.0)
        direct = eqx.error_if(
            direct,
            coupled,
            "the noise of the secret is correlated with the rest of the noise: the printed formula does not bound the "
            "loss. Use precision_gain or cip_loss.",
        )
        rest, rest_exists = cholesky((parts.residual + matrix)[outside][:, outside])
        whitened = solve_lower(rest, parts.regression[outside])
        inferential = jnp.where(rest_exists & parts.exists, largest_eigenvalue(whitened.T @ whitened), jnp.inf)
    return LossTerms(direct, inferential)
