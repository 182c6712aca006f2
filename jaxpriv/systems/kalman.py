"""The error covariance of the best estimator of a state from noisy outputs: predicted, filtered and smoothed."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxpriv.errors import InputError
from jaxpriv.linalg.cholesky import cholesky, solve_lower
from jaxpriv.linalg.lyapunov import is_stable
from jaxpriv.linalg.ordering import after
from jaxpriv.linalg.riccati import discrete_riccati, updated
from jaxpriv.linalg.spectral import symmetric
from jaxpriv.priors.state_space import LinearSystem


class KalmanCovariances(eqx.Module):
    """Cov(x_k | outputs), (n, n) in the steady state or (T, n, n) over a horizon, in squared units of the state.

    Attributes:
        predicted: P⁻, given the outputs before time k.
        filtered: P, given the outputs up to time k.
        smoothed: P_s, given the outputs up to time k and all later ones.
    """

    predicted: Float[Array, "*steps n n"]
    filtered: Float[Array, "*steps n n"]
    smoothed: Float[Array, "*steps n n"]


def output_precision(system: LinearSystem, noise: Float[Array | np.ndarray, "m m"]) -> Float[Array, "n n"]:
    """G = Cᵀ Θ⁻¹ C, the information of one output y = C x + v about its state; NaN where Θ is not positive definite."""
    C, noise = jnp.asarray(system.C), jnp.asarray(noise)
    if noise.shape != (C.shape[0], C.shape[0]):
        raise InputError(f"noise has shape {noise.shape}; expected {(C.shape[0], C.shape[0])}, one row an output.")
    with jax.default_matmul_precision("highest"):
        factor, exists = cholesky(noise)
        whitened = solve_lower(factor, C)
        return jnp.where(exists, symmetric(whitened.T @ whitened), jnp.nan)


def steady_state(system: LinearSystem, noise: Float[Array | np.ndarray, "m m"]) -> KalmanCovariances:
    """The three covariances for outputs without beginning or end, y_k = C x_k + v_k with Cov v = Θ = `noise`.

    P⁻ and the information N in the outputs from time k on solve two dual Riccati equations, and P_s = (P⁻⁻¹ + N)⁻¹;
    Q may be singular. The smoothed form is derived here (docs/linear_systems.md); it agrees with P⁻¹ + P_b⁻⁻¹ − Σ⁻¹
    of the time-reversed filter. Differentiable by the implicit function theorem, under jit and vmap.

    Zero, which no bound on a loss exceeds, where the noise is singular to working precision or A is not stable.
    """
    A, Q = jnp.asarray(system.A), jnp.asarray(system.Q)
    information = output_precision(system, noise)
    usable = jnp.all(jnp.isfinite(information)) & is_stable(jax.lax.stop_gradient(A))
    # The second `where` keeps what is not usable away from the derivatives.
    A, information = jnp.where(usable, A, 0.0), jnp.where(usable, information, 0.0)
    predicted = discrete_riccati(A, information, Q)
    filtered = updated(predicted, information)
    ahead = discrete_riccati(after(A, filtered).T, Q, information)
    smoothed = updated(predicted, ahead)
    kept = (jnp.where(usable, one, 0.0) for one in (predicted, filtered, smoothed))
    return KalmanCovariances(*kept)


def finite_horizon(
    system: LinearSystem,
    noise: Float[Array | np.ndarray, "m m"],
    steps: int,
    initial: Float[Array | np.ndarray, "n n"] | None = None,
) -> KalmanCovariances:
    """The three covariances at the times 0, …, T − 1 of outputs that begin at 0 and end at T − 1, (T, n, n) each.

    `initial` is Cov x_0 before any output; the stationary covariance by default. A may be unstable if it is given.
    Zero, as in `steady_state`, where the noise is singular or there is no stationary covariance.
    """
    if isinstance(steps, bool) or steps < 1:
        raise InputError(f"steps is {steps!r}; expected the number of outputs, at least 1.")
    A, Q = jnp.asarray(system.A), jnp.asarray(system.Q)
    start = system.stationary if initial is None else jnp.asarray(initial)
    information = output_precision(system, noise)
    usable = jnp.all(jnp.isfinite(information)) & jnp.all(jnp.isfinite(start))
    start, information = jnp.where(usable, start, 0.0), jnp.where(usable, information, 0.0)

    def forward(predicted, _):
        filtered = updated(predicted, information)
        return symmetric(A @ filtered @ A.T + Q), (predicted, filtered)

    def backward(ahead, predicted):
        smoothed = updated(predicted, ahead)
        earlier = A.T @ updated(after(ahead, smoothed), Q) @ A + information
        return symmetric(earlier), smoothed

    with jax.default_matmul_precision("highest"):
        _, (predicted, filtered) = jax.lax.scan(forward, start, None, length=steps)
        _, smoothed = jax.lax.scan(backward, information, predicted, reverse=True)
    kept = (jnp.where(usable, one, 0.0) for one in (predicted, filtered, smoothed))
    return KalmanCovariances(*kept)
