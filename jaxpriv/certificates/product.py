"""Proposals for the product of balls: the cheapest diagonal above a gain, and the pair it separates most.

The hypotheses of a secret of s times differ by at most a radius at each time. With D = diag(d_time) above the precision
gain M, no pair is separated by more than the sum of the d (in squared radii); for one coordinate a time the farthest
pair is a vector of signs. Nothing here is claimed: `compound.py` verifies what it uses. (Derived here; proof in
docs/design.md.)
"""

from __future__ import annotations

from itertools import product

import numpy as np


_CENTRINGS = 100
_SWEEPS = 50
_ALL_SIGNS = 12  # times up to which every vector of signs is tried


def least_diagonal(gain: np.ndarray, times: np.ndarray) -> np.ndarray:
    """d (s,) of about the least sum with diag(d[times]) above the positive semidefinite `gain` (k, k).

    Newton's method on the logarithmic barrier sum d - m log det(D - M), m falling: s variables, so a few k^3 each.
    """
    count = int(times.max()) + 1
    top = float(np.linalg.eigvalsh(gain)[-1])
    if not 0.0 < top < np.inf:
        return np.full(count, 1.0)
    select = np.zeros((count, times.size))
    select[times, np.arange(times.size)] = 1.0
    matrix = gain / top
    d, weight = np.full(count, 2.0), 1.0
    for _ in range(_CENTRINGS):
        inverse = np.linalg.inv(np.diag(d[times]) - matrix)
        slope = 1.0 - weight * select @ np.diagonal(inverse)
        step = np.linalg.solve(weight * select @ (inverse**2) @ select.T, -slope)
        decrement = float(-slope @ step) / weight
        length = 1.0 if decrement < 0.25 else 1.0 / (1.0 + np.sqrt(decrement))
        while length > 1e-12 and np.linalg.eigvalsh(np.diag((d + length * step)[times]) - matrix)[0] <= 0.0:
            length *= 0.5
        d = d + length * step
        if decrement < 0.1:
            if weight * times.size < 1e-13 * count:
                break
            weight *= 0.2
    return top * d


def farthest_pair(gain: np.ndarray, times: np.ndarray) -> np.ndarray:
    """z (k,) with unit length at each time and about the largest z'M z: coordinate ascent from a few starts.

    For one coordinate a time z is a vector of signs, and for few times all of them are tried.
    """
    count = int(times.max()) + 1
    if count == times.size and count <= _ALL_SIGNS:
        signs = np.array([(1.0, *rest) for rest in product((1.0, -1.0), repeat=count - 1)])
        return signs[np.argmax(np.einsum("pi,ij,pj->p", signs, gain, signs))]
    parts = [np.flatnonzero(times == time) for time in range(count)]
    values, vectors = np.linalg.eigh(gain)
    starts = [vectors[:, -1 - i] for i in range(min(4, values.size))] + [np.ones(times.size)]
    best, reached = starts[-1], -np.inf
    for start in starts:
        z = start.copy()
        for part in parts:
            z[part] = _unit(z[part])
        for _ in range(_SWEEPS):
            before = z.copy()
            for part in parts:
                z[part] = _unit(gain[part] @ z)
            if np.allclose(z, before, rtol=0.0, atol=1e-12):
                break
        value = float(z @ gain @ z)
        if value > reached:
            best, reached = z, value
    return best


def _unit(vector: np.ndarray) -> np.ndarray:
    norm = float(np.linalg.norm(vector))
    return vector / norm if norm > 0.0 else np.full(vector.shape, vector.size**-0.5)
