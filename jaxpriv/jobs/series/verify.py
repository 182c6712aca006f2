"""Check a folder of a protected series: what is shared against itself, and the promise against the mechanism."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from jaxpriv.certificates.verb import Certificate
from jaxpriv.designs.certified import certify
from jaxpriv.designs.long.dispatch import structured_priors
from jaxpriv.designs.long.many import METHOD
from jaxpriv.errors import InputError
from jaxpriv.jobs.mechanism_file import MechanismFile, read_mechanism
from jaxpriv.jobs.noise import grid_exponent
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.recertify import ROUNDING, odds_check, stated_secret
from jaxpriv.jobs.series.file import SeriesFile, decimals_for, read_series_release
from jaxpriv.jobs.series.job import AXES
from jaxpriv.jobs.series.record import FORMAT, VERSION, SeriesReport
from jaxpriv.jobs.stored import read_object
from jaxpriv.mechanisms.grid_release import total_variation
from jaxpriv.report.reading import record_from
from jaxpriv.report.verification import Check
from jaxpriv.traces.series_format import read_series


def shared_checks(table: Path, release: Path) -> tuple[SeriesFile, int, list[Check]]:
    """Check the sanitised table against release.json: the latter, the table's rows, and what was found.

    Raises `InputError` for files that cannot be read.
    """
    shared = read_series_release(release)
    series = read_series(table, shared.style.value_name)
    if tuple(series.time_us.tolist()) != shared.time_us:
        times = Check("times", False, "the times of the table are not those of release.json")
        return shared, series.n_rows, [times]
    plain = table.read_bytes() == shared.table(series.point_of_row).encode("utf-8")
    return (
        shared,
        series.n_rows,
        [
            Check("times", True, "the times of the table are those of release.json"),
            Check(
                "values",
                plain,
                "the table holds times and the released integers, as values with their decimals, and nothing else"
                if plain
                else "the table is not what release.json gives: a value, a column or the form differs",
            ),
        ],
    )


def private_checks(private: Path, shared: SeriesFile, rows: int) -> tuple[list[Check], float | None, float | None]:
    """Check report.json and mechanism.npz against what is shared and against each other.

    Returns the checks, and the ε that was certified again with its order (None when that was not tried).
    """
    report = record_from(SeriesReport, read_object(private / "report.json", FORMAT, VERSION), "report.json")
    stored = read_mechanism(private / "mechanism.npz", AXES)
    checks = [_same_release(report, stored, shared, rows), _grid(report, stored, shared)]
    if not checks[0].passed:
        return checks, None, None
    seconds = (stored.time_us - stored.time_us[0]) / 1e6
    secrets = [stated_secret(one.secret, stored.time_us, report.radius) for one in report.secrets]
    priors = [
        PriorChoice(one.kernel, one.lengthscale_s, one.sd, one.nugget, one.period_s).process_prior(seconds)
        for one in report.priors
    ]
    known = structured_priors(priors, 0) if report.method.split(":")[0].split(" ")[0] == METHOD else None
    certificate = certify(known or priors, secrets, stored.mechanisms[0], order=report.order)
    size = math.sqrt(certificate.cost / report.points + report.grid**2 / 12)
    checks += [
        _epsilon(report, certificate),
        odds_check(report),
        Check("noise", True, "the size of the noise is what the report says")
        if math.isclose(size, report.noise, rel_tol=1e-9)
        else Check("noise", False, "the size of the noise is not what the report says"),
    ]
    return checks, certificate.epsilon, report.order


def _same_release(report: SeriesReport, stored: MechanismFile, shared: SeriesFile, rows: int) -> Check:
    values = shared.values
    if not (report.secrets and report.priors):
        raise InputError("report.json: there is no secret or no prior in it")
    differ = [
        what
        for what, same in (
            ("the times", tuple(stored.time_us.tolist()) == shared.time_us and report.points == len(shared.time_us)),
            ("the number of rows", rows == report.rows_written),
            ("the grid", stored.grid_exponent == report.grid_exponent == values.exponent),
            ("τ", report.tau == values.tau),
            ("whether it is simulated", report.simulated == stored.simulated == values.simulated),
            ("the resolution", report.resolution == stored.resolution_m),
            ("the decimals", report.decimals == shared.decimals == decimals_for(report.resolution)),
            ("the number of priors", all(len(one.epsilons) == len(report.priors) for one in report.secrets)),
        )
        if not same
    ]
    if differ:
        return Check("same release", False, f"report, mechanism and release.json disagree on {', '.join(differ)}")
    return Check("same release", True, "report, mechanism and release.json are of one release")


def _grid(report: SeriesReport, stored: MechanismFile, shared: SeriesFile) -> Check:
    (mechanism,) = stored.mechanisms
    floor = float(mechanism.floor_sd)
    wrong = []
    if report.floor_sd != floor:
        wrong.append("the floor is not that of the report")
    if not floor > 0 or floor < 2 * stored.resolution_m:
        wrong.append("the floor is below twice the resolution of the input")
    elif grid_exponent(floor) != stored.grid_exponent or report.grid != 2.0**stored.grid_exponent:
        wrong.append("the grid is not the one that follows from the floor")
    elif shared.values.tau is not None and shared.values.tau < total_variation(
        np.asarray(mechanism.factor), floor, stored.grid_exponent
    ):
        wrong.append("τ is smaller than that of this mechanism")
    if wrong:
        return Check("floor, grid and τ", False, "; ".join(wrong))
    return Check("floor, grid and τ", True, "they follow from the mechanism, and the floor is high enough")


def _epsilon(report: SeriesReport, certificate: Certificate) -> Check:
    pairs = [(report.epsilon, certificate.epsilon), (report.loss, float(certificate.losses.max()))]
    for said, row in zip(report.secrets, certificate.epsilons, strict=True):
        pairs += [*zip(said.epsilons, row.tolist(), strict=True), (said.epsilon, float(row.max()))]
    if not all(math.isfinite(found) for _, found in pairs):
        return Check("epsilon", False, "no finite loss could be verified for the stored mechanism")
    if any(found > said * (1 + ROUNDING) for said, found in pairs):
        return Check("epsilon", False, "the report says less than the mechanism gives away")
    return Check("epsilon", True, "the certificate was computed again, and no reported ε is below it")
