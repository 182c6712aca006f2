"""`jaxpriv obfuscate`: a channel for the places of a map, its audit, a picture, and releases drawn from its table."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from jaxpriv.channels.channel import Channel
from jaxpriv.channels.channel_audit import ChannelAudit, audit, audit_channel
from jaxpriv.channels.channel_design import ChannelDesign
from jaxpriv.channels.gradient import Progress, gradient_channel
from jaxpriv.channels.inference import conditional_error
from jaxpriv.channels.obfuscation import Obfuscation
from jaxpriv.channels.optimal import optimal_channel
from jaxpriv.channels.personalized import personalized_mechanism
from jaxpriv.channels.prior import DiscretePrior
from jaxpriv.channels.prior_files import grid_prior, read_prior_csv, read_prior_geojson
from jaxpriv.channels.sensitivity import uniform_mechanism
from jaxpriv.channels.table import IntegerTable
from jaxpriv.errors import CertificateError, InputError
from jaxpriv.jobs.channel_file import ChannelFile
from jaxpriv.jobs.checkins import read_checkins
from jaxpriv.jobs.map_package import as_geojson
from jaxpriv.jobs.output import check_output, output_folder
from jaxpriv.jobs.plain_json import plain
from jaxpriv.jobs.released_checkins import write_applied, write_released
from jaxpriv.plots.obfuscation import ObfuscationPicture, draw_obfuscation
from jaxpriv.precision import double_precision
from jaxpriv.traces.contents import ReadOptions
from jaxpriv.traces.files import read_trace


METHODS = ("personalized", "uniform", "optimal", "gradient")
# Designs aim this much below ε, so that rounding the channel to a table keeps what is promised.
_INSIDE = 1e-6
_LONGEST = 200  # places in a protection set that is tried, on maps of more than _LARGE places
_LARGE = 400


@dataclass(frozen=True)
class ObfuscationReport:
    """What was made: `audit` of the integer table, `lower_bound` of the quality loss where the method has one (metres),
    and how many check-ins were released."""

    audit: ChannelAudit
    promise: str
    places: int
    lower_bound: float | None
    released: int
    folder: Path

    def text(self) -> str:
        """The audit for the terminal and for audit.txt."""
        lines = [f"{self.audit.method}, {self.places} places; lengths in metres.", f"Promise: {self.promise}."]
        lines += self.audit.sentences()
        if self.lower_bound is not None:
            lines.append(f"No channel within these limits loses less than {self.lower_bound:.6g} m.")
        if self.released:
            lines.append(
                f"{self.released} check-ins were released, each drawn by itself. Several of one person add up: their "
                "levels sum, and no inference error is promised for them together."
            )
        return "\n".join(lines) + "\n"

    def to_json(self) -> str:
        """The same as JSON: metres and nats."""
        audited = asdict(self.audit)
        data = {
            "promise": self.promise,
            "places": self.places,
            "real_level": self.audit.real_level,
            "quality_loss_lower_bound": self.lower_bound,
            "released": self.released,
            "audit": audited,
        }
        return json.dumps(plain(data), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def obfuscate(
    source: Path,
    out: Path,
    *,
    epsilon: float,
    min_error_m: float = 0.0,
    method: str = "personalized",
    radius_m: float | None = None,
    places: int | None = None,
    cell_m: float | None = None,
    count: str | None = None,
    reading: ReadOptions | None = None,
    checkins: Path | None = None,
    seconds: float | None = None,
    force: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> ObfuscationReport:
    """Design a channel for a map and write DIR: share/ (channel.npz, audit.txt, audit.json, map.png, released.csv) and
    private/ (applied.csv: the place that each check-in was taken for).

    Args:
        source: places, cells or check-ins as .csv, regions as .geojson or .gpkg, or with `cell_m` a trace to be
            gridded, read as `reading` says.
        epsilon: nats: inside each protection set for "personalized" and "uniform"; between places `radius_m` apart, and
            in proportion to the distance elsewhere, for "optimal" and "gradient".
        min_error_m: the least expected error an adversary is left with after any output, metres.
        places: keep this many of the likeliest.
        seconds: time limit of the method "gradient".

    Raises:
        InputError, InfeasibleError (the location and the largest attainable error are named), CertificateError.
    """
    if method not in METHODS:
        raise InputError(f"--method {method}: expected one of {', '.join(METHODS)}")
    if (method in ("optimal", "gradient")) != (radius_m is not None):
        raise InputError(
            "--radius says how far apart two places are when epsilon is between them; it goes with the methods optimal "
            "and gradient, and is needed there"
        )
    if radius_m is not None and not radius_m > 0.0:
        raise InputError("--radius must be positive")
    check_output(out, force)
    progress("Reading")
    prior = _prior(source, cell_m, count, reading, progress)
    plane = prior.plane
    if plane is None:
        raise AssertionError("a prior read from degrees has a plane.")
    if places is not None:
        prior = prior.top(places)
    applied = None if checkins is None else read_checkins(checkins, prior, plane)
    progress(f"Designing for {prior.size} places")
    design = _design(prior, method, epsilon, min_error_m, radius_m, seconds, progress)
    progress("Auditing")
    channel, outputs = design.channel, np.asarray(design.prior.locations)
    table = IntegerTable.from_channel(channel)
    checked = _audited(design, table, prior, epsilon, min_error_m, radius_m)
    promise = design.promise if isinstance(design, Obfuscation) else _limit_words(epsilon, min_error_m, radius_m)
    released = None
    if applied is not None:
        progress("Releasing")
        released = table.release(applied.positions)
    report = ObfuscationReport(
        checked,
        promise,
        prior.size,
        design.lower_bound if isinstance(design, ChannelDesign) else None,
        0 if released is None else len(released),
        out,
    )
    latitude, longitude = plane.to_degrees(outputs)
    with output_folder(out, force) as folder:
        share = folder / "share"
        probabilities = np.asarray(prior.probabilities, dtype=np.float64)
        ChannelFile(table, latitude, longitude, probabilities, method).write(share / "channel.npz")
        (share / "audit.txt").write_text(report.text(), encoding="utf-8")
        (share / "audit.json").write_text(report.to_json(), encoding="utf-8")
        draw_obfuscation(_picture(prior, table.channel, method, checked), share / "map.png")
        if applied is not None and released is not None:
            write_released(share / "released.csv", latitude[released], longitude[released], applied)
            write_applied(folder / "private" / "applied.csv", applied)
    return report


def _prior(
    source: Path, cell_m: float | None, count: str | None, reading: ReadOptions | None, progress: Callable[[str], None]
) -> DiscretePrior:
    if cell_m is not None:
        return grid_prior([read_trace(source, options=reading, progress=progress)], cell_m)
    if reading not in (None, ReadOptions()):
        raise InputError(
            "--columns, --who, --track, --strict and --duplicates say how a trace is read; they go with --cell"
        )
    if source.suffix.lower() == ".gpkg":
        with as_geojson(source) as converted:
            return _prior(converted, None, count, None, progress)
    if source.suffix.lower() in (".geojson", ".json"):
        return read_prior_geojson(source) if count is None else read_prior_geojson(source, count)
    return read_prior_csv(source, count)


def _design(
    prior: DiscretePrior,
    method: str,
    epsilon: float,
    min_error_m: float,
    radius_m: float | None,
    seconds: float | None,
    progress: Callable[[str], None],
) -> Obfuscation | ChannelDesign:
    inside = epsilon * (1.0 - _INSIDE)
    if radius_m is None:
        if method == "uniform":
            return uniform_mechanism(prior, inside, min_error_m)
        return personalized_mechanism(prior, inside, min_error_m, longest=None if prior.size <= _LARGE else _LONGEST)
    if method == "optimal":
        return optimal_channel(prior, inside / radius_m, min_error=min_error_m)

    def show(state: Progress) -> None:
        gap = (state.quality_loss - state.lower_bound) / state.quality_loss if state.quality_loss > 0.0 else 0.0
        progress(f"Designing: {state.quality_loss:.4g} m, within {100.0 * gap:.2g} % of the best")

    return gradient_channel(prior, inside / radius_m, min_error=min_error_m, max_seconds=seconds, callback=show)


def _audited(
    design: Obfuscation | ChannelDesign,
    table: IntegerTable,
    prior: DiscretePrior,
    epsilon: float,
    min_error_m: float,
    radius_m: float | None,
) -> ChannelAudit:
    if isinstance(design, Obfuscation):
        found = audit(design, table)
        if not found.real_level <= epsilon:
            raise CertificateError(
                f"the table has level {found.real_level:.6g}, above {epsilon:.6g}; nothing was written"
            )
        return found
    found = audit_channel(table, prior, min_error=min_error_m or None, outputs=design.outputs, method=design.method)
    if radius_m is not None and not found.geo_level.value * radius_m <= epsilon:
        raise CertificateError(
            f"the table has level {found.geo_level.value * radius_m:.6g} at the radius, not {epsilon:.6g}; nothing "
            "was written"
        )
    return found


def _limit_words(epsilon: float, min_error_m: float, radius_m: float | None) -> str:
    words = f"at most {epsilon:.6g} nats between places {radius_m:.6g} m apart, in proportion to the distance elsewhere"
    if min_error_m > 0.0:
        words += f"; after every output an adversary with this prior errs by {min_error_m:.6g} m on average at least"
    return words


def _picture(prior: DiscretePrior, channel: Channel, method: str, checked: ChannelAudit) -> ObfuscationPicture:
    places = np.asarray(prior.locations)
    with double_precision():
        matrix = np.asarray(channel.matrix)
        error = np.asarray(conditional_error(channel, prior))
    return ObfuscationPicture(
        places,
        np.asarray(prior.probabilities),
        np.sum(matrix * np.asarray(prior.distances), axis=1),
        np.where(np.isfinite(error), error, np.nan),
        f"{method}: mean quality loss {checked.quality_loss:.4g} m, mean inference error "
        f"{checked.expected_error:.4g} m; dots grow with the prior",
    )
