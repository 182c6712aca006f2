"""Every run of neighbours in an order of the places: its prior error, its diameter, what it can promise.

Arrays are (n, L): row i, column l − 1 is the window of l places that starts at position i of the order. Windows that
would run over the end have mass 0, diameter +inf and a margin of −inf. Sums run from each start afresh: differences of
one common running sum cancel when the prior has both large and tiny probabilities, and decide feasibility wrongly.
One start at a time is held against all guesses, so the memory is (guesses + L) n numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float, Int

from jaxpriv.channels.prior import DiscretePrior
from jaxpriv.errors import InputError


#: Relative margin by which a promised error must be met, so that no rounding of the sums decides for the promise.
MARGIN = 1e-11


@dataclass(frozen=True)
class Windows:
    """Prior mass, prior error E and diameter D of all windows of an order of n places, up to L long.

    `order` (n,), the others (n, L) as described in the module. `errors` is +inf for windows without prior mass (nothing
    can happen there) and NaN nowhere.
    """

    order: Int[np.ndarray, " n"] = field(repr=False)
    masses: Float[np.ndarray, "n L"] = field(repr=False)
    errors: Float[np.ndarray, "n L"] = field(repr=False)
    diameters: Float[np.ndarray, "n L"] = field(repr=False)

    @property
    def longest(self) -> int:
        """L, the number of places of the longest windows."""
        return self.errors.shape[1]

    @property
    def inside(self) -> Bool[np.ndarray, "n L"]:
        """Which entries are windows that do not run over the end of the order."""
        return inside_windows(len(self.order), self.longest)

    def members(self, start: int, length: int) -> Int[np.ndarray, " length"]:
        """The places of one window, in the order."""
        return self.order[start : start + length]


def inside_windows(size: int, longest: int) -> Bool[np.ndarray, "n L"]:
    """Which of the (n, L) windows do not run over the end of the order."""
    return np.arange(size)[:, None] + np.arange(1, longest + 1)[None, :] <= size


def scan_windows(
    prior: DiscretePrior,
    order: Int[np.ndarray, " n"],
    guess_distances: Float[np.ndarray, "g n"],
    longest: int | None = None,
) -> Windows:
    """Mass, E and D of all windows of up to `longest` places (default: all n), O(n L g) time.

    `guess_distances` (g, n) are distances from the adversary's guesses to the places. Raises InputError: `longest`
    below 1.
    """
    count = _length(longest, prior.size)
    weights = np.asarray(prior.probabilities, dtype=np.float64)[order]
    sorted_guesses = guess_distances[:, order]
    distances = np.asarray(prior.distances, dtype=np.float64)[np.ix_(order, order)]
    masses, errors = np.zeros((prior.size, count)), np.full((prior.size, count), np.inf)
    diameters = np.full((prior.size, count), np.inf)
    reach = np.zeros(prior.size)  # reach[j]: the largest distance between j and a place of start … j
    for start in reversed(range(prior.size)):
        stop = min(start + count, prior.size)
        taken = slice(0, stop - start)
        np.maximum(reach[start:stop], distances[start, start:stop], out=reach[start:stop])
        diameters[start, taken] = np.maximum.accumulate(reach[start:stop])
        masses[start, taken] = np.cumsum(weights[start:stop])
        least = np.min(np.cumsum(sorted_guesses[:, start:stop] * weights[start:stop], axis=1), axis=0)
        some = masses[start, taken] > 0.0
        errors[start, taken] = np.where(some, least / np.where(some, masses[start, taken], 1.0), np.inf)
    return Windows(order, masses, errors, diameters)


def window_epsilons(
    epsilon: float | Float[np.ndarray, " n"], order: Int[np.ndarray, " n"], longest: int
) -> Float[np.ndarray, "n L"]:
    """The budget of each window, (n, L): the smallest of its members' (per-place budgets (n,), or one number)."""
    if np.ndim(epsilon) == 0:
        return np.full((len(order), longest), float(np.asarray(epsilon)))
    sorted_budgets = np.asarray(epsilon, dtype=np.float64)[order]
    padded = np.concatenate([sorted_budgets, np.full(longest, np.inf)])
    views = np.lib.stride_tricks.sliding_window_view(padded, longest)[: len(order)]
    return np.minimum.accumulate(views, axis=1)


def tight_margins(
    prior: DiscretePrior,
    order: Int[np.ndarray, " n"],
    guess_distances: Float[np.ndarray, "g n"],
    epsilons: Float[np.ndarray, "n L"],
    min_error: float,
) -> Float[np.ndarray, "n L"]:
    """How far each window is from the exact condition E*(Φ, ε) ≥ min_error, relative to its terms, (n, L) in [−1, 1].

    Non-negative if and only if the condition holds (`worst_error_margin`): the least over guesses of
    Σ π [(d − E)₊ − e^ε (E − d)₊], divided by the sum of the absolute terms. O(n L g). +1 for windows without mass.
    """
    longest = epsilons.shape[1]
    weights = np.asarray(prior.probabilities, dtype=np.float64)[order]
    excess = guess_distances[:, order] - min_error
    above, below = np.maximum(excess, 0.0) * weights, np.maximum(-excess, 0.0) * weights
    margins = np.full(epsilons.shape, -np.inf)
    gains = np.exp(epsilons)
    for start in range(prior.size):
        stop = min(start + longest, prior.size)
        gained = np.cumsum(above[:, start:stop], axis=1)
        lost = np.cumsum(below[:, start:stop], axis=1) * gains[start, : stop - start]
        scale = gained + lost
        some = scale > 0.0
        relative = np.where(some, (gained - lost) / np.where(some, scale, 1.0), 1.0)
        margins[start, : stop - start] = np.min(relative, axis=0)
    return margins


def relative_margin(
    weights: Float[np.ndarray, " n"], guess_distances: Float[np.ndarray, "g n"], epsilon: float, min_error: float
) -> float:
    """`tight_margins` of one set, given by the prior masses of its members (zero elsewhere)."""
    excess = (guess_distances - min_error) * weights
    gained = np.sum(np.maximum(excess, 0.0), axis=1)
    lost = np.exp(epsilon) * np.sum(np.maximum(-excess, 0.0), axis=1)
    scale = gained + lost
    return float(np.min(np.where(scale > 0.0, (gained - lost) / np.where(scale > 0.0, scale, 1.0), 1.0)))


def _length(longest: int | None, size: int) -> int:
    if longest is None:
        return size
    if not (isinstance(longest, (int, np.integer)) and longest >= 1):
        raise InputError(f"the longest window is {longest!r} places; expected a whole number of at least 1.")
    return min(int(longest), size)
