"""The numbers of the report: what the noise promises, what it costs, and what other noise would."""

from __future__ import annotations

import importlib.metadata
import math
from typing import TYPE_CHECKING

import numpy as np

from jaxpriv.jobs.extent import extent_warnings
from jaxpriv.jobs.odds import odds_record, tail_epsilon
from jaxpriv.jobs.prior_sources import AxisPriors, PriorSource
from jaxpriv.jobs.secret_sources import ChosenSecret, ChosenSecrets
from jaxpriv.jobs.target import Target
from jaxpriv.report.claims import guarantee, not_claimed
from jaxpriv.report.record import (
    AxisRecord,
    IndependentRecord,
    ReleasesRecord,
    Report,
    SecretNumbers,
    SecretRecord,
)
from jaxpriv.report.rounding import finite_or_none, significant
from jaxpriv.traces.oddities import find_oddities
from jaxpriv.traces.projection import STRETCH, LocalPlane
from jaxpriv.traces.trace import Trace


if TYPE_CHECKING:
    from jaxpriv.jobs.axis import Axis
    from jaxpriv.jobs.designing import Noise
    from jaxpriv.jobs.noise import ReleasedPoints

AXES = ("east", "north")


def make_report(
    trace: Trace,
    secrets: ChosenSecrets,
    target: Target,
    source: PriorSource,
    plane: LocalPlane,
    noise: Noise,
    released: ReleasedPoints,
    releases: ReleasesRecord | None,
) -> Report:
    """Evaluate everything the report says, from the certified designs and the public facts of the trace.

    `releases` is what the private record says about earlier releases.
    """
    n, grid = trace.n_points, 2.0**released.exponent
    rounding = grid**2 / 6  # Δ²/12 for each coordinate, exact to 1e-8 for a grid at most the floor
    axes = (noise.east, noise.north)
    records = tuple(
        _axis_record(name, axis, members) for name, axis, members in zip(AXES, axes, source.axes, strict=True)
    )
    epsilons = [max(max(row) for row in record.epsilons) for record in records]
    epsilon = max(epsilons)
    by_secret = _by_secret(secrets, noise, target)
    spread = noise.east.noise_variance() + noise.north.noise_variance()
    bounded = target.budget_m is None and noise.lower_bound > 0
    worse = records[int(np.argmax(epsilons))]
    return Report(
        prior=worse.priors[worse.worst_prior],
        secrets=tuple(_secret_record(secret) for secret in secrets.secrets),
        axes=records,
        simulated=released.simulated,
        tau=released.tau,
        releases=releases,
        guarantee=guarantee(released.tau),
        radius_m=target.radius_m,
        plane_radius_m=target.radius_m * STRETCH,
        order=target.order,
        epsilon=epsilon,
        epsilon_asked=target.epsilon,
        epsilon_east=epsilons[0],
        epsilon_north=epsilons[1],
        odds=odds_record(epsilon, target.order, target.delta),
        prior_halfwidth_east_m=min(one.prior_halfwidth_m[0] for one in by_secret),
        prior_halfwidth_north_m=min(one.prior_halfwidth_m[1] for one in by_secret),
        posterior_halfwidth_east_m=min(one.posterior_halfwidth_m[0] for one in by_secret),
        posterior_halfwidth_north_m=min(one.posterior_halfwidth_m[1] for one in by_secret),
        rms_noise_m=math.sqrt(noise.cost / n + rounding),
        largest_noise_m=math.sqrt(float(np.max(spread)) + rounding),
        smallest_noise_m=math.sqrt(float(np.min(spread)) + rounding),
        rms_lower_bound_m=math.sqrt(noise.lower_bound / n + rounding) if bounded else None,
        gap=finite_or_none(noise.gap) if noise.lower_bound > 0 else None,
        independent=_independent(noise, target),
        floor_sd_m=min(record.floor_sd_m for record in records),
        grid_m=grid,
        grid_exponent=released.exponent,
        resolution_m=target.resolution_m,
        origin=(plane.latitude, plane.longitude),
        points=n,
        rows_read=trace.cleaning.rows_read,
        rows_written=trace.n_rows,
        cleaning=tuple(trace.cleaning.sentences()),
        warnings=(
            *_warnings(trace, secrets, target, source, noise, epsilon, releases),
            *extent_warnings(trace, plane),
        ),
        not_claimed=not_claimed(released.simulated, secrets.every),
        jaxpriv_version=importlib.metadata.version("jaxpriv"),
        estimate=source.estimate,
        understood=secrets.understood,
        by_secret=by_secret,
        budget_asked_m=target.budget_m,
        uncertainty_asked_m=target.uncertainty_m,
        epsilon_lower_bound=noise.lower_bound if target.budget_m is not None and noise.lower_bound > 0 else None,
        effort=target.effort,
        odd=tuple(find_oddities(None, trace).sentences()),
    )


def _secret_record(secret: ChosenSecret) -> SecretRecord:
    first = secret.times[0].record
    if len(secret.times) == 1:
        return first
    together = tuple(one.record.fix_time or one.record.time for one in secret.times)
    return SecretRecord(first.time, first.fix_time, first.fix_offset_s, together)


def _axis_record(name: str, axis: Axis, members: AxisPriors) -> AxisRecord:
    certificate, stats = axis.design.certificate, axis.design.stats
    steps = stats.get("steps")
    return AxisRecord(
        name,
        tuple(prior.record() for prior in members.choices),
        tuple(tuple(float(value) for value in row) for row in certificate.epsilons),
        float(np.max(certificate.losses)),
        float(axis.design.mechanism.floor_sd),
        members.labels,
        axis.worst,
        members.lattice,
        str(stats["method"]),
        None if steps is None else int(steps),
        axis.design.result.value,
    )


def _by_secret(secrets: ChosenSecrets, noise: Noise, target: Target) -> tuple[SecretNumbers, ...]:
    axes = (noise.east, noise.north)
    found = []
    known = [axis.least_known() for axis in axes]
    alone = noise.comparison.epsilons or (None,) * len(secrets.secrets)
    for j, secret in enumerate(secrets.secrets):
        epsilon = max(float(np.max(axis.design.certificate.epsilons[j])) for axis in axes)
        before = [float(axis.before_m[j, worst[j]]) for axis, worst in zip(axes, known, strict=True)]
        after = [float(axis.after_m[j, worst[j]]) for axis, worst in zip(axes, known, strict=True)]
        odds = odds_record(epsilon, target.order, target.delta).exact_factor
        found.append(SecretNumbers(secret.label, epsilon, odds, (before[0], before[1]), (after[0], after[1]), alone[j]))
    return tuple(found)


def _independent(noise: Noise, target: Target) -> IndependentRecord:
    """The comparison with independent noise, with what its ε means for odds."""
    found = noise.comparison
    if found.epsilon is None:
        return IndependentRecord(found.rms_m, None, None)
    odds = tail_epsilon(math.sqrt(2 * found.epsilon / target.order), target.delta)
    return IndependentRecord(found.rms_m, found.epsilon, math.exp(odds) if odds < 690 else None)


def _warnings(
    trace: Trace,
    secrets: ChosenSecrets,
    target: Target,
    source: PriorSource,
    noise: Noise,
    epsilon: float,
    releases: ReleasesRecord | None,
) -> list[str]:
    found = _earlier_releases(releases)
    if trace.n_points == 1:
        found.append("The trace has a single point: there is nothing it could be correlated with.")
    elif np.ptp(trace.latitude) == 0 or np.ptp(trace.longitude) == 0:
        found.append("A coordinate never changes in the file; it is protected like any other.")
    if not any(claims for members in source.axes for claims in members.lattice):
        nugget = min(prior.nugget_m for members in source.axes for prior in members.choices)
        found.append(
            f"The nugget of the prior ({nugget:g} m) is below twice the resolution of the input "
            f"({target.resolution_m:g} m): positions on a lattice can tell more than the promise says. "
            f"Use a nugget of at least {2 * target.resolution_m:g} m."
        )
    found += _spread(target, noise)
    found += source.findings
    found += secrets.warnings
    between = sum(not secret.positions for secret in secrets.secrets)
    if between == 1 and len(secrets.secrets) == 1:
        found.append("No fix lies within one median step of the secret time; the place between the fixes is protected.")
    elif between:
        found.append(
            f"No fix lies within one median step of {between} of the secret times; the places between the fixes are "
            "protected."
        )
    if target.epsilon is not None and epsilon < target.epsilon / 2:
        found.append(
            "Under this prior the noise floor alone protects this time: the fixes are taken to tell little about it. "
            "If places stay alike for longer than the length scale says, the promise says little, too."
        )
    if trace.cleaning.dropped > trace.cleaning.rows_read / 2:
        found.append("More than half of the rows were dropped as unusable; check the file.")
    if noise.comparison.skipped:
        found.append(noise.comparison.skipped)
    return found


def _spread(target: Target, noise: Noise) -> list[str]:
    """A radius beyond what the prior leaves open is a promise about places that it rules out."""
    narrow = min(float(np.min(axis.before_m)) for axis in (noise.east, noise.north))
    if target.radius_m <= 4.0 * narrow:
        return []
    return [
        f"The radius of {target.radius_m:g} m is more than four times the ±{significant(narrow, 2)} m to which a prior "
        "knows a coordinate before the release: places that far apart are told apart without it. A smaller radius "
        "takes less noise."
    ]


def _earlier_releases(releases: ReleasesRecord | None) -> list[str]:
    found = []
    if releases is not None and releases.number > 1:
        found.append(
            f"This is release number {releases.number} of the same positions and times. Losses of several releases do "
            "not add: together they can tell far more than the sum, and no number is claimed for them together. The "
            "numbers here hold for this release alone, for somebody who sees no other."
        )
    if releases is not None and releases.overlapping:
        found.append(
            f"{releases.overlapping} earlier release(s) on record have fixes at the same times as this trace. If they "
            "are of the same person, or of somebody in company, the releases combine, and no number is claimed for "
            "them together."
        )
    return found
