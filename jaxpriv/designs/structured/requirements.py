"""What noise of a pattern must satisfy, as matrices that must stay positive definite in the interior of the problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class GainLimit:
    """The precision gain of one secret under one prior below a diagonal D that is linear in the unknowns.

    M = Hᵀ(C + G)⁻¹H ⪯ D. Without `variance` the gain is EᵀG⁻¹E for `cross` = E: differential privacy of an ellipsoid.

    Attributes:
        prior: which covariance of the problem; −1 for none.
        cross, variance: Cov(X, T), (n, k), and Cov(T), (k, k).
        times: the time 0..s−1 of each coordinate, (k,); one time for the enclosing ball.
        target: the largest allowed mean of d, in inverse squared units.
        scales: whether the target is multiplied by the common scale of a budget problem.
    """

    prior: int
    cross: np.ndarray
    variance: np.ndarray | None
    times: np.ndarray
    target: float
    scales: bool = True

    @property
    def count(self) -> int:
        """s, the number of times that have a d of their own."""
        return int(self.times.max()) + 1


@dataclass(frozen=True)
class Gain:
    """A precision gain where the noise is, with what its derivatives need.

    Attributes:
        value: M, (k, k).
        response: W = (C + G)⁻¹H, (n, k); dM = −Wᵀ dG W.
        extra: Z (n, k) with (C + G)⁻¹ = (Σ + G)⁻¹ + Z Zᵀ.
    """

    value: np.ndarray
    response: np.ndarray
    extra: np.ndarray


def gain_of(limit: GainLimit, inverse: np.ndarray) -> Gain:
    """`inverse` is (Σ + G)⁻¹ of the limit's prior, or G⁻¹; raises LinAlgError where the posterior is not positive."""
    solved = inverse @ limit.cross
    explained = limit.cross.T @ solved
    if limit.variance is None:
        return Gain((explained + explained.T) / 2, solved, np.zeros((solved.shape[0], 0)))
    left = limit.variance - explained
    lower = np.linalg.cholesky((left + left.T) / 2)
    # P⁻¹ − V⁻¹ = V⁻¹ Q P⁻¹ does not cancel where the noise is large.
    whitened = np.linalg.solve(lower, solved.T).T
    response = np.linalg.solve(lower.T, whitened.T).T
    value = np.linalg.solve(limit.variance, limit.cross.T @ response)
    return Gain((value + value.T) / 2, response, whitened)
