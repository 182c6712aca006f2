"""The best noise of a given power under several priors, in few directions: limited-memory BFGS for many problems.

The largest loss is smoothed as log(sum_j v_j exp(beta l_j)) / beta, l_j = log M_j. With fixed v the smoothed optimum is
off by up to log p / beta; with v replaced by the weights of the last optimum (the exponential method of multipliers)
it tends to the true one at a moderate beta.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from jaxpriv.designs.batch.reduced import losses_of


STEPS = 30
_PAIRS = 6
_LEAST = 1e-14


def climb(
    gram: Float[Array, "p r r"],
    weight: Float[Array, "p r"],
    constant: Float[Array, " p"],
    inverse: Float[Array, " p"],
    coordinates: Float[Array, "r r"],
    power: Float[Array, ""],
    start: Float[Array, "r J"],
    multipliers: Float[Array, " p"],
    beta: Float[Array, ""],
) -> tuple[Float[Array, "r J"], Float[Array, " p"], Float[Array, " p"]]:
    """`STEPS` evaluations from `start`: B of ‖B‖² = `power`, the new multipliers, and the losses M_j there."""
    root = jnp.sqrt(power)
    shape = start.shape

    def smoothed(x):
        bare = coordinates @ x.reshape(shape)
        length = jnp.linalg.norm(bare)
        loss, slopes = losses_of(gram, weight, constant, inverse, (root / length) * bare)
        loss = jnp.maximum(loss, _LEAST)
        logits = jnp.log(jnp.maximum(multipliers, _LEAST)) + beta * jnp.log(loss)
        shares = jax.nn.softmax(logits)
        turned = jnp.einsum("p,paj->aj", shares / loss, slopes) * (root / length)
        turned = turned - bare * (jnp.sum(turned * bare) / length**2)
        return jax.nn.logsumexp(logits) / beta, (coordinates.T @ turned).reshape(-1), shares, loss

    def step(_, state):
        x, value, gradient, steps, changes, sizes, stride = state
        d = _direction(gradient, steps, changes, sizes)
        slope = jnp.dot(d, gradient)
        downhill = slope < 0.0
        d = jnp.where(downhill, d, -gradient)
        slope = jnp.where(downhill, slope, -jnp.dot(gradient, gradient))
        # Without pairs the direction has no scale: a tenth of the length of x.
        fresh = sizes[-1] == 0.0
        most = 0.1 * jnp.linalg.norm(x) / jnp.maximum(jnp.linalg.norm(d), 1e-300)
        scale = stride * jnp.where(fresh, most, jnp.minimum(1.0, 10.0 * most))
        new = x + scale * d
        found, turned, _, _ = smoothed(new)
        better = jnp.isfinite(found) & jnp.all(jnp.isfinite(turned)) & (found <= value + 1e-4 * scale * slope)
        s, y = new - x, turned - gradient
        curved = jnp.dot(s, y)
        keep = better & (curved > 1e-12 * jnp.linalg.norm(s) * jnp.linalg.norm(y))

        def push(old, item):
            return jnp.where(keep, jnp.concatenate([old[1:], item[None]]), old)

        # Pairs that lead nowhere are dropped; steepest descent may become as short as it needs.
        lost = ~better & (stride < 1e-2) & ~fresh
        sizes = jnp.where(lost, 0.0, push(sizes, curved))
        stride = jnp.where(
            better, jnp.where(fresh, 1.0, jnp.minimum(1.0, 4.0 * stride)), jnp.where(lost, 1e-2, 0.2 * stride)
        )
        return (
            jnp.where(better, new, x),
            jnp.where(better, found, value),
            jnp.where(better, turned, gradient),
            push(steps, s),
            push(changes, y),
            sizes,
            stride,
        )

    first = solve_triangular(coordinates, start, lower=False)
    x = first.reshape(-1) / jnp.linalg.norm(first)
    value, gradient, _, _ = smoothed(x)
    nothing = jnp.zeros((_PAIRS, x.size), x.dtype)
    state = (x, value, gradient, nothing, nothing, jnp.zeros(_PAIRS, x.dtype), jnp.ones_like(value))
    x = jax.lax.fori_loop(0, STEPS, step, state)[0]
    _, _, shares, loss = smoothed(x)
    bare = coordinates @ x.reshape(shape)
    return (root / jnp.linalg.norm(bare)) * bare, shares, loss


def _direction(gradient, steps, changes, sizes):
    """The two-loop recursion; pairs of size 0 are none."""
    q = gradient
    usable = sizes > 0.0
    inverse = jnp.where(usable, 1.0 / jnp.where(usable, sizes, 1.0), 0.0)
    kept = []
    for k in reversed(range(_PAIRS)):
        a = inverse[k] * jnp.dot(steps[k], q)
        kept.append(a)
        q = q - a * changes[k]
    square = jnp.dot(changes[-1], changes[-1])
    q = q * jnp.where(usable[-1], sizes[-1] / jnp.where(square > 0.0, square, 1.0), 1.0)
    for k in range(_PAIRS):
        b = inverse[k] * jnp.dot(changes[k], q)
        q = q + (kept[_PAIRS - 1 - k] - b) * jnp.where(usable[k], 1.0, 0.0) * steps[k]
    return -q


def power_for(
    gram: Float[Array, "p r r"],
    weight: Float[Array, "p r"],
    constant: Float[Array, " p"],
    inverse: Float[Array, " p"],
    noise: Float[Array, "r J"],
    target: Float[Array, ""],
) -> tuple[Float[Array, ""]]:
    """The factor by which the noise must be multiplied for its largest loss to be `target`.

    The derivative of the largest loss along this ray is that of the least loss in the power where the noise is optimal
    (envelope theorem), so that alternating with `climb` converges like Newton's method.
    """

    def largest(log_factor):
        loss, _ = losses_of(gram, weight, constant, inverse, jnp.exp(0.5 * log_factor) * noise)
        return jnp.log(jnp.max(loss))

    goal = jnp.log(target)

    def step(_, x):
        # log loss falls with a slope between 0 and -1 in log power: a secant of slope -1 never overshoots.
        value, slope = jax.value_and_grad(largest)(x)
        return x + jnp.clip((goal - value) / jnp.minimum(slope, -1e-3), -3.0, 3.0)

    return (jnp.exp(jax.lax.fori_loop(0, 8, step, jnp.zeros_like(goal))),)
