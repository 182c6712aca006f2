"""Tables whose cells have types (Parquet, GeoPackage), brought to the text that table reading knows."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np

from jaxpriv.errors import InputError


MAX_ROWS = 1_000_000
MAX_UNPACKED = 2**28
_POINT = 1


def cell_text(value: Any) -> str:
    """A value as the text that a table would have: ISO 8601 for times, shortest digits for numbers, "" for none.

    Raises `InputError` for a value that is no text, number or time.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, (datetime, date, time)):
        # What pandas calls NaT compares unequal to itself.
        return value.isoformat() if value == value else ""
    if isinstance(value, np.datetime64):
        return "" if np.isnat(value) else str(value.astype("datetime64[us]"))
    if isinstance(value, np.generic):
        # As its own type, so that single precision keeps its digits.
        return "" if value != value else str(value)
    if not isinstance(value, (str, int, float, Decimal)):
        raise InputError("a column of time, position or person holds neither text, numbers nor times")
    return str(value)


def check_rows(rows: int) -> None:
    """Raise `InputError` when a table that is read in one piece has more rows than can be held."""
    if rows > MAX_ROWS:
        raise InputError(f"the table has {rows} rows and at most {MAX_ROWS} can be read; cut it into shorter periods")


def wkb_positions(geometries: Sequence[bytes | None], first: int = 1) -> list[tuple[str, str]]:
    """Latitude and longitude as text of points in well-known binary (ISO or extended), which has the longitude first.

    Missing and empty points give empty text; `first` is the number of the first row. Raises `InputError` for other
    geometries.
    """
    positions = []
    for number, geometry in enumerate(geometries, first):
        if geometry is None:
            positions.append(("", ""))
            continue
        try:
            order = "<" if geometry[0] == 1 else ">"
            (kind,) = struct.unpack_from(f"{order}I", geometry, 1)
            # Extended well-known binary flags a reference system, which four bytes name.
            start = 9 if kind & 0x20000000 else 5
            longitude, latitude = struct.unpack_from(f"{order}2d", geometry, start)
        except (struct.error, IndexError):
            raise InputError(f"row {number}: its geometry is not readable") from None
        if (kind & 0xFFFF) % 1000 != _POINT:
            raise InputError(f"row {number}: its geometry is no point; keep the points of the track with their times")
        positions.append((cell_text(latitude), cell_text(longitude)))
    return positions
