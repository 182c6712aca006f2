"""L-BFGS on a convex set: optax's memory of curvature, searched along the projected path."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, PyTree

from jaxpriv.searches.methods import AbstractMethod
from jaxpriv.searches.problem import Evaluation, Problem, add, inner, norm, select


_DECREASE, _CURVATURE = 1e-4, 0.9
_MEMORIES: dict[int, optax.GradientTransformation] = {}


def _memory(size: int) -> optax.GradientTransformation:
    # One object for each size: a new one would be a new program for the compiler.
    if size not in _MEMORIES:
        _MEMORIES[size] = optax.scale_by_lbfgs(size)
    return _MEMORIES[size]


class QuasiNewton(AbstractMethod):
    """x ← Π(x − α H g), H from the last `memory` pairs of points and projected gradients.

    Points and gradients in the memory are those after projection, so it stays consistent whatever the set: on a sphere
    the differences of projected gradients carry its curvature, on a face of a polyhedron they stay in the face. The
    step α is found by bracketing for a weak Wolfe condition along the projected path (Lewis and Overton, Math. Program.
    141, 2013), which also works where the loss has kinks. When no step is found the memory is dropped and the projected
    gradient is followed once; when that fails too, the method cannot go on.
    """

    memory: int = eqx.field(static=True, default=20)
    trials: int = eqx.field(static=True, default=30)

    def init(self, problem: Problem, here: Evaluation) -> PyTree:
        return _memory(self.memory).init(here.params), jnp.array(True), _first_length(here)

    def step(self, problem: Problem, here: Evaluation, state: PyTree) -> tuple[Evaluation, PyTree, Bool[Array, ""]]:
        history, fresh, first = state
        scaled, updated = _memory(self.memory).update(here.slope, history, here.params)
        descent = inner(scaled, here.slope)
        usable = jnp.isfinite(descent) & (descent > 0.0) & ~fresh
        direction = jax.tree.map(lambda s, g: jnp.where(usable, -s, -g), scaled, here.slope)
        there, length, settled = self._search(problem, here, direction, jnp.where(usable, 1.0, first))
        found = length > 0.0
        emptied: Any = _memory(self.memory).init(here.params)
        # What the first call with an empty memory does: it stores the point.
        started = emptied._replace(count=jnp.ones_like(emptied.count), params=here.params, updates=here.slope)
        history = select(found, select(usable, updated, started), emptied)
        # Without a step: once more from here with an empty memory, then no more.
        alive = found | ~fresh
        first = jnp.where(found & ~usable, length, _first_length(here)).astype(first.dtype)
        # A step that leaves negative curvature behind would spoil the memory.
        return there, (history, ~settled, first), alive

    def _search(
        self, problem: Problem, here: Evaluation, direction: PyTree, length: Float[Array, ""]
    ) -> tuple[Evaluation, Float[Array, ""], Bool[Array, ""]]:
        """The last point that decreases enough, its step (0: none), and whether the curvature condition holds there."""
        slack = 8.0 * jnp.finfo(here.objective.dtype).eps * jnp.abs(here.objective)

        def body(carry):
            trial, low, high, best, _, count = carry
            there = problem.evaluate(problem.project(add(here.params, trial, direction)))
            way = add(there.params, -1.0, here.params)
            promised = inner(here.slope, way)
            finite = there.finite & (promised < 0.0)
            decreases = finite & (there.objective <= here.objective + _DECREASE * promised + slack)
            flat = inner(there.slope, way) >= _CURVATURE * promised
            low, high = jnp.where(decreases, trial, low), jnp.where(decreases, high, trial)
            best = select(decreases, there, best)
            following = jnp.where(jnp.isfinite(high), 0.5 * (low + high), 2.0 * trial)
            return following, low, high, best, decreases & flat, count + 1

        def going(carry):
            *_, done, count = carry
            return ~done & (count < self.trials)

        zero = jnp.zeros_like(here.objective)
        start = (jnp.asarray(length, zero.dtype), zero, zero + jnp.inf, here, jnp.array(False), 0)
        _, low, _, best, done, _ = jax.lax.while_loop(going, body, start)
        return best, low, done


def _first_length(here: Evaluation) -> Float[Array, ""]:
    """A step along the projected gradient of a hundredth of the point's own size."""
    steepness, size = norm(here.slope), norm(here.params)
    return 0.01 * jnp.where(size > 0.0, size, 1.0) / jnp.where(steepness > 0.0, steepness, 1.0)
