"""The whole job: from a trace file, secrets and priors to a folder with a sanitised trace and its report."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.jobs.designing import Noise, design_noise
from jaxpriv.jobs.grid_times import GridRequest, OnGrid, draw_on_grid, grid_report
from jaxpriv.jobs.long_traces import check_long, check_short
from jaxpriv.jobs.noise import ReleasedPoints, draw_release, simulate_release
from jaxpriv.jobs.output import check_output, output_folder, write_private
from jaxpriv.jobs.page import page_details
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.prior_sources import PriorSource
from jaxpriv.jobs.private_record import PrivateRecord
from jaxpriv.jobs.reporting import make_report
from jaxpriv.jobs.requests import PriorRequest, SecretRequest
from jaxpriv.jobs.secret_sources import ChosenSecrets
from jaxpriv.jobs.target import Target
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.report.html import report_html
from jaxpriv.report.page.details import ReleaseDetails
from jaxpriv.report.record import ReleasesRecord, Report
from jaxpriv.report.text import report_text
from jaxpriv.traces.contents import ReadOptions
from jaxpriv.traces.files import read_trace, sanitised_text
from jaxpriv.traces.projection import LocalPlane, public_origin
from jaxpriv.traces.trace import Trace


Progress = Callable[[str], None]


@dataclass(frozen=True)
class Planned:
    """What was understood of a trace, and the noise for it: all of the job before anything is drawn.

    `metres` (n, 2) are the true positions; the noise depends on them only as far as the priors were fitted to them.
    """

    secrets: ChosenSecrets
    source: PriorSource
    noise: Noise
    plane: LocalPlane
    metres: np.ndarray = field(repr=False)

    @property
    def mechanisms(self) -> tuple[GaussianMechanism, GaussianMechanism]:
        """The noise of both coordinates, east and north."""
        return self.noise.east.design.mechanism, self.noise.north.design.mechanism


@dataclass(frozen=True)
class Protected:
    """What the job made: the report, the secrets, the released points, the noise, the plane, the page's arrays.

    `on_grid` is what is published where a grid of times was asked for; the released points are private then.
    """

    report: Report
    secrets: ChosenSecrets
    released: ReleasedPoints
    noise: Noise
    plane: LocalPlane
    details: ReleaseDetails = field(repr=False)
    on_grid: OnGrid | None = None


def plan(
    trace: Trace,
    secrets: SecretRequest | Sequence[int],
    target: Target,
    prior: PriorRequest | PriorChoice,
    *,
    origin: LocalPlane | None = None,
    progress: Progress = lambda step: None,
) -> Planned:
    """Find the secrets and priors of a trace and design the noise for them; nothing is drawn.

    `secrets` may be instants in microseconds since 1970 (UTC), and `prior` the numbers of one. Raises as `protect`.
    """
    chosen = (secrets if isinstance(secrets, SecretRequest) else SecretRequest.at(secrets)).on(trace)
    _check_resolution(trace, target)
    request = prior if isinstance(prior, PriorRequest) else PriorRequest(given=prior)
    check_long(trace.n_points, chosen, target, request)
    plane = origin or public_origin(trace.latitude, trace.longitude)
    rows = plane.to_metres(trace.latitude, trace.longitude)
    plane.check_extent(rows)
    metres = trace.mean_by_point(rows)
    progress("Finding the priors")
    source = request.on(trace, metres, target, progress)
    progress("Designing the noise")
    return Planned(chosen, source, design_noise(trace.seconds, chosen, target, source), plane, metres)


def protect(
    trace: Trace,
    secrets: SecretRequest | Sequence[int],
    target: Target,
    prior: PriorRequest | PriorChoice,
    *,
    simulate_seed: int | None = None,
    origin: LocalPlane | None = None,
    releases: ReleasesRecord | None = None,
    grid: GridRequest | None = None,
    progress: Progress = lambda step: None,
) -> Protected:
    """Protect secrets of a trace, each by itself, with the least noise that meets the target under every prior.

    Coordinates are independent under the priors, each gets its own design, and the reported ε is the larger one
    (Theorem 3.4 of Meehan and Chaudhuri, AISTATS 2021). The design sees the times of the trace and, when priors are
    fitted to it, those fits. Every call draws from the operating system's generator and is another release of the
    trace; with `simulate_seed` it is a reproducible simulation, which is none. `secrets` may be instants in
    microseconds since 1970 (UTC), `prior` the numbers of one; `releases` is what is known of earlier ones. With a
    `grid` of times, what is published is drawn on it from the release (`grid_times`). Raises `InputError` for input
    that cannot be used, `InfeasibleError` and `CertificateError` as `design` does.
    """
    if grid is not None:
        grid.times(int(trace.time_us[0]), int(trace.time_us[-1]))
        check_short(trace.n_points, "--grid")
    made = plan(trace, secrets, target, prior, origin=origin, progress=progress)
    progress("Drawing the release")
    if simulate_seed is None:
        released = draw_release(made.mechanisms, made.metres, target.resolution_m)
    else:
        released = simulate_release(made.mechanisms, made.metres, target.resolution_m, simulate_seed)
    progress("Writing the report")
    rng = None if simulate_seed is None else np.random.default_rng(simulate_seed)
    return describe(trace, target, made, released, releases, grid, rng)


def describe(
    trace: Trace,
    target: Target,
    made: Planned,
    released: ReleasedPoints,
    releases: ReleasesRecord | None,
    grid: GridRequest | None = None,
    rng: np.random.Generator | None = None,
) -> Protected:
    """Put together all that is said about points that were drawn; with a `grid`, draw what is published on it."""
    report = make_report(trace, made.secrets, target, made.source, made.plane, made.noise, released, releases)
    details = page_details(trace, made.metres, made.secrets, made.source, made.noise, released, report)
    done = Protected(report, made.secrets, released, made.noise, made.plane, details)
    if grid is None:
        return done
    drawn = draw_on_grid(grid, trace.time_us, made.noise, made.source, released, rng)
    return replace(done, report=grid_report(report, drawn), on_grid=drawn)


def protect_file(
    path: Path,
    out: Path,
    secrets: SecretRequest | Sequence[int],
    target: Target,
    prior: PriorRequest | PriorChoice,
    *,
    reading: ReadOptions | None = None,
    simulate_seed: int | None = None,
    origin: LocalPlane | None = None,
    force: bool = False,
    again: bool = False,
    grid: GridRequest | None = None,
    progress: Progress = lambda step: None,
) -> Protected:
    """Read a trace file, protect it, and write the folder `out` whole or not at all.

    `out/share` holds what may be shared (the sanitised trace in the file's own format, and the released integers),
    `out/private` (mode 0700) the report and the mechanism. Every release (not a simulation) enters the private record
    of this user, and content that is on record is refused unless `again` is set. `reading` says whose rows of the
    file are meant, and how strictly it is read. Raises as `protect` does, and `InputError` for files.
    """
    check_output(out, force)
    progress("Reading the trace")
    trace = read_trace(path, options=reading, progress=progress)
    record = entry = releases = None
    if simulate_seed is None:
        record = PrivateRecord.open()
        entry = record.entry(trace, out)
        last, releases = record.earlier(entry, replaced=out)
        if last is not None and not again:
            raise InputError(
                f"the same positions and times are on record as released ({last.recorded}, to {last.folder}). Two "
                "releases of one trace combine and can tell far more than both promises added: share the first one "
                "instead. To release them once more all the same, pass --again"
            )
        entry = replace(entry, number=releases.number)
    protected = protect(
        trace,
        secrets,
        target,
        prior,
        simulate_seed=simulate_seed,
        origin=origin,
        releases=releases,
        grid=grid,
        progress=progress,
    )
    progress("Writing")
    kept = None
    try:
        with output_folder(out, force) as folder:
            write_release(folder, trace, protected)
            if record is not None and entry is not None:
                write_private(folder / "private" / "record.json", entry.text())
                # Last before the folder gets its name: what is published is on record.
                kept = record.keep(entry)
    except InputError:
        if kept is not None:  # nothing was published
            kept.unlink(missing_ok=True)
        raise
    return protected


def write_release(folder: Path, trace: Trace, protected: Protected) -> None:
    """Write the files of a release into `folder`/share and `folder`/private, which exist."""
    from jaxpriv.jobs.mechanism_file import MechanismFile
    from jaxpriv.jobs.release_file import OBSERVED, ReleaseFile

    released, report = protected.released, protected.report
    for name, text in share_texts(trace, protected).items():
        (folder / "share" / name).write_bytes(text.encode("utf-8"))
    if protected.on_grid is not None:
        observed = ReleaseFile(tuple(trace.time_us.tolist()), released, protected.plane)
        write_private(folder / "private" / OBSERVED, observed.text())
    write_private(folder / "private" / "report.json", report.to_json() + "\n")
    write_private(folder / "private" / "report.txt", report_text(report))
    write_private(folder / "private" / "report.html", report_html(report, protected.details))
    MechanismFile(
        (protected.noise.east.design.mechanism, protected.noise.north.design.mechanism),
        trace.time_us,
        released.exponent,
        report.resolution_m,
        released.simulated,
    ).write(folder / "private" / "mechanism.npz")


def share_texts(trace: Trace, protected: Protected) -> dict[str, str]:
    """The files that may be shared, by name: the sanitised trace and the released integers."""
    from jaxpriv.jobs.release_file import SIMULATED_TITLE, TITLE, ReleaseFile

    released = protected.released
    mark = ".SIMULATED" if released.simulated else ""
    if protected.on_grid is None:
        release = ReleaseFile(tuple(trace.time_us.tolist()), released, protected.plane)
    else:
        times = protected.on_grid.time_us
        trace = replace(trace, time_us=times, point_of_row=np.arange(len(times)))
        release = ReleaseFile(tuple(times.tolist()), protected.on_grid.points, protected.plane)
    text = sanitised_text(trace, *release.positions(), SIMULATED_TITLE if released.simulated else TITLE)
    return {f"trace{mark}.{trace.style.kind}": text, f"release{mark}.json": release.text()}


def _check_resolution(trace: Trace, target: Target) -> None:
    if trace.step_m > target.resolution_m * (1 + 1e-6):
        step = _round_up(trace.step_m)
        raise InputError(
            f"the positions of the file are rounded to about {step} m, coarser than the declared resolution of "
            f"{target.resolution_m:g} m; pass --resolution {step}m"
        )


def _round_up(step_m: float) -> str:
    digits = 1 - math.floor(math.log10(step_m))
    return f"{math.ceil(step_m * 10**digits * (1 - 1e-9)) / 10**digits:g}"
