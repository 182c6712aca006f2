"""The certificates of a chunk of designs: all at once, and one by one where that does not suffice."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields

import numpy as np

from jaxpriv.certificates.batched import BatchBounds, basic_loss_bounds, batched_cost_upper, square_bounds_of
from jaxpriv.certificates.batched_lower_bounds import batch_trials, batched_cost_lower, batched_loss_lower
from jaxpriv.certificates.loss import loss_bounds
from jaxpriv.designs.batch.chunk import Chunk
from jaxpriv.designs.finish import SHADINGS


_TOGETHER = 512  # covariances at a time: the temporaries stay in the cache
_ROUNDED = 1 + 2.0**-50


@dataclass(eq=False)
class Certified:
    """Verified numbers of m designs. `factor` (m, N, q) and `bounds` in the chunk's units, the rest in the trace's.

    `losses`, `losses_lower` (m, p), `epsilon` (m,), `cost` (m,); `lower` (m,) bounds what was minimised. `single` says
    where a certificate was taken one by one.
    """

    factor: np.ndarray
    floor_sd: np.ndarray
    bounds: BatchBounds
    losses: np.ndarray
    losses_lower: np.ndarray
    epsilon: np.ndarray
    cost: np.ndarray
    single: np.ndarray
    lower: np.ndarray

    def put(self, chosen: np.ndarray, other: Certified) -> None:
        """Replace the chosen rows by those of `other`."""
        for name in (one.name for one in fields(self) if one.name != "bounds"):
            getattr(self, name)[chosen] = getattr(other, name)
        for name in (one.name for one in fields(BatchBounds)):
            getattr(self.bounds, name)[chosen] = getattr(other.bounds, name)

    def rows_of(self, chosen: np.ndarray) -> Certified:
        """A copy of the chosen rows alone."""
        numbers = {one.name: np.array(getattr(self, one.name)[chosen]) for one in fields(self) if one.name != "bounds"}
        bounds = {one.name: np.array(getattr(self.bounds, one.name)[chosen]) for one in fields(BatchBounds)}
        return Certified(**numbers, bounds=BatchBounds(**bounds))


def certify_chunk(chunk: Chunk, factor: np.ndarray, floor_sd: np.ndarray) -> Certified:
    """Losses and costs of designs with `factor` (m, N, q) in the chunk's units and `floor_sd` (m,) in the trace's."""
    below, above = square_bounds_of(floor_sd)
    square = chunk.unit * chunk.unit
    step = max(1, _TOGETHER // chunk.priors)
    parts = [slice(start, start + step) for start in range(0, chunk.count, step)]

    def one(part: slice) -> BatchBounds:
        return basic_loss_bounds(
            chunk.covariance[part],
            chunk.position[part],
            factor[part],
            (below * square)[part],
            chunk.nugget[part],
            chunk.rounding,
        )

    with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
        found = list(pool.map(one, parts))
    names = [one.name for one in fields(BatchBounds)]
    bounds = BatchBounds(*(np.concatenate([getattr(part, name) for part in found]) for name in names))
    cost = batched_cost_upper(factor, above * square, chunk.sizes) / square
    nothing = np.zeros(chunk.count)
    result = Certified(factor, floor_sd, bounds, *_levels(chunk, bounds), cost, nothing.astype(bool), nothing)
    tighten(chunk, result, ~np.isfinite(result.epsilon))
    return result


def _levels(chunk: Chunk, bounds: BatchBounds) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    square = (chunk.unit * chunk.unit)[:, None]
    losses = bounds.upper * square
    # A floor whose square is no double is a little higher than the one used, and the loss a little lower.
    return losses, bounds.lower * square * (1 - 2.0**-50), np.max(losses, axis=1) * chunk.scale * _ROUNDED


def tighten(chunk: Chunk, certified: Certified, chosen: np.ndarray) -> None:
    """Take the chosen (m,) certificates one by one, where that has not been done."""
    below, _ = square_bounds_of(certified.floor_sd)
    floor = below * chunk.unit * chunk.unit
    for i in np.flatnonzero(chosen & ~certified.single):
        _one_by_one(chunk, certified.factor, floor, certified.bounds, int(i))
        certified.single[i] = True
    certified.losses, certified.losses_lower, certified.epsilon = _levels(chunk, certified.bounds)


def meet(chunk: Chunk, certified: Certified) -> None:
    """A little more of the same noise where a target is missed by rounding."""
    tighten(chunk, certified, ~(certified.epsilon <= chunk.goal) & np.any(certified.bounds.loose, axis=1))
    for shading in SHADINGS[1:]:
        short = ~(certified.epsilon <= chunk.goal) & np.isfinite(certified.epsilon)
        if not np.any(short):
            return
        factor = certified.factor[short] * np.sqrt(1.0 + 4.0 * shading)
        certified.put(short, certify_chunk(chunk.rows_of(short), factor, certified.floor_sd[short]))


def _one_by_one(chunk: Chunk, factor: np.ndarray, floor: np.ndarray, bounds: BatchBounds, i: int) -> None:
    """The certificate of `jaxpriv.certify` for one problem, kept where it is the better one."""
    n, at = int(chunk.sizes[i]), int(chunk.position[i])
    for j in range(chunk.priors):
        covariance = np.ascontiguousarray(chunk.covariance[i, j, :n, :n])
        if not np.all(np.isfinite(covariance)) or not covariance[at, at] > 0:
            continue
        joint = (covariance[:, at : at + 1], covariance[at : at + 1, at : at + 1])
        radii = {}
        if chunk.rounding:
            radii = {
                "covariance_radius": np.abs(covariance) * chunk.rounding,
                "cross_radius": [np.abs(joint[0]) * chunk.rounding],
                "variance_radius": [np.abs(joint[1]) * chunk.rounding],
            }
        (bound,) = loss_bounds(covariance, [joint], factor[i, :n], float(floor[i]), **radii)
        bounds.upper[i, j] = min(bounds.upper[i, j], bound.upper)
        bounds.lower[i, j] = max(bounds.lower[i, j], bound.lower)


def lower_bounds(chunk: Chunk, certified: Certified, vectors: np.ndarray, kind: str) -> np.ndarray:
    """Lower bounds (m,) of the cost at the goals ("epsilon") or of ε within them ("budget"), in the trace's units.

    `vectors` (m, p, N) in the chunk's units may be anything; near the optimal duals the bounds are tight.
    """
    square = chunk.unit * chunk.unit
    floor = square_bounds_of(certified.floor_sd)[0] * square
    trials = batch_trials(chunk.covariance, chunk.position, vectors, chunk.rounding)
    if kind == "epsilon":
        # Four roundings separate the target from what the exact formula would ask for.
        target = chunk.goal / chunk.scale / square * (1 + 2.0**-50)
        return batched_cost_lower(trials, target, floor, chunk.sizes) / square
    return batched_loss_lower(trials, chunk.goal * square, floor, chunk.sizes) * square * chunk.scale * (1 - 2.0**-50)
