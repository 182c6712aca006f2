"""Leakage about a state, or about a whole trajectory, to an eavesdropper who keeps every output.

The guarantee (ε, δ) for a single output never covers a series: outputs before and after time k say more about x_k than
its own does. Derived here; proofs in docs/linear_systems.md. Everything is in nats and differentiable; ranks are static
upper bounds (Theorem 3.2 of Liu, Kawano and Cao, arXiv:2511.10771: too large is safe, too small under-reports).
"""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxpriv.errors import InputError
from jaxpriv.linalg.cholesky import cholesky, log_determinant
from jaxpriv.linalg.ordering import after
from jaxpriv.linalg.riccati import updated
from jaxpriv.pml.gaussian import additive_information
from jaxpriv.pml.profile import leakage_epsilon
from jaxpriv.priors.state_space import LinearSystem
from jaxpriv.shapes import Scalar
from jaxpriv.systems.kalman import finite_horizon, output_precision, steady_state


Observer = Literal["output", "filter", "smoother"]
"""Who listens: to the one output y_k; to all outputs up to k; or to all outputs, later ones included."""


def state_information(
    system: LinearSystem,
    noise: Float[Array | np.ndarray, "m m"],
    observer: Observer = "smoother",
    *,
    directions: Float[Array | np.ndarray, "k n"] | None = None,
    steps: int | None = None,
    time: int | None = None,
) -> Float[Array, ""]:
    """Mutual information of a state x_k and what the observer hears, ½ log(det Σ / det Cov(x_k | heard)), in nats.

    With `directions` B, of full row rank, about B x_k only (the temperature, say, and not its rate of change).

    Stationary and for outputs without beginning or end unless `steps` is given: then outputs 0, …, steps − 1 exist and
    k is `time` (the last by default for the filter, the middle for the smoother). Infinite where Σ or the remaining
    covariance is singular to working precision, or A is not stable.
    """
    if observer not in ("output", "filter", "smoother"):
        raise InputError(f"observer is {observer!r}; expected output, filter or smoother.")
    if observer == "output" and directions is None:
        return single_output_information(system, noise)
    if observer == "output":
        left = _after_one_output(system, noise)
    elif steps is None:
        covariances = steady_state(system, noise)
        left = covariances.filtered if observer == "filter" else covariances.smoothed
    else:
        position = (steps - 1 if observer == "filter" else steps // 2) if time is None else time
        if not 0 <= position < steps:
            raise InputError(f"time {position} is outside the horizon of {steps} outputs.")
        covariances = finite_horizon(system, noise, steps)
        left = (covariances.filtered if observer == "filter" else covariances.smoothed)[position]
    stationary = after(system.stationary, left)
    finite = jnp.all(jnp.isfinite(stationary))
    shown = (lambda one: one) if directions is None else (lambda one: _seen(jnp.asarray(directions), one))
    before, proper = cholesky(shown(jnp.where(finite, stationary, 0.0)))
    remaining, positive = cholesky(shown(after(left, before)))
    value = 0.5 * (log_determinant(before) - log_determinant(remaining))
    return jnp.where(finite & proper & positive, jnp.maximum(value, 0.0), jnp.inf)


def single_output_information(system: LinearSystem, noise: Float[Array | np.ndarray, "m m"]) -> Float[Array, ""]:
    """Mutual information of x_k and its own output alone, ½ log det(I + Θ⁻¹ C Σ Cᵀ), in nats."""
    signal = system.signal
    finite = jnp.all(jnp.isfinite(signal))
    value = additive_information(jnp.where(finite, signal, 0.0), jnp.asarray(noise))
    return jnp.where(finite, value, jnp.inf)


def state_leakage(
    system: LinearSystem,
    noise: Float[Array | np.ndarray, "m m"],
    delta: Scalar,
    observer: Observer = "smoother",
    *,
    rank: int | None = None,
    directions: Float[Array | np.ndarray, "k n"] | None = None,
    steps: int | None = None,
    time: int | None = None,
) -> Float[Array, ""]:
    """ε with P(leakage about x_k > ε) = δ for an observer of the outputs: `state_information` + q_r(δ)/2, in nats.

    Args:
        delta: averaged over the prior; for an unusual state the probability is far larger.
        rank: r of Cov(x_k, heard), by construction: for the filter that of [ΣCᵀ, AΣCᵀ, …, A^{n−1}ΣCᵀ], for the
            smoother also of the blocks Σ(Aᵀ)^jCᵀ. Not the observability rank of (A, C), which can be smaller. The
            default n (m for the output) is always safe. `history_rank` counts it numerically, as a diagnostic.
        directions: as in `state_information`; k directions have rank k at most.
        steps: as there.
        time: as there.

    Raises:
        InputError: double precision is off; a rank outside 1, …, n.
    """
    private = system.states if directions is None else int(directions.shape[0])
    largest = min(private, system.outputs) if observer == "output" else private
    if rank is None:
        rank = largest
        if steps is not None and observer != "output":
            heard = steps if observer == "smoother" or time is None else time + 1
            rank = min(largest, system.outputs * heard)
    if not 1 <= rank <= largest:
        raise InputError(f"rank is {rank}; expected a number from 1 to {largest}.")
    information = state_information(system, noise, observer, directions=directions, steps=steps, time=time)
    return leakage_epsilon(information, delta, rank)


def trajectory_information(
    system: LinearSystem, noise: Float[Array | np.ndarray, "m m"], steps: int
) -> Float[Array, ""]:
    """Mutual information of the trajectory x_0, …, x_{T−1} and its T outputs: Σ ½ log det(I + Θ⁻¹CP⁻Cᵀ), in nats."""
    C, noise = jnp.asarray(system.C), jnp.asarray(noise)
    predicted = finite_horizon(system, noise, steps).predicted
    # One after the other: batched factorisations are what hangs.
    informations = jax.lax.map(lambda one: additive_information(_seen(C, one), noise), predicted)
    return jnp.where(jnp.all(jnp.isfinite(system.stationary)), jnp.sum(informations), jnp.inf)


def trajectory_leakage(
    system: LinearSystem, noise: Float[Array | np.ndarray, "m m"], steps: int, delta: Scalar
) -> Float[Array, ""]:
    """ε(δ) of T outputs about the whole trajectory, rank m T, in nats.

    It grows like T (q_{mT}(δ)/2 alone does): the ε of a single output must never be quoted for a series.
    """
    rank = steps * min(system.outputs, system.states)
    return leakage_epsilon(trajectory_information(system, noise, steps), delta, rank)


def information_rate(system: LinearSystem, noise: Float[Array | np.ndarray, "m m"]) -> Float[Array, ""]:
    """What each further output adds in the steady state, ½ log det(I + Θ⁻¹ C P⁻ Cᵀ), in nats a step."""
    covariances = steady_state(system, noise)
    usable = jnp.all(jnp.isfinite(system.stationary))
    seen = _seen(jnp.asarray(system.C), covariances.predicted)
    return jnp.where(usable, additive_information(seen, jnp.asarray(noise)), jnp.inf)


def _after_one_output(system, noise):
    stationary, precision = system.stationary, output_precision(system, noise)
    usable = jnp.all(jnp.isfinite(stationary)) & jnp.all(jnp.isfinite(precision))
    left = updated(jnp.where(usable, stationary, 0.0), jnp.where(usable, precision, 0.0))
    return jnp.where(usable, left, 0.0)


def _seen(C, covariance):
    product = jnp.matmul(jnp.matmul(C, covariance, precision="highest"), C.T, precision="highest")
    return 0.5 * (product + product.T)
