"""What a coupling mechanism still hides when the groups' distributions are known approximately only.

If λ̂_s is within a factor e^±ε_s of the true λ_s, every output law is within that factor of the target. Theorem of
Kawamoto and Murakami (arXiv:1907.05991), with the tight constants; proofs in docs/distribution.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxpriv.distribution.coupling import CouplingMechanism, check_groups, probabilities
from jaxpriv.errors import InputError


@dataclass(frozen=True)
class PairBound:
    """Bounds for the outputs of two groups, from ε₀ and ε₁: nats, and a probability for `total_variation`."""

    max_divergence: float
    kl: float
    total_variation: float
    published_kl: float | None


def pair_bounds(first: float, second: float | None = None) -> PairBound:
    """What knowledge within e^±ε₀ and e^±ε₁ implies: D_∞ ≤ ε₀ + ε₁, and the tight bounds of KL and total variation.

    KL ≤ (ε₀+ε₁)(m₀e^ε₀ − m₁e^−ε₀) + (1−m₀−m₁)e^−ε₀(ε₁−ε₀), m_i = 1/(1+e^ε_i); for equal ones 2ε(1 − e^−ε). The
    published bound, for equal ones, is 2ε e^ε. All are suprema over targets, attained or approached.

    Raises InputError for an ε that is negative or not a number.
    """
    second = first if second is None else second
    for value in (first, second):
        if not value >= 0.0:
            raise InputError(f"{value} is not a distance; expected a number of at least 0.")
    if math.isinf(first) or math.isinf(second):
        return PairBound(math.inf, math.inf, 1.0, math.inf if first == second else None)
    up = 1.0 + 32.0 * 2.0**-53
    if first == second:
        kl = -2.0 * first * math.expm1(-first)
        variation, published = -math.expm1(-first), 2.0 * first * math.exp(first)
    else:
        m0, m1 = 1.0 / (1.0 + math.exp(first)), 1.0 / (1.0 + math.exp(second))
        kl = (first + second) * (m0 * math.exp(first) - m1 * math.exp(-first))
        kl += (1.0 - m0 - m1) * math.exp(-first) * (second - first)
        # Both are within the larger ε.
        variation, published = -math.expm1(-max(first, second)), None
    return PairBound((first + second) * up, kl * up, min(variation * up, 1.0), published)


@dataclass(frozen=True)
class CouplingAudit:
    """What the outputs of a coupling mechanism reveal, claimed and actual.

    Attributes:
        knowledge: (groups,) the larger of D_∞(λ_s ‖ λ̂_s) and D_∞(λ̂_s ‖ λ_s); infinite where λ_s has inputs that λ̂_s
            lacks, or the reverse.
        factors: (groups, 2) a, b with a μ ≤ output law ≤ b μ, unseen inputs included where their rows draw from the
            target; finite then even if `knowledge` is not.
        claimed: the largest over pairs of groups of what the factors imply about D_∞, nats.
        claimed_variation: the same for total variation, from TV(λ_s, λ̂_s), whatever the factors are.
        actual: the largest D_∞ between two output laws, computed; `actual_variation` its total variation.
        losses: expected distance under the true distributions, in the unit of the distance.
        remarks: what is not covered.
    """

    knowledge: np.ndarray
    factors: np.ndarray
    claimed: float
    claimed_variation: float
    actual: float
    actual_variation: float
    losses: np.ndarray
    remarks: tuple[str, ...]


def audit_coupling(mechanism: CouplingMechanism, true: Any = None) -> CouplingAudit:
    """The levels of the mechanism for the `true` distributions, (groups, n); by default those it was made for.

    Raises InputError for bad distributions.
    """
    known = mechanism.known
    laws = known if true is None else check_groups(true, known.shape[1], len(known))
    outputs = mechanism.outputs(laws)
    missed = np.sum(np.where(mechanism.unseen, laws, 0.0), axis=1)
    knowledge = np.array([_distance(a, b) for a, b in zip(laws, known, strict=True)])
    factors = np.array([_factors(a, b) for a, b in zip(laws, known, strict=True)])
    remarks = []
    if np.any(missed > 0.0):
        if mechanism.kind != "entropic" and mechanism.unseen_rule == "target":
            factors = factors + missed[:, None]
        else:
            factors[missed > 0.0] = (0.0, math.inf)
            remarks.append("inputs that were not expected are moved to fixed places: no ratio of outputs is bounded.")
        remarks.append("a group has inputs that its known distribution lacks: the published theorem does not apply.")
    # The channel's own output law under λ̂ misses the target by rounding, or by the entropic iteration's error.
    aimed = mechanism.outputs()
    slack = max(_distance(one, mechanism.target) for one in aimed)
    claimed = variation = actual = actual_variation = 0.0
    apart = 0.5 * np.sum(np.abs(laws - known), axis=1) + 0.5 * np.max(np.sum(np.abs(aimed - mechanism.target), axis=1))
    for s in range(len(known)):
        for t in range(len(known)):
            if s != t:
                low = factors[t, 0]
                ratio = math.log(factors[s, 1] / low) if low > 0.0 and np.isfinite(factors[s, 1]) else math.inf
                claimed = max(claimed, ratio + 2.0 * slack)
                variation = max(variation, min(float(apart[s] + apart[t]), 1.0))
                actual = max(actual, _divergence(outputs[s], outputs[t]))
                actual_variation = max(actual_variation, 0.5 * float(np.sum(np.abs(outputs[s] - outputs[t]))))
    losses = np.array(
        [
            float(np.sum((law[:, None] * probabilities(one)) * mechanism.distance))
            for law, one in zip(laws, mechanism.channels, strict=True)
        ]
    )
    return CouplingAudit(knowledge, factors, claimed, variation, actual, actual_variation, losses, tuple(remarks))


def _divergence(first: np.ndarray, second: np.ndarray) -> float:
    has = first > 0.0
    if np.any(has & (second <= 0.0)):
        return math.inf
    # What the logarithms and sums of a few thousand products can lose.
    return float(np.max(np.log(first[has]) - np.log(second[has]))) + 2.0**-40


def _distance(first: np.ndarray, second: np.ndarray) -> float:
    return 0.0 if np.array_equal(first, second) else max(_divergence(first, second), _divergence(second, first))


def _factors(true: np.ndarray, known: np.ndarray) -> tuple[float, float]:
    has = known > 0.0
    ratios = true[has] / known[has]
    return float(np.min(ratios)) * (1.0 - 2.0**-50), float(np.max(ratios)) * (1.0 + 2.0**-50)
