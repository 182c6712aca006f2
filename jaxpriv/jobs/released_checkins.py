"""The two tables about released check-ins: what may be shared, and which place each was taken for."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from jaxpriv.jobs.checkins import Checkins


def write_released(path: Path, latitude: np.ndarray, longitude: np.ndarray, applied: Checkins) -> None:
    """Write the released positions in degrees, (k,) each, one row a check-in, with its time if there is one."""
    with path.open("x", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["latitude", "longitude"] if applied.times is None else ["time", "latitude", "longitude"])
        for k, (lat, lon) in enumerate(zip(latitude, longitude, strict=True)):
            position = [f"{lat:.7f}", f"{lon:.7f}"]
            writer.writerow(position if applied.times is None else [_inert(applied.times[k]), *position])


def write_applied(path: Path, applied: Checkins) -> None:
    """Write, for the owner's eyes only, the place that each check-in was taken for."""
    with path.open("x", encoding="utf-8", newline="") as file:
        path.chmod(0o600)
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["row", "place", "metres_away"])
        for k, (place, away) in enumerate(zip(applied.positions, applied.away, strict=True)):
            writer.writerow([k + 2, int(place), f"{away:.3f}"])


def _inert(text: str) -> str:
    """The text of a cell that no spreadsheet takes for a formula; a minus sign only begins a number here."""
    return "'" + text if text[:1] in ("=", "+", "@", "\t") else text
