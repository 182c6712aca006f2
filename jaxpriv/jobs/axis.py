"""One coordinate of a trace: its mechanism, and what an attacker knows after the release."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import root_scalar

from jaxpriv.precision import double_precision


if TYPE_CHECKING:
    from jaxpriv.designs.result import Design
    from jaxpriv.priors.process import ProcessPrior
    from jaxpriv.secrets.secret import Secret
    from jaxpriv.secrets.unsampled import UnsampledSecret


@dataclass(frozen=True)
class Axis:
    """A design for one coordinate and the moments it was made for, in metres.

    `covariance` (n, n) of the recorded coordinate, `cross` (n,) with the secret and `variance` of the secret, under
    the prior.
    """

    design: Design
    covariance: np.ndarray = field(repr=False)
    cross: np.ndarray = field(repr=False)
    variance: float

    @classmethod
    def of(cls, design: Design, prior: ProcessPrior, secret: Secret | UnsampledSecret) -> Axis:
        """Gather the moments of a basic secret under a prior."""
        with double_precision():
            cross, variance = (np.asarray(part, dtype=np.float64) for part in secret.joint(prior))
            covariance = np.asarray(prior.covariance, dtype=np.float64)
        return cls(design, covariance, cross[:, 0], float(variance[0, 0]))

    @property
    def size(self) -> int:
        """Number of points."""
        return len(self.cross)

    @property
    def prior_sd(self) -> float:
        """Half-width of the 68 % interval of the secret before the release, in metres."""
        return math.sqrt(self.variance)

    def noise_variance(self) -> np.ndarray:
        """Variance of the noise of each point, (n,), in m²."""
        mechanism = self.design.mechanism
        return np.sum(np.asarray(mechanism.factor, dtype=np.float64) ** 2, axis=1) + float(mechanism.floor_sd) ** 2

    def posterior_sd(self) -> float:
        """Half-width of the 68 % interval of the secret for an attacker who knows prior, noise and release."""
        known = self._explained(np.asarray(self.design.mechanism.covariance, dtype=np.float64))
        return math.sqrt(max(self.variance - known, 0.0))

    def believed_path(self, released: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What an attacker whose prior has mean 0 believes after seeing released values (n,).

        Means and 68 % half-widths, (n,) each, in metres. The half-widths hold for any mean.
        """
        factor = cho_factor(
            self.covariance + np.asarray(self.design.mechanism.covariance, dtype=np.float64), lower=True
        )
        gain = cho_solve(factor, self.covariance).T
        left = np.diag(self.covariance) - np.einsum("ij,ji->i", gain, self.covariance)
        return gain @ released, np.sqrt(np.maximum(left, 0.0))

    def independent_loss(self, noise_variance: float) -> float:
        """Loss t (precision gain, 1/m²) of independent noise of this variance at every point; infinite if undefined."""
        try:
            known = self._explained(noise_variance)
        except np.linalg.LinAlgError:
            return math.inf
        left = self.variance - known
        return known / (self.variance * left) if left > 0 else math.inf

    def independent_variance(self, loss: float) -> float:
        """Variance (m²) of the independent noise whose loss t is `loss` (1/m²), to 1e-4; 0 where none is needed."""

        def excess(log_variance: float) -> float:
            found = self.independent_loss(math.exp(log_variance))
            return math.log(min(max(found / loss, 1e-300), 1e300))

        # Between the variance that the secret's own fix needs and that of n fixes of the same value, as a rule.
        low, high = math.log(0.9 / loss), math.log(self.size / loss)
        while excess(high) > 0:
            high += 5.0
        while excess(low) <= 0:
            low -= 10.0
            if low < high - 80.0:
                return 0.0
        return math.exp(root_scalar(excess, bracket=(low, high), method="brentq", xtol=1e-4).root)

    def _explained(self, noise: np.ndarray | float) -> float:
        """Variance of the secret that the release takes away: bᵀ (Σ + G)⁻¹ b."""
        total = self.covariance.copy()
        if isinstance(noise, np.ndarray):
            total += noise
        else:
            total[np.diag_indices(self.size)] += noise
        return float(self.cross @ cho_solve(cho_factor(total, lower=True), self.cross))
