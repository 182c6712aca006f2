"""Suppression: withholding the outputs that say too much makes the leakage bound hold for every output.

A Gaussian release leaks I + ½ξ(y) with ξ ~ χ²_l, unbounded. Withholding the outputs with ½ξ(y) > t, where
t = min(ε − I, ½ q_l(e^−ε)), leaves at most ε at every output that is sent, and makes the message "withheld" so likely,
e^−ε at least, that it says at most ε too. What results is ε-leakage without δ, kept by every later processing, for any
noise and any ε. Derived here; proof in docs/leakage_designs.md.

Never draw again instead of withholding: that multiplies the density by 1/P(sent | x), which is unbounded.
"""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from scipy.special import chdtrc
from scipy.stats import chi2

from jaxpriv.certificates.arithmetic import float64_array, symmetric_array
from jaxpriv.certificates.release_leakage import release_leakage
from jaxpriv.errors import InputError
from jaxpriv.linalg.cholesky import cholesky, solve_lower


class SuppressedGaussian(eqx.Module):
    """C X + N(0, Θ), withheld where it would leak more than ε about X.

    Attributes:
        matrix: C, (m, n), of full row rank m.
        noise: Θ, (m, m), positive definite.
        output: C Σ Cᵀ + Θ, (m, m).
        signal: C Σ Cᵀ, (m, m).
        epsilon: nats; what every output leaks at most, the message "withheld" included.
        information: I, nats.
        threshold: t; an output y is sent when ½ξ(y) ≤ t. Not positive: nothing is ever sent.
    """

    matrix: Float[Array, "m n"]
    noise: Float[Array, "m m"]
    signal: Float[Array, "m m"]
    epsilon: float = eqx.field(static=True)
    information: float = eqx.field(static=True)
    threshold: float = eqx.field(static=True)

    @property
    def output(self) -> Float[Array, "m m"]:
        """The covariance of the output before any is withheld."""
        return self.signal + self.noise

    @property
    def withheld(self) -> float:
        """P(⊥), the fraction of outputs that is withheld."""
        return float(chdtrc(self.matrix.shape[0], 2.0 * self.threshold)) if self.threshold > 0.0 else 1.0

    def surprise(self, output: Float[Array, " m"]) -> Float[Array, ""]:
        """ξ(y) = yᵀ (C Σ Cᵀ + Θ)⁻¹ y, for centred y: for a full row rank C all of the output tells something of X."""
        factor, _ = cholesky(self.output)
        whitened = solve_lower(factor, output[:, None])
        return jnp.sum(whitened * whitened)

    def simulate(self, key: PRNGKeyArray, x: Float[Array, " n"]) -> tuple[Float[Array, " m"], Array]:
        """One output and whether it is sent; a withheld output is all NaN.

        For studies: its floating-point normals are not the exact sampler that a publication needs.
        """
        root, _ = cholesky(self.noise)
        draw = jax.random.normal(key, (self.matrix.shape[0],), self.noise.dtype)
        output = self.matrix @ x + root @ draw
        sent = 0.5 * self.surprise(output) <= self.threshold
        return jnp.where(sent, output, jnp.nan), sent


def suppressed(matrix: Any, prior_covariance: Any, noise: Any, *, epsilon: float) -> SuppressedGaussian:
    """Withhold what leaks more than `epsilon` from the release of C X + N(0, Θ), X ~ N(·, Σ).

    Args:
        matrix: C, (m, n), of full row rank.
        prior_covariance: Σ, (n, n) positive definite.
        noise: Θ, (m, m) positive definite.
        epsilon: nats; any positive number is possible, only more is withheld.

    Raises:
        InputError: a shape or value is wrong, or C Σ Cᵀ or Θ is singular.
    """
    if not (isinstance(epsilon, (int, float)) and math.isfinite(epsilon) and epsilon > 0.0):
        raise InputError(f"epsilon is {epsilon!r}; expected a positive, finite leakage in nats.")
    prior = symmetric_array(prior_covariance, "prior_covariance")
    noise = symmetric_array(noise, "noise")
    matrix = float64_array(matrix, "matrix")
    if matrix.ndim != 2 or matrix.shape != (noise.shape[0], prior.shape[0]):
        raise InputError(f"matrix has shape {matrix.shape}; expected {(noise.shape[0], prior.shape[0])}.")
    signal = matrix @ prior @ matrix.T
    signal = 0.5 * (signal + signal.T)
    for name, value in (("matrix Σ matrixᵀ", signal), ("noise", noise)):
        if not np.linalg.eigvalsh(value)[0] > 64 * np.finfo(float).eps * len(value) * np.max(np.abs(value)):
            raise InputError(f"{name} is singular; send fewer rows, so that every direction carries noise and signal.")
    # An upper bound with directed rounding: an I that is too small would let outputs leak more than ε.
    information = release_leakage(prior, matrix, np.zeros((len(noise), 0)), noise).information
    if not math.isfinite(information):
        raise InputError("the information of the release could not be verified: the noise is too close to singular.")
    rank = matrix.shape[0]
    # A lower bound of the quantile keeps P(⊥) at e^−ε or above.
    quantile = 0.5 * float(chi2.isf(math.exp(-epsilon), rank)) * (1.0 - 1e-10) if epsilon < 700.0 else math.inf
    threshold = min(math.nextafter(epsilon - information, -math.inf), quantile)
    return SuppressedGaussian(
        jnp.asarray(matrix), jnp.asarray(noise), jnp.asarray(signal), float(epsilon), information, threshold
    )
