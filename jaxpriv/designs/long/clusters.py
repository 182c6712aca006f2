"""Which secrets of a long trace have to be designed together, and on which window of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.priors.kernel_values import kernel_values
from jaxpriv.priors.quasiseparable import QuasiseparablePrior
from jaxpriv.secrets.secret import Secret


APART = 1e-4  # correlation below which two secrets are designed apart: about 6 length scales
FADED = 1e-6  # correlation at the edge of a window: about 8 length scales
LARGEST_WINDOW = 2048  # fixes of a window whose covariance is formed
MATRIX_WINDOW = 512  # fixes up to which it is formed where products would do
WIDEST_WINDOW = 65_536  # of a window of Matérn priors, which takes products only
MOST_TOGETHER = 16  # coordinates of the secrets of such a window
MOST_FLOORS = 120  # secrets times priors of one cluster
_STEP = 64  # window sizes are multiples of it, so that few programs are compiled


@dataclass(frozen=True)
class Cluster:
    """Secrets (positions in the list of all) designed together on the fixes `start` … `stop` − 1."""

    secrets: tuple[int, ...]
    start: int
    stop: int

    @property
    def size(self) -> int:
        """Fixes in the window."""
        return self.stop - self.start


def by_products(priors: Sequence[Any], size: int) -> bool:
    """Whether a window of `size` fixes is dealt with by products and solves in O(n) rather than by its covariance."""
    return size > MATRIX_WINDOW and all(isinstance(prior, QuasiseparablePrior) for prior in priors)


def fading_lag(prior: Any, share: float) -> float:
    """The lag, in the unit of the times, beyond which the correlation of the process stays below `share`.

    Infinite if it does not within 2⁴⁰ mean gaps between fixes.
    """
    times = np.asarray(prior.times)
    unit = float(times[-1] - times[0]) / max(times.size - 1, 1)
    if not unit > 0.0:
        return math.inf
    lags = unit * 2.0 ** np.arange(-10.0, 40.0, 0.125)
    values = np.abs(kernel_values(prior.kernel, np.zeros(1), np.concatenate([[0.0], lags]))[0])
    above = np.flatnonzero(values[1:] > share * values[0])
    if above.size == 0:
        return float(lags[0])
    return float(lags[above[-1] + 1]) if above[-1] + 1 < lags.size else math.inf


def clusters_of(priors: Sequence[Any], secrets: Sequence[Secret]) -> list[Cluster]:
    """Groups of secrets that are far from each other under every prior, in the order of their times.

    A group that would be too large for one problem is cut at its widest gaps; the noise of the parts adds up, which is
    private all the same and only costs more. Windows above `LARGEST_WINDOW` fixes are for Matérn priors.

    Raises:
        InputError: times that are not sorted or differ between the priors, a kernel that does not fade within the
            trace, or a secret whose own window is too long.
    """
    times = np.asarray(priors[0].times)
    for p, prior in enumerate(priors):
        if not np.array_equal(np.asarray(prior.times), times):
            raise InputError(f"prior {p} is at other times than prior 0.")
    if np.any(np.diff(times) < 0.0):
        raise InputError(
            "several secrets on a long trace need sorted times: sort the fixes, and the secrets with them."
        )
    markov = all(isinstance(prior, QuasiseparablePrior) for prior in priors)
    apart = max(fading_lag(prior, APART) for prior in priors)
    reach = max(fading_lag(prior, FADED) for prior in priors)
    order = sorted(range(len(secrets)), key=lambda i: min(secrets[i].indices))
    groups: list[list[int]] = []
    last = -math.inf
    for i in order:
        first = times[min(secrets[i].indices)]
        if groups and first - last <= apart:
            groups[-1].append(i)
        else:
            groups.append([i])
        last = max(last, times[max(secrets[i].indices)]) if groups[-1] != [i] else times[max(secrets[i].indices)]
    pending, found = groups[::-1], []
    while pending:
        group = pending.pop()
        cluster = _window(group, secrets, times, reach)
        few = len(group) * len(priors) <= max(MOST_FLOORS, len(priors))
        # Where even one secret alone needs more, cutting the group would not help.
        alone = _window(group[:1], secrets, times, reach).size > LARGEST_WINDOW
        wide = markov and alone and sum(secrets[i].size for i in group) <= MOST_TOGETHER
        if few and cluster.size <= (WIDEST_WINDOW if wide else LARGEST_WINDOW):
            found.append(cluster)
        elif len(group) == 1:
            raise InputError(
                f"secret {group[0]} is correlated with {cluster.size} fixes around it (correlation above {FADED:g} "
                f"within {reach:.4g}), and at most {WIDEST_WINDOW if markov else LARGEST_WINDOW} fit into a window: "
                "thin the trace, or use a prior that fades sooner. One secret under one prior has no such limit."
            )
        else:
            cut = _widest_gap(group, secrets, times)
            pending += [group[cut:], group[:cut]]
    return found


def overlapping(clusters: Sequence[Cluster], start: int, stop: int) -> list[int]:
    """Which clusters' windows meet the fixes `start` … `stop` − 1."""
    return [c for c, one in enumerate(clusters) if one.start < stop and start < one.stop]


def _window(group: list[int], secrets: Sequence[Secret], times: np.ndarray, reach: float) -> Cluster:
    low = min(min(secrets[i].indices) for i in group)
    high = max(max(secrets[i].indices) for i in group)
    start = int(np.searchsorted(times, times[low] - reach))
    stop = int(np.searchsorted(times, times[high] + reach, side="right"))
    # More fixes on both sides up to a rounded size; near an end of the trace all of them on the other side.
    wanted = min(-(-(stop - start) // _STEP) * _STEP, times.size)
    start = max(0, min(start - (wanted - (stop - start)) // 2, times.size - wanted))
    return Cluster(tuple(group), start, start + wanted)


def _widest_gap(group: list[int], secrets: Sequence[Secret], times: np.ndarray) -> int:
    firsts = np.array([times[min(secrets[i].indices)] for i in group])
    gaps = np.diff(firsts)
    # Among the gaps of the middle half, so that the parts are of similar size.
    quarter = len(group) // 4
    inside = gaps[quarter : len(gaps) - quarter] if len(gaps) > 2 * quarter else gaps
    return int(np.argmax(inside)) + (quarter if len(gaps) > 2 * quarter else 0) + 1
