"""The least-noise mechanism with the published paper's structure: white noise on the secret, independent of the rest.

With α = t − 1/σ² the least noise on the rest is (A Aᵀ/α − C_UU)₊, so the whole design is one convex minimisation over
α in (0, t). Derived here (the paper solves a surrogate program); proof in docs/design.md.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxpriv.errors import InputError
from jaxpriv.linalg.spectral import symmetric, top_positive_sum
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.conditional import Conditional, conditional
from jaxpriv.secrets.secret import Secret
from jaxpriv.shapes import Scalar


_BISECTIONS = 60
_NEWTON_STEPS = 40


class BlockNoise(eqx.Module):
    """Noise σ² I on the k coordinates of the secret and, independent of it, G_UU = L Lᵀ + η I on the rest.

    Attributes:
        own_variance: σ², at least η, in squared units.
        rest_factor: L, (n − k, k).
        loss: t = 1/σ² + α, in inverse squared units.
        trace: k σ² + tr G_UU, in squared units.
    """

    own_variance: Float[Array, ""]
    rest_factor: Float[Array, "u k"]
    loss: Float[Array, ""]
    trace: Float[Array, ""]


def least_trace_block(prior: Prior, secret: Secret, loss: Scalar, *, floor_variance: Scalar = 0.0) -> Float[Array, ""]:
    """The least tr G among noises of block structure with loss at most `loss`. Differentiable (envelope rule)."""
    parts = conditional(prior, secret)
    trace = block_for_loss(parts, _fixes(secret), jnp.asarray(loss), floor_variance).trace
    return jnp.where(parts.exists, trace, jnp.inf)


def least_loss_block(prior: Prior, secret: Secret, budget: Scalar, *, floor_variance: Scalar = 0.0) -> Float[Array, ""]:
    """The least loss among noises of block structure with tr G ≤ `budget`; infinite where the floor costs as much."""
    parts = conditional(prior, secret)
    loss = block_for_budget(parts, _fixes(secret), jnp.asarray(budget), floor_variance).loss
    return jnp.where(parts.exists, loss, jnp.inf)


def _fixes(secret: Secret) -> tuple[int, ...]:
    if not isinstance(secret, Secret):
        raise InputError("structure='block' needs a secret made of fixes of the trace.")
    return secret.indices


def _outside(parts: Conditional, positions: tuple[int, ...]) -> tuple[Float[Array, "u k"], Float[Array, "u u"]]:
    rest = np.setdiff1d(np.arange(parts.residual.shape[0]), positions)
    return parts.regression[rest], parts.residual[rest][:, rest]


def _rest_trace(regression, residual, alpha, eta) -> Float[Array, ""]:
    """tr (A Aᵀ/α − C_UU − η I)₊."""
    size = residual.shape[0]
    if size == 0:
        return jnp.zeros_like(alpha)
    with jax.default_matmul_precision("highest"):
        matrix = regression @ regression.T / alpha - residual - eta * jnp.eye(size, dtype=residual.dtype)
    return top_positive_sum(matrix, min(size, regression.shape[1]))


def _cost(regression, residual, loss, alpha, eta):
    own = jnp.maximum(1.0 / (loss - alpha), eta)
    return regression.shape[1] * own + _rest_trace(regression, residual, alpha, eta)


def _best_alpha(regression, residual, loss, eta) -> Float[Array, ""]:
    """Bisection on the sign of the derivative of a convex function of α/t in (0, 1)."""
    slope = jax.grad(lambda share: _cost(regression, residual, loss, loss * share, eta))

    def halve(_, bracket):
        low, high = bracket
        middle = 0.5 * (low + high)
        rising = slope(middle) > 0.0
        return jnp.where(rising, low, middle), jnp.where(rising, middle, high)

    tiny = jnp.finfo(residual.dtype).eps
    low, high = jax.lax.fori_loop(
        0, _BISECTIONS, halve, (jnp.asarray(tiny, residual.dtype), jnp.asarray(1.0 - tiny, residual.dtype))
    )
    return loss * 0.5 * (low + high)


def _trace_at(regression, residual, loss, eta) -> Float[Array, ""]:
    """Least cost without the floor's η(n − k) on the rest, differentiable in everything but the choice of α.

    α and not α/t is held: at fixed α the loss enters through σ² alone, and the kinks of the trace in α do no harm.
    """
    alpha = _best_alpha(*jax.lax.stop_gradient((regression, residual, loss, eta)))
    return _cost(regression, residual, loss, jax.lax.stop_gradient(alpha), eta)


def block_for_loss(
    parts: Conditional, positions: tuple[int, ...], loss: Float[Array, ""], floor_variance: Scalar
) -> BlockNoise:
    """The block design at a target loss."""
    regression, residual = _outside(parts, positions)
    eta = jnp.asarray(floor_variance, residual.dtype)
    size, k = regression.shape
    if size == 0:
        own = jnp.maximum(1.0 / loss, eta)
        return BlockNoise(own, jnp.zeros((0, k), residual.dtype), loss, k * own)
    trace = _trace_at(regression, residual, loss, eta) + size * eta
    fixed_regression, fixed_residual, fixed_loss, fixed_eta = jax.lax.stop_gradient((regression, residual, loss, eta))
    alpha = _best_alpha(fixed_regression, fixed_residual, fixed_loss, fixed_eta)
    own = jnp.maximum(1.0 / (fixed_loss - alpha), fixed_eta)
    with jax.default_matmul_precision("highest"):
        excess = fixed_regression @ fixed_regression.T / alpha - fixed_residual
        excess = symmetric(excess) - fixed_eta * jnp.eye(size, dtype=residual.dtype)
    count = min(size, k)
    values, vectors = jnp.linalg.eigh(excess)
    factor = vectors[:, size - count :] * jnp.sqrt(jnp.maximum(values[size - count :], 0.0))
    return BlockNoise(own, factor, loss, trace)


def block_for_budget(
    parts: Conditional, positions: tuple[int, ...], budget: Float[Array, ""], floor_variance: Scalar
) -> BlockNoise:
    """The block design at a total trace: Newton's method on the least trace, convex and decreasing in the loss."""
    regression, residual = _outside(parts, positions)
    eta = jnp.asarray(floor_variance, residual.dtype)
    size, k = regression.shape
    room = budget - size * eta
    enough = room > k * eta
    room = jnp.where(enough, room, 1.0)
    arguments = jax.lax.stop_gradient((regression, residual, eta))
    value_and_slope = jax.value_and_grad(lambda loss: _trace_at(arguments[0], arguments[1], loss, arguments[2]))
    fixed_room = jax.lax.stop_gradient(room)

    def step(state):
        loss, _, count = state
        value, slope = value_and_slope(loss)
        higher = loss + (fixed_room - value) / jnp.where(slope < 0.0, slope, -jnp.inf)
        return jnp.maximum(higher, loss), loss, count + 1

    def going(state):
        loss, previous, count = state
        return (count < _NEWTON_STEPS) & (loss - previous > 8.0 * jnp.finfo(loss.dtype).eps * loss)

    # k/b is a lower bound of the loss at trace b: on the left of the root, where Newton is monotone.
    loss, _, _ = jax.lax.while_loop(going, step, (k / fixed_room, jnp.zeros_like(fixed_room), 0))
    loss = jax.lax.stop_gradient(loss)
    _, slope = value_and_slope(loss)
    excess = _trace_at(regression, residual, loss, eta) - room
    loss = loss - excess / jnp.where(slope < 0.0, slope, -jnp.inf)
    design = block_for_loss(parts, positions, loss, floor_variance)
    return BlockNoise(design.own_variance, design.rest_factor, jnp.where(enough, loss, jnp.inf), design.trace)
