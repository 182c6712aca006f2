"""The best channel made of given columns: a linear program with one row an input."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float
from scipy.optimize import linprog


# Smaller entries of a column are left out of the program; the repair of its result makes up for them.
_SMALLEST = 1e-9


class Mixture(NamedTuple):
    """`matrix` (n, k): the columns in use, with their weights; `columns` (n, k): the same, scaled to maximum 1."""

    matrix: Float[np.ndarray, "n k"]
    columns: Float[np.ndarray, "n k"]


def best_mixture(columns: Float[np.ndarray, "n k"], cost: Float[np.ndarray, "n m"]) -> Mixture | None:
    """The channel Σ_j w_j k_j of least cost, w >= 0, each column published where it costs least; None if there is none.

    Columns that meet the limits make a channel that meets them, whatever the weights: the limits are linear and
    homogeneous. The rows of the result sum to 1 up to the solver's tolerance and n · 1e-9. This is the master program
    of a column generation (Dantzig and Wolfe 1960), and takes n rows where the full program takes n² m.
    """
    peaks = np.max(columns, axis=0)
    pool = columns[:, peaks > 0.0] / peaks[peaks > 0.0]
    prices = np.min(cost.T @ pool, axis=0)
    scale = float(np.max(np.abs(prices))) or 1.0
    result = linprog(
        prices / scale,
        A_eq=sp.csc_matrix(np.where(pool > _SMALLEST, pool, 0.0)),
        b_eq=np.ones(len(pool)),
        method="highs-ds",
    )
    if result.status != 0:
        return None
    used = result.x > 0.0
    return Mixture(pool[:, used] * result.x[used], pool[:, used])
