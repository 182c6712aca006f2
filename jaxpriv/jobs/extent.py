"""What a flat map does to a long trace, said before anybody wonders."""

from __future__ import annotations

import math

import numpy as np

from jaxpriv.report.rounding import significant
from jaxpriv.traces.projection import LocalPlane
from jaxpriv.traces.trace import Trace


LONG_M = 50_000.0
_SMALLEST_RADIUS_M = 6_335_000.0  # of curvature of the WGS 84 ellipsoid


def stretch_at(distance_m: float) -> float:
    """By what share the plane stretches distances at most, at a distance from its origin: c / sin c − 1.

    c is the distance over the smallest radius of curvature; the circle of that radius on the sphere has the
    circumference of sin c, and on the map that of c.
    """
    c = distance_m / _SMALLEST_RADIUS_M
    return 0.0 if c == 0 else c / math.sin(c) - 1.0


def extent_warnings(trace: Trace, plane: LocalPlane) -> list[str]:
    """Say how much distances are distorted when a trace reaches farther than 50 km from the plane's origin."""
    metres = plane.to_metres(trace.latitude, trace.longitude)
    farthest = float(np.max(np.hypot(metres[:, 0], metres[:, 1])))
    if farthest <= LONG_M:
        return []
    return [
        f"The trace reaches {significant(farthest / 1000, 2, 'up')} km from the origin of its flat map, where the map "
        f"stretches distances by up to {significant(100 * stretch_at(farthest), 2, 'up')} %; the radius allows for "
        "0.03 %. One prior seldom fits so long a journey: split the trip, at times chosen without looking at the "
        "positions, and protect its parts with one prior from elsewhere."
    ]
