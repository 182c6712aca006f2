"""Small maps that several tests share."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from jaxpriv.channels.prior import DiscretePrior


KNOWN = json.loads((Path(__file__).parents[1] / "known_answers" / "optimal_channels.json").read_text())
EIGHT = KNOWN["eight_places"]


def eight_places() -> DiscretePrior:
    return DiscretePrior.from_counts(np.array(EIGHT["locations"], float), np.array(EIGHT["counts"], float))


def line(n: int) -> DiscretePrior:
    return DiscretePrior(np.stack([np.arange(n), np.zeros(n)], axis=1).astype(float), np.full(n, 1.0 / n))


def grid(rows: int, columns: int, seed: int, concentration: float = 0.7) -> DiscretePrior:
    """A grid of unit cells with a skewed random prior."""
    places = np.array([(i, j) for i in range(rows) for j in range(columns)], float)
    weights = np.random.default_rng(seed).dirichlet(np.full(len(places), concentration))
    return DiscretePrior.from_counts(places, weights)


def slow_excess(matrix: np.ndarray, allowed: np.ndarray) -> float:
    """Largest log ratio beyond its limit, by a loop over all pairs."""
    worst = -np.inf
    for x in range(len(matrix)):
        for y in range(len(matrix)):
            if x != y and np.isfinite(allowed[x, y]):
                seen = (matrix[x] > 0) | (matrix[y] > 0)
                with np.errstate(divide="ignore"):
                    worst = max(worst, float(np.max(np.log(matrix[x, seen]) - np.log(matrix[y, seen]))) - allowed[x, y])
    return worst
