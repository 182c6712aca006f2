"""The release of least mean squared error for a consumer who knows the prior: reverse water-filling with a choice of
rank.

Dropping a direction lowers the χ² quantile that the others must pay, so the best number of directions is found by
trying each; a request that no full-rank release meets can be met by a smaller one. Derived here; proof in
docs/leakage_designs.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import chi2

from jaxpriv.certificates.arithmetic import symmetric_array
from jaxpriv.certificates.release_leakage import release_leakage
from jaxpriv.errors import CertificateError, InputError
from jaxpriv.floors.leakage import BUDGET_SHADING, check_leakage_target


@dataclass(frozen=True)
class MinimumErrorRelease:
    """Release `projection`ᵀ Z plus independent noise of variances `noise`; the rest of Z is not sent.

    Attributes:
        projection: U, (m, r), orthonormal columns; r = 0 says to release nothing.
        noise: (r,), in squared units of the release.
        error: least tr of the posterior covariance of Z, in squared units.
        epsilon: certified leakage, nats at the δ asked for; 0 for r = 0.
        level: λ, the posterior variance of each released direction; NaN for r = 0.
        errors: the least error of each number of directions 0, 1, …, m; infinite where it is not admissible.
    """

    projection: np.ndarray
    noise: np.ndarray
    error: float
    epsilon: float
    level: float
    errors: np.ndarray

    @property
    def rank(self) -> int:
        """r."""
        return self.projection.shape[1]


def minimum_error_release(signal: Any, *, epsilon: float, delta: float) -> MinimumErrorRelease:
    """The (ε, δ)-leakage release of Z = C X, K = C Σ Cᵀ, with the least mean squared error given the prior.

    Args:
        signal: K, (m, m) positive semidefinite.

    With r directions the information budget is τ_r = 2ε − q_r(δ) and each is left with λ = (k_1⋯k_r)^{1/r} e^{−τ_r/r};
    admissible where λ < k_r. Nothing (r = 0) is released where no r is. Only for Z = C X: where Z has noise of its own,
    what the release says about Z is more than what it says about X.

    Raises:
        InputError: the signal is not a covariance, or ε, δ are out of range.
        CertificateError: the leakage of the release found could not be verified.
    """
    matrix = symmetric_array(signal, "signal")
    if np.linalg.eigvalsh(matrix)[0] < -64 * np.finfo(float).eps * len(matrix) * np.max(np.abs(matrix)):
        raise InputError("signal is not positive semidefinite.")
    epsilon, delta = check_leakage_target(epsilon, delta)
    values, vectors = np.linalg.eigh(matrix)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    size = values.size
    errors, levels = np.full(size + 1, math.inf), np.full(size + 1, math.nan)
    errors[0] = float(np.sum(values))
    rests = np.append(np.cumsum(values[::-1])[::-1], 0.0)
    with np.errstate(divide="ignore"):
        logs = np.cumsum(np.log(values))
    for r in range(1, size + 1):
        budget = (2.0 * epsilon - float(chi2.isf(delta, r))) * (1.0 - BUDGET_SHADING)
        if not (budget > 0.0 and values[r - 1] > 0.0):
            continue
        level = math.exp((logs[r - 1] - budget) / r)
        if level < values[r - 1]:
            errors[r], levels[r] = r * level + rests[r], level
    best = int(np.argmin(errors))
    kept = values[:best]
    noise = kept * levels[best] / (kept - levels[best]) if best else np.zeros(0)
    projection, reached = np.ascontiguousarray(vectors[:, :best]), 0.0
    if best:
        bound = release_leakage(matrix, projection.T, np.diag(np.sqrt(noise)), np.zeros((best, best)))
        reached = bound.epsilon(delta)
    if reached > epsilon:
        raise CertificateError(
            f"the leakage of the release could not be verified: {reached:.6g} nats, not {epsilon:.6g}."
        )
    return MinimumErrorRelease(projection, noise, float(errors[best]), reached, float(levels[best]), errors)
