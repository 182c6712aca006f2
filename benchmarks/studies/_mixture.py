"""An attacker who sees only the release, and knows how other people move: a mixture of priors, weighed by what is seen.

The attacker holds several covariances, equally likely beforehand, and the covariance G of the noise. A release y has
the marginal likelihood N(y; 0, Σ_m + G) under each; the posterior of the secret is the mixture, with these weights, of
the Gaussian posteriors. A constant but unknown mean is a constant added to every covariance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.special import logsumexp
from scipy.stats import norm


@dataclass(frozen=True)
class Belief:
    """What the attacker believes about the secret after each of several releases, in the unit of the values.

    `weights` (releases, members) of the members, `means` (releases, members) and `variances` (members,) of the secret
    under each.
    """

    weights: np.ndarray
    means: np.ndarray
    variances: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """Posterior mean after each release, (releases,)."""
        return np.sum(self.weights * self.means, axis=1)

    @property
    def deviation(self) -> np.ndarray:
        """Posterior standard deviation after each release, (releases,): within the members and between them."""
        between = (self.means - self.mean[:, None]) ** 2
        return np.sqrt(np.sum(self.weights * (self.variances + between), axis=1))

    def below(self, truth: np.ndarray | float) -> np.ndarray:
        """Posterior probability (releases,) that the secret is below `truth`, one number or one a release."""
        z = (np.reshape(truth, (-1, 1)) - self.means) / np.sqrt(self.variances)
        return np.sum(self.weights * norm.cdf(z), axis=1)

    def covered(self, truth: np.ndarray | float, level: float) -> np.ndarray:
        """Whether the central interval of probability `level` of the mixture holds `truth`, (releases,)."""
        return np.abs(self.below(truth) - 0.5) <= level / 2


def believed(members: Sequence[np.ndarray], noise: np.ndarray, secret: int, released: np.ndarray) -> Belief:
    """Read the releases (releases, n), with `members` and `noise` (n, n) in their unit squared.

    A member whose covariance is not positive definite to working precision has no weight. Raises ValueError if none is.
    """
    logs, means, variances = [], [], []
    for prior in members:
        try:
            factor = cholesky(prior + noise, lower=True)
        except np.linalg.LinAlgError:
            continue
        white = solve_triangular(factor, released.T, lower=True)
        cross = solve_triangular(factor, prior[:, secret], lower=True)
        logs.append(-0.5 * np.sum(white**2, axis=0) - np.sum(np.log(np.diagonal(factor))))
        means.append(cross @ white)
        variances.append(prior[secret, secret] - cross @ cross)
    if not logs:
        raise ValueError("no member of the mixture has a positive definite covariance")
    stacked = np.stack(logs, axis=1)
    weights = np.exp(stacked - logsumexp(stacked, axis=1, keepdims=True))
    return Belief(weights, np.stack(means, axis=1), np.maximum(variances, np.finfo(float).tiny))


def draws_of(noise: np.ndarray, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Gaussian noise (draws, n) of covariance `noise`, which may be singular."""
    values, vectors = np.linalg.eigh(noise)
    return rng.normal(size=(draws, len(noise))) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
