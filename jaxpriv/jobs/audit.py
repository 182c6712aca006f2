"""A stored mechanism under every notion of privacy: the priors and secrets of its report, or others."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jaxpriv.designs.audit.table import Audit
from jaxpriv.designs.audit.verb import audit
from jaxpriv.errors import InputError
from jaxpriv.fitting.prior_file import read_prior
from jaxpriv.jobs.mechanism_file import MechanismFile, read_mechanism
from jaxpriv.jobs.protected_secret import protected_secret
from jaxpriv.jobs.recertify import stated_prior, stated_secret
from jaxpriv.jobs.reporting import AXES
from jaxpriv.jobs.stored import read_object
from jaxpriv.priors.protocol import Prior
from jaxpriv.report.reading import record_from
from jaxpriv.report.record import FORMAT as REPORT_FORMAT, VERSION as REPORT_VERSION, Report
from jaxpriv.secrets.secret import Secret
from jaxpriv.secrets.unsampled import UnsampledSecret
from jaxpriv.traces.instants import parse_instant
from jaxpriv.traces.projection import STRETCH


FORMAT, VERSION = "jaxpriv-audit", 1
_SHOWN = 3  # secrets in the text; all are in the JSON
_WIDTH = 92


@dataclass(frozen=True)
class MechanismAudit:
    """The audit of each coordinate (one for both where they are alike), and what has to be said besides."""

    axes: tuple[tuple[str, Audit], ...]
    secrets: int
    notes: tuple[str, ...]

    def to_json(self) -> str:
        """Write everything as JSON; infinite values are null."""
        content = {
            "format": FORMAT,
            "format_version": VERSION,
            "notes": list(self.notes),
            "axes": [{"name": name} | one.as_dict() for name, one in self.axes],
        }
        return json.dumps(content, indent=2, allow_nan=False)

    def text(self) -> str:
        """Write a table for each coordinate, with the secrets that are protected least."""
        parts = [textwrap.fill(note, _WIDTH, break_on_hyphens=False) for note in self.notes]
        for name, one in self.axes:
            parts.append(f"{name}\n{one.worst(_SHOWN)}")
        if self.secrets > _SHOWN:
            parts.append(f"Of {self.secrets} secrets the {_SHOWN} of the largest loss are shown; --json has all.")
        return "\n\n".join(parts) + "\n"


def audit_file(
    path: Path,
    *,
    prior: Path | None = None,
    secrets: Sequence[str] = (),
    radius_m: float | None = None,
    sensitivity_m: float | None = None,
    delta: float = 0.01,
    order: float | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> MechanismAudit:
    """Audit a mechanism.npz, or the folder that `protect` wrote it to.

    Priors and secrets are those of the report.json beside it, unless a `prior` file or times of `secrets` (with
    `radius_m`) are given. Distances in metres. `order` is the report's unless given, 2 without one. Raises `InputError`
    for files that cannot be read, and where there is nothing to audit.
    """
    file = _mechanism_path(path)
    stored = read_mechanism(file)
    beside = file.parent / "report.json"
    report = None
    if beside.is_file():
        report = record_from(Report, read_object(beside, REPORT_FORMAT, REPORT_VERSION), "report.json")
        if tuple(axis.name for axis in report.axes) != AXES:
            raise InputError("report.json: its coordinates are not east and north")
    if radius_m is not None and not secrets:
        raise InputError("a radius goes with the times of secrets (--secret)")
    axes, notes = _priors(stored, report, prior)
    chosen = _secrets(stored, report, secrets, radius_m) if axes is not None else []
    if secrets and axes is None:
        raise InputError("secrets need a prior: there is no report.json beside the mechanism; pass --prior FILE")
    if axes is None and sensitivity_m is None:
        raise InputError(
            "there is nothing to audit: no report.json beside the mechanism; pass --prior FILE, --sensitivity, or both"
        )
    if stored.simulated:
        notes = (*notes, "This is the mechanism of simulated output, which is no release and not private.")
    used = order if order is not None else report.order if report is not None else 2.0
    found: list[tuple[str, Audit]] = []
    same = _alike(stored, axes, report, prior)
    for i, name in enumerate(AXES):
        if same and found:
            found = [("each coordinate, in metres", found[0][1])]
            break
        progress(f"Auditing the {name} coordinate")
        one = audit(
            axes[i] if axes is not None else None,
            stored.mechanisms[i],
            secrets=chosen,
            sensitivity=sensitivity_m,
            delta=delta,
            order=used,
            unit="m",
        )
        found.append((f"{name}, in metres", one))
    return MechanismAudit(tuple(found), len(chosen), notes)


def _mechanism_path(path: Path) -> Path:
    if not path.is_dir():
        return path
    for candidate in (path / "private" / "mechanism.npz", path / "mechanism.npz"):
        if candidate.is_file():
            return candidate
    raise InputError(f"{path} holds no mechanism.npz; name the file, or the folder that jaxpriv protect wrote")


def _priors(
    stored: MechanismFile, report: Report | None, file: Path | None
) -> tuple[tuple[Sequence[Prior], Sequence[Prior]] | None, tuple[str, ...]]:
    seconds = (stored.time_us - stored.time_us[0]) / 1e6
    if file is None:
        if report is None:
            return None, ("No prior: only what holds for any prior is evaluated.",)
        east, north = ([stated_prior(one).process_prior(seconds) for one in axis.priors] for axis in report.axes)
        count = len(report.axes[0].priors)
        return (east, north), (f"Priors: {count} of each coordinate, as the report states them; the worst counts.",)
    content = read_prior(file)
    if content.units != ("m", "s"):
        raise InputError(f"{file.name}: it is in {content.units[0]} and {content.units[1]}; a prior must be in m and s")
    if content.population is not None:
        members: Sequence[Prior] = content.population.priors(seconds)
        return (members, members), (f"Priors: the {len(members)} members of {file.name}; the worst counts.",)
    coordinates = content.coordinates or ()
    if len(coordinates) != 2:
        raise InputError(f"{file.name}: it holds {len(coordinates)} coordinate(s), not east and north")
    east, north = ([one.prior(seconds) for one in fits] for fits in coordinates)
    return (east, north), (f"Priors: the {len(east)} fits of each coordinate in {file.name}; the worst counts.",)


def _secrets(
    stored: MechanismFile, report: Report | None, times: Sequence[str], radius_m: float | None
) -> list[Secret | UnsampledSecret]:
    if not times:
        if report is None:
            return []
        return [stated_secret(one, stored.time_us, report.plane_radius_m) for one in report.secrets]
    radius = report.plane_radius_m if radius_m is None and report is not None else None
    if radius is None:
        if radius_m is None:
            raise InputError("secrets need a radius: pass --radius with the largest distance of two places, as 200m")
        radius = radius_m * STRETCH
    return [_secret_at(text, stored.time_us, radius) for text in times]


def _secret_at(text: str, time_us: np.ndarray, radius: float) -> Secret | UnsampledSecret:
    """The nearest fix within one median step, or the place between fixes."""
    try:
        us = parse_instant(text).us
    except ValueError as problem:
        raise InputError(f"--secret {text}: {problem}") from None
    if not time_us[0] <= us <= time_us[-1]:
        raise InputError(f"--secret {text}: it is outside the times of the mechanism")
    nearest = int(np.argmin(np.abs(time_us - us)))
    step = float(np.median(np.diff(time_us))) if len(time_us) > 1 else 0.0
    positions = [nearest] if abs(int(time_us[nearest]) - us) <= step else []
    return protected_secret(positions, (us - int(time_us[0])) / 1e6, radius)


def _alike(stored: MechanismFile, axes: object, report: Report | None, prior: Path | None) -> bool:
    """Whether both coordinates have one mechanism and the same priors."""
    east, north = stored.mechanisms
    if not (np.array_equal(east.factor, north.factor) and float(east.floor_sd) == float(north.floor_sd)):
        return False
    if axes is None:
        return True
    return prior is None and report is not None and report.axes[0].priors == report.axes[1].priors
