"""A cleaned series of a sensor: values in order of time, distinct instants, and what cleaning did."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.mechanisms.data_resolution import measured_resolution
from jaxpriv.traces.instants import TimeStyle
from jaxpriv.traces.trace import Cleaning, FileStyle, Trace


MAX_POINTS = 5000
# With fewer distinct values, common factors of them happen by chance.
_ENOUGH = 10
# A step that is smaller in relation to the spread is that of the numbers in the file, not of the sensor.
_UNROUNDED = 1e-9


@dataclass(frozen=True)
class SeriesStyle:
    """How a file writes its rows: the cells' separator, the names of the two columns that are kept, and the times."""

    delimiter: str = ","
    time_name: str = "time"
    value_name: str = "value"
    time_style: TimeStyle = "iso"


@dataclass(frozen=True)
class SeriesCleaning:
    """Counts of what reading and cleaning did. Each dropped row is counted once, at the first rule that drops it."""

    rows_read: int
    missing_time: int = 0
    missing_value: int = 0
    out_of_order: int = 0
    duplicate_rows: int = 0
    naive_times: int = 0
    leap_seconds: int = 0
    offset_times: int = 0
    decimal_commas: int = 0
    other_rows: int = 0
    other_columns: int = 0
    row_names: int = 0

    @property
    def dropped(self) -> int:
        """Rows that are not in the sanitised file."""
        return self.missing_time + self.missing_value

    def sentences(self) -> list[str]:
        """Say each rule that did something, with its count; an empty list when the file was clean."""
        said = self.repairs()
        for count, text in (
            (self.offset_times, "with a time in another offset: brought to UTC."),
            (self.other_rows, "of other devices, or of none: left out, as --who asks."),
            (self.row_names, "with one cell more than the header: the first cell, a row's name, is left out."),
        ):
            said += [_counted(count, text)] if count else []
        if self.other_columns:
            many = self.other_columns > 1
            said.append(f"{self.other_columns} other column{'s' if many else ''} of the file {'are' if many else 'is'} "
                        "not written.")  # fmt: skip
        return said

    def repairs(self) -> list[str]:
        """Say each rule that strict reading refuses."""
        rules = [
            (self.missing_time, "dropped: no time."),
            (self.missing_value, "dropped: no value."),
            (self.out_of_order, "out of order: sorted by time."),
            (self.duplicate_rows, "at the instant of another row: merged into their mean, written to each of them."),
            (self.naive_times, "with a time without an offset: taken as UTC."),
            (self.leap_seconds, "at the leap second 23:59:60: taken as the first second of the next day."),
            (self.decimal_commas, "with a decimal comma in the value: read as a decimal point."),
        ]
        return [_counted(count, text) for count, text in rules if count]


def _counted(count: int, text: str) -> str:
    return f"{count} row{'s' if count > 1 else ''} {text}"


@dataclass(frozen=True)
class RawSeries:
    """What a reader found, before cleaning: `None` or NaN where a value is missing; `counts` are of its own rules.

    `decimals` is the largest number of decimals that a value is printed with.
    """

    style: SeriesStyle
    time_us: list[int | None] = field(repr=False)
    values: list[float] = field(repr=False)
    decimals: int
    counts: dict[str, int]


@dataclass(frozen=True)
class Series:
    """A series ready for work. Rows (m) are sorted by time; points (n ≤ m) are the distinct instants.

    `rows` (m,) are the values, `time_us` (n,) int64 strictly increasing microseconds since 1970 in UTC, `point_of_row`
    (m,) the point each row belongs to, `step` the lattice that the values lie on, in their unit (0 when it cannot be
    told). Values stay out of the representation.
    """

    style: SeriesStyle
    rows: np.ndarray = field(repr=False)
    time_us: np.ndarray = field(repr=False)
    point_of_row: np.ndarray = field(repr=False)
    step: float
    cleaning: SeriesCleaning

    @property
    def n_points(self) -> int:
        """Number of distinct instants."""
        return len(self.time_us)

    @property
    def n_rows(self) -> int:
        """Number of rows kept, duplicates included."""
        return len(self.point_of_row)

    @property
    def seconds(self) -> np.ndarray:
        """Seconds since the first instant, (n,)."""
        return (self.time_us - self.time_us[0]) / 1e6

    @property
    def median_step_s(self) -> float:
        """Median time between neighbouring points in seconds; 0 for a single point."""
        return float(np.median(np.diff(self.seconds))) if self.n_points > 1 else 0.0

    @property
    def values(self) -> np.ndarray:
        """The mean of the rows of each instant, (n,)."""
        totals = np.bincount(self.point_of_row, weights=self.rows, minlength=self.n_points)
        return totals / np.bincount(self.point_of_row, minlength=self.n_points)

    def on_record(self) -> Trace:
        """The rows as the record of releases takes them: instants and one coordinate, the other being 0."""
        return Trace(
            FileStyle("csv"),
            self.rows,
            np.zeros_like(self.rows),
            self.time_us,
            self.point_of_row,
            0.0,
            Cleaning(self.n_rows),
        )


def clean_series(raw: RawSeries, strict: bool = False, max_points: int = MAX_POINTS) -> Series:
    """Sort by time, drop what has no time or no value, merge rows of one instant; gaps keep their times.

    Raises `InputError` when nothing is left, when more than `max_points` distinct instants are, and with `strict` when
    a rule had something to repair.
    """
    usable = [
        (us, value) for us, value in zip(raw.time_us, raw.values, strict=True) if us is not None and value == value
    ]
    missing_time = sum(us is None for us in raw.time_us)
    time_us = np.array([us for us, _ in usable], dtype=np.int64)
    order = np.argsort(time_us, kind="stable")
    distinct, point_of_row = np.unique(time_us[order], return_inverse=True)
    cleaning = SeriesCleaning(
        len(raw.time_us),
        missing_time=missing_time,
        missing_value=len(raw.time_us) - missing_time - len(usable),
        out_of_order=int(np.count_nonzero(np.diff(time_us) < 0)),
        duplicate_rows=len(usable) - len(distinct),
        **raw.counts,
    )
    if not usable:
        raise InputError(
            f"no row of the file has a time and a value ({cleaning.rows_read} rows read). "
            f"{' '.join(cleaning.sentences())}".strip()
        )
    if strict and cleaning.repairs():
        raise InputError(f"strict reading repairs nothing, and this file needs it: {' '.join(cleaning.repairs())}")
    if len(distinct) > max_points:
        raise InputError(
            f"the series has {len(distinct)} distinct times and at most {max_points} can be protected at once; "
            "cut the file into shorter periods, at times chosen without looking at the values"
        )
    rows = np.array([value for _, value in usable])[order]
    return Series(raw.style, rows, distinct, point_of_row, _step(rows, raw.decimals), cleaning)


def _step(rows: np.ndarray, decimals: int) -> float:
    values = np.unique(rows)
    if len(values) < 2:
        return 0.0
    if len(values) < _ENOUGH:
        return 10.0**-decimals
    step = measured_resolution(values)
    return step if step > _UNROUNDED * float(np.ptp(values)) else 0.0
