"""What all releases about one person tell together of every secret on record, certified.

Releases whose fixes are correlated under a prior are stacked and certified as one observation. Releases far away in
time add what is bounded in docs/ledger.md, tiny but counted.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from scipy.sparse.csgraph import connected_components

from jaxpriv.certificates.scalars import renyi_epsilon
from jaxpriv.designs.releases import certify_releases
from jaxpriv.errors import InfeasibleError
from jaxpriv.jobs.ledger_far import correlation, with_far_releases
from jaxpriv.jobs.ledger_records import LedgerRelease, LedgerSecret, prior_numbers
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.protected_secret import protected_secret


# Two fixes with a smaller prior correlation are taken apart, and what this neglects is bounded and added.
CORRELATED = 1e-20
# Fixes of all releases that hang together; a certificate then takes minutes.
MAX_STACKED = 6000


@dataclass(frozen=True)
class SecretTogether:
    """A secret on record: the last release that named it, its ε by that alone, and by all releases together (nats)."""

    label: str
    release: int
    alone: float
    together: float


@dataclass(frozen=True)
class Joint:
    """Every secret on record in order of release and time; `certified` holds certificates that were not known yet."""

    secrets: tuple[SecretTogether, ...]
    certified: dict[bytes, bytes] = field(repr=False)

    @property
    def epsilon(self) -> float:
        """The largest ε of all releases together, in nats."""
        return max((one.together for one in self.secrets), default=0.0)


class Certificates(Protocol):
    """Certificates that are known already, by the digest of their inputs; a dictionary is one."""

    def get(self, inputs: bytes, /) -> bytes | None: ...


_Key = tuple[tuple[int, ...], bool, float, float, bytes]


def joint_losses(releases: Sequence[LedgerRelease], known: Certificates | None = None) -> Joint:
    """Certify all releases of one person together, never as a sum, in whatever order they are given.

    Each secret is evaluated under every prior of the releases that named it, and the largest value counts. Fixes of
    different recordings at one instant are taken once as the same recorded position and once as two with errors of
    their own, and the larger loss counts. `known` are certificates of earlier calls (`Joint.certified`).

    Raises `InfeasibleError` when more fixes hang together than can be certified.
    """
    releases = sorted(releases, key=lambda one: (int(one.time_us[0]), one.draw))
    known = {} if known is None else known
    new: dict[bytes, bytes] = {}
    gaps = _gaps(releases)
    found: dict[_Key, float] = {}
    for axis in (0, 1):
        for prior, members in _by_prior(releases, axis):
            for inside in _hanging_together(gaps, prior, releases):
                named = _named([releases[i] for i in inside if i in members])
                if not named:
                    continue
                losses = _losses(prior, [releases[i] for i in inside], axis, named, known, new)
                outside = [i for i in range(len(releases)) if i not in inside]
                if outside:
                    apart_s = float(np.min(gaps[np.ix_(inside, outside)])) / 1e6
                    near, far = ([releases[i] for i in which] for which in (inside, outside))
                    losses = [
                        with_far_releases(loss, prior, one, apart_s, near, far, axis)
                        for loss, one in zip(losses, named.values(), strict=True)
                    ]
                for (key, secret), loss in zip(named.items(), losses, strict=True):
                    epsilon = renyi_epsilon(loss, len(secret.time_us), secret.radius_m, key[3])
                    found[key] = max(found.get(key, 0.0), epsilon)
    return Joint(tuple(_described(releases, found)), new)


def _key(release: LedgerRelease, secret: LedgerSecret) -> _Key:
    """What makes two secrets the same; a place between fixes is no matter of recordings."""
    return secret.time_us, secret.between, secret.radius_m, release.order, b"" if secret.between else release.content


def _described(releases: Sequence[LedgerRelease], found: Mapping[_Key, float]) -> Iterator[SecretTogether]:
    last: dict[_Key, tuple[LedgerRelease, LedgerSecret]] = {}
    for release in sorted(releases, key=lambda one: one.number or math.inf):
        last |= {_key(release, secret): (release, secret) for secret in release.secrets}
    for key, (release, secret) in last.items():
        yield SecretTogether(secret.label, release.number, secret.alone, found[key])


def _by_prior(releases: Sequence[LedgerRelease], axis: int) -> list[tuple[PriorChoice, set[int]]]:
    """Every prior of one coordinate, and which releases have it."""
    found: dict[tuple, tuple[PriorChoice, set[int]]] = {}
    for i, release in enumerate(releases):
        for prior in release.priors[axis]:
            found.setdefault(prior_numbers(prior), (prior, set()))[1].add(i)
    return list(found.values())


def _named(releases: Sequence[LedgerRelease]) -> dict[_Key, LedgerSecret]:
    return {_key(release, secret): secret for release in releases for secret in release.secrets}


def _gaps(releases: Sequence[LedgerRelease]) -> np.ndarray:
    """Least distance in time (µs) between what two releases publish or protect, (releases, releases)."""
    points = [
        np.union1d(one.time_us, np.array([us for secret in one.secrets for us in secret.time_us], dtype=np.int64))
        for one in releases
    ]
    gaps = np.zeros((len(points), len(points)))
    for i, first in enumerate(points):
        for j, second in enumerate(points[:i]):
            after = np.searchsorted(first, second)
            right = np.abs(first[np.minimum(after, len(first) - 1)] - second)
            left = np.abs(first[np.maximum(after - 1, 0)] - second)
            gaps[i, j] = gaps[j, i] = float(min(right.min(), left.min()))
    return gaps


def _hanging_together(gaps: np.ndarray, prior: PriorChoice, releases: Sequence[LedgerRelease]) -> list[list[int]]:
    """Positions of the releases that are correlated under a prior, directly or through others."""
    linked = np.array([[correlation(prior, gap / 1e6) > CORRELATED for gap in row] for row in gaps])
    if prior.nugget_m == 0 and any(len(one.time_us) > 1 for release in releases for one in release.secrets):
        linked[:] = True  # without a nugget nothing bounds the inverse of the covariance of several fixes
    count, labels = connected_components(linked, directed=False)
    return [np.flatnonzero(labels == label).tolist() for label in range(count)]


def _losses(
    prior: PriorChoice,
    releases: Sequence[LedgerRelease],
    axis: int,
    named: Mapping[_Key, LedgerSecret],
    known: Certificates,
    new: dict[bytes, bytes],
) -> list[float]:
    """Certified largest gain in precision (1/m²) of each secret from releases that are stacked."""
    stacked = sum(len(one.time_us) for one in releases)
    if stacked > MAX_STACKED:
        raise InfeasibleError(
            f"{len(releases)} releases of this person with {stacked} fixes hang together under the prior, and what "
            f"they tell together can be certified for at most {MAX_STACKED} fixes. Answer from an earlier release, or "
            "thin the trace before it is released"
        )
    shared = [np.zeros(len(one.time_us), dtype=np.int64) for one in releases]
    contents = {content: i for i, content in enumerate(sorted({one.content for one in releases}))}
    apart = [np.full(len(one.time_us), contents[one.content]) for one in releases]
    ways = [shared]
    if len(_coordinates(releases, apart)) > len(_coordinates(releases, shared)):
        ways.append(apart)
    best = np.zeros(len(named))
    for way in ways:
        best = np.maximum(best, _certified(prior, releases, axis, named, contents, way, known, new))
    return best.tolist()


def _coordinates(releases: Sequence[LedgerRelease], recording: Sequence[np.ndarray]) -> np.ndarray:
    """The fixes of all releases, (coordinates, 2): instant and recording, each once and in order."""
    pairs = [np.stack([one.time_us, which], axis=1) for one, which in zip(releases, recording, strict=True)]
    return np.unique(np.concatenate(pairs), axis=0)


def _certified(
    prior: PriorChoice,
    releases: Sequence[LedgerRelease],
    axis: int,
    named: Mapping[_Key, LedgerSecret],
    contents: Mapping[bytes, int],
    recording: Sequence[np.ndarray],
    known: Certificates,
    new: dict[bytes, bytes],
) -> np.ndarray:
    coordinates = _coordinates(releases, recording)
    index = {(us, which): i for i, (us, which) in enumerate(coordinates.tolist())}
    origin = int(coordinates[0, 0])
    positions = [
        np.array([index[pair] for pair in zip(one.time_us.tolist(), which.tolist(), strict=True)])
        for one, which in zip(releases, recording, strict=True)
    ]
    one_recording = all(not np.any(which) for which in recording)
    secrets = []
    for key, secret in named.items():
        which = 0 if one_recording or secret.between else contents[key[4]]
        at = [] if secret.between else [index[us, which] for us in secret.time_us]
        secrets.append((at, (secret.time_us[0] - origin) / 1e6, secret.radius_m))
    seconds = (coordinates[:, 0] - origin) / 1e6
    mechanisms = [one.mechanisms[axis] for one in releases]
    digest = hashlib.sha256(repr((importlib.metadata.version("jaxpriv"), prior_numbers(prior), secrets)).encode())
    for array in (seconds, *positions, *(np.asarray(one.factor, dtype=np.float64) for one in mechanisms)):
        digest.update(repr(array.shape).encode() + np.ascontiguousarray(array).tobytes())
    digest.update(repr([float(one.floor_sd) for one in mechanisms]).encode())
    key = digest.digest()
    stored = new.get(key) or known.get(key)
    if stored is None:
        certificate = certify_releases(
            prior.process_prior(seconds),
            [protected_secret(at, when, radius) for at, when, radius in secrets],
            mechanisms,
            positions=positions,
        )
        stored = new[key] = certificate.losses[:, 0].astype("<f8").tobytes()
    return np.frombuffer(stored, dtype="<f8")
