"""The least common scale of all targets within a budget, by the interior-point method, in one solve."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int

from jaxpriv.designs.majorant.primal_dual import CLOSEST
from jaxpriv.designs.majorant.schur import dense_solver, longest_steps, slacks, sym


class PrimalDualBudget(NamedTuple):
    """Noise of trace exactly the budget that meets the floors at targets times `scale`, and feasible duals.

    `duals` (J + 1, m, m) begin with that of the noise floor; they sum to a multiple of I and sum tr(Y_j E_j) = 1.
    `scale_bound` is below the scale of any noise within the budget; `gap` = (scale - scale_bound) / scale.
    """

    noise: Float[Array, "m m"]
    duals: Float[Array, "J1 m m"]
    scale: Float[Array, ""]
    scale_bound: Float[Array, ""]
    gap: Float[Array, ""]
    steps: Int[Array, ""]


class _Point(NamedTuple):
    noise: Array
    beta: Array
    duals: Array
    total: Array


def solve_primal_dual_budget(
    fixed: Float[Array, "J m m"],
    scaled: Float[Array, "J m m"],
    budget: ArrayLike,
    *,
    noise_floor: ArrayLike = 0.0,
    tolerance: ArrayLike = 1e-8,
    max_steps: int = 60,
) -> PrimalDualBudget:
    """Largest beta = 1 / scale with G >= fixed_j + beta scaled_j, G >= noise_floor I and tr G = budget.

    For floors with fixed_j negative semidefinite, as those of inference are, and a budget above m noise_floor; others
    may have no interior at beta = 0, where the method starts. Dual: min y b - sum tr(fixed_j Y_j) with sum Y_j = y I
    and sum tr(scaled_j Y_j) = 1. Dense, for m up to about 60.
    """
    dtype = fixed.dtype
    power, floor = jnp.asarray(budget, dtype), jnp.asarray(noise_floor, dtype)
    return _solve(fixed, scaled, power, floor, jnp.asarray(tolerance, dtype), max_steps)


@eqx.filter_jit
def _solve(
    fixed: Array, scaled: Array, budget: Array, base: Array, tolerance: Array, max_steps: int
) -> PrimalDualBudget:
    count, m, _ = fixed.shape
    dtype = fixed.dtype
    eye = jnp.eye(m, dtype=dtype)
    unit = (budget - m * base) / m
    zero = jnp.zeros((1, m, m), dtype)
    size = jnp.max(jnp.linalg.norm(scaled, axis=(1, 2)))
    f = jnp.concatenate([zero, (sym(fixed) - base * eye) / unit])
    e = jnp.concatenate([zero, sym(scaled) / size])
    count += 1
    power = jnp.asarray(float(m), dtype)

    def gap_of(point: _Point) -> Array:
        return jnp.sum((point.noise - f - point.beta * e) * point.duals)

    def step(point: _Point) -> _Point:
        noise, beta, duals, total = point
        both = slacks(jnp.concatenate([noise - f - beta * e, duals]))
        slack = both.part(slice(count))
        solve = dense_solver(duals, slack.inverse)
        mean = jnp.sum(slack.matrix * duals) / (count * m)
        pushed = sym(duals @ e @ slack.inverse)
        g, h = jnp.sum(pushed, axis=0), jnp.sum(e * pushed)
        x2, x3 = solve(g), solve(eye)

        def direction(target: Array, corrector: Array | float) -> tuple[Array, Array, Array, Array]:
            c = target * slack.inverse - duals - corrector
            x1 = solve(jnp.sum(c, axis=0) - (total * eye - jnp.sum(duals, axis=0)))
            r1 = 1.0 - jnp.sum(e * (duals + c)) + jnp.sum(g * x1)
            r2 = power - jnp.trace(noise) - jnp.trace(x1)
            a11, a12 = h - jnp.sum(g * x2), jnp.sum(g * x3)
            a21, a22 = jnp.trace(x2), -jnp.trace(x3)
            det = a11 * a22 - a12 * a21
            d_beta, d_total = (r1 * a22 - a12 * r2) / det, (a11 * r2 - a21 * r1) / det
            d_noise = x1 + d_beta * x2 - d_total * x3
            d_slack = d_noise - d_beta * e
            return d_noise, d_beta, jnp.concatenate([d_slack, sym(c - sym(duals @ d_slack @ slack.inverse))]), d_total

        _, _, d, _ = direction(jnp.zeros_like(mean), 0.0)
        primal, dual = (jnp.minimum(1.0, longest) for longest in longest_steps(both, d, count))
        reached = jnp.sum((slack.matrix + primal * d[:count]) * (duals + dual * d[count:])) / (count * m)
        centring = jnp.clip((reached / mean) ** 3, 1e-6, 1.0)
        corrector = sym(d[count:] @ d[:count] @ slack.inverse)
        d_noise, d_beta, d, d_total = direction(centring * mean, corrector)
        primal, dual = (jnp.minimum(1.0, CLOSEST * longest) for longest in longest_steps(both, d, count))
        return _Point(
            sym(noise + primal * d_noise), beta + primal * d_beta, sym(duals + dual * d[count:]), total + dual * d_total
        )

    def body(carry):
        point, gap, steps, _ = carry
        new = step(point)
        new_gap = gap_of(new)
        good = (new_gap < 2 * gap) & (new_gap > 0)
        point = jax.tree.map(lambda a, b: jnp.where(good, a, b), new, point)
        return point, jnp.where(good, new_gap, gap), steps + 1, good

    def going(carry):
        point, gap, steps, good = carry
        return (gap > tolerance * jnp.maximum(point.beta, 1e-12)) & (steps < max_steps) & good

    start = 1.0 / jnp.sum(jnp.trace(e, axis1=1, axis2=2))
    duals = jnp.broadcast_to(start * eye, (count, m, m))
    first = _Point(eye, jnp.zeros((), dtype), duals, count * start)
    point, _, steps, _ = jax.lax.while_loop(going, body, (first, gap_of(first), jnp.asarray(0), jnp.asarray(True)))
    bound = (point.total * power - jnp.sum(f * point.duals)) * unit / size
    beta = point.beta * unit / size
    return PrimalDualBudget(
        noise=unit * point.noise + base * eye,
        duals=point.duals / size,
        scale=1.0 / beta,
        scale_bound=1.0 / bound,
        gap=1.0 - beta / bound,
        steps=steps,
    )
