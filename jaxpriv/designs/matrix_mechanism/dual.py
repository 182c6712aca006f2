"""The least total error of a factorisation A = B C with unit columns of C, by Newton's method on its dual.

With weights v > 0 on the columns of A and the singular value decomposition A D(v)^½ = P S Qᵀ the dual value is
2 tr S − Σ v, the strategy C = S^−½ Pᵀ A answers every query with total variance tr S max ‖C e_i‖², and both agree at
the optimum (proofs in docs/matrix_mechanism.md). All in JAX: jit and vmap it; float64 is wanted.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Float, Int

from jaxpriv.linalg.cholesky import cholesky
from jaxpriv.shapes import Scalar


NODES = 20
"""Nodes of the quadrature of 1/(s_a + s_b) = ∫ exp(−τ (s_a + s_b)) dτ: the Newton matrix to about 1e-3 or better."""

SMALL = 1e-12
"""Singular values below this share of the largest one count as zero."""

_WARM = 2  # fixed-point steps before Newton's method


class DualWeights(NamedTuple):
    """Weights v (n,) on the columns, the dual bound, the total error of the strategy they give, and the steps taken."""

    weights: Float[Array, " n"]
    lower: Float[Array, ""]
    upper: Float[Array, ""]
    steps: Int[Array, ""]
    history: Float[Array, " h"]


class _Point(NamedTuple):
    """At weights v: singular values s (p,), C = S^−½ Pᵀ A (p, n), x_i = ‖C e_i‖²."""

    values: Array
    strategy: Array
    norms: Array

    @property
    def total(self) -> Array:
        return jnp.sum(self.values)


def reduced(workload: Float[Array, "m n"]) -> Float[Array, "p n"]:
    """A matrix with the Gram matrix of the workload and at most n rows: the workload itself, or R of A = Q R."""
    if workload.shape[0] <= workload.shape[1]:
        return workload
    return jnp.linalg.qr(workload, mode="r")


def _accurately_at(rows: Array, weights: Array) -> _Point:
    left, singular, right = jnp.linalg.svd(rows * jnp.sqrt(weights), full_matrices=False)
    kept = singular > SMALL * singular[0]
    root = jnp.sqrt(jnp.where(kept, singular, 1.0))
    # C = S^−½ Pᵀ A = S^½ Qᵀ D(v)^−½: the first loses digits of small singular values, the second of small weights.
    small = jnp.sqrt(weights * jnp.sum(rows**2, axis=0)) < singular[:, None]
    strategy = jnp.where(small, left.T @ rows / root[:, None], root[:, None] * right / jnp.sqrt(weights))
    strategy = jnp.where(kept[:, None], strategy, 0.0)
    singular = jnp.where(kept, singular, 0.0)
    return _Point(singular[::-1], strategy[::-1], jnp.sum(strategy**2, axis=0))


def _at(rows: Array, weights: Array, accurate: bool) -> _Point:
    if accurate:
        return _accurately_at(rows, weights)
    values, vectors = jnp.linalg.eigh((rows * weights) @ rows.T)
    singular = jnp.sqrt(jnp.maximum(values, 0.0))
    kept = singular > SMALL * singular[-1]
    scale = jnp.where(kept, 1.0 / jnp.sqrt(jnp.where(kept, singular, 1.0)), 0.0)
    strategy = (vectors * scale).T @ rows
    return _Point(jnp.where(kept, singular, 0.0), strategy, jnp.sum(strategy**2, axis=0))


def _curvature(point: _Point) -> Array:
    """−∂x_i/∂v_j = Σ_ab C_ai C_aj C_bi C_bj/(s_a + s_b), as a sum of squared entries of Cᵀ exp(−τ S) C."""
    values = point.values
    largest = values[-1]
    least = jnp.min(jnp.where(values > 0.0, values, largest))
    low, high = jnp.log(5e-4 / largest), jnp.log(4.0 / least)
    step = (high - low) / (NODES - 1)
    nodes = jnp.exp(low + step * jnp.arange(NODES, dtype=values.dtype))

    def add(total: Array, node: Array) -> tuple[Array, None]:
        damped = (point.strategy.T * jnp.exp(-node * values)) @ point.strategy
        return total + step * node * damped**2, None

    size = point.strategy.shape[1]
    return jax.lax.scan(add, jnp.zeros((size, size), values.dtype), nodes)[0]


def _bounds(point: _Point, weights: Array) -> tuple[Array, Array]:
    """The dual value at the best multiple of the weights, and the total error of the strategy scaled to be feasible."""
    return point.total**2 / jnp.sum(weights), point.total * jnp.max(point.norms)


@eqx.filter_jit
def dual_weights(
    workload: Float[Array | np.ndarray, "m n"],
    *,
    tolerance: Scalar = 1e-9,
    max_steps: int = 60,
    accurate: bool = False,
) -> DualWeights:
    """Optimal weights v of the columns of a workload, none of which is zero.

    A primal–dual interior-point method with predictor and corrector on x_i + z_i = 1, v_i z_i = 0; each step takes one
    eigendecomposition of order min(m, n), a Cholesky factorisation of order n and `NODES` products. It stops at the
    relative gap `tolerance` (not below what the precision allows), at `max_steps`, or when the gap has not fallen for
    five steps, and returns the best weights seen. `history` holds the gap after every step, the last one repeated.
    Gram matrices limit the gap to about the rounding unit times the squared condition of the workload; `accurate` uses
    singular value decompositions instead, at about three times the price.
    """
    with jax.default_matmul_precision("highest"):
        return _dual_weights(jnp.asarray(workload), tolerance, max_steps, accurate)


def _dual_weights(workload: Array, tolerance: Scalar, max_steps: int, accurate: bool) -> DualWeights:
    rows = reduced(workload)
    tolerance = jnp.maximum(jnp.asarray(tolerance, rows.dtype), 4.0 * jnp.finfo(rows.dtype).eps)

    def scaled(weights: Array) -> tuple[Array, _Point]:
        """The multiple of the weights at which Σ v = tr S, where the mean of v (x − 1) is zero."""
        point = _at(rows, weights, accurate)
        ratio = point.total / jnp.sum(weights)
        values, strategy = ratio * point.values, point.strategy / jnp.sqrt(ratio)
        return ratio**2 * weights, _Point(values, strategy, point.norms / ratio)

    def fixed_point(_: int, weights: Array) -> Array:
        return weights * _at(rows, weights, accurate).norms

    def step(carry):
        weights, slack, point, best, count, stalled, history = carry
        product = weights * slack
        mean = jnp.mean(product)
        matrix = weights[:, None] * _curvature(point) * weights + jnp.diag(product)
        # The curvature of an inactive column fades like v²: relative to the largest entry it may round to zero.
        matrix = matrix + jnp.diag(jnp.finfo(matrix.dtype).eps * jnp.diagonal(matrix))
        factor, exists = cholesky(matrix)
        residual = weights * (point.norms - 1.0)

        def direction(target: Array) -> tuple[Array, Array]:
            change = cho_solve((factor, True), residual + target)
            return change, target / weights - slack - slack * change

        change, lift = direction(jnp.zeros_like(weights))
        reach, dual_reach = _reach(change), _reach(lift / slack)
        ahead = jnp.mean(weights * (1.0 + reach * change) * (slack + dual_reach * lift))
        change, lift = direction((ahead / mean) ** 3 * mean - weights * change * lift)
        weights = weights * (1.0 + _reach(change) * change)
        slack = slack + _reach(lift / slack) * lift
        point = _at(rows, weights, accurate)
        lower, upper = _bounds(point, weights)
        gap = jnp.where(exists & jnp.isfinite(upper), 1.0 - lower / upper, jnp.inf)
        better = gap < best[1]
        new = (weights, gap, lower, upper, point.total)
        best = jax.tree.map(lambda now, before: jnp.where(better, now, before), new, best)
        history = history.at[count].set(gap)
        return weights, slack, point, best, count + 1, jnp.where(better, 0, stalled + 1), history

    def going(carry):
        _, _, point, best, count, stalled, _ = carry
        return (best[1] > tolerance) & (count < max_steps) & (stalled < 5) & jnp.all(jnp.isfinite(point.norms))

    start = jnp.sqrt(jnp.sum(rows**2, axis=0))
    weights, point = scaled(jax.lax.fori_loop(0, _WARM, fixed_point, start))
    lower, upper = _bounds(point, weights)
    centre = 0.1 * jnp.mean(jnp.abs(weights * (point.norms - 1.0))) + jnp.finfo(weights.dtype).tiny
    slack = jnp.maximum(1.0 - point.norms, centre / weights)
    carry = (
        weights,
        slack,
        point,
        (weights, 1.0 - lower / upper, lower, upper, point.total),
        jnp.asarray(0),
        jnp.asarray(0),
        jnp.full(max_steps, jnp.nan, weights.dtype),
    )
    *_, best, count, _, history = jax.lax.while_loop(going, step, carry)
    weights, _, lower, upper, total = best
    last = history[jnp.maximum(count - 1, 0)]
    history = jnp.where(jnp.arange(max_steps) < count, history, last)
    # The multiple of the weights that attains the bound: Σ v = tr S.
    return DualWeights(weights * (total / jnp.sum(weights)) ** 2, lower, upper, count, history)


def _reach(relative: Array) -> Array:
    """The share of a step, at most 1, that keeps 1 + step above 0.01."""
    return jnp.minimum(1.0, 0.99 / jnp.maximum(jnp.max(-relative), 1e-300))


@partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def _least_error(workload: Array, tolerance: float, max_steps: int) -> Array:
    return dual_weights(workload, tolerance=tolerance, max_steps=max_steps).lower


@_least_error.defjvp
def _least_error_jvp(tolerance, max_steps, primals, tangents):
    (workload,), (tangent,) = primals, tangents
    found = dual_weights(workload, tolerance=tolerance, max_steps=max_steps)
    weights = jax.lax.stop_gradient(found.weights)
    with jax.default_matmul_precision("highest"):
        # Z D(w) with Z the polar factor of A D(w), w² = v: through the smaller of the two Gram matrices.
        if workload.shape[0] <= workload.shape[1]:
            values, vectors = jnp.linalg.eigh((workload * weights) @ workload.T)
            polar = (vectors * _inverse_root(values)) @ (vectors.T @ workload) * weights
        else:
            root = jnp.sqrt(weights)
            values, vectors = jnp.linalg.eigh(root[:, None] * (workload.T @ workload) * root)
            polar = (workload * root) @ ((vectors * _inverse_root(values)) @ vectors.T) * root
        return found.lower, 2.0 * jnp.sum(polar * tangent)


def _inverse_root(values: Array) -> Array:
    kept = values > SMALL**2 * values[-1]
    return jnp.where(kept, 1.0 / jnp.sqrt(jnp.where(kept, values, 1.0)), 0.0)


def least_total_error(
    workload: Float[Array, "m n"],
    mu: Scalar = 1.0,
    *,
    changes: Float[Array, "n K"] | None = None,
    tolerance: float = 1e-9,
    max_steps: int = 60,
) -> Float[Array, ""]:
    """The least tr(AᵀA G) over noise covariances G for which a change of the data by any column of `changes` is μ-GDP.

    That is the optimum of min tr(AᵀA G) s.t. G ⪰ u uᵀ/μ² for every column u; by default the unit vectors, one
    participation of size at most 1. Derived here; proof in docs/matrix_mechanism.md. In the squared unit of a
    contribution. Differentiable in the workload, the changes and μ by the envelope theorem (first derivatives; exact at
    the optimum, so as good as the square root of the gap), and unlike `matrix_mechanism` it runs under jit, vmap and
    grad; the value is the dual bound, in floating point. No column of A `changes` may be zero.
    """
    columns = workload if changes is None else workload @ changes
    return _least_error(columns, tolerance, max_steps) / jnp.asarray(mu) ** 2
