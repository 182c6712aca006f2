"""Everything that is said about one protected series, as plain values in the unit of its column."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from jaxpriv.report.record import OddsRecord, ReleasesRecord, SecretRecord


FORMAT, VERSION = "jaxpriv-series-report", 1


@dataclass(frozen=True)
class SeriesPrior:
    """One prior of the series: deviations in its unit, times in seconds. `lattice` tells whether its nugget is at least
    twice the resolution."""

    source: str
    label: str
    kernel: str
    lengthscale_s: float
    period_s: float | None
    sd: float
    nugget: float
    lattice: bool


@dataclass(frozen=True)
class SeriesSecret:
    """What is certified of one secret, in nats, and what an attacker can conclude, in the unit of the series.

    `epsilons` has an entry for each prior, all upper values; `epsilon` is the largest. Half-widths are of 68 %
    intervals, under the prior that leaves the smallest one after the release. `independent_epsilon` is that of
    independent noise of the same size.
    """

    secret: SecretRecord
    label: str
    epsilons: tuple[float, ...]
    epsilon: float
    odds_factor: float | None
    before: float
    after: float
    independent_epsilon: float | None


@dataclass(frozen=True)
class SeriesReport:
    """The record of one release of a series. All sizes are in the unit of the column, whatever it is.

    `radius` is a separation: the largest difference of two values that must stay hard to tell apart. The goal is the
    one of `epsilon_asked`, `budget_asked` and `uncertainty_asked` that is not None. `estimate` says whether anything of
    the series itself went into the priors; `tau` is None when simulated, `releases` where no record is kept.
    """

    column: str
    prior_source: str
    estimate: bool
    priors: tuple[SeriesPrior, ...]
    worst_prior: int
    simulated: bool
    tau: float | None
    releases: ReleasesRecord | None
    guarantee: str
    understood: tuple[str, ...]
    secrets: tuple[SeriesSecret, ...]
    radius: float
    order: float
    epsilon: float
    loss: float
    odds: OddsRecord
    epsilon_asked: float | None
    budget_asked: float | None
    uncertainty_asked: float | None
    noise: float
    largest_noise: float
    smallest_noise: float
    noise_lower_bound: float | None
    epsilon_lower_bound: float | None
    gap: float | None
    independent_noise: float | None
    independent_epsilon: float | None
    floor_sd: float
    grid: float
    grid_exponent: int
    decimals: int
    resolution: float
    points: int
    rows_read: int
    rows_written: int
    cleaning: tuple[str, ...]
    warnings: tuple[str, ...]
    not_claimed: tuple[str, ...]
    jaxpriv_version: str
    method: str
    effort: str = "normal"

    def to_json(self) -> str:
        """Write the record as JSON; a value that is not finite is an error here, not a NaN in the file."""
        content = {"format": FORMAT, "format_version": VERSION} | asdict(self)
        return json.dumps(content, indent=2, allow_nan=False)
