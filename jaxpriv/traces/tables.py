"""From the cells of a table to the rows of each person, whichever format the cells came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from jaxpriv.errors import InputError
from jaxpriv.traces.columns import Columns, find_columns, is_row_number
from jaxpriv.traces.contents import Contents, Person, ReadOptions, shown_name
from jaxpriv.traces.degrees import is_missing, is_number, read_degrees, with_point
from jaxpriv.traces.instants import TimeStyle, day_first, parse_instant
from jaxpriv.traces.trace import FileStyle, RawRows


Row = tuple[str, Sequence[str]]
_NO_ISO = "; write times like 2024-05-01T08:30:00Z, or pass --columns dates=dmy for times like 20/03/2021 00:22"


@dataclass(frozen=True)
class Table:
    """Cells as text. Each row has a place (row 5) for messages; `decimal_commas` tells that no comma separates cells.

    `output` is the format in which a sanitised trace is written, with `delimiter` for CSV. Messages call a column by
    its name where `named`, else by its number, which tells less of the file.
    """

    kind: str
    header: tuple[str, ...]
    columns: Columns
    rows: list[Row] = field(repr=False)
    output: Literal["csv", "geojson"] = "csv"
    delimiter: str = ","
    decimal_commas: bool = False
    named: bool = False

    def label(self, column: int) -> str:
        """How messages call a column."""
        return f"column {shown_name(self.header[column])}" if self.named else f"column {column + 1} of the header"


def read_table(table: Table, options: ReadOptions) -> Contents:
    """Read the rows of every person of a table, or of the one that `options.who` names.

    Raises `InputError`, with the place and without any value, for cells that are not what their column says, and for
    a person who is not in the file.
    """
    who, trips = _who(table, options)
    groups: dict[str, list[Row]] = {}
    for row in table.rows:
        groups.setdefault("" if who is None else _cell(row, who), []).append(row)
    left_out = 0
    if options.who is not None and who is not None:
        left_out = len(table.rows) - len(groups[options.who.strip()])
        groups = {options.who.strip(): groups[options.who.strip()]}
    people = tuple(
        Person(name or None, _read_rows(table, rows, options, left_out)) for name, rows in groups.items()
    ) or (Person(None, _read_rows(table, [], options, 0)),)
    if options.who is not None and not table.columns.said and not trips:
        _refuse_mixture(table, next(iter(groups.values())), who)
    columns = table.columns
    used = {"time": columns.time, "latitude": columns.latitude, "longitude": columns.longitude}
    used |= {} if columns.date is None else {"date": columns.date}
    used |= {} if who is None else {"trip" if trips else "person": who}
    return Contents(
        table.kind,
        people,
        None if who is None else table.label(who),
        trips,
        {name: table.header[column].strip() for name, column in used.items()},
        {"trips": _distinct(table.rows, columns.trips[0])} if columns.trips else {},
    )


def _cell(row: Row, column: int) -> str:
    text = row[1][column].strip()
    return "" if is_missing(text) else text


def _distinct(rows: list[Row], column: int) -> int:
    return len({_cell(row, column) for row in rows} - {""})


def _who(table: Table, options: ReadOptions) -> tuple[int | None, bool]:
    """The column that tells people apart (None when one person's rows are all there is), and whether it is of trips."""
    columns, rows = table.columns, table.rows
    people = [
        column
        for column in columns.people
        if columns.said or not is_row_number(table.header[column], _distinct(rows, column), len(rows))
    ]
    # A column that names people, were it always the same person, says that the trips are that person's.
    trips = [] if people or options.track == "all" else list(columns.trips)
    candidates = people or trips
    several = [column for column in candidates if _distinct(rows, column) > 1]
    if options.who is None:
        return (several[0] if several else None), bool(several and not people)
    name = options.who.strip()
    for column in several or candidates:
        if name and any(_cell(row, column) == name for row in rows):
            return column, not people
    if not candidates:
        raise InputError("no column of the file tells people apart; leave --who out, or name it: --columns who=COLUMN")
    raise InputError("--who: nobody of that name is in the file; jaxpriv inspect FILE lists the names")


def _refuse_mixture(table: Table, rows: list[Row], who: int | None) -> None:
    for column in table.columns.people:
        count = _distinct(rows, column)
        if column != who and count > 1 and not is_row_number(table.header[column], count, len(rows)):
            raise InputError(
                f"the rows of that name are of {count} people or devices ({table.label(column)}); if they "
                "are one person's, say so by --columns who=COLUMN with the column that counts"
            )


def _read_rows(table: Table, rows: list[Row], options: ReadOptions, left_out: int) -> RawRows:
    columns = table.columns
    times: list[int | None] = []
    positions: tuple[list[float], list[float]] = ([], [])
    decimals = naive = leap = offsets = commas = 0
    style: TimeStyle | None = None
    for place, cells in rows:
        stamp = _stamp(cells, columns)
        if is_missing(stamp):
            times.append(None)
        else:
            try:
                instant = parse_instant(day_first(stamp) if options.columns.day_first else stamp)
            except ValueError as problem:
                hint = "; write times like 2024-05-01T08:30:00Z" if options.columns.day_first else _NO_ISO
                raise InputError(f"{place}: the time is {problem}{hint}") from None
            if style not in (None, instant.style):
                raise InputError(f"{place}: the time is written in another way than in the rows before")
            style = instant.style
            naive, leap, offsets = naive + instant.naive, leap + instant.leap_second, offsets + instant.offset
            times.append(instant.us)
        comma = False
        for name, column, values in zip(
            ("latitude", "longitude"), (columns.latitude, columns.longitude), positions, strict=True
        ):
            cell = cells[column]
            if table.decimal_commas and (point := with_point(cell)) is not None:
                cell, comma = point, True
            elif commas and is_number(cell) and "." in cell:
                raise InputError(f"{place}: the {name} has a decimal point where rows before have decimal commas")
            value, digits = read_degrees(cell, place, name)
            values.append(value)
            decimals = max(decimals, digits)
        if comma and commas == 0 and _has_point(rows[: len(times)], columns):
            raise InputError(f"{place}: a decimal comma where rows before have decimal points")
        commas += comma
    return RawRows(_style(table, style), times, *positions, decimals, naive, leap, offsets, commas, left_out)


def _has_point(rows: list[Row], columns: Columns) -> bool:
    return any("." in cells[column] for _, cells in rows for column in (columns.latitude, columns.longitude))


def _stamp(cells: Sequence[str], columns: Columns) -> str:
    stamp = cells[columns.time].strip()
    if columns.date is not None and columns.date != columns.time and stamp and ":" in stamp and "-" not in stamp[:5]:
        stamp = f"{cells[columns.date].strip()}T{stamp}"
    return stamp


def _style(table: Table, style: TimeStyle | None) -> FileStyle:
    columns = table.columns
    names = [table.header[column].strip() for column in (columns.time, columns.latitude, columns.longitude)]
    again = find_columns(names)
    known = again is not None and (again.time, again.latitude, again.longitude) == (0, 1, 2)
    kept = (names[0], names[1], names[2]) if known else ("time", "lat", "lon")
    return FileStyle(table.output, table.delimiter, kept, style or "iso")
