"""Simple convex sets by their projections, for mechanisms and parts of mechanisms."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float
from optax import projections

from jaxpriv.errors import InfeasibleError, InputError
from jaxpriv.linalg.spectral import symmetric
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.searches.factors import AbstractFactor
from jaxpriv.shapes import Scalar


Tree = TypeVar("Tree")


class AbstractProjection(eqx.Module):
    """The nearest point of a convex set, as a function from a pytree to a pytree of the same structure.

    A projection of one array acts on every array of real numbers in the tree; `Part` restricts it to one of them.
    """

    @abc.abstractmethod
    def __call__(self, tree: Tree) -> Tree: ...

    def check(self, tree: Any) -> None:
        """Raises InfeasibleError where no member of the set can have the parts of `tree` that do not move."""


class _OfArrays(AbstractProjection):
    @abc.abstractmethod
    def array(self, array: Array) -> Array: ...

    def __call__(self, tree: Tree) -> Tree:
        return jax.tree.map(lambda leaf: self.array(leaf) if eqx.is_inexact_array(leaf) else leaf, tree)


class TraceBudget(AbstractProjection):
    """{tr(W G) ≤ budget}, floor included: a Frobenius ball of the factor.

    For a factor, a `GaussianMechanism` or a bare L (n, q); L moves, the floor stays. The ball is that of W^½ L, whose
    nearest point is a rescaling: nearest in the norm of tr(W L Lᵀ), which for W = I is Frobenius'.

    Args:
        budget: in squared units of the trace.
        weights: W, (n,) positive or (n, n) positive definite; the default is the identity.
        equality: rescale to tr(W G) = budget, also from inside. More noise is never less private, so for a privacy
            loss the optimum is the same, and a sphere is searched in fewer steps than a ball.
    """

    budget: Float[Array, ""]
    weights: Float[Array, "..."] | None
    equality: bool = eqx.field(static=True)

    def __init__(self, budget: Scalar, weights: Array | np.ndarray | None = None, *, equality: bool = False):
        self.budget = _positive(budget, "budget")
        self.weights = None if weights is None else jnp.asarray(weights)
        self.equality = equality

    def cost(self, tree: Any) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """tr(W L Lᵀ) and the floor's own cost η tr W."""
        factor, floor = _noise_parts(tree)
        with jax.default_matmul_precision("highest"):
            if self.weights is None:
                return jnp.sum(factor**2), factor.shape[0] * floor
            if self.weights.ndim == 1:
                return jnp.sum(self.weights[:, None] * factor**2), jnp.sum(self.weights) * floor
            return jnp.sum(factor * (self.weights @ factor)), jnp.trace(self.weights) * floor

    def __call__(self, tree: Tree) -> Tree:
        spent, floor_cost = self.cost(tree)
        room = jnp.maximum(self.budget - floor_cost, 0.0)
        over = spent > 0.0 if self.equality else spent > room
        scale = jnp.where(over, jnp.sqrt(room / jnp.where(over, spent, 1.0)), 1.0)
        return _scaled(tree, scale)

    def check(self, tree: Any) -> None:
        _, floor_cost = self.cost(tree)
        if not float(self.budget) > float(floor_cost):
            raise InfeasibleError(
                f"the budget {float(self.budget):.6g} does not exceed the {float(floor_cost):.6g} that the noise floor "
                "alone costs; raise the budget or lower the floor.",
                smallest_feasible=float(floor_cost),
            )


class Ball(AbstractProjection):
    """{‖x‖ ≤ radius}, the Euclidean norm over all arrays of the tree."""

    radius: Float[Array, ""]

    def __init__(self, radius: Scalar):
        self.radius = _positive(radius, "radius")

    def __call__(self, tree: Tree) -> Tree:
        moving, rest = eqx.partition(tree, eqx.is_inexact_array)
        squares = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(moving))
        norm = jnp.sqrt(squares)
        scale = jnp.where(norm > self.radius, self.radius / jnp.where(norm > 0.0, norm, 1.0), 1.0)
        return eqx.combine(jax.tree.map(lambda leaf: leaf * scale.astype(leaf.dtype), moving), rest)


class Box(_OfArrays):
    """{lower ≤ x ≤ upper}, entry by entry; bounds are numbers or arrays that broadcast, and may be infinite."""

    lower: Float[Array, "..."]
    upper: Float[Array, "..."]

    def __init__(self, lower: Array | np.ndarray | float = 0.0, upper: Array | np.ndarray | float = np.inf):
        self.lower, self.upper = jnp.asarray(lower, float), jnp.asarray(upper, float)
        if bool(jnp.any(~(self.lower <= self.upper))):
            raise InputError("lower is not at most upper everywhere.")

    def array(self, array: Array) -> Array:
        return jnp.clip(array, self.lower.astype(array.dtype), self.upper.astype(array.dtype))


class NonNegative(_OfArrays):
    """{x ≥ 0}."""

    def array(self, array: Array) -> Array:
        return jnp.maximum(array, 0.0)


class Simplex(_OfArrays):
    """{x ≥ 0, Σ x = total} along the last axis: each row of a channel, weights that add up."""

    total: Float[Array, ""]

    def __init__(self, total: Scalar = 1.0):
        self.total = _positive(total, "total")

    def array(self, array: Array) -> Array:
        return _rows(lambda row: projections.projection_simplex(row, self.total.astype(row.dtype)), array)


class L1Ball(_OfArrays):
    """{Σ |x| ≤ radius} along the last axis."""

    radius: Float[Array, ""]

    def __init__(self, radius: Scalar = 1.0):
        self.radius = _positive(radius, "radius")

    def array(self, array: Array) -> Array:
        radius = self.radius.astype(array.dtype)
        shrunk = _rows(lambda row: projections.projection_simplex(row, radius), jnp.abs(array))
        outside = jnp.sum(jnp.abs(array), axis=-1, keepdims=True) > radius
        return jnp.where(outside, jnp.sign(array) * shrunk, array)


class Spectrahedron(_OfArrays):
    """{A ⪰ 0, tr A ≤ trace} for symmetric matrices (n, n), nearest in Frobenius norm; without a bound, the cone."""

    trace: Float[Array, ""] | None

    def __init__(self, trace: Scalar | None = None):
        self.trace = None if trace is None else _positive(trace, "trace")

    def array(self, array: Array) -> Array:
        if array.ndim != 2 or array.shape[0] != array.shape[1]:
            raise InputError(f"an array of shape {array.shape} is not a square matrix; use Part to choose one.")
        values, vectors = jnp.linalg.eigh(symmetric(array))
        kept = jnp.maximum(values, 0.0)
        if self.trace is not None:
            trace = self.trace.astype(array.dtype)
            bounded = projections.projection_simplex(values, trace).astype(array.dtype)
            kept = jnp.where(jnp.sum(kept) > trace, bounded, kept)
        with jax.default_matmul_precision("highest"):
            return symmetric((vectors * kept) @ vectors.T)


class Part(AbstractProjection):
    """A projection of one part of a mechanism: `Part(lambda m: m.spectrum, NonNegative())`."""

    where: Callable[[Any], Any] = eqx.field(static=True)
    projection: AbstractProjection

    def __call__(self, tree: Tree) -> Tree:
        return eqx.tree_at(self.where, tree, self.projection(self.where(tree)))

    def check(self, tree: Any) -> None:
        self.projection.check(self.where(tree))


class Parts(AbstractProjection):
    """Several projections of different parts, one after the other: the projection onto their product."""

    parts: tuple[AbstractProjection, ...]

    def __init__(self, *parts: AbstractProjection):
        self.parts = parts

    def __call__(self, tree: Tree) -> Tree:
        for part in self.parts:
            tree = part(tree)
        return tree

    def check(self, tree: Any) -> None:
        for part in self.parts:
            part.check(tree)


def _noise_parts(tree: Any) -> tuple[Float[Array, "n q"], Float[Array, ""]]:
    if isinstance(tree, AbstractFactor):
        return tree.factor, jnp.asarray(tree.floor_variance)
    if isinstance(tree, GaussianMechanism):
        return jnp.asarray(tree.factor), jnp.asarray(tree.floor_sd) ** 2
    if eqx.is_array_like(tree) and jnp.ndim(tree) == 2:
        return jnp.asarray(tree), jnp.zeros(())
    raise InputError(
        f"a {type(tree).__name__} is neither a factor, a GaussianMechanism nor a matrix; use Part to choose the factor."
    )


def _scaled(tree: Any, scale: Array) -> Any:
    if isinstance(tree, AbstractFactor):
        return tree.scaled(scale.astype(tree.entries.dtype))
    factor = tree.factor if isinstance(tree, GaussianMechanism) else tree
    scaled = jnp.asarray(factor) * scale.astype(jnp.asarray(factor).dtype)
    return eqx.tree_at(lambda one: one.factor, tree, scaled) if isinstance(tree, GaussianMechanism) else scaled


def _rows(project: Callable[[Array], Array], array: Array) -> Array:
    if array.ndim == 0:
        raise InputError("a number has no axis to add up along; use Part to choose an array.")
    flat = array.reshape(-1, array.shape[-1])
    return jax.vmap(project)(flat).reshape(array.shape).astype(array.dtype)


def _positive(value: Scalar, name: str) -> Array:
    array = jnp.asarray(value, float) if isinstance(value, (int, float, np.ndarray)) else jnp.asarray(value)
    if not isinstance(array, Tracer) and not (float(array) > 0.0 and np.isfinite(float(array))):
        raise InputError(f"{name} is {float(array):g}; expected a positive, finite number.")
    return array
