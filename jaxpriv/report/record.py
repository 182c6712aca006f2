"""Everything that is said about one protected trace, as plain values."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

from jaxpriv.report.reading import LATER


FORMAT, VERSION = "jaxpriv-report", 1


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
    """One protected time: as asked, and which fix stands for it (None: the place between two fixes).

    `together` are the times of all fixes of a secret that joins several, in order; empty for a single time.
    """

    time: str
    fix_time: str | None
    fix_offset_s: float | None
    together: tuple[str, ...] = ()


@dataclass(frozen=True)
class SecretNumbers:
    """What is certified of one secret, and what an attacker can conclude; east and north where there are two values.

    `epsilon` is the largest over axes and priors, in nats, `odds_factor` the exact factor on odds at the report's δ.
    Half-widths are of 68 % intervals, under the prior of the set that leaves the smallest one after the release.
    `independent_epsilon` is that of independent noise of the same error.
    """

    label: str
    epsilon: float
    odds_factor: float | None
    prior_halfwidth_m: tuple[float, float]
    posterior_halfwidth_m: tuple[float, float]
    independent_epsilon: float | None


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
class AxisRecord:
    """One coordinate: its priors, and the certified values of its noise for each secret under each prior.

    `epsilons` has a row for each secret and an entry in it for each prior, in nats; `loss_per_m2` is the largest
    precision gain behind them, in 1/m². All are upper values. `labels` name the priors, `worst_prior` is the position
    of the one of the largest ε, and `lattice` says for each whether its nugget allows the claim about positions on a
    lattice. `method`, `steps` and `outcome` say how the noise was found.
    """

    name: str
    priors: tuple[PriorRecord, ...]
    epsilons: tuple[tuple[float, ...], ...]
    loss_per_m2: float
    floor_sd_m: float
    labels: tuple[str, ...] = ()
    worst_prior: int = 0
    lattice: tuple[bool, ...] = ()
    method: str = ""
    steps: int | None = None
    outcome: str = ""


@dataclass(frozen=True)
class ReleasesRecord:
    """What the private record says: this is release `number` of the same content.

    `overlapping` counts earlier releases of other content that have a run of fix times in common with it.
    """

    number: int
    overlapping: int


@dataclass(frozen=True)
class TogetherRecord:
    """A secret in a ledger: the last release that named it, and its ε by that alone and by all together, in nats.

    `odds_factor` is what ε by all together means for odds at the report's order and δ, for secrets of the report's own
    release; None for others, beyond 1e300, and in reports written before it was said.
    """

    label: str
    release: int
    alone: float
    together: float
    odds_factor: float | None = field(default=None, metadata=LATER)


@dataclass(frozen=True)
class LedgerRecord:
    """What the ledger says: this is release `number` of a person, one of `counted` that count.

    `epsilon` is the certified ε of all of them together, the largest over the `secrets` on record, and `limit` what it
    may be (None: no limit). `again` is True for an earlier release that was written once more.
    """

    number: int
    counted: int
    limit: float | None
    epsilon: float
    secrets: tuple[TogetherRecord, ...]
    again: bool = False


@dataclass(frozen=True)
class Report:
    """The record of one release. Distances in metres, losses in nats; None where a number is not known.

    `prior` is the worst one of the coordinate with the larger ε, and `estimate` says whether anything of the trace
    itself went into the priors. The goal is the one of `epsilon_asked`, `budget_asked_m` and `uncertainty_asked_m` that
    is not None. Half-widths are the smallest over the secrets. `gap` is of the variance, for a budget of ε.

    `epsilon` is the certified upper value, the larger of the two axes'. `radius_m` is a separation: the largest
    distance between two places that must stay hard to tell apart. `tau` is the total variation distance of the
    published integers from the ideal release (None when simulated), `releases` None where no record is kept, and
    `guarantee` the sentence that says what is certified. `odd` says what looks odd in the file and was left as it is.
    `unit` is that of everything said here to be in metres; "m" for places. `ledger` is None without one. These three
    joined the format later: a file without them is read as one with nothing odd, in metres, without a ledger.
    """

    prior: PriorRecord
    secrets: tuple[SecretRecord, ...]
    axes: tuple[AxisRecord, ...]
    simulated: bool
    tau: float | None
    releases: ReleasesRecord | None
    guarantee: str
    radius_m: float
    plane_radius_m: float
    order: float
    epsilon: float
    epsilon_asked: float | None
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
    estimate: bool = False
    understood: tuple[str, ...] = ()
    by_secret: tuple[SecretNumbers, ...] = ()
    budget_asked_m: float | None = None
    uncertainty_asked_m: float | None = None
    epsilon_lower_bound: float | None = None
    effort: str = "normal"
    odd: tuple[str, ...] = field(default=(), metadata=LATER)
    unit: str = field(default="m", metadata=LATER)
    ledger: LedgerRecord | None = field(default=None, metadata=LATER)

    def to_json(self) -> str:
        """Write the record as JSON; a value that is not finite is an error here, not a NaN in the file."""
        content = {"format": FORMAT, "format_version": VERSION} | asdict(self)
        return json.dumps(content, indent=2, allow_nan=False)
