"""Strategies with few parameters by gradient: banded and Toeplitz lower-triangular factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from jaxpriv.designs.matrix_mechanism.bounds import structured_lower_bound


CHUNK = 20
"""Steps of the optimiser between two looks at the gap."""


class Structured(NamedTuple):
    """A lower-triangular strategy, steps taken, the last relative norm of the gradient, and the bound of its class."""

    strategy: Float[np.ndarray, "n n"]
    steps: int
    gradient: float
    lower: float


def banded_matrix(bands: Float[Array, "b n"]) -> Float[Array, "n n"]:
    """The lower-triangular matrix with entry (j + d, j) = bands[d, j], its columns at unit norm."""
    count, size = bands.shape
    diagonals, columns = jnp.arange(count)[:, None], jnp.arange(size)[None, :]
    inside = diagonals + columns < size
    bands = jnp.where(inside, bands, 0.0)
    bands = bands / jnp.linalg.norm(bands, axis=0)
    rows = jnp.where(inside, diagonals + columns, size)
    return jnp.zeros((size, size), bands.dtype).at[rows, columns].set(bands, mode="drop")


def toeplitz_matrix(coefficients: Float[Array, " b"], size: int) -> Float[Array, "n n"]:
    """The lower-triangular matrix with entry (i, j) = coefficients[i − j], zero beyond the last of them."""
    lag = jnp.arange(size)[:, None] - jnp.arange(size)[None, :]
    inside = (lag >= 0) & (lag < coefficients.shape[0])
    return jnp.where(inside, coefficients[jnp.where(inside, lag, 0)], 0.0)


def root_coefficients(count: int) -> Float[np.ndarray, " b"]:
    """binom(2k, k)/4^k, k = 0 … count − 1: the Toeplitz square root of prefix sums (Fichtenberger et al., 2023)."""
    k = np.arange(1, count)
    return np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])


def total_error(workload: Float[Array, "m n"], strategy: Float[Array, "n n"]) -> Float[Array, ""]:
    """‖A C⁻¹‖²_F for a lower-triangular C."""
    return jnp.sum(solve_triangular(strategy, workload.T, lower=True, trans=1) ** 2)


def least_banded(
    workload: Float[np.ndarray, "m n"], bandwidth: int, square: float, tolerance: float, max_steps: int
) -> Structured:
    """Least total error over banded strategies whose columns have one norm, of square `square`.

    In X = CᵀC, banded like C and with a constant diagonal, the problem is convex and C ↔ X is one to one and smooth,
    so that every stationary point is the optimum. L-BFGS until the verified gap is below `tolerance`.
    """
    size = workload.shape[1]
    lag = np.abs(np.arange(size)[:, None] - np.arange(size)[None, :])
    free = lag < bandwidth

    def lower_of(strategy: np.ndarray) -> float:
        noising = np.linalg.inv(strategy)
        return structured_lower_bound(workload, noising @ (workload @ noising).T, free, square)

    def loss(bands: Array) -> Array:
        return jnp.log(total_error(jnp.asarray(workload), banded_matrix(bands)))

    start = jnp.asarray(np.repeat(root_coefficients(bandwidth)[:, None], size, axis=1))
    root = float(np.sqrt(square))

    def finished(bands: Array, value: float) -> tuple[bool, float]:
        lower = lower_of(root * np.asarray(banded_matrix(bands)))
        return float(np.exp(value)) / square - lower <= tolerance * np.exp(value) / square, lower

    bands, steps, gradient, lower = _minimised(loss, start, finished, max_steps)
    return Structured(root * np.asarray(banded_matrix(bands)), steps, gradient, lower)


def least_toeplitz(
    workload: Float[np.ndarray, "m n"],
    bandwidth: int,
    steps_of_one: np.ndarray,
    tolerance: float,
    max_steps: int,
) -> Structured:
    """Small total error over Toeplitz strategies, for contributions at the steps `steps_of_one` of one person.

    Not convex: L-BFGS from the root of prefix sums until the gradient of the log error is below `tolerance` or the
    error no longer falls. For one participation any coefficients will do, since the first column is the longest. For
    several they are kept positive and not increasing: the first steps possible are then the worst (Kalinin and Lampert,
    NeurIPS 2024, Theorem 2). No bound of the class is known, so `lower` is 0.
    """
    size = workload.shape[1]
    usual = root_coefficients(bandwidth)
    ratios = usual[1:] / usual[:-1]

    def coefficients_of(parameters: Array) -> Array:
        if len(steps_of_one) == 1:
            return jnp.asarray(usual) * (1.0 + parameters)
        falls = jnp.cumsum(jax.nn.log_sigmoid(parameters))
        return jnp.concatenate([jnp.ones(1, falls.dtype), jnp.exp(falls)])

    def strategy_of(parameters: Array) -> Array:
        matrix = toeplitz_matrix(coefficients_of(parameters), size)
        return matrix / jnp.linalg.norm(jnp.sum(matrix[:, steps_of_one], axis=1))

    def loss(parameters: Array) -> Array:
        return jnp.log(total_error(jnp.asarray(workload), strategy_of(parameters)))

    start = jnp.zeros(bandwidth) if len(steps_of_one) == 1 else jnp.asarray(np.log(ratios / (1.0 - ratios)))
    parameters, steps, gradient, _ = _minimised(loss, start, None, max_steps, tolerance)
    return Structured(np.asarray(strategy_of(parameters)), steps, gradient, 0.0)


def _minimised(
    loss: Callable[[Array], Array],
    start: Array,
    finished: Callable[[Array, float], tuple[bool, float]] | None,
    max_steps: int,
    tolerance: float = 0.0,
) -> tuple[Array, int, float, float]:
    """L-BFGS in compiled chunks: the best parameters, steps, norm of the gradient there, and the last bound."""
    if start.size == 0:
        return start, 0, 0.0, finished(start, float(loss(start)))[1] if finished else 0.0
    optimiser = optax.lbfgs(memory_size=10)
    value_and_grad = optax.value_and_grad_from_state(loss)

    @eqx.filter_jit
    def chunk(parameters, state):
        def step(_, carry):
            parameters, state = carry
            value, gradient = value_and_grad(parameters, state=state)
            updates, state = optimiser.update(gradient, state, parameters, value=value, grad=gradient, value_fn=loss)
            return optax.apply_updates(parameters, updates), state

        parameters, state = jax.lax.fori_loop(0, CHUNK, step, (parameters, state))
        value, gradient = jax.value_and_grad(loss)(parameters)
        return parameters, state, value, jnp.linalg.norm(gradient)

    parameters, state, steps = start, optimiser.init(start), 0
    best = (start, float("inf"), float("inf"), 0.0)
    while steps < max_steps:
        parameters, state, value, norm = chunk(parameters, state)
        steps += CHUNK
        if not np.isfinite(value):
            break
        stalled = float(value) >= best[1] - (1e-15 if finished else 1e-10)
        done, lower = finished(parameters, float(value)) if finished else (float(norm) <= tolerance, 0.0)
        if float(value) <= best[1]:
            best = (parameters, float(value), float(norm), max(lower, best[3]))
        if done or stalled:
            break
    return best[0], steps, best[2], best[3]
