"""The loss against an adversary whose prior is not the one the noise was designed for."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxpriv.errors import InputError
from jaxpriv.linalg.cholesky import cholesky, solve_lower
from jaxpriv.linalg.spectral import largest_eigenvalue, symmetric
from jaxpriv.losses.cip import cip_loss
from jaxpriv.losses.precision_gain import Noise
from jaxpriv.losses.renyi import check_order, renyi_gaussian
from jaxpriv.mechanisms.gaussian import noise_covariance
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.collection import AnySecret
from jaxpriv.secrets.conditional import conditional
from jaxpriv.shapes import Scalar


def misspecified_bound(
    order: Scalar,
    divergence_2: Scalar,
    divergence_4: Scalar,
    epsilon: Scalar,
) -> Float[Array, ""]:
    """Theorem 3.3 of Meehan and Chaudhuri (AISTATS 2021), in nats, for order λ > 1.

    ε'(λ) = (λ−½)/(λ−1) Δ(2λ) + Δ(4λ−3) + (2λ−3/2)/(2λ−2) ε(4λ−2), where Δ is the Rényi divergence between the
    true and the assumed law of the release given the secret (`divergence_2` at order 2λ, true against assumed;
    `divergence_4` at order 4λ−3, assumed against true) and ε the loss under the assumed prior at order 4λ−2.
    """
    check_order(order, above=1.0)
    order = jnp.asarray(order)
    return (
        (order - 0.5) / (order - 1.0) * divergence_2
        + divergence_4
        + (2.0 * order - 1.5) / (2.0 * order - 2.0) * epsilon
    )


class MisspecifiedLoss(eqx.Module):
    """The loss of a secret under a prior other than the assumed one, in nats.

    Attributes:
        bound: the value of Theorem 3.3.
        exact: the loss evaluated under the true prior itself, which for Gaussian priors is exact and far smaller.
    """

    bound: Float[Array, ""]
    exact: Float[Array, ""]


def misspecified_loss(
    assumed: Prior, true: Prior, secret: AnySecret, noise: Noise, order: Scalar = 2.0
) -> MisspecifiedLoss:
    """Theorem 3.3 for two Gaussian priors, beside the exact loss under the true one.

    The divergences are taken between the laws of the release given the secret, which data processing makes no larger
    than those of the trace. The class of assumed priors contains every mean, so its mean is matched at the first
    hypothesis: Δ(2λ) has no mean difference, and Δ(4λ−3) has (H_true − H_assumed)Δ, which is bounded over the
    hypotheses. (Over all values of the secret at once the divergence is infinite as soon as the regressions differ.)
    """
    check_order(order, above=1.0)
    if assumed.size != true.size:
        raise InputError(f"the priors have {assumed.size} and {true.size} coordinates.")
    matrix = jnp.asarray(noise_covariance(noise))
    first, second = conditional(true, secret), conditional(assumed, secret)
    true_law, assumed_law = first.residual + matrix, second.residual + matrix
    order = jnp.asarray(order)
    no_shift = jnp.zeros(assumed.size, matrix.dtype)
    divergence_2 = renyi_gaussian(no_shift, true_law, assumed_law, 2.0 * order)
    shift = first.regression - second.regression
    mixed_order = 4.0 * order - 3.0
    factor, exists = cholesky(symmetric(mixed_order * true_law + (1.0 - mixed_order) * assumed_law))
    whitened = solve_lower(factor, shift)
    reach = secret.n_times * jnp.asarray(secret.radius, matrix.dtype) ** 2
    quadratic = jnp.where(exists, 0.5 * mixed_order * reach * largest_eigenvalue(whitened.T @ whitened), jnp.inf)
    divergence_4 = renyi_gaussian(no_shift, assumed_law, true_law, mixed_order) + quadratic
    epsilon = cip_loss(assumed, secret, noise, 4.0 * order - 2.0)
    bound = misspecified_bound(order, divergence_2, divergence_4, epsilon)
    return MisspecifiedLoss(
        jnp.where(first.exists & second.exists, bound, jnp.inf), cip_loss(true, secret, noise, order)
    )
