"""The least noise under a bound on the information: water-filling over the eigenvalues of the signal.

min tr(W Θ) subject to log det(I + Θ⁻¹ K) ≤ τ is convex; its stationarity W = μ(Θ⁻¹ − (Θ + K)⁻¹) makes W^½ΘW^½ commute
with W^½KW^½, so that each eigenvalue k is given the level θ with θ² + kθ = μk. Derived here; proof in
docs/leakage_designs.md. Pure JAX: jit, vmap and grad it.
"""

from __future__ import annotations

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxpriv.designs.spectral import Weights, unweighted, weight_root
from jaxpriv.errors import InputError
from jaxpriv.linalg.spectral import symmetric
from jaxpriv.shapes import Scalar


_BISECTIONS = 80  # of the logarithm of the multiplier: to adjacent numbers in double precision


class WaterFilling(eqx.Module):
    """Noise of least cost under a bound on the information.

    Attributes:
        noise: Θ, (m, m), in squared units of the release. Its range is that of the signal.
        factor: B, (m, l), with B Bᵀ = Θ: what a release samples, and what keeps the evaluation non-singular. It carries
            no derivative.
        multiplier: μ; −μ is the derivative of the cost by the information budget τ.
        cost: tr(W Θ).
    """

    noise: Float[Array, "m m"]
    factor: Float[Array, "m l"]
    multiplier: Float[Array, ""]
    cost: Float[Array, ""]


def least_leakage_noise(
    signal: Float[Array, "m m"], information: Scalar, *, rank: int | None = None, weights: Weights = None
) -> WaterFilling:
    """The noise of least tr(W Θ) with log det(I + Θ⁻¹ K) ≤ `information`, which is τ = 2ε − q_l(δ).

    Args:
        signal: K, (m, m) positive semidefinite, the prior covariance of what is released (C Σ Cᵀ).
        information: τ > 0, in nats; twice the mutual information that may be released.
        rank: l, the rank of K known from its structure; by default m. Eigenvalues are never judged by their size: one
            that is small but not zero needs noise all the same.
        weights: W, (m,) positive or (m, m) positive definite.

    Returns:
        NaN throughout where `information` is not positive: no Gaussian noise is private enough.

    Its derivative in K is that of perturbations that keep the rank. Finite at repeated eigenvalues.
    """
    size = signal.shape[0]
    rank = size if rank is None else int(rank)
    if not 1 <= rank <= size:
        raise InputError(f"rank is {rank}; expected a number from 1 to {size}.")
    matrix = symmetric(jnp.asarray(signal))
    budget = jnp.asarray(information, matrix.dtype)
    feasible = budget > 0.0
    with jax.default_matmul_precision("highest"):
        if weights is not None:
            root = weight_root(weights)
            matrix = symmetric(root @ matrix @ root)
        noise, multiplier = _filled(matrix, jnp.where(feasible, budget, 1.0), rank)
        cost = jnp.trace(noise)
        factor = _factor(jax.lax.stop_gradient(matrix), jax.lax.stop_gradient(multiplier), rank)
        if weights is not None:
            factor = unweighted(factor, jax.lax.stop_gradient(weights))
            half = unweighted(noise, weights)
            noise = symmetric(unweighted(half.T, weights))
    hide = lambda value: jnp.where(feasible, value, jnp.nan)  # noqa: E731
    return WaterFilling(hide(noise), hide(factor), hide(multiplier), hide(cost))


def levels(signal: Float[Array, " l"], multiplier: Scalar) -> Float[Array, " l"]:
    """θ with θ² + kθ = μk, for each eigenvalue k of the signal; without cancellation, and 0 where k is."""
    signal = jnp.asarray(signal)
    root = jnp.sqrt(signal * signal + 4.0 * multiplier * signal)
    total = signal + root
    return jnp.where(total > 0.0, 2.0 * multiplier * signal / jnp.where(total > 0.0, total, 1.0), 0.0)


def water_level(
    signal: Float[Array, " l"], information: Scalar, lower: Scalar | Float[Array, " l"] = 0.0
) -> Float[Array, ""]:
    """The multiplier μ at which Σ log(1 + k/max(θ(μ), lower)) is `information`, from the side of more noise.

    `lower` holds levels that are there anyway. Where they alone suffice μ is 0.
    """
    signal = jnp.asarray(signal)
    budget = jnp.asarray(information, signal.dtype)
    lower = jnp.broadcast_to(jnp.asarray(lower, signal.dtype), signal.shape)

    def spent(log_multiplier):
        # k/θ = (k + √(k² + 4μk))/(2μ), which does not overflow where k is tiny.
        multiplier = jnp.exp(log_multiplier)
        ratio = (signal + jnp.sqrt(signal * signal + 4.0 * multiplier * signal)) / (2.0 * multiplier)
        held = jnp.where(lower > 0.0, signal / jnp.where(lower > 0.0, lower, 1.0), jnp.inf)
        return jnp.sum(jnp.log1p(jnp.minimum(ratio, held)))

    def halve(_, ends):
        low, high = ends
        middle = 0.5 * (low + high)
        enough = spent(middle) <= budget
        return jnp.where(enough, low, middle), jnp.where(enough, middle, high)

    # log κ/(1−κ)² with κ = exp(−x): at x = τ/l for equal shares, at x = τ when all others are held by `lower`.
    bracket = lambda x: -x - 2.0 * jnp.log(-jnp.expm1(-x))  # noqa: E731
    start = (
        bracket(budget) + jnp.log(jnp.min(signal)) - 1e-6,
        bracket(budget / signal.shape[0]) + jnp.log(jnp.max(signal)) + 1e-6,
    )
    _, high = jax.lax.fori_loop(0, _BISECTIONS, halve, start)
    alone = jnp.sum(jnp.where(lower > 0.0, jnp.log1p(signal / jnp.where(lower > 0.0, lower, 1.0)), jnp.inf)) <= budget
    return jnp.where(alone, 0.0, jnp.exp(high))


def _spectrum(matrix, rank):
    """Eigenvalues with the top `rank` made positive and the others zero, and the eigenvectors."""
    values, vectors = jnp.linalg.eigh(matrix)
    size = matrix.shape[0]
    # Rounding can take a positive eigenvalue below zero; a direction with less noise than it needs leaks everything.
    least = size * jnp.finfo(matrix.dtype).eps * jnp.max(jnp.abs(values))
    kept = jnp.arange(size) >= size - rank
    return jnp.where(kept, jnp.maximum(values, least), 0.0), vectors, kept


def _factor(matrix, multiplier, rank):
    values, vectors, _ = _spectrum(matrix, rank)
    return vectors[:, -rank:] * jnp.sqrt(levels(values[-rank:], multiplier))


@partial(jax.custom_jvp, nondiff_argnums=(2,))
def _filled(matrix: Float[Array, "m m"], budget: Float[Array, ""], rank: int):
    values, vectors, _ = _spectrum(matrix, rank)
    multiplier = water_level(values[-rank:], budget)
    return symmetric((vectors * levels(values, multiplier)) @ vectors.T), multiplier


@_filled.defjvp
def _filled_jvp(rank, primals, tangents):
    (matrix, budget), (d_matrix, d_budget) = primals, tangents
    values, vectors, kept = _spectrum(matrix, rank)
    multiplier = water_level(values[-rank:], budget)
    theta = levels(values, multiplier)
    safe = jnp.where(kept, theta, 1.0)
    # μ − θ = θ²/k, without the difference.
    room = jnp.where(kept, theta * theta / jnp.where(kept, values, 1.0), multiplier)
    by_signal = jnp.where(kept, room / (2.0 * safe + values), 0.0)
    by_multiplier = jnp.where(kept, values / (2.0 * safe + values), 0.0)
    # Of the constraint Σ log(1 + k/θ) = τ: its derivative by k at fixed θ, and by θ.
    direct = jnp.where(kept, 1.0 / (values + safe), 0.0)
    through = jnp.where(kept, values / (safe * (values + safe)), 0.0)
    rotated = vectors.T @ symmetric(d_matrix) @ vectors
    diagonal = jnp.diagonal(rotated)
    spread = jnp.sum(by_multiplier * through)
    d_multiplier = (jnp.sum((direct - by_signal * through) * diagonal) - d_budget) / spread
    # The divided difference of θ(·, μ), from θ² + kθ = μk: no difference of nearby numbers.
    total = theta[:, None] + theta[None, :] + values[:, None]
    some = kept[:, None] | kept[None, :]
    slope = jnp.where(some, room[None, :] / jnp.where(some, total, 1.0), 0.0)
    # From a direction outside the range only the form μ/(θ + k) keeps its digits.
    slope = jnp.where(kept[None, :] & ~kept[:, None], slope.T, slope)
    change = slope * rotated + jnp.diag(by_multiplier * d_multiplier)
    noise = symmetric((vectors * theta) @ vectors.T)
    return (noise, multiplier), (symmetric(vectors @ change @ vectors.T), d_multiplier)
