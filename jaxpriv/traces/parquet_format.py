"""Traces as Parquet tables, GeoParquet's points included; read through pyarrow, a few thousand rows at a time."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jaxpriv.errors import InputError
from jaxpriv.traces.columns import Columns, find_columns
from jaxpriv.traces.contents import Contents, ReadOptions
from jaxpriv.traces.sources import Source
from jaxpriv.traces.tables import Row, Table, read_table
from jaxpriv.traces.typed_tables import MAX_UNPACKED, cell_text, wkb_positions


if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_GEOMETRY = ("geometry", "geom", "wkb_geometry")
_BATCH = 16_384
_MAX_ROWS = 500_000_000


def parquet_contents(source: Source, options: ReadOptions) -> Contents:
    """Read a Parquet table; only the columns of time, position and person are loaded.

    Times are timestamps (without a zone: taken as UTC), text, or numbers of the epoch. Positions are two columns, or
    points in a column called geometry. Raises `InputError` as `read_table` does, and when pyarrow is not installed.
    """
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise InputError("Parquet files need pyarrow: pip install 'jaxpriv[tables]'") from None
    with _opened(source) as file:
        names = tuple(file.schema_arrow.names)
        if file.metadata.num_rows > _MAX_ROWS:
            raise InputError(f"the table has more than {_MAX_ROWS} rows; cut it into shorter periods")
    header, columns, geometry = _columns(names, options)
    used, narrow = columns.narrowed()
    wanted = tuple(names[i] for i in used if i < len(names))
    shown = tuple(header[i] for i in used)
    rows = _Rows(source, wanted, geometry, shown)
    return read_table(Table("Parquet", shown, narrow, rows, named=True), options)


@contextmanager
def _opened(source: Source) -> Iterator[pq.ParquetFile]:
    """The file while it is read; what pyarrow says of it, which may quote it, is not passed on."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        whole = source.packed or source.content is not None
        # Columns lie far apart in a file, so that it is not read from its start to its end.
        with io.BytesIO(source.whole()) if whole else source.path.open("rb") as raw:
            yield pq.ParquetFile(raw)
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, OverflowError):
        raise InputError("the file is not readable as Parquet; write it again, without nested columns") from None


@dataclass(frozen=True)
class _Rows:
    """The rows of a Parquet file as text, read again for each iteration: `shown` columns, in this order."""

    source: Source = field(repr=False)
    wanted: tuple[str, ...]
    geometry: str | None
    shown: tuple[str, ...]

    def __iter__(self) -> Iterator[Row]:
        loaded = [*self.wanted, *([] if self.geometry is None else [self.geometry])]
        with _opened(self.source) as file:
            _check_groups(file, loaded)
            number, total = 0, max(file.metadata.num_rows, 1)
            for batch in file.iter_batches(batch_size=_BATCH, columns=loaded, use_threads=False):
                for cells in zip(*self._texts(batch, number), strict=True):
                    number += 1
                    yield number, cells
                self.source.progress(f"Reading the table: {100 * number // total} %")

    def _texts(self, batch: pa.RecordBatch, before: int) -> list[Sequence[str]]:
        cells = {name: _texts(batch.column(name)) for name in self.wanted}
        if self.geometry is not None:
            positions = wkb_positions(batch.column(self.geometry).to_pylist(), before + 1)
            cells |= {"latitude": [lat for lat, _ in positions], "longitude": [lon for _, lon in positions]}
        return [cells[name] for name in self.shown]


def _check_groups(file: pq.ParquetFile, loaded: list[str]) -> None:
    """Raise `InputError` where the columns of one group of rows, which are unpacked together, are too large."""
    for i in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(i)
        parts = [group.column(k) for k in range(group.num_columns)]
        size = sum(part.total_uncompressed_size for part in parts if part.path_in_schema.split(".")[0] in loaded)
        if size > MAX_UNPACKED:
            raise InputError(
                f"a row group of the table unpacks to more than {MAX_UNPACKED // 2**20} MB; write it with smaller ones"
            )


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


def _texts(column: pa.Array) -> list[str]:
    """A column as text; times in UTC; single precision keeps its own digits."""
    import pyarrow as pa

    values: Sequence[Any]
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp(column.type.unit, "UTC" if column.type.tz else None)).cast(pa.string())
        return [value or "" for value in column.to_pylist()]
    values = column.to_numpy(zero_copy_only=False) if pa.types.is_float32(column.type) else column.to_pylist()
    return [cell_text(value) for value in values]
