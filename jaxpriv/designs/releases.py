"""What several releases of one trace give away together."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction

import numpy as np

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
) -> Certificate:
    """Certify all releases of one trace as the single observation that they are.

    An attacker who sees Z_i = X + N_i with independent noises sees the stacked vector, whose precision gain is
    evaluated as a whole. Losses of releases do not add: what hides the secret in one may be published by another, and
    two noises of low rank can cancel altogether. Derived here; see docs/sharp_edges.md.

    Args:
        mechanisms: one for each release. Their choice must not depend on earlier outputs.
        draws: a name for the noise drawn in each release. The same name means the same published trace seen again,
            which tells nothing new and counts once; by default all draws differ.

    Returns:
        The certificate of the stacked release: `epsilon` for every secret, and as `cost` the sum of the costs.

    Raises:
        InputError: no release, sizes that differ, or one draw with two different mechanisms.
    """
    names = list(range(len(mechanisms))) if draws is None else list(draws)
    if not mechanisms or len(names) != len(mechanisms):
        raise InputError(f"{len(mechanisms)} mechanisms and {len(names)} draws; expected as many, and at least one.")
    kept: dict[Hashable, GaussianMechanism] = {}
    for name, mechanism in zip(names, mechanisms, strict=True):
        if mechanism.size != prior.size:
            raise InputError(f"a mechanism is for {mechanism.size} coordinates, the prior for {prior.size}.")
        known = kept.setdefault(name, mechanism)
        if known is not mechanism and not _equal(known, mechanism):
            raise InputError("one draw is named for two different mechanisms: noise must never be used again.")
    with double_precision():
        listed = as_secrets(secrets, prior)
        covariance, joints = host_arrays(prior, listed)
        count = len(kept)
        stacked = GaussianPrior(np.tile(covariance, (count, count)))
        seen = [
            ExternalSecret(np.tile(cross, (count, 1)), variance, secret.radius, secret.n_times)
            for secret, (cross, variance) in zip(listed, joints, strict=True)
        ]
        return certify(stacked, seen, _stacked(list(kept.values())), order)


def _equal(first: GaussianMechanism, second: GaussianMechanism) -> bool:
    return np.array_equal(first.factor, second.factor) and float(first.floor_sd) == float(second.floor_sd)


def _stacked(mechanisms: list[GaussianMechanism]) -> GaussianMechanism:
    """Independent noises side by side. The floors become columns, but for what is common to all of them."""
    size, common = mechanisms[0].size, min(float(one.floor_sd) for one in mechanisms)
    blocks = []
    for one in mechanisms:
        # The exact difference of the squares, its root rounded down: less noise can only raise the loss.
        spare = Fraction(float(one.floor_sd)) ** 2 - Fraction(common) ** 2
        extra = math.sqrt(float(spare)) * (1.0 - 2.0**-50)
        floor = extra * np.eye(size) if extra > 0.0 else np.zeros((size, 0))
        blocks.append(np.concatenate([np.asarray(one.factor, dtype=np.float64), floor], axis=1))
    factor = np.zeros((size * len(blocks), sum(block.shape[1] for block in blocks)))
    column = 0
    for i, block in enumerate(blocks):
        factor[i * size : (i + 1) * size, column : column + block.shape[1]] = block
        column += block.shape[1]
    return GaussianMechanism(factor, common)
