"""Trace files: which reader and writer a file needs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.traces.cleaning import clean
from jaxpriv.traces.csv_format import read_csv, write_csv
from jaxpriv.traces.encoding import decode_table, decode_xml, decompress
from jaxpriv.traces.gpx_format import TrackChoice, read_gpx, write_gpx
from jaxpriv.traces.plt_format import read_plt, write_plt
from jaxpriv.traces.trace import RawRows, Trace


MAX_BYTES = 64 * 2**20


def read_trace(path: Path, track: TrackChoice = None) -> Trace:
    """Read and clean a trace file: CSV with named columns, GPX, or GeoLife/OziExplorer PLT; also gzipped (.csv.gz).

    `track` chooses among the tracks of a GPX file: a number from 1, or "all" when one person made them all. Raises
    `InputError`: what is wrong, in which row, what to do; never a value of the file.
    """
    path = Path(path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes[-1:] == [".gz"]
    kind = suffixes[-2] if packed and len(suffixes) > 1 else suffixes[-1] if suffixes else ""
    if kind not in (".csv", ".gpx", ".plt"):
        raise InputError(
            "only files that end in .csv, .gpx or .plt can be read, with .gz after it when they are packed; "
            "convert the trace to CSV (time, lat, lon)"
        )
    if track is not None and kind != ".gpx":
        raise InputError("only GPX files have numbered tracks; leave the track out")
    content = _content(path)
    return clean(_read(decompress(content, MAX_BYTES) if packed else content, kind, track))


def _content(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"the file is larger than {MAX_BYTES // 2**20} MB; cut it into shorter periods")
        return path.read_bytes()
    except OSError as problem:
        raise InputError(f"cannot read {path}: {problem.strerror or 'unknown reason'}") from None


def _read(content: bytes, kind: str, track: TrackChoice) -> RawRows:
    if kind == ".gpx":
        return read_gpx(decode_xml(content), track)
    return (read_csv if kind == ".csv" else read_plt)(decode_table(content))


def sanitised_text(trace: Trace, latitude: np.ndarray, longitude: np.ndarray, title: str) -> str:
    """Write sanitised points (n,), (n,) in degrees in the format of the trace's file, on its rows and instants.

    Only instants, positions and known column names are written. `title` marks the file where the format has a place
    for it (GPX, PLT; a CSV table has none).
    """
    rows = trace.point_of_row
    time_us, lat, lon = trace.time_us[rows], latitude[rows], longitude[rows]
    if trace.style.kind == "csv":
        return write_csv(trace.style, time_us, lat, lon)
    return (write_gpx if trace.style.kind == "gpx" else write_plt)(title, time_us, lat, lon)
