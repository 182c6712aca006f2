"""Verified bounds of a mechanism's loss under every prior of a region, by branch and bound over boxes of parameters."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxpriv.certificates.verb import certify
from jaxpriv.designs.robust.enclosed_loss import estimated_ratio, verified_epsilons
from jaxpriv.designs.robust.families import Enclosed, Enclosure
from jaxpriv.designs.robust.region import Family, Region
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.secrets.collection import AnySecret
from jaxpriv.secrets.linear import LinearSecret
from jaxpriv.secrets.secret import Secret


@dataclass(frozen=True)
class Coverage:
    """What was verified of a mechanism: ε of each secret (nats), (secrets,), over `count` boxes or points."""

    epsilons: np.ndarray
    count: int
    whole: bool  # True: every prior of the region; False: the checked ones
    estimate: float  # of the largest ε/target; above the goal: too few boxes, and nothing was verified


@dataclass(frozen=True)
class _Box:
    family: int
    low: np.ndarray
    high: np.ndarray


def can_enclose(families: Sequence[Family], region: Region, secrets: Sequence[AnySecret]) -> bool:
    """Whether bounds between grid points can be proven: the families bound themselves, the secrets are released."""
    known = all(isinstance(one, (Secret, LinearSecret)) for one in secrets)
    return known and region.names is not None and all(isinstance(family, Enclosed) for family in families)


def cover(
    families: Sequence[Family],
    region: Region,
    secrets: Sequence[AnySecret],
    mechanism: GaussianMechanism,
    targets: np.ndarray,
    order: float,
    goal: float,
    max_boxes: int,
    *,
    always: bool,
) -> Coverage:
    """ε of every secret over the whole region, verified; boxes are split until the bound of ε/target is below `goal`
    or there are `max_boxes` of them (then only what is `always` wanted is verified).

    Which boxes are split is decided by estimates; what is reported is verified box by box. Called in double precision.
    """
    noise = np.asarray(mechanism.covariance, dtype=np.float64)
    counter = itertools.count()

    def rated(box: _Box) -> tuple[float, int, _Box]:
        ratio = estimated_ratio(_enclosure(families, region, box), secrets, noise, targets, order)
        return -ratio, next(counter), box

    heap = [rated(_Box(number, np.zeros(region.size), np.ones(region.size))) for number in range(len(families))]
    heapq.heapify(heap)
    while -heap[0][0] > goal and len(heap) < max_boxes:
        _, _, box = heapq.heappop(heap)
        pairs = [[rated(half) for half in _halves(box, axis)] for axis in range(region.size)]
        # Along the axis that helps the worse half most.
        for half in max(pairs, key=lambda pair: min(pair)[0]):
            heapq.heappush(heap, half)
    estimate = -heap[0][0]
    if estimate > goal and not always:
        return Coverage(np.full(len(secrets), math.inf), len(heap), True, estimate)
    epsilons = [verified_epsilons(_enclosure(families, region, box), secrets, mechanism, order) for _, _, box in heap]
    return Coverage(np.max(epsilons, axis=0), len(heap), True, estimate)


def check_points(
    families: Sequence[Family],
    region: Region,
    units: Sequence[tuple[int, np.ndarray]],
    secrets: Sequence[AnySecret],
    mechanism: GaussianMechanism,
    order: float,
) -> Coverage:
    """ε of every secret under the priors at the given points, each verified; nothing is claimed between them."""
    priors = [region.prior(families[number], unit) for number, unit in units]
    certificate = certify(priors, list(secrets), mechanism, order)
    return Coverage(np.max(certificate.epsilons, axis=1), len(units), False, certificate.epsilon)


def _halves(box: _Box, axis: int) -> tuple[_Box, _Box]:
    middle = 0.5 * (box.low[axis] + box.high[axis])
    high, low = box.high.copy(), box.low.copy()
    high[axis] = low[axis] = middle
    return _Box(box.family, box.low, high), _Box(box.family, low, box.high)


def _enclosure(families: Sequence[Family], region: Region, box: _Box) -> Enclosure:
    family = families[box.family]
    assert isinstance(family, Enclosed)
    return family.enclosure(region.named(box.low), region.named(box.high))
