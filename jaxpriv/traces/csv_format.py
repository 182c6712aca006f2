"""Traces as tables of text: one row a position, columns known by name, by number, or by their shape."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.traces.columns import Columns, find_columns
from jaxpriv.traces.contents import ColumnNames, Contents, ReadOptions
from jaxpriv.traces.degrees import is_missing, is_number, with_point
from jaxpriv.traces.instants import day_first, format_instant, parse_instant
from jaxpriv.traces.tables import Row, Table, read_table
from jaxpriv.traces.trace import FileStyle, RawRows


_DELIMITERS = (",", ";", "\t", "|")
_SPACE = " "


def read_csv(text: str) -> RawRows:
    """Read the table of one person, with a header. Raises `InputError` as `csv_contents` does, and for several."""
    return csv_contents(io.StringIO(text, newline="").readlines(), ReadOptions()).one_person()


def csv_contents(lines: Iterable[str], options: ReadOptions, headerless: bool = False) -> Contents:
    """Read a table of text; cells are separated by a comma, a semicolon, a tab, a vertical bar, or spaces.

    `lines`, with their ends, can be gone through several times. Empty cells, NA, NaN and null are missing values.
    Decimal commas are read where no comma separates cells. With `headerless`, tables without a header are read when
    their rows look like T-Drive's (number, time, longitude, latitude) or Cabspotting's (latitude, longitude, 0 or 1,
    epoch seconds); others need the numbers of their columns. Raises `InputError`, with the row (lines from 1) and
    without any value, for a row of another length than the first, and as `read_table` does.
    """
    first = next((line for line in lines if line.strip()), "").rstrip("\r\n")
    named = _named(first, options.columns)
    found = named or _unnamed(first, options.columns, headerless)
    if found is None:
        raise InputError(
            "the first line does not name a time, a latitude and a longitude column; name them time, lat and lon "
            "(as in GeoLife, Movebank, T-Drive and AIS exports, other common names are known), or say which they are: "
            "--columns time=NAME,lat=NAME,lon=NAME, by numbers from 1 when there is no header"
        )
    delimiter, columns, header = found
    rows = _Rows(lines, delimiter, len(header), named is not None)
    # Files of text without quotation are written again with commas where spaces separated the cells.
    written = "," if delimiter == _SPACE else delimiter
    kind = {",": "CSV", ";": "CSV (semicolons)", "\t": "TSV", "|": "CSV (vertical bars)", _SPACE: "text (spaces)"}
    name = kind[delimiter] + ("" if named else ", no header")
    return read_table(Table(name, header, columns, rows, "csv", written, delimiter != ","), options)


def _cells(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter, skipinitialspace=delimiter == _SPACE), [])
    except csv.Error:  # a cell of more than a hundred thousand characters
        return []


def _named(first: str, said: ColumnNames) -> tuple[str, Columns, tuple[str, ...]] | None:
    for delimiter in (*_DELIMITERS, _SPACE):
        header = _cells(first.strip() if delimiter == _SPACE else first, delimiter)
        columns = find_columns(header, said)
        if columns is not None and not any(_looks_like_data(header, columns)):
            return delimiter, columns, tuple(header)
    return None


def _unnamed(first: str, said: ColumnNames, headerless: bool) -> tuple[str, Columns, tuple[str, ...]] | None:
    for delimiter in (*_DELIMITERS, _SPACE):
        cells = _cells(first.strip() if delimiter == _SPACE else first, delimiter)
        numbered = tuple(f"column {number}" for number in range(1, len(cells) + 1))
        columns = find_columns(numbered, said) if said.time and said.latitude and said.longitude else None
        if columns is not None and all(_looks_like_data(cells, columns)):
            return delimiter, columns, numbered
        if columns is None and headerless and said == ColumnNames() and len(cells) == 4:
            columns = _known_shape([cell.strip() for cell in cells])
            if columns is not None:
                return delimiter, columns, numbered
    return None


def _known_shape(cells: list[str]) -> Columns | None:
    if cells[0].isdigit() and _is_time(cells[1]) and all(is_number(cell) for cell in cells[2:]):
        return Columns(time=1, latitude=3, longitude=2, date=None, people=(0,))
    pair = is_number(cells[0]) and is_number(cells[1]) and abs(float(cells[0])) <= 90
    if pair and cells[2] in ("0", "1") and cells[3].isdigit() and len(cells[3]) >= 9:
        return Columns(time=3, latitude=0, longitude=1, date=None, people=())
    return None


def _looks_like_data(cells: Sequence[str], columns: Columns) -> list[bool]:
    """Whether each of the cells of time, latitude and longitude is a value rather than the name of a column."""
    numbers = [cells[column] for column in (columns.latitude, columns.longitude)]
    return [
        is_missing(cells[columns.time]) or _is_time(day_first(cells[columns.time]), also_number=True),
        *(is_missing(cell) or is_number(cell) or with_point(cell) is not None for cell in numbers),
    ]


def _is_time(cell: str, also_number: bool = False) -> bool:
    try:
        return parse_instant(cell).style == "iso" or also_number
    except ValueError:
        return False


@dataclass(frozen=True)
class _Rows:
    """The rows of a table, read again for each iteration; the first is passed over where it is a header."""

    lines: Iterable[str]
    delimiter: str
    width: int
    header: bool

    def __iter__(self) -> Iterator[Row]:
        width, skip = self.width, self.header
        spaces = self.delimiter == _SPACE
        reader = csv.reader(self.lines, delimiter=self.delimiter, strict=True, skipinitialspace=spaces)
        try:
            for cells in reader:
                whole = len(cells) == width
                if not (whole and cells[0].strip()) and not any(map(str.strip, cells)):
                    continue
                if skip:
                    skip = False
                    continue
                if not whole and (len(cells) < width or any(map(str.strip, cells[width:]))):
                    raise InputError(
                        f"row {reader.line_num}: {len(cells)} cells where the "
                        f"{'header' if self.header else 'first row'} has {width} (decimal commas in a file separated "
                        "by commas look like this)"
                    )
                yield reader.line_num, cells
        except csv.Error:
            raise InputError(f"row {reader.line_num}: not readable as a table (a quotation mark left open?)") from None


def write_csv(style: FileStyle, time_us: np.ndarray, latitude: np.ndarray, longitude: np.ndarray) -> str:
    """Write rows (m,) as a table of three columns: instants as the original wrote them, in UTC; seven decimals.

    Positions are padded with spaces to one width, so that the length of a file tells nothing of them.
    """
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=style.delimiter, lineterminator="\n")
    writer.writerow(style.columns)
    for us, lat, lon in zip(time_us, latitude, longitude, strict=True):
        writer.writerow((format_instant(us, style.time_style), f"{lat:11.7f}", f"{lon:12.7f}"))
    return buffer.getvalue()
