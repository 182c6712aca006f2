"""Distances between the places of a map."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from jaxpriv.errors import InputError


def pairwise_distances(
    places: Float[Array | np.ndarray, "n d"], others: Float[Array | np.ndarray, "m d"] | None = None
) -> Float[Array | np.ndarray, "n m"]:
    """Euclidean distances d[i, j] = |places[i] − others[j]| (others: the places themselves), in the places' unit.

    NumPy in, NumPy out (float64); JAX in, JAX out, with derivative zero at coincident places.
    """
    others = places if others is None else others
    if isinstance(places, np.ndarray) and isinstance(others, np.ndarray):
        difference = places[:, None, :].astype(np.float64) - others[None, :, :].astype(np.float64)
        return np.sqrt(np.sum(difference * difference, axis=-1))
    left, right = jnp.asarray(places), jnp.asarray(others)
    squared = sum((left[:, None, axis] - right[None, :, axis]) ** 2 for axis in range(left.shape[-1]))
    apart = squared > 0.0
    return jnp.where(apart, jnp.sqrt(jnp.where(apart, squared, 1.0)), 0.0)


def check_metric(distances: Float[Array | np.ndarray, "n n"], triangle: bool = True) -> None:
    """Refuse a matrix that is not a metric up to rounding; every claim of a slope needs the triangle inequality.

    Raises InputError: not square, not finite, negative, a diagonal that is not zero, not symmetric, or (with
    `triangle`) three places that violate the triangle inequality, which are named. Traced values pass unchecked.
    """
    if isinstance(distances, Tracer):
        return
    d = np.asarray(distances, dtype=np.float64)
    if d.ndim != 2 or d.shape[0] != d.shape[1]:
        raise InputError(f"the distances have shape {d.shape}; expected (n, n).")
    if not np.all(np.isfinite(d)) or np.any(d < 0.0):
        raise InputError("the distances hold a negative or non-finite value.")
    if np.any(np.diagonal(d) != 0.0):
        raise InputError(f"the distance of place {int(np.argmax(np.diagonal(d) != 0.0))} to itself is not zero.")
    slack = 1e-9 * np.max(d)
    if np.any(np.abs(d - d.T) > slack):
        i, j = np.unravel_index(np.argmax(np.abs(d - d.T)), d.shape)
        raise InputError(f"the distances are not symmetric: entries ({i}, {j}) and ({j}, {i}) differ.")
    if triangle:
        for middle in range(d.shape[0]):
            excess = d - (d[:, middle][:, None] + d[middle][None, :])
            if np.max(excess) > slack:
                i, j = np.unravel_index(np.argmax(excess), d.shape)
                raise InputError(
                    f"the distances violate the triangle inequality: d({i}, {j}) exceeds d({i}, {middle}) + "
                    f"d({middle}, {j}) by {np.max(excess):.3g}."
                )
