"""The private half of a release, checked again: the stored mechanism against what the report says of it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Protocol

import numpy as np

from jaxpriv.certificates.verb import Certificate
from jaxpriv.designs.certified import certify
from jaxpriv.designs.long.dispatch import structured_priors
from jaxpriv.designs.long.many import METHOD
from jaxpriv.errors import InputError
from jaxpriv.jobs.mechanism_file import MechanismFile, read_mechanism
from jaxpriv.jobs.noise import grid_exponent
from jaxpriv.jobs.odds import odds_record
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.protected_secret import protected_secret
from jaxpriv.jobs.release_file import ReleaseFile
from jaxpriv.jobs.reporting import AXES
from jaxpriv.jobs.stored import read_object
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.mechanisms.grid_release import total_variation
from jaxpriv.report.reading import record_from
from jaxpriv.report.record import FORMAT, VERSION, AxisRecord, OddsRecord, PriorRecord, Report, SecretRecord
from jaxpriv.report.verification import Check, Verification
from jaxpriv.secrets.secret import Secret
from jaxpriv.secrets.unsampled import UnsampledSecret
from jaxpriv.traces.instants import parse_instant
from jaxpriv.traces.projection import STRETCH


# Kernels and matrix products round differently on another machine, by far less than this; designs keep this distance
# from their target.
ROUNDING = 1e-9


class HasOdds(Protocol):
    """What a report says of odds."""

    @property
    def epsilon(self) -> float: ...

    @property
    def order(self) -> float: ...

    @property
    def odds(self) -> OddsRecord: ...


def check_private(private: Path, release: ReleaseFile, rows: int | None) -> Verification:
    """Check report.json and mechanism.npz against release.json and against each other.

    `rows` is the number of rows of the sanitised trace, if there is one. Raises `InputError` for files that cannot be
    read or are of another version.
    """
    report = record_from(Report, read_object(private / "report.json", FORMAT, VERSION), "report.json")
    stored = read_mechanism(private / "mechanism.npz")
    simulated = report.simulated or stored.simulated
    checks = [_same_release(report, stored, release, rows), _grid(report, stored, release)]
    if not checks[0].passed:
        return Verification(tuple(checks), simulated)
    certificates = _certificates(report, stored)
    epsilon = max(one.epsilon for one in certificates)
    checks += [
        _epsilon(report, certificates),
        odds_check(report),
        _cost(report, certificates, len(stored.time_us)),
    ]
    return Verification(tuple(checks), simulated, epsilon, report.order)


def _same_release(report: Report, stored: MechanismFile, release: ReleaseFile, rows: int | None) -> Check:
    points = release.points
    differ = [
        what
        for what, same in (
            ("the times", tuple(stored.time_us.tolist()) == release.time_us and report.points == len(release.time_us)),
            ("the number of rows", rows in (None, report.rows_written)),
            ("the grid", stored.grid_exponent == report.grid_exponent == points.exponent),
            ("the origin", report.origin == (release.plane.latitude, release.plane.longitude)),
            ("τ", report.tau == points.tau),
            ("whether it is simulated", report.simulated == stored.simulated == points.simulated),
            ("the resolution", report.resolution_m == stored.resolution_m),
            ("the coordinates", tuple(axis.name for axis in report.axes) == AXES),
            (
                "the number of secrets",
                all(len(axis.epsilons) == len(report.secrets) > 0 for axis in report.axes)
                and len(report.by_secret) == len(report.secrets),
            ),
            (
                "the number of priors",
                all(len(row) == len(axis.priors) > 0 for axis in report.axes for row in axis.epsilons),
            ),
        )
        if not same
    ]
    if differ:
        return Check("same release", False, f"report, mechanism and release.json disagree on {', '.join(differ)}")
    return Check("same release", True, "report, mechanism and release.json are of one release")


def _grid(report: Report, stored: MechanismFile, release: ReleaseFile) -> Check:
    floors = [float(one.floor_sd) for one in stored.mechanisms]
    wrong = []
    if [axis.floor_sd_m for axis in report.axes] != floors or report.floor_sd_m != min(floors):
        wrong.append("the floor is not that of the report")
    if not min(floors) > 0 or min(floors) < 2 * stored.resolution_m:
        wrong.append("the floor is below twice the resolution of the input")
    elif grid_exponent(min(floors)) != stored.grid_exponent or report.grid_m != 2.0**stored.grid_exponent:
        wrong.append("the grid is not the one that follows from the floor")
    elif release.points.tau is not None:
        exactly = sum(
            total_variation(np.asarray(one.factor), float(one.floor_sd), stored.grid_exponent)
            for one in stored.mechanisms
        )
        if release.points.tau < exactly:
            wrong.append("τ is smaller than that of this mechanism")
    if wrong:
        return Check("floor, grid and τ", False, "; ".join(wrong))
    return Check("floor, grid and τ", True, "they follow from the mechanism, and the floor is high enough")


def _certificates(report: Report, stored: MechanismFile) -> list[Certificate]:
    secrets = [stated_secret(one, stored.time_us, report.plane_radius_m) for one in report.secrets]
    seconds = (stored.time_us - stored.time_us[0]) / 1e6
    found: list[Certificate] = []
    for axis, mechanism in zip(report.axes, stored.mechanisms, strict=True):
        if found and axis.priors == report.axes[0].priors and _equal(mechanism, stored.mechanisms[0]):
            found.append(found[0])
            continue
        priors = [stated_prior(one).process_prior(seconds) for one in axis.priors]
        # As it was certified: with kernels taken exactly, or with the matrices that they round to.
        known = structured_priors(priors, 0) if axis.method == METHOD else None
        found.append(certify(known or priors, secrets, mechanism, order=report.order))
    return found


def stated_secret(record: SecretRecord, time_us: np.ndarray, radius: float) -> Secret | UnsampledSecret:
    """The secret that a report states, for a mechanism of the instants `time_us` (n,) and a radius in plane metres."""
    if record.together:
        return protected_secret([_fix(text, time_us) for text in record.together], 0.0, radius)
    if record.fix_time is not None:
        return protected_secret([_fix(record.fix_time, time_us)], 0.0, radius)
    return protected_secret([], (_instant(record.time, time_us) - int(time_us[0])) / 1e6, radius)


def _instant(text: str, time_us: np.ndarray) -> int:
    try:
        us = parse_instant(text).us
    except ValueError as problem:
        raise InputError(f"report.json: the time of a secret is {problem}") from None
    if not time_us[0] <= us <= time_us[-1]:
        raise InputError("report.json: the time of a secret is outside the trace")
    return us


def _fix(text: str, time_us: np.ndarray) -> int:
    us = _instant(text, time_us)
    position = int(np.searchsorted(time_us, us))
    if int(time_us[position]) != us:
        raise InputError("report.json: the fix of a secret is not a fix of the trace")
    return position


def stated_prior(record: PriorRecord) -> PriorChoice:
    """The prior that a report states."""
    return PriorChoice(
        record.kernel, record.lengthscale_s, record.sd_m, record.nugget_m, record.period_s, source=record.source
    )


def _equal(one: GaussianMechanism, other: GaussianMechanism) -> bool:
    return float(one.floor_sd) == float(other.floor_sd) and np.array_equal(one.factor, other.factor)


def _epsilon(report: Report, certificates: list[Certificate]) -> Check:
    pairs = [
        (said, found)
        for axis, certificate in zip(report.axes, certificates, strict=True)
        for said, found in _said_and_found(axis, certificate)
    ]
    epsilons = [certificate.epsilon for certificate in certificates]
    pairs += [
        (said.epsilon, max(float(one.epsilons[j].max()) for one in certificates))
        for j, said in enumerate(report.by_secret)
    ]
    pairs += [(report.epsilon, max(epsilons)), (report.epsilon_east, epsilons[0]), (report.epsilon_north, epsilons[1])]
    if not all(math.isfinite(found) for _, found in pairs):
        return Check("epsilon", False, "no finite loss could be verified for the stored mechanism")
    if any(found > said * (1 + ROUNDING) for said, found in pairs):
        return Check("epsilon", False, "the report says less than the mechanism gives away")
    if report.plane_radius_m < report.radius_m * STRETCH * (1 - 1e-12):
        return Check("epsilon", False, "it was computed for a smaller radius than the report says")
    return Check("epsilon", True, "the certificate was computed again, and no reported ε is below it")


def _said_and_found(axis: AxisRecord, certificate: Certificate) -> list[tuple[float, float]]:
    said = [value for row in axis.epsilons for value in row]
    return [
        *zip(said, certificate.epsilons.ravel().tolist(), strict=True),
        (axis.loss_per_m2, certificate.losses.max()),
    ]


def odds_check(report: HasOdds) -> Check:
    """Check that the odds a report promises are those of its ε."""
    said = report.odds
    found = odds_record(report.epsilon, report.order, said.delta)
    values = [(said.exact, found.exact), (said.theorem, found.theorem), (said.curve, found.curve)]
    factors = [(said.exact_factor, found.exact_factor), (said.theorem_factor, found.theorem_factor)]
    values += [(math.inf if a is None else a, math.inf if b is None else b) for a, b in factors]
    # They were rounded up by as much.
    if any(one < other * (1 - 1e-8) for one, other in values):
        return Check("odds", False, "the report promises smaller odds than its ε gives")
    return Check("odds", True, "the odds in the report are those of its ε")


def _cost(report: Report, certificates: list[Certificate], points: int) -> Check:
    found = math.sqrt(sum(one.cost for one in certificates) / points + report.grid_m**2 / 6)
    if not math.isclose(found, report.rms_noise_m, rel_tol=1e-9):
        return Check("noise", False, "the size of the noise is not what the report says")
    return Check("noise", True, "the size of the noise is what the report says")
