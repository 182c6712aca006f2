"""The best single point of the plane for weighted places: what an adversary who may guess anywhere achieves."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


_STEPS = 40


@jax.jit
def plane_errors(weights: Float[Array, "k n"], places: Float[Array, "n 2"]) -> Float[Array, " k"]:
    """A lower bound of min over points g of the plane of Σ_x w(x) |g − x|, one for each row of weights, (k,).

    `weights` are non-negative and need not sum to one. A point y near the geometric median is found by the better of
    a Newton step and Weiszfeld's, as Vardi and Zhang (2000) take it at the places themselves; convexity gives, for
    every g within the places' hull, Σ w |g − x| ≥ Σ w |y − x| − r |∇|, with ∇ the least subgradient at y and r the
    distance from y to the farthest place (the median lies in the hull). The bound is that right-hand side, or half the
    best place's error if that is larger; it is at most the exact minimum, up to rounding. Derivatives take y and the
    slack as fixed.
    """
    sites = jnp.asarray(places, weights.dtype)
    scale = jnp.maximum(jnp.max(jnp.abs(sites - sites[0])), jnp.finfo(weights.dtype).tiny)

    def one(row: Float[Array, " n"]) -> Float[Array, ""]:
        at_places = _distances(sites, sites) @ row
        point = jax.lax.stop_gradient(_median(jax.lax.stop_gradient(row), sites, scale, sites[jnp.argmin(at_places)]))
        apart = _distances(point[None], sites)[0]
        slack = jnp.max(apart) * _slope(jax.lax.stop_gradient(row), sites, point, scale)
        lower = apart @ row - jax.lax.stop_gradient(slack)
        return jnp.maximum(jnp.maximum(lower, 0.5 * jnp.min(at_places)), 0.0)

    return jax.lax.map(one, weights)


def _distances(left: Float[Array, "a 2"], right: Float[Array, "b 2"]) -> Float[Array, "a b"]:
    squared = jnp.sum((left[:, None] - right[None]) ** 2, axis=-1)
    apart = squared > 0.0
    return jnp.where(apart, jnp.sqrt(jnp.where(apart, squared, 1.0)), 0.0)


def _pull(row, sites, point, scale):
    """Offsets and inverse distances of the places away from the point, and the weight of those at the point."""
    offsets = sites - point
    apart = _distances(point[None], sites)[0]
    here = apart <= 8.0 * jnp.finfo(row.dtype).eps * scale
    inverse = jnp.where(here, 0.0, 1.0 / jnp.where(here, 1.0, apart))
    return offsets, inverse, jnp.sum(jnp.where(here, row, 0.0))


def _slope(row, sites, point, scale):
    offsets, inverse, weight_here = _pull(row, sites, point, scale)
    return jnp.maximum(jnp.sqrt(jnp.sum(((row * inverse) @ offsets) ** 2)) - weight_here, 0.0)


def _median(row, sites, scale, start):
    def step(_, point):
        offsets, inverse, weight_here = _pull(row, sites, point, scale)
        strength = row * inverse
        pull, total = strength @ offsets, jnp.sum(strength)
        size = jnp.sqrt(jnp.sum(pull**2))
        share = jnp.where(size > 0.0, jnp.maximum(0.0, 1.0 - weight_here / jnp.where(size > 0.0, size, 1.0)), 0.0)
        fixed = point + share * pull / jnp.where(total > 0.0, total, 1.0)
        # Newton's step away from the places: the Hessian is Σ w/r (I − u uᵀ).
        unit = offsets * inverse[:, None]
        xx, xy, yy = (strength @ (unit[:, i] * unit[:, j]) for i, j in ((0, 0), (0, 1), (1, 1)))
        determinant = (total - xx) * (total - yy) - xy**2
        proper = determinant > jnp.finfo(row.dtype).eps * total**2
        newton = jnp.stack([(total - yy) * pull[0] + xy * pull[1], xy * pull[0] + (total - xx) * pull[1]])
        newton = point + jnp.where(proper, newton / jnp.where(proper, determinant, 1.0), 0.0)
        tried = jnp.stack([point, fixed, newton])
        return tried[jnp.argmin(_distances(tried, sites) @ row)]

    return jax.lax.fori_loop(0, _STEPS, step, start)
