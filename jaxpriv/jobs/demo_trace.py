"""A made-up day of a made-up person, for demonstrations: home, clinic, work, home."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from jaxpriv.traces.instants import format_instant
from jaxpriv.traces.projection import LocalPlane


# A point in the Atlantic Ocean: nobody lives there.
ORIGIN = LocalPlane(45.0, -30.0)
_START = datetime(2024, 5, 6, 6, 30, tzinfo=UTC)
_FIX_ERROR_M = 4.0

# Metres east and north of the origin, and the corners of the streets between them.
HOME, CLINIC, WORK = (-2600.0, -900.0), (400.0, 1500.0), (2500.0, -300.0)
_PLAN = (
    # (minutes at which the person is there, place)
    (0, HOME), (75, HOME), (82, (-2500.0, 300.0)), (93, (-900.0, 500.0)), (102, (-500.0, 1300.0)), (107, CLINIC),
    (121, CLINIC), (127, (1400.0, 1200.0)), (138, WORK), (345, WORK), (352, (2300.0, -900.0)), (385, (2300.0, -900.0)),
    (392, WORK), (585, WORK), (600, (900.0, -700.0)), (618, (-1300.0, -600.0)), (630, HOME), (714, HOME),
)  # fmt: skip


@dataclass(frozen=True)
class DemoDay:
    """The day as CSV text, and the sensitive time in microseconds since 1970."""

    csv: str
    secret_us: int


def demo_day(points: int = 120, seed: int = 8) -> DemoDay:
    """Generate the day: `points` fixes about 6 minutes apart when there are 120, a few metres of error each."""
    rng = np.random.default_rng(seed)
    minutes, places = zip(*_PLAN, strict=True)
    knots = np.array(places)
    spread = 0.25 * minutes[-1] / points
    at = np.sort(np.linspace(0, minutes[-1], points) + rng.uniform(-spread, spread, points))
    at = np.clip(np.round(at * 60), 0, minutes[-1] * 60) / 60
    metres = np.stack([np.interp(at, minutes, knots[:, axis]) for axis in (0, 1)], axis=1)
    metres += rng.normal(0, _FIX_ERROR_M, metres.shape)
    latitude, longitude = ORIGIN.to_degrees(metres)
    start_us = int(_START.timestamp()) * 10**6
    lines = ["time,lat,lon"]
    for minute, lat, lon in zip(at, latitude, longitude, strict=True):
        lines.append(f"{format_instant(start_us + round(minute * 60) * 10**6)},{lat:.7f},{lon:.7f}")
    return DemoDay("\n".join(lines) + "\n", start_us + 114 * 60 * 10**6)
