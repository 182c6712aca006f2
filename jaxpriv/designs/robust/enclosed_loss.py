"""The loss of a mechanism under every prior between two bounds of its covariance.

The posterior covariance P = Σ − Σ(Σ + G)⁻¹Σ grows with Σ in the Löwner order, so for lower ⪯ Σ ⪯ upper the loss of a
secret T is at most λ_max(P_T(lower)⁻¹ − V⁻¹), V an upper bound of Cov(T). Proof in docs/robust_designs.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.linalg import LinAlgError, block_diag, cho_factor, cho_solve

from jaxpriv.certificates.arithmetic import fraction_up, square_bounds
from jaxpriv.certificates.loss import LossBound, loss_bounds
from jaxpriv.certificates.scalars import renyi_epsilon
from jaxpriv.designs.robust.families import Enclosure
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.priors.gaussian import GaussianPrior
from jaxpriv.secrets.collection import AnySecret
from jaxpriv.secrets.linear import LinearSecret
from jaxpriv.secrets.secret import Secret


_SCALE = 40  # q of the imagined observations, whose variances are 2^2q as large as what they explain
_ROUNDED = 1.0 + 2.0**-40


@dataclass(frozen=True)
class _Bounded:
    """A secret in an enclosure: Cov(X, T) and Cov(T) of the lower bound with the errors of their entries, and V."""

    cross: np.ndarray
    own: np.ndarray
    cross_error: np.ndarray
    own_error: np.ndarray
    largest: np.ndarray

    @classmethod
    def of(cls, secret: AnySecret, enclosure: Enclosure) -> _Bounded:
        cross, own = (np.asarray(part, dtype=np.float64) for part in secret.joint(GaussianPrior(enclosure.lower)))
        if isinstance(secret, LinearSecret):
            cross_error, own_error = (part * _ROUNDED for part in secret.rounding(enclosure.lower))
        else:
            cross_error, own_error = np.zeros_like(cross), np.zeros_like(own)
        if isinstance(secret, Secret) and secret.size == 1:
            largest = enclosure.variances[list(secret.indices)][:, None]
        else:
            largest = np.asarray(secret.joint(GaussianPrior(enclosure.upper))[1], dtype=np.float64)
        if isinstance(secret, LinearSecret):
            largest = largest + float(np.linalg.norm(secret.rounding(enclosure.upper)[1])) * _ROUNDED * np.eye(len(own))
        return cls(cross, own, cross_error, own_error, largest)

    def imagined(self, floor: float) -> np.ndarray:
        """D with 2^q D (2^2q D + floor I)⁻¹ 2^q D ⪰ V − Cov(T; lower) whatever the rounding; empty for one number."""
        k = len(self.own)
        if k == 1:
            return np.zeros((0, 0))
        difference = self.largest - self.own
        scale = float(np.linalg.norm(self.largest)) + float(np.linalg.norm(self.own))
        spill = 2.0**-46 * scale + 2.0 * float(np.linalg.norm(self.own_error)) + 2.0 * floor * 2.0 ** (-2 * _SCALE)
        return 0.5 * (difference + difference.T) + spill * np.eye(k)

    def against_largest(self, bound: LossBound) -> float:
        """The upper bound, relative to V: 1/P − 1/V = (1/P − 1/own) + (1/own − 1/V) for one number."""
        if len(self.own) > 1 or not math.isfinite(bound.upper):
            return bound.upper
        own = Fraction(float(self.own[0, 0])) - Fraction(float(self.own_error[0, 0]))
        if own <= 0:
            return math.inf
        return fraction_up(max(Fraction(bound.upper) + 1 / own - 1 / Fraction(float(self.largest[0, 0])), Fraction(0)))


def estimated_ratio(
    enclosure: Enclosure, secrets: Sequence[AnySecret], noise: np.ndarray, targets: np.ndarray, order: float
) -> float:
    """About the largest ε/target under the priors of the enclosure, infinite where nothing can be said."""
    if np.min(np.diagonal(enclosure.lower)) <= 0.0:
        return math.inf
    worst = 0.0
    try:
        factor = cho_factor(enclosure.lower + noise, lower=True, check_finite=False)
        for secret, target in zip(secrets, targets, strict=True):
            part = _Bounded.of(secret, enclosure)
            left = part.own - part.cross.T @ cho_solve(factor, part.cross, check_finite=False)
            if np.linalg.eigvalsh(left)[0] <= 0.0:
                return math.inf
            gain = np.linalg.inv(left) - np.linalg.inv(part.largest)
            loss = float(np.linalg.eigvalsh(0.5 * (gain + gain.T))[-1])
            worst = max(worst, 0.5 * order * secret.n_times * float(secret.radius) ** 2 * loss / float(target))
    except LinAlgError:
        return math.inf
    return worst if math.isfinite(worst) else math.inf


def verified_epsilons(
    enclosure: Enclosure, secrets: Sequence[AnySecret], mechanism: GaussianMechanism, order: float
) -> np.ndarray:
    """ε of every secret (nats), (secrets,), never below that under any prior of the enclosure; infinite if unverified.

    The loss of a secret of several numbers, relative to V, is that of an adversary with variance V who sees, besides
    the release, an imagined observation that explains V − Cov(T; lower): of variance 2^2q D and covariance 2^q D with
    the secret, D above that difference and q so large that the noise floor does not matter.
    """
    if np.min(np.diagonal(enclosure.lower)) <= 0.0:
        return np.full(len(secrets), math.inf)
    floor = square_bounds(float(mechanism.floor_sd))[0]
    parts = [_Bounded.of(secret, enclosure) for secret in secrets]
    imagined = [part.imagined(floor) for part in parts]
    size = len(enclosure.lower)
    ends = size + np.cumsum([len(block) for block in imagined])
    total = int(ends[-1])
    joints, cross_radii, own_radii = [], [], []
    for part, block, end in zip(parts, imagined, ends, strict=True):
        cross, radius = np.zeros((2, total, len(part.own)))
        cross[:size], radius[:size] = part.cross, part.cross_error
        if len(block):
            cross[end - len(block) : end] = 2.0**_SCALE * block
        joints.append((cross, part.largest if len(block) else part.own))
        cross_radii.append(radius)
        own_radii.append(np.zeros_like(block) if len(block) else part.own_error)
    inexact = any(np.any(radius) for radius in cross_radii)
    bounds = loss_bounds(
        np.asarray(block_diag(enclosure.lower, *[4.0**_SCALE * block for block in imagined])),
        joints,
        np.pad(np.asarray(mechanism.factor, dtype=np.float64), ((0, total - size), (0, 0))),
        floor,
        cross_radius=cross_radii if inexact else None,
        variance_radius=own_radii if inexact else None,
    )
    losses = [part.against_largest(bound) for part, bound in zip(parts, bounds, strict=True)]
    return np.array(
        [renyi_epsilon(loss, one.n_times, float(one.radius), order) for loss, one in zip(losses, secrets, strict=True)]
    )
