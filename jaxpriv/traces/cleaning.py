"""From the rows of a file to a clean trace, by rules that are stated and counted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.traces.oddities import find_oddities
from jaxpriv.traces.resolution import METRES_PER_DEGREE, measured_step
from jaxpriv.traces.timed import MAX_POINTS, check_cleaned, in_order
from jaxpriv.traces.trace import NO_TIME, Cleaning, Duplicates, RawRows, Trace


_MAX_LONGITUDE = 540.0


def clean(raw: RawRows, max_points: int = MAX_POINTS, strict: bool = False, duplicates: Duplicates = "merge") -> Trace:
    """Sort by time, drop what is no position, wrap longitudes, average rows of one instant; gaps keep their times.

    `duplicates` says what several rows of one instant are: one fix that was written down more than once ("merge"), or
    repeated measurements of one place, each with its own error ("noise"), whose scatter is then measured. Raises
    `InputError` when nothing is left, or when more than `max_points` distinct instants are; with `strict` also when any
    rule had something to repair.
    """
    cleaning, trace = examine(raw, duplicates)
    if trace is None:
        raise InputError(
            f"no row of the file has a usable time and position ({cleaning.rows_read} rows read). "
            f"{' '.join(cleaning.sentences())}".strip()
        )
    check_cleaned(
        cleaning.repairs(), trace.n_points, strict=strict, max_points=max_points, kind="trace", what="positions"
    )
    return replace(trace, odd=find_oddities(raw, trace))


def examine(raw: RawRows, duplicates: Duplicates = "merge") -> tuple[Cleaning, Trace | None]:
    """Apply the rules to a trace of any length: what they did, and the trace, which is None when nothing is left."""
    timed = raw.time_us != NO_TIME
    placed = timed & ~(np.isnan(raw.latitude) | np.isnan(raw.longitude))
    fixed = placed & ~((raw.latitude == 0) & (raw.longitude == 0))
    kept = fixed & (np.abs(raw.latitude) <= 90) & (np.abs(raw.longitude) <= _MAX_LONGITUDE)
    left = [int(np.count_nonzero(mask)) for mask in (timed, placed, fixed, kept)]
    time_us, latitude, longitude = raw.time_us[kept], raw.latitude[kept], raw.longitude[kept]
    wrapped = np.abs(longitude) > 180
    longitude[wrapped] -= np.copysign(360, longitude[wrapped])
    order, distinct, point_of_row, out_of_order = in_order(time_us)
    latitude, longitude = latitude[order], longitude[order]
    repeated = len(order) - len(distinct)
    noise = duplicates == "noise"
    cleaning = Cleaning(
        len(timed),
        missing_time=len(timed) - left[0],
        missing_position=left[0] - left[1],
        zero_fix=left[1] - left[2],
        out_of_range=left[2] - left[3],
        longitude_wrapped=int(np.count_nonzero(wrapped)),
        out_of_order=out_of_order,
        duplicate_rows=0 if noise else repeated,
        repeated_rows=repeated if noise else 0,
        naive_times=raw.naive_times,
        leap_seconds=raw.leap_seconds,
        offset_times=raw.offset_times,
        cut_times=raw.cut_times,
        decimal_commas=raw.decimal_commas,
        other_rows=raw.other_rows,
        scatter_m=_scatter(latitude, longitude, point_of_row) if noise and repeated else None,
    )
    if not len(order):
        return cleaning, None
    step_m = measured_step(latitude, longitude, raw.decimals)
    return cleaning, Trace(raw.style, latitude, longitude, distinct, point_of_row, step_m, cleaning)


def _scatter(latitude: np.ndarray, longitude: np.ndarray, point_of_row: np.ndarray) -> float:
    """Standard deviation in metres of a coordinate of one row about the mean of its instant, pooled over instants."""
    first = np.unique(point_of_row, return_index=True)[1][point_of_row]
    north = latitude - latitude[first]
    east = (longitude - longitude[first] + 180) % 360 - 180
    metres = np.stack([east * np.cos(np.radians(latitude)), north]) * METRES_PER_DEGREE
    counts = np.bincount(point_of_row)
    squares = 0.0
    for values in metres:
        mean = np.bincount(point_of_row, values) / counts
        squares += float(np.sum((values - mean[point_of_row]) ** 2))
    return float(np.sqrt(squares / (2 * (len(point_of_row) - len(counts)))))
