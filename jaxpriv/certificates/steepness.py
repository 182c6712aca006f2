"""How much trial directions can gain from noise of a given cost: `max tr(K Q) / tr(W K)` over noise of a structure.

Banded noise of bandwidth p is K = L L' with L lower triangular and `L_ij = 0` for i > j + p; these K are exactly the
positive semidefinite matrices with that band, a convex set. Column j of L lives on the window j..j+p, so
`tr(K Q) = sum_j l_j' Q l_j` is at most the largest of the windows' own ratios times `tr(W K)`, and one column attains
it. Diagonal noise is p = 0. (Derived here; proof in docs/design.md.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxpriv.certificates.arithmetic import ROUNDED, UNIT_ROUNDOFF, gamma, norm_up, up
from jaxpriv.certificates.definiteness import largest_eigenvalue_upper, semidefinite_pair
from jaxpriv.errors import InputError


STRUCTURES = ("joint", "block", "diagonal", "banded")


def steepest(
    columns: np.ndarray,
    structure: str,
    weights: np.ndarray | None,
    indices: Sequence[int] | None,
    bandwidth: int | None = None,
) -> float:
    """Upper bound of `max tr(K Q) / tr(W K)` over positive semidefinite K of the structure, Q = columns columns'.

    `indices`, the coordinates of equal independent noise, is for "block"; `bandwidth` for "banded".
    """
    if structure not in STRUCTURES:
        raise InputError(f"structure must be one of {', '.join(STRUCTURES)}; it is {structure!r}.")
    full = weights is not None and weights.ndim == 2
    if not 1e-100 < float(np.max(np.abs(columns), initial=0.0)) < 1e100:  # squares could leave the range of doubles
        return np.inf
    if structure == "joint":
        return _largest(columns, weights)
    if structure == "banded":
        if bandwidth is None or bandwidth < 0:
            raise InputError('structure "banded" needs a bandwidth of at least 0.')
        width = bandwidth + 1
        windows = [slice(start, start + width) for start in range(max(columns.shape[0] - bandwidth, 1))]
        return max(_largest(columns[window], _inside(weights, window)) for window in windows)
    diagonal = np.ones(columns.shape[0]) if weights is None else np.diagonal(weights) if full else weights
    square = np.sum(columns * columns, axis=1) * (1 + gamma(columns.shape[1] + 4))
    with np.errstate(all="ignore"):
        if structure == "diagonal":
            return up(float(np.max(np.where(square > 0, square / diagonal, 0.0))))
        if indices is None or len(indices) == 0:
            raise InputError('structure "block" needs the indices of the secret\'s coordinates.')
        chosen = np.asarray(indices)
        if np.any(chosen < 0) or np.any(chosen >= columns.shape[0]):
            raise InputError(f"indices must lie in 0..{columns.shape[0] - 1}; they are {list(indices)}.")
        inside = np.zeros(columns.shape[0], bool)
        inside[chosen] = True
        own = float(np.sum(square[inside])) / float(np.sum(diagonal[inside])) * (1 + gamma(2 * int(inside.sum()) + 4))
    outside = ~inside
    if not np.any(outside):
        return own
    rest = None if weights is None else weights[np.ix_(outside, outside)] if full else weights[outside]
    return max(own, _largest(columns[outside], rest))


def _inside(weights: np.ndarray | None, window: slice) -> np.ndarray | None:
    if weights is None:
        return None
    return weights[window, window] if weights.ndim == 2 else weights[window]


def _largest(columns: np.ndarray, weights: np.ndarray | None) -> float:
    """Upper bound of the largest eigenvalue of `W^-1/2 columns columns' W^-1/2`."""
    if not np.all(np.isfinite(columns)):
        return np.inf
    if weights is not None and weights.ndim == 2:
        return _largest_in(columns, weights)
    if weights is not None:
        if not np.all(weights > 0):
            return np.inf
        root = 1 / np.sqrt(weights) * (1 + 4 * UNIT_ROUNDOFF)
        columns = columns * root[:, None]
    size, count = columns.shape
    gram = columns.T @ columns if count <= size else columns @ columns.T
    rounding = gamma(max(size, count) + 12) * norm_up(columns) ** 2 * ROUNDED
    return up(largest_eigenvalue_upper((gram + gram.T) / 2) + rounding)


def _largest_in(columns: np.ndarray, weights: np.ndarray) -> float:
    """The smallest s tried for which `s W - columns columns' >= 0` is verified."""
    try:
        root = np.linalg.cholesky(weights)
        estimate = float(np.linalg.norm(np.linalg.solve(root, columns), 2)) ** 2
    except np.linalg.LinAlgError:
        return np.inf
    gram = columns @ columns.T
    gram = (gram + gram.T) / 2
    rounding = gamma(columns.shape[1] + 8) * norm_up(columns) ** 2
    for power in range(-44, 4, 3):
        value = estimate * (1 + 2.0**power)
        scaled = value * weights
        radius = (rounding + 4 * UNIT_ROUNDOFF * (norm_up(scaled) + norm_up(gram))) * ROUNDED
        if semidefinite_pair(scaled - gram, None, radius):
            return value
    return np.inf
