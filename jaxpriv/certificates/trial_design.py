"""Trial matrices for the lower bounds, from a nearly optimal design: proposals, about which nothing is claimed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxpriv.certificates.cost import check_weights
from jaxpriv.certificates.steepness import steepest
from jaxpriv.errors import InputError


_ACTIVE = 1e-9  # share of the largest direction above which the noise counts as exceeding its floor
_TOGETHER = 1e-6  # relative distance at which eigenvalues count as one


def trial_from_design(
    covariance: np.ndarray,
    joint: tuple[np.ndarray, np.ndarray],
    factor: np.ndarray,
    floor_variance: float,
    structure: str = "joint",
    indices: Sequence[int] | None = None,
    weights: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Trial matrices `(V (n, k), Z (k, k))` from a design that is nearly optimal for one secret.

    `V = (Sigma + G)^-1 B P^-1`. Z makes `V Z V'` proportional to the projector (in the metric of the weights) on the
    directions where G exceeds its floor, which is the optimality condition; for "block" and "diagonal" the best of that
    and of the leading eigenvectors of the precision gain is taken. Where a matrix is singular V is zero, and so is the
    bound.
    """
    cross, variance = joint
    size, width = cross.shape
    try:
        solved = np.linalg.solve(covariance + factor @ factor.T + floor_variance * np.eye(size), cross)
        posterior = variance - cross.T @ solved
        V = np.linalg.solve((posterior + posterior.T) / 2, solved.T).T
        if width == 1:
            return V, np.ones((1, 1))
        gain = np.linalg.solve(variance, cross.T @ V)
        return V, _dual((gain + gain.T) / 2, V, factor, structure, indices, check_weights(weights, size))
    except np.linalg.LinAlgError:
        return np.zeros((size, width)), np.eye(width) / width


def _dual(
    gain: np.ndarray,
    V: np.ndarray,
    factor: np.ndarray,
    structure: str,
    indices: Sequence[int] | None,
    weights: np.ndarray | None,
) -> np.ndarray:
    width = gain.shape[0]
    root = np.eye(len(V)) if weights is None else np.linalg.cholesky(_full(weights)).T
    rows = np.arange(len(V))
    if structure == "block":
        if indices is None:
            raise InputError('structure "block" needs the indices of the secret\'s coordinates.')
        rows = np.setdiff1d(rows, np.asarray(indices))
    values, vectors = np.linalg.eigh(gain)
    candidates = [vectors[:, -1:], vectors[:, values > (1 - _TOGETHER) * values[-1]]]
    if rows.size and factor.shape[1]:
        part = root[np.ix_(rows, rows)]
        left, singular, _ = np.linalg.svd(part @ factor[rows], full_matrices=False)
        active = left[:, : int(np.sum(singular[:width] ** 2 > _ACTIVE * singular[0] ** 2))]
        if active.shape[1]:
            candidates.insert(0, np.linalg.pinv(np.linalg.solve(part.T, V[rows])) @ active)
    spent = float(np.sum((root @ factor) ** 2))
    scored = []
    for roots in candidates:
        weight = roots @ roots.T / max(float(np.sum(roots * roots)), 1e-300)
        columns = V @ roots / max(float(np.linalg.norm(roots)), 1e-150)
        value = float(np.trace(weight @ gain)) + float(np.sum((factor.T @ columns) ** 2))
        scored.append((value - spent * steepest(columns, structure, weights, indices), weight))
    return max(scored, key=lambda pair: pair[0])[1]


def _full(weights: np.ndarray) -> np.ndarray:
    return weights if weights.ndim == 2 else np.diag(weights)
