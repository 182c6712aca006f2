"""What a coupling mechanism hides when the groups' distributions were estimated from counts.

Simultaneous confidence intervals for every cell of every group, and for each output the largest and least probability
that any distributions within them give it. Derived here; proof in docs/distribution.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from jaxpriv.distribution.coupling import CouplingMechanism, probabilities
from jaxpriv.errors import InputError


@dataclass(frozen=True)
class EstimatedLevel:
    """Levels that hold with the given confidence over the draw of the counts.

    Attributes:
        epsilon: the largest D_∞ between the output laws of two groups, for any true distributions within the
            intervals; nats, rounded up.
        total_variation: the same for total variation; always at most 1, also where `epsilon` is infinite.
        confidence: the probability that all intervals hold at once.
        lower, upper: (groups, n), the intervals.
    """

    epsilon: float
    total_variation: float
    confidence: float
    lower: np.ndarray
    upper: np.ndarray


def confidence_intervals(counts: Any, confidence: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
    """Simultaneous intervals for the cell probabilities of several groups, each (groups, n).

    Clopper and Pearson's (Biometrika, 1934), with the error divided evenly over cells, sides and groups.

    Raises InputError: counts that are not whole and non-negative, an empty group, or a confidence outside (0, 1).
    """
    table = np.atleast_2d(np.asarray(counts))
    if table.ndim != 2 or table.size == 0 or not np.all(np.isfinite(table)):
        raise InputError(f"counts have shape {table.shape}; expected finite numbers, (groups, n).")
    if np.any(table < 0) or np.any(table != np.round(table)):
        raise InputError("counts must be whole and not negative.")
    totals = table.sum(axis=1, keepdims=True)
    if np.any(totals == 0):
        raise InputError(f"group {int(np.argmin(totals[:, 0]))} has no observation at all.")
    if not 0.0 < confidence < 1.0:
        raise InputError(f"confidence is {confidence}; expected a probability strictly between 0 and 1.")
    share = (1.0 - confidence) / (2.0 * table.size)
    with np.errstate(invalid="ignore"):
        lower = np.where(table > 0, stats.beta.ppf(share, table, totals - table + 1), 0.0)
        upper = np.where(table < totals, stats.beta.isf(share, table + 1, totals - table), 1.0)
    return lower * (1.0 - 1e-9), np.minimum(upper * (1.0 + 1e-9), 1.0)


def estimated_level(mechanism: CouplingMechanism, counts: Any, confidence: float = 0.95) -> EstimatedLevel:
    """The level of a mechanism, made for anything, when all that is known of the groups are `counts`, (groups, n).

    The counts must come from people other than those to be protected: otherwise the mechanism is itself a release.

    Raises InputError: as `confidence_intervals`, or counts of another shape than the mechanism's groups.
    """
    lower, upper = confidence_intervals(counts, confidence)
    if lower.shape != mechanism.known.shape:
        raise InputError(f"counts have shape {lower.shape}; the mechanism has groups of shape {mechanism.known.shape}.")
    least, most = [], []
    for low, high, channel in zip(lower, upper, mechanism.channels, strict=True):
        matrix = probabilities(channel)
        least.append(-_most(low, high, -matrix))
        most.append(_most(low, high, matrix))
    slack = 8.0 * (lower.shape[1] + 8) * 2.0**-53
    epsilon = variation = 0.0
    apart = _apart(mechanism.known, lower, upper)
    aimed = mechanism.outputs()
    for s in range(len(lower)):
        for t in range(len(lower)):
            if s == t:
                continue
            has = most[s] > 0.0
            if np.any(has & (least[t] <= 0.0)):
                epsilon = math.inf
            else:
                epsilon = max(epsilon, float(np.max(np.log(most[s][has] / least[t][has]))) + slack)
            # Output by output no more than the intervals allow; in total no more than the inputs are away.
            by_output = float(np.sum(np.maximum(most[s] - least[t], 0.0)))
            already = 0.5 * float(np.sum(np.abs(aimed[s] - aimed[t])))
            variation = max(variation, min(by_output, apart[s] + apart[t] + already + slack, 1.0))
    return EstimatedLevel(epsilon, variation, confidence, lower, upper)


def _most(low: np.ndarray, high: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """For each column c the largest Σ λ c over low ≤ λ ≤ high with Σ λ = 1: fill the best cells first."""
    order = np.argsort(-matrix, axis=0, kind="stable")
    room = np.take_along_axis(np.repeat((high - low)[:, None], matrix.shape[1], axis=1), order, axis=0)
    before = np.cumsum(room, axis=0) - room
    filled = np.clip(1.0 - low.sum() - before, 0.0, room)
    return low @ matrix + np.sum(filled * np.take_along_axis(matrix, order, axis=0), axis=0)


def _apart(known: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """For each group a bound of TV(λ, λ̂) over the intervals."""
    farthest = np.maximum(np.abs(upper - known), np.abs(known - lower))
    return np.minimum(0.5 * np.sum(farthest, axis=1), 1.0)
