"""Traces as tables of text: one row a position, named columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.traces.columns import Columns, find_columns, is_row_number
from jaxpriv.traces.degrees import is_missing, read_degrees
from jaxpriv.traces.instants import TimeStyle, format_instant, parse_instant
from jaxpriv.traces.trace import FileStyle, RawRows


_DELIMITERS = (",", ";", "\t", "|")


def read_csv(text: str) -> RawRows:
    """Read a table with a header; the delimiter is a comma, a semicolon, a tab or a vertical bar.

    Empty cells, NA, NaN and null are missing values. Raises `InputError`, with the row (the header is row 1) and
    without any value, for cells that are not what their column says, for a row of another length than the header,
    and for a table of more than one person.
    """
    delimiter, columns, header = _find_header(text)
    people: list[set[str]] = [set() for _ in columns.people]
    times: list[int | None] = []
    positions: tuple[list[float], list[float]] = ([], [])
    decimals = naive = leap = 0
    style: TimeStyle | None = None
    for row, cells in _rows(text, delimiter, len(header)):
        stamp = cells[columns.time].strip()
        if (
            columns.date is not None
            and columns.date != columns.time
            and stamp
            and ":" in stamp
            and "-" not in stamp[:5]
        ):
            stamp = f"{cells[columns.date].strip()}T{stamp}"
        if is_missing(stamp):
            times.append(None)
        else:
            try:
                instant = parse_instant(stamp)
            except ValueError as problem:
                raise InputError(f"row {row}: the time is {problem}; write times like 2024-05-01T08:30:00Z") from None
            if style not in (None, instant.style):
                raise InputError(f"row {row}: the time is written in another way than in the rows before")
            style = instant.style
            naive, leap = naive + instant.naive, leap + instant.leap_second
            times.append(instant.us)
        for name, column, values in zip(
            ("latitude", "longitude"), (columns.latitude, columns.longitude), positions, strict=True
        ):
            value, digits = read_degrees(cells[column], f"row {row}", name)
            values.append(value)
            decimals = max(decimals, digits)
        for column, seen in zip(columns.people, people, strict=True):
            if not is_missing(cells[column]):
                seen.add(cells[column].strip())
    for column, seen in zip(columns.people, people, strict=True):
        if len(seen) > 1 and not is_row_number(header[column], seen, len(times)):
            raise InputError(
                f"the file holds {len(seen)} people or devices (column {column + 1} of the header); "
                "one trace is protected at a time: split the file by that column"
            )
    names = tuple(header[column].strip() for column in (columns.time, columns.latitude, columns.longitude))
    file_style = FileStyle("csv", delimiter, (names[0], names[1], names[2]), style or "iso")
    return RawRows(file_style, times, positions[0], positions[1], decimals, naive, leap)


def _find_header(text: str) -> tuple[str, Columns, list[str]]:
    first = next((line for line in io.StringIO(text, newline=None) if line.strip()), "")
    for delimiter in _DELIMITERS:
        header = next(csv.reader([first], delimiter=delimiter), [])
        columns = find_columns(header)
        if columns is not None:
            return delimiter, columns, header
    raise InputError(
        "the first line does not name a time, a latitude and a longitude column; name them time, lat and lon "
        "(as in GeoLife, Movebank, T-Drive and AIS exports, other common names are known)"
    )


def _rows(text: str, delimiter: str, width: int) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header_seen = False
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if not header_seen:
                header_seen = True
                continue
            if len(cells) < width or any(cell.strip() for cell in cells[width:]):
                raise InputError(
                    f"row {reader.line_num}: {len(cells)} cells where the header has {width} "
                    "(decimal commas in a file separated by commas look like this)"
                )
            yield reader.line_num, cells
    except csv.Error:
        raise InputError(f"row {reader.line_num}: not readable as a table (a quotation mark left open?)") from None


def write_csv(style: FileStyle, time_us: np.ndarray, latitude: np.ndarray, longitude: np.ndarray) -> str:
    """Write rows (m,) as a table of three columns: instants as the original wrote them, in UTC; seven decimals."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=style.delimiter, lineterminator="\n")
    writer.writerow(style.columns)
    for us, lat, lon in zip(time_us, latitude, longitude, strict=True):
        writer.writerow((format_instant(us, style.time_style), f"{lat:.7f}", f"{lon:.7f}"))
    return buffer.getvalue()
