"""The least noise under a bound on the information when the release has randomness of its own, or noise has a floor.

min tr(W Θ) with log det(I + (Θ + N)⁻¹ K) ≤ τ and Θ ⪰ c I is convex. Every shape L Lᵀ above the floor has exactly one
height at which the constraint is an equality, so the search is unconstrained over shapes and each point of it is a
design; the dual of the problem bounds what any noise can do. Derived here; proof in docs/leakage_designs.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from jaxpriv.designs.leakage.water_filling import least_leakage_noise, levels, water_level
from jaxpriv.errors import InputError
from jaxpriv.linalg.cholesky import cholesky, cholesky_solve, log_determinant, solve_lower
from jaxpriv.linalg.spectral import positive_part, symmetric


_BLOCK = 25  # steps between two looks at the gap


@dataclass(frozen=True)
class LeastNoise:
    """Noise that meets the information budget, its cost, and a bound that no noise goes below.

    Attributes:
        noise: Θ, (m, m).
        cost, lower_bound: tr(W Θ) and the dual bound, squared units; both evaluated in double precision, the bound
            with its rounding subtracted.
        method: "none" (no noise is needed), "closed form" or "gradient"; `reason` says why.
    """

    noise: np.ndarray
    cost: float
    lower_bound: float
    method: str
    reason: str
    steps: int

    @property
    def gap(self) -> float:
        """(cost − lower_bound)/cost."""
        return (self.cost - self.lower_bound) / self.cost if self.cost > 0.0 else 0.0


def least_noise_above(
    signal: np.ndarray,
    own: np.ndarray,
    information: float,
    *,
    allowed: float | None = None,
    floor_variance: float = 0.0,
    weights: np.ndarray | None = None,
    tolerance: float = 1e-7,
    max_steps: int = 4000,
) -> LeastNoise:
    """The noise of least tr(W Θ) beside the release's own: log det(I + (Θ + N)⁻¹ K) ≤ τ, Θ ⪰ c I.

    Args:
        signal: K = Σ_ZX Σ⁻¹ Σ_XZ, (m, m) positive semidefinite.
        own: N = Σ_ZZ − K, (m, m) positive semidefinite.
        information: τ > 0, nats.
        allowed: the τ that `lower_bound` is for, where the noise aims a little inside it.
        floor_variance: c ≥ 0. N + c I must be positive definite.
        weights: W, (m, m) positive definite.
        tolerance: relative gap at which to stop.

    Called in double precision, on checked arguments.
    """
    size = signal.shape[0]
    allowed = information if allowed is None else allowed
    cost_matrix = np.eye(size) if weights is None else weights
    below = own + floor_variance * np.eye(size)
    least = floor_variance * float(np.trace(cost_matrix))
    if np.linalg.eigvalsh(below)[0] <= 64 * np.finfo(float).eps * np.max(np.abs(below + signal)):
        raise InputError(
            "the release's own noise plus the floor is singular; give a floor_variance, or send fewer dimensions."
        )
    if float(_information(jnp.asarray(signal), jnp.asarray(below))) <= information:
        reason = "the release's own noise and the floor are private enough"
        return LeastNoise(floor_variance * np.eye(size), least, least, "none", reason, 0)
    closed = _commuting(signal, own, information, floor_variance, cost_matrix)
    if closed is not None:
        noise, reason, method, steps = (
            closed,
            "signal, own noise and weights have common eigenvectors",
            "closed form",
            0,
        )
    else:
        reason = "signal, own noise and weights do not commute; descent over shapes of the noise"
        method = "gradient"
        noise, steps = _descend(signal, below, information, cost_matrix, tolerance, max_steps)
        noise = noise + floor_variance * np.eye(size)
    cost = float(np.sum(cost_matrix * noise))
    lower = max(_dual(signal, below, own + noise, allowed, cost_matrix) - _excess(cost_matrix, own), least)
    return LeastNoise(noise, cost, min(lower, cost), method, reason, steps)


def _excess(weights: np.ndarray, own: np.ndarray) -> float:
    return float(np.sum(weights * own))


def _commuting(signal, own, information, floor_variance, weights) -> np.ndarray | None:
    """max(c, θ(μ) − ν) along common eigenvectors, or None where there are none."""
    scale = float(np.trace(weights)) / len(weights)
    if not np.allclose(weights, scale * np.eye(len(weights)), rtol=0.0, atol=1e-13 * scale):
        return None
    _, vectors = np.linalg.eigh(signal + own * np.pi)
    rotated = [vectors.T @ matrix @ vectors for matrix in (signal, own)]
    for matrix in rotated:
        if np.max(np.abs(matrix - np.diag(np.diagonal(matrix)))) > 1e-13 * np.max(np.abs(matrix)):
            return None
    k, nu = (np.maximum(np.diagonal(matrix), 0.0) for matrix in rotated)
    carrying = k > 0.0
    theta = np.full(len(k), floor_variance)
    held = nu + floor_variance
    multiplier = water_level(jnp.asarray(k[carrying]), information, jnp.asarray(held[carrying]))
    filled = np.asarray(levels(jnp.asarray(k[carrying]), multiplier))
    theta[carrying] = np.maximum(filled - nu[carrying], floor_variance)
    return (vectors * theta) @ vectors.T


@jax.jit
def _information(signal: Float[Array, "m m"], total: Float[Array, "m m"]) -> Float[Array, ""]:
    """log det(I + S⁻¹ K)."""
    with jax.default_matmul_precision("highest"):
        factor, exists = cholesky(total)
        half = solve_lower(factor, signal)
        inner, _ = cholesky(jnp.eye(signal.shape[0], dtype=signal.dtype) + symmetric(solve_lower(factor, half.T)))
        return jnp.where(exists, log_determinant(inner), jnp.inf)


def _height(signal, below, shape, information):
    """s with log det(I + (B + s L Lᵀ)⁻¹ K) = τ: Newton's method on the reciprocal, which is nearly straight in s."""
    noise = symmetric(shape @ shape.T)

    def value_and_slope(height):
        total = below + height * noise
        first, _ = cholesky(total)
        second, _ = cholesky(total + signal)
        value = log_determinant(second) - log_determinant(first)
        gradient = cholesky_solve(second, noise) - cholesky_solve(first, noise)
        return value - information, jnp.trace(gradient)

    def step(state):
        height, _, count = state
        excess, slope = value_and_slope(height)
        move = -excess / jnp.where(slope < 0.0, slope, -jnp.inf) * (excess + information) / information
        return jnp.maximum(height + move, 0.5 * height), height, count + 1

    def going(state):
        height, previous, count = state
        return (count < 60) & (jnp.abs(height - previous) > 1e-10 * height)

    height, _, _ = jax.lax.while_loop(going, step, (jnp.asarray(0.0, shape.dtype), jnp.asarray(-1.0, shape.dtype), 0))
    excess, _ = value_and_slope(height)
    return jnp.where(jnp.abs(excess) < 1e-9 * information, height, jnp.inf)


@jax.custom_jvp
def _cost_of_shape(shape, signal, below, information, weights):
    with jax.default_matmul_precision("highest"):
        return _height(signal, below, shape, information) * jnp.sum(weights * (shape @ shape.T))


@_cost_of_shape.defjvp
def _cost_of_shape_jvp(primals, tangents):
    # The implicit function: f(B + s A) = τ gives ds = −s ⟨∇f, dA⟩/⟨∇f, A⟩.
    shape, signal, below, information, weights = primals
    with jax.default_matmul_precision("highest"):
        noise = shape @ shape.T
        height = _height(signal, below, shape, information)
        total = below + height * noise
        first, _ = cholesky(total)
        second, _ = cholesky(total + signal)
        identity = jnp.eye(shape.shape[0], dtype=shape.dtype)
        gradient = cholesky_solve(second, identity) - cholesky_solve(first, identity)
        weight = jnp.sum(weights * noise)
        change = 2.0 * (height * (weights @ shape) - weight * height / jnp.sum(gradient * noise) * (gradient @ shape))
        return height * weight, jnp.sum(change * tangents[0])


@partial(jax.jit, static_argnums=(2,))
def _steps(carry, problem, count):
    solver = optax.lbfgs(memory_size=20)
    value = lambda shape: _cost_of_shape(shape, *problem)  # noqa: E731
    both = optax.value_and_grad_from_state(value)

    def step(_, state):
        shape, inner, best_shape, best = state
        reached, slope = both(shape, state=inner)
        better = reached < best
        best_shape, best = jnp.where(better, shape, best_shape), jnp.where(better, reached, best)
        update, inner = solver.update(slope, inner, shape, value=reached, grad=slope, value_fn=value)
        return optax.apply_updates(shape, update), inner, best_shape, best

    return jax.lax.fori_loop(0, count, step, carry)


def _descend(signal, below, information, weights, tolerance, max_steps):
    """The noise beside `below`, and the number of steps taken."""
    unit = float(np.trace(below + signal)) / len(signal)
    start = least_leakage_noise(jnp.asarray(signal), information, weights=jnp.asarray(weights)).noise
    excess = positive_part(start - below)
    # Full rank, so that some height meets the constraint whatever the shape.
    spread = 1e-3 * jnp.trace(start) / len(signal) * jnp.eye(len(signal))
    shape = jnp.linalg.cholesky((excess + spread) / unit)
    problem = tuple(jnp.asarray(value) for value in (signal / unit, below / unit, information, weights))
    carry = (shape, optax.lbfgs(memory_size=20).init(shape), shape, jnp.asarray(np.inf))
    taken, noise = 0, None
    while taken < max_steps:
        carry = _steps(carry, problem, _BLOCK)
        taken += _BLOCK
        best = carry[2]
        height = float(_height(problem[0], problem[1], best, information))
        noise = unit * height * np.asarray(best @ best.T)
        cost = float(np.sum(weights * noise))
        lower = _dual(signal, below, below + noise, information, weights) - float(np.sum(weights * below))
        if cost - lower <= tolerance * cost:
            break
    if noise is None:
        raise AssertionError("no step was taken.")
    return noise, taken


def _dual(signal, below, total, information, weights) -> float:
    """A lower bound of tr(W S) over S ⪰ B with f(S) = log det(I + S⁻¹K) ≤ τ, from any S: the tangent of the convex f.

    With D = −∇f(S) ⪰ 0, f(S') ≥ f(S) − ⟨D, S' − S⟩; so for μ with μ D ⪯ W
    tr(W S') ≥ ⟨W − μD, B⟩ + μ(f(S) + ⟨D, S⟩ − τ).
    """
    root = np.linalg.cholesky(weights)
    inverse = np.linalg.inv(total) - np.linalg.inv(total + signal)
    inverse = 0.5 * (inverse + inverse.T)
    whitened = np.linalg.solve(root, np.linalg.solve(root, inverse).T)
    largest = float(np.linalg.eigvalsh(0.5 * (whitened + whitened.T))[-1])
    multiplier = (1.0 - 1e-12) / largest
    value = float(_information(jnp.asarray(signal), jnp.asarray(total)))
    held = float(np.sum((weights - multiplier * inverse) * below))
    gain = multiplier * (value + float(np.sum(inverse * total)) - information)
    rounding = 1e-12 * (abs(held) + multiplier * (value + float(np.sum(np.abs(inverse * total))) + information))
    return held + gain - rounding
