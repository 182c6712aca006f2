"""Comparison with independent noise of one size at every point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import root_scalar

from jaxpriv.baselines import smallest_uniform, uniform
from jaxpriv.certificates.verb import host_arrays
from jaxpriv.designs.certified import certify
from jaxpriv.designs.long.dispatch import MATRIX_MOST, structured_priors
from jaxpriv.errors import CertificateError, InputError
from jaxpriv.precision import double_precision
from jaxpriv.priors.protocol import Prior
from jaxpriv.priors.structured import is_structured
from jaxpriv.secrets.secret import Secret


_LONGEST_S = 60.0
_LONG_STEPS = 16  # certificates until the least independent noise of a long trace is found


@dataclass(frozen=True)
class Comparison:
    """Independent noise: its displacement (root mean square, m) at the same ε, and its ε (nats) at the same size.

    `epsilons` (secrets) are those of the same size for each secret, `epsilon` the largest; None where it is not known,
    and `skipped` then says why.
    """

    rms_m: float | None
    epsilon: float | None
    epsilons: tuple[float | None, ...]
    skipped: str | None = None


def compare(
    axes: Sequence[Sequence[Prior]], secrets: Sequence[Any], epsilon: float, variance: float, order: float
) -> Comparison:
    """Compare at `epsilon` (nats at a Rényi order) and at `variance` (m², of each coordinate); certified values.

    What would take longer than a minute is left out, with a sentence.
    """
    n, members = axes[0][0].size, sum(len(axis) for axis in axes)
    # Certificates by matrices and by products are both rigorous; the quicker one is used.
    plain = all(isinstance(one, Secret) for one in secrets)
    if plain and _certify_long_s(n, len(secrets)) < _certify_s(n, len(secrets)):
        axes = [structured_priors(axis, MATRIX_MOST) or axis for axis in axes]
    axes = [structured_priors(axis) or axis for axis in axes]
    long = is_structured(axes[0][0])
    if members * (_certify_long_s(n, len(secrets)) if long else _certify_s(n, len(secrets))) > _LONGEST_S:
        return Comparison(
            None,
            None,
            (None,) * len(secrets),
            f"The comparison with independent noise was left out: with {n} points, {len(secrets)} secrets and "
            f"{members} priors it would take longer than a minute.",
        )
    per_secret = np.zeros(len(secrets))
    for axis in axes:
        certificate = certify(list(axis), list(secrets), uniform(n, n * variance), order=order)
        per_secret = np.maximum(per_secret, np.max(certificate.epsilons, axis=1))
    found = tuple(float(value) if math.isfinite(value) else None for value in per_secret)
    worst = float(np.max(per_secret))
    same_size = worst if math.isfinite(worst) else None
    root_s = _LONG_STEPS * _certify_long_s(n, len(secrets)) if long else _root_s(n, len(secrets))
    if members * root_s > _LONGEST_S:
        return Comparison(
            None,
            same_size,
            found,
            f"How much independent noise the same ε takes was left out: with {n} points, {len(secrets)} secrets and "
            f"{members} priors it would take longer than a minute.",
        )
    try:
        smallest = _smallest_sd_of_long if long else _smallest_sd
        needed = max(smallest(axis, secrets, epsilon, order) for axis in axes)
    except (InputError, CertificateError):
        return Comparison(
            None, same_size, found, "How much independent noise the same ε takes could not be computed and verified."
        )
    return Comparison(math.sqrt(2.0) * needed, same_size, found)


def _certify_s(n: int, secrets: int) -> float:
    """Seconds that a certificate takes for one prior, on one core; measured up to 2,000 points."""
    return 0.05 + 5e-10 * n**3 + 1e-6 * n * secrets


def _certify_long_s(n: int, secrets: int) -> float:
    """As `_certify_s` for a structured prior; measured from 10,000 to 100,000 points."""
    return 0.1 + 3e-6 * n * secrets


def _root_s(n: int, secrets: int) -> float:
    """Seconds for the root: an eigendecomposition, the root itself, and certificates."""
    return 2.0 * _certify_s(n, secrets) + 1e-9 * n**3 + 1e-7 * n * secrets


def _smallest_sd(priors: Sequence[Prior], secrets: Sequence[Any], epsilon: float, order: float) -> float:
    """Standard deviation of the least independent noise that meets ε for each secret under each prior."""
    if len(secrets) == 1 or any(secret.size > 1 for secret in secrets):
        return float(smallest_uniform(list(priors), list(secrets), epsilon, order).floor_sd)
    n = priors[0].size
    spectra = []
    for prior in priors:
        with double_precision():
            covariance, joints = host_arrays(prior, secrets)
        values, vectors = np.linalg.eigh(covariance)
        own = np.array([variance[0, 0] for _, variance in joints])
        rotated = vectors.T @ np.concatenate([cross for cross, _ in joints], axis=1)
        spectra.append((np.maximum(values, 0.0), rotated**2, own))
    targets = np.array([2.0 * epsilon / (order * float(one.radius) ** 2) for one in secrets])

    def excess(log_variance: float) -> float:
        """The largest loss in units of its target, as a logarithm."""
        worst = 0.0
        for values, squares, own in spectra:
            known = (1.0 / (values + math.exp(log_variance))) @ squares
            left = own * (own - known)
            if np.any(left <= 0.0):
                return 700.0
            worst = max(worst, float(np.max(known / left / targets)))
        return math.log(worst) if worst > 0.0 else -700.0

    high = math.log(n / np.min(targets))
    while excess(high) > 0.0:
        high += 2.0
    low = high - 80.0
    root = low if excess(low) <= 0.0 else root_scalar(excess, bracket=(low, high), method="brentq", xtol=1e-12).root
    for shade in (1e-9, 1e-7, 1e-5, 1e-3):
        sd = math.sqrt(math.exp(root) * (1.0 + shade))
        if certify(list(priors), list(secrets), uniform(n, n * sd**2), order=order).epsilon <= epsilon:
            return sd
    raise CertificateError("no independent noise near the computed one could be verified.")


def _smallest_sd_of_long(priors: Sequence[Prior], secrets: Sequence[Any], epsilon: float, order: float) -> float:
    """As `_smallest_sd`, at most 0.1 % above the least one, by certificates alone."""
    n = priors[0].size

    def excess(log_sd: float) -> float:
        found = certify(list(priors), list(secrets), uniform(n, n * math.exp(2.0 * log_sd)), order=order).epsilon
        return math.log(found / epsilon) if 0.0 < found < math.inf else math.copysign(700.0, found - 1.0)

    low = high = math.log(max(float(one.radius) for one in secrets))
    while excess(high) > 0.0 and high < 100.0:
        low, high = high, high + 2.0
    while excess(low) < 0.0 and low > -100.0:
        low, high = low - 2.0, low
    if excess(high) > 0.0:
        raise CertificateError("no independent noise that meets the target could be verified.")
    root = root_scalar(excess, bracket=(low, high), method="brentq", xtol=2e-4).root
    for shade in (2.5e-4, 1e-3):
        if excess(root + shade) <= 0.0:
            return math.exp(root + shade)
    raise CertificateError("no independent noise near the computed one could be verified.")
