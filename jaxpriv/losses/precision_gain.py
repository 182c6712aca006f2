"""What a release adds to an adversary's precision about a secret."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from jaxpriv.errors import InputError
from jaxpriv.linalg.cholesky import cholesky, cholesky_solve, solve_lower
from jaxpriv.linalg.spectral import symmetric
from jaxpriv.mechanisms.gaussian import GaussianMechanism, noise_covariance
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.collection import AnySecret
from jaxpriv.secrets.conditional import Conditional, conditional


Noise = GaussianMechanism | Float[Array | np.ndarray, "n n"]


def precision_gain(prior: Prior, secret: AnySecret, noise: Noise) -> Float[Array, "k k"]:
    """M = Hᵀ (C + G)⁻¹ H = P_SS⁻¹ − Σ_SS⁻¹, (k, k), in inverse squared units of the secret.

    For Δ the difference of two hypotheses about the secret, the Rényi divergence of order λ between the two laws of
    the release is (λ/2) Δᵀ M Δ, whatever the noise covariance G (derived here; Meehan and Chaudhuri, AISTATS 2021,
    state it for block noise). Proof in docs/design.md.

    Infinite on the diagonal where C + G or the secret's own covariance is singular to working precision: something
    about the secret may then be published exactly. Never NaN for finite input. Differentiable in the prior, the secret
    and the noise, in the dtype of the caller; use `certify` for a number that may be published.
    """
    covariance = jnp.asarray(noise_covariance(noise))
    if covariance.shape != (prior.size, prior.size):
        raise InputError(f"the noise has shape {covariance.shape} for a trace of {prior.size} coordinates.")
    return gain(conditional(prior, secret), covariance)


def gain(parts: Conditional, noise: Float[Array, "n n"]) -> Float[Array, "k k"]:
    """`precision_gain` from the conditional prior and the noise covariance."""
    with jax.default_matmul_precision("highest"):
        factor, exists = cholesky(parts.residual + noise)
        whitened = solve_lower(factor, parts.regression)
        matrix = symmetric(whitened.T @ whitened)
        exists = exists & parts.exists & jnp.all(jnp.isfinite(matrix))
        infinite = jnp.diag(jnp.full(matrix.shape[0], jnp.inf, matrix.dtype))
        return jnp.where(exists, jnp.where(exists, matrix, 0.0), infinite)


class Posterior(eqx.Module):
    """What an adversary who knows prior and mechanism believes after seeing the release z.

    Attributes:
        covariance: P, (n, n), in squared units of the trace; sqrt(P_ii) is the half-width of the 68 % interval.
        gain: K, (n, n): the posterior mean is μ + K (z − μ).
    """

    covariance: Float[Array, "n n"]
    gain: Float[Array, "n n"]


def posterior(prior: Prior, noise: Noise) -> Posterior:
    """The law of the trace given the release: P = Σ − Σ (Σ + G)⁻¹ Σ, formed so that it is positive semidefinite.

    Raises:
        InputError: prior and noise of different sizes, or Σ + G singular to working precision (outside jit).
    """
    covariance, noise_matrix = jnp.asarray(prior.covariance), jnp.asarray(noise_covariance(noise))
    if covariance.shape != noise_matrix.shape:
        raise InputError(f"the noise has shape {noise_matrix.shape} for a trace of {prior.size} coordinates.")
    with jax.default_matmul_precision("highest"):
        factor, exists = cholesky(covariance + noise_matrix)
        if not isinstance(exists, Tracer) and not bool(exists):
            raise InputError(
                "prior plus noise is singular to working precision; the posterior is not defined. Add a floor."
            )
        transfer = cholesky_solve(factor, covariance).T
        rest = jnp.eye(prior.size, dtype=covariance.dtype) - transfer
        # Joseph's form: two squares, so rounding cannot make a variance negative.
        matrix = symmetric(rest @ covariance @ rest.T + transfer @ noise_matrix @ transfer.T)
    return Posterior(matrix, transfer)
