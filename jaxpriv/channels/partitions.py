"""Partitions of a map into protection sets along an order of its places: the greedy one and the best one.

A piece Φ is feasible when it has at least two distinct places and promises the least error, by the paper's sufficient
condition E(Φ) ≥ e^ε E_m (equation 25 of Zhang et al., arXiv:2101.12602) or by the exact one E*(Φ, ε) ≥ E_m. Two
feasible pieces merge into a feasible piece (the minimum of a sum is at least the sum of the minima), so some feasible
partition exists if and only if the whole map is feasible as one piece. This is host code; it is not meant to be
compiled, and the loss of the result jumps where the partition changes.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Bool, Float, Int

from jaxpriv.channels.inference import Guesses
from jaxpriv.channels.obfuscation import design_guesses
from jaxpriv.channels.prior import DiscretePrior
from jaxpriv.channels.set_audit import worst_error
from jaxpriv.channels.windows import MARGIN, Windows, relative_margin, tight_margins
from jaxpriv.errors import InputError


CONDITIONS = ("exact", "paper")


def feasible_windows(
    windows: Windows,
    prior: DiscretePrior,
    guess_distances: Float[np.ndarray, "g n"],
    epsilons: Float[np.ndarray, "n L"],
    min_error: float,
    condition: str = "exact",
) -> Bool[np.ndarray, "n L"]:
    """Which windows are feasible pieces, (n, L), for the budget of each window.

    A window without prior mass is feasible if its diameter is positive: nothing can happen there, and its rows still
    need a noise scale.
    """
    usable = windows.inside & (windows.diameters > 0.0) & np.isfinite(windows.diameters)
    if condition == "paper":
        return usable & (windows.errors * (1.0 - MARGIN) >= np.exp(epsilons) * min_error)
    if condition != "exact":
        raise InputError(f"condition is {condition!r}; expected one of {CONDITIONS}.")
    if min_error == 0.0:
        return usable
    return usable & (tight_margins(prior, windows.order, guess_distances, epsilons, min_error) >= MARGIN)


def greedy_partition(feasible: Bool[np.ndarray, "n L"]) -> list[tuple[int, int]]:
    """Pieces (start, length) that are each the shortest feasible window; the leftover is merged backwards.

    The leftover can break the piece before it; merging further back ends at the latest with the whole order, so the
    result is empty only when that is infeasible too (or longer than the windows that were scanned).
    """
    size, longest = feasible.shape
    pieces: list[tuple[int, int]] = []
    start = 0
    while start < size:
        lengths = np.flatnonzero(feasible[start])
        if len(lengths) == 0:
            break
        pieces.append((start, int(lengths[0]) + 1))
        start += int(lengths[0]) + 1
    while start < size:
        if not pieces:
            return []
        start = pieces.pop()[0]
        if size - start <= longest and feasible[start, size - start - 1]:
            pieces.append((start, size - start))
            start = size
    return pieces


def optimal_partition(
    prior: DiscretePrior,
    windows: Windows,
    feasible: Bool[np.ndarray, "n L"],
    epsilons: Float[np.ndarray, "n L"],
    output_distances: Float[np.ndarray, "n m"],
) -> list[tuple[int, int]]:
    """The contiguous partition of least quality loss, by dynamic programming; empty if there is none.

    The loss of the exponential mechanism is a sum over pieces of a cost that depends on the piece alone, and grows with
    its diameter. Hence a piece that splits into two feasible pieces is never better than the two, and only pieces that
    do not split are costed: exact, and what makes a thousand places affordable. The best partition after an optimal
    remap, or for another objective, may be another.
    """
    needed = unsplittable(feasible)
    size = feasible.shape[0]
    weights = np.asarray(prior.probabilities)[windows.order]
    distances = output_distances[windows.order]
    best = np.full(size + 1, np.inf)
    best[0] = 0.0
    last = np.zeros(size + 1, dtype=int)
    for start in range(size):
        if not np.isfinite(best[start]):
            continue
        for index in np.flatnonzero(needed[start]):
            stop = start + int(index) + 1
            rate = epsilons[start, index] / (2.0 * windows.diameters[start, index])
            cost = best[start] + piece_cost(weights[start:stop], distances[start:stop], rate)
            if cost < best[stop]:
                best[stop], last[stop] = cost, start
    if not np.isfinite(best[size]):
        return []
    pieces, stop = [], size
    while stop > 0:
        pieces.append((int(last[stop]), stop - int(last[stop])))
        stop = int(last[stop])
    return pieces[::-1]


def unsplittable(feasible: Bool[np.ndarray, "n L"]) -> Bool[np.ndarray, "n L"]:
    """Which feasible windows are not two feasible windows one after the other, (n, L)."""
    size, longest = feasible.shape
    kept = feasible.copy()
    for start in range(size):
        for index in range(longest):
            after = start + index + 1
            # A first piece that splits itself need not be tried: its second half merges with the rest.
            if kept[start, index] and after < size:
                tail = np.flatnonzero(feasible[after, : longest - index - 1])
                kept[start, index + 1 + tail] = False
    return kept


def piece_cost(weights: Float[np.ndarray, " k"], distances: Float[np.ndarray, "k m"], rate: float) -> float:
    """Σ_x π(x) Σ_z f(z|x) d(x, z) over the k places of a piece that publish with f ∝ exp(−rate d)."""
    scores = np.exp(-rate * (distances - np.min(distances, axis=1, keepdims=True)))
    means = np.sum(scores * distances, axis=1) / np.sum(scores, axis=1)
    return float(weights @ means)


def partition_labels(order: Int[np.ndarray, " n"], pieces: list[tuple[int, int]]) -> Int[np.ndarray, " n"]:
    """The number of the piece of each place, (n,)."""
    labels = np.empty(len(order), dtype=np.int64)
    for number, (start, length) in enumerate(pieces):
        labels[order[start : start + length]] = number
    return labels


def largest_promise(
    prior: DiscretePrior,
    epsilon: float,
    guesses: Guesses = None,
    condition: str = "exact",
    members: Bool[np.ndarray, " n"] | None = None,
) -> float:
    """The largest least error that a set (default: the whole map) can promise with a budget, by one of the conditions.

    e^-ε E(Φ) or E*(Φ, ε), lowered by the margin that the designs ask for, so that asking for it succeeds. +inf for a
    set without prior mass.
    """
    inside = np.ones(prior.size, dtype=bool) if members is None else np.asarray(members)
    distances, factor = design_guesses(prior, guesses)
    distances, weights = distances[:, inside], np.asarray(prior.probabilities, dtype=np.float64)[inside]
    mass = float(np.sum(weights))
    if mass == 0.0:
        return math.inf
    if condition == "paper":
        return factor * float(np.min(distances @ weights)) / mass * math.exp(-epsilon) * (1.0 - 4.0 * MARGIN)
    exact = factor * worst_error(weights, distances, epsilon)
    if exact == 0.0:
        return 0.0
    shade = 4.0 * MARGIN
    while shade < 1.0:
        value = exact * (1.0 - shade)
        if relative_margin(weights, distances, epsilon, value / factor) >= MARGIN:
            return value
        shade *= 4.0
    return 0.0
