"""The least common scale of all targets within a noise budget, in one ascent."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int

from jaxpriv.designs.majorant.clip import (
    CHUNK,
    ROUNDING,
    AscentState,
    advance,
    begin,
    cheap_reach,
    choose,
    clip_to_ball,
    recover,
    start_columns,
)
from jaxpriv.designs.majorant.repair import compress, lift_all
from jaxpriv.designs.majorant.stack import FloorStack
from jaxpriv.errors import InputError
from jaxpriv.linalg.ordering import after


class BudgetMajorant(NamedTuple):
    """Noise within a budget that meets every target times `scale`, and the columns that bound what any noise can do.

    The noise covariance is factor @ factor.T + noise_floor * I, of trace at most the budget (to rounding). `scale` is
    reached; `scale_bound` is a lower bound for any noise of that trace above noise_floor * I; `gap` =
    (scale - scale_bound) / scale. Where the budget does not even pay for the noise floor and the fixed floors, `scale`
    is inf. `columns`, `steps`, `history` (of the bound) as in `Majorant`.
    """

    factor: Float[Array, "n q"]
    noise_floor: Float[Array, ""]
    scale: Float[Array, ""]
    scale_bound: Float[Array, ""]
    gap: Float[Array, ""]
    columns: Float[Array, "J n k"]
    steps: Int[Array, ""]
    history: Float[Array, " h"]


def scale_bound(stack: FloorStack, columns: Float[Array, "J n k"], budget: ArrayLike) -> Float[Array, ""]:
    """The least scale of the targets that noise of trace `budget` can reach, as the columns Z (in the ball) prove it:
    sum tr(Y_j E_j) / (budget - sum tr(Y_j F_j(0))), F_j = F_j(0) + E_j / scale.

    inf where they prove that no scale will do. Differentiable; at the optimal columns its gradient is that of the
    optimum (envelope theorem).
    """
    fixed, scaled = stack.apply(columns)
    return _inverse((jnp.asarray(budget) - jnp.sum(columns * fixed)) / jnp.sum(columns * scaled))


def _inverse(beta: Array) -> Array:
    return jnp.where(beta > 0, 1.0 / jnp.where(beta > 0, beta, 1.0), jnp.inf)


def clip_budget(
    stack: FloorStack,
    budget: ArrayLike,
    *,
    noise_floor: ArrayLike = 0.0,
    tolerance: ArrayLike = 1e-6,
    max_steps: int = 4000,
    start: Float[Array, "J n k"] | None = None,
) -> BudgetMajorant:
    """Least tau such that some G >= noise_floor I of trace at most `budget` meets all floors at the targets tau t_j.

    With beta = 1/tau the floors are F_j(0) + beta E_j, the least trace v(beta) is convex, and any columns Z of spectral
    norm at most 1 give beta(Z) = (budget - sum tr(Y_j F_j(0))) / sum tr(Y_j E_j) >= beta*: the Newton iterate of
    v(beta) = budget from their tangent. The ascent of `clip_majorant` at beta(Z), renewed at every step, makes beta(Z)
    fall monotonically, so one ascent finds the root. The noise recovered at the last beta is lifted over the floors and
    mixed with noise for the fixed floors alone (zero if there are none) until it costs the budget; floors are jointly
    convex in (G, beta), so the mixture meets them at the beta mixed alike. Fixed floors hold at every scale. Raises
    InputError when no floor scales. Source: derived here (Dinkelbach's method for fractional programs, one ascent step
    an update); proof in docs/design.md.
    """
    if len(stack.fixed) == stack.count:
        raise InputError("no floor scales with the targets, so there is no scale to find; use clip_majorant")
    dtype = stack.directions.dtype
    start = start_columns(stack) if start is None else start
    power, floor = jnp.asarray(budget, dtype), jnp.asarray(noise_floor, dtype)
    return _clip_budget(stack, power, floor, jnp.asarray(tolerance, dtype), max_steps, start)


@eqx.filter_jit
def _clip_budget(
    stack: FloorStack, budget: Array, noise_floor: Array, tolerance: Array, max_steps: int, start: Array
) -> BudgetMajorant:
    lowered = stack.above(noise_floor)
    step = 1.0 / jnp.maximum(lowered.curvature(), 1e-300)
    dtype = step.dtype
    power = budget - noise_floor * stack.size
    looks = -(-max_steps // CHUNK)

    def settle(state: AscentState) -> AscentState:
        """`value` holds beta(Z), which falls."""
        scaled = jnp.sum(state.columns * state.scaled)
        return state._replace(value=(power - jnp.sum(state.columns * state.fixed)) / jnp.maximum(scaled, 1e-300))

    def body(_: int, state: AscentState) -> AscentState:
        new, back = advance(lowered, state, state.value, step)
        new = settle(new)
        return choose(new.value <= state.value + ROUNDING * jnp.abs(state.value), new, back)

    def products(state: AscentState) -> Array:
        return state.fixed + state.value * state.scaled

    def look(carry):
        state, steps, history, estimate, _ = carry
        after = jax.lax.fori_loop(0, CHUNK, body, state)
        history = history.at[steps // CHUNK].set(after.value)
        gap = jnp.abs(cheap_reach(after.columns, products(after)) / jnp.maximum(power, 1e-300) - 1.0)
        stuck = ((after.value >= state.value) & (gap >= estimate)) | (after.value <= 0)
        return after, steps + CHUNK, history, gap, stuck

    if stack.fixed:
        anchor_noise, anchor = lift_all(_only_fixed(lowered), jnp.zeros((stack.size, stack.size), dtype), 0.0)
        anchor_power = jnp.trace(anchor_noise)
    else:
        anchor, anchor_power = jnp.zeros((stack.size, 0), dtype), jnp.zeros((), dtype)

    def propose(state: AscentState) -> tuple[Array, Array]:
        factor = recover(state.columns, products(state))
        lifted, added = lift_all(lowered.frozen(state.columns), factor @ factor.T, state.value)
        spare = jnp.maximum(jnp.trace(lifted) - anchor_power, 1e-300)
        share = jnp.clip((power - anchor_power) / spare, 0.0, 1.0)
        scale = jnp.sqrt(share)
        return compress(scale * factor, scale * added, jnp.sqrt(1.0 - share) * anchor), share * state.value

    def round_(carry):
        state, steps, history, _, _, threshold, _, _ = carry
        state, steps, history, estimate, stuck = jax.lax.while_loop(
            lambda c: (c[3] > threshold) & (c[1] < looks * CHUNK) & ~c[4],
            look,
            (state, steps, history, jnp.asarray(jnp.inf, dtype), jnp.asarray(False)),
        )
        factor, beta = propose(state)
        gap = jnp.where(beta > 0, 1.0 - beta / state.value, jnp.inf)
        threshold = jnp.minimum(threshold, estimate) * jnp.clip(0.5 * tolerance / jnp.maximum(gap, 1e-300), 0.1, 0.5)
        return state, steps, history, stuck, gap, threshold, factor, beta

    state = settle(begin(lowered, clip_to_ball(after(start, anchor_power))))
    width = jax.eval_shape(propose, state)[0].shape[1]
    carry = (
        state,
        jnp.asarray(0),
        jnp.full(looks, jnp.inf, dtype),
        jnp.asarray(False),
        jnp.asarray(jnp.inf, dtype),
        tolerance,
        jnp.zeros((stack.size, width), dtype),
        jnp.zeros((), dtype),
    )
    carry = jax.lax.while_loop(lambda c: (c[4] > tolerance) & (c[1] < looks * CHUNK) & ~c[3], round_, carry)
    state, steps, history, _, gap, _, factor, beta = carry
    bound = _inverse(state.value)
    return BudgetMajorant(
        factor=factor,
        noise_floor=noise_floor,
        scale=_inverse(beta),
        scale_bound=bound,
        gap=gap,
        columns=state.columns,
        steps=steps,
        history=_inverse(jax.lax.cummin(history)),
    )


def _only_fixed(stack: FloorStack) -> FloorStack:
    keep = jnp.asarray(stack.fixed)
    return FloorStack(
        covariances=stack.covariances,
        directions=stack.directions[keep],
        base=stack.base[keep],
        slope=stack.slope[keep],
        shift=stack.shift,
        prior_index=tuple(stack.prior_index[j] for j in stack.fixed),
        covariance_index=stack.covariance_index,
        fixed=tuple(range(len(stack.fixed))),
    )
