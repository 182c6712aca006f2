"""The whole job for a series of a sensor: from a column of a table to a sanitised table and its report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import jax
import numpy as np

from jaxpriv.errors import InfeasibleError, InputError
from jaxpriv.jobs.axis import Axis
from jaxpriv.jobs.designing import design_for
from jaxpriv.jobs.independent import compare
from jaxpriv.jobs.long_traces import check_long
from jaxpriv.jobs.noise import grid_exponent
from jaxpriv.jobs.output import check_output, output_folder, write_private
from jaxpriv.jobs.private_record import PrivateRecord
from jaxpriv.jobs.requests import PriorRequest, SecretRequest
from jaxpriv.jobs.series.file import ReleasedValues, SeriesFile, decimals_for
from jaxpriv.jobs.series.page import series_html
from jaxpriv.jobs.series.priors import find_series_priors
from jaxpriv.jobs.series.record import SeriesReport
from jaxpriv.jobs.series.report import PlannedSeries, SeriesNoise, make_series_report
from jaxpriv.jobs.series.text import series_text
from jaxpriv.jobs.target import Target
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.mechanisms.grid_release import release
from jaxpriv.precision import double_precision
from jaxpriv.report.record import ReleasesRecord
from jaxpriv.report.rounding import significant
from jaxpriv.secrets.collection import as_secrets
from jaxpriv.traces.contents import ReadOptions
from jaxpriv.traces.series import Series
from jaxpriv.traces.series_format import read_series


AXES = ("value",)
Progress = Callable[[str], None]


@dataclass(frozen=True)
class ProtectedSeries:
    """What the job made: the report, the plan, the released values, and the page."""

    report: SeriesReport
    made: PlannedSeries
    released: ReleasedValues
    page: str = field(repr=False)


def plan_series(
    series: Series,
    column: str,
    secrets: SecretRequest,
    target: Target,
    prior: PriorRequest,
    reading: ReadOptions | None = None,
    progress: Progress = lambda step: None,
) -> PlannedSeries:
    """Find the secrets and priors of a series and design the noise for them; nothing is drawn.

    The target's distances are in the unit of the column (`Target.unit` is ""). Raises `InputError`, `InfeasibleError`
    and `CertificateError` as `protect` does.
    """
    if target.unit:
        raise InputError("a target in metres is for positions; a series has the unit of its column")
    chosen = secrets.on(series)
    if series.step > target.resolution_m * (1 + 1e-6):
        raise InputError(
            "--resolution: the values of the column lie on a coarser lattice than that; declare the step to which the "
            "sensor rounds (jaxpriv inspect FILE --series COLUMN says what it is)"
        )
    check_long(series.n_points, chosen, target, prior)
    progress("Finding the priors")
    priors, source, estimate, findings = find_series_priors(
        series, prior, target, column, reading or ReadOptions(), progress
    )
    progress("Designing the noise")
    members = priors.priors(series.seconds)
    wanted = chosen.on_axis(target.radius_m)
    listed = as_secrets(wanted, members[0])
    made = design_for([members], wanted, listed, target)
    axis = Axis.of(made.axes[0], members, listed)
    exponent = grid_exponent(float(axis.design.mechanism.floor_sd))
    variance = made.cost / axis.size + 4.0**exponent / 12
    comparison = compare([members], listed, made.epsilon, variance, target.order)
    comparison = replace(comparison, rms_m=_one_axis(comparison.rms_m))
    noise = SeriesNoise(axis, made.cost, made.lower_bound, made.gap, exponent, comparison)
    return PlannedSeries(column, chosen, priors, source, estimate, findings, noise)


def _one_axis(rms: float | None) -> float | None:
    """The comparison counts two coordinates; a series has one."""
    return None if rms is None else rms / 2**0.5


def protect_series(
    series: Series,
    target: Target,
    made: PlannedSeries,
    *,
    simulate_seed: int | None = None,
    releases: ReleasesRecord | None = None,
) -> ProtectedSeries:
    """Draw a release of a planned series, and report on it. Every call is another release (not with a seed)."""
    mechanism = made.noise.axis.design.mechanism
    if simulate_seed is None:
        released = _draw(mechanism, series.values, target.resolution_m, made.noise.grid_exponent)
    else:
        released = _simulate(mechanism, series.values, made.noise.grid_exponent, simulate_seed)
    report = make_series_report(series, target, made, released, releases)
    return ProtectedSeries(report, made, released, series_html(series, made, released, report))


def protect_series_file(
    path: Path,
    column: str,
    out: Path,
    secrets: SecretRequest,
    target: Target,
    prior: PriorRequest,
    *,
    reading: ReadOptions | None = None,
    simulate_seed: int | None = None,
    force: bool = False,
    again: bool = False,
    progress: Progress = lambda step: None,
) -> ProtectedSeries:
    """Read one column of a table, protect it, and write the folder `out` whole or not at all.

    `out/share` holds series.csv (times and the protected column, nothing else) and release.json, `out/private` the
    report and the mechanism. A release enters the private record of this user; values that are on record are refused
    unless `again` is set.
    """
    check_output(out, force)
    progress("Reading the series")
    series = read_series(path, column, reading)
    record = entry = releases = None
    if simulate_seed is None:
        record = PrivateRecord.open()
        entry = record.entry(series.on_record(), out)
        last, releases = record.earlier(entry, replaced=out)
        if last is not None and not again:
            raise InputError(
                f"the same values and times are on record as released ({last.recorded}, to {last.folder}). Two "
                "releases combine and can tell far more than both promises added: share the first one instead. To "
                "release them once more all the same, pass --again"
            )
        entry = replace(entry, number=releases.number)
    made = plan_series(series, column, secrets, target, prior, reading, progress)
    progress("Drawing the release")
    done = protect_series(series, target, made, simulate_seed=simulate_seed, releases=releases)
    progress("Writing")
    kept = None
    try:
        with output_folder(out, force) as folder:
            _write(folder, series, target, done)
            if record is not None and entry is not None:
                write_private(folder / "private" / "record.json", entry.text())
                # Last before the folder gets its name: what is published is on record.
                kept = record.keep(entry)
    except InputError:
        if kept is not None:  # nothing was published
            kept.unlink(missing_ok=True)
        raise
    return done


def dry_run_series(
    path: Path,
    column: str,
    out: Path,
    secrets: SecretRequest,
    target: Target,
    prior: PriorRequest,
    *,
    reading: ReadOptions | None = None,
    force: bool = False,
    progress: Progress = lambda step: None,
) -> str:
    """Say what was understood and how large the noise would be; nothing is drawn, written or recorded."""
    check_output(out, force)
    series = read_series(path, column, reading)
    made = plan_series(series, column, secrets, target, prior, reading, progress)
    lines = [
        f"Prior: {made.source}.",
        "",
        f"{series.n_points} times; all sizes are in the unit of the column {column}.",
        *series.cleaning.sentences(),
        "",
        made.secrets.describe().rstrip("\n"),
        "",
        f"{len(made.priors.labels)} prior{'s' if len(made.priors.labels) > 1 else ''}:",
        *(f"  - {label}" for label in made.priors.labels),
        *(f"Note: {text}" for text in made.findings),
        "",
        f"Values would be moved by {significant(made.noise.size, 3, 'up')} (root mean square, grid included), with "
        f"ε = {significant(made.noise.axis.design.epsilon, 3, 'up')} at order {target.order:g}, certified; relative "
        f"gap {significant(made.noise.gap, 2, 'up')}. Nothing was drawn, written or recorded.",
    ]
    return "\n".join(lines) + "\n"


def _draw(mechanism: GaussianMechanism, values: np.ndarray, resolution: float, exponent: int) -> ReleasedValues:
    drawn = release(
        values, np.asarray(mechanism.factor), float(mechanism.floor_sd), resolution=resolution, exponent=exponent
    )
    return ReleasedValues(tuple(drawn.integers.tolist()), exponent, drawn.tau)


def _simulate(mechanism: GaussianMechanism, values: np.ndarray, exponent: int, seed: int) -> ReleasedValues:
    with double_precision():
        noisy = np.asarray(mechanism.simulate(jax.random.key(seed), values).values, dtype=np.float64)
    units = np.floor(np.ldexp(noisy, -exponent) + 0.5)
    if not np.all(np.abs(units) < 2.0**53):
        raise InfeasibleError("the noise is too large for the output grid; ask for less: a larger epsilon or radius")
    return ReleasedValues(tuple(int(value) for value in units), exponent, None)


def _write(folder: Path, series: Series, target: Target, done: ProtectedSeries) -> None:
    from jaxpriv.jobs.mechanism_file import MechanismFile

    mark = ".SIMULATED" if done.released.simulated else ""
    shared = SeriesFile(series.style, decimals_for(target.resolution_m), tuple(series.time_us.tolist()), done.released)
    with (folder / "share" / f"series{mark}.csv").open("w", encoding="utf-8", newline="") as file:
        file.write(shared.table(series.point_of_row))
    (folder / "share" / f"release{mark}.json").write_text(shared.text(), encoding="utf-8")
    write_private(folder / "private" / "report.json", done.report.to_json() + "\n")
    write_private(folder / "private" / "report.txt", series_text(done.report))
    write_private(folder / "private" / "report.html", done.page)
    MechanismFile(
        (done.made.noise.axis.design.mechanism,),
        series.time_us,
        done.released.exponent,
        target.resolution_m,
        done.released.simulated,
        AXES,
    ).write(folder / "private" / "mechanism.npz")
