"""Proposals for the dual vectors of robust designs: the trial vectors of the certificate, put into the unit ball.

The dual of min tr G, G ⪰ F_j, is to maximise sum_j u_j'F_j u_j over (u_1 … u_p) of spectral norm at most 1. At the
optimum u_j is proportional to (C_j + G)⁻¹ H_j; near it those have far too much of the directions of which a prior is
almost sure, where next to nothing is gained, and cutting singular values at 1 removes it. Projected ascent does the
rest. Nothing is claimed about what is returned.
"""

from __future__ import annotations

import numpy as np

from jaxpriv.designs.batch.certifying import Certified
from jaxpriv.designs.batch.chunk import Chunk


STEPS = 30


def dual_vectors(chunk: Chunk, certified: Certified, weights: np.ndarray, steps: int = STEPS) -> np.ndarray:
    """Vectors (m, p, N), in the chunk's units, from the certificate's own and the weights (m, p) of the priors."""
    rows = np.arange(chunk.count)
    own = chunk.own
    cross = chunk.covariance[rows, :, :, chunk.position]
    floor = (certified.floor_sd * chunk.unit) ** 2
    with np.errstate(all="ignore"):
        loss = certified.bounds.upper
        # V = Y / P, and 1 / P = M + 1 / s.
        vectors = certified.bounds.trial * (np.sqrt(weights) * (loss + 1.0 / own))[..., None]
        vectors = np.where(np.isfinite(vectors), vectors, 0.0)
        reached = np.max(np.where(np.isfinite(loss), loss, 0.0), axis=1)
        image = vectors @ certified.factor
        spent = np.sum(certified.factor**2, axis=(1, 2))
        norm = np.sum(image**2, axis=(1, 2)) / spent
        start = vectors / np.sqrt(np.where(norm > 0.0, norm, 1.0))[:, None, None]
        slope = 1.0 / np.where(reached > 0.0, reached, np.inf)
        bound = np.max(np.sum(np.abs(chunk.covariance), axis=3), axis=(1, 2)) + floor
        old = new = clipped(start)
        for k in range(steps):
            ahead = new + (k / (k + 3.0)) * (new - old)
            along = np.einsum("mpi,mpi->mp", ahead, cross)
            gained = cross * (along * (slope[:, None] / own**2 + 1.0 / own))[..., None]
            gained -= (chunk.covariance @ ahead[..., None])[..., 0] + floor[:, None, None] * ahead
            old, new = new, clipped(ahead + gained / bound[:, None, None])
    return new


def clipped(vectors: np.ndarray) -> np.ndarray:
    """The nearest vectors (m, p, N) whose matrices have no singular value above 1."""
    gram = vectors @ vectors.transpose(0, 2, 1)
    values, basis = np.linalg.eigh(np.where(np.isfinite(gram), gram, 0.0))
    shrink = 1.0 / np.sqrt(np.maximum(values, 1.0))
    return (basis * shrink[:, None, :]) @ (basis.transpose(0, 2, 1) @ vectors)
