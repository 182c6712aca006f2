"""The loss of secrets of a long trace from a window of it, with a bound of what the rest adds.

For any Y a secret's posterior covariance is `Z' Sigma Z + Y' G Y − R' N⁻¹ R`, Z = E − Y, and the last term is at most
|R|²/(s² + η). With Y zero outside a window the first terms need the window only. The rows of R outside count with
their norm only, and that is at most the sum of |Y|, each entry times the largest covariance at its distance from the
outside. So the whole outside enters as one more coordinate whose products are unknown within that bound. (Derived
here; proof in docs/long_traces_approximations.md.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.linalg

from jaxpriv.certificates.arithmetic import fraction_down
from jaxpriv.certificates.loss import LossBound
from jaxpriv.certificates.scalars import divergence, renyi_epsilon
from jaxpriv.certificates.structured import structured_loss_bounds
from jaxpriv.certificates.structured_windows import OutsideAsOne
from jaxpriv.certificates.verb import Certificate
from jaxpriv.designs.long.clusters import Cluster, by_products, fading_lag, overlapping
from jaxpriv.designs.long.windows import covariance_beyond, restricted, window_covariance
from jaxpriv.secrets.secret import Secret


_MARGIN = 1e-16  # correlation at the edge of the wider window
_LOOSE = 1e-6  # relative width of a loss above which a wider window is tried


class _DenseCore:
    """(Σ[W, W] + shift I)⁻¹ for the fixes `start` … `stop` − 1, by a Cholesky factor that is kept for one shift."""

    def __init__(self, prior: Any, start: int, stop: int):
        self._noisy = window_covariance(prior, start, stop)
        self._factor: tuple[float, Any] | None = None

    def shifted_solve(self, shift: float, right: np.ndarray) -> np.ndarray:
        """For a right side (w, m)."""
        if self._factor is None or self._factor[0] != shift:
            matrix = self._noisy.copy()
            matrix[np.diag_indices_from(matrix)] += shift
            self._factor = shift, scipy.linalg.cho_factor(matrix, lower=True, overwrite_a=True)
        return scipy.linalg.cho_solve(self._factor[1], right)


def cluster_losses(
    prior: Any,
    secrets: Sequence[Secret],
    clusters: Sequence[Cluster],
    factors: Sequence[np.ndarray],
    which: int,
    floor_variance: float,
    lag: float,
) -> list[LossBound]:
    """Bounds of the losses of the secrets of cluster `which` under the sum of all clusters' noise and the floor.

    Losses are gains in precision, in 1/squared units of the values, one for each secret of the cluster, in its order.
    `factors[c]`, (w_c, q_c), is what cluster c adds on its window, in the unit of the values, `floor_variance` the
    variance of the floor in squared units. `lag`: how far beyond the window products are evaluated, in the unit of the
    times.
    """
    own = clusters[which]
    bounds = _on_window(prior, secrets, clusters, factors, own, (own.start, own.stop), floor_variance, lag)
    near = overlapping(clusters, own.start, own.stop)
    if len(near) > 1 and any(not bound.upper <= bound.lower * (1.0 + _LOOSE) for bound in bounds):
        # What other clusters add beyond this window has to be answered there.
        span = min(clusters[c].start for c in near), max(clusters[c].stop for c in near)
        others = _on_window(prior, secrets, clusters, factors, own, span, floor_variance, lag)
        pairs = zip(bounds, others, strict=True)
        return [LossBound(min(a.upper, b.upper), max(a.lower, b.lower)) for a, b in pairs]
    return bounds


def _on_window(
    prior: Any,
    secrets: Sequence[Secret],
    clusters: Sequence[Cluster],
    factors: Sequence[np.ndarray],
    own: Cluster,
    span: tuple[int, int],
    floor_variance: float,
    lag: float,
) -> list[LossBound]:
    """The same with Y zero outside the fixes `span`: first and one past the last of them."""
    times = np.asarray(prior.times)
    near = overlapping(clusters, *span)
    low = min(min(clusters[c].start for c in near), int(np.searchsorted(times, times[span[0]] - lag)))
    beyond = int(np.searchsorted(times, times[span[1] - 1] + lag, side="right"))
    low, high = _rounded(low, max(max(clusters[c].stop for c in near), beyond), times.size)
    factor = np.concatenate([_placed(factors[c], clusters[c], low, high) for c in near], axis=1)
    window = OutsideAsOne(
        restricted(prior, low, high),
        _leak(prior, low, high),
        prior.nugget,  # of the whole, which the part cannot know better
        slice(span[0] - low, span[1] - low),
        restricted(prior, *span) if by_products([prior], span[1] - span[0]) else _DenseCore(prior, *span),
    )
    positions = [[index - low for index in secrets[i].indices] for i in own.secrets]
    return structured_loss_bounds(window, positions, factor, floor_variance)


def certificate_of(
    secrets: Sequence[Secret],
    upper: np.ndarray,
    lower: np.ndarray,
    cost: float,
    floor_exact: bool,
    order: float,
) -> Certificate:
    """The certificate of verified losses, (secrets, priors), of basic or compound secrets under the ball bound."""
    if not floor_exact:
        # The true floor is a little above the one used, by less than 2⁻⁵¹ of it: the loss may be smaller by that.
        lower = lower * (1.0 - 2.0**-50)
    spreads = tuple((secret.n_times, float(np.asarray(secret.radius))) for secret in secrets)
    epsilons = np.array(
        [[renyi_epsilon(x, *spread, order) for x in row] for spread, row in zip(spreads, upper.tolist(), strict=True)]
    )
    below = [
        [fraction_down(Fraction(order) / 2 * divergence(x, *spread)) for x in row]
        for spread, row in zip(spreads, lower.tolist(), strict=True)
    ]
    highest = float(np.max(epsilons))
    return Certificate(highest, epsilons, np.array(below), upper.copy(), lower.copy(), cost, order, _spreads=spreads)


def certificate_lag(priors: Sequence[Any]) -> float:
    """How far beyond its window a cluster's residual is evaluated: where every prior has faded to rounding."""
    return max(fading_lag(prior, _MARGIN) for prior in priors)


def _rounded(low: int, high: int, size: int) -> tuple[int, int]:
    """A few more fixes, so that few different lengths occur: programs are compiled for each."""
    wanted = min(max(1024, 1 << (high - low - 1).bit_length()), size)
    low = max(0, min(low - (wanted - (high - low)) // 2, size - wanted))
    return low, low + wanted


def _leak(prior: Any, low: int, high: int) -> np.ndarray:
    """For the fixes `low` … `high` − 1 a bound of the norm of each one's covariances with all others, (w,)."""
    times = np.asarray(prior.times)
    here = times[low:high]
    away = np.full(here.size, np.inf)
    if low > 0:
        away = np.minimum(away, here - times[low - 1])
    if high < times.size:
        away = np.minimum(away, times[high] - here)
    if low == 0 and high == times.size:
        return np.zeros(here.size)
    return math.sqrt(times.size - (high - low)) * (1.0 + 2.0**-50) * covariance_beyond(prior, away)


def _placed(factor: np.ndarray, cluster: Cluster, low: int, high: int) -> np.ndarray:
    whole = np.zeros((high - low + 1, factor.shape[1]))
    whole[cluster.start - low : cluster.stop - low] = factor
    return whole
