"""Traces as Parquet tables, GeoParquet's points included; read through pyarrow."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from jaxpriv.errors import InputError
from jaxpriv.traces.columns import Columns, find_columns
from jaxpriv.traces.contents import Contents, ReadOptions
from jaxpriv.traces.tables import Row, Table, read_table
from jaxpriv.traces.typed_tables import cell_text, check_rows, wkb_positions


if TYPE_CHECKING:
    import pyarrow as pa

_GEOMETRY = ("geometry", "geom", "wkb_geometry")


def parquet_contents(content: bytes, options: ReadOptions) -> Contents:
    """Read a Parquet table; only the columns of time, position and person are loaded.

    Times are timestamps (without a zone: taken as UTC), text, or numbers of the epoch. Positions are two columns, or
    points in a column called geometry. Raises `InputError` as `read_table` does, and when pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise InputError("Parquet files need pyarrow: pip install 'jaxpriv[tables]'") from None
    try:
        file = pq.ParquetFile(io.BytesIO(content))
        groups = [file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups)]
        check_rows(file.metadata.num_rows, sum(groups))
        names = tuple(file.schema_arrow.names)
        header, columns, geometry = _columns(names, options)
        used, narrow = columns.narrowed()
        wanted = [names[i] for i in used if i < len(names)] + ([] if geometry is None else [geometry])
        loaded = file.read(columns=wanted)
        cells = {name: _texts(loaded.column(name)) for name in wanted if name != geometry}
        if geometry is not None:
            positions = wkb_positions(loaded.column(geometry).to_pylist())
            cells |= {"latitude": [lat for lat, _ in positions], "longitude": [lon for _, lon in positions]}
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, OverflowError):
        raise InputError("the file is not readable as Parquet; write it again, without nested columns") from None
    shown = tuple(header[i] for i in used)
    rows: list[Row] = [
        (f"row {number}", row) for number, row in enumerate(zip(*(cells[name] for name in shown), strict=True), 1)
    ]
    return read_table(Table("Parquet", shown, narrow, rows, named=True), options)


def _columns(names: tuple[str, ...], options: ReadOptions) -> tuple[tuple[str, ...], Columns, str | None]:
    """The header, the columns in it, and the name of the column of points where there is one."""
    if len(set(names)) < len(names):
        raise InputError("two columns of the table have the same name; rename the one that is not meant")
    found = find_columns(names, options.columns)
    if found is not None:
        return names, found, None
    geometry = next((name for name in _GEOMETRY if name in names), None)
    header = (*names, "latitude", "longitude")
    found = None if geometry is None or set(header[-2:]) & set(names) else find_columns(header, options.columns)
    if found is None:
        raise InputError(
            "the table does not name a time, a latitude and a longitude column; name them time, lat and lon, or say "
            "which they are: --columns time=NAME,lat=NAME,lon=NAME"
        )
    return header, found, geometry


def _texts(column: pa.ChunkedArray) -> list[str]:
    """A column as text; times in UTC, of at most six decimals; single precision keeps its own digits."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", "UTC" if column.type.tz else None), safe=False)
    values = column.to_numpy() if pa.types.is_float32(column.type) else column.to_pylist()
    return [cell_text(value) for value in values]
