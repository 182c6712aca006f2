"""What looks odd in a trace and is left as it is: told to the user, never repaired."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyproj

from jaxpriv.traces.projection import public_origin
from jaxpriv.traces.trace import NO_TIME, RawRows, Trace


# A gap is longer than ten median steps and than a minute; a jump is faster than sound, or than any car when it is the
# very first step, where receivers still have the place at which they were switched off.
_GAP_STEPS, _GAP_S = 10.0, 60.0
_JUMP_M_S, _FIRST_JUMP_M_S = 340.0, 100.0
_NEAR_POLE = 89.0
# Up to this distance from the origin a local plane and its inverse are good to a millimetre, with room to spare.
LONG_M = 50_000.0


@dataclass(frozen=True)
class Oddities:
    """Counts of what looks odd, over the clean points of a trace.

    `duplicate_steps` and `backward_steps` are of neighbouring rows with a time, in the order of the file, within its
    segments where it has any; `longest_step_s` likewise.
    """

    duplicate_steps: int
    backward_steps: int
    longest_step_s: float
    gaps: int = 0
    jumps: int = 0
    first_fix: bool = False
    date_line: int = 0
    near_pole: int = 0
    constant_latitude: bool = False
    constant_longitude: bool = False
    extent_m: float = 0.0

    def sentences(self) -> list[str]:
        """Say each, with its count; an empty list when nothing is odd."""
        found = [
            (self.gaps, f"{_count(self.gaps, 'gap')} of more than ten median steps: kept with their true times."),
            (self.jumps, f"{_count(self.jumps, 'step')} faster than {_JUMP_M_S:g} m/s: kept; look for stray fixes."),
            (
                self.first_fix,
                "The first fix lies far from the next one, as receivers start: kept; check it.",
            ),
            (self.date_line, f"{_count(self.date_line, 'step')} across the date line: handled in the local plane."),
            (self.near_pole, f"{_count(self.near_pole, 'point')} within 1° of a pole: handled in the local plane."),
            (self.constant_latitude, "The latitude never changes: a prior cannot be fitted to it."),
            (self.constant_longitude, "The longitude never changes: a prior cannot be fitted to it."),
        ]
        if self.extent_m > LONG_M:
            found.append((1, f"A long trace: points lie up to {self.extent_m / 1e3:.0f} km from its middle."))
        return [sentence for there, sentence in found if there]


def find_oddities(raw: RawRows | None, trace: Trace | None) -> Oddities:
    """Look at the rows as they are in the file, where given, and at the points that cleaning leaves, if any."""
    steps = np.zeros(0) if raw is None else _file_steps(raw)
    duplicates, backward = int(np.count_nonzero(steps == 0)), int(np.count_nonzero(steps < 0))
    longest = max(float(np.max(steps, initial=0)) / 1e6, 0.0)
    if trace is None:
        return Oddities(duplicates, backward, longest)
    plane = public_origin(trace.latitude, trace.longitude)
    extent = float(np.max(np.hypot(*plane.to_metres(trace.latitude, trace.longitude).T)))
    latitude, longitude = trace.latitude, trace.longitude
    # One row stands for the rows of an instant.
    first = np.unique(trace.point_of_row, return_index=True)[1]
    lat, lon = latitude[first], longitude[first]
    seconds = np.diff(trace.seconds)
    metres = np.asarray(pyproj.Geod(ellps="WGS84").inv(lon[:-1], lat[:-1], lon[1:], lat[1:])[2])
    speeds = metres / seconds
    gap = seconds > max(_GAP_STEPS * trace.median_step_s, _GAP_S)
    several = trace.n_points > 1
    return Oddities(
        duplicates,
        backward,
        longest,
        gaps=int(np.count_nonzero(gap)),
        jumps=int(np.count_nonzero(speeds > _JUMP_M_S)),
        first_fix=bool(trace.n_points > 2 and speeds[0] > _FIRST_JUMP_M_S and np.all(speeds[1:3] < _FIRST_JUMP_M_S)),
        date_line=int(np.count_nonzero(np.abs(np.diff(lon)) > 180)),
        near_pole=int(np.count_nonzero(np.abs(lat) > _NEAR_POLE)),
        constant_latitude=bool(several and np.all(latitude == latitude[0])),
        constant_longitude=bool(several and np.all(longitude == longitude[0])),
        extent_m=extent,
    )


def _file_steps(raw: RawRows) -> np.ndarray:
    """Microseconds between neighbouring rows with a time, in the order of the file and within its segments."""
    timed = raw.time_us != NO_TIME
    steps = np.diff(raw.time_us[timed])
    return steps if raw.segment is None else steps[np.diff(raw.segment[timed]) == 0]


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
