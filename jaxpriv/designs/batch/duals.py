"""Proposals for the dual vectors of robust designs, from which lower bounds are proved.

The dual of the least tr G is to maximise Σ_j 2 z_j u_jᵀH_j − t z_j² − u_jᵀ(C_j + η I) u_j over all z_j and all
(u_1 … u_p) of spectral norm at most 1, at the largest loss t. At the optimum u_j is proportional to (C_j + G)⁻¹ H_j,
and G − η I is the multiplier of the norm. Near it those vectors have far too much of the directions of which a prior is
almost sure, and cutting singular values at 1 spoils what is left: the alternating direction method of multipliers does
both in turn, from vectors and multipliers that the noise gives. Nothing is claimed about what is returned.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from jaxpriv.designs.batch.certifying import Certified, lower_bounds
from jaxpriv.designs.batch.chunk import Chunk


STEPS = 100
_LOOKED_AT = 25  # steps between bounds
_TOGETHER = 16  # problems at a time: their inverses stay in the cache


def clipped_vectors(chunk: Chunk, certified: Certified, weights: np.ndarray) -> np.ndarray:
    """Vectors (m, p, N), in the chunk's units, from the certificate's own and the weights (m, p) of the priors."""
    return clipped(_scaled(chunk, certified, weights))


def ascended_vectors(
    chunk: Chunk, certified: Certified, weights: np.ndarray, kind: str
) -> tuple[np.ndarray, np.ndarray]:
    """Better vectors (m, p, N), and the lower bounds (m,) they prove: the best of those met on the way."""
    parts = [np.arange(start, min(start + _TOGETHER, chunk.count)) for start in range(0, chunk.count, _TOGETHER)]

    def one(part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return _ascended(chunk.rows_of(part), certified.rows_of(part), weights[part], kind)

    with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
        found = list(pool.map(one, parts))
    return np.concatenate([vectors for vectors, _ in found]), np.concatenate([bounds for _, bounds in found])


def _scaled(chunk: Chunk, certified: Certified, weights: np.ndarray) -> np.ndarray:
    """u_j ∝ (C_j + G)⁻¹ H_j, so long that tr(Q G) is what it is where Q = Σ u_j u_jᵀ has norm 1 on the noise."""
    with np.errstate(all="ignore"):
        # (C + G)⁻¹ H = Y / P, and 1 / P = M + 1 / s.
        vectors = certified.bounds.trial * (np.sqrt(weights) * (certified.bounds.upper + 1.0 / chunk.own))[..., None]
        vectors = np.where(np.isfinite(vectors), vectors, 0.0)
        norm = np.sum((vectors @ certified.factor) ** 2, axis=(1, 2)) / np.sum(certified.factor**2, axis=(1, 2))
        return vectors / np.sqrt(np.where(norm > 0.0, norm, 1.0))[:, None, None]


def _ascended(chunk: Chunk, certified: Certified, weights: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    own, factor = chunk.own, certified.factor
    along = chunk.covariance[np.arange(chunk.count), :, :, chunk.position] / own[..., None]
    level = np.max(certified.bounds.upper, axis=1)
    start = _scaled(chunk, certified, weights)
    penalty = np.linalg.norm(factor.transpose(0, 2, 1) @ factor, axis=(1, 2))
    system = chunk.covariance - own[..., None, None] * along[..., :, None] * along[..., None, :]
    floor = (certified.floor_sd * chunk.unit) ** 2
    usable = np.isfinite(system).all(axis=(1, 2, 3)) & (penalty > 0.0) & np.isfinite(level) & (level > 0.0)
    if not np.all(usable):
        system[~usable], start[~usable] = 0.0, 0.0
        penalty, level = np.where(usable, penalty, 1.0), np.where(usable, level, 1.0)
        along[~usable] = 0.0
    inverse = np.linalg.inv(system + (floor + penalty)[:, None, None, None] * np.eye(chunk.bucket))
    new = clipped(start)
    multiplier = (start @ factor) @ factor.transpose(0, 2, 1) / penalty[:, None, None]
    best, bound = new.copy(), lower_bounds(chunk, certified, new, kind)
    for k in range(1, STEPS + 1):
        share = np.einsum("mpi,mpi->mp", new, along) / level[:, None]
        right = share[..., None] * along + penalty[:, None, None] * (new - multiplier)
        free = (inverse @ right[..., None])[..., 0]
        new = clipped(free + multiplier)
        multiplier += free - new
        if k % _LOOKED_AT == 0:
            proved = lower_bounds(chunk, certified, new, kind)
            better = proved > bound
            best[better], bound[better] = new[better], proved[better]
    return best, bound


def clipped(vectors: np.ndarray) -> np.ndarray:
    """The nearest vectors (m, p, N) whose matrices have no singular value above 1."""
    gram = vectors @ vectors.transpose(0, 2, 1)
    values, basis = np.linalg.eigh(np.where(np.isfinite(gram), gram, 0.0))
    shrink = 1.0 / np.sqrt(np.maximum(values, 1.0))
    return (basis * shrink[:, None, :]) @ (basis.transpose(0, 2, 1) @ vectors)
