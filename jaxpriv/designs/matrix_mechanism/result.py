"""What `matrix_mechanism` returns."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Float

from jaxpriv.certificates.arithmetic import up
from jaxpriv.certificates.scalars import gaussian_epsilon
from jaxpriv.designs.result import DesignResult
from jaxpriv.errors import InputError
from jaxpriv.mechanisms.gaussian import GaussianMechanism


class MatrixMechanism(eqx.Module):
    """Answers to the queries A x with noise that is correlated so that they are accurate: B (C x + ξ), A = B C.

    Attributes:
        workload: A, (m, n).
        strategy: C, (r, n), with ξ of unit variance; lower triangular (r = n) where the workload determines x, so that
            the noise can be made step by step.
        decoder: B, (m, r).
        mechanism: the same noise on the data, covariance C⁻¹C⁻ᵀ plus the floor, for `release`; None where the
            workload does not determine x (some direction of x is never asked for and gets no finite noise).
        mu: verified: what one person changes, numbers of absolute value at most 1, is μ-GDP with this μ or a smaller.
        vector_mu: the same where each contribution is a vector of Euclidean norm at most 1 (a clipped gradient).
            Equal to `mu` for one participation.
        total_error: verified upper bound of the sum of the answers' variances, floor included.
        lower_bound: no noise of the same structure has a smaller total error (see `stats["bound"]`).
        gap: (total_error − lower_bound)/total_error.
        result: how it ended.
        stats: method, steps, history of the gap, what the bound is about.
    """

    workload: Float[np.ndarray, "m n"]
    strategy: Float[np.ndarray, "r n"]
    decoder: Float[np.ndarray, "m r"]
    mechanism: GaussianMechanism | None
    mu: float
    vector_mu: float
    total_error: float
    lower_bound: float
    gap: float
    result: DesignResult = eqx.field(static=True)
    stats: dict[str, Any] = eqx.field(static=True)

    @property
    def variances(self) -> Float[np.ndarray, " m"]:
        """Variance of the error of every query, (m,), without the floor."""
        return np.sum(self.decoder**2, axis=1)

    @property
    def rms_error(self) -> float:
        """Root of the mean variance over the queries."""
        return float(np.sqrt(np.mean(self.variances)))

    @property
    def max_error(self) -> float:
        """Standard deviation of the worst query."""
        return float(np.sqrt(np.max(self.variances)))

    @property
    def noising(self) -> Float[np.ndarray, "n n"]:
        """C⁻¹, lower triangular: row t of C⁻¹ ξ is the noise to add to step t. InputError without a `mechanism`."""
        return np.asarray(self._determined().factor)

    @property
    def covariance(self) -> Float[np.ndarray, "n n"]:
        """The covariance of the noise on the data, floor included. InputError without a `mechanism`."""
        return np.asarray(self._determined().covariance)

    def epsilon(self, delta: float) -> float:
        """The least ε of (ε, δ)-differential privacy for one person with scalar contributions, from the exact curve."""
        return gaussian_epsilon(up(self.mu**2), delta)

    def _determined(self) -> GaussianMechanism:
        if self.mechanism is None:
            raise InputError(
                f"the workload has rank {self.strategy.shape[0]} for {self.strategy.shape[1]} numbers: directions that "
                "no query asks for get no finite noise. Use strategy and decoder."
            )
        return self.mechanism

    def __str__(self) -> str:
        return (
            f"μ ≤ {self.mu:.6g}; total error {self.total_error:.8g} (root mean square {self.rms_error:.4g}, worst "
            f"query {self.max_error:.4g}); gap {self.gap:.1e}; {self.stats['structure']}: {self.result.value}"
        )
