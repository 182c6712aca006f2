"""One noise for several priors, for a chunk of problems: rounds that only the unfinished ones go on to.

A round finds a noise in few directions (`interior`), certifies it, and proves a lower bound from its dual vectors.
Where the gap is open the dual is improved (`duals`), and its vectors are what the directions of the next round are made
of.
Of every problem the best certified noise and the best bound are kept, whichever rounds they are of.
"""

from __future__ import annotations

import numpy as np

from jaxpriv.designs.batch.certifying import Certified, certify_chunk, lower_bounds, meet
from jaxpriv.designs.batch.chunk import Chunk
from jaxpriv.designs.batch.devices import Devices
from jaxpriv.designs.batch.duals import ascended_vectors, clipped_vectors
from jaxpriv.designs.batch.interior import DIRECTIONS, least_loss, least_power


FINISHED = 3e-5  # gap at which a problem needs no further work
# Gaps above which a problem goes on to the round: the first two are for all that are not finished, the rest for few.
ROUNDS = (-np.inf, FINISHED, 1e-4, 1e-3)
_BLOCK = 16  # problems of one call: the unfinished of a chunk fill few of them


def robust_designs(
    chunk: Chunk,
    machine: Devices,
    floor_sd: np.ndarray,
    power: np.ndarray,
    target: np.ndarray | None,
    feasible: np.ndarray,
) -> tuple[Certified, int]:
    """The best certified designs with their lower bounds, and how many problems needed more than one round.

    `floor_sd` (m,) is in the traces' units. `power` (m,), in the chunk's units, is what the factors may spend; where
    there is a `target` loss (m,), only where the search begins. What is not `feasible` (m,) gets no noise.
    """
    kind = "budget" if target is None else "epsilon"
    everyone = np.arange(chunk.count)
    weights = np.full((chunk.count, chunk.priors), 1.0 / chunk.priors)
    factor, weights = _solved(chunk, machine, floor_sd, power, target, weights, None)
    best = _certified(chunk, np.where(feasible[:, None, None], factor, 0.0), floor_sd, kind)
    best.lower = lower_bounds(chunk, best, clipped_vectors(chunk, best, weights), kind)
    latest = best.rows_of(everyone)
    columns = np.zeros((chunk.count, chunk.bucket, chunk.priors + factor.shape[2]))
    again = np.zeros(chunk.count, bool)
    for limit in ROUNDS[1:]:
        gap = gaps(chunk, best, kind)
        # What is left of a wide certificate's gap is not the solver's.
        open_ = np.flatnonzero(feasible & ~(gap <= limit + 2.0 * best.bounds.width))
        if not open_.size:
            break
        few = chunk.rows_of(open_)
        vectors, proved = ascended_vectors(few, latest.rows_of(open_), weights[open_], kind)
        best.lower[open_] = np.fmax(best.lower[open_], proved)
        columns[open_] = _columns(vectors, latest.factor[open_])
        gap = gaps(chunk, best, kind)
        open_ = open_[~(gap[open_] <= limit + 2.0 * best.bounds.width[open_])]
        if not open_.size:
            continue
        again[open_] = True
        few = chunk.rows_of(open_)
        start = power[open_]
        if target is not None:
            spent = np.sum(latest.factor[open_] ** 2, axis=(1, 2))
            start = np.where(spent > 0.0, spent, start)
        goal = None if target is None else target[open_]
        factor, weights[open_] = _solved(few, machine, floor_sd[open_], start, goal, weights[open_], columns[open_])
        found = _certified(few, factor, floor_sd[open_], kind)
        found.lower = lower_bounds(few, found, clipped_vectors(few, found, weights[open_]), kind)
        latest.put(open_, found)
        found.lower = np.fmax(best.lower[open_], found.lower)
        best.lower[open_] = found.lower
        better = reached(few, found, kind) < reached(few, best.rows_of(open_), kind)
        best.put(open_[better], found.rows_of(np.flatnonzero(better)))
    return best, int(np.sum(again))


def reached(chunk: Chunk, certified: Certified, kind: str) -> np.ndarray:
    """What was minimised (m,): ε, or the cost where ε is met; infinite where nothing was."""
    if kind == "budget":
        return np.where(np.isfinite(certified.epsilon), certified.epsilon, np.inf)
    return np.where(certified.epsilon <= chunk.goal, certified.cost, np.inf)


def gaps(chunk: Chunk, certified: Certified, kind: str) -> np.ndarray:
    """The relative gaps (m,); 1 where nothing was reached."""
    found = reached(chunk, certified, kind)
    with np.errstate(all="ignore"):
        return np.where(np.isfinite(found) & (found > 0.0), 1.0 - certified.lower / found, 1.0)


def _certified(chunk: Chunk, factor: np.ndarray, floor_sd: np.ndarray, kind: str) -> Certified:
    certified = certify_chunk(chunk, np.where(np.isfinite(factor), factor, 0.0), floor_sd)
    if kind == "epsilon":
        meet(chunk, certified)
    return certified


def _columns(vectors: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Dual vectors and a factor as columns of one norm, which the directions are made of."""
    turned = vectors.transpose(0, 2, 1)
    length, other = (np.linalg.norm(one, axis=(1, 2), keepdims=True) for one in (turned, factor))
    return np.concatenate([turned * (other / np.where(length > 0.0, length, 1.0)), factor], axis=2)


def _solved(
    chunk: Chunk,
    machine: Devices,
    floor_sd: np.ndarray,
    power: np.ndarray,
    target: np.ndarray | None,
    weights: np.ndarray,
    columns: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Factors (m, N, r) and weights (m, p), block after block, so that any number of problems has one program."""
    block = machine.count
    while block * 2 <= min(chunk.rows, max(_BLOCK, machine.count)):
        block *= 2
    made, found = [], []
    for start in range(0, chunk.count, block):
        part = np.arange(start, min(start + block, chunk.count))
        # Filled up with copies of its first problem.
        rows = np.concatenate([part, np.full(block - part.size, start)])
        floor = (floor_sd[rows] * chunk.unit[rows]) ** 2
        covariance, position, mask = chunk.covariance[rows], chunk.position[rows], chunk.mask[rows]
        first = np.full(block, columns is None)
        width = chunk.priors + min(DIRECTIONS, chunk.bucket)
        given = np.zeros((block, chunk.bucket, width)) if columns is None else columns[rows]
        arrays = (covariance, position, mask, floor, chunk.own[rows], first, given, weights[rows], power[rows])
        goal = () if target is None else (target[rows],)
        solution = machine(least_loss if target is None else least_power, *arrays, *goal)
        # Waited for: programs that run at the same time may wait for each other for ever.
        factor, weight = (np.asarray(one)[: part.size] for one in solution)
        made.append(factor * chunk.mask[part][:, :, None])
        found.append(np.where(np.isfinite(weight), weight, 1.0 / chunk.priors))
    return np.concatenate(made), np.concatenate(found)
