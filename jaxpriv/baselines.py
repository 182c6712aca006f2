"""The mechanisms that a design is compared with: independent, prior-shaped, and the published paper's."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import root_scalar

from jaxpriv.certificates.arithmetic import square_bounds
from jaxpriv.certificates.loss import loss_bounds
from jaxpriv.errors import CertificateError, InputError
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.precision import double_precision, host_array
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.collection import AnySecret, as_secrets
from jaxpriv.secrets.secret import EveryPoint, Secret


_SHADES = (1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)


def uniform(n: int, budget: float) -> GaussianMechanism:
    """Independent noise of the same variance everywhere: (budget / n) I for a trace of n coordinates.

    `budget` is the total variance, in squared units of the trace. The "independent/uniform" baseline of Meehan and
    Chaudhuri (AISTATS 2021, section 5). Raises InputError unless n is a positive whole number and budget positive.
    """
    n, budget = _size(n), _positive(budget, "budget")
    return GaussianMechanism(np.zeros((n, 0)), math.sqrt(budget / n))


def concentrated(n: int, secret: Secret, budget: float) -> GaussianMechanism:
    """Independent noise on the secret's k positions only: budget / k there and none elsewhere, for n coordinates.

    The "independent/concentrated" baseline of Meehan and Chaudhuri (AISTATS 2021, section 5). The other positions are
    published exactly, so the mechanism is singular, its `floor_sd` is 0, and its loss is infinite for a smooth prior.
    Raises InputError for a secret outside the trace or one that is not made of fixes.
    """
    n, budget, positions = _size(n), _positive(budget, "budget"), _fixes(secret)
    if positions.max() >= n:
        raise InputError(f"secret position {positions.max()} is outside the trace of {n} coordinates.")
    factor = np.zeros((n, len(positions)))
    factor[positions, np.arange(len(positions))] = math.sqrt(budget / len(positions))
    return GaussianMechanism(factor, 0.0)


def prior_shaped(prior: Prior, budget: float) -> GaussianMechanism:
    """Noise with the covariance of the prior, scaled to total variance `budget` (squared units): b Σ / tr Σ.

    Optimal when every point is a basic secret of equal prior variance and one target is asked for all (derived here;
    proof in docs/design.md), and poor for secrets of several adjacent times. Singular where the prior is.
    """
    budget = _positive(budget, "budget")
    with double_precision():
        covariance = host_array(prior.covariance, "the prior covariance", 2)
    values, vectors = np.linalg.eigh(covariance)
    total = float(np.trace(covariance))
    if total <= 0 or values[0] < -64 * len(values) * np.finfo(float).eps * values[-1]:
        raise InputError(f"the prior is not positive semidefinite: its smallest eigenvalue is {values[0]:.3g}.")
    kept = values > 0
    return GaussianMechanism(vectors[:, kept] * np.sqrt(values[kept] * (budget / total)), 0.0)


def surrogate(prior: Prior, secret: Secret, budget: float) -> GaussianMechanism:
    """The published mechanism for one coordinate, in closed form: white noise on it, rank one on the rest.

    With A the map from the secret to the conditional mean of the rest and b the budget (total variance, squared
    units), σ² = b/(1 + ‖A‖²) on the secret and b A Aᵀ/(1 + ‖A‖²) on the rest. This is what SDP_A gives in the published
    code of Meehan and Chaudhuri (AISTATS 2021), whatever its stabilising factor (derived here; proof in
    docs/design.md). Raises InputError for a secret of several coordinates, which has no such form.
    """
    budget, positions = _positive(budget, "budget"), _fixes(secret)
    if len(positions) != 1:
        raise InputError(f"the closed form is for a secret of one coordinate, not {len(positions)}.")
    with double_precision():
        cross, variance = (np.asarray(part, dtype=np.float64) for part in secret.joint(prior))
    if not variance[0, 0] > 0:
        raise InputError("the secret has no prior variance: there is nothing to protect.")
    direction = cross[:, 0] / variance[0, 0]
    direction[positions[0]] = 0.0
    scale = math.sqrt(budget / (1.0 + direction @ direction))
    factor = np.zeros((len(direction), 2))
    factor[positions[0], 0] = scale
    factor[:, 1] = scale * direction
    return GaussianMechanism(factor, 0.0)


def smallest_uniform(
    priors: Prior | Sequence[Prior],
    secrets: AnySecret | EveryPoint | Sequence[AnySecret],
    epsilon: float,
    order: float = 2.0,
) -> GaussianMechanism:
    """The least independent noise c I that protects every secret under every prior: epsilon nats at a Rényi order.

    Each loss falls as c grows, so c is the root of one monotone function, found in log c from one eigendecomposition
    of each prior. It is then raised, by 1e-9 of itself at first, until the rigorous bounds of every loss
    (`jaxpriv.certificates`) meet the target. The trace of the result is n c. Secrets are protected each, not jointly.

    Raises InputError (a bad argument, priors of different sizes) and CertificateError when no c passes within 1e-3 of
    the root.
    """
    members = list(priors) if isinstance(priors, Sequence) else [priors]
    if not members:
        raise InputError("no prior was given.")
    epsilon, order = _positive(epsilon, "epsilon"), _positive(order, "order")
    if order <= 1:
        raise InputError(f"order is {order}; expected a Rényi order above 1.")
    n = members[0].size
    if any(member.size != n for member in members):
        raise InputError(f"the priors have different sizes: {sorted({member.size for member in members})}.")
    with double_precision():
        spectra = [_Spectrum(member, as_secrets(secrets, member), epsilon, order) for member in members]

    def excess(log_variance: float) -> float:
        worst = max(spectrum.worst(math.exp(log_variance)) for spectrum in spectra)
        return min(math.log(worst), 700.0) if worst > 0 else -700.0

    # C = 0 is the worst case for the secret: c = |H|^2 / t always suffices.
    sufficient = max(spectrum.sufficient for spectrum in spectra)
    if sufficient == 0:
        raise InputError("no secret is correlated with the trace: there is nothing that noise could protect.")
    top = math.log(sufficient)
    bottom = top - 80.0
    root = bottom
    if excess(bottom) > 0:
        root = root_scalar(excess, bracket=(bottom, top + 1e-9), method="brentq", xtol=1e-13).root
    for shade in _SHADES:
        floor_sd = math.sqrt(math.exp(root) * (1 + shade))
        if all(spectrum.meets(floor_sd) for spectrum in spectra):
            return GaussianMechanism(np.zeros((n, 0)), floor_sd)
    raise CertificateError("no independent noise near the computed one could be verified; nothing is claimed.")


class _Spectrum:
    """One prior, diagonalised, with the maps from its secrets in its eigenbasis and their target losses."""

    def __init__(self, prior: Prior, secrets: Sequence[AnySecret], epsilon: float, order: float):
        covariance = host_array(prior.covariance, "the prior covariance", 2)
        self.covariance = covariance
        values, vectors = np.linalg.eigh(covariance)
        self.values = np.maximum(values, 0.0)
        joints = [one.joint(prior) for one in secrets]
        self.joints = [(np.asarray(cross, np.float64), np.asarray(own, np.float64)) for cross, own in joints]
        self.targets = [2 * epsilon / (order * one.n_times * float(one.radius) ** 2) for one in secrets]
        for j, (_, variance) in enumerate(self.joints):
            spread = np.linalg.eigvalsh(variance)
            if spread[0] <= len(spread) * np.finfo(float).eps * spread[-1]:
                raise InputError(f"secret {j} has a singular prior covariance: leave out what the rest determines.")
        maps = [np.linalg.solve(variance, cross.T).T for cross, variance in self.joints]
        self.rotated = [vectors.T @ regression for regression in maps]
        self.sufficient = max(
            np.linalg.norm(regression, 2) ** 2 / target for regression, target in zip(maps, self.targets, strict=True)
        )

    def worst(self, noise: float) -> float:
        """The largest loss under noise of this variance, in units of its target."""
        worst = 0.0
        for (_, variance), target, rotated in zip(self.joints, self.targets, self.rotated, strict=True):
            # H^T (C + cI)^-1 H = K + K (Var^-1 - K)^-1 K, K = H^T (Sigma + cI)^-1 H, by the matrix inversion lemma.
            known = _symmetric(rotated.T @ (rotated / (self.values + noise)[:, None]))
            left = _symmetric(np.linalg.inv(variance)) - known
            if np.linalg.eigvalsh(left)[0] <= 0:
                return math.inf
            gain = _symmetric(known + known @ np.linalg.solve(left, known))
            worst = max(worst, float(np.linalg.eigvalsh(gain)[-1]) / target)
        return worst

    def meets(self, floor_sd: float) -> bool:
        """Whether every loss under noise of this standard deviation is proven to be within its target."""
        least = square_bounds(floor_sd)[0]
        bounds = loss_bounds(self.covariance, self.joints, np.zeros((len(self.covariance), 0)), least)
        # The targets carry the rounding of a few products.
        return all(bound.upper <= target * (1 - 1e-15) for bound, target in zip(bounds, self.targets, strict=True))


def _size(n: int) -> int:
    if not isinstance(n, (int, np.integer)) or isinstance(n, bool) or n < 1:
        raise InputError(f"n is {n!r}; expected the number of coordinates of the trace.")
    return int(n)


def _positive(value: float, name: str) -> float:
    if isinstance(value, bool) or np.ndim(value) != 0 or not np.isfinite(value) or not value > 0:
        raise InputError(f"{name} is {value!r}; expected a positive, finite number.")
    return float(value)


def _fixes(secret: Secret) -> np.ndarray:
    if not isinstance(secret, Secret):
        raise InputError(f"a {type(secret).__name__} is not made of fixes of the trace; this baseline needs a Secret.")
    return np.array(secret.indices)


def _symmetric(matrix: np.ndarray) -> np.ndarray:
    return (matrix + matrix.T) / 2
