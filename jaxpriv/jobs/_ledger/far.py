"""What releases far away in time can add to a certified loss; proof in docs/ledger.md."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaxpriv.jobs.ledger_records import LedgerRelease, LedgerSecret
from jaxpriv.jobs.prior_choice import PriorChoice


_UP = 1.0 + 1e-9  # far above the rounding of a few float64 operations
_SMALLEST = 1e-300


def correlation(prior: PriorChoice, gap_s: float) -> float:
    """Upper bound of the correlation of the process of a prior at times at least `gap_s` seconds apart."""
    x = gap_s / prior.lengthscale_s
    if prior.kernel == "rbf":
        value = math.exp(-0.5 * min(x, 1e3) ** 2)
    elif prior.kernel == "matern12":
        value = math.exp(-x)
    elif prior.kernel == "matern32":
        value = (1 + math.sqrt(3) * x) * math.exp(-math.sqrt(3) * x)
    elif prior.kernel == "matern52":
        value = (1 + math.sqrt(5) * x + 5 * x**2 / 3) * math.exp(-math.sqrt(5) * x)
    else:  # a periodic process never forgets
        return 1.0
    return min(value * _UP + _SMALLEST, 1.0)


def with_far_releases(
    loss: float,
    prior: PriorChoice,
    secret: LedgerSecret,
    apart_s: float,
    near: Sequence[LedgerRelease],
    far: Sequence[LedgerRelease],
    axis: int,
) -> float:
    """Upper bound of a loss (1/m²) when the `far` releases are seen besides the `near` ones that it was certified for.

    Nothing of the far ones, nor what they protect, is nearer than `apart_s` seconds to the near ones.
    """
    times = len(secret.time_us)
    process = prior.sd_m**2
    variance = process * _UP + prior.nugget_m**2
    # The least eigenvalue of the secret's own covariance: of one fix its variance, of several at least the nugget.
    own = process if secret.between else process + prior.nugget_m**2 if times == 1 else prior.nugget_m**2
    floor_near, count_near = _floor_and_count(near, axis)
    floor_far, count_far = _floor_and_count(far, axis)
    if not (own > 0 and floor_near > 0 and floor_far > 0 and math.isfinite(loss)):
        return math.inf
    covariance = correlation(prior, apart_s) * process
    reach = math.sqrt(times) + math.sqrt(times * variance * count_near / floor_near)
    added = (covariance * math.sqrt(count_far) * reach) ** 2 / floor_far * _UP + _SMALLEST
    precision = (1.0 / own + loss) * _UP
    if added * precision > 0.5:
        return math.inf
    return (loss + 2.0 * added * precision**2) * (1.0 + 2.0**-50)


def _floor_and_count(releases: Sequence[LedgerRelease], axis: int) -> tuple[float, int]:
    """Half of the least variance of any fix's independent noise, and the number of fixes.

    Half, since a covariance that was rounded may be indefinite by far less than that.
    """
    floor = min(float(one.mechanisms[axis].floor_sd) for one in releases)
    return 0.5 * floor**2, sum(len(one.time_us) for one in releases)
