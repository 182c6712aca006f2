"""PIVE (Yu, Liu and Pu, NDSS 2017) as a baseline, and the search for one protection set for each place.

PIVE's two guarantees are false, as Zhang et al. (arXiv:2101.12602) point out: its proof takes one diameter for two
places of a set, but each place publishes with the diameter of its *own* set. On three places 0, g, g + 1 of a line its
real level grows without bound in g (docs/channels.md has the closed form). It is here to be compared with.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from jaxpriv.channels.exponential import exponential_channel
from jaxpriv.channels.geometry import pairwise_distances
from jaxpriv.channels.hilbert import checked_order, hilbert_order
from jaxpriv.channels.inference import Guesses
from jaxpriv.channels.obfuscation import (
    Obfuscation,
    UnattainableError,
    checked_epsilon,
    checked_min_error,
    checked_outputs,
    checked_prior,
    design_guesses,
)
from jaxpriv.channels.prior import DiscretePrior
from jaxpriv.channels.windows import MARGIN, scan_windows
from jaxpriv.errors import InputError


_TIE = 1e-12  # relative difference below which two diameters count as equal


@dataclass(frozen=True)
class ProtectionSets:
    """One protection set for each place: `members` (n, n) with row x the set of x, and the diameters (n,)."""

    members: Bool[np.ndarray, "n n"]
    diameters: Float[np.ndarray, " n"]


def protection_sets(
    prior: DiscretePrior,
    epsilon: float,
    min_error: float,
    order: Int[np.ndarray, " n"] | None = None,
    reach: int | None = None,
    rotations: int = 1,
    guesses: Guesses = None,
) -> ProtectionSets:
    """For each place the window of least diameter around it, along the Hilbert curve, with E(Φ) ≥ e^ε min_error.

    Algorithm 1 of PIVE: windows of up to `reach` places to either side (all, by default). Windows of one place, of
    coincident places and of places without prior mass do not count; equal diameters go to the window found first,
    fewest places to the left, then to the right. With `rotations` of 2 to 4 the curve is also tried turned.

    Raises:
        InputError: ε, the error, the reach or the order are not what they must be.
        UnattainableError: some place has no such window; names the place whose windows allow the least, and what
            they allow: the largest error that can be asked for.
    """
    host = checked_prior(prior)
    budget, error = float(checked_epsilon(_scalar(epsilon))), checked_min_error(min_error)
    if reach is not None and not (isinstance(reach, (int, np.integer)) and reach >= 1):
        raise InputError(f"reach is {reach!r}; expected a whole number of at least 1, the places tried to either side.")
    if rotations not in (1, 2, 3, 4) or (rotations > 1 and order is not None):
        raise InputError(
            "rotations is 1 to 4, and turns the Hilbert order only: leave it out with an order of your own."
        )
    distances, factor = design_guesses(host, guesses)
    steps = host.size - 1 if reach is None else min(int(reach), host.size - 1)
    orders = [checked_order(order, np.asarray(host.locations))]
    orders += [hilbert_order(np.asarray(host.locations), rotation=turn) for turn in range(1, rotations)]
    members = np.zeros((host.size, host.size), dtype=bool)
    diameters, attainable = np.full(host.size, np.inf), np.zeros(host.size)
    for permutation in orders:
        windows = scan_windows(host, permutation, distances, 2 * steps + 1)
        usable = windows.inside & (windows.masses > 0.0) & (windows.diameters > 0.0)
        usable[:, 0] = False
        promised = np.where(usable, factor * windows.errors * (1.0 - MARGIN), -np.inf)
        feasible = usable & (promised >= math.exp(budget) * error)
        for rank, place in enumerate(permutation):
            left = np.arange(min(rank, steps) + 1)[:, None]
            right = np.arange(min(host.size - 1 - rank, steps) + 1)[None, :]
            start, length = rank - left, left + right
            attainable[place] = max(attainable[place], float(np.max(promised[start, length])))
            around = np.where(feasible[start, length], windows.diameters[start, length], np.inf)
            least = float(np.min(around))
            if least < diameters[place] * (1.0 - _TIE):
                first = int(np.argmax(np.ravel(around <= least * (1.0 + _TIE))))
                begin, count = int(np.ravel(start + 0 * right)[first]), int(np.ravel(length)[first]) + 1
                diameters[place] = windows.diameters[begin, count - 1]
                members[place] = False
                members[place, windows.members(begin, count)] = True
    if np.any(np.isinf(diameters)):
        worst = int(np.argmin(attainable))
        largest = max(attainable[worst], 0.0) * math.exp(-budget) * (1.0 - MARGIN)
        raise UnattainableError(
            f"{np.count_nonzero(np.isinf(diameters))} locations have no window with a prior error of e^{budget:g} × "
            f"{error:g}. The tightest is location {worst}: with epsilon = {budget:g} its windows promise at most "
            f"{largest:.6g}. Lower the error or epsilon, or widen reach.",
            largest,
            worst,
        )
    return ProtectionSets(members, diameters)


def pive(
    prior: DiscretePrior,
    epsilon: float,
    min_error: float,
    order: Int[np.ndarray, " n"] | None = None,
    reach: int | None = None,
    rotations: int = 1,
    guesses: Guesses = None,
    outputs: Float[np.ndarray, "m 2"] | None = None,
) -> Obfuscation:
    """PIVE: each place publishes by the exponential mechanism scaled with the diameter of its own protection set.

    **Broken**: neither ε nor the least error hold; the audit gives the real ones. Arguments and errors as in
    `protection_sets`; `outputs` (m, 2) are the published places, the prior's own by default.
    """
    host = checked_prior(prior)
    sets = protection_sets(host, epsilon, min_error, order, reach, rotations, guesses)
    places = checked_outputs(host, outputs)
    rates = float(np.asarray(epsilon)) / (2.0 * sets.diameters)
    return Obfuscation(
        channel=exponential_channel(np.asarray(pairwise_distances(np.asarray(host.locations), places)), rates),
        prior=host,
        sets=sets.members,
        own_set=np.arange(host.size),
        epsilons=np.full(host.size, float(np.asarray(epsilon))),
        diameters=sets.diameters,
        rates=rates,
        min_error=float(min_error),
        outputs=places,
        guesses=guesses,
        method="PIVE",
        promise="claims epsilon and the least error on each protection set; both claims are false (baseline only)",
        disjoint=False,
        broken=True,
    )


def _scalar(epsilon: object) -> float:
    if np.ndim(epsilon) != 0:  # type: ignore[arg-type]
        raise InputError("one epsilon for all places is needed here: the sets overlap, so two would meet in one set.")
    return epsilon  # type: ignore[return-value]
