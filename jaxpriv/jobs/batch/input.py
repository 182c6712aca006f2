"""The traces of a data set that is larger than memory, one after another: a table, or a folder of trace files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.traces.cleaning import clean
from jaxpriv.traces.contents import ReadOptions
from jaxpriv.traces.files import file_contents
from jaxpriv.traces.table_rows import TableRows, output_style
from jaxpriv.traces.tables import MAX_ROWS, Table, TablePeople
from jaxpriv.traces.trace import RawRows, Trace


_ENDINGS = (".csv", ".gpx", ".plt", ".txt", ".tsv", ".tab", ".dat", ".geojson", ".json", ".parquet", ".gpkg", ".gz")


@dataclass(frozen=True)
class InputTrace:
    """One trace of the data set: its number from 0 in the order of the input, the keys that it had there, and the
    cleaned trace, or the reason why there is none."""

    number: int
    keys: tuple[str, ...]
    trace: Trace | None = field(repr=False)
    reason: str = ""

    def content(self) -> bytes:
        """SHA-256 of the instants and positions."""
        assert self.trace is not None
        digest = hashlib.sha256(np.int64(self.trace.n_points).tobytes())
        for array in (self.trace.time_us, self.trace.point_of_row, self.trace.latitude, self.trace.longitude):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.digest()


def input_files(path: Path) -> list[Path]:
    """The file, or the trace files of a folder and of the folders in it, by name. Raises `InputError` for none."""
    if not path.is_dir():
        return [path]
    files = sorted(one for one in path.rglob("*") if one.is_file() and one.suffix.lower() in _ENDINGS)
    if not files:
        raise InputError(f"{path} holds no trace file ({', '.join(_ENDINGS)})")
    return files


def input_traces(path: Path, options: ReadOptions) -> Iterator[InputTrace]:
    """Read and clean the traces one by one; no more than one of them is held.

    A table is cut where its person or its trip changes (where it has a column of either, or the one that
    `options.columns` names), and so must have the rows of each trace together: this is checked before the first
    trace is given. In a folder, each file is one trace, but for tables of several, which are cut in the same way. A
    trace that cannot be read or cleaned is given with the reason, and so is a file of a folder. Raises `InputError` for
    a table that is no table.
    """
    number = 0
    folder = path.is_dir()
    for file in input_files(path):
        name = (file.relative_to(path).as_posix(),) if folder else ()
        try:
            for keys, raw in _file_rows(file, options):
                yield _cleaned(number, (*name, *keys), raw, options)
                number += 1
        except InputError as error:
            if not folder:
                raise
            yield InputTrace(number, name, None, str(error))
            number += 1


def _cleaned(number: int, keys: tuple[str, ...], raw: RawRows | InputError, options: ReadOptions) -> InputTrace:
    if isinstance(raw, InputError):
        return InputTrace(number, keys, None, str(raw))
    try:
        trace = clean(raw, strict=options.strict, duplicates=options.duplicates)
    except InputError as error:
        return InputTrace(number, keys, None, str(error))
    # What looks odd is for a reader's eyes, and is not carried along.
    return InputTrace(number, keys, replace(trace, odd=None))


def _file_rows(file: Path, options: ReadOptions) -> Iterator[tuple[tuple[str, ...], RawRows | InputError]]:
    contents = file_contents(file, options, survey=True)
    if isinstance(contents.people, TablePeople):
        table = contents.people.table
        columns = _key_columns(table)
        _check_together(table, columns)
        yield from _table_rows(table, columns, options)
        return
    for person in contents.people:
        yield () if person.name is None else (person.name,), person.raw


def _key_columns(table: Table) -> tuple[int, ...]:
    columns = table.columns
    return (*columns.people[:1], *columns.trips[:1])


def _check_together(table: Table, columns: tuple[int, ...]) -> None:
    """Raise `InputError` when the rows of a trace do not stand together: its parts would be released one by one."""
    seen: set[bytes] = set()
    last: tuple[str, ...] | None = None
    if not columns:
        return
    for _, cells in table.rows:
        keys = tuple(cells[column].strip() for column in columns)
        if keys == last:
            continue
        last = keys
        short = hashlib.blake2b("\0".join(keys).encode(), digest_size=12).digest()
        if short in seen:
            names = " and ".join(table.label(column) for column in columns)
            raise InputError(
                f"the rows of one trace do not stand together: {names} takes an earlier value again; sort the table by "
                "it first, or name the column that tells traces apart: --columns who=COLUMN"
            )
        seen.add(short)


def _table_rows(
    table: Table, columns: tuple[int, ...], options: ReadOptions
) -> Iterator[tuple[tuple[str, ...], RawRows | InputError]]:
    last: tuple[str, ...] | None = None
    rows: TableRows | None = None
    problem: InputError | None = None

    def finished() -> RawRows | InputError:
        if problem is not None or rows is None:
            return problem or InputError("there is no row")
        return rows.rows(output_style(table.header, table.columns, table.output, table.delimiter, rows), 0)

    for place, cells in table.rows:
        keys = tuple(cells[column].strip() for column in columns)
        if keys != last:
            if last is not None:
                yield last, finished()
            last, problem = keys, None
            rows = TableRows(table.columns, table.decimal_commas, options.columns)
        if problem is not None or rows is None:
            continue
        try:
            rows.add(place, cells)
            if len(rows) > MAX_ROWS:
                raise InputError(f"the trace has more than {MAX_ROWS} rows; cut it into shorter periods")
        except InputError as error:
            problem = error
    if last is not None:
        yield last, finished()
