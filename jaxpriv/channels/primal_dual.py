"""A first-order method for the linear program of an optimal channel, on any backend, in memory O(pairs × outputs).

The Lagrangian game min over row-stochastic K, max over λ, ω >= 0 of Σ C K + Σ λ (A K) − Σ ω (B K) is solved by the
primal–dual hybrid gradient method of Chambolle and Pock (2011), over-relaxed (Condat 2013). Rows are projected exactly
onto the simplex, steps follow the local weight of the prior, and any λ, ω >= 0 give a lower bound:
docs/optimal_channels.md.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxpriv.channels.program_blocks import Program


# Below 2, where the iteration need not converge.
_RELAXATION = 1.8


class Iterate(NamedTuple):
    """Channel and multipliers, or a step between two of them, in the program's order of outputs."""

    matrix: Float[Array, "n M"]
    limits: Float[Array, "B D W k"]
    tails: Float[Array, "t M"]
    errors: Float[Array, "g M"]


class Report(NamedTuple):
    """What a stretch of iterations ended with, computed in the iterates' own precision: a guide, not a claim."""

    lower_bound: Float[Array, ""]
    loss: Float[Array, ""]


def start(program: Program, matrix: Float[np.ndarray, "n M"]) -> Iterate:
    """The iterate at a given channel with all multipliers zero."""
    columns = program.cost.shape[1]
    dtype = program.cost.dtype
    shape = (*program.own.shape, columns // program.own.shape[0])
    errors = jnp.zeros((program.errors.shape[0], columns), dtype)
    return Iterate(jnp.asarray(matrix, dtype), jnp.zeros(shape, dtype), jnp.zeros(program.tail.shape, dtype), errors)


@partial(jax.jit, static_argnames=("steps",))
def advance(
    program: Program, iterate: Iterate, ratio: Float[Array, ""], norm: Float[Array, ""], *, steps: int
) -> tuple[Iterate, Iterate, Report]:
    """`steps` over-relaxed iterations from `iterate`; also one plain step further, which is a channel with prices >= 0.

    `ratio` is the dual-to-primal step ratio, `norm` at least the norm of the weighted constraints.
    """

    def body(_, current):
        return _move(program, current, _RELAXATION, ratio, norm)

    iterate = jax.lax.fori_loop(0, steps, body, iterate)
    plain = _move(program, iterate, 1.0, ratio, norm)
    bound = jnp.sum(jnp.min(_reduced_cost(program, plain), axis=1))
    return iterate, plain, Report(bound, jnp.sum(program.cost * plain.matrix))


@jax.jit
def step_ratio(program: Program, iterate: Iterate, earlier: Iterate, ratio: Float[Array, ""]) -> Float[Array, ""]:
    """The ratio of dual to primal travel since an earlier iterate, averaged in logarithms with the present ratio."""
    moved = jax.tree.map(jnp.subtract, iterate, earlier)
    primal = jnp.sqrt(jnp.sum(moved.matrix**2 * program.weight[:, None]))
    dual = jnp.sqrt(_dual_square(program, moved))
    travelled = (primal > 0.0) & (dual > 0.0)
    found = jnp.where(travelled, dual / jnp.where(travelled, primal, 1.0), ratio)
    return jnp.sqrt(found * ratio)


def _move(program: Program, iterate: Iterate, relaxation: float, ratio: Array, norm: Array) -> Iterate:
    """z + relaxation (T(z) − z), T one primal–dual step."""

    def relaxed(plain, current):
        return current + relaxation * (plain - current)

    gradient = _reduced_cost(program, iterate)
    step = 1.0 / (norm * ratio * program.weight[:, None])
    matrix = _simplex(iterate.matrix - gradient * step, iterate.matrix > 0.0)
    ahead = 2.0 * matrix - iterate.matrix
    by_block = ahead.reshape(len(ahead), program.own.shape[0], -1)

    def block(_, data):
        here, prices = data
        residual = _block_residual(here, by_block)
        plain = jnp.maximum(0.0, prices + (ratio / norm) * here.push[:, :, None] * residual)
        return None, relaxed(plain, prices)

    _, limits = jax.lax.scan(block, None, (_blocks(program), iterate.limits))
    tails = iterate.tails
    if len(tails):
        plain = jnp.maximum(0.0, tails + (ratio / norm) * _tail_push(program) * _tail_residual(program, ahead))
        tails = relaxed(plain, tails)
    errors = jnp.maximum(0.0, iterate.errors - (ratio / norm) * (program.errors @ ahead))
    return Iterate(relaxed(matrix, iterate.matrix), limits, tails, relaxed(errors, iterate.errors))


def _tail_residual(program: Program, matrix: Array) -> Array:
    """e^{−c} K[anchor] − K[x] at each output."""
    return program.tail * matrix[program.anchor, jnp.arange(matrix.shape[1])] - matrix


def _tail_push(program: Program) -> Array:
    """The weight of each tail's step; zero where there is no tail."""
    return jnp.where(program.tail > 0.0, jnp.minimum(program.weight[:, None], program.weight[program.anchor]), 0.0)


class _Block(NamedTuple):
    number: Array
    places: Array
    neighbour: Array
    back: Array
    own: Array
    gain: Array
    received: Array
    push: Array


def _blocks(program: Program) -> _Block:
    numbers = jnp.arange(program.own.shape[0])
    return _Block(numbers, *(getattr(program, name) for name in _Block._fields[1:]))


def _block_residual(block: _Block, matrix: Array) -> Array:
    """own K[x] − gain K[neighbour] at the outputs of a block, (D, W, k); matrix (n, B, k)."""
    near = matrix[block.places, block.number]
    return block.own[:, :, None] * near[None] - block.gain[:, :, None] * near[block.neighbour]


def _reduced_cost(program: Program, iterate: Iterate) -> Array:
    def block(_, data):
        here, prices = data

        def collect(j, total):
            paid = here.own[j, :, None] * prices[j]
            return total + paid - here.received[j, :, None] * prices[here.back[j], here.neighbour[j]]

        none = jnp.zeros(prices.shape[1:], prices.dtype)
        total = jax.lax.fori_loop(0, prices.shape[0], collect, none, unroll=8)
        # Inputs that are not in the block read the row of zeros.
        return None, jnp.pad(total, ((0, 1), (0, 0)))

    _, collected = jax.lax.scan(block, None, (_blocks(program), iterate.limits))
    n, columns = program.cost.shape
    blocks = program.own.shape[0]
    spread = collected[jnp.arange(blocks)[None, :], program.row.T]
    total = program.cost - program.errors.T @ iterate.errors + spread.reshape(n, columns)
    if len(iterate.tails):
        owed = jnp.sum(program.tail * iterate.tails, axis=0)
        total = (total - iterate.tails).at[program.anchor, jnp.arange(columns)].add(owed)
    return total


def _simplex(values: Array, likely: Array) -> Array:
    """Each row projected onto the simplex: Newton's iteration on its threshold, from below, ends exactly.

    The mean of any entries less 1/count is below the threshold, and close for the entries that end positive: `likely`.
    """
    tolerance = 64.0 * jnp.finfo(values.dtype).eps

    def rise(state):
        threshold, k, _ = state
        above = values > threshold
        surplus = jnp.sum(jnp.where(above, values - threshold, 0.0), axis=1, keepdims=True) - 1.0
        moved = threshold + surplus / jnp.maximum(jnp.sum(above, axis=1, keepdims=True), 1)
        return moved, k + 1, jnp.max(surplus)

    count = jnp.sum(likely, axis=1, keepdims=True)
    mean = (jnp.sum(jnp.where(likely, values, 0.0), axis=1, keepdims=True) - 1.0) / jnp.maximum(count, 1)
    first = jnp.max(values, axis=1, keepdims=True) - 1.0
    first = jnp.where(count > 0, jnp.maximum(first, mean), first)
    threshold, _, _ = jax.lax.while_loop(
        lambda state: (state[2] > tolerance) & (state[1] < 40), rise, (first, 0, jnp.asarray(jnp.inf, values.dtype))
    )
    return jnp.maximum(0.0, values - threshold)


def _dual_square(program: Program, moved: Iterate) -> Array:
    weight = jnp.where(program.push > 0.0, program.push, 1.0)[..., None]
    total = jnp.sum(moved.limits**2 / weight) + jnp.sum(moved.errors**2)
    if len(moved.tails):
        push = _tail_push(program)
        total = total + jnp.sum(moved.tails**2 / jnp.where(push > 0.0, push, 1.0))
    return total
