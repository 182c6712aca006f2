"""The whole job: from a trace file, a secret time and a prior to a folder with a sanitised trace and its report."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jaxpriv.errors import CertificateError, InputError
from jaxpriv.jobs.output import check_output, output_folder
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.reporting import make_report
from jaxpriv.jobs.secret_choice import SecretTime, locate_secret
from jaxpriv.jobs.target import Target
from jaxpriv.report.record import Report
from jaxpriv.report.text import SIMULATED, report_text
from jaxpriv.traces.files import read_trace, sanitised_text
from jaxpriv.traces.instants import format_instant
from jaxpriv.traces.projection import STRETCH, LocalPlane, public_origin
from jaxpriv.traces.trace import Trace


if TYPE_CHECKING:
    from jaxpriv.jobs.axis import Axis
    from jaxpriv.jobs.noise import ReleasedPoints

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Protected:
    """What the job made: the released points, the noise of each axis, the plane, and the report."""

    report: Report
    released: ReleasedPoints
    east: Axis
    north: Axis
    plane: LocalPlane


def protect(
    trace: Trace,
    secret_times_us: Sequence[int],
    target: Target,
    prior: PriorChoice,
    *,
    simulate_seed: int,
    origin: LocalPlane | None = None,
    progress: Progress = lambda step: None,
) -> Protected:
    """Protect one secret time (microseconds since 1970, UTC) of a trace with the least noise that meets the target.

    Coordinates are independent under the prior, each gets its own design, and the reported ε is the larger one
    (Theorem 3.4 of Meehan and Chaudhuri, AISTATS 2021; a basic secret, for which the bound is exact). The design sees
    the times of the trace and nothing else of it. Raises `InputError` for input that cannot be used,
    `InfeasibleError` and `CertificateError` as `design` does.
    """
    secret = _only_secret(trace, secret_times_us)
    if trace.step_m > target.resolution_m * (1 + 1e-6):
        step = _round_up(trace.step_m)
        raise InputError(
            f"the positions of the file are rounded to about {step} m, coarser than the declared resolution of "
            f"{target.resolution_m:g} m; pass --resolution {step}m"
        )
    plane = origin or public_origin(trace.latitude, trace.longitude)
    rows = plane.to_metres(trace.latitude, trace.longitude)
    plane.check_extent(rows)
    metres = trace.mean_by_point(rows)

    progress("Designing the noise")
    east = north = _design_axis(trace, secret, target, prior)
    progress("Drawing the release")
    from jaxpriv.jobs.noise import draw_release

    released = draw_release(east.design.mechanism, north.design.mechanism, metres, simulate_seed)
    progress("Comparing with independent noise")
    report = make_report(trace, secret, target, prior, plane, east, north, released)
    return Protected(report, released, east, north, plane)


def protect_file(
    path: Path,
    out: Path,
    secret_times_us: Sequence[int],
    target: Target,
    prior: PriorChoice,
    *,
    simulate_seed: int,
    origin: LocalPlane | None = None,
    force: bool = False,
    progress: Progress = lambda step: None,
) -> Protected:
    """Read a trace file, protect it, and write the folder `out` whole or not at all.

    `out/share` holds what may be shared (the sanitised trace in the file's own format, and the released integers),
    `out/private` (mode 0700) the report and the mechanism. Raises as `protect` does, and `InputError` for files.
    """
    check_output(out, force)
    progress("Reading the trace")
    trace = read_trace(path)
    protected = protect(
        trace, secret_times_us, target, prior, simulate_seed=simulate_seed, origin=origin, progress=progress
    )
    progress("Writing")
    with output_folder(out, force) as folder:
        write_release(folder, trace, protected)
    return protected


def write_release(folder: Path, trace: Trace, protected: Protected) -> None:
    """Write the files of a release into `folder`/share and `folder`/private, which exist."""
    released, plane, report = protected.released, protected.plane, protected.report
    mark = ".SIMULATED" if released.simulated else ""
    latitude, longitude = plane.to_degrees(released.metres)
    text = sanitised_text(trace, latitude, longitude, "SIMULATED - NOT PRIVATE" if released.simulated else "jaxpriv")
    with (folder / "share" / f"trace{mark}.{trace.style.kind}").open("w", encoding="utf-8", newline="") as file:
        file.write(text)
    (folder / "share" / f"release{mark}.json").write_text(_release_json(trace, released, plane), encoding="utf-8")
    (folder / "private" / "report.json").write_text(report.to_json() + "\n", encoding="utf-8")
    (folder / "private" / "report.txt").write_text(report_text(report), encoding="utf-8")
    east, north = protected.east.design.mechanism, protected.north.design.mechanism
    np.savez(
        folder / "private" / "mechanism.npz",
        format_version=1,
        time_us=trace.time_us,
        factor_east=np.asarray(east.factor, dtype=np.float64),
        factor_north=np.asarray(north.factor, dtype=np.float64),
        floor_sd_east=float(east.floor_sd),
        floor_sd_north=float(north.floor_sd),
        grid_exponent=released.exponent,
        simulated=released.simulated,
    )


def _release_json(trace: Trace, released: ReleasedPoints, plane: LocalPlane) -> str:
    content = {
        "format": "jaxpriv-release",
        "format_version": 1,
        "simulated": released.simulated,
        "note": SIMULATED if released.simulated else "",
        "projection": "azimuthal equidistant, WGS 84; metres = integer * 2^grid_exponent, east and north of the origin",
        "origin": {"latitude": plane.latitude, "longitude": plane.longitude},
        "grid_exponent": released.exponent,
        "times": [format_instant(us) for us in trace.time_us],
        "east": list(released.east),
        "north": list(released.north),
    }
    return json.dumps(content, allow_nan=False) + "\n"


def _only_secret(trace: Trace, secret_times_us: Sequence[int]) -> SecretTime:
    if len(secret_times_us) != 1:
        raise InputError(
            f"{len(secret_times_us)} secret times were given; exactly one can be protected in this version"
        )
    return locate_secret(trace, secret_times_us[0])


def _design_axis(trace: Trace, secret: SecretTime, target: Target, prior: PriorChoice) -> Axis:
    from jaxpriv.designs.design import design
    from jaxpriv.jobs.axis import Axis
    from jaxpriv.secrets.secret import Secret
    from jaxpriv.secrets.unsampled import UnsampledSecret

    radius = target.radius_m * STRETCH
    process = prior.process_prior(trace.seconds)
    if secret.position is None:
        wanted = UnsampledSecret(secret.seconds, radius)
    else:
        wanted = Secret.at_times([secret.position], radius)
    made = design(
        process, wanted, epsilon=target.epsilon, order=target.order, resolution=target.resolution_m, structure="joint"
    )
    if not (math.isfinite(made.epsilon) and made.epsilon <= target.epsilon):
        raise CertificateError("the certified epsilon of the design is above the one asked for; nothing was released")
    return Axis.of(made, process, wanted)


def _round_up(step_m: float) -> str:
    digits = 1 - math.floor(math.log10(step_m))
    return f"{math.ceil(step_m * 10**digits * (1 - 1e-9)) / 10**digits:g}"
