"""A shared file of a batch: how it is written, and what is wrong with one that was read."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from jaxpriv.errors import InputError


DECIMALS = 7


@dataclass(frozen=True)
class SharedTrace:
    """A released trace: its number, instants (n,) in microseconds since 1970, and positions (n,) in degrees."""

    number: int
    time_us: np.ndarray = field(repr=False)
    latitude: np.ndarray = field(repr=False)
    longitude: np.ndarray = field(repr=False)


def write_shared(path: Path, released: Sequence[SharedTrace]) -> None:
    """Write only the trace's running number, the instant and the position; no statistics, and no compression, whose
    success would tell of what is compressed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def column(name: str, dtype: type) -> np.ndarray:
        return np.concatenate([np.asarray(getattr(one, name), dtype) for one in released] or [np.zeros(0, dtype)])

    numbers = np.concatenate(
        [np.full(len(one.time_us), one.number, np.int64) for one in released] or [np.zeros(0, np.int64)]
    )
    table = pa.table(
        {
            "trace": numbers,
            "time": pa.array(column("time_us", np.int64), pa.timestamp("us", tz="UTC")),
            "lat": column("latitude", np.float64),
            "lon": column("longitude", np.float64),
        }
    )
    pq.write_table(table, path, compression="none", use_dictionary=False, write_statistics=False)


def read_shared(path: Path) -> tuple[list[SharedTrace], str | None]:
    """The traces of a shared file, and what is wrong with it, if anything is: then there may be none.

    Raises `InputError` for a file that cannot be read to its end.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            schema, table = file.schema_arrow, file.read()
    except (OSError, ValueError, pa.ArrowException):
        raise InputError(f"{path} is damaged: it cannot be read as a Parquet file") from None
    kinds = {"trace": pa.int64(), "time": pa.timestamp("us", tz="UTC"), "lat": pa.float64(), "lon": pa.float64()}
    if dict(zip(schema.names, schema.types, strict=True)) != kinds or len(schema.names) != len(kinds):
        return [], "it has other columns than trace, time, lat and lon"
    if schema.metadata or any(field.metadata for field in schema if set(field.metadata or {}) - {b"PARQUET:field_id"}):
        return [], "it holds more than its columns"
    if any(column.null_count for column in table.columns):
        return [], "a value is missing"
    numbers = table.column("trace").to_numpy()
    time_us = table.column("time").cast(pa.int64()).to_numpy()
    latitude, longitude = table.column("lat").to_numpy(), table.column("lon").to_numpy()
    edges = [*np.flatnonzero(np.diff(numbers, prepend=numbers[:1] - 1)), len(numbers)]
    pieces = [slice(first, end) for first, end in itertools.pairwise(edges)]
    traces = [SharedTrace(int(numbers[one.start]), time_us[one], latitude[one], longitude[one]) for one in pieces]
    return traces, _problem(traces)


def _problem(traces: Sequence[SharedTrace]) -> str | None:
    if any(two.number <= one.number for one, two in itertools.pairwise(traces)):
        return "the rows of a trace do not stand together, or the traces are not in order"
    for one in traces:
        if one.number < 0:
            return "the number of a trace is negative"
        if not np.all(np.diff(one.time_us) > 0):
            return f"the instants of trace {one.number} do not increase"
        for values, most in ((one.latitude, 90.0), (one.longitude, 180.0)):
            if not np.all(np.abs(values) <= most):
                return f"trace {one.number} has a position that is none on earth"
            if not np.array_equal(values, np.round(values, DECIMALS)):
                return f"trace {one.number} has a position of more than {DECIMALS} decimals"
    return None
