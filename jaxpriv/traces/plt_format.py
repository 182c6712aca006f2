"""GeoLife and OziExplorer track files (PLT)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.traces.gathering import Gathering
from jaxpriv.traces.instants import Instant, format_instant, parse_instant
from jaxpriv.traces.trace import FileStyle, RawRows


_HEADER_LINES = 6
_DAYS = re.compile(r"[+-]?\d{1,9}(\.\d{0,30})?")
_DAY_US = 86_400 * 10**6
_DAY_ZERO_US = int(datetime(1899, 12, 30, tzinfo=UTC).timestamp()) * 10**6


def read_plt(text: str) -> RawRows:
    """Read a PLT file: six header lines, then latitude, longitude, a flag, altitude, day number, date, time of day.

    The count of points in the header is ignored (GeoLife always writes 0). The instant is date and time of day in
    UTC where both are written in ISO 8601, else the day number (days since 1899-12-30, rounded to the millisecond).
    Raises `InputError`, with the row (lines from 1) and without any value, for anything else.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if len(lines) < _HEADER_LINES:
        raise InputError("a PLT file begins with six header lines; this file is shorter")
    if lines[1].strip().upper().replace(" ", "") != "WGS84":
        raise InputError("row 2: the datum is not WGS 84; convert the file to WGS 84 first")
    found = Gathering()
    for row, line in enumerate(lines[_HEADER_LINES:], start=_HEADER_LINES + 1):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split(",")]
        if not 5 <= len(cells) <= 7:
            raise InputError(f"row {row}: {len(cells)} cells where a PLT row has seven (a decimal comma?)")
        # Rows may lack the last two cells, so that a decimal comma does not always show in their number.
        if cells[2] not in ("0", "1", ""):
            raise InputError(f"row {row}: the third cell is not 0 or 1 (a decimal comma?)")
        found.add(_instant(cells, row), cells[0], cells[1], f"row {row}")
    return found.rows(FileStyle("plt"))


def _instant(cells: list[str], row: int) -> Instant | None:
    if len(cells) == 7 and cells[5] and cells[6]:
        try:
            return parse_instant(f"{cells[5]}T{cells[6]}Z")
        except ValueError:
            pass  # OziExplorer writes the date in words of the local language; the day number says it exactly
    if not cells[4] or cells[4].lower() == "nan":
        return None
    if not _DAYS.fullmatch(cells[4]):
        raise InputError(f"row {row}: the day number is not a number, and date and time are not ISO 8601")
    days = Decimal(cells[4])
    if not 0 <= days < 2_000_000:
        raise InputError(f"row {row}: the day number is out of range")
    return Instant(_DAY_ZERO_US + int((days * _DAY_US / 1000).to_integral_value()) * 1000, "iso")


def write_plt(title: str, time_us: np.ndarray, latitude: np.ndarray, longitude: np.ndarray) -> str:
    """Write rows (m,) as a PLT file with CRLF line ends, seven decimals and the altitude for "none", −777.

    `title` goes to the track's name in the header. Positions are padded with spaces to one width.
    """
    lines = [
        "OziExplorer Track Point File Version 2.1",
        "WGS 84",
        "Altitude is in Feet",
        "Reserved 3",
        f"0,2,255,{title},0,0,2,8421376",
        "0",
    ]
    for us, lat, lon in zip(time_us, latitude, longitude, strict=True):
        days = Decimal(int(us) - _DAY_ZERO_US) / _DAY_US
        date, _, clock = format_instant(us).rstrip("Z").partition("T")
        lines.append(f"{lat:11.7f},{lon:12.7f},0,-777,{days:.10f},{date},{clock}")
    return "\r\n".join(lines) + "\r\n"
