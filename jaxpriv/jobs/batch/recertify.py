"""One released trace of a batch, checked again: the record against what is shared, the promise against the noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from jaxpriv.designs.certified import certify
from jaxpriv.errors import InfeasibleError, InputError
from jaxpriv.jobs.batch.part import rms_of
from jaxpriv.jobs.batch.placing import middle_secret
from jaxpriv.jobs.batch.record import AxisRecord, TraceRecord
from jaxpriv.jobs.batch.shared import DECIMALS, SharedTrace
from jaxpriv.jobs.noise import grid_exponent
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.recertify import ROUNDING
from jaxpriv.jobs.target import Target
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.mechanisms.grid_release import total_variation
from jaxpriv.secrets.secret import Secret
from jaxpriv.traces.projection import LocalPlane


# Half a unit of the last decimal, and what two versions of the projection may differ by (a tenth of a millimetre).
_DEGREES = 0.5 * 10.0**-DECIMALS + 1e-9

RECORD, POSITIONS, FLOOR, EPSILON, NOISE = "records", "positions", "floor, grid and τ", "epsilon", "noise"


def problems_of(
    record: TraceRecord,
    shared: SharedTrace,
    target: Target,
    given: PriorChoice | None,
    *,
    middle: bool,
    simulated: bool,
) -> Iterator[tuple[str, str]]:
    """Everything that disagrees but the certificate: the name of the check, and what is wrong.

    `given` is the prior that the options of the batch name, if they do, and `middle` says that they name no secret.
    """
    if record.points != len(shared.time_us):
        yield RECORD, "the record is of another number of points than is shared"
        return
    if given is not None and any([_numbers(one) for one in axis.priors] != [_numbers(given)] for axis in record.axes):
        yield RECORD, "the record states another prior than the options"
    if middle and [_fixes(one) for one in record.secrets] != [middle_secret(record.points, target).indices]:
        yield RECORD, "the record states another secret than the fix in the middle"
    if (record.tau is None) != simulated:
        yield RECORD, "the record and the options disagree on whether it is simulated"
    if not _on_grid(record, shared):
        yield POSITIONS, "a position is not on the grid of the release"
    if problem := _floor_problem(record, target):
        yield FLOOR, problem


def certified_problems(record: TraceRecord, seconds: np.ndarray, target: Target) -> tuple[float, list[tuple[str, str]]]:
    """Certify the stored noise anew under the stated priors, at `seconds` (n,) since the first instant.

    Returns the upper value of ε in nats, and what disagrees with it. The certificate is that of `jaxpriv.certify`, one
    mechanism at a time: it shares neither numbers nor formulas with the one of the batch's design.
    """
    found: list[tuple[float, float]] = []
    for axis in record.axes:
        if found and _same(axis, record.axes[0]):
            found.append(found[0])
            continue
        priors = [one.process_prior(seconds) for one in axis.priors]
        mechanism = GaussianMechanism(axis.factor, axis.floor_sd, target.resolution_m)
        certificate = certify(priors, list(record.secrets), mechanism, order=target.order)
        found.append((certificate.epsilon, certificate.cost))
    epsilon = max(one for one, _ in found)
    problems = []
    said = [axis.epsilon for axis in record.axes]
    pairs = [*zip((one for one, _ in found), said, strict=True), (max(said), record.epsilon)]
    if not math.isfinite(epsilon):
        problems.append((EPSILON, "no finite loss could be verified for the stored noise"))
    elif any(one > other * (1 + ROUNDING) for one, other in pairs):
        problems.append((EPSILON, "the record says less than the noise gives away"))
    elif target.epsilon is not None and record.epsilon > target.epsilon:
        problems.append((EPSILON, "it is above the epsilon that was asked for"))
    costs = [cost for _, cost in found]
    if not (
        all(math.isclose(cost, axis.cost, rel_tol=1e-9) for cost, axis in zip(costs, record.axes, strict=True))
        and math.isclose(rms_of(costs, record.points, record.exponent), record.rms_m, rel_tol=1e-9)
    ):
        problems.append((NOISE, "the size of the noise is not what the record says"))
    elif target.budget_m is not None and record.rms_m > target.budget_m * (1 + ROUNDING):
        problems.append((NOISE, "the noise is larger than the budget"))
    return epsilon, problems


def _numbers(one: PriorChoice) -> tuple[Any, ...]:
    return (one.kernel, one.lengthscale_s, one.sd_m, one.nugget_m, one.period_s)


def _fixes(secret: Any) -> tuple[int, ...] | None:
    return secret.indices if isinstance(secret, Secret) else None


def _same(one: AxisRecord, other: AxisRecord) -> bool:
    return (
        one.floor_sd == other.floor_sd
        and one.priors == other.priors
        and np.array_equal(np.asarray(one.factor), np.asarray(other.factor))
    )


def _on_grid(record: TraceRecord, shared: SharedTrace) -> bool:
    """Whether each shared position is what a whole multiple of the step is in degrees."""
    try:
        plane = LocalPlane(*record.origin)
        step = 2.0**record.exponent
        units = np.rint(plane.to_metres(shared.latitude, shared.longitude) / step)
        latitude, longitude = plane.to_degrees(units * step)
    except (InputError, OverflowError, ArithmeticError, RuntimeError):  # of pyproj: a place that it cannot project
        return False
    turned = np.abs((longitude - shared.longitude + 180) % 360 - 180)
    return bool(np.all(np.abs(latitude - shared.latitude) <= _DEGREES) and np.all(turned <= _DEGREES))


def _floor_problem(record: TraceRecord, target: Target) -> str | None:
    floors = [axis.floor_sd for axis in record.axes]
    if min(floors) < 2 * target.resolution_m:
        return "the floor is below twice the resolution of the input"
    try:
        exponent = grid_exponent(min(floors))
    except InfeasibleError:
        exponent = None
    if exponent != record.exponent:
        return "the grid is not the one that follows from the floor"
    if record.tau is not None:
        distances = [total_variation(axis.factor, axis.floor_sd, record.exponent) for axis in record.axes]
        if record.tau < sum(distances):
            return "τ is smaller than that of the stored noise"
    return None
