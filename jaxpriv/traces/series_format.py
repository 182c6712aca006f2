"""Series of sensors as tables of text: a time column, the value column that is named, and nothing else of the file."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.traces.columns import asked_column, find_columns, is_position, is_row_number
from jaxpriv.traces.contents import ColumnNames, ReadOptions, shown_name
from jaxpriv.traces.degrees import is_missing, is_number, with_point
from jaxpriv.traces.encoding import decode_table
from jaxpriv.traces.instants import TimeStyle, day_first, format_instant, parse_instant
from jaxpriv.traces.series import RawSeries, Series, SeriesStyle, clean_series
from jaxpriv.traces.sources import Source


_DELIMITERS = (",", ";", "\t", "|", " ")
_KINDS = (".csv", ".tsv", ".tab", ".txt", ".dat")
_NUMBERED = re.compile(r"\d+:(?=.)")
# What a name may hold to be written again; a spreadsheet takes others for formulas, and long ones for a message.
_PLAIN_NAME = re.compile(r"[^\W\d][\w .:()%°/²³-]{0,39}")
_LARGEST = 1e15


def read_series(path: Path, column: str, options: ReadOptions | None = None) -> Series:
    """Read and clean one column of a table of text (.csv, .tsv, .txt; also gzipped), with its times.

    `column` is a name of the header or a number from 1. The time column is found by its usual names, or named by
    `options`; a date and a time of day may stand apart. A header may begin with #, number its names (3:Power), or have
    one name fewer than the rows have cells: then the first cell is a row's name. Raises `InputError`: what is wrong, in
    which row, what to do; never a time or value of the file.
    """
    options = options or ReadOptions()
    return clean_series(raw_series(path, column, options), strict=options.strict)


def raw_series(path: Path, column: str, options: ReadOptions) -> RawSeries:
    """Read the rows before cleaning. Raises `InputError` as `read_series` does."""
    path = Path(path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes[-1:] == [".gz"]
    if (suffixes[-2:-1] if packed else suffixes[-1:]) not in [[kind] for kind in _KINDS]:
        raise InputError("a series is read from a table of text: .csv, .tsv or .txt, with .gz after it when packed")
    if options.track is not None:
        raise InputError("a series has no tracks; leave --track out")
    return _read(decode_table(Source.of(path, packed).whole()), column, options)


@dataclass(frozen=True)
class _Layout:
    delimiter: str
    header: tuple[str, ...]
    time: int
    date: int | None
    value: int
    people: tuple[int, ...]
    said: bool


def _read(text: str, column: str, options: ReadOptions) -> RawSeries:
    lines = io.StringIO(text, newline=None)
    first = next((line for line in lines if line.strip()), "")
    layout = _layout(first, column, options)
    rows, named = _rows(text, layout)
    rows, other_rows = _one_device(rows, layout, options)
    times: list[int | None] = []
    values: list[float] = []
    counts = dict.fromkeys(("naive_times", "leap_seconds", "offset_times", "decimal_commas"), 0)
    decimals = 0
    style: TimeStyle | None = None
    for place, cells in rows:
        stamp = _stamp(cells, layout)
        us = None
        if not is_missing(stamp):
            try:
                instant = parse_instant(day_first(stamp) if options.columns.day_first else stamp)
            except ValueError as problem:
                hint = (
                    "" if options.columns.day_first else ", or pass --columns dates=dmy for times like 20/03/2021 00:22"
                )
                raise InputError(
                    f"{place}: the time is {problem}; write times like 2024-05-01T08:30:00Z{hint}"
                ) from None
            if style not in (None, instant.style):
                raise InputError(f"{place}: the time is written in another way than in the rows before")
            us, style = instant.us, instant.style
            counts["naive_times"] += instant.naive
            counts["leap_seconds"] += instant.leap_second
            counts["offset_times"] += instant.offset
        times.append(us)
        value, digits, comma = _value(cells[layout.value], place, layout.delimiter)
        values.append(value)
        decimals = max(decimals, digits)
        counts["decimal_commas"] += comma
    used = {layout.time, layout.value, *(() if layout.date is None else (layout.date,))}
    counts |= {"other_rows": other_rows, "other_columns": len(layout.header) - len(used), "row_names": named}
    written = "," if layout.delimiter == " " else layout.delimiter
    name = layout.header[layout.time]
    kept = SeriesStyle(
        written,
        _kept(name, "time") if find_columns([name, "lat", "lon"]) else "time",
        _kept(layout.header[layout.value], "value"),
        style or "iso",
    )
    if kept.time_name == kept.value_name:
        raise InputError("--series: that is the time column; name the column of the values")
    return RawSeries(kept, times, values, decimals, counts)


def _kept(name: str, otherwise: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else otherwise


def _cells(line: str, delimiter: str) -> list[str]:
    cells = next(csv.reader([line.strip()], delimiter=delimiter, skipinitialspace=delimiter == " "), [])
    if cells and cells[0].lstrip().startswith("#"):
        cells[0] = cells[0].lstrip().lstrip("#")
        cells = cells if cells[0].strip() else cells[1:]
    return [_NUMBERED.sub("", cell.strip()) for cell in cells]


def _layout(first: str, column: str, options: ReadOptions) -> _Layout:
    for delimiter in _DELIMITERS:
        header = _cells(first, delimiter)
        value = asked_column(_NUMBERED.sub("", column.strip()), header)
        if value is None or any(is_number(cell) for cell in header):
            continue
        # The finder wants a position: one is put beside the columns, and the file's own are no use here.
        names = [*("" if is_position(name) else name for name in header), "lat", "lon"]
        found = find_columns(names, _without_position(options))
        if found is not None and value not in (found.time, found.date):
            people = tuple(one for one in found.people if one != value)
            return _Layout(delimiter, tuple(header), found.time, found.date, value, people, found.said)
    raise InputError(
        "--series: the first line does not name that column beside a time column; write its name as the header does, "
        "or its number from 1, and say which column is the time if its name is unusual: --columns time=NAME"
    )


def _without_position(options: ReadOptions) -> ColumnNames:
    if options.columns.latitude is not None or options.columns.longitude is not None:
        raise InputError("--series: a series has no position; leave lat and lon out of --columns")
    return options.columns


def _rows(text: str, layout: _Layout) -> tuple[list[tuple[str, Sequence[str]]], int]:
    """The rows after the header, and how many of them had the name of a row as a cell before the first column."""
    rows, named = [], 0
    width = len(layout.header)
    for number, cells in _split(text, layout.delimiter):
        if len(cells) > width and not any(cell.strip() for cell in cells[width:]):
            cells = cells[:width]
        if len(cells) == width + 1 and named == len(rows):
            cells, named = cells[1:], named + 1
        elif len(cells) != width or named:
            raise InputError(f"row {number}: another number of cells than in the header or in the rows before")
        rows.append((f"row {number}", cells))
    return rows, named


def _split(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    lines = text if delimiter != " " else "\n".join(" ".join(line.split()) for line in text.splitlines())
    reader = csv.reader(io.StringIO(lines, newline=""), delimiter=delimiter, strict=True)
    header_seen = False
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if header_seen:
                yield reader.line_num, cells
            header_seen = True
    except csv.Error:
        raise InputError(f"row {reader.line_num}: not readable as a table (a quotation mark left open?)") from None


def _one_device(rows: list[tuple[str, Sequence[str]]], layout: _Layout, options: ReadOptions):
    """The rows of one device or person, and how many others were left out."""

    def names(column: int) -> set[str]:
        return {cells[column].strip() for _, cells in rows} - {""}

    several = [
        column
        for column in layout.people
        if len(names(column)) > 1
        and (layout.said or not is_row_number(layout.header[column], len(names(column)), len(rows)))
    ]
    if options.who is None:
        if several:
            raise InputError(
                f"the file holds {len(names(several[0]))} people or devices (column "
                f"{shown_name(layout.header[several[0]])}); one series is protected at a time: choose one with "
                "--who NAME"
            )
        return rows, 0
    name = options.who.strip()
    for column in several or layout.people:
        if name and name in names(column):
            kept = [row for row in rows if row[1][column].strip() == name]
            return kept, len(rows) - len(kept)
    raise InputError("--who: no device or person of that name is in the file")


def _stamp(cells: Sequence[str], layout: _Layout) -> str:
    stamp = cells[layout.time].strip()
    if layout.date is not None and layout.date != layout.time and ":" in stamp and "-" not in stamp[:5]:
        stamp = f"{cells[layout.date].strip()}T{stamp}"
    return stamp


def _value(cell: str, place: str, delimiter: str) -> tuple[float, int, bool]:
    """The value (NaN where it is missing), its printed decimals, and whether it had a decimal comma."""
    cell = cell.strip()
    comma = False
    if is_missing(cell):
        return float("nan"), 0, False
    if delimiter != "," and (point := with_point(cell)) is not None:
        cell, comma = point, True
    if not is_number(cell):
        raise InputError(f"{place}: the value is not a number; leave the cell empty where there is none")
    value = float(cell)
    if not abs(value) < _LARGEST:
        raise InputError(f"{place}: the value is too large to be protected")
    mantissa, _, exponent = cell.lower().partition("e")
    return value, max(0, len(mantissa.partition(".")[2]) - int(exponent or 0)), comma


def write_series(style: SeriesStyle, time_us: np.ndarray, values: Sequence[str]) -> str:
    """Write rows (m,) as a table of two columns: instants as the original wrote them, in UTC, and texts of values."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=style.delimiter, lineterminator="\n")
    writer.writerow((style.time_name, style.value_name))
    for us, value in zip(time_us, values, strict=True):
        writer.writerow((format_instant(us, style.time_style), value))
    return buffer.getvalue()
