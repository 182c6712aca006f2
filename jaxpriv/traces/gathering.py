"""Rows while they are read: numbers in compact arrays, and the counts of what their text said."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

import numpy as np

from jaxpriv.traces.degrees import read_degrees
from jaxpriv.traces.instants import Instant
from jaxpriv.traces.trace import NO_TIME, FileStyle, RawRows


@dataclass
class Gathering:
    """The rows of one person, 24 bytes each."""

    time_us: array = field(default_factory=lambda: array("q"), repr=False)
    latitude: array = field(default_factory=lambda: array("d"), repr=False)
    longitude: array = field(default_factory=lambda: array("d"), repr=False)
    decimals: int = 0
    naive: int = 0
    leap: int = 0
    offset: int = 0
    cut: int = 0
    commas: int = 0

    def add(self, instant: Instant | None, latitude: str, longitude: str, place: str | int) -> None:
        """Add a row. Raises `InputError` that names the `place` for a position that is no number."""
        lat, first = read_degrees(latitude, place, "latitude")
        lon, second = read_degrees(longitude, place, "longitude")
        if instant is None:
            self.time_us.append(NO_TIME)
        else:
            self.time_us.append(instant.us)
            self.naive += instant.naive
            self.leap += instant.leap_second
            self.offset += instant.offset
            self.cut += instant.cut
        self.latitude.append(lat)
        self.longitude.append(lon)
        self.decimals = max(self.decimals, first, second)

    def rows(self, style: FileStyle, other_rows: int = 0, segment: list[int] | None = None) -> RawRows:
        """The rows that were added."""
        return RawRows(
            style,
            np.array(self.time_us, dtype=np.int64),
            np.array(self.latitude, dtype=np.float64),
            np.array(self.longitude, dtype=np.float64),
            self.decimals,
            naive_times=self.naive,
            leap_seconds=self.leap,
            offset_times=self.offset,
            cut_times=self.cut,
            decimal_commas=self.commas,
            other_rows=other_rows,
            segment=None if segment is None else np.array(segment, dtype=np.int64),
        )
