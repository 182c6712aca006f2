"""The numbers of a series' report: what the noise promises, what it costs, and what independent noise would."""

from __future__ import annotations

import importlib.metadata
import math
from dataclasses import dataclass

import numpy as np

from jaxpriv.jobs.axis import Axis
from jaxpriv.jobs.independent import Comparison
from jaxpriv.jobs.odds import odds_record
from jaxpriv.jobs.prior_sources import AxisPriors
from jaxpriv.jobs.secret_sources import ChosenSecret, ChosenSecrets
from jaxpriv.jobs.series_file import ReleasedValues, decimals_for
from jaxpriv.jobs.series_record import SeriesPrior, SeriesReport, SeriesSecret
from jaxpriv.jobs.target import Target
from jaxpriv.report.claims import guarantee
from jaxpriv.report.record import ReleasesRecord, SecretRecord
from jaxpriv.report.rounding import finite_or_none, significant
from jaxpriv.traces.series import Series


_NOT_CLAIMED = (
    "Times are published in clear, and so are their gaps: the promise is about values, given the times.",
    "Values farther apart than the radius: odds between them can change more, with the square of their difference.",
    "Facts outside the prior: another sensor, a bill, the weather or a timetable can tell more than the odds above.",
    "An attacker whose prior differs: a smoother or longer-ranging one can undo part of the noise.",
    "Several protected times jointly: each is protected by itself, not all of them together. Averages over many times "
    "are among such facts.",
    "Repeated releases: a second release of the same series, or of one that goes with it, combines with the first.",
)
_SOME = (
    "Other times: values far in time from the protected ones are published almost as they were recorded.",
    "That these times are sensitive: the noise is stronger around them, and the released series shows where in time.",
)
_ANYTHING = "Anything, for this file: it is simulated output and not private."


@dataclass(frozen=True)
class SeriesNoise:
    """The design of a series and the comparison with independent noise.

    `lower_bound` and `gap` are of what was minimised: the total variance, or for a budget ε.
    """

    axis: Axis
    cost: float
    lower_bound: float
    gap: float
    grid_exponent: int
    comparison: Comparison

    @property
    def rounding(self) -> float:
        """The variance that the grid adds: Δ²/12, exact to 1e-8 for a grid at most the floor."""
        return 4.0**self.grid_exponent / 12

    @property
    def size(self) -> float:
        """How far a value is moved, root mean square over the series, grid included."""
        return math.sqrt(self.cost / self.axis.size + self.rounding)


@dataclass(frozen=True)
class PlannedSeries:
    """What was understood of a series, and the noise for it: all of the job before anything is drawn."""

    column: str
    secrets: ChosenSecrets
    priors: AxisPriors
    source: str
    estimate: bool
    findings: tuple[str, ...]
    noise: SeriesNoise


def make_series_report(
    series: Series, target: Target, made: PlannedSeries, released: ReleasedValues, releases: ReleasesRecord | None
) -> SeriesReport:
    """Evaluate everything the report says, from the certified design and the public facts of the series."""
    noise, axis = made.noise, made.noise.axis
    certificate, stats = axis.design.certificate, axis.design.stats
    epsilon = float(np.max(certificate.epsilons))
    spread = axis.noise_variance()
    steps = stats.get("steps")
    return SeriesReport(
        column=made.column,
        prior_source=made.source,
        estimate=made.estimate,
        priors=tuple(
            SeriesPrior(one.source, label, one.kernel, one.lengthscale_s, one.period_s, one.sd_m, one.nugget_m, claims)
            for one, label, claims in zip(made.priors.choices, made.priors.labels, made.priors.lattice, strict=True)
        ),
        worst_prior=axis.worst,
        simulated=released.simulated,
        tau=released.tau,
        releases=releases,
        guarantee=guarantee(released.tau).replace("law of the trace", "law of the series"),
        understood=made.secrets.understood,
        secrets=_secrets(made, target),
        radius=target.radius_m,
        order=target.order,
        epsilon=epsilon,
        loss=float(np.max(certificate.losses)),
        odds=odds_record(epsilon, target.order, target.delta),
        epsilon_asked=target.epsilon,
        budget_asked=target.budget_m,
        uncertainty_asked=target.uncertainty_m,
        noise=noise.size,
        largest_noise=math.sqrt(float(np.max(spread)) + noise.rounding),
        smallest_noise=math.sqrt(float(np.min(spread)) + noise.rounding),
        noise_lower_bound=(
            math.sqrt(noise.lower_bound / axis.size + noise.rounding)
            if target.budget_m is None and noise.lower_bound > 0
            else None
        ),
        epsilon_lower_bound=noise.lower_bound if target.budget_m is not None and noise.lower_bound > 0 else None,
        gap=finite_or_none(noise.gap) if noise.lower_bound > 0 else None,
        independent_noise=noise.comparison.rms_m,
        independent_epsilon=noise.comparison.epsilon,
        floor_sd=float(axis.design.mechanism.floor_sd),
        grid=2.0**released.exponent,
        grid_exponent=released.exponent,
        decimals=decimals_for(target.resolution_m),
        resolution=target.resolution_m,
        points=series.n_points,
        rows_read=series.cleaning.rows_read,
        rows_written=series.n_rows,
        cleaning=tuple(series.cleaning.sentences()),
        warnings=tuple(_warnings(series, target, made, epsilon, releases)),
        not_claimed=(
            *((_ANYTHING,) if released.simulated else ()),
            *_NOT_CLAIMED[:1],
            *(() if made.secrets.every else _SOME),
            *_NOT_CLAIMED[1:],
        ),
        jaxpriv_version=importlib.metadata.version("jaxpriv"),
        method=f"{stats['method']}{'' if steps is None else f' in {int(steps)} steps'}: {axis.design.result.value}",
        effort=target.effort,
    )


def _secrets(made: PlannedSeries, target: Target) -> tuple[SeriesSecret, ...]:
    axis = made.noise.axis
    known = axis.least_known()
    alone = made.noise.comparison.epsilons or (None,) * len(made.secrets.secrets)
    found = []
    for j, secret in enumerate(made.secrets.secrets):
        epsilons = tuple(float(value) for value in axis.design.certificate.epsilons[j])
        worst = max(epsilons)
        found.append(
            SeriesSecret(
                _record(secret),
                secret.label.replace("the fix", "the value", 1).replace("fixes", "values"),
                epsilons,
                worst,
                odds_record(worst, target.order, target.delta).exact_factor,
                float(axis.before_m[j, known[j]]),
                float(axis.after_m[j, known[j]]),
                alone[j],
            )
        )
    return tuple(found)


def _record(secret: ChosenSecret) -> SecretRecord:
    first = secret.times[0].record
    if len(secret.times) == 1:
        return first
    together = tuple(one.record.fix_time or one.record.time for one in secret.times)
    return SecretRecord(first.time, first.fix_time, first.fix_offset_s, together)


def _warnings(
    series: Series, target: Target, made: PlannedSeries, epsilon: float, releases: ReleasesRecord | None
) -> list[str]:
    found = []
    if releases is not None and releases.number > 1:
        found.append(
            f"This is release number {releases.number} of the same values and times. Losses of several releases do not "
            "add: together they can tell far more than the sum, and no number is claimed for them together."
        )
    if releases is not None and releases.overlapping:
        found.append(
            f"{releases.overlapping} earlier release(s) on record have the same times. If they are of the same thing, "
            "such as another column of this file, they combine, and no number is claimed for them together."
        )
    if series.n_points == 1:
        found.append("The series has a single time: there is nothing its value could be correlated with.")
    elif np.ptp(series.rows) == 0:
        found.append("The value never changes in the file; it is protected like any other.")
    if not any(made.priors.lattice):
        nugget = min(one.nugget_m for one in made.priors.choices)
        found.append(
            f"The nugget of the prior ({nugget:g}) is below twice the resolution of the input "
            f"({target.resolution_m:g}): values on a lattice can tell more than the promise says. Use a nugget of at "
            f"least {2 * target.resolution_m:g}."
        )
    narrow = float(np.min(made.noise.axis.before_m))
    if target.radius_m > 4.0 * narrow:
        found.append(
            f"The radius of {target.radius_m:g} is more than four times the ±{significant(narrow, 2)} to which a prior "
            "knows the value before the release: values that far apart are told apart without it."
        )
    found += made.findings
    found += made.secrets.warnings
    if target.epsilon is not None and epsilon < target.epsilon / 2:
        found.append(
            "Under this prior the noise floor alone protects these times: the other values are taken to tell little "
            "about them. If values stay alike for longer than the length scale says, the promise says little, too."
        )
    if made.noise.comparison.skipped:
        found.append(made.noise.comparison.skipped)
    return found
