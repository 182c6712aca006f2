"""Small whole files of every format, and what must hold of any file that is read."""

from __future__ import annotations

import gzip
import io
import json
import traceback
from pathlib import Path

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.jobs.inspect import Inspection, inspect_file
from jaxpriv.traces.contents import ReadOptions
from jaxpriv.traces.files import read_trace, sanitised_text


ROWS = [("2024-05-01T12:00:00Z", 50.125, 8.5), ("2024-05-01T12:01:00.5Z", 50.25, 8.625), ("", 50.5, 8.75)]


def _parquet() -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    times = pa.array([1714564800_000001, 1714564860_000000, None], pa.timestamp("us"))
    table = pa.table({"user": ["a", "a", "b"], "time": times, "lat": [50.1, 50.2, None], "lon": [8.1, 8.2, 8.3]})
    file = io.BytesIO()
    parquet.write_table(table, file, compression="none")
    return file.getvalue()


def _point(time, lat, lon):
    return {"type": "Feature", "properties": {"time": time}, "geometry": {"type": "Point", "coordinates": [lon, lat]}}


def samples() -> dict[str, bytes]:
    """The bytes of a small file for each ending (several for some, told apart by a number before it)."""
    cells = [(stamp, f"{lat}", f"{lon}") for stamp, lat, lon in ROWS]
    gpx = "".join(f'<trkpt lat="{b}" lon="{c}"><time>{a}</time></trkpt>' for a, b, c in cells[:2])
    plt = "\r\n".join(f"{b},{c},0,-777,45413.5,{a[:10]},{a[11:-1]}" for a, b, c in cells)
    line = {
        "type": "Feature",
        "properties": {"coordTimes": [a for a, _, _ in ROWS], "user": "x"},
        "geometry": {"type": "LineString", "coordinates": [[c, b] for _, b, c in ROWS]},
    }
    points = {"type": "FeatureCollection", "features": [_point(*row) for row in ROWS]}
    table = "time,user,lat,lon\n" + "".join(f"{a},{'ab'[i % 2]},{b},{c}\n" for i, (a, b, c) in enumerate(cells))
    return {
        "1.csv": table.encode(),
        "2.csv": ("time;lat;lon\n" + "".join(f"{i};{b};{c}\n" for i, (_, b, c) in enumerate(cells))).encode("utf-16"),
        "3.csv": b'date,time,"lat",lon\r2024-05-01,08:00:00,"50.1",8\r',
        "1.txt": b"40.5 116.5 0 1577836800\n40.6 116.6 1 1577836860\n",
        "2.txt": b"7,2020-01-01 00:00:00,116.5,40.5\n7,2020-01-01 00:01:00,116.6,40.6\n",
        "1.gpx": f'<?xml version="1.0"?>\n<gpx version="1.1"><trk><trkseg>{gpx}</trkseg></trk></gpx>'.encode(),
        "1.plt": ("a\r\nWGS 84\r\nb\r\nc\r\nd\r\n0\r\n" + plt).encode(),
        "1.geojson": json.dumps(points).encode(),
        "2.geojson": json.dumps(line).encode(),
        "1.parquet": _parquet(),
        "1.csv.gz": gzip.compress(table.encode(), mtime=0),
    }


def check(folder: Path, name: str, content: bytes, options: ReadOptions | None = None) -> Inspection | None:
    """Read a file whose bytes are `content`: a trace that is well formed, or an `InputError` that tells nothing.

    Returns what `inspect` found, or None when the file was refused. Any other exception passes.
    """
    path = folder / name
    path.write_bytes(content)
    options = options or ReadOptions()
    try:
        trace = read_trace(path, options=options)
    except InputError as problem:
        _tells_nothing(problem)
    else:
        assert trace.n_points >= 1 and np.all(np.diff(trace.time_us) > 0)
        assert np.all(np.isfinite(trace.latitude) & (np.abs(trace.latitude) <= 90))
        assert np.all(np.isfinite(trace.longitude) & (np.abs(trace.longitude) <= 180))
        assert trace.cleaning.rows_read == trace.cleaning.dropped + trace.n_rows
        sanitised_text(trace, np.zeros(trace.n_points), np.zeros(trace.n_points), "").encode("utf-8")
    try:
        found = inspect_file(path, options)
    except InputError as problem:
        _tells_nothing(problem)
        return None
    found.to_json().encode("utf-8")
    return found


def _tells_nothing(problem: InputError) -> None:
    """Nothing is chained to the error that a reader raises, so that no other message can quote the file."""
    assert problem.__suppress_context__ or problem.__context__ is None, traceback.format_exception(problem)
    assert problem.__cause__ is None
