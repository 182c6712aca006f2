"""A cleaned trace: rows in order of time, distinct instants, and what cleaning did."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from jaxpriv.traces.instants import TimeStyle
from jaxpriv.traces.timed import (
    LEAP_SECOND,
    MERGED,
    NAIVE_TIME,
    NO_TIME_DROPPED,
    OFFSET_TIME,
    OUT_OF_ORDER,
    TimedRows,
    counted,
)


if TYPE_CHECKING:
    from jaxpriv.traces.oddities import Oddities

TrackChoice = int | Literal["all"] | None
Duplicates = Literal["merge", "noise"]
# No instant: earlier than any that a file can say.
NO_TIME = int(np.iinfo(np.int64).min)


@dataclass(frozen=True)
class FileStyle:
    """How a file writes its rows, so that the sanitised file reads like the original.

    `columns` are the names of the time, latitude and longitude columns (CSV only); nothing else of a header is kept.
    Formats that are no text (Parquet, GeoPackage) are written as CSV.
    """

    kind: Literal["csv", "gpx", "plt", "geojson"]
    delimiter: str = ","
    columns: tuple[str, str, str] = ("time", "lat", "lon")
    time_style: TimeStyle = "iso"


@dataclass(frozen=True)
class RawRows:
    """What a reader found, before cleaning: one entry a row, `NO_TIME` or NaN where a value is missing.

    `time_us` (r,) int64, `latitude`, `longitude` (r,) float64. `decimals` is the largest number of decimals that a
    position is printed with; `other_rows` are those of other people, or of nobody, that a choice of a person left out.
    Where the file has segments, `segment` (r,) numbers each row's.
    """

    style: FileStyle
    time_us: np.ndarray = field(repr=False)
    latitude: np.ndarray = field(repr=False)
    longitude: np.ndarray = field(repr=False)
    decimals: int
    naive_times: int = 0
    leap_seconds: int = 0
    offset_times: int = 0
    cut_times: int = 0
    decimal_commas: int = 0
    other_rows: int = 0
    segment: np.ndarray | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Cleaning:
    """Counts of what cleaning did. Each dropped row is counted once, at the first rule that drops it.

    `duplicate_rows` were merged with another row of their instant; `repeated_rows` were averaged with it as repeated
    measurements, which scatter by `scatter_m` metres (the standard deviation of one coordinate of one fix).
    """

    rows_read: int
    missing_time: int = 0
    missing_position: int = 0
    zero_fix: int = 0
    out_of_range: int = 0
    longitude_wrapped: int = 0
    out_of_order: int = 0
    duplicate_rows: int = 0
    repeated_rows: int = 0
    naive_times: int = 0
    leap_seconds: int = 0
    offset_times: int = 0
    cut_times: int = 0
    decimal_commas: int = 0
    other_rows: int = 0
    scatter_m: float | None = None

    @property
    def dropped(self) -> int:
        """Rows that are not in the sanitised file."""
        return self.missing_time + self.missing_position + self.zero_fix + self.out_of_range

    def sentences(self) -> list[str]:
        """Say each rule that did something, with its count; an empty list when the file was clean."""
        return counted(self._rules())

    def repairs(self) -> list[str]:
        """Say each rule that strict reading refuses: all that change what the file or the user says."""
        kept = replace(self, offset_times=0, cut_times=0, other_rows=0, repeated_rows=0)
        return kept.sentences()

    def _rules(self) -> list[tuple[int, str]]:
        return [
            (self.missing_time, NO_TIME_DROPPED),
            (self.missing_position, "dropped: no position."),
            (self.zero_fix, "dropped: latitude and longitude exactly 0, which receivers write without a fix."),
            (self.out_of_range, "dropped: latitude outside ±90° or longitude more than one turn out."),
            (self.longitude_wrapped, "with a longitude outside ±180°: brought back by one turn."),
            (self.out_of_order, OUT_OF_ORDER),
            (self.duplicate_rows, MERGED),
            (
                self.repeated_rows,
                "at the instant of another row: averaged with it, as repeated measurements"
                + ("." if self.scatter_m is None else f"; a coordinate of one scatters by {self.scatter_m:.2g} m."),
            ),
            (self.naive_times, NAIVE_TIME),
            (self.leap_seconds, LEAP_SECOND),
            (self.offset_times, OFFSET_TIME),
            (self.cut_times, "with a time finer than a microsecond: the digits beyond are not kept."),
            (self.decimal_commas, "with a decimal comma in a position: read as a decimal point."),
            (self.other_rows, "of other people, or of nobody: left out, as the choice of one person asks."),
        ]


@dataclass(frozen=True)
class Trace(TimedRows):
    """A trace ready for work. Rows (m) are sorted by time; points (n ≤ m) are the distinct instants.

    `latitude`, `longitude` (m,) in degrees; `time_us` (n,) and `point_of_row` (m,) as in `TimedRows`; `step_m` the
    resolution measured in the file's own positions, in metres (0 when it cannot be told); `odd` what looks odd and was
    left as it is. Positions stay out of the representation.
    """

    style: FileStyle
    latitude: np.ndarray = field(repr=False)
    longitude: np.ndarray = field(repr=False)
    time_us: np.ndarray = field(repr=False)
    point_of_row: np.ndarray = field(repr=False)
    step_m: float
    cleaning: Cleaning
    odd: Oddities | None = None

    def mean_by_point(self, values: np.ndarray) -> np.ndarray:
        """Average row values (m, d) over the rows of each instant: (n, d)."""
        totals = np.zeros((self.n_points, values.shape[1]))
        np.add.at(totals, self.point_of_row, values)
        return totals / np.bincount(self.point_of_row, minlength=self.n_points)[:, None]
