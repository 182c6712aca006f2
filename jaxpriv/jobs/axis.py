"""One coordinate of a trace: its mechanism, and what an attacker knows before and after the release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from jaxpriv.certificates.verb import host_arrays
from jaxpriv.designs.long.dispatch import structured_priors
from jaxpriv.jobs.believed import believed_path
from jaxpriv.precision import double_precision
from jaxpriv.priors.process import ProcessPrior


if TYPE_CHECKING:
    from jaxpriv.designs.result import Design
    from jaxpriv.mechanisms.gaussian import GaussianMechanism
    from jaxpriv.secrets.secret import Secret


@dataclass(frozen=True)
class Axis:
    """A design for one coordinate, in metres.

    `worst` is the position of `prior`, under which the certified loss is largest. `before_m` and `after_m`
    (secrets, priors) are the half-widths of the 68 % interval of each secret without and with the release, for an
    attacker who knows prior and noise; of a secret of several fixes, the best known fix's (on a long trace no more
    than that).
    """

    design: Design
    worst: int
    prior: ProcessPrior = field(repr=False)
    before_m: np.ndarray = field(repr=False)
    after_m: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, design: Design, priors: Sequence[ProcessPrior], secrets: Sequence[Any]) -> Axis:
        """Gather what is known of each secret under each prior."""
        losses = np.asarray(design.certificate.losses)
        worst = int(np.argmax(np.max(design.certificate.epsilons, axis=0)))
        before, after = np.empty_like(losses), np.empty_like(losses)
        known = _known if structured_priors(priors) is None else _known_of_long
        for p, prior in enumerate(priors):
            with double_precision():
                before[:, p], after[:, p] = known(prior, secrets, design.mechanism, losses[:, p])
        return cls(design, worst, priors[worst], before, after)

    @property
    def size(self) -> int:
        """Number of points."""
        return self.prior.size

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
        """What an attacker with the worst prior believes after seeing released values (n,): see `believed_path`."""
        return believed_path(self.prior, self.design.mechanism, released)


def _known(
    prior: ProcessPrior, secrets: Sequence[Any], mechanism: GaussianMechanism, losses: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Half-widths before and after the release, (secrets,) each."""
    covariance, joints = host_arrays(prior, secrets)
    before, after = np.empty(len(secrets)), np.empty(len(secrets))
    total = None
    for j, (cross, variance) in enumerate(joints):
        own = np.diag(variance)
        before[j] = np.sqrt(np.min(own))
        if len(own) == 1:
            # The precision of the posterior is that of the prior plus the gain, an upper value here.
            after[j] = 1 / np.sqrt(1 / own[0] + losses[j])
            continue
        if total is None:
            total = cho_factor(covariance + np.asarray(mechanism.covariance, dtype=np.float64), lower=True)
        left = own - np.einsum("ij,ij->j", cross, cho_solve(total, cross))
        after[j] = np.sqrt(max(float(np.min(left)), 0.0))
    return before, after


def _known_of_long(
    prior: ProcessPrior, secrets: Sequence[Secret], mechanism: GaussianMechanism, losses: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """As `_known`, from the fixes of each secret alone; of several fixes a lower bound of what is left.

    With S their covariance and a gain of at most t in every direction, what is left is at least (S⁻¹ + tI)⁻¹.
    """
    before, after = np.empty(len(secrets)), np.empty(len(secrets))
    for j, one in enumerate(secrets):
        variance, _ = host_arrays(ProcessPrior(prior.kernel, prior.times[list(one.indices)], float(prior.noise_sd)), ())
        left = np.linalg.solve(np.eye(len(variance)) + losses[j] * variance, variance)
        before[j], after[j] = np.sqrt(np.min(np.diag(variance))), np.sqrt(max(float(np.min(np.diag(left))), 0.0))
    return before, after
