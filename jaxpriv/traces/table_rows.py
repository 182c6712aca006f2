"""The rows of one person of a table, while they are read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from jaxpriv.errors import InputError
from jaxpriv.traces.columns import Columns, find_columns
from jaxpriv.traces.contents import ColumnNames
from jaxpriv.traces.degrees import is_missing, is_number, place_name, with_point
from jaxpriv.traces.gathering import Gathering
from jaxpriv.traces.instants import Instant, TimeStyle, day_first, parse_instant
from jaxpriv.traces.trace import FileStyle, RawRows


_NO_ISO = "; write times like 2024-05-01T08:30:00Z, or pass --columns dates=dmy for times like 20/03/2021 00:22"
# Names of columns that are written again; a spreadsheet would take =lat or @time for a formula.
_WRITTEN = re.compile(r"[A-Za-z][A-Za-z0-9 _.:/()-]*")


class TableRows:
    """Times and positions of one person's rows, whose cells must keep to one way of writing."""

    def __init__(self, columns: Columns, decimal_commas: bool, said: ColumnNames):
        self._columns, self._commas_allowed, self._day_first = columns, decimal_commas, said.day_first
        self._found = Gathering()
        self._pointed = False
        self.style: TimeStyle | None = None

    def __len__(self) -> int:
        return len(self._found.time_us)

    def add(self, place: str | int, cells: Sequence[str]) -> None:
        """Read a row. Raises `InputError`, with its `place` and without any value."""
        instant = self._instant(place, cells)
        latitude, longitude = cells[self._columns.latitude], cells[self._columns.longitude]
        if self._commas_allowed:
            latitude, longitude = self._with_points(place, latitude, longitude)
        self._found.add(instant, latitude, longitude, place)

    def rows(self, style: FileStyle, other_rows: int) -> RawRows:
        """The rows that were read."""
        return self._found.rows(style, other_rows)

    def _instant(self, place: str | int, cells: Sequence[str]) -> Instant | None:
        columns = self._columns
        stamp = cells[columns.time].strip()
        if columns.date is not None and columns.date != columns.time and ":" in stamp and "-" not in stamp[:5]:
            stamp = f"{cells[columns.date].strip()}T{stamp}"
        try:
            instant = parse_instant(day_first(stamp) if self._day_first else stamp)
        except ValueError as problem:
            if is_missing(stamp):
                return None
            hint = "; write times like 2024-05-01T08:30:00Z" if self._day_first else _NO_ISO
            raise InputError(f"{place_name(place)}: the time is {problem}{hint}") from None
        if self.style not in (None, instant.style):
            raise InputError(f"{place_name(place)}: the time is written in another way than in the rows before")
        self.style = instant.style
        return instant

    def _with_points(self, place: str | int, *cells: str) -> tuple[str, str]:
        """The cells of a position written with a point, where all rows have decimal commas."""
        written, comma = [], False
        for name, cell in zip(("latitude", "longitude"), cells, strict=True):
            point = with_point(cell)
            if point is None and self._found.commas and is_number(cell) and "." in cell:
                raise InputError(
                    f"{place_name(place)}: the {name} has a decimal point where rows before have decimal commas"
                )
            written.append(cell if point is None else point)
            comma |= point is not None
        self._pointed = self._pointed or any("." in cell and is_number(cell) for cell in cells)
        if comma and not self._found.commas and self._pointed:
            raise InputError(f"{place_name(place)}: a decimal comma where rows before have decimal points")
        self._found.commas += comma
        return written[0], written[1]


def output_style(
    header: tuple[str, ...], columns: Columns, output: Literal["csv", "geojson"], delimiter: str, rows: TableRows
) -> FileStyle:
    """How a sanitised table is written: with the names of its columns only where they are the usual, harmless ones."""
    names = [header[column].strip() for column in (columns.time, columns.latitude, columns.longitude)]
    again = find_columns(names) if all(_WRITTEN.fullmatch(name) for name in names) else None
    known = again is not None and (again.time, again.latitude, again.longitude) == (0, 1, 2)
    kept = (names[0], names[1], names[2]) if known else ("time", "lat", "lon")
    return FileStyle(output, delimiter, kept, rows.style or "iso")
