"""First-order methods behind one interface: optax transformations, projected gradient with momentum, subgradients."""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, PyTree

from jaxpriv.searches.problem import Evaluation, Problem, add, inner, norm, select


class AbstractMethod(eqx.Module):
    """How one point follows from another. The driver owns the loop, the best point and the end."""

    @abc.abstractmethod
    def init(self, problem: Problem, here: Evaluation) -> PyTree:
        """The method's own state at a start."""

    @abc.abstractmethod
    def step(self, problem: Problem, here: Evaluation, state: PyTree) -> tuple[Evaluation, PyTree, Bool[Array, ""]]:
        """The next point, the state there, and whether the method can go on from it."""


class Transformed(AbstractMethod):
    """x ← Π(x + update) with the update of an optax transformation.

    Transformations with a line search (`optax.lbfgs()`, `optax.scale_by_zoom_linesearch`) get what they ask for: the
    value, the projected gradient, and the objective of the projected point as the function to search along.

    Attributes:
        transformation: any optax transformation; it keeps its sign and step size unless `rate` is given.
        rate: relative step size of a transformation without one (such as `optax.scale_by_adam()`), in units of the root
            mean square of the start; it falls to zero along a cosine over `horizon` steps.
        horizon: number of steps.
    """

    transformation: optax.GradientTransformation
    rate: Float[Array, ""] | None = None
    horizon: Float[Array, ""] | None = None

    def init(self, problem: Problem, here: Evaluation) -> PyTree:
        return self.transformation.init(here.params), root_mean_square(here.params), jnp.zeros((), int)

    def step(self, problem: Problem, here: Evaluation, state: PyTree) -> tuple[Evaluation, PyTree, Bool[Array, ""]]:
        inner_state, unit, count = state
        asked: dict[str, Any] = {}
        if isinstance(self.transformation, optax.GradientTransformationExtraArgs):
            asked = {
                "value": here.objective,
                "grad": here.slope,
                "value_fn": lambda params: problem.objective(problem.project(params))[0],
            }
        updates, inner_state = self.transformation.update(here.slope, inner_state, here.params, **asked)
        scale: Any = 1.0
        if self.rate is not None:
            fraction = 0.0 if self.horizon is None else jnp.minimum(count / self.horizon, 1.0)
            scale = -self.rate * unit * 0.5 * (1.0 + jnp.cos(jnp.pi * fraction))
        moved = problem.project(add(here.params, scale, updates))
        return problem.evaluate(moved), (inner_state, unit, count + 1), jnp.array(True)


class Accelerated(AbstractMethod):
    """Projected gradient with momentum: steps by backtracking, restart where the momentum points uphill.

    Nesterov's method in the form of Beck and Teboulle (SIAM J. Imaging Sciences 2, 2009) with the restart of O'Donoghue
    and Candès (Found. Comput. Math. 15, 2015).
    """

    halvings: int = eqx.field(static=True, default=40)

    def init(self, problem: Problem, here: Evaluation) -> PyTree:
        steepness = norm(here.gradient)
        step = 0.1 * norm(here.params) / jnp.where(steepness > 0.0, steepness, 1.0)
        return here.params, jnp.ones_like(step), jnp.where(step > 0.0, step, 1.0)

    def step(self, problem: Problem, here: Evaluation, state: PyTree) -> tuple[Evaluation, PyTree, Bool[Array, ""]]:
        previous, weight, step = state
        following = 0.5 * (1.0 + jnp.sqrt(1.0 + 4.0 * weight**2))
        direction = add(here.params, -1.0, previous)
        ahead = problem.project(add(here.params, (weight - 1.0) / following, direction))
        base = problem.evaluate(ahead)
        base = select(base.finite, base, here)
        slack = 8.0 * jnp.finfo(base.objective.dtype).eps * jnp.abs(base.objective)

        def trial(length):
            moved = problem.project(add(base.params, -length, base.gradient))
            way = add(moved, -1.0, base.params)
            value, _ = problem.objective(moved)
            model = base.objective + inner(base.gradient, way) + inner(way, way) / (2.0 * length)
            return moved, value <= model + slack

        def going(carry):
            _, _, accepted, count = carry
            return ~accepted & (count < self.halvings)

        def halve(carry):
            length, _, _, count = carry
            return (0.5 * length, *trial(0.5 * length), count + 1)

        first = 1.3 * step
        length, moved, accepted, _ = jax.lax.while_loop(going, halve, (first, *trial(first), 0))
        there = problem.evaluate(select(accepted, moved, here.params))
        uphill = inner(add(base.params, -1.0, there.params), add(there.params, -1.0, here.params)) > 0.0
        restart = uphill | (there.objective > here.objective)
        state = (
            select(restart, there.params, here.params),
            jnp.where(restart, 1.0, following).astype(weight.dtype),
            jnp.asarray(length, step.dtype),
        )
        return there, state, accepted


class Subgradient(AbstractMethod):
    """x ← Π(x − a/√(k+1) ‖x‖ g/‖g‖): slow, but it needs no smoothness; the driver keeps the best point."""

    rate: float | Float[Array, ""] = 0.1

    def init(self, problem: Problem, here: Evaluation) -> PyTree:
        return jnp.zeros((), int), norm(here.params)

    def step(self, problem: Problem, here: Evaluation, state: PyTree) -> tuple[Evaluation, PyTree, Bool[Array, ""]]:
        count, size = state
        steepness = norm(here.slope)
        length = self.rate * size / jnp.sqrt(count + 1.0) / jnp.where(steepness > 0.0, steepness, 1.0)
        moved = problem.project(add(here.params, -length, here.slope))
        return problem.evaluate(moved), (count + 1, size), steepness > 0.0


def root_mean_square(tree: PyTree) -> Float[Array, ""]:
    """Of all entries of all arrays; 1 where they are all zero."""
    count = sum(leaf.size for leaf in jax.tree.leaves(tree))
    value = norm(tree) / jnp.sqrt(float(count))
    return jnp.where(value > 0.0, value, 1.0)
