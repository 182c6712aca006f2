"""GeoJSON traces: points with times, lines with coordTimes, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from jaxpriv.errors import InputError
from jaxpriv.traces.contents import ReadOptions
from jaxpriv.traces.files import read_trace, sanitised_text


START = 1577836800_000000


def _point(time, lon, lat, more=None):
    return {
        "type": "Feature",
        "properties": {"time": time} | (more or {}),
        "geometry": {"type": "Point", "coordinates": [lon, lat, 100.0]},
    }


def _line(times, positions, kind="LineString", name="coordTimes"):
    return {"type": "Feature", "properties": {name: times}, "geometry": {"type": kind, "coordinates": positions}}


def _read(tmp_path, *features, **options):
    (tmp_path / "a.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return read_trace(tmp_path / "a.geojson", options=ReadOptions(**options))


ISO = ["2020-01-01T00:00:00Z", "2020-01-01T00:01:00Z", "2020-01-01T00:02:00Z"]
POSITIONS = [[7.5, 40.5], [7.6, 40.6], [7.75, 40.75]]


def test_points_and_what_is_written(tmp_path):
    features = [_point(t, *p, {"name": "SENTINEL", "lat": "SENTINEL"}) for t, p in zip(ISO, POSITIONS, strict=True)]
    trace = _read(tmp_path, *features)
    assert trace.time_us.tolist() == [START, START + 60_000_000, START + 120_000_000]
    assert (trace.latitude.tolist(), trace.longitude.tolist()) == ([40.5, 40.6, 40.75], [7.5, 7.6, 7.75])
    written = sanitised_text(trace, np.array([1.5, 2.5, -0.25]), np.array([3.0, 4.0, 5.0]), "title")
    parsed = json.loads(written)
    assert [f["properties"] for f in parsed["features"]] == [{"time": stamp} for stamp in ISO]
    assert [f["geometry"]["coordinates"] for f in parsed["features"]] == [[3, 1.5], [4, 2.5], [5, -0.25]]
    assert "SENTINEL" not in written
    (tmp_path / "b.geojson").write_text(written)
    np.testing.assert_array_equal(read_trace(tmp_path / "b.geojson").time_us, trace.time_us)


def test_missing_values_and_decimals(tmp_path):
    empty = {"type": "Feature", "properties": {"time": ISO[1]}, "geometry": None}
    trace = _read(tmp_path, _point(ISO[0], 7.5, 40.5), _point(None, 7.6, 40.6), empty)
    assert (trace.n_rows, trace.cleaning.missing_time, trace.cleaning.missing_position) == (1, 1, 1)


def test_people_are_told_apart(tmp_path):
    features = [_point(t, *p, {"user": i % 2}) for i, (t, p) in enumerate(zip(ISO, POSITIONS, strict=True))]
    with pytest.raises(InputError, match=r"2 people .*: 0, 1"):
        _read(tmp_path, *features)
    assert _read(tmp_path, *features, who="1").latitude.tolist() == [40.6]


@pytest.mark.parametrize("name", ["coordTimes", "times"])
def test_lines(name, tmp_path):
    trace = _read(tmp_path, _line(ISO, POSITIONS, name=name))
    assert (trace.seconds.tolist(), trace.latitude.tolist()) == ([0, 60, 120], [40.5, 40.6, 40.75])
    both = _read(tmp_path, _line([ISO[:1], ISO[1:]], [POSITIONS[:1], POSITIONS[1:]], "MultiLineString", name))
    assert both.seconds.tolist() == [0, 60, 120]


def test_several_lines_are_tracks(tmp_path):
    lines = _line(ISO[:1], POSITIONS[:1]), _line(ISO[1:], POSITIONS[1:])
    with pytest.raises(InputError, match=r"2 lines.*--track all"):
        _read(tmp_path, *lines)
    for line in lines:
        line["properties"]["user"] = "ann"
    # One person by name still has two tracks.
    with pytest.raises(InputError, match=r"2 lines.*--track all"):
        _read(tmp_path, *lines)
    lines[1]["properties"]["user"] = "bob"
    for track in (None, "all"):  # people are never mixed, whatever is said of tracks
        with pytest.raises(InputError, match=r"2 people or devices .column user.: ann, bob"):
            _read(tmp_path, *lines, track=track)
    assert _read(tmp_path, *lines, who="bob").latitude.tolist() == [40.6, 40.75]
    for line in lines:
        line["properties"]["user"] = None
    assert _read(tmp_path, *lines, track=2).latitude.tolist() == [40.6, 40.75]
    assert _read(tmp_path, *lines, track="all").n_rows == 3
    with pytest.raises(InputError, match="has 2 lines"):
        _read(tmp_path, *lines, track=3)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1: not JSON"),
        ('{"type": "FeatureCollection",\n"features": [', "line 2: not JSON"),
        ("[" * 200_000, "nested too deeply|not JSON"),
        ("[]", "outermost value"),
        ('{"type": "Point", "coordinates": [1, 2]}', "a feature, or a collection"),
        ('{"type": "FeatureCollection", "features": {}}', "a feature, or a collection"),
        ('{"type": "FeatureCollection", "crs": {"properties": {"name": "EPSG:3857"}}, "features": []}', "reference"),
        (json.dumps(_point(ISO[0], "7.5", 40.5)), "feature 1: a position is made of numbers"),
        (json.dumps(_point(ISO[0], [7.5], 40.5)), "feature 1: a position is made of numbers"),
        (json.dumps(_point("49.97", 7.5, 40.5)).replace("time", "when"), "no property of the points"),
        (json.dumps(_point("yesterday", 7.5, 40.5)), "feature 1: the time is not ISO"),
        (json.dumps(_line(ISO[:2], POSITIONS)), "one time for each position"),
        (json.dumps(_line(None, POSITIONS)), "one time for each position"),
        (json.dumps(_line(ISO, POSITIONS, "Polygon")), "other geometries"),
        (json.dumps({"type": "Feature", "geometry": {"type": 3}}), "feature 1: its geometry"),
    ],
)
def test_refusals(text, words, tmp_path):
    (tmp_path / "a.geojson").write_text(text)
    with pytest.raises(InputError, match=words) as problem:
        read_trace(tmp_path / "a.geojson")
    assert not any(value in str(problem.value) for value in ("7.5", "40.5", "49.97", "yesterday"))


def test_damaged_files_give_a_trace_or_a_reason(tmp_path, rng):
    features = [_point(t, *p, {"user": 1}) for t, p in zip(ISO, POSITIONS, strict=True)]
    lines = [_line(ISO, POSITIONS)]
    path = tmp_path / "a.geojson"
    read = 0
    for _ in range(150):
        whole = json.dumps({"type": "FeatureCollection", "features": lines if rng.integers(2) else features})
        damaged = list(whole)
        for at in rng.integers(0, len(damaged) - 5, 2):
            match rng.integers(3):
                case 0:
                    damaged[at] = '{}[]",:0e-nt'[rng.integers(12)]
                case 1:
                    del damaged[at : at + rng.integers(1, 5)]
                case _:
                    damaged[at:at] = damaged[at : at + rng.integers(1, 20)]
        path.write_text("".join(damaged))
        try:
            trace = read_trace(path)
        except InputError:
            continue
        assert np.all(np.abs(trace.latitude) <= 90)
        read += 1
    assert read > 3
