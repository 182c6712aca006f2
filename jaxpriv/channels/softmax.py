"""Softmax channels under limits for any differentiable objective, with a few pairs of inputs looked at in each step."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from jaxpriv.channels.channel import Channel
from jaxpriv.channels.channel_design import within_limits
from jaxpriv.channels.gradient import starting_matrix
from jaxpriv.channels.limits import largest_excess
from jaxpriv.channels.problem import ChannelProblem
from jaxpriv.errors import CertificateError, InputError
from jaxpriv.precision import double_precision
from jaxpriv.shapes import Scalar


_FOLLOW = 0.02

Objective = Callable[[Channel], Scalar]


def softmax_search(
    problem: ChannelProblem,
    objective: Objective,
    *,
    steps: int = 3000,
    batch: int | None = None,
    learning_rate: float = 0.05,
    penalty: float = 1.0,
    drop: float = 1e-9,
    seed: int = 0,
    max_seconds: float | None = None,
) -> tuple[Channel, float]:
    """A channel within the problem's limits with a small value of any differentiable objective, and that value.

    Rows are softmax of free scores. Each step takes `batch` of the problem's pairs (all unless given) and one Adam step
    on the augmented Lagrangian of their limits, then updates the multipliers of those pairs; memory E × m numbers. The
    result is repaired against every pair and audited; nothing is known about the gap, and objectives that are not
    convex in the channel have local minima. For the expected loss use `gradient_channel`, which has a bound.

    Args:
        problem: limits, error requirement and start, from `channel_problem`.
        objective: a channel with log matrix (n, m) to a number to be made small.
        steps: of the search.
        learning_rate: of its steps.
        penalty: multiplies the scale of the cost.
        seed: of the start.
        batch: pairs looked at in a step.
        drop: outputs that no input uses with more than this probability are merged into others.
        max_seconds: stop there, of the wall clock.

    Raises:
        InputError: an unusable step count, batch, rate or penalty.
        CertificateError: the repaired channel does not pass the audit, or the objective is not finite on it.
    """
    began = time.perf_counter()
    count = 2 * len(problem.limits.pairs)
    batch = count if batch is None else min(int(batch), count)
    if steps < 1 or batch < 1 or not learning_rate > 0.0 or not penalty > 0.0:
        raise InputError("steps, batch, learning_rate and penalty must be positive.")
    first = starting_matrix(problem)
    with double_precision():
        directed = np.concatenate([problem.limits.pairs, problem.limits.pairs[:, ::-1]])
        levels = jnp.asarray(np.concatenate([problem.limits.levels] * 2))
        own = jnp.exp(-levels) / jnp.sqrt(1.0 + jnp.exp(-2.0 * levels))
        gain = 1.0 / jnp.sqrt(1.0 + jnp.exp(-2.0 * levels))
        rows = jnp.zeros((0, len(first))) if problem.errors is None else jnp.asarray(problem.errors)
        scores = jnp.log(jnp.asarray(0.7 * first + 0.3 / first.shape[1]))
        stiffness = penalty * float(np.max(np.sum(problem.cost, axis=0))) * len(first)
        optimizer = optax.adam(optax.cosine_decay_schedule(learning_rate, steps))
        step = partial(_step, objective, optimizer, jnp.asarray(directed), own, gain, rows, stiffness)
        advance = jax.jit(lambda state, keys: jax.lax.scan(lambda s, key: (step(s, key, batch), None), state, keys)[0])
        prices = (jnp.zeros((count, first.shape[1])), jnp.zeros((rows.shape[0], first.shape[1])))
        state = (scores, optimizer.init(scores), *prices)
        chunk = min(steps, 200)
        keys = jax.random.split(jax.random.key(seed), steps)
        for first_step in range(0, steps, chunk):
            state = advance(state, keys[first_step : first_step + chunk])
            if max_seconds is not None and time.perf_counter() - began > max_seconds:
                break
        found = np.asarray(jax.nn.softmax(state[0], axis=1))
        candidates = []
        for matrix in (first, found):
            repaired, _ = within_limits(problem, matrix, drop)
            with np.errstate(divide="ignore"):
                channel = Channel(np.log(repaired))
            candidates.append((float(objective(channel)), channel))
    finite = [one for one in candidates if np.isfinite(one[0])]
    if not finite:
        raise CertificateError("the objective is not finite on a channel within the limits; nothing is claimed")
    value, channel = min(finite, key=lambda one: one[0])
    if not largest_excess(np.asarray(channel.log_matrix), problem.limits.allowed) <= 0.0:
        raise CertificateError("the repaired channel does not pass its audit; nothing is claimed")
    return channel, value


def _step(objective, optimizer, directed, own, gain, rows, stiffness, state, key, batch):
    scores, memory, prices, error_prices = state
    chosen = jax.random.permutation(key, len(directed))[:batch] if batch < len(directed) else jnp.arange(len(directed))
    share = len(directed) / batch

    def lagrangian(scores: Float[Array, "n m"]):
        log_matrix = jax.nn.log_softmax(scores, axis=1)
        matrix = jnp.exp(log_matrix)
        a, b = directed[chosen, 0], directed[chosen, 1]
        residual = own[chosen, None] * matrix[a] - gain[chosen, None] * matrix[b]
        raised = jnp.maximum(0.0, prices[chosen] + stiffness * residual)
        short = jnp.maximum(0.0, error_prices - stiffness * (rows @ matrix))
        terms = jnp.sum(raised**2 - prices[chosen] ** 2) * share + jnp.sum(short**2 - error_prices**2)
        return objective(Channel(log_matrix)) + terms / (2.0 * stiffness), (raised, short)

    gradient, (raised, short) = jax.grad(lagrangian, has_aux=True)(scores)
    update, memory = optimizer.update(gradient, memory, scores)
    scores = optax.apply_updates(scores, update)
    # A small part of the multiplier step: the scores must be able to follow.
    prices = prices.at[chosen].add(_FOLLOW * (raised - prices[chosen]))
    return scores, memory, prices, error_prices + _FOLLOW * (short - error_prices)
