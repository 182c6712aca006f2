"""Quantities on the command line, with units (200m, 0.2km, 60s, 5min, 1h) or in the unit of a column (0.5)."""

from __future__ import annotations

import math
import re
from typing import Literal

from jaxpriv.errors import InputError


_LENGTHS = {"mm": 1e-3, "cm": 1e-2, "m": 1.0, "km": 1e3}
_DURATIONS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_BYTES = {"MB": 1e6, "GB": 1e9, "MiB": 2.0**20, "GiB": 2.0**30}
_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*([A-Za-zµ]*)")


def parse_length(option: str, text: str) -> float:
    """Read a length in mm, cm, m or km, in metres; `option` is named in the `InputError` for anything else."""
    return _parse(option, text, _LENGTHS, "200m or 0.2km")


def parse_duration(option: str, text: str) -> float:
    """Read a time span in ms, s, min, h or d, in seconds; `option` is named in the `InputError` for anything else."""
    return _parse(option, text, _DURATIONS, "60s, 5min or 1h")


def parse_bytes(option: str, text: str) -> float:
    """Read a size of memory in MB, GB, MiB or GiB, in bytes; `option` is named in the `InputError` for all else."""
    return _parse(option, text, _BYTES, "2GB")


def parse_size(option: str, text: str) -> float:
    """Read a plain number, in the unit of a column; `option` is named in the `InputError` for anything else."""
    match = _QUANTITY.fullmatch(text.strip())
    if match is None or match[2] or not 0 <= float(match[1]) < math.inf:
        raise InputError(
            f"{option} {text}: with --series write a plain number, in the unit of the column, such as {option} 0.5"
        )
    return float(match[1])


def parse_time(option: str, text: str) -> int:
    """Read an ISO 8601 time with an offset from UTC, in microseconds since 1970."""
    from jaxpriv.traces.instants import parse_instant

    try:
        instant = parse_instant(text)
        if instant.style != "iso" or instant.naive:
            raise ValueError("not a date and time with its offset from UTC")
    except ValueError as problem:
        raise InputError(f"{option} {text}: {problem}; write it as 2024-05-01T08:30:00Z") from None
    return instant.us


def parse_origin(option: str, text: str) -> tuple[float, float]:
    """Read LAT,LON in degrees."""
    parts = text.split(",")
    try:
        latitude, longitude = (float(part) for part in parts)
    except ValueError:
        raise InputError(f"{option}: write latitude and longitude in degrees, such as {option} 48.2,16.4") from None
    return latitude, longitude


def parse_track(text: str | None) -> int | Literal["all"] | None:
    """Read the number of a track, from 1, or all."""
    if text is None or text == "all":
        return text
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) < 1:
        raise InputError("--track: write the number of a track, from 1, or all")
    return int(text)


def _parse(option: str, text: str, units: dict[str, float], example: str) -> float:
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        raise InputError(f"{option} {text}: not a quantity; write a number with its unit, such as {example}")
    number, unit = match.groups()
    if not unit:
        raise InputError(f"{option} {text}: the unit is missing; write {example}")
    if unit not in units:
        raise InputError(f"{option} {text}: the unit {unit} is not known here; use one of {', '.join(units)}")
    value = float(number) * units[unit]
    if not math.isfinite(value) or value < 0:
        raise InputError(f"{option} {text}: it must be a finite quantity that is not negative")
    return value
