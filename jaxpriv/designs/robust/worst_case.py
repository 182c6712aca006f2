"""The parameters under which a mechanism gives most away: a scan of the region, then projected gradient ascent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxpriv.designs.robust.region import Family, Region
from jaxpriv.linalg.cholesky import cholesky, cholesky_solve, solve_lower
from jaxpriv.losses.cip import cip_loss
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.collection import AnySecret
from jaxpriv.secrets.secret import Secret


STARTS = 6
_STEPS = 30


class Found(NamedTuple):
    """A local maximum of the loss over its target: which family, where (unit coordinates, (p,)), and how much."""

    family: int
    unit: np.ndarray
    ratio: float


def largest_ratio(
    prior: Prior,
    secrets: Sequence[AnySecret],
    noise: Float[Array, "n n"],
    targets: Float[Array, " j"],
    order: float,
) -> Float[Array, ""]:
    """The largest ε_j/target_j under one prior, differentiable; infinite where prior plus noise is singular.

    Secrets of one fix share one factorisation of Σ + G; an estimate, as every loss in floating point.
    """
    single = [j for j, one in enumerate(secrets) if isinstance(one, Secret) and one.size == 1]
    ratios = [cip_loss(prior, secrets[j], noise, order) / targets[j] for j in range(len(secrets)) if j not in single]
    if single:
        index = np.array([secrets[j].indices[0] for j in single])  # pyright: ignore[reportAttributeAccessIssue]
        squares = jnp.stack([jnp.asarray(secrets[j].radius) ** 2 for j in single])
        losses = _basic_losses(jnp.asarray(prior.covariance), noise, index)
        ratios.append(jnp.max(0.5 * order * squares * losses / targets[np.array(single)]))
    return jnp.max(jnp.stack(ratios))


def _basic_losses(covariance: Array, noise: Array, index: np.ndarray) -> Array:
    """q/(V P), q = V − P the variance explained by the release, P in Joseph's form: neither is a difference."""
    with jax.default_matmul_precision("highest"):
        factor, exists = cholesky(covariance + noise)
        cross = covariance[:, index]
        explained = jnp.sum(solve_lower(factor, cross) ** 2, axis=0)
        transfer = cholesky_solve(factor, cross)
        rest = -transfer
        rest = rest.at[index, np.arange(index.size)].add(1.0)
        left = jnp.sum(rest * (covariance @ rest), axis=0) + jnp.sum(transfer * (noise @ transfer), axis=0)
    variance = jnp.diagonal(covariance)[index]
    usable = exists & (left > 0.0)
    return jnp.where(usable, explained / (variance * jnp.where(usable, left, 1.0)), jnp.inf)


def local_maxima(
    families: Sequence[Family],
    region: Region,
    secrets: Sequence[AnySecret],
    noise: Float[np.ndarray, "n n"],
    targets: Float[np.ndarray, " j"],
    order: float,
) -> list[Found]:
    """The largest local maxima over the region, largest first; estimates, about which nothing is claimed."""
    scan = region.scan()
    spacing = float(np.min(np.ptp(scan, axis=0))) / (len(scan) ** (1.0 / region.size) - 1.0)
    found: list[Found] = []
    for number, family in enumerate(families):
        values = np.asarray(_scan(family, region, list(secrets), noise, targets, order, scan))
        starts = scan[_peaks(scan, values, spacing)]
        ends, ratios = _climb(family, region, list(secrets), noise, targets, order, starts, spacing)
        for unit, ratio in zip(np.asarray(ends), np.asarray(ratios), strict=True):
            if not any(one.family == number and np.max(np.abs(one.unit - unit)) < 0.1 * spacing for one in found):
                found.append(Found(number, unit, float(ratio)))
    return sorted(found, key=lambda one: -one.ratio)


def _peaks(points: np.ndarray, values: np.ndarray, spacing: float) -> np.ndarray:
    """Indices of STARTS points of large value, no two within two spacings of each other."""
    chosen: list[int] = []
    order = np.argsort(-np.where(np.isnan(values), -np.inf, values), kind="stable")
    for i in order:
        if all(np.max(np.abs(points[i] - points[j])) > 2.0 * spacing for j in chosen):
            chosen.append(int(i))
        if len(chosen) == STARTS:
            return np.array(chosen)
    return np.array(chosen + [chosen[0]] * (STARTS - len(chosen)))


@eqx.filter_jit
def _scan(family, region, secrets, noise, targets, order, points) -> Array:
    def value(unit: Array) -> Array:
        return largest_ratio(region.prior(family, unit), secrets, jnp.asarray(noise), jnp.asarray(targets), order)

    return jax.lax.map(value, jnp.asarray(points))


@eqx.filter_jit
def _climb(family, region, secrets, noise, targets, order, starts, spacing) -> tuple[Array, Array]:
    """From each start, steps along the gradient that are kept when they raise the loss and shortened when not.

    The starts run one after the other: batched factorisations that run side by side can hang on two cores.
    """

    def value(unit: Array) -> Array:
        ratio = largest_ratio(region.prior(family, unit), secrets, jnp.asarray(noise), jnp.asarray(targets), order)
        return jnp.log(ratio)

    climb = jax.value_and_grad(value)

    def from_start(start: Array) -> tuple[Array, Array]:
        def body(_: int, state: tuple[Array, ...]) -> tuple[Array, ...]:
            unit, height, slope, step = state
            blocked = ((unit <= 0.0) & (slope < 0.0)) | ((unit >= 1.0) & (slope > 0.0))
            slope = jnp.where(blocked, 0.0, slope)
            length = jnp.max(jnp.abs(slope))
            trial = jnp.clip(unit + step * slope / jnp.where(length > 0.0, length, 1.0), 0.0, 1.0)
            reached, onward = climb(trial)
            better = (reached > height) & jnp.all(jnp.isfinite(onward))
            return (
                jnp.where(better, trial, unit),
                jnp.where(better, reached, height),
                jnp.where(better, onward, slope),
                step * jnp.where(better, 1.5, 0.4),
            )

        height, slope = climb(start)
        slope = jnp.where(jnp.isfinite(slope), slope, 0.0)
        unit, height, _, _ = jax.lax.fori_loop(0, _STEPS, body, (start, height, slope, jnp.asarray(spacing)))
        return unit, jnp.exp(height)

    return jax.lax.map(from_start, jnp.asarray(starts))
