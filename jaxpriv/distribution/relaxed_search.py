"""Output laws that may differ by a factor e^ε, for groups too large for the linear program: an entropic first-order
method with a certified bound.

Minimises Σ p_s OT_η(λ_s, ν_s) over output laws with ν_s ≤ e^ε ν_t, OT_η the `value` of `entropic_coupling`, whose
gradient by ν_s is the potential g_s. A step is an exponentiated gradient, ν_s e^{−g_s/η}, brought back to the factors
by the Bregman projection, which is a closed form for each output; it is interleaved with Sinkhorn's iteration, so that
no coupling is solved to the end. The potentials are a dual solution of the linear program at every step. Derived here;
proof in docs/distribution.md.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from jaxpriv.channels.channel import Channel
from jaxpriv.distribution.coupling import check_groups
from jaxpriv.distribution.divergences import check_distribution
from jaxpriv.distribution.targets import RelaxedOutputs
from jaxpriv.distribution.transport import check_cost
from jaxpriv.errors import InputError
from jaxpriv.precision import double_precision


_INNER = 10  # Sinkhorn iterations for each step of the output laws
_LADDER = 8  # at most so many halvings of the scale on the way down


def searched_outputs(
    groups: Any, distance: Any, epsilon: float, scale: float, weights: Any = None, *, steps: int = 200
) -> RelaxedOutputs:
    """Channels of small expected distance whose output laws satisfy ν_s ≤ e^ε ν_t for all pairs of groups.

    The counterpart of `relaxed_outputs` for any size: time and memory are those of a few thousand products with the
    (groups, n, m) kernels. The channels are entropic: where the distance is a metric they are (2/η)-geo-
    indistinguishable besides. What the scale costs is between `cost` and `lower_bound`, which holds for the linear
    program itself.

    Args:
        groups: λ̂, (groups, n), known exactly. distance: d, (n, m).
        epsilon: nats, above 0; `barycentre` and the entropic kind of `coupling_mechanism` are for 0.
        scale: η, in the unit of the distance; a fiftieth of the typical distance moved costs little.
        weights: p, one for each group, positive; equal by default.
        steps: gradient steps at the final scale, ten iterations each.

    The channels found are mixed with the constant channel of the mean output until the bound holds in exact terms.

    Raises:
        InputError: bad arguments.
    """
    cost = check_cost(distance)
    laws = check_groups(groups, cost.shape[0])
    share = (
        np.full(len(laws), 1.0 / len(laws)) if weights is None else check_distribution(weights, "weights", len(laws))
    )
    if np.any(share == 0.0):
        raise InputError("a weight is zero; leave that group's weight small instead, as it is to be hidden too.")
    if not (math.isfinite(epsilon) and epsilon > 0.0):
        raise InputError(f"epsilon is {epsilon}; expected a positive number of nats.")
    if not (np.isfinite(scale) and scale > 0.0):
        raise InputError(f"scale is {scale}; expected a positive, finite distance.")
    if not (isinstance(steps, int) and steps >= 1):
        raise InputError(f"steps is {steps!r}; expected a whole number of at least 1.")
    laws = laws / laws.sum(axis=1, keepdims=True)
    share = share / share.sum()
    with double_precision():
        args = (jnp.asarray(cost), jnp.asarray(laws), jnp.asarray(share), jnp.asarray(float(epsilon)))
        start = jnp.full((len(laws), cost.shape[1]), -math.log(cost.shape[1])), jnp.zeros((len(laws), cost.shape[1]))
        halvings = int(np.clip(np.ceil(np.log2(max(float(np.max(cost)), scale) / scale)), 0, _LADDER))
        for k in range(halvings, 0, -1):
            start = _search(*args, scale * 2.0**k, start, max(steps // 10, 1))
        log_outputs, dual = _search(*args, scale, start, steps)
        rows = np.asarray(_channels(args[0], scale, log_outputs, dual))
        potentials = np.asarray(dual)
    rows, outputs = _repaired(rows, laws, share, epsilon)
    reached = float(np.einsum("s,sn,snm,nm->", share, laws, rows, cost, optimize=True))
    return RelaxedOutputs(
        tuple(Channel.from_matrix(one) for one in rows),
        outputs,
        reached,
        dual_bound(potentials, laws, cost, share, epsilon),
        _level(outputs, laws.shape[1]),
    )


def dual_bound(
    potentials: Float[np.ndarray, "groups m"],
    laws: Float[np.ndarray, "groups n"],
    cost: Float[np.ndarray, "n m"],
    share: Float[np.ndarray, " groups"],
    epsilon: float,
) -> float:
    """A value that no channels with output laws within e^ε of each other go below, from any potentials g.

    If Σ_s p_s (max(g_s, 0) − e^ε max(−g_s, 0)) ≥ 0 at every output, which a shift of g there arranges, then
    Σ p_s Σ_x λ_s(x) min_y (d(x, y) − g_s(y)) is a lower bound: weak duality of the linear program.
    """
    g = np.array(potentials, dtype=np.float64)
    factor = math.exp(min(epsilon, 700.0)) * (1.0 + 2.0**-50)
    weighed = share[:, None] * np.where(g > 0.0, g, factor * g)
    # A shift by c adds at least c; the slack covers the sums' rounding.
    slack = (len(g) + 8) * 2.0**-52 * np.sum(np.abs(weighed), axis=0)
    g = g + np.maximum(slack - np.sum(weighed, axis=0), 0.0) / np.sum(share)
    rows = np.stack([np.min(cost - one, axis=1) for one in g])
    value = float(np.einsum("s,sn,sn->", share, laws, rows))
    lost = (laws.size + 8) * 2.0**-52 * (float(np.max(np.abs(rows))) + float(np.max(cost)))
    return max(value - lost, 0.0)


@partial(jax.jit, static_argnums=(6,))
def _search(cost, laws, share, epsilon, scale, start, steps: int):
    """Output laws ν as logarithms and potentials g, each (groups, m), after so many steps from given ones."""
    log_laws = jnp.where(laws > 0.0, jnp.log(jnp.where(laws > 0.0, laws, 1.0)), -jnp.inf)

    def one(log_law, log_reference, dual):
        """log q: the law that the reference has after the rows' update, without the columns' factor."""
        rows = -logsumexp(log_reference[None, :] + (dual[None, :] - cost) / scale, axis=1)
        return log_reference + logsumexp((log_law + rows)[:, None] - cost / scale, axis=0)

    def iterate(_, state):
        log_reference, _, dual = state
        # One group after the other: memory of one kernel.
        log_q = jax.lax.map(lambda s: one(*s), (log_laws, log_reference, dual))
        log_outputs = projected(log_q, share, epsilon)
        return log_reference, log_outputs, scale * (log_outputs - log_q)

    def step(_, state):
        log_outputs, dual = state
        _, log_outputs, dual = jax.lax.fori_loop(0, _INNER, iterate, (log_outputs, log_outputs, dual))
        return log_outputs, dual

    return jax.lax.fori_loop(0, steps, step, start)


def projected(
    log_q: Float[Array, "groups m"], share: Float[Array, " groups"], epsilon: Float[Array, ""]
) -> Float[Array, "groups m"]:
    """The logarithms of the ν nearest to q in Σ p_s KL(ν_s ‖ q_s) with ν_s ≤ e^ε ν_t for all s, t, at every output.

    ν_s = clip(q_s, t, e^ε t), where Σ p_s log(t/q_s)₊ = e^ε Σ p_s log(q_s/(e^ε t))₊: piecewise linear in log t, with
    corners at log q_s and log q_s − ε.
    """

    def excess(u):
        below = jnp.sum(share[:, None] * jnp.maximum(u[None] - log_q, 0.0), axis=0)
        above = jnp.sum(share[:, None] * jnp.maximum(log_q - epsilon - u[None], 0.0), axis=0)
        return below - jnp.exp(epsilon) * above

    corners = jnp.sort(jnp.concatenate([log_q, log_q - epsilon]), axis=0)
    heights = jax.vmap(excess)(corners)
    last = jnp.maximum(jnp.sum(heights <= 0.0, axis=0) - 1, 0)[None]
    following = jnp.minimum(last + 1, len(corners) - 1)
    low, high = (jnp.take_along_axis(heights, at, axis=0) for at in (last, following))
    left, right = (jnp.take_along_axis(corners, at, axis=0) for at in (last, following))
    rising = high > low
    part = jnp.where(rising, -low / jnp.where(rising, high - low, 1.0), 0.0)
    log_t = left + jnp.clip(part, 0.0, 1.0) * (right - left)
    return jnp.clip(log_q, log_t, log_t + epsilon)


@jax.jit
def _channels(cost, scale, log_outputs, dual):
    scores = log_outputs[:, None, :] + (dual[:, None, :] - cost[None]) / scale
    return jax.nn.softmax(scores, axis=2)


def _repaired(rows, laws, share, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """(1 − t) C + t · constant with the least t at which all output laws are within e^ε, and these laws.

    With m the mean law, (1 − t)(o_s − e^ε o_t) ≤ t m (e^ε − 1) for all pairs and outputs: a closed form.
    """
    outputs = np.einsum("sn,snm->sm", laws, rows)
    mean = share @ outputs
    mean /= mean.sum()
    factor = math.exp(epsilon) if epsilon < 700.0 else math.inf
    over = np.max(outputs, axis=0) - factor * np.min(outputs, axis=0)
    worst = float(np.max(np.where(over > 0.0, over / np.where(mean > 0.0, mean, 1.0), 0.0))) / math.expm1(epsilon)
    t = worst / (1.0 + worst)
    for _ in range(60):
        mixed = (1.0 - t) * rows + t * mean
        mixed = mixed / mixed.sum(axis=2, keepdims=True)
        outputs = np.einsum("sn,snm->sm", laws, mixed)
        if _level(outputs, laws.shape[1]) <= epsilon:
            return mixed, outputs
        t = min(t + max(t, 2.0**-50), 1.0)
    constant = np.broadcast_to(mean, rows.shape).copy()
    return constant, np.einsum("sn,snm->sm", laws, constant)


def _level(outputs: np.ndarray, terms: int) -> float:
    """The largest D_∞ between two laws that are sums of so many products, rounded up."""
    high, low = np.max(outputs, axis=0), np.min(outputs, axis=0)
    if np.any((high > 0.0) & (low <= 0.0)):
        return math.inf
    has = high > 0.0
    return max(float(np.max(np.log(high[has]) - np.log(low[has]))), 0.0) + 4 * (terms + 8) * 2.0**-53
