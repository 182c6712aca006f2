"""An example of the noise for the explorer, smooth in the design: simulated, never a release."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxpriv.errors import InfeasibleError
from jaxpriv.jobs.axis import Axis
from jaxpriv.jobs.noise import ReleasedPoints


def common_normals(points: int, axes: int, seed: int) -> np.ndarray:
    """Standard normal numbers (axes, 2, points), for the floor and for the rest of the noise."""
    return np.random.default_rng(seed).standard_normal((axes, 2, points))


def example(axes: Sequence[Axis], metres: np.ndarray, exponent: int, normals: np.ndarray) -> ReleasedPoints:
    """Simulate noisy positions (n, 2) on the public grid of step 2^exponent metres, from the numbers given.

    The factor enters through the symmetric square root of its Gram matrix, F(FᵀF)^(-1/2)Fᵀ, which unlike F itself
    depends on the covariance alone and continuously: neighbouring designs give neighbouring examples. Raises
    `InfeasibleError` for noise that is too large for the grid.
    """
    columns = []
    for i, axis in enumerate(axes):
        mechanism = axis.design.mechanism
        factor = np.asarray(mechanism.factor, dtype=np.float64)
        noisy = metres[:, i] + float(mechanism.floor_sd) * normals[i, 0]
        if factor.shape[1]:
            left, sizes, _ = np.linalg.svd(factor, full_matrices=False)
            noisy = noisy + left @ (sizes * (left.T @ normals[i, 1]))
        columns.append(np.floor(np.ldexp(noisy, -exponent) + 0.5))
    if any(not np.all(np.abs(column) < 2.0**53) for column in columns):
        raise InfeasibleError("the noise is too large for the output grid; ask for less: a larger epsilon or radius")
    east, north = (tuple(int(value) for value in column) for column in columns)
    return ReleasedPoints(east, north, exponent, tau=None)
