"""Check-ins to be obfuscated: rows of a table, each moved to its nearest place of the map."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy.spatial import KDTree

from jaxpriv.channels.prior import DiscretePrior
from jaxpriv.errors import InputError
from jaxpriv.traces.degrees import is_missing, read_degrees
from jaxpriv.traces.instants import format_instant, parse_instant
from jaxpriv.traces.projection import LocalPlane


_LATITUDE, _LONGITUDE, _TIME = ("latitude", "lat"), ("longitude", "lon", "lng", "long"), ("time", "timestamp")


@dataclass(frozen=True)
class Checkins:
    """The nearest place of each check-in, `positions` (k,), its distance `away` (k,) in metres, and `times` as text.

    Times are instants in UTC, written as ISO 8601 or as a number, as they were read; "" where there is none.
    """

    positions: np.ndarray = field(repr=False)
    away: np.ndarray = field(repr=False)
    times: tuple[str, ...] | None = field(repr=False)


def read_checkins(path: Path, prior: DiscretePrior, plane: LocalPlane) -> Checkins:
    """Read a CSV with the columns lat and lon, and time if there is one; every other column is left behind.

    Times are read as instants, and nothing else of their text is kept. Raises InputError, which names the row and never
    its content: no such column, a cell that is no number or no time, or a position farther from every place than twice
    the largest distance between neighbouring places.
    """
    try:
        rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline=""), skipinitialspace=True))
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise InputError(f"{path.name}: cannot be read as a text table ({type(problem).__name__})") from None
    rows = [row for row in rows if any(cell.strip() for cell in row)]
    if len(rows) < 2:
        raise InputError(f"{path.name}: no rows under a header")
    header = [cell.strip().lower() for cell in rows[0]]
    latitude, longitude, time = (
        next((header.index(name) for name in names if name in header), None) for names in (_LATITUDE, _LONGITUDE, _TIME)
    )
    if latitude is None or longitude is None:
        raise InputError(f"{path.name}: name the columns of the positions lat and lon")
    degrees = np.empty((len(rows) - 1, 2))
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(header):
            raise InputError(f"{path.name}: row {number} has {len(row)} cells; the header has {len(header)}")
        for k, (column, name) in enumerate(((latitude, "latitude"), (longitude, "longitude"))):
            degrees[number - 2, k] = read_degrees(row[column], f"{path.name}, row {number}", name)[0]
    wrong = ~((np.abs(degrees[:, 0]) <= 90.0) & (np.abs(degrees[:, 1]) <= 360.0))
    if np.any(wrong):
        raise InputError(f"{path.name}: row {int(np.argmax(wrong)) + 2} has no position on the globe")
    places = KDTree(np.asarray(prior.locations))
    away, positions = places.query(plane.to_metres(degrees[:, 0], degrees[:, 1]))
    spacing = float(np.max(places.query(np.asarray(prior.locations), k=2)[0][:, 1]))
    far = away > 2.0 * spacing
    if np.any(far):
        raise InputError(
            f"{path.name}: row {int(np.argmax(far)) + 2} and {int(np.count_nonzero(far)) - 1} others lie farther from "
            f"every place of the map than {2.0 * spacing / 1000.0:.3g} km; use a map that covers them"
        )
    times = (
        None if time is None else tuple(_time(row[time], f"{path.name}: row {i}") for i, row in enumerate(rows[1:], 2))
    )
    return Checkins(np.asarray(positions, dtype=np.int64), np.asarray(away), times)


def _time(cell: str, place: str) -> str:
    if is_missing(cell):
        return ""
    try:
        instant = parse_instant(cell)
    except ValueError as problem:
        raise InputError(
            f"{place}: the time is {problem}; write times like 2024-05-01T08:30:00Z, or give the column another name "
            "to leave it behind"
        ) from None
    return format_instant(instant.us, instant.style)
