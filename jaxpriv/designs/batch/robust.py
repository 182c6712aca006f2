"""One noise for several priors, for a chunk of problems: rounds of climbs in few directions."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxpriv.designs.batch.ascent import climb, power_for
from jaxpriv.designs.batch.chunk import Chunk
from jaxpriv.designs.batch.devices import Devices
from jaxpriv.designs.batch.reduced import COLUMNS, reduce, singles


CLIMBS = (20.0,) * 2 + (50.0,) * 3 + (100.0,) * 6  # beta of each: small, since the multipliers do the rest
_MIXED = 1e-5  # share of every prior in the multipliers, so that none is lost for good


def robust_designs(
    chunk: Chunk,
    machine: Devices,
    floor_sd: np.ndarray,
    power: np.ndarray,
    target: np.ndarray | None,
    factor: np.ndarray | None = None,
    columns: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    betas: tuple[float, ...] = CLIMBS,
) -> tuple[np.ndarray, np.ndarray]:
    """Factors (m, N, J) above the floor, and how much each prior counts, (m, p), all in the chunk's units.

    `power` (m,) is what the factors may spend; where there is a `target` loss (m,), only where the search begins.
    `factor`, `columns` (m, N, p), and `weights` are of an earlier round: a design to start from, the directions of its
    certificate's trial vectors, which the optimum lies in, and its weights.
    """

    def put(array: Any) -> np.ndarray:
        return chunk.padded(np.ascontiguousarray(array))

    covariance, position = put(chunk.covariance), put(chunk.position)
    power = put(power)
    floor = put(floor_sd * floor_sd)
    if columns is None:
        (found,) = machine(singles, covariance, position, power + floor)
        found = np.asarray(found)
    else:
        found = put(columns)
    start = np.zeros((chunk.rows, chunk.bucket, COLUMNS)) if factor is None else put(factor)
    length = np.sqrt(np.maximum(np.sum(start * start, axis=(1, 2), keepdims=True), 1e-300))
    wanted = np.concatenate([found, start / length], axis=2)
    basis, gram, weight, constant, coordinates, noise = machine(
        reduce, covariance, position, put(chunk.mask), floor, wanted, start, power
    )
    inverse = 1.0 / put(chunk.own)
    multipliers = np.full((chunk.rows, chunk.priors), 1.0 / chunk.priors)
    if weights is not None:
        multipliers = put(weights) * (1.0 - _MIXED * chunk.priors) + _MIXED
    goal = None if target is None else put(target)
    loss = multipliers
    for beta in betas:
        if goal is not None:
            power = _spent(machine, gram, weight, constant, inverse, noise, power, goal)
        noise, shares, loss = machine(
            climb,
            *(gram, weight, constant, inverse, coordinates, power, noise, multipliers, np.full(chunk.rows, beta)),
        )
        shares = np.asarray(shares)
        multipliers = shares * (1.0 - _MIXED * chunk.priors) + _MIXED
    noise = np.asarray(noise)
    if goal is not None:
        (grown,) = machine(power_for, gram, weight, constant, inverse, noise, goal)
        noise = noise * np.sqrt(np.asarray(grown))[:, None, None]
    count = chunk.count
    made = np.asarray(basis) @ noise
    return made[:count], (shares / np.asarray(loss))[:count]


def _spent(machine: Devices, gram, weight, constant, inverse, noise, power, goal) -> np.ndarray:
    """The power at which noise of this shape would meet the goal."""
    noise = np.asarray(noise)
    at_power = noise * np.sqrt(power / np.maximum(np.sum(noise * noise, axis=(1, 2)), 1e-300))[:, None, None]
    (grown,) = machine(power_for, gram, weight, constant, inverse, at_power, goal)
    grown = np.asarray(grown)
    return power * np.where(np.isfinite(grown) & (grown > 0.0), grown, 1.0)
