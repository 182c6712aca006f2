"""One coordinate of a trace: its mechanism, and what an attacker knows before and after the release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from jaxpriv.certificates.verb import host_arrays
from jaxpriv.precision import double_precision


if TYPE_CHECKING:
    from jaxpriv.designs.result import Design
    from jaxpriv.priors.process import ProcessPrior


@dataclass(frozen=True)
class Axis:
    """A design for one coordinate, in metres.

    `worst` is the prior under which the certified loss is largest, `covariance` (n, n) its own of the recorded
    coordinate. `before_m` and `after_m` (secrets, priors) are the half-widths of the 68 % interval of each secret
    without and with the release, for an attacker who knows prior and noise; of a secret of several fixes, the best
    known fix's.
    """

    design: Design
    worst: int
    covariance: np.ndarray = field(repr=False)
    before_m: np.ndarray = field(repr=False)
    after_m: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, design: Design, priors: Sequence[ProcessPrior], secrets: Sequence[Any]) -> Axis:
        """Gather what is known of each secret under each prior."""
        losses = np.asarray(design.certificate.losses)
        worst = int(np.argmax(np.max(design.certificate.epsilons, axis=0)))
        before, after = np.empty_like(losses), np.empty_like(losses)
        kept = np.empty((0, 0))
        for p, prior in enumerate(priors):
            with double_precision():
                covariance, joints = host_arrays(prior, secrets)
            if p == worst:
                kept = covariance
            total = None
            for j, (cross, variance) in enumerate(joints):
                own = np.diag(variance)
                before[j, p] = np.sqrt(np.min(own))
                if len(own) == 1:
                    # The precision of the posterior is that of the prior plus the gain, an upper value here.
                    after[j, p] = 1 / np.sqrt(1 / own[0] + losses[j, p])
                    continue
                if total is None:
                    noise = np.asarray(design.mechanism.covariance, dtype=np.float64)
                    total = cho_factor(covariance + noise, lower=True)
                left = own - np.einsum("ij,ij->j", cross, cho_solve(total, cross))
                after[j, p] = np.sqrt(max(float(np.min(left)), 0.0))
        return cls(design, worst, kept, before, after)

    @property
    def size(self) -> int:
        """Number of points."""
        return len(self.covariance)

    def least_known(self) -> np.ndarray:
        """For each secret the prior that leaves the smallest half-width after the release, (secrets,)."""
        return np.argmin(self.after_m, axis=1)

    def noise_variance(self) -> np.ndarray:
        """Variance of the noise of each point, (n,), in m²."""
        mechanism = self.design.mechanism
        return np.sum(np.asarray(mechanism.factor, dtype=np.float64) ** 2, axis=1) + float(mechanism.floor_sd) ** 2

    def noise_block(self, rows: np.ndarray) -> np.ndarray:
        """Covariance of the noise at the points `rows` (k,), (k, k), in m²."""
        mechanism = self.design.mechanism
        factor = np.asarray(mechanism.factor, dtype=np.float64)[rows]
        return factor @ factor.T + float(mechanism.floor_sd) ** 2 * np.eye(len(rows))

    def believed_path(self, released: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What an attacker with the worst prior believes after seeing released values (n,).

        Means and 68 % half-widths, (n,) each, in metres. The unknown mean of the prior is taken to be that of the
        released values; the half-widths hold for any mean.
        """
        noise = np.asarray(self.design.mechanism.covariance, dtype=np.float64)
        factor = cho_factor(self.covariance + noise, lower=True)
        gain = cho_solve(factor, self.covariance).T
        left = np.diag(self.covariance) - np.einsum("ij,ji->i", gain, self.covariance)
        mean = np.mean(released)
        return mean + gain @ (released - mean), np.sqrt(np.maximum(left, 0.0))
