"""What is published besides noisy positions is no function of where the person was: lengths, rows, texts."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jaxpriv.jobs.extent import extent_warnings, stretch_at
from jaxpriv.jobs.noise import ReleasedPoints
from jaxpriv.jobs.release_file import ReleaseFile
from jaxpriv.jobs.series.file import ReleasedValues, SeriesFile
from jaxpriv.traces.cleaning import clean
from jaxpriv.traces.csv_format import read_csv
from jaxpriv.traces.files import sanitised_text
from jaxpriv.traces.gpx_format import read_gpx
from jaxpriv.traces.projection import EXTENT_M, STRETCH, LocalPlane
from jaxpriv.traces.series import SeriesStyle
from jaxpriv.traces.trace import FileStyle, Trace


DOCUMENT = Path(__file__).parents[2] / "docs" / "leaks.md"
TIMES = np.array([0, 10**6, 5 * 10**9 + 500_000], dtype=np.int64)
# Signs, numbers of digits, zero from either side, and both ends.
POSITIONS = [
    ([0.0, -0.0, 1e-9], [0.0, -1e-9, 1e-9]),
    ([-89.9999999, 9.0, 90.0], [-180.0, 179.99999999, 100.0]),
    ([48.2, 48.3, 48.4], [16.3, 16.4, 16.5]),
    ([-0.1, 0.1, -9.9], [-9.9, 99.9, -99.9]),
]


def written(kind, latitude, longitude) -> str:
    trace = Trace(
        FileStyle(kind),
        np.zeros(3),
        np.zeros(3),
        TIMES,
        np.arange(3),
        0.0,
        clean(read_csv("time,lat,lon\n1,2,3\n")).cleaning,
    )
    return sanitised_text(trace, np.array(latitude), np.array(longitude), "jaxpriv")


@pytest.mark.parametrize("kind", ["csv", "gpx", "plt", "geojson"])
def test_the_length_of_a_sanitised_file_is_that_of_its_rows(kind):
    texts = [written(kind, *where) for where in POSITIONS]
    assert len({len(text.encode()) for text in texts}) == 1 and len(set(texts)) == len(texts)
    # A control: as many decimals without padding give other lengths.
    assert len({sum(len(f"{v:.7f}") for part in where for v in part) for where in POSITIONS}) > 1


def test_the_length_of_release_json_is_that_of_its_rows():
    plane = LocalPlane(48.0, 16.0)
    texts = [
        ReleaseFile((1, 2), ReleasedPoints(east, north, -3, 1e-18), plane).text()
        for east, north in [((0, -1), (7, 8)), ((10**9, 1 - 2**53), (-99_999, 3)), ((-5, 5), (123, 2**53 - 1))]
    ]
    assert len({len(text) for text in texts}) == 1
    series = [
        SeriesFile(SeriesStyle(), 2, (1, 2), ReleasedValues(values, -4, 1e-18))
        for values in [(0, -1), (10**8, -(10**9)), (-5, 123_456)]
    ]
    fine = replace(series[0], values=ReleasedValues((1 - 2**53, 2**53 - 1), -4, 1e-18))
    assert len({len(one.text()) for one in (*series, fine)}) == 1
    assert len({len(one.table(np.array([0, 0, 1]))) for one in series}) == 1


def test_values_of_a_series_are_the_integers_in_decimals():
    shared = SeriesFile(SeriesStyle(), 2, (1, 2, 3, 4), ReleasedValues((-1, 0, 333, -(10**7)), -8, 1e-18))
    rows = [line.split(",")[1] for line in shared.table(np.arange(4)).splitlines()[1:]]
    assert [row.strip() for row in rows] == ["0.00", "0.00", "1.30", "-39062.50"]  # no minus zero


def test_nothing_is_cut_wherever_the_person_stops_or_jumps():
    """Still, moving, jumping, turning back: the same rows at the same times."""
    rng = np.random.default_rng(2)
    still = np.full((40, 2), 45.0)
    moving = still + np.linspace(0, 0.1, 40)[:, None]
    jumping = still + rng.normal(size=(40, 2)) * (rng.uniform(size=(40, 1)) < 0.2)
    stopping = moving.copy()
    stopping[10:30] = stopping[10]
    kept = []
    for path in (still, moving, jumping, stopping):
        rows = "\n".join(f"{60 * i},{lat:.7f},{lon:.7f}" for i, (lat, lon) in enumerate(path))
        trace = clean(read_csv(f"time,lat,lon\n{rows}\n"))
        kept.append((trace.n_rows, trace.time_us.tobytes(), trace.cleaning.dropped))
    assert len(set(kept)) == 1


def test_segments_and_gaps_are_no_trips():
    points = "".join(
        f'{"</trkseg><trkseg>" if i == 3 else ""}<trkpt lat="{45 + i / 1000}" lon="7">'
        f"<time>2024-05-01T{8 + (i > 2) * 6:02d}:{i:02d}:00Z</time></trkpt>"
        for i in range(6)
    )
    trace = clean(read_gpx(f'<gpx version="1.1"><trk><trkseg>{points}</trkseg></trk></gpx>'))
    text = sanitised_text(trace, trace.latitude, trace.longitude, "jaxpriv")
    assert text.count("<trkpt") == 6 and text.count("<trkseg>") == 1


def test_every_choice_has_its_row_in_the_document():
    """A table of what leaks: each row says what jaxpriv does and what its user must do."""
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    assert rows[0] == ["choice", "what leaks", "what jaxpriv does", "what you must do"]
    assert len(rows) >= 14 and all(len(row) == 4 and all(row) for row in rows)
    said = " ".join(" ".join(row) for row in rows)
    from typer.testing import CliRunner

    from jaxpriv.cli.app import app

    for option in set(re.findall(r"`(--[a-z-]+)", said)):
        helped = CliRunner().invoke(app, ["protect", "--help"], env={"COLUMNS": "400"}).output
        assert option in helped, option


def at_distance(km: float) -> Trace:
    """Three fixes, the farthest so far east of the origin on the equator."""
    east = km * 1000 / 111_319.49079
    rows = "\n".join(f"{60 * i},0.0000000,{part * east:.7f}" for i, part in enumerate((0.0, 0.5, 1.0)))
    return clean(read_csv(f"time,lat,lon\n{rows}\n"))


def test_long_traces_are_told_what_the_map_does_to_them():
    plane = LocalPlane(0.0, 0.0)
    assert extent_warnings(at_distance(49.9), plane) == []
    (said,) = extent_warnings(at_distance(120.0), plane)
    assert "split the trip" in said and "121 km" not in said and "120 km" in said
    stated = float(re.findall(r"up to ([\d.]+) %", said)[0]) / 100
    # The scale across the direction of travel, of a short step at that distance, on the ellipsoid of pyproj.
    import pyproj

    lats, lons = plane.to_degrees(np.array([[120e3, -50.0], [120e3, 50.0]]))
    true = pyproj.Geod(ellps="WGS84").inv(lons[0], lats[0], lons[1], lats[1])[2]
    assert 100.0 / true - 1 <= stated <= 1.1 * (100.0 / true - 1)
    assert stretch_at(0.0) == 0.0 and stretch_at(250e3) <= STRETCH - 1


def test_there_and_back_is_below_a_millimetre_as_far_as_the_plane_goes():
    rng = np.random.default_rng(4)
    for origin in ((0.0, 0.0), (65.0, 20.0), (-33.9, 180.0), (89.9, 0.0)):
        plane = LocalPlane(*origin)
        angle, distance = rng.uniform(0, 2 * np.pi, 300), EXTENT_M * np.sqrt(rng.uniform(size=300))
        metres = np.stack([distance * np.cos(angle), distance * np.sin(angle)], axis=1)
        assert np.max(np.abs(plane.to_metres(*plane.to_degrees(metres)) - metres)) < 1e-3
