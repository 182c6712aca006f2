"""Stays of a trace near a place, and at its two ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyproj

from jaxpriv.traces.trace import Trace


_EARTH = pyproj.Geod(ellps="WGS84")


@dataclass(frozen=True)
class Visit:
    """A run of neighbouring fixes, by the positions of its first and last one."""

    first: int
    last: int

    @property
    def count(self) -> int:
        """Number of fixes."""
        return self.last - self.first + 1


def visits(trace: Trace, latitude: float, longitude: float, distance_m: float) -> list[Visit]:
    """Runs of fixes at most `distance_m` (along the ellipsoid) from a place in degrees, in order of time."""
    near = np.flatnonzero(_distances(trace, latitude, longitude) <= distance_m)
    if not len(near):
        return []
    runs = np.split(near, np.flatnonzero(np.diff(near) > 1) + 1)
    return [Visit(int(run[0]), int(run[-1])) for run in runs]


def ends(trace: Trace, distance_m: float) -> tuple[Visit, Visit]:
    """The first and the last stay: the fixes until the trace is first farther than `distance_m` from its first fix, and
    those after it was last farther than that from its last one. They overlap when the trace never leaves."""
    n = trace.n_points
    left = np.flatnonzero(_distances(trace, trace.latitude[0], trace.longitude[0]) > distance_m)
    away = np.flatnonzero(_distances(trace, trace.latitude[-1], trace.longitude[-1]) > distance_m)
    first = Visit(0, int(left[0]) - 1 if len(left) else n - 1)
    return first, Visit(int(away[-1]) + 1 if len(away) else 0, n - 1)


def _distances(trace: Trace, latitude: float, longitude: float) -> np.ndarray:
    """Distance of each fix from a place, (n,), in metres; of several rows at one instant the nearest one counts."""
    rows = trace.latitude.size
    _, _, metres = _EARTH.inv(
        np.full(rows, longitude), np.full(rows, latitude), trace.longitude, trace.latitude, return_back_azimuth=False
    )
    nearest = np.full(trace.n_points, np.inf)
    np.minimum.at(nearest, trace.point_of_row, np.asarray(metres))
    return nearest
