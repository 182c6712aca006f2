"""Rows written as a file of each format, and read again."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from jaxpriv.traces.contents import ReadOptions
from jaxpriv.traces.files import read_trace


def _csv(rows):
    cells = ((stamp or "", *(f'"{c}"' if "," in c else c for c in place)) for stamp, *place in rows)
    return "time,lat,lon\n" + "".join(",".join(row) + "\n" for row in cells)


def _gpx(rows):
    points = "".join(
        f'<trkpt lat="{lat}" lon="{lon}">{f"<time>{stamp}</time>" if stamp else ""}</trkpt>\n'
        for stamp, lat, lon in rows
    )
    return f'<gpx version="1.1"><trk><trkseg>\n{points}</trkseg></trk></gpx>'


def _plt(rows):
    lines = ["OziExplorer Track Point File", "WGS 84", "Altitude is in Feet", "Reserved 3", "0,2,1,x,0,0,2,0", "0"]
    for stamp, lat, lon in rows:
        date, _, clock = (stamp or "").removesuffix("Z").partition("T")
        lines.append(f"{lat},{lon},0,-777,,{date},{clock}")
    return "\r\n".join(lines) + "\r\n"


_WRITE = {"csv": _csv, "gpx": _gpx, "plt": _plt}
START = 1_714_564_800  # 2024-05-01T12:00:00Z


def _stamp(seconds):
    minute, second = divmod(seconds, 60)
    return f"2024-05-01T{12 + minute // 60:02d}:{minute % 60:02d}:{second:02d}Z"


def _walk(n, step=60):
    return [(_stamp(step * i), f"{50 + i / 1e3:.6f}", f"{8 - i / 1e3:.6f}") for i in range(n)]


def _seconds(trace):
    return ((trace.time_us - START * 10**6) / 1e6).tolist()


@pytest.fixture
def written():
    """Texts of rows (time or None, latitude, longitude), by format, and the rows of a plain walk from noon."""
    return SimpleNamespace(write=_WRITE, stamp=_stamp, walk=_walk, start=START, seconds=_seconds)


@pytest.fixture(params=sorted(_WRITE))
def read(request, tmp_path):
    """Write rows (time or None, latitude, longitude) in one of the formats, and read the file."""

    def reading(*rows, **options):
        path = tmp_path / f"trace.{request.param}"
        path.write_text(_WRITE[request.param](rows), encoding="utf-8", newline="")
        return read_trace(path, options=ReadOptions(**options))

    reading.format = request.param
    return reading
