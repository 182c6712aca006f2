"""The numbers of the report: what the noise promises, what it costs, and what other noise would."""

from __future__ import annotations

import importlib.metadata
import math
from typing import TYPE_CHECKING

import numpy as np

from jaxpriv.jobs.odds import odds_record, tail_epsilon
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.secret_choice import SecretTime
from jaxpriv.jobs.target import Target
from jaxpriv.report.claims import not_claimed
from jaxpriv.report.record import IndependentRecord, Report
from jaxpriv.report.rounding import finite_or_none
from jaxpriv.traces.projection import STRETCH, LocalPlane
from jaxpriv.traces.trace import Trace


if TYPE_CHECKING:
    from jaxpriv.jobs.axis import Axis
    from jaxpriv.jobs.noise import ReleasedPoints


def make_report(
    trace: Trace,
    secret: SecretTime,
    target: Target,
    prior: PriorChoice,
    plane: LocalPlane,
    east: Axis,
    north: Axis,
    released: ReleasedPoints,
) -> Report:
    """Evaluate everything the report says, from the certified designs and the public facts of the trace."""
    n, grid = trace.n_points, 2.0**released.exponent
    rounding = grid**2 / 6  # Δ²/12 for each coordinate, exact to 1e-8 for a grid at most the floor
    axes = (east, north)
    distinct = (east,) if north is east else axes
    epsilon = max(float(axis.design.epsilon) for axis in axes)
    cost, lower = sum(float(a.design.cost) for a in axes), sum(float(a.design.lower_bound) for a in axes)
    left_east = east.posterior_sd()
    left_north = left_east if north is east else north.posterior_sd()
    spread = east.noise_variance() + north.noise_variance()
    return Report(
        prior=prior.record(),
        secrets=(secret.record,),
        simulated=released.simulated,
        radius_m=target.radius_m,
        plane_radius_m=target.radius_m * STRETCH,
        order=target.order,
        epsilon=epsilon,
        epsilon_asked=target.epsilon,
        epsilon_east=float(east.design.epsilon),
        epsilon_north=float(north.design.epsilon),
        odds=odds_record(epsilon, target.order, target.delta),
        prior_halfwidth_east_m=east.prior_sd,
        prior_halfwidth_north_m=north.prior_sd,
        posterior_halfwidth_east_m=left_east,
        posterior_halfwidth_north_m=left_north,
        rms_noise_m=math.sqrt(cost / n + rounding),
        largest_noise_m=math.sqrt(float(np.max(spread)) + rounding),
        smallest_noise_m=math.sqrt(float(np.min(spread)) + rounding),
        rms_lower_bound_m=math.sqrt(lower / n + rounding) if lower > 0 else None,
        gap=finite_or_none((cost - lower) / cost) if lower > 0 else None,
        independent=_independent(target, epsilon, distinct, cost / n / 2 + rounding / 2),
        floor_sd_m=min(float(a.design.mechanism.floor_sd) for a in axes),
        grid_m=grid,
        grid_exponent=released.exponent,
        resolution_m=target.resolution_m,
        origin=(plane.latitude, plane.longitude),
        points=n,
        rows_read=trace.cleaning.rows_read,
        rows_written=trace.n_rows,
        cleaning=tuple(trace.cleaning.sentences()),
        warnings=tuple(_warnings(trace, secret, target, prior, epsilon)),
        not_claimed=not_claimed(released.simulated),
        jaxpriv_version=importlib.metadata.version("jaxpriv"),
    )


def _independent(target: Target, epsilon: float, axes: tuple[Axis, ...], variance: float) -> IndependentRecord:
    """Compare with independent noise: at this ε, and at this variance of each coordinate (m²)."""
    per_loss = target.order / 2 * (target.radius_m * STRETCH) ** 2
    needed = max(axis.independent_variance(epsilon / per_loss) for axis in axes)
    same_size = per_loss * max(axis.independent_loss(variance) for axis in axes)
    if not math.isfinite(same_size):
        return IndependentRecord(finite_or_none(math.sqrt(2 * needed)), None, None)
    odds = tail_epsilon(math.sqrt(2 * same_size / target.order), target.delta)
    factor = math.exp(odds) if odds < 690 else None
    return IndependentRecord(finite_or_none(math.sqrt(2 * needed)), same_size, factor)


def _warnings(trace: Trace, secret: SecretTime, target: Target, prior: PriorChoice, epsilon: float) -> list[str]:
    found = []
    if trace.n_points == 1:
        found.append("The trace has a single point: there is nothing it could be correlated with.")
    elif np.ptp(trace.latitude) == 0 or np.ptp(trace.longitude) == 0:
        found.append("A coordinate never changes in the file; it is protected like any other.")
    if prior.nugget_m < 2 * target.resolution_m:
        found.append(
            f"The nugget of the prior ({prior.nugget_m:g} m) is below twice the resolution of the input "
            f"({target.resolution_m:g} m): positions on a lattice can tell more than the promise says. "
            f"Use a nugget of at least {2 * target.resolution_m:g} m."
        )
    if secret.position is None:
        found.append("No fix lies within one median step of the secret time; the place between the fixes is protected.")
    if epsilon < target.epsilon / 2:
        found.append(
            "Under this prior the noise floor alone protects this time: the fixes are taken to tell little about it. "
            "If places stay alike for longer than the length scale says, the promise says little, too."
        )
    if trace.cleaning.dropped > trace.cleaning.rows_read / 2:
        found.append("More than half of the rows were dropped as unusable; check the file.")
    return found
