"""The least loss that any channel within the limits can have: a rigorous bound from any multipliers.

The program is min Σ C[x,z] K[x,z] over row-stochastic K with K[x,z] <= e^{c(x,y)} K[y,z] and Σ_x B[g,x] K[x,z] >= 0.
For multipliers λ, ω >= 0 the loss of a feasible K is at least Σ_x Σ_z K[x,z] R[x,z] with the reduced costs
R = C + Aᵀλ − Bᵀω, hence at least Σ_x min_z R[x,z], whatever λ and ω are (proof in docs/optimal_channels.md).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float, Int

from jaxpriv.channels.program_blocks import Tails


_UNIT = float(np.finfo(np.float64).eps)


def certified_lower_bound(
    cost: Float[np.ndarray, "n m"],
    pairs: Int[np.ndarray, "E 2"],
    levels: Float[np.ndarray, " E"],
    multipliers: Float[np.ndarray, "E m"],
    errors: Float[np.ndarray, "g n"] | None = None,
    error_multipliers: Float[np.ndarray, "g m"] | None = None,
) -> float:
    """A number that no channel within the limits goes below, in the unit of the loss, rounding included.

    Args:
        cost: C[x, z] = π(x) loss(x, z).
        pairs: directed, (x, y).
        levels: K[x] <= e^level K[y] for each pair. A limit may be looser than the one asked (the bound then holds all
            the same), never stricter.
        multipliers: λ, one for each directed pair and output; negative ones count as zero.
        errors: B, where inference errors are required.
        error_multipliers: ω, likewise.

    Proof in docs/optimal_channels.md. Time O(E m + g n m), memory O(n m).
    """
    return sum_of_minima(least_reduced_costs(cost, pairs, levels, multipliers, errors, error_multipliers))


def least_reduced_costs(
    cost: Float[np.ndarray, "n m"],
    pairs: Int[np.ndarray, "E 2"],
    levels: Float[np.ndarray, " E"],
    multipliers: Float[np.ndarray, "E m"],
    errors: Float[np.ndarray, "g n"] | None = None,
    error_multipliers: Float[np.ndarray, "g m"] | None = None,
    tails: Tails | None = None,
) -> Float[np.ndarray, " n"]:
    """min over z of R[x, z], (n,), rounded down. Minima over all outputs are the minima over blocks of outputs.

    `tails` are further limits e^{−c(x, a)} K[a, z] <= K[x, z], a the anchor of z, with their multipliers.
    """
    n, count = len(cost), len(levels)
    prices = np.maximum(np.asarray(multipliers, dtype=np.float64), 0.0)
    # e^level is rounded up: a looser limit is implied by the true one.
    factor = np.exp(levels) * (1.0 + 8.0 * _UNIT)
    edges = np.arange(count)
    paid = sp.csr_matrix((np.ones(count), (pairs[:, 0], edges)), shape=(n, count)) @ prices
    granted = sp.csr_matrix((factor, (pairs[:, 1], edges)), shape=(n, count)) @ prices
    reduced = cost + paid - granted
    size = np.abs(cost) + paid + granted
    terms = 4 + int(np.max(np.bincount(np.asarray(pairs).ravel(), minlength=n), initial=0))
    if errors is not None and error_multipliers is not None:
        penalties = np.maximum(np.asarray(error_multipliers, dtype=np.float64), 0.0)
        reduced = reduced - errors.T @ penalties
        size = size + np.abs(errors).T @ penalties
        terms += errors.shape[0]
    if tails is not None:
        far = np.maximum(tails.prices, 0.0)
        # Here a smaller factor is the looser limit.
        owed = np.sum(tails.shrink * (1.0 - 8.0 * _UNIT) * far, axis=0)
        outputs = np.arange(reduced.shape[1])
        reduced, size = reduced - far, size + far
        reduced[tails.anchor, outputs] += owed
        size[tails.anchor, outputs] += owed
        terms += n + 2
    # Each entry is a sum of `terms` products: its rounding error is below terms · unit · (sum of magnitudes).
    return np.min(reduced - (2.0 * terms) * _UNIT * size, axis=1)


def sum_of_minima(lowest: Float[np.ndarray, " n"]) -> float:
    """The sum of the rows' bounds, rounded down."""
    return float(np.sum(lowest) - len(lowest) * _UNIT * np.sum(np.abs(lowest)))
