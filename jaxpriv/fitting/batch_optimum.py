"""A quasi-Newton method for three parameters of many traces at once, within bounds, damped where it must be."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jaxpriv.fitting.batch_likelihood import BatchTraces, negative_loglik


_MOST = 40
_LARGEST_STEP = 1.5  # in the logarithm of a parameter


class BatchOptimum(NamedTuple):
    """Log parameters (3, m) in standard units, −ℓ (m,), its gradient (3, m) and about its second derivatives (3, 3, m),
    and whether it ended at a stationary point within the bounds (m,)."""

    point: Float[Array | np.ndarray, "3 m"]
    value: Float[Array | np.ndarray, " m"]
    slope: Float[Array | np.ndarray, "3 m"]
    bent: Float[Array | np.ndarray, "3 3 m"]
    converged: Bool[Array | np.ndarray, " m"]


@partial(jax.jit, static_argnames=("family",))
def best_start(
    starts: Float[Array, "3 k m"], low: Float[Array, "3 m"], high: Float[Array, "3 m"], traces: BatchTraces, family: str
) -> tuple[Float[Array, "3 m"], Float[Array, " m"]]:
    """The best of k starts of each trace, and −ℓ there."""

    def one(carry, start):
        point, value = carry
        start = jnp.clip(start, low, high)
        found = negative_loglik(start, traces, family)
        better = found < value
        return (jnp.where(better, start, point), jnp.where(better, found, value)), None

    begin = (jnp.clip(starts[:, 0], low, high), jnp.full(low.shape[1], jnp.inf, low.dtype))
    return jax.lax.scan(one, begin, jnp.moveaxis(starts, 1, 0))[0]


def _slope(point: Array, traces: BatchTraces, family: str) -> tuple[Array, Array]:
    value, pull = jax.vjp(lambda x: negative_loglik(x, traces, family), point)
    return pull(jnp.ones_like(value))[0], value


@partial(jax.jit, static_argnames=("family",))
def hessian(point: Float[Array, "3 m"], traces: BatchTraces, family: str) -> Float[Array, "3 3 m"]:
    """The second derivatives of −ℓ in the logarithms of the parameters."""
    tangents = jnp.broadcast_to(jnp.eye(3, dtype=point.dtype)[:, :, None], (3, *point.shape))
    return jax.vmap(lambda t: jax.jvp(lambda x: _slope(x, traces, family)[0], (point,), (t,))[1])(tangents)


@partial(jax.jit, static_argnames=("family",))
def minimise(
    start: Float[Array, "3 m"],
    low: Float[Array, "3 m"],
    high: Float[Array, "3 m"],
    traces: BatchTraces,
    bent: Float[Array, "3 3 m"],
    tolerance: Float[Array, ""],
    family: str,
) -> BatchOptimum:
    """Minimise −ℓ from `start` (3, m) within [low, high]; equal bounds fix a parameter.

    `bent` are second derivatives to begin with; symmetric rank-one updates follow them, in every step that was tried,
    and damping keeps steps short where the model was wrong or is not convex. `tolerance` is of the gradient, in nats
    for each factor e.
    """

    def free_of(point, slope):
        held = ((point <= low) & (slope >= 0.0)) | ((point >= high) & (slope <= 0.0)) | (high - low <= 1e-9)
        return ~held

    def done_at(point, slope):
        return jnp.max(jnp.abs(slope) * free_of(point, slope), axis=0) <= tolerance

    def body(state):
        point, value, slope, bent, damping, done, count = state
        step, convex = _damped(bent, slope, free_of(point, slope), damping)
        step = step * jnp.minimum(1.0, _LARGEST_STEP / jnp.maximum(jnp.max(jnp.abs(step), axis=0), 1e-300))
        new = jnp.clip(point + step, low, high)
        turned, found = _slope(new, traces, family)
        fine = jnp.isfinite(found) & jnp.all(jnp.isfinite(turned), axis=0) & convex & ~done
        better = fine & (found <= value + 1e-13 * jnp.abs(value))
        moved = new - point
        rest = turned - slope - jnp.einsum("ijm,jm->im", bent, moved)
        along = jnp.sum(rest * moved, axis=0)
        size = jnp.sqrt(jnp.sum(rest**2, axis=0) * jnp.sum(moved**2, axis=0))
        learn = fine & (jnp.abs(along) > 1e-6 * size)
        update = rest[:, None] * rest[None, :] / jnp.where(learn, along, 1.0)
        bent = jnp.where(learn, bent + update, bent)
        point, value, slope = (jnp.where(better, a, b) for a, b in ((new, point), (found, value), (turned, slope)))
        damping = jnp.where(better, jnp.where(damping < 1e-6, 0.0, 0.1 * damping), jnp.maximum(6.0 * damping, 1e-3))
        return point, value, slope, bent, damping, done | done_at(point, slope) | (damping > 1e8), count + 1

    def going(state):
        return jnp.any(~state[5]) & (state[6] < _MOST)

    point = jnp.clip(start, low, high)
    slope, value = _slope(point, traces, family)
    done = done_at(point, slope) | ~jnp.isfinite(value)
    state = (point, value, slope, bent, jnp.full_like(value, 1e-3), done, jnp.asarray(0))
    point, value, slope, bent, *_ = jax.lax.while_loop(going, body, state)
    converged = jnp.isfinite(value) & (jnp.max(jnp.abs(slope) * free_of(point, slope), axis=0) <= 1e-2)
    return BatchOptimum(point, value, slope, bent, converged)


def _damped(bent: Array, slope: Array, free: Array, damping: Array) -> tuple[Array, Array]:
    """−(B + d |diag B|)⁻¹ g over the free parameters by an LDLᵀ factorisation, and whether B + … was definite."""
    h = [[bent[i, j] * free[i] * free[j] for j in range(3)] for i in range(3)]
    for i in range(3):
        own = bent[i, i]
        h[i][i] = jnp.where(free[i], own + damping * jnp.maximum(jnp.abs(own), 1e-3), 1.0)
    g = [slope[i] * free[i] for i in range(3)]
    d0 = h[0][0]
    l10, l20 = h[1][0] / d0, h[2][0] / d0
    d1 = h[1][1] - l10 * h[1][0]
    l21 = (h[2][1] - l20 * h[1][0]) / d1
    d2 = h[2][2] - l20 * h[2][0] - l21 * l21 * d1
    definite = (d0 > 0.0) & (d1 > 0.0) & (d2 > 0.0)
    y0 = g[0]
    y1 = g[1] - l10 * y0
    y2 = (g[2] - l20 * y0 - l21 * y1) / d2
    x1 = y1 / d1 - l21 * y2
    x0 = y0 / d0 - l10 * x1 - l20 * y2
    step = -jnp.stack([x0, x1, y2])
    return jnp.where(definite & jnp.all(jnp.isfinite(step), axis=0), step, 0.0), definite
