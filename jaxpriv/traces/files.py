"""Trace files: which reader and writer a file needs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from jaxpriv.errors import InputError
from jaxpriv.traces.cleaning import clean
from jaxpriv.traces.csv_format import read_csv, write_csv
from jaxpriv.traces.plt_format import read_plt, write_plt
from jaxpriv.traces.trace import Trace


MAX_BYTES = 64 * 2**20
_READERS = {".csv": read_csv, ".plt": read_plt}


def read_trace(path: Path) -> Trace:
    """Read and clean a trace file: CSV with named columns, or GeoLife/OziExplorer PLT.

    Raises `InputError`: what is wrong, in which row, what to do; never a value of the file.
    """
    path = Path(path)
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise InputError("only files that end in .csv or .plt can be read; convert the trace to CSV (time, lat, lon)")
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"the file is larger than {MAX_BYTES // 2**20} MB; cut it into shorter periods")
        content = path.read_bytes()
    except OSError as problem:
        raise InputError(f"cannot read {path}: {problem.strerror or 'unknown reason'}") from None
    return clean(reader(_decode(content)))


def _decode(content: bytes) -> str:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return content.decode("utf-16")
        except UnicodeDecodeError:
            raise InputError("the file begins like UTF-16 text but is not; save it as UTF-8") from None
    if b"\0" in content:
        raise InputError("the file is not text")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")  # names in other columns; numbers and times are plain ASCII


def sanitised_text(trace: Trace, latitude: np.ndarray, longitude: np.ndarray, title: str) -> str:
    """Write sanitised points (n,), (n,) in degrees in the format of the trace's file, on its rows and instants.

    Only instants, positions and known column names are written. `title` marks the file where the format has a place
    for it (PLT; a CSV table has none).
    """
    rows = trace.point_of_row
    time_us, lat, lon = trace.time_us[rows], latitude[rows], longitude[rows]
    if trace.style.kind == "plt":
        return write_plt(title, time_us, lat, lon)
    return write_csv(trace.style, time_us, lat, lon)
