"""What a channel is asked to hide: for each pair of inputs, how far their log probabilities may lie apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import shortest_path

from jaxpriv.channels.geometry import check_metric
from jaxpriv.channels.spanner import greedy_spanner
from jaxpriv.errors import InputError
from jaxpriv.precision import host_array


# Below this the matrix of a channel cannot show, in double precision, that two rows differ by as little as was asked.
SMALLEST_LEVEL = 1e-9
# From here on a solver need not see a pair: a factor e^12 between neighbours costs at most a mass of 6e-6 to repair.
_FAR = 12.0


@dataclass(frozen=True)
class Limits:
    """|log f(z|x) − log f(z|y)| <= allowed[x, y] for every output z, and the pairs a solver has to look at.

    * `allowed` (n, n), nats: symmetric, zero on the diagonal, inf where nothing is asked, and closed: no pair's limit
      exceeds the sum of the limits along a path between the two (implied limits are entered).
    * `pairs` (E, 2), `levels` (E,): the pairs that a solver enforces and the nats it allows there. Where they imply
      all of `allowed` the solver's problem is the whole problem; where `stricter` it is a restriction, whose optimum
      can be used as it is and is an upper bound; otherwise it is a relaxation, whose optimum is a lower bound.
    * `dilation`: largest ratio of a limit implied by the pairs (at unrestricted levels) to the limit that was asked.
    """

    allowed: Float[np.ndarray, "n n"] = field(repr=False)
    pairs: Int[np.ndarray, "E 2"] = field(repr=False)
    levels: Float[np.ndarray, " E"] = field(repr=False)
    dilation: float
    stricter: bool

    @property
    def size(self) -> int:
        """n, the number of inputs."""
        return self.allowed.shape[0]


def geo_limits(
    distances: Float[np.ndarray, "n n"],
    epsilon: float,
    stretch: float | None = None,
    *,
    stricter: bool = False,
    reach: float | None = None,
) -> Limits:
    """ε-geo-indistinguishability (Andrés et al. 2013): limits ε d(x, y), ε in nats for each unit of distance.

    Without `stretch` the pairs are those that no chain of other pairs implies exactly (on a grid: the steps without a
    common divisor). With it they are the edges of a greedy spanner, each at ε d, or, with `stricter`, at ε d divided by
    the spanner's measured dilation, which implies every limit. Relaxed spanners leave out pairs longer than `reach`
    (12/ε unless given), whose limits hardly bind.

    Raises InputError: not a metric, ε not positive, or two places so close that ε d < 1e-9 (merge them first).
    """
    d = host_array(distances, "the distances", 2)
    check_metric(d, triangle=False)
    epsilon = positive(epsilon, "epsilon")
    close = (epsilon * d < SMALLEST_LEVEL) & ~np.eye(len(d), dtype=bool)
    if np.any(close):
        x, y = (int(i) for i in np.argwhere(close)[0])
        raise InputError(
            f"places {x} and {y} are {d[x, y]:.3g} apart, so that epsilon times their distance is below "
            f"{SMALLEST_LEVEL:g}: they cannot be told apart from one place. Merge them and add up their probabilities."
        )
    allowed = epsilon * d
    if reach is None:
        reach = np.inf if stricter or stretch is None else _FAR / epsilon
    spanner = greedy_spanner(d, 1.0 if stretch is None else stretch, reach=reach)
    levels = allowed[spanner.pairs[:, 0], spanner.pairs[:, 1]] / (spanner.dilation if stricter else 1.0)
    # The triangle inequality may fail by rounding, or for a table of distances that is no metric: close it.
    return Limits(_closed(allowed), spanner.pairs, levels, spanner.dilation, stricter)


def set_limits(n: int, sets: Iterable[Sequence[int]], epsilon: float | Sequence[float]) -> Limits:
    """ε-differential privacy inside each of the given sets of inputs, ε in nats, one for all or one for each set.

    Sets may overlap; two sets that share a member then limit each other's members through it. Nothing is asked of
    inputs that no chain of sets connects.

    Raises InputError: an empty list, an empty set, a member twice in a set or outside 0 … n − 1, or a wrong ε.
    """
    members = [np.asarray(list(one), dtype=np.int64) for one in sets]
    if not members:
        raise InputError("no sets were given: there is nothing to protect.")
    rates = np.broadcast_to(np.asarray(epsilon, dtype=np.float64), (len(members),)) if np.ndim(epsilon) == 0 else None
    if rates is None:
        rates = np.asarray(epsilon, dtype=np.float64)
        if rates.shape != (len(members),):
            raise InputError(f"{len(members)} sets need {len(members)} values of epsilon; {rates.size} were given.")
    allowed = np.full((n, n), np.inf)
    np.fill_diagonal(allowed, 0.0)
    for number, (one, rate) in enumerate(zip(members, rates, strict=True)):
        positive(float(rate), "epsilon")
        if one.size == 0 or np.any((one < 0) | (one >= n)) or len(np.unique(one)) != len(one):
            raise InputError(f"set {number} is empty, names a place twice, or names one outside 0 … {n - 1}.")
        inside = np.ix_(one, one)
        allowed[inside] = np.minimum(allowed[inside], np.where(np.eye(len(one), dtype=bool), 0.0, rate))
    first, second = np.nonzero(np.triu(np.isfinite(allowed), 1))
    pairs = np.stack([first, second], axis=1)
    return Limits(_closed(allowed), pairs, allowed[first, second], 1.0, False)


def positive(value: float, name: str) -> float:
    """`value` as a float; InputError unless it is a finite positive number."""
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is {value!r}; expected a positive number.") from error
    if not (np.isfinite(number) and number > 0.0):
        raise InputError(f"{name} is {number}; expected a finite positive number.")
    return number


def largest_excess(log_matrix: Float[np.ndarray, "n m"], allowed: Float[np.ndarray, "n n"]) -> float:
    """A rigorous upper bound on the largest log ratio in excess of what is allowed, nats; at most 0: all limits hold.

    Differences of the stored logarithms are rounded up. A zero facing a positive probability counts as inf; an output
    that neither input ever publishes as 0. Time O(n² m), memory O(n m).
    """
    log = np.asarray(log_matrix, dtype=np.float64)
    zero = np.isneginf(log)
    finite = np.where(zero, 0.0, log)
    unit = np.finfo(np.float64).eps
    worst = -np.inf
    for x in range(len(log) - 1):
        limit = allowed[x, x + 1 :]
        asked = np.isfinite(limit)
        if not np.any(asked):
            continue
        rest = finite[x + 1 :][asked]
        gap = np.max(np.abs(rest - finite[x]), axis=1) * (1.0 + unit)
        broken = np.any(zero[x + 1 :][asked] != zero[x], axis=1)
        excess = np.where(broken, np.inf, gap - limit[asked])
        top = float(np.max(excess))
        worst = max(worst, top + unit * abs(top))
    return worst


def _closed(allowed: np.ndarray) -> np.ndarray:
    finite = np.where(np.isfinite(allowed), allowed, 0.0)
    closed = np.asarray(shortest_path(csr_matrix(finite), method="D", directed=False))
    closed = np.minimum(np.minimum(closed, closed.T), allowed)
    np.fill_diagonal(closed, 0.0)
    return closed
