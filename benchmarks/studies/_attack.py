"""What an attacker who knows everything but the secret makes of a release, in closed form over the noise.

The attacker holds a covariance Σ, knows the noise covariance G, and believes in a constant but unknown mean of the
series. Given the true series the posterior mean of the secret is Gaussian over the noise, so that errors, coverages
and odds are numbers and not averages of draws.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm


VAGUE = 1e2  # variance of the unknown mean, in variances of the series


@dataclass(frozen=True)
class Attack:
    """One series: the attacker's deviation of the secret, and the law of the error of the posterior mean.

    `deviation` is the posterior's own; `bias` and `spread` those of its mean, over the noise; `gain` the precision that
    the release added. All in units of the series' standard deviation.
    """

    deviation: float
    bias: float
    spread: float
    gain: float

    @property
    def rms(self) -> float:
        return math.hypot(self.bias, self.spread)

    def covered(self, level: float) -> float:
        """Probability that the attacker's central interval of this level holds the truth."""
        half = float(norm.ppf(0.5 + level / 2)) * self.deviation
        if self.spread == 0.0:
            return float(abs(self.bias) <= half)
        return float(norm.cdf((half - self.bias) / self.spread) - norm.cdf((-half - self.bias) / self.spread))

    def exceeded(self, distance: float, size: float) -> float:
        """Probability that the log-odds of the true place against one `distance` away move by more than `size`.

        The likelihood of the secret is normal with precision `gain` around a value that the posterior mean and the
        prior determine; the log-ratio of two places is linear in it. The worse of both directions.
        """
        if self.gain <= 0.0:
            return 0.0
        pull = 1.0 / (self.gain * self.deviation**2)  # likelihood's centre, in units of the posterior mean's error
        worst = 0.0
        for side in (-1.0, 1.0):
            # log L(truth) - log L(truth + side d) = gain (d²/2 - side d (centre - truth))
            middle = self.gain * (distance**2 / 2 - side * distance * pull * self.bias)
            scale = self.gain * distance * pull * self.spread
            if scale == 0.0:
                worst = max(worst, float(abs(middle) > size))
                continue
            worst = max(worst, float(norm.sf((size - middle) / scale) + norm.cdf((-size - middle) / scale)))
        return worst


@dataclass(frozen=True)
class Guess:
    """Posterior deviation, root mean square error over the noise, and how often the 68 and 95 % intervals hold.

    Lengths are in units of the series' standard deviation.
    """

    deviation: float
    rms: float
    covered: tuple[float, float]


def guessed(attack: Attack) -> Guess:
    """The same of an attacker with one prior."""
    return Guess(attack.deviation, attack.rms, (attack.covered(0.68), attack.covered(0.95)))


def attacked(values: np.ndarray, believed: np.ndarray, noise: np.ndarray, secret: int) -> Attack:
    """`values` (n,) clear; `believed` and `noise` (n, n) covariances in the same unit squared."""
    sd = float(np.std(values))
    centred = values - np.mean(values)
    prior = believed + VAGUE * sd**2
    weights = np.linalg.solve(prior + noise, prior[:, secret])
    left = prior[secret, secret] - prior[secret] @ weights
    bias = float(weights @ centred - centred[secret])
    gain = 1.0 / left - 1.0 / prior[secret, secret]
    return Attack(
        math.sqrt(max(left, 0.0)) / sd, bias / sd, float(np.sqrt(weights @ noise @ weights)) / sd, gain * sd**2
    )


def summary(found: Sequence[Attack], promised: Sequence[float], ratios: Sequence[float]) -> list[str]:
    """Cells of a table: promised, left (mean, worst decile), error, coverage, loss ratio, share within the report."""
    left = np.array([one.deviation for one in found])
    ratio = np.array(ratios)
    return [
        f"{np.mean(promised):.3f}",
        f"{np.mean(left):.3f} [{np.quantile(left, 0.1):.3f}]",
        f"{np.median([one.rms for one in found]):.3f}",
        f"{np.mean([one.covered(0.68) for one in found]):.2f} / {np.mean([one.covered(0.95) for one in found]):.2f}",
        f"{np.median(ratio):.2f}, {np.quantile(ratio, 0.9):.2f}, {np.max(ratio):.1f}",
        f"{np.mean(ratio <= 1):.0%}, {np.mean(ratio <= 1.5):.0%}",
    ]


def left_to(believed: Any, noise: np.ndarray, secret: int) -> float:
    """Posterior deviation of the secret under a prior, for a mean that is known: what a design promises."""
    prior = np.asarray(believed.covariance)
    weights = np.linalg.solve(prior + noise, prior[:, secret])
    return math.sqrt(max(prior[secret, secret] - prior[secret] @ weights, 0.0))
