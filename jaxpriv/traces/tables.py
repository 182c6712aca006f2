"""From the cells of a table to the rows of each person, whichever format the cells came from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from jaxpriv.errors import InputError
from jaxpriv.traces.columns import Columns, is_row_number
from jaxpriv.traces.contents import Contents, Person, ReadOptions, shown_name
from jaxpriv.traces.distinct import MAX_VALUES, Distinct, plain_value
from jaxpriv.traces.table_rows import TableRows, output_style
from jaxpriv.traces.trace import RawRows


# A row's place in messages (a number stands for row 5), and its cells.
Row = tuple[str | int, Sequence[str]]
# Rows that are held at once, 24 bytes each, and rows of one person, a few times as much while they are sorted.
MAX_HELD, MAX_ROWS = 6_000_000, 2_000_000
_MAX_PEOPLE_HELD = 20_000


@dataclass(frozen=True)
class Table:
    """Cells as text. `rows` can be gone through several times; `decimal_commas` tells that no comma separates cells.

    `output` is the format in which a sanitised trace is written, with `delimiter` for CSV. Messages call a column by
    its name where `named`, else by its number, which tells less of the file.
    """

    kind: str
    header: tuple[str, ...]
    columns: Columns
    rows: Iterable[Row] = field(repr=False)
    output: Literal["csv", "geojson"] = "csv"
    delimiter: str = ","
    decimal_commas: bool = False
    named: bool = False

    def label(self, column: int) -> str:
        """How messages call a column."""
        return f"column {shown_name(self.header[column])}" if self.named else f"column {column + 1} of the header"


def read_table(table: Table, options: ReadOptions) -> Contents:
    """Go through a table once, and find whose rows it holds; the rows are read where `people` of the result is used.

    Rows of other people than the one that `options.who` names are passed over. Raises `InputError` for a person who is
    not in the file; reading raises it, with the place and without any value, for cells that are not what their column
    says.
    """
    values = {column: Distinct(table.label(column)) for column in (*table.columns.people, *table.columns.trips)}
    total = 0
    for _, cells in table.rows:
        total += 1
        for column, found in values.items():
            found.add(cells[column])
    who, trips = _who(table, options, values, total)
    sizes = {"": total} if who is None else dict(values[who].counts)
    if options.who is not None and who is not None:
        sizes = {options.who.strip(): sizes[options.who.strip()]}
    people = TablePeople(table, options, who, trips, sizes, total - sum(sizes.values()))
    columns = table.columns
    used = {"time": columns.time, "latitude": columns.latitude, "longitude": columns.longitude}
    used |= {} if columns.date is None else {"date": columns.date}
    used |= {} if who is None else {"trip" if trips else "person": who}
    counts = {"trips": values[columns.trips[0]].number} if columns.trips and values[columns.trips[0]].known else {}
    return Contents(
        table.kind,
        people,
        tuple(name for name in sizes if name),
        None if who is None else table.label(who),
        trips,
        {name: table.header[column].strip() for name, column in used.items()},
        counts,
    )


def _who(table: Table, options: ReadOptions, values: dict[int, Distinct], rows: int) -> tuple[int | None, bool]:
    """The column that tells people apart (None when one person's rows are all there is), and whether it is of trips."""
    columns = table.columns
    people = [
        column
        for column in columns.people
        if columns.said or not is_row_number(table.header[column], values[column].number, rows)
    ]
    # A column that names people, were it always the same person, says that the trips are that person's.
    trips = [] if people or options.track == "all" else list(columns.trips)
    candidates = people or trips
    several = [column for column in candidates if values[column].number > 1]
    if options.who is None:
        return (several[0] if several else None), bool(several and not people)
    name = options.who.strip()
    for column in several or candidates:
        if name and name in values[column].counts:
            return column, not people
    if not candidates:
        raise InputError("no column of the file tells people apart; leave --who out, or name it: --columns who=COLUMN")
    raise InputError("--who: nobody of that name is in the file; jaxpriv inspect FILE lists the names")


@dataclass(frozen=True)
class TablePeople:
    """The people of a table, or its one person. Each iteration reads their rows, as many at once as can be held."""

    table: Table = field(repr=False)
    options: ReadOptions
    who: int | None
    trips: bool
    sizes: dict[str, int] = field(repr=False)
    left_out: int

    def __len__(self) -> int:
        return max(len(self.sizes), 1)

    def __iter__(self) -> Iterator[Person]:
        batch: list[str] = []
        held = 0
        for name, size in self.sizes.items():
            if batch and (held + size > MAX_HELD or len(batch) >= _MAX_PEOPLE_HELD):
                yield from self._read(batch)
                batch, held = [], 0
            batch.append(name)
            held += size
        yield from self._read(batch or [""])

    def _read(self, names: list[str]) -> Iterator[Person]:
        if any(self.sizes.get(name, 0) > MAX_ROWS for name in names):
            whose = "the file has" if self.who is None else "one person has"
            raise InputError(
                f"{whose} more than {MAX_ROWS} rows, too many for a trace; cut the file into shorter periods, at times "
                "chosen without looking at the positions"
            )
        found = {name: TableRows(self.table.columns, self.table.decimal_commas, self.options.columns) for name in names}
        others = self._others()
        of_cell: dict[str, TableRows | None] = {}
        for place, cells in self.table.rows:
            cell = "" if self.who is None else cells[self.who]
            if cell not in of_cell and len(of_cell) <= 2 * MAX_VALUES:
                of_cell[cell] = found.get(plain_value(cell))
            person = of_cell.get(cell)
            if person is not None:
                person.add(place, cells)
                for column, values in others.items():
                    values.add(cells[column])
        if any(len(found[name]) != self.sizes.get(name, 0) for name in names):
            raise InputError("the file changes while it is read; make a copy of it first")
        for column, values in others.items():
            self._refuse_mixture(column, values, len(found[names[0]]))
        for name in names:
            yield Person(name or None, self._rows(found.pop(name)))

    def _rows(self, rows: TableRows) -> RawRows:
        table = self.table
        return rows.rows(output_style(table.header, table.columns, table.output, table.delimiter, rows), self.left_out)

    def _others(self) -> dict[int, Distinct]:
        """Of the rows of a chosen person, the values of other columns that tell people apart."""
        if self.options.who is None or self.table.columns.said or self.trips:
            return {}
        return {c: Distinct(self.table.label(c)) for c in self.table.columns.people if c != self.who}

    def _refuse_mixture(self, column: int, values: Distinct, rows: int) -> None:
        count = values.number
        if count > 1 and not is_row_number(self.table.header[column], count, rows):
            raise InputError(
                f"the rows of that name are of {count} people or devices ({self.table.label(column)}); if they "
                "are one person's, say so by --columns who=COLUMN with the column that counts"
            )
