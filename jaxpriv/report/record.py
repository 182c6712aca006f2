"""Everything that is said about one protected trace, as plain values."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class PriorRecord:
    """The prior, and where it came from. Lengths in seconds, standard deviations in metres."""

    source: str
    kernel: str
    lengthscale_s: float
    period_s: float | None
    sd_m: float
    nugget_m: float


@dataclass(frozen=True)
class SecretRecord:
    """One protected time: as asked, and which fix stands for it (None: the place between two fixes)."""

    time: str
    fix_time: str | None
    fix_offset_s: float | None


@dataclass(frozen=True)
class OddsRecord:
    """How far an attacker's log-odds between two places move, except with probability `delta`.

    `exact` is the tail of the Gaussian log-odds in either direction; `theorem` the bound by Markov's inequality
    (Theorem 3.1 of Meehan and Chaudhuri, AISTATS 2021); `curve` the ε of (ε, δ)-indistinguishability in the sense of
    differential privacy. All in nats, rounded up; the factors are their exponentials (None beyond 1e300).
    """

    delta: float
    exact: float
    exact_factor: float | None
    theorem: float
    theorem_factor: float | None
    curve: float


@dataclass(frozen=True)
class IndependentRecord:
    """The comparison with independent noise at every point: its size at the same ε, its ε at the same size."""

    rms_noise_m: float | None
    epsilon: float | None
    exact_factor: float | None


@dataclass(frozen=True)
class Report:
    """The record of one release. Distances in metres, losses in nats; None where a number is not known.

    `epsilon` is the certified upper value, the larger of the two axes'. `radius_m` is a separation: the largest
    distance between two places that must stay hard to tell apart.
    """

    prior: PriorRecord
    secrets: tuple[SecretRecord, ...]
    simulated: bool
    radius_m: float
    plane_radius_m: float
    order: float
    epsilon: float
    epsilon_asked: float
    epsilon_east: float
    epsilon_north: float
    odds: OddsRecord
    prior_halfwidth_east_m: float
    prior_halfwidth_north_m: float
    posterior_halfwidth_east_m: float
    posterior_halfwidth_north_m: float
    rms_noise_m: float
    largest_noise_m: float
    smallest_noise_m: float
    rms_lower_bound_m: float | None
    gap: float | None
    independent: IndependentRecord
    floor_sd_m: float
    grid_m: float
    grid_exponent: int
    resolution_m: float
    origin: tuple[float, float]
    points: int
    rows_read: int
    rows_written: int
    cleaning: tuple[str, ...]
    warnings: tuple[str, ...]
    not_claimed: tuple[str, ...]
    jaxpriv_version: str

    def to_json(self) -> str:
        """Write the record as JSON; a value that is not finite is an error here, not a NaN in the file."""
        return json.dumps({"format": "jaxpriv-report", "format_version": 1} | asdict(self), indent=2, allow_nan=False)
