"""The personalized sensitivity approach of Zhang et al. (arXiv:2101.12602): a partition, each piece its own noise."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from jaxpriv.channels.exponential import exponential_channel
from jaxpriv.channels.geometry import pairwise_distances
from jaxpriv.channels.hilbert import checked_order
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
from jaxpriv.channels.partitions import (
    CONDITIONS,
    feasible_windows,
    greedy_partition,
    largest_promise,
    optimal_partition,
    partition_labels,
)
from jaxpriv.channels.prior import DiscretePrior
from jaxpriv.channels.windows import scan_windows, window_epsilons
from jaxpriv.errors import InputError


PERSONALIZED_PROMISE = (
    "epsilon-DP on each set of the partition (its own budget and diameter); the conditional error of every output is "
    "at least the promised one against the named guesses and prior, whether or not it is known which set the secret is "
    "in; between sets only the level on the whole map holds"
)


def personalized_mechanism(
    prior: DiscretePrior,
    epsilon: float | Float[np.ndarray, " k"],
    min_error: float,
    labels: Int[np.ndarray, " n"] | None = None,
    order: Int[np.ndarray, " n"] | None = None,
    search: str = "optimal",
    condition: str = "exact",
    longest: int | None = None,
    guesses: Guesses = None,
    outputs: Float[np.ndarray, "m 2"] | None = None,
) -> Obfuscation:
    """Disjoint protection sets; a place of Φ publishes with f ∝ exp(−ε d/(2 D(Φ))).

    Theorem 1 of the paper: with ε_k-DP on each piece and each piece feasible, ExpEr(z) ≥ `min_error` for every output
    z, against any adversary with this prior and these guesses.

    Args:
        prior: the map.
        epsilon: one budget; or one for each place, (n,), of which a piece takes the smallest; or, with `labels`, one
            for each piece, (K,). A budget that depends on the place is public: which one a place has is part of the
            mechanism, and only the level on the whole map protects it.
        min_error: the least conditional error, in the unit of the locations.
        labels: the piece of each place, 0 … K − 1, instead of a search; pieces need not be runs of the order.
        order: the order whose runs are searched, default Hilbert's.
        search: "optimal" (least quality loss among partitions into runs) or "greedy" (shortest feasible runs).
        condition: "exact" (E*) or "paper" (equation 25); see `partitions`.
        longest: the longest piece that is tried, in places; all by default. Time grows as n · longest · guesses.
        guesses: where the adversary may guess: None (the places), (g, 2), or "half" (anywhere, by the factor 1/2).
        outputs: the published places (m, 2), the prior's own by default. The search costs their distances.

    Raises:
        InputError: labels that are no partition, budgets that do not fit, unknown options.
        UnattainableError: the promise is out of reach; names the set or the map and the largest error possible.
    """
    host = checked_prior(prior)
    error, places = checked_min_error(min_error), checked_outputs(host, outputs)
    if condition not in CONDITIONS:
        raise InputError(f"condition is {condition!r}; expected one of {CONDITIONS}.")
    output_distances = np.asarray(pairwise_distances(np.asarray(host.locations), places))
    if labels is not None:
        if order is not None or longest is not None:
            raise InputError("labels say what the sets are: leave out order and longest, which direct the search.")
        pieces = checked_labels(labels, host.size)
        count = int(pieces.max()) + 1
        budgets = np.broadcast_to(checked_epsilon(epsilon, count), (count,)).astype(np.float64)
    else:
        pieces, budgets = _searched(host, epsilon, error, order, search, condition, longest, guesses, output_distances)
    sets = pieces[None, :] == np.arange(len(budgets))[:, None]
    diameters = np.array([_diameter(host, members) for members in sets])
    if labels is not None:
        _check_pieces(host, sets, budgets, diameters, error, condition, guesses)
    rates = (budgets / (2.0 * diameters))[pieces]
    return Obfuscation(
        channel=exponential_channel(output_distances, rates),
        prior=host,
        sets=sets,
        own_set=pieces,
        epsilons=budgets,
        diameters=diameters,
        rates=rates,
        min_error=error,
        outputs=places,
        guesses=guesses,
        method="personalized sensitivity",
        promise=PERSONALIZED_PROMISE,
        disjoint=True,
    )


def checked_labels(labels: Int[np.ndarray, " n"], size: int) -> Int[np.ndarray, " n"]:
    """Labels 0 … K − 1 of a partition of n places, all used. Raises InputError otherwise."""
    listed = np.asarray(labels)
    if listed.shape != (size,) or listed.dtype.kind not in "iu":
        raise InputError(f"labels have shape {listed.shape}; expected one whole number for each of {size} places.")
    if listed.min() < 0:
        raise InputError(f"label {int(listed.min())} of place {int(np.argmin(listed))} is negative.")
    missing = np.setdiff1d(np.arange(int(listed.max()) + 1), listed)
    if len(missing):
        raise InputError(f"labels are not a partition into sets 0 … {int(listed.max())}: set {missing[0]} is empty.")
    return listed.astype(np.int64)


def _searched(host, epsilon, error, order, search, condition, longest, guesses, output_distances):
    budget = checked_epsilon(epsilon, host.size)
    permutation = checked_order(order, np.asarray(host.locations))
    if search not in ("optimal", "greedy"):
        raise InputError(f'search is {search!r}; expected "optimal" or "greedy".')
    distances, factor = design_guesses(host, guesses)
    windows = scan_windows(host, permutation, distances, longest)
    epsilons = window_epsilons(budget, permutation, windows.longest)
    feasible = feasible_windows(windows, host, distances, epsilons, error / factor, condition)
    pieces = (
        greedy_partition(feasible)
        if search == "greedy"
        else optimal_partition(host, windows, feasible, epsilons, output_distances)
    )
    if not pieces:
        _raise_unattainable(host, float(np.min(budget)), error, condition, guesses, windows.longest)
    budgets = np.array([epsilons[start, length - 1] for start, length in pieces])
    return partition_labels(permutation, pieces), budgets


def _raise_unattainable(host, epsilon, error, condition, guesses, longest):
    if not np.any(np.asarray(host.distances) > 0.0):
        raise UnattainableError("all places of the map coincide: no set of them hides anything.", 0.0)
    largest = largest_promise(host, epsilon, guesses, condition)
    if largest >= error:
        raise UnattainableError(
            f"no partition into runs of at most {longest} places promises an error of {error:g}, but longer runs can "
            f"(the whole map promises {largest:.6g}): raise longest.",
            largest,
        )
    heaviest = int(np.argmax(host.probabilities))
    share = float(host.probabilities[heaviest])
    raise UnattainableError(
        f"no partition of this map promises an error of {error:g} with epsilon = {epsilon:g}: merging sets never makes "
        f"a promise smaller than both, and the whole map as one set promises {largest:.6g}, the largest possible. "
        f"The likeliest place, location {heaviest}, has probability {share:.3g}. Lower the error or epsilon.",
        largest,
    )


def _check_pieces(host, sets, budgets, diameters, error, condition, guesses):
    for number, members in enumerate(sets):
        places = np.flatnonzero(members)
        if len(places) < 2:
            raise InputError(
                f"set {number} is location {int(places[0])} alone: its diameter is 0, no noise scale follows from it, "
                "and a set of one place promises nothing. Merge it with another."
            )
        if not diameters[number] > 0.0:
            raise InputError(f"the places of set {number} ({places[:5].tolist()} …) coincide: its diameter is 0.")
    promises = [
        largest_promise(host, float(budget), guesses, condition, members)
        for budget, members in zip(budgets, sets, strict=True)
    ]
    worst = int(np.argmin(promises))
    if promises[worst] < error:
        places = np.flatnonzero(sets[worst])
        raise UnattainableError(
            f"set {worst} (location {int(places[0])} and {len(places) - 1} more) promises an error of at most "
            f"{promises[worst]:.6g} with epsilon = {budgets[worst]:g}, not {error:g}. Lower the error or that epsilon, "
            "or enlarge it.",
            promises[worst],
            int(places[0]),
        )


def _diameter(host, members):
    places = np.flatnonzero(members)
    return float(np.max(np.asarray(pairwise_distances(np.asarray(host.locations)[places]))))
