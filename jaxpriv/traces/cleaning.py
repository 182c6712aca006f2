"""From the rows of a file to a clean trace, by rules that are stated and counted."""

from __future__ import annotations

import math

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.traces.resolution import measured_step
from jaxpriv.traces.trace import Cleaning, RawRows, Trace


MAX_POINTS = 5000
_MAX_LONGITUDE = 540.0


def clean(raw: RawRows, max_points: int = MAX_POINTS, strict: bool = False) -> Trace:
    """Sort by time, drop what is no position, wrap longitudes, merge rows of one instant; gaps keep their times.

    Raises `InputError` when nothing is left, or when more than `max_points` distinct instants are; with `strict` also
    when any rule had something to repair.
    """
    cleaning, trace = examine(raw)
    if trace is None:
        raise InputError(
            f"no row of the file has a usable time and position ({cleaning.rows_read} rows read). "
            f"{' '.join(cleaning.sentences())}".strip()
        )
    if strict and cleaning.repairs():
        raise InputError(f"strict reading repairs nothing, and this file needs it: {' '.join(cleaning.repairs())}")
    if trace.n_points > max_points:
        raise InputError(
            f"the trace has {trace.n_points} distinct times and at most {max_points} can be protected at once; "
            "cut the file into shorter periods, at times chosen without looking at the positions"
        )
    return trace


def examine(raw: RawRows) -> tuple[Cleaning, Trace | None]:
    """Apply the rules to a trace of any length: what they did, and the trace, which is None when nothing is left."""
    counts = dict.fromkeys(("missing_time", "missing_position", "zero_fix", "out_of_range", "longitude_wrapped"), 0)
    times, latitudes, longitudes = [], [], []
    for time_us, lat, lon in zip(raw.time_us, raw.latitude, raw.longitude, strict=True):
        if time_us is None:
            counts["missing_time"] += 1
        elif math.isnan(lat) or math.isnan(lon):
            counts["missing_position"] += 1
        elif lat == 0 and lon == 0:
            counts["zero_fix"] += 1
        elif not (abs(lat) <= 90 and abs(lon) <= _MAX_LONGITUDE):
            counts["out_of_range"] += 1
        else:
            if abs(lon) > 180:
                counts["longitude_wrapped"] += 1
                lon -= math.copysign(360, lon)
            times.append(time_us)
            latitudes.append(lat)
            longitudes.append(lon)
    time_us = np.array(times, dtype=np.int64)
    order = np.argsort(time_us, kind="stable")
    distinct, point_of_row = np.unique(time_us[order], return_inverse=True)
    cleaning = Cleaning(
        len(raw.time_us),
        **counts,
        out_of_order=int(np.count_nonzero(np.diff(time_us) < 0)),
        duplicate_rows=len(times) - len(distinct),
        naive_times=raw.naive_times,
        leap_seconds=raw.leap_seconds,
        offset_times=raw.offset_times,
        decimal_commas=raw.decimal_commas,
        other_rows=raw.other_rows,
    )
    if not times:
        return cleaning, None
    latitude, longitude = np.array(latitudes)[order], np.array(longitudes)[order]
    step_m = measured_step(latitude, longitude, raw.decimals)
    return cleaning, Trace(raw.style, latitude, longitude, distinct, point_of_row, step_m, cleaning)
