"""Positions and texts that broke other programs, rebuilt in each format; the public report is named at each."""

from __future__ import annotations

import re

import numpy as np
import pytest

from jaxpriv.errors import InputError
from jaxpriv.traces.files import read_trace, sanitised_text
from jaxpriv.traces.gpx_format import read_gpx
from jaxpriv.traces.projection import LocalPlane, public_origin


# The latitude and longitude of a cell pair, and what becomes of it: a position, or the rule that drops it.
CELLS = {
    # https://github.com/uber/h3/issues/287: bindings disagreed
    "a longitude one turn on": ("50", "368", (50, 8)),
    "a longitude one turn back": ("50", "-352", (50, 8)),
    "a longitude of more turns": ("50", "800", "out_of_range"),
    "a latitude half a turn on": ("230", "8", "out_of_range"),
    # https://github.com/OpenStrap/edge/pull/417: NaN passes a test of > 90
    "a latitude that is no number": ("NaN", "8", "missing_position"),
    "a latitude of 91": ("91", "8", "out_of_range"),
    "the pole and the date line": ("90", "-180", (90, -180)),
    # https://github.com/cgeo/cgeo/issues/17130, https://github.com/tkrajina/gpxpy/pull/96: exponents written to GPX
    "small numbers with exponents": ("-2e-7", "5.17E-4", (-2e-7, 5.17e-4)),
    "large numbers with exponents": ("5E1", "8e+00", (50, 8)),
}


@pytest.mark.parametrize(("lat", "lon", "expected"), CELLS.values(), ids=CELLS)
def test_ranges_and_numbers(lat, lon, expected, read, written):
    trace = read((written.stamp(0), "51", "9"), (written.stamp(60), lat, lon))
    text = sanitised_text(trace, trace.latitude, trace.longitude, "")
    assert not re.search(r"\d[eE][+-]?\d", text)
    if isinstance(expected, str):
        assert (trace.n_rows, getattr(trace.cleaning, expected)) == (1, 1)
        return
    np.testing.assert_allclose((trace.latitude[1], trace.longitude[1]), expected, rtol=1e-14)
    assert trace.cleaning.longitude_wrapped == (abs(float(lon)) > 180)


def test_small_numbers_are_written_as_plain_decimals(read, written):
    # https://github.com/cgeo/cgeo/issues/17130, https://github.com/tkrajina/gpxpy/pull/96
    trace = read((written.stamp(0), "-2e-7", "5.17E-4"), (written.stamp(1), "1", "1"))
    text = sanitised_text(trace, trace.latitude, trace.longitude, "")
    assert ("-0.0000002" in text, "0.0005170" in text) == (True, True)


@pytest.mark.parametrize(("lat", "lon"), [("49,97", "7,93"), ("49,97", "7.93"), ("49", "7,93")])
def test_decimal_commas_are_never_read_as_49_and_97(lat, lon, read, written):
    # https://github.com/GoldenCheetah/GoldenCheetah/issues/2913
    with pytest.raises(InputError, match=r"decimal|comma"):
        read((written.stamp(0), "50", "8"), (written.stamp(1), lat, lon))


def test_numbers_are_written_with_a_point_whatever_the_locale(read, written, monkeypatch):
    # https://github.com/GoldenCheetah/GoldenCheetah/issues/2913: decimal commas under a German locale
    import locale

    trace = read(*written.walk(2))
    plain = sanitised_text(trace, trace.latitude, trace.longitude, "")
    before = locale.setlocale(locale.LC_ALL)
    # Python's own formatting ignores the C locale; where a German one is installed, it is set.
    for name in ("de_DE.UTF-8", "de_DE", "C"):
        try:
            locale.setlocale(locale.LC_ALL, name)
            break
        except locale.Error:
            continue
    try:
        assert sanitised_text(trace, trace.latitude, trace.longitude, "") == plain
    finally:
        locale.setlocale(locale.LC_ALL, before)
    assert "50.0010000" in plain


def test_half_way_across_the_date_line(read, written):
    # https://github.com/movingpandas/movingpandas/issues/299: about (-42.3, 33.7)
    trace = read((written.stamp(600), "0", "-179.5"), (written.stamp(1200), "0", "179.5"))
    plane = public_origin(trace.latitude, trace.longitude)
    lat, lon = plane.to_degrees(plane.to_metres(trace.latitude, trace.longitude).mean(axis=0, keepdims=True))
    assert (abs(lat[0]) < 1e-9, abs(abs(lon[0]) - 180) < 1e-9) == (True, True)
    text = sanitised_text(trace, np.zeros(2), np.array([179.99999999, -179.99999999]), "")
    assert len(re.findall(r"-180\.0000000", text)) == (2 if read.format == "gpx" else 1)
    assert trace.odd is not None and trace.odd.date_line == 1


def test_a_distance_for_which_a_formula_did_not_converge():
    # https://github.com/chrisveness/geodesy/issues/44; 10,059,214.493 m on the ellipsoid, by the maintainers
    metres = LocalPlane(40.08, 116.585).to_metres(np.array([33.943]), np.array([-118.408]))
    assert abs(np.hypot(*metres[0]) - 10_059_214.493) < 1e-3


def test_one_point_twice_is_at_no_distance():
    # https://github.com/mapbox/mapbox-gl-native/issues/3556: the arc cosine of 1 + 2e-16
    twice = LocalPlane(40.7, -74.0).to_metres(np.full(2, 40.71199035644531), np.full(2, -74.0081))
    assert np.all(twice[0] == twice[1])


def test_a_header_that_counts_no_points(written, tmp_path):
    # https://github.com/wladich/nakarte/issues/106: the file treated as invalid
    (tmp_path / "a.plt").write_bytes(written.write["plt"](written.walk(3)).encode())
    assert read_trace(tmp_path / "a.plt").n_rows == 3


def test_missing_altitudes_do_not_shift_rows(written, tmp_path):
    # https://github.com/marcusvolz/strava/issues/15: 10,754 points and 10,715 elevations
    path = tmp_path / "a.gpx"
    text = written.write["gpx"](written.walk(5))
    path.write_text(text.replace('lon="7.998000">', 'lon="7.998000"><ele>7</ele>'))
    np.testing.assert_allclose(read_trace(path).latitude, 50 + np.arange(5) / 1e3, rtol=1e-14)


def test_recorded_files_with_the_same_defects(real_data):
    assert read_trace(real_data / "animals/leroy.csv.gz").cleaning.missing_position == 1071
    # Its points, which are written with exponents, have no times.
    small = read_gpx((real_data / "gpx/gpxpy/track-with-small-floats.gpx").read_text(), "all")
    assert 0 < np.min(np.abs(small.longitude)) < 1e-3


def test_title_with_a_byte_that_ends_lines_elsewhere(written, tmp_path):
    # 0x85 is an ellipsis in Windows-1252 and a line end in Unicode.
    content = written.write["plt"](written.walk(3)).replace("1,x,0", "1,more\u2026,0").encode("cp1252")
    (tmp_path / "a.plt").write_bytes(content)
    (tmp_path / "a.csv").write_bytes("na\u2026me,time,lat,lon\nx\u2026,1,40,7\n".encode("cp1252"))
    assert (read_trace(tmp_path / "a.plt").n_rows, read_trace(tmp_path / "a.csv").n_rows) == (3, 1)
