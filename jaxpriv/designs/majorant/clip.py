"""The least-trace majorant of many floors by projected ascent on its low-rank dual."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int

from jaxpriv.designs.majorant.repair import compress, lift_all
from jaxpriv.designs.majorant.stack import FloorStack
from jaxpriv.linalg.ordering import after


CHUNK = 20
"""Steps between two looks at the cheap gap estimate."""

ROUNDING = 2e-15
"""Relative fall of the dual value that counts as rounding, not as a reason to restart."""


class Majorant(NamedTuple):
    """Noise that meets every floor, and the dual columns that bound what any other noise could cost.

    The noise covariance is factor @ factor.T + noise_floor * I. `value` is its trace; `dual_value` is a lower bound on
    the trace of any noise that meets the floors and exceeds noise_floor * I (both in float64: a proposal, to be
    certified elsewhere from `factor` and `columns`); `gap` = (value - dual_value) / value. `columns` (J, n, k): Z_j
    with the spectral norm of [Z_1 .. Z_J] at most 1, Y_j = Z_j Z_j^T. `history`: the dual value every CHUNK steps, the
    last one repeated; `steps` taken.
    """

    factor: Float[Array, "n q"]
    noise_floor: Float[Array, ""]
    value: Float[Array, ""]
    dual_value: Float[Array, ""]
    gap: Float[Array, ""]
    columns: Float[Array, "J n k"]
    steps: Int[Array, ""]
    history: Float[Array, " h"]


class AscentState(NamedTuple):
    """Columns Z, their products with the floors (fixed and scaled part), the step before, momentum and the value."""

    columns: Array
    fixed: Array
    scaled: Array
    columns_before: Array
    fixed_before: Array
    scaled_before: Array
    momentum: Array
    value: Array


def flat(columns: Float[Array, "J n k"]) -> Float[Array, "n K"]:
    """[Z_1 .. Z_J] side by side."""
    return columns.transpose(1, 0, 2).reshape(columns.shape[1], -1)


def clip_to_ball(columns: Float[Array, "J n k"]) -> Float[Array, "J n k"]:
    """The nearest columns with [Z_1 .. Z_J] of spectral norm at most 1: singular values above 1 become 1.

    From the smaller Gram matrix; only singular values above 1 enter, so nothing is lost by squaring.
    """
    count, n, k = columns.shape
    wide = flat(columns)

    def excess(gram: Array) -> tuple[Array, Array]:
        values, vectors = jnp.linalg.eigh(gram)
        return 1.0 - 1.0 / jnp.sqrt(jnp.maximum(values, 1.0)), vectors

    if wide.shape[1] <= n:
        cut, vectors = excess(wide.T @ wide)
        wide = wide - (wide @ vectors) * cut @ vectors.T
    else:
        cut, vectors = excess(wide @ wide.T)
        wide = wide - (vectors * cut) @ (vectors.T @ wide)
    return wide.reshape(n, count, k).transpose(1, 0, 2)


@eqx.filter_jit
def start_columns(stack: FloorStack) -> Float[Array, "J n k"]:
    """Where the ascent begins when nothing better is known: each floor's own directions at unit length, in the ball."""
    lengths = jnp.linalg.norm(stack.directions, axis=1, keepdims=True)
    return clip_to_ball(stack.directions / jnp.where(lengths > 0, lengths, 1.0))


def recover(columns: Float[Array, "J n k"], products: Float[Array, "J n k"]) -> Float[Array, "n q"]:
    """A factor of the noise that the dual columns point to, from Z and [F_j Z_j].

    At the optimum G = sum F_j Y_j = Z Z^T [F_j Z_j] Z^T: the symmetric positive part of Z^T [F_j Z_j] between Z and
    Z^T, or, with more columns than coordinates, the positive part of sum F_j Y_j itself.
    """
    z, fz = flat(columns), flat(products)
    square = fz @ z.T if z.shape[1] > z.shape[0] else z.T @ fz
    values, vectors = jnp.linalg.eigh((square + square.T) / 2)
    root = vectors * jnp.sqrt(jnp.maximum(values, 0.0))
    return root if z.shape[1] > z.shape[0] else z @ root


def cheap_reach(columns: Float[Array, "J n k"], products: Float[Array, "J n k"]) -> Float[Array, ""]:
    """About what the recovered noise costs once lifted: its trace and what is missing along every floor's own columns.

    A heuristic that decides when the lift itself is worth its price: an excess elsewhere is not seen.
    """
    factor = recover(columns, products)
    inside = jnp.einsum("jna,nq->jaq", columns, factor)
    missing = jnp.einsum("jna,jnb->jab", columns, products) - jnp.einsum("jaq,jbq->jab", inside, inside)
    values, vectors = jnp.linalg.eigh(after(jnp.einsum("jna,jnb->jab", columns, columns), factor))
    keep = values > 1e-20 + 1e-12 * values[:, -1:]
    scaled = vectors * jnp.where(keep, 1.0 / jnp.sqrt(jnp.where(keep, values, 1.0)), 0.0)[:, None, :]
    inner = jnp.einsum("jba,jbc,jcd->jad", scaled, missing, scaled)
    excess = jnp.linalg.eigvalsh((inner + jnp.swapaxes(inner, 1, 2)) / 2)
    return jnp.sum(factor**2) + jnp.sum(jnp.maximum(excess, 0.0))


def begin(stack: FloorStack, columns: Float[Array, "J n k"]) -> AscentState:
    """The ascent at given columns, without momentum; its value is filled by the caller."""
    fixed, scaled = stack.apply(columns)
    one = jnp.ones((), columns.dtype)
    return AscentState(columns, fixed, scaled, columns, fixed, scaled, one, one)


def advance(stack: FloorStack, state: AscentState, beta: Array, step: Array) -> tuple[AscentState, AscentState]:
    """One accelerated step Z <- clip(Y + step [F_j Y_j]), Y the extrapolated columns: the new state (its value still
    the old one) and the state to fall back on when the value did not rise (no step, no momentum)."""
    momentum = (1 + jnp.sqrt(1 + 4 * state.momentum**2)) / 2
    weight = (state.momentum - 1) / momentum

    def ahead(now: Array, before: Array) -> Array:
        return now + weight * (now - before)

    y = ahead(state.columns, state.columns_before)
    fy = ahead(state.fixed, state.fixed_before) + beta * ahead(state.scaled, state.scaled_before)
    columns = clip_to_ball(y + step * fy)
    fixed, scaled = stack.apply(columns)
    new = AscentState(columns, fixed, scaled, state.columns, state.fixed, state.scaled, momentum, state.value)
    back = AscentState(
        state.columns,
        state.fixed,
        state.scaled,
        state.columns,
        state.fixed,
        state.scaled,
        jnp.ones_like(momentum),
        state.value,
    )
    return new, back


def choose(condition: Array, yes: AscentState, no: AscentState) -> AscentState:
    """yes where condition, else no."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


def relative_gap(upper: Array, lower: Array, scale: Array) -> Array:
    """(upper - lower) / upper; absolute in units of 1e-12 * scale where the cost is that small."""
    return (upper - lower) / jnp.maximum(upper, 1e-12 * scale)


def clip_majorant(
    stack: FloorStack,
    *,
    noise_floor: ArrayLike = 0.0,
    tolerance: ArrayLike = 1e-6,
    max_steps: int = 4000,
    start: Float[Array, "J n k"] | None = None,
) -> Majorant:
    """Least tr G with G - F_j and G - noise_floor I positive semidefinite for all j.

    Dual: maximise sum tr(Z_j^T F_j Z_j) over [Z_1 .. Z_J] of spectral norm at most 1, by the step
    Z <- clip(Z + [F_j Z_j] / c), c at least the largest eigenvalue of any -F_j (then the value never falls), with
    momentum that restarts when the value would. Every `CHUNK` steps the trace of the recovered noise is compared with
    the dual value; when they agree to `tolerance` the noise is lifted over all floors and the true gap decides; it also
    ends at `max_steps` (static) or when the value no longer moves. `start` warm-starts the columns.
    Source: derived here from the dual of the trace-minimisation problem; proof in docs/design.md.
    """
    dtype = stack.directions.dtype
    start = start_columns(stack) if start is None else start
    return _clip_majorant(stack, jnp.asarray(noise_floor, dtype), jnp.asarray(tolerance, dtype), max_steps, start)


@eqx.filter_jit
def _clip_majorant(stack: FloorStack, noise_floor: Array, tolerance: Array, max_steps: int, start: Array) -> Majorant:
    lowered = stack.above(noise_floor)
    step = 1.0 / jnp.maximum(lowered.curvature(), 1e-300)
    looks = -(-max_steps // CHUNK)

    def inner(products: Array, columns: Array) -> Array:
        return jnp.sum(products * columns)

    def body(_: int, state: AscentState) -> AscentState:
        new, back = advance(lowered, state, jnp.ones_like(step), step)
        value = inner(new.fixed + new.scaled, new.columns)
        return choose(value >= state.value - ROUNDING * jnp.abs(state.value), new._replace(value=value), back)

    def look(carry):
        state, steps, history, estimate, _ = carry
        after = jax.lax.fori_loop(0, CHUNK, body, state)
        history = history.at[steps // CHUNK].set(after.value)
        reach = cheap_reach(after.columns, after.fixed + after.scaled)
        gap = jnp.abs(relative_gap(reach, after.value, 1 / step))
        stuck = (after.value <= state.value) & (gap >= estimate)
        return after, steps + CHUNK, history, gap, stuck

    def propose(state: AscentState) -> tuple[Array, Array]:
        factor = recover(state.columns, state.fixed + state.scaled)
        _, added = lift_all(lowered.frozen(state.columns), factor @ factor.T)
        factor = compress(factor, added)
        return factor, jnp.sum(factor**2)

    floor_power = noise_floor * stack.size

    def round_(carry):
        state, steps, history, _, _, threshold, _, _ = carry
        inner_carry = (state, steps, history, jnp.asarray(jnp.inf, step.dtype), jnp.asarray(False))
        state, steps, history, estimate, stuck = jax.lax.while_loop(
            lambda c: (c[3] > threshold) & (c[1] < looks * CHUNK) & ~c[4], look, inner_carry
        )
        factor, power = propose(state)
        gap = relative_gap(floor_power + power, floor_power + state.value, 1 / step)
        threshold = jnp.minimum(threshold, estimate) * jnp.clip(0.5 * tolerance / jnp.maximum(gap, 1e-300), 0.1, 0.5)
        return state, steps, history, stuck, gap, threshold, factor, power

    state = begin(lowered, clip_to_ball(start))
    state = state._replace(value=inner(state.fixed + state.scaled, state.columns))
    width = min(stack.size, jax.eval_shape(propose, state)[0].shape[1])
    carry = (
        state,
        jnp.asarray(0),
        jnp.full(looks, -jnp.inf, step.dtype),
        jnp.asarray(False),
        jnp.asarray(jnp.inf, step.dtype),
        tolerance,
        jnp.zeros((stack.size, width), step.dtype),
        jnp.zeros_like(step),
    )
    carry = jax.lax.while_loop(lambda c: (c[4] > tolerance) & (c[1] < looks * CHUNK) & ~c[3], round_, carry)
    state, steps, history, _, gap, _, factor, power = carry
    return Majorant(
        factor=factor,
        noise_floor=noise_floor,
        value=floor_power + power,
        dual_value=floor_power + state.value,
        gap=gap,
        columns=state.columns,
        steps=steps,
        history=floor_power + jax.lax.cummax(history),
    )
