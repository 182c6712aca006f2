"""A cleaned series of a sensor: values in order of time, distinct instants, and what cleaning did."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.mechanisms.data_resolution import measured_resolution
from jaxpriv.traces.instants import TimeStyle
from jaxpriv.traces.timed import (
    LEAP_SECOND,
    MAX_POINTS,
    MERGED,
    NAIVE_TIME,
    NO_TIME_DROPPED,
    OFFSET_TIME,
    OUT_OF_ORDER,
    TimedRows,
    check_cleaned,
    counted,
    in_order,
)
from jaxpriv.traces.trace import Cleaning, FileStyle, Trace


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
        said = self.repairs() + counted(
            [
                (self.offset_times, OFFSET_TIME),
                (self.other_rows, "of other devices, or of none: left out, as --who asks."),
                (self.row_names, "with one cell more than the header: the first cell, a row's name, is left out."),
            ]
        )
        if self.other_columns:
            many = self.other_columns > 1
            said.append(f"{self.other_columns} other column{'s' if many else ''} of the file {'are' if many else 'is'} "
                        "not written.")  # fmt: skip
        return said

    def repairs(self) -> list[str]:
        """Say each rule that strict reading refuses."""
        return counted(
            [
                (self.missing_time, NO_TIME_DROPPED),
                (self.missing_value, "dropped: no value."),
                (self.out_of_order, OUT_OF_ORDER),
                (self.duplicate_rows, MERGED),
                (self.naive_times, NAIVE_TIME),
                (self.leap_seconds, LEAP_SECOND),
                (self.decimal_commas, "with a decimal comma in the value: read as a decimal point."),
            ]
        )


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
class Series(TimedRows):
    """A series ready for work. Rows (m) are sorted by time; points (n ≤ m) are the distinct instants.

    `rows` (m,) are the values, `time_us` (n,) and `point_of_row` (m,) as in `TimedRows`, `step` the lattice that the
    values lie on, in their unit (0 when it cannot be told). Values stay out of the representation.
    """

    style: SeriesStyle
    rows: np.ndarray = field(repr=False)
    time_us: np.ndarray = field(repr=False)
    point_of_row: np.ndarray = field(repr=False)
    step: float
    cleaning: SeriesCleaning

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
    order, distinct, point_of_row, out_of_order = in_order(time_us)
    cleaning = SeriesCleaning(
        len(raw.time_us),
        missing_time=missing_time,
        missing_value=len(raw.time_us) - missing_time - len(usable),
        out_of_order=out_of_order,
        duplicate_rows=len(usable) - len(distinct),
        **raw.counts,
    )
    if not usable:
        raise InputError(
            f"no row of the file has a time and a value ({cleaning.rows_read} rows read). "
            f"{' '.join(cleaning.sentences())}".strip()
        )
    check_cleaned(cleaning.repairs(), len(distinct), strict=strict, max_points=max_points, kind="series", what="values")
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
