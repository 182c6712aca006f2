"""The restricted likelihood of many traces at once for the half-integer Matérn kernels, by their state spaces.

Every number is an array over the traces, so that the recursion over the points runs on whole batches: no matrix is
factorised. With the state covariance P∞ and transitions Φ(Δ) of a Matérn process, the prediction is
P∞ + Φ (P − P∞) Φᵀ (Hartikainen and Särkkä, MLSP 2010). Padded points have unit variance and no part in the state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


Matrix = list[list[Array]]


class BatchTraces(NamedTuple):
    """m traces in standard units, padded to n points; the trace is the last axis.

    `gaps` (n, m) is the time since the point before (0 first), `present` (n, m), `columns` (n, 3, m) the values and two
    mean functions (zero where unused), `freedom` (m,) points less mean functions, `log_gram` (m,) log|FᵀF|.
    """

    gaps: Float[Array | np.ndarray, "n m"]
    present: Float[Array | np.ndarray, "n m"]
    columns: Float[Array | np.ndarray, "n 3 m"]
    freedom: Float[Array | np.ndarray, " m"]
    log_gram: Float[Array | np.ndarray, " m"]


def _matern12(rate: Array) -> tuple[list[list[float | Array]], Callable[[Array], Matrix]]:
    return [[1.0]], lambda gap: [[jnp.exp(-rate * gap)]]


def _matern32(rate: Array) -> tuple[list[list[float | Array]], Callable[[Array], Matrix]]:
    # The state is (x, x'/rate): its covariance is the identity, and nothing depends on the unit of time.
    def transition(gap: Array) -> Matrix:
        a = rate * gap
        e = jnp.exp(-a)
        return [[(1.0 + a) * e, a * e], [-a * e, (1.0 - a) * e]]

    return [[1.0, 0.0], [0.0, 1.0]], transition


def _matern52(rate: Array) -> tuple[list[list[float | Array]], Callable[[Array], Matrix]]:
    def transition(gap: Array) -> Matrix:
        a = rate * gap
        e, half = jnp.exp(-a), 0.5 * a * a
        return [
            [(1.0 + a + half) * e, (a + 2.0 * half) * e, half * e],
            [-half * e, (1.0 + a - 2.0 * half) * e, (a - half) * e],
            [(half - a) * e, a * (a - 3.0) * e, (1.0 - 2.0 * a + half) * e],
        ]

    third = 1.0 / 3.0
    return [[1.0, 0.0, -third], [0.0, third, 0.0], [-third, 0.0, 1.0]], transition


_ORDERS = {"matern12": (_matern12, 1.0), "matern32": (_matern32, 3.0), "matern52": (_matern52, 5.0)}
FAMILIES = tuple(_ORDERS)


def negative_loglik(log_parameters: Float[Array, "3 m"], traces: BatchTraces, family: str) -> Float[Array, " m"]:
    """−ℓ of each trace in nats; parameters sd, lengthscale, noise_sd in standard units. Infinite where it fails."""
    squares, log_pivots = _whitened(log_parameters, traces, family)
    total, residual = log_pivots, squares[0][0]
    # Gram–Schmidt on the columns' inner products: two mean functions need no factorisation.
    one = squares[1][1]
    used = one > 0.0
    pivot = jnp.where(used, one, 1.0)
    total = total + jnp.log(pivot)
    residual = residual - squares[0][1] ** 2 / pivot
    two = squares[2][2] - squares[1][2] ** 2 / pivot
    cross = squares[0][2] - squares[0][1] * squares[1][2] / pivot
    used_two = squares[2][2] > 0.0
    pivot_two = jnp.where(used_two, two, 1.0)
    total = total + jnp.log(pivot_two)
    residual = residual - cross**2 / pivot_two
    value = 0.5 * (residual + total - traces.log_gram + traces.freedom * jnp.log(2.0 * jnp.pi))
    return jnp.where(jnp.isfinite(value), value, jnp.inf)


def _whitened(log_parameters: Array, traces: BatchTraces, family: str) -> tuple[Matrix, Array]:
    """Inner products of the whitened columns, (3, 3) arrays (m,), and log|K|."""
    build, twice = _ORDERS[family]
    variance, noise = jnp.exp(2.0 * log_parameters[0]), jnp.exp(2.0 * log_parameters[2])
    stationary, transition = build(jnp.sqrt(twice) * jnp.exp(-log_parameters[1]))
    d = len(stationary)
    zero = jnp.zeros_like(variance)
    fixed = [variance * stationary[i][0] for i in range(d)]

    def step(carry, point):
        below, states, sums, log_pivots = carry
        gap, here, columns = point
        phi = transition(gap)
        # P - P∞ moves as Φ (P - P∞) Φᵀ; below holds the lower triangle of P - P∞.
        full = [[below[max(i, j)][min(i, j)] for j in range(d)] for i in range(d)]
        moved = [[_sum(phi[i][k] * full[k][j] for k in range(d)) for j in range(d)] for i in range(d)]
        excess = [[_sum(moved[i][k] * phi[j][k] for k in range(d)) for j in range(i + 1)] for i in range(d)]
        ahead = [[_sum(phi[i][k] * states[k][c] for k in range(d)) for c in range(3)] for i in range(d)]
        along = [excess[i][0] + fixed[i] for i in range(d)]
        pivot = jnp.where(here > 0.0, along[0] + noise, 1.0)
        gain = [here * along[i] / pivot for i in range(d)]
        white = [columns[c] - here * ahead[0][c] for c in range(3)]
        new_states = [[ahead[i][c] + gain[i] * white[c] for c in range(3)] for i in range(d)]
        new_below = [[excess[i][j] - gain[i] * along[j] for j in range(i + 1)] for i in range(d)]
        inverse = 1.0 / pivot
        new_sums = [[sums[a][b] + white[a] * white[b] * inverse for b in range(3)] for a in range(3)]
        return (new_below, new_states, new_sums, log_pivots + jnp.log(pivot)), None

    carry = (
        [[zero for _ in range(i + 1)] for i in range(d)],
        [[zero] * 3 for _ in range(d)],
        [[zero] * 3 for _ in range(3)],
        zero,
    )
    (_, _, sums, log_pivots), _ = jax.lax.scan(step, carry, (traces.gaps, traces.present, traces.columns))
    return sums, log_pivots


def _sum(terms: Iterable[Array]) -> Array:
    first, *rest = terms
    for term in rest:
        first = first + term
    return first
