"""The least-noise node under the matrix inequality, in closed form; pure JAX, for vmap over nodes."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from jaxpriv.linalg.cholesky import cholesky
from jaxpriv.linalg.ordering import after
from jaxpriv.linalg.spectral import positive_part, symmetric
from jaxpriv.priors.state_space import LinearSystem
from jaxpriv.shapes import Scalar


class NodeSolution(eqx.Module):
    """Σ (n, n), Θ (m, m), the noise's cost tr(L Θ Lᵀ) and that of signal and noise, tr(L (C Σ Cᵀ + Θ) Lᵀ)."""

    stationary: Float[Array, "n n"]
    noise: Float[Array, "m m"]
    output_error: Float[Array, ""]
    total_error: Float[Array, ""]


def aggregation_node(
    system: LinearSystem,
    weights: Float[Array | np.ndarray, "q m"],
    information: Scalar,
    noise_floor: Float[Array | np.ndarray, "m m"],
) -> NodeSolution:
    """The optimum of min tr(L Θ Lᵀ), or of min tr(L (C Σ Cᵀ + Θ) Lᵀ), over Σ and Θ at one node.

    Subject to Σ ⪰ A Σ Aᵀ + Q̂, Q̂ ⪰ Q, Θ ⪰ Θ₀ and Θ ⪰ κ/(1 − κ) C Σ Cᵀ with κ = exp(−τ/m), τ = `information`: problem
    (35) of Liu, Kawano and Cao (arXiv:2511.10771), with general floors. Both errors increase with Σ, so that Q̂ = Q and
    Σ is the stationary covariance: adding disturbance never pays. Then Θ = Θ₀ + W^−½ (W^½ (κ/(1 − κ) C Σ Cᵀ − Θ₀)
    W^½)₊ W^−½ with W = LᵀL. Derived here; proof in docs/linear_systems.md.
    """
    stationary, signal = system.stationary, system.signal
    share = 1.0 / jnp.expm1(jnp.asarray(information) / signal.shape[0])
    with jax.default_matmul_precision("highest"):
        weights = jnp.asarray(weights)
        gram = symmetric(weights.T @ weights)
        factor, _ = cholesky(gram)
        # Any root of W serves: the least Θ in its coordinates is the positive part.
        lifted = positive_part(after(factor.T @ (share * signal - noise_floor) @ factor, factor))
        half = solve_triangular(factor, lifted, lower=True, trans=1)
        noise = symmetric(solve_triangular(factor, after(half.T, half), lower=True, trans=1) + noise_floor)
        output_error = jnp.trace(gram @ noise)
        return NodeSolution(stationary, noise, output_error, output_error + jnp.trace(gram @ signal))
