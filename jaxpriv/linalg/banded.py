"""Symmetric banded matrices on the host, stored by lower diagonals as SciPy does: `band[d, j]` is entry (j + d, j)."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import fft


def banded_product(band: Float[np.ndarray, "b r"], columns: Float[np.ndarray, "r m"]) -> Float[np.ndarray, "r m"]:
    """A V, (r, m)."""
    values = band[0][:, None] * columns
    size = band.shape[1]
    for below in range(1, min(band.shape[0], size)):
        diagonal = band[below, : size - below][:, None]
        values[below:] += diagonal * columns[:-below]
        values[:-below] += diagonal * columns[below:]
    return values


def banded_gram(rows: Any, bandwidth: int) -> Float[np.ndarray, "b r"]:
    """Xᵀ X by lower diagonals, for a sparse X (n, r) whose rows span at most `bandwidth` columns."""
    product = (rows.T @ rows).tocoo()
    below = product.row - product.col
    kept = below >= 0
    band = np.zeros((bandwidth + 1, rows.shape[1]))
    band[below[kept], product.col[kept]] = product.data[kept]
    return band


def smallest_eigenvalue_of_band(column: Float[np.ndarray, " b"]) -> float:
    """A lower bound of the eigenvalues of every symmetric Toeplitz matrix with this first column (then zeros).

    They lie above the minimum of a(ω) = c_0 + 2 Σ c_k cos kω, which is taken on a fine grid of ω less what a can fall
    between two of its points, |a′| ≤ 2 Σ k |c_k| times half their distance.
    """
    points = 1 << 21
    values = 2.0 * np.real(np.asarray(fft.rfft(column, n=points))) - column[0]
    slope = 2.0 * float(np.sum(np.arange(column.size) * np.abs(column)))
    rounding = 1e-13 * float(np.sum(np.abs(column)))
    return float(np.min(values)) - slope * np.pi / points * (1.0 + 1e-9) - rounding
