"""The least-trace majorant by a feasible primal-dual interior-point method: few steps, high accuracy, exact gaps."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int

from jaxpriv.designs.majorant.schur import (
    Slacks,
    Solve,
    conjugate_gradient_solver,
    dense_solver,
    from_spectrum,
    longest_steps,
    slacks,
    sym,
)
from jaxpriv.designs.majorant.stack import FloorStack
from jaxpriv.linalg.ordering import after


CLOSEST = 0.98
"""Share of the largest step to the boundary that is taken."""


class PrimalDual(NamedTuple):
    """A strictly feasible noise covariance and feasible duals.

    `noise` (m, m), the noise floor included; `duals` (J + 1, m, m): Y_0 of the requirement G >= noise_floor I, then the
    floors', summing to I. `value` = tr noise, `dual_value`, `gap` = (value - dual_value) / value, `steps`.
    """

    noise: Float[Array, "m m"]
    duals: Float[Array, "J1 m m"]
    value: Float[Array, ""]
    dual_value: Float[Array, ""]
    gap: Float[Array, ""]
    steps: Int[Array, ""]


class Problem(NamedTuple):
    """Floors with the zero floor first, divided by `scale`."""

    floors: Array
    scale: Array


def set_up(floors: Float[Array, "J m m"], noise_floor: ArrayLike) -> Problem:
    """Subtracts the noise floor, adds the zero floor, and scales the largest eigenvalue to about 1."""
    m = floors.shape[-1]
    lowered = sym(floors) - jnp.asarray(noise_floor, floors.dtype) * jnp.eye(m, dtype=floors.dtype)
    values = jnp.linalg.eigvalsh(lowered)
    scale = jnp.maximum(jnp.max(values), 1e-8 * jnp.max(jnp.abs(values)))
    scale = jnp.where(scale > 0, scale, 1.0)
    return Problem(jnp.concatenate([jnp.zeros((1, m, m), floors.dtype), lowered / scale]), scale)


def cold_start(problem: Problem) -> tuple[Array, Array]:
    """G = 1.5 I and equal duals: strictly feasible on both sides."""
    count, m, _ = problem.floors.shape
    eye = jnp.eye(m, dtype=problem.floors.dtype)
    return 1.5 * eye, jnp.broadcast_to(eye / count, (count, m, m))


def warm_start(problem: Problem, noise: Array, duals: Array, inward: float = 0.1) -> tuple[Array, Array]:
    """A solution of nearby floors, lifted over these and moved inward on both sides."""
    count, m, _ = problem.floors.shape
    eye = jnp.eye(m, dtype=problem.floors.dtype)
    values, vectors = jnp.linalg.eigh(problem.floors - noise)
    lift = jnp.einsum("jab,jb,jcb->ac", vectors, jnp.maximum(values, 0.0), vectors)
    lifted = sym(noise + lift)
    noise = lifted + inward * jnp.maximum(jnp.trace(lifted) / m, 1e-8) * eye
    return noise, (1 - inward) * duals + inward * eye / count


Maker = Callable[[Array, Array], tuple[Slacks, Solve]]
"""From (G, Y): the slacks of S_0 .. S_J, Y_0 .. Y_J in this order, and the solver of their linear system."""


def dense_maker(problem: Problem) -> Maker:
    """Slacks and dense system of a problem."""

    def make(noise: Array, duals: Array) -> tuple[Slacks, Solve]:
        both = slacks(jnp.concatenate([noise - problem.floors, duals]))
        return both, dense_solver(duals, both.inverse[: duals.shape[0]])

    return make


def direction(solve: Solve, slack: Slacks, duals: Array, target: Array, corrector: Array | float) -> Array:
    """Newton direction of the HKM family towards Y_j S_j = target I with sum Y_j = I: dG for every floor, then dY."""
    c = target * slack.inverse - duals - corrector
    missing = jnp.eye(duals.shape[-1], dtype=duals.dtype) - jnp.sum(duals, axis=0)
    d_noise = solve(jnp.sum(c, axis=0) - missing)
    d_duals = sym(c - sym(duals @ d_noise @ slack.inverse))
    return jnp.concatenate([jnp.broadcast_to(d_noise, duals.shape), d_duals])


def step(make: Maker, problem: Problem, noise: Array, duals: Array) -> tuple[Array, Array]:
    """One predictor-corrector step from a strictly feasible pair to another."""
    count, m, _ = problem.floors.shape
    both, solve = make(noise, duals)
    slack = both.part(slice(count))
    mean = jnp.sum(slack.matrix * duals) / (count * m)
    d = direction(solve, slack, duals, jnp.zeros_like(mean), 0.0)
    primal, dual = (jnp.minimum(1.0, longest) for longest in longest_steps(both, d, count))
    reached = jnp.sum((slack.matrix + primal * d[:count]) * (duals + dual * d[count:])) / (count * m)
    centring = jnp.clip((reached / mean) ** 3, 1e-6, 1.0)
    corrector = sym(d[count:] @ d[:count] @ slack.inverse)
    d = direction(solve, slack, duals, centring * mean, corrector)
    primal, dual = (jnp.minimum(1.0, CLOSEST * longest) for longest in longest_steps(both, d, count))
    return sym(noise + primal * d[0]), sym(duals + dual * d[count:])


def centre(make: Maker, problem: Problem, noise: Array, duals: Array, steps: int = 3) -> tuple[Array, Array]:
    """Pure centring steps to the path Y_j S_j = mu I at the present mean mu."""
    count, m, _ = problem.floors.shape
    mean = jnp.sum((noise - problem.floors) * duals) / (count * m)
    for _ in range(steps):
        both, solve = make(noise, duals)
        d = direction(solve, both.part(slice(count)), duals, mean, 0.0)
        primal, dual = (jnp.minimum(1.0, 0.9 * longest) for longest in longest_steps(both, d, count))
        noise, duals = sym(noise + primal * d[0]), sym(duals + dual * d[count:])
    return noise, duals


def normalise(duals: Array) -> Array:
    """Duals that sum to I exactly, N^-1/2 Y_j N^-1/2 for their sum N; needed after inexact solves."""
    root = slacks(jnp.sum(duals, axis=0)[None]).inverse_root[0]
    return sym(root @ duals @ root)


def iterate(
    make: Maker, problem: Problem, start: tuple[Array, Array], tolerance: ArrayLike, max_steps: int, inexact: bool
) -> tuple[Array, Array, Array]:
    """Steps until the gap is at most tolerance times the dual value, progress ends, or `max_steps`: (G, Y, steps)."""

    def gap_of(noise: Array, duals: Array) -> Array:
        return jnp.sum((noise - problem.floors) * duals)

    def body(carry):
        noise, duals, gap, count, _ = carry
        new_noise, new_duals = step(make, problem, noise, duals)
        if inexact:
            new_duals = normalise(new_duals)
        new_gap = gap_of(new_noise, new_duals)
        good = (new_gap < 2 * gap) & (new_gap > 0)
        noise, duals = jnp.where(good, new_noise, noise), jnp.where(good, new_duals, duals)
        return noise, duals, jnp.where(good, new_gap, gap), count + 1, good

    def going(carry):
        _, duals, gap, count, good = carry
        value = jnp.abs(jnp.sum(problem.floors * duals))
        return (gap > tolerance * jnp.maximum(value, 1e-12)) & (count < max_steps) & good

    first = (*start, gap_of(*start), jnp.asarray(0), jnp.asarray(True))
    noise, duals, _, steps, _ = jax.lax.while_loop(going, body, first)
    return noise, duals, steps


def finish(problem: Problem, noise: Array, duals: Array, steps: Array, noise_floor: ArrayLike) -> PrimalDual:
    """Back to the caller's units, with the noise floor."""
    m = noise.shape[-1]
    base = jnp.asarray(noise_floor, noise.dtype)
    value = m * base + problem.scale * jnp.trace(noise)
    dual_value = m * base + problem.scale * jnp.sum(problem.floors * duals)
    covariance = problem.scale * noise + base * jnp.eye(m, dtype=noise.dtype)
    gap = (value - dual_value) / jnp.maximum(value, 1e-300)
    return PrimalDual(covariance, duals, value, dual_value, gap, steps)


def solve_primal_dual(
    floors: Float[Array, "J m m"],
    *,
    noise_floor: ArrayLike = 0.0,
    tolerance: ArrayLike = 1e-7,
    max_steps: int = 60,
    start: PrimalDual | None = None,
) -> PrimalDual:
    """Least tr G with G - F_j and G - noise_floor I positive semidefinite, for dense floors of m up to about 60.

    Mehrotra predictor-corrector with the HKM direction from a strictly feasible start; every iterate stays feasible, so
    the gap is known exactly. Cost a step (J + 1) m^4 + m^6 / 24, memory 8 m^4 bytes. About 10 to 20 steps to 1e-7; the
    end is near 1e-11. `start` is a solution of similar floors (same J and m).
    """
    floors = jnp.asarray(floors)
    floor, small = jnp.asarray(noise_floor, floors.dtype), jnp.asarray(tolerance, floors.dtype)
    return _solve_dense(floors, floor, small, max_steps, start)


@eqx.filter_jit
def _solve_dense(
    floors: Array, noise_floor: Array, tolerance: Array, max_steps: int, start: PrimalDual | None
) -> PrimalDual:
    problem = set_up(floors, noise_floor)
    begin = cold_start(problem)
    if start is not None:
        eye = jnp.eye(floors.shape[-1], dtype=floors.dtype)
        begin = warm_start(problem, (start.noise - noise_floor * eye) / problem.scale, start.duals)
    noise, duals, steps = iterate(dense_maker(problem), problem, begin, tolerance, max_steps, False)
    return finish(problem, noise, duals, steps, noise_floor)


def solve_primal_dual_cg(
    stack: FloorStack,
    *,
    noise_floor: ArrayLike = 0.0,
    tolerance: ArrayLike = 5e-7,
    max_steps: int = 60,
    cg_tolerance: float = 1e-4,
    cg_steps: int = 300,
) -> PrimalDual:
    """The same method with its linear systems solved by preconditioned conjugate gradients: for m above about 60.

    Inexact solves keep the noise exactly feasible; the duals are renormalised to sum to I after every step, so the gap
    stays exact too.
    """
    dtype = stack.directions.dtype
    floor, small = jnp.asarray(noise_floor, dtype), jnp.asarray(tolerance, dtype)
    return _solve_cg(stack, floor, small, max_steps, cg_tolerance, cg_steps)


@eqx.filter_jit
def _solve_cg(
    stack: FloorStack, noise_floor: Array, tolerance: Array, max_steps: int, cg_tolerance: float, cg_steps: int
) -> PrimalDual:
    lowered = stack.above(noise_floor)
    problem = set_up(lowered.dense(), 0.0)
    scaled = eqx.tree_at(
        lambda s: (s.covariances, s.base, s.slope, s.shift),
        lowered,
        replace_fn=lambda x: x / problem.scale,
    )

    count = stack.count + 1
    owner = jnp.asarray(scaled.prior_index)
    factors = scaled.factors()
    priors = after(jax.vmap(scaled.prior)(jnp.arange(len(scaled.covariance_index))), factors)

    def make(noise: Array, duals: Array) -> tuple[Slacks, Solve]:
        matrices = jnp.concatenate([noise - problem.floors, duals, priors + noise])
        values, vectors = jnp.linalg.eigh(sym(matrices))
        every = from_spectrum(matrices, values, vectors)
        both = every.part(slice(2 * count))
        solve = conjugate_gradient_solver(
            factors,
            owner,
            every.inverse[2 * count :],
            vectors[0],
            duals,
            both.inverse[:count],
            tolerance=cg_tolerance,
            max_steps=cg_steps,
        )
        return both, solve

    noise, duals, steps = iterate(make, problem, cold_start(problem), tolerance, max_steps, True)
    return finish(problem, noise, duals, steps, noise_floor)
