"""What several releases about one person give away together."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction

import numpy as np
from scipy.linalg import block_diag

from jaxpriv.certificates.verb import Certificate, certify, host_arrays
from jaxpriv.errors import InputError
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.precision import double_precision
from jaxpriv.priors.gaussian import GaussianPrior
from jaxpriv.priors.protocol import Prior
from jaxpriv.secrets.collection import AnySecret, as_secrets
from jaxpriv.secrets.external import ExternalSecret
from jaxpriv.secrets.secret import EveryPoint


def certify_releases(
    prior: Prior,
    secrets: AnySecret | EveryPoint | Sequence[AnySecret | EveryPoint],
    mechanisms: Sequence[GaussianMechanism],
    order: float = 2.0,
    *,
    draws: Sequence[Hashable] | None = None,
    positions: Sequence[Iterable[int]] | None = None,
) -> Certificate:
    """Certify all releases about one person as the single observation that they are.

    An attacker who sees Z_i = A_i X + N_i with independent noises, A_i selecting the fixes of X that release i
    publishes, sees the stacked vector, whose precision gain is evaluated as a whole. With A and R stacked likewise, C
    the covariance of X given the secret and H the regression of X on it, that gain is (AH)ᵀ(ACAᵀ + R)⁻¹(AH). Losses of
    releases do not add: what hides the secret in one may be published by another, and two noises of low rank can
    cancel altogether. Derived here; see docs/sharp_edges.md.

    Args:
        prior: of all fixes that any of the releases publishes, and of those of the secrets.
        mechanisms: one for each release. Their choice must not depend on earlier outputs.
        draws: a name for the noise drawn in each release. The same name means the same published trace seen again,
            which tells nothing new and counts once; by default all draws differ.
        positions: for each release, which coordinates of the prior it publishes, in its order; by default every
            release publishes all of them. Releases may overlap, or be of different times altogether.

    Returns:
        The certificate of the stacked release: `epsilon` for every secret, and as `cost` the sum of the costs.

    Raises:
        InputError: no release, sizes that differ, positions that are none, or one draw with two different mechanisms.
    """
    names = list(range(len(mechanisms))) if draws is None else list(draws)
    if not mechanisms or len(names) != len(mechanisms):
        raise InputError(f"{len(mechanisms)} mechanisms and {len(names)} draws; expected as many, and at least one.")
    seen_at = _positions(positions, mechanisms, prior.size)
    kept: dict[Hashable, tuple[GaussianMechanism, np.ndarray]] = {}
    for name, mechanism, at in zip(names, mechanisms, seen_at, strict=True):
        known, before = kept.setdefault(name, (mechanism, at))
        if not np.array_equal(before, at) or (known is not mechanism and not _equal(known, mechanism)):
            raise InputError("one draw is named for two different mechanisms: noise must never be used again.")
    rows = np.concatenate([at for _, at in kept.values()])
    with double_precision():
        listed = as_secrets(secrets, prior)
        covariance, joints = host_arrays(prior, listed)
        stacked = GaussianPrior(covariance[np.ix_(rows, rows)])
        seen = [
            ExternalSecret(cross[rows], variance, secret.radius, secret.n_times)
            for secret, (cross, variance) in zip(listed, joints, strict=True)
        ]
        return certify(stacked, seen, _stacked([one for one, _ in kept.values()]), order)


def _positions(
    positions: Sequence[Iterable[int]] | None, mechanisms: Sequence[GaussianMechanism], size: int
) -> list[np.ndarray]:
    """Where each release looks, checked; all of the prior unless said."""
    if positions is None:
        wrong = next((one.size for one in mechanisms if one.size != size), None)
        if wrong is not None:
            raise InputError(
                f"a mechanism is for {wrong} coordinates, the prior for {size}; pass positions, which of them each "
                "release publishes."
            )
        return [np.arange(size)] * len(mechanisms)
    if len(positions) != len(mechanisms):
        raise InputError(f"{len(mechanisms)} mechanisms and {len(positions)} lists of positions; expected as many.")
    found = []
    for number, (listed, mechanism) in enumerate(zip(positions, mechanisms, strict=True)):
        at = np.asarray(listed if isinstance(listed, np.ndarray) else list(listed))
        if at.shape != (mechanism.size,) or at.dtype.kind not in "iu":
            raise InputError(
                f"release {number}: its mechanism is for {mechanism.size} coordinates; expected as many positions, "
                "whole numbers."
            )
        if at.min() < 0 or at.max() >= size or len(np.unique(at)) < len(at):
            raise InputError(f"release {number}: positions must be distinct, from 0 to {size - 1}.")
        found.append(at)
    return found


def _equal(first: GaussianMechanism, second: GaussianMechanism) -> bool:
    return np.array_equal(first.factor, second.factor) and float(first.floor_sd) == float(second.floor_sd)


def _stacked(mechanisms: list[GaussianMechanism]) -> GaussianMechanism:
    """Independent noises side by side. The floors become columns, but for what is common to all of them."""
    common = min(float(one.floor_sd) for one in mechanisms)
    blocks = []
    for one in mechanisms:
        # The exact difference of the squares, its root rounded down: less noise can only raise the loss.
        spare = Fraction(float(one.floor_sd)) ** 2 - Fraction(common) ** 2
        extra = math.sqrt(float(spare)) * (1.0 - 2.0**-50)
        floor = extra * np.eye(one.size) if extra > 1e-140 else np.zeros((one.size, 0))
        blocks.append(np.concatenate([np.asarray(one.factor, dtype=np.float64), floor], axis=1))
    return GaussianMechanism(np.asarray(block_diag(*blocks)), common)
