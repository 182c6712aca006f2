"""Derivatives of the least trace, the least scale and the least noise, none of them through a solver's steps."""

from __future__ import annotations

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from jaxpriv.designs.majorant.budget import clip_budget, scale_bound
from jaxpriv.designs.majorant.clip import clip_majorant
from jaxpriv.designs.majorant.primal_dual import centre, cold_start, dense_maker, iterate, set_up, solve_primal_dual
from jaxpriv.designs.majorant.primal_dual_budget import solve_primal_dual_budget
from jaxpriv.designs.majorant.schur import sym
from jaxpriv.designs.majorant.stack import FloorStack
from jaxpriv.linalg.ordering import after


_CENTRING = 5  # steps; three leave errors of 1e-4 where secrets are adjacent


def least_trace(stack: FloorStack, *, noise_floor: ArrayLike = 0.0, **options: Any) -> Float[Array, ""]:
    """The least trace of noise that meets every floor, as a differentiable function of the floors.

    Envelope theorem: d p* = sum tr(Y_j dF_j), Y_j the optimal duals, held still. Forward and reverse mode; first
    derivatives only (a second one would miss how Y_j moves). The value is the dual one, below the optimum by less
    than the gap. `options` go to `clip_majorant`; ask for a small tolerance, since the derivative's error goes like the
    square root of the gap.
    """
    still, floor_still = jax.lax.stop_gradient((stack, jnp.asarray(noise_floor, stack.directions.dtype)))
    columns = jax.lax.stop_gradient(clip_majorant(still, noise_floor=floor_still, **options).columns)
    return _dual_value(stack, jnp.asarray(noise_floor, stack.directions.dtype), columns)


@eqx.filter_jit
def _dual_value(stack: FloorStack, noise_floor: Array, columns: Array) -> Array:
    fixed, scaled = stack.above(noise_floor).apply(columns)
    return noise_floor * stack.size + jnp.sum(columns * (fixed + scaled))


def least_scale(
    stack: FloorStack, budget: ArrayLike, *, noise_floor: ArrayLike = 0.0, **options: Any
) -> Float[Array, ""]:
    """The least common scale of the targets within a budget, differentiable in floors, budget and noise floor.

    Envelope theorem for `clip_budget`; first derivatives only.
    """
    dtype = stack.directions.dtype
    held = (stack, jnp.asarray(budget, dtype), jnp.asarray(noise_floor, dtype))
    still, budget_still, floor_still = jax.lax.stop_gradient(held)
    result = clip_budget(still, budget_still, noise_floor=floor_still, **options)
    columns = jax.lax.stop_gradient(result.columns)
    return _scale(stack, jnp.asarray(budget, dtype), jnp.asarray(noise_floor, dtype), columns)


@eqx.filter_jit
def _scale(stack: FloorStack, budget: Array, noise_floor: Array, columns: Array) -> Array:
    return scale_bound(stack.above(noise_floor), columns, budget - noise_floor * stack.size)


def interior_trace(floors: Float[Array, "J m m"], tolerance: float = 1e-9) -> Float[Array, ""]:
    """`least_trace` for dense floors (and zero), from the interior-point method's duals.

    Those are the centre of the optimal ones and as accurate as the gap, where the ascent's are as its square root; for
    m up to about 60. First derivatives only.
    """
    duals = jax.lax.stop_gradient(solve_primal_dual(jax.lax.stop_gradient(floors), tolerance=tolerance).duals)
    return jnp.sum(floors * duals[1:])


def interior_scale(
    fixed: Float[Array, "J m m"], scaled: Float[Array, "J m m"], budget: ArrayLike, tolerance: float = 1e-9
) -> Float[Array, ""]:
    """`least_scale` for dense floors fixed_j + scaled_j / scale (and zero), fixed_j negative semidefinite.

    With 1/scale = beta the dual value is (y budget − sum tr(fixed_j Y_j)) / sum tr(scaled_j Y_j), sum Y_j = y I; the
    duals are held still. First derivatives only.
    """
    power = jnp.asarray(budget, fixed.dtype)
    still = jax.lax.stop_gradient((fixed, scaled, power))
    duals = jax.lax.stop_gradient(solve_primal_dual_budget(*still, tolerance=tolerance).duals)
    total = jnp.trace(jnp.sum(duals, axis=0)) / fixed.shape[-1]
    return jnp.sum(scaled * duals[1:]) / (total * power - jnp.sum(fixed * duals[1:]))


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def least_noise(floors: Float[Array, "J m m"], tolerance: float = 1e-9) -> Float[Array, "m m"]:
    """The noise of least trace over dense floors (and zero), differentiable: the minimiser itself, not only its trace.

    Implicit function theorem on the central path, M[dG] = sum sym(Y_j dF_j S_j^-1), M[D] = sum sym(Y_j D S_j^-1), in
    forward and reverse mode. It is taken at a relative gap of 1e-7 after five centring steps whatever `tolerance` the
    value is solved to: off the path the formula is wrong by about 2e-3 however small the gap, and much nearer the end M
    is too ill-conditioned. Error about 1e-7 relative where the optimum is strictly complementary; where it is not, the
    noise has directional derivatives only and the rule returns a finite value. First derivatives only.
    """
    problem = set_up(floors, 0.0)
    noise, _, _ = iterate(dense_maker(problem), problem, cold_start(problem), tolerance, 60, False)
    return problem.scale * noise


@least_noise.defjvp
def _least_noise_jvp(tolerance: float, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (floors,), (moved,) = primals, tangents
    problem = set_up(jax.lax.stop_gradient(floors), 0.0)
    make = dense_maker(problem)
    noise, duals, _ = iterate(make, problem, cold_start(problem), max(tolerance, 1e-7), 60, False)
    refined, _, _ = iterate(make, problem, (noise, duals), tolerance, 60, False)
    # One step at a time: a step taken far off the path keeps only part of its mean, and the next aims at what is left.
    noise, duals = jax.lax.fori_loop(
        0, _CENTRING, lambda _, pair: centre(make, problem, *pair, steps=1), (after(noise, refined), duals)
    )
    both, solve = make(noise, duals)
    inverse = both.inverse[1 : duals.shape[0]]
    change = solve(jnp.sum(sym(duals[1:] @ sym(moved) @ inverse), axis=0))
    return problem.scale * refined, change
