"""release.json: the released integers and all that is needed to turn them into positions. It may be shared."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.jobs.noise import ReleasedPoints
from jaxpriv.jobs.stored import check_names, number, read_object, whole
from jaxpriv.mechanisms.grid_release import LARGEST_TAU
from jaxpriv.report.text import SIMULATED
from jaxpriv.traces.instants import format_instant, parse_instant
from jaxpriv.traces.projection import LocalPlane


FORMAT, VERSION = "jaxpriv-release", 1
PROJECTION = "azimuthal equidistant, WGS 84; metres = integer * 2^grid_exponent, east and north of the origin"
# What a sanitised file says of its origin, where its format has a place for that.
TITLE, SIMULATED_TITLE = "jaxpriv", "SIMULATED - NOT PRIVATE"
# The certified release at the times of the fixes, kept private where what is shared was drawn from it on a grid.
OBSERVED = "observed.json"
# A sign and the digits of 2^53, above which nothing is released.
_WIDTH = 17
_ENTRIES = {"simulated", "note", "projection", "origin", "grid_exponent", "tau", "times", "east", "north"}


@dataclass(frozen=True)
class ReleaseFile:
    """What release.json says: instants (n,) in microseconds since 1970, the points, and the plane they lie in."""

    time_us: tuple[int, ...] = field(repr=False)
    points: ReleasedPoints
    plane: LocalPlane

    def text(self) -> str:
        """Write the file. Every entry is a function of public parameters, of the times and of the integers."""
        points = self.points
        content = {
            "format": FORMAT,
            "format_version": VERSION,
            "simulated": points.simulated,
            "note": SIMULATED if points.simulated else "",
            "projection": PROJECTION,
            "origin": {"latitude": self.plane.latitude, "longitude": self.plane.longitude},
            "grid_exponent": points.exponent,
            "tau": points.tau,
            "times": [format_instant(us) for us in self.time_us],
        }
        written = json.dumps(content, allow_nan=False)
        return f'{written[:-1]}, "east": {padded(points.east)}, "north": {padded(points.north)}}}\n'

    def positions(self) -> tuple[np.ndarray, np.ndarray]:
        """Latitude and longitude in degrees, (n,) each: the integers brought back to the ellipsoid."""
        return self.plane.to_degrees(self.points.metres)


def padded(integers: Sequence[int]) -> str:
    """Write a JSON list of integers, each of the same width, so that the length of the file tells nothing of them."""
    return f"[{', '.join(f'{integer:{_WIDTH}d}' for integer in integers)}]"


def read_release(path: Path) -> ReleaseFile:
    """Read a release.json, simulated or not. Raises `InputError` for anything that `ReleaseFile.text` does not write.

    Not all that can be read is a release: `points.simulated` says which it is.
    """
    content = read_object(path, FORMAT, VERSION)
    name = path.name
    check_names(content, _ENTRIES, name)
    simulated = content["simulated"]
    if type(simulated) is not bool or content["note"] != (SIMULATED if simulated else ""):
        raise InputError(f"{name}: simulated and note do not agree")
    if content["projection"] != PROJECTION:
        raise InputError(f"{name}: the projection is not the one that version {VERSION} of the format uses")
    origin = content["origin"]
    if not isinstance(origin, dict):
        raise InputError(f"{name}: origin is not an object")
    check_names(origin, {"latitude", "longitude"}, f"{name}: origin")
    plane = LocalPlane(*(number(origin[part], f"{name}: {part} of the origin") for part in ("latitude", "longitude")))
    tau = None if content["tau"] is None else number(content["tau"], f"{name}: tau")
    if simulated != (tau is None) or (tau is not None and not 0 < tau <= 2 * float(LARGEST_TAU)):
        raise InputError(f"{name}: tau must be null for simulated output, else above 0 and at most 2^-39")
    exponent = whole(content["grid_exponent"], f"{name}: grid_exponent")
    if not -60 <= exponent <= 60:
        raise InputError(f"{name}: grid_exponent is out of range")
    times = read_times(content["times"], name)
    east, north = (read_integers(content[axis], len(times), f"{name}: {axis}") for axis in ("east", "north"))
    return ReleaseFile(times, ReleasedPoints(east, north, exponent, tau), plane)


def read_times(texts: Any, name: str) -> tuple[int, ...]:
    """Check increasing instants as text: microseconds since 1970. Raises `InputError`, which names the file."""
    if not isinstance(texts, list) or not texts:
        raise InputError(f"{name}: times is not a list of instants")
    times = []
    for text in texts:
        try:
            us = parse_instant(text).us if isinstance(text, str) else None
        except ValueError:
            us = None
        if us is None or format_instant(us) != text:
            raise InputError(f"{name}: an instant is not written as YYYY-MM-DDTHH:MM:SSZ")
        times.append(us)
    if any(after <= before for before, after in itertools.pairwise(times)):
        raise InputError(f"{name}: the times do not increase")
    return tuple(times)


def read_integers(values: Any, count: int, where: str) -> tuple[int, ...]:
    """Check a list of `count` integers below 2^53. Raises `InputError`, which says where."""
    if not isinstance(values, list) or len(values) != count:
        raise InputError(f"{where} is not a list of as many integers as there are times")
    if not all(type(value) is int and abs(value) < 2**53 for value in values):
        raise InputError(f"{where} holds something that is not an integer below 2^53")
    return tuple(values)
