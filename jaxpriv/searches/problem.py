"""What is minimised: a loss of a mechanism over a set, as a function of the arrays that move."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree


_PROBE = 1e-3  # step, relative to the size of the point, by which the projected gradient is measured


class Evaluation(eqx.Module):
    """A point of the set, with what is known there.

    Attributes:
        params: the arrays that move; the other leaves are None.
        objective: what is descended: the loss, or its smoothed version.
        value: the loss itself.
        gradient: of the objective.
        slope: the projected gradient (x − Π(x − s ∇))/s for a small s; the gradient where there is no set.
    """

    params: PyTree
    objective: Float[Array, ""]
    value: Float[Array, ""]
    gradient: PyTree
    slope: PyTree

    @property
    def finite(self) -> Bool[Array, ""]:
        """Whether the value, the objective and every entry of the gradient are finite."""
        leaves = [self.value, self.objective, *jax.tree.leaves((self.gradient, self.slope))]
        return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in leaves]))


class Problem(eqx.Module):
    """min loss(mechanism, *args) over a set given by its projection.

    Numbers that may change between runs are leaves (`args`, the arrays of a loss that is itself a pytree, of the
    projection, of the frozen parts): a new value is not a new program.

    Attributes:
        loss: mechanism, *args → a number. With a temperature its method `smoothed` is used instead
            (`jaxpriv.searches.smoothing`).
        args: further arguments of the loss.
        frozen: the mechanism without the arrays that move.
        projection: mechanism → the nearest one in the set, or None.
        temperature: of the smoothed loss, in its unit, or None.
    """

    loss: Callable[..., Any]
    args: tuple[Any, ...]
    frozen: PyTree
    projection: Callable[[Any], Any] | None
    temperature: Float[Array, ""] | None = None

    def mechanism(self, params: PyTree) -> Any:
        """The whole mechanism."""
        return eqx.combine(params, self.frozen)

    def project(self, params: PyTree) -> PyTree:
        """The nearest point of the set."""
        if self.projection is None:
            return params
        projected = self.projection(self.mechanism(params))
        moving = jax.tree.map(lambda leaf: leaf is not None, params, is_leaf=lambda leaf: leaf is None)
        kept, _ = eqx.partition(projected, moving)
        return jax.tree.map(lambda new, old: jnp.asarray(new, old.dtype), kept, params)

    def objective(self, params: PyTree) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """What is descended, and the loss itself."""
        mechanism = self.mechanism(params)
        if self.temperature is None:
            value = jnp.asarray(self.loss(mechanism, *self.args))
            return value, value
        return self.loss.smoothed(mechanism, *self.args, temperature=self.temperature)  # pyright: ignore

    def evaluate(self, params: PyTree) -> Evaluation:
        """Objective, loss, gradient and projected gradient at a point of the set."""
        (objective, value), gradient = jax.value_and_grad(self.objective, has_aux=True)(params)
        return Evaluation(params, objective, value, gradient, self._projected_gradient(params, gradient))

    def _projected_gradient(self, params: PyTree, gradient: PyTree) -> PyTree:
        if self.projection is None:
            return gradient
        size, steepness = norm(params), norm(gradient)
        probe = _PROBE * jnp.where(size > 0.0, size, 1.0) / jnp.where(steepness > 0.0, steepness, 1.0)
        moved = self.project(jax.tree.map(lambda x, g: x - probe * g, params, gradient))
        return jax.tree.map(lambda x, y: (x - y) / probe, params, moved)


def inner(first: PyTree, second: PyTree) -> Float[Array, ""]:
    """Σ x y over all arrays."""
    products = jax.tree.map(lambda x, y: jnp.sum(x * y), first, second)
    return jnp.sum(jnp.stack(jax.tree.leaves(products)))


def norm(tree: PyTree) -> Float[Array, ""]:
    """The Euclidean norm over all arrays."""
    return jnp.sqrt(inner(tree, tree))


def add(first: PyTree, scale: Float[Array, ""] | float, second: PyTree) -> PyTree:
    """first + scale · second, in the types of `first`."""
    return jax.tree.map(lambda x, y: (x + scale * y).astype(x.dtype), first, second)


def select(condition: Bool[Array, ""], first: PyTree, second: PyTree) -> PyTree:
    """`first` where the condition holds, else `second`."""
    return jax.tree.map(lambda x, y: jnp.where(condition, x, y), first, second)
