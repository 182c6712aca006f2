"""Defects that users of other tools reported, rebuilt in each format that can have them: the right outcome is the test.

Each test names the public report it follows. Coordinates are made up; spacing and defect are kept.
"""

from __future__ import annotations

import calendar
import re

import numpy as np
import pytest

from jaxpriv.errors import InputError
from jaxpriv.traces.files import read_trace, sanitised_text
from jaxpriv.traces.projection import LocalPlane, public_origin


START = calendar.timegm((2024, 5, 1, 12, 0, 0))


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


WRITE = {"csv": _csv, "gpx": _gpx, "plt": _plt}


def _stamp(seconds):
    minute, second = divmod(seconds, 60)
    return f"2024-05-01T{12 + minute // 60:02d}:{minute % 60:02d}:{second:02d}Z"


@pytest.fixture(params=sorted(WRITE))
def read(request, tmp_path):
    """Write rows (time or None, latitude, longitude) in one of the formats, and read the file."""

    def reading(*rows):
        path = tmp_path / f"trace.{request.param}"
        path.write_text(WRITE[request.param](rows), encoding="utf-8", newline="")
        return read_trace(path)

    reading.format = request.param
    return reading


def _walk(n, step=60):
    return [(_stamp(step * i), f"{50 + i / 1e3:.6f}", f"{8 - i / 1e3:.6f}") for i in range(n)]


def _seconds(trace):
    return ((trace.time_us - START * 10**6) / 1e6).tolist()


def _positions(trace):
    return trace.mean_by_point(np.stack([trace.latitude, trace.longitude], axis=1)).tolist()


class TestTimes:
    def test_two_places_at_one_second(self, read):  # tkrajina/gpxpy#197: division by zero
        trace = read((_stamp(0), "50", "8"), (_stamp(1), "50.1", "8.1"), (_stamp(1), "50.3", "8.3"))
        assert (_seconds(trace), trace.n_rows, trace.cleaning.duplicate_rows) == ([0, 1], 3, 1)
        np.testing.assert_allclose(_positions(trace)[1], [50.2, 8.2], rtol=1e-14)
        written = sanitised_text(trace, np.array([1.0, 2.0]), np.array([3.0, 4.0]), "")
        assert (written.count("1.0000000"), written.count("2.0000000")) == (1, 2)

    def test_fractions_of_one_second(self, read):  # mapillary/mapillary_tools#313: cut, made equal
        rows = [(f"2024-05-01T12:00:01.{f}Z", "50", f"8.{i}") for i, f in enumerate(("2", "6", "994", "9999999"))]
        trace = read(*rows)
        # Digits beyond the microsecond are cut.
        assert [us - START * 10**6 for us in trace.time_us] == [1_200_000, 1_600_000, 1_994_000, 1_999_999]
        assert "12:00:01.994" in sanitised_text(trace, trace.latitude, trace.longitude, "")

    def test_order_of_the_file_does_not_matter(self, read, rng):
        # movingpandas/qgis-trajectools#8 (stored by id), osmandapp/OsmAnd#12850 (reverse order)
        rows = _walk(25, 7)
        plain = read(*rows)
        for order in (np.arange(25)[::-1], rng.permutation(25)):
            trace = read(*(rows[i] for i in order))
            np.testing.assert_array_equal(trace.time_us, plain.time_us)
            np.testing.assert_array_equal(trace.latitude, plain.latitude)
            assert trace.cleaning.out_of_order > 0
            assert sanitised_text(trace, trace.latitude, trace.longitude, "") == sanitised_text(
                plain, plain.latitude, plain.longitude, ""
            )

    def test_only_the_last_point_has_no_time(self, read):  # remisalmon/gpx-interpolate#4
        trace = read(*_walk(4), (None, "50.9", "8.9"))
        assert (trace.n_rows, trace.cleaning.missing_time, max(trace.latitude) < 50.01) == (4, 1, True)
        assert "1 row dropped: no time." in trace.cleaning.sentences()

    def test_some_points_have_a_time(self, read):
        # tumic0/GPXSee#237 (good points removed), kf99916/gpx-parser-builder#13 (the clock's time filled in)
        rows = [(stamp if i % 7 == 0 else None, lat, lon) for i, (stamp, lat, lon) in enumerate(_walk(22))]
        trace = read(*rows)
        assert (_seconds(trace), trace.cleaning.missing_time) == ([0, 420, 840, 1260], 18)

    def test_no_point_has_a_time(self, read):
        with pytest.raises(InputError, match=r"3 rows read.*3 rows dropped: no time"):
            read(*((None, lat, lon) for _, lat, lon in _walk(3)))

    @pytest.mark.parametrize(
        ("stamp", "us"),
        [
            ("2018-04-04T10:36:53-0600", 1522859813_000000),  # tkrajina/gpxpy#190: six hours off
            ("2022-03-27T22:32:01.137+02:00", 1648413121_137000),  # SamR1/FitTrackee#156: day of a clock change
            ("2021-01-07T21:51:59.179+01:15", 1610051819_179000),  # offsets of quarter hours
            ("1901-12-13T20:45:52.2073437Z", -(2**31) * 10**6 + 207343),
            # nim-lang/Nim#6502: a leap second is the first second of the next day, as in POSIX time
            ("2016-12-31T23:59:60+00:00", calendar.timegm((2017, 1, 1, 0, 0, 0)) * 10**6),
        ],
    )
    def test_one_instant_however_it_is_written(self, stamp, us, tmp_path):
        for kind in ("csv", "gpx"):
            path = tmp_path / f"a.{kind}"
            path.write_text(WRITE[kind]([(stamp, "50", "8")]))
            trace = read_trace(path)
            assert trace.time_us.tolist() == [us]
            path.write_text(sanitised_text(trace, trace.latitude, trace.longitude, ""))
            assert read_trace(path).time_us.tolist() == [us]

    def test_summer_time_begins(self, tmp_path):  # movingpandas/mobiml#47: times no longer increasing
        stamps = [f"2018-03-25T{clock}" for clock in ("01:50:00+01:00", "01:55:00+01:00", "03:00:00+02:00", "03:05+02")]
        for kind in ("csv", "gpx"):
            (tmp_path / f"a.{kind}").write_text(WRITE[kind]([(s, "50", f"8.{i}") for i, s in enumerate(stamps)]))
            trace = read_trace(tmp_path / f"a.{kind}")
            assert (np.diff(trace.seconds).tolist(), trace.cleaning.out_of_order) == ([300, 300, 300], 0)

    @pytest.mark.parametrize(
        "stamp",
        ["0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00", "9999-12-31T23:59:60Z", "12024-05-01"],
    )
    def test_instants_outside_the_calendar(self, stamp, tmp_path):
        for kind in ("csv", "gpx"):
            (tmp_path / f"a.{kind}").write_text(WRITE[kind]([(stamp, "50", "8")]))
            with pytest.raises(InputError, match=r"the time is (a time outside|not ISO)"):
                read_trace(tmp_path / f"a.{kind}")

    @pytest.mark.parametrize("stamp", ["1e17", "253402300800000", "99999999999999999999", "-1e15"])
    def test_numbers_outside_the_calendar(self, stamp, tmp_path):
        (tmp_path / "a.csv").write_text(_csv([(stamp, "50", "8")]))
        with pytest.raises(InputError, match="row 2: the time is a time outside the years 1 to 9999"):
            read_trace(tmp_path / "a.csv")


class TestPlaces:
    def test_across_the_date_line(self, read):  # movingpandas/movingpandas#299: (-42.3, 33.7) half way
        trace = read((_stamp(0), "0", "-179.5"), (_stamp(600), "0", "179.5"))
        plane = public_origin(trace.latitude, trace.longitude)
        lat, lon = plane.to_degrees(plane.to_metres(trace.latitude, trace.longitude).mean(axis=0, keepdims=True))
        assert (abs(lat[0]) < 1e-9, abs(abs(lon[0]) - 180) < 1e-9) == (True, True)
        written = sanitised_text(trace, np.zeros(2), np.array([179.99999999, -179.99999999]), "")
        assert len(re.findall(r"-180\.0000000", written)) == (2 if read.format == "gpx" else 1)

    def test_long_and_zero_distances(self):
        # chrisveness/geodesy#44 (no convergence), mapbox/mapbox-gl-native#3556 (arc cosine of 1 + 2e-16)
        metres = LocalPlane(40.08, 116.585).to_metres(np.array([33.943]), np.array([-118.408]))
        assert abs(np.hypot(*metres[0]) - 10_059_214.493) < 1e-3
        twice = LocalPlane(40.7, -74.0).to_metres(np.full(2, 40.71199035644531), np.full(2, -74.0081))
        assert np.all(twice[0] == twice[1])

    def test_turns_and_poles(self, read):
        # uber/h3#287 (bindings disagree on a latitude + 180, a longitude + 360), OpenStrap/edge#417 (NaN passes > 90)
        trace = read(
            (_stamp(0), "50", "368"),
            (_stamp(1), "230", "8"),
            (_stamp(2), "NaN", "8"),
            (_stamp(3), "91", "8"),
            (_stamp(4), "50", "8.25"),
            (_stamp(5), "50", "-352"),
            (_stamp(6), "50", "800"),
            (_stamp(7), "90", "-180"),
        )
        np.testing.assert_allclose(trace.longitude, [8, 8.25, 8, -180], rtol=1e-14)
        done = trace.cleaning
        assert (done.out_of_range, done.missing_position, done.longitude_wrapped) == (3, 1, 2)

    @pytest.mark.parametrize(("lat", "lon"), [("49,97", "7,93"), ("49,97", "7.93"), ("49", "7,93")])
    def test_decimal_commas(self, read, lat, lon):  # GoldenCheetah/GoldenCheetah#2913
        with pytest.raises(InputError, match=r"decimal|comma"):
            read((_stamp(0), "50", "8"), (_stamp(1), lat, lon))

    def test_exponents(self, read):  # cgeo/cgeo#17130, tkrajina/gpxpy#96: written as 5.17E-4
        trace = read((_stamp(0), "-2e-7", "5.17E-4"), (_stamp(1), "5E1", "8e+00"))
        assert _positions(trace) == [[-2e-7, 5.17e-4], [50, 8]]
        written = sanitised_text(trace, trace.latitude, trace.longitude, "")
        assert ("-0.0000002" in written, "0.0005170" in written) == (True, True)
        assert not re.search(r"\d[eE][+-]?\d", written)

    def test_missing_altitudes_do_not_shift_rows(self, tmp_path):  # marcusvolz/strava#15
        path = tmp_path / "a.gpx"
        path.write_text(_gpx(_walk(5)).replace('lon="7.998000">', 'lon="7.998000"><ele>7</ele>'))
        np.testing.assert_allclose(read_trace(path).latitude, 50 + np.arange(5) / 1e3, rtol=1e-14)

    def test_header_that_counts_no_points(self, tmp_path):  # wladich/nakarte#106
        (tmp_path / "a.plt").write_bytes(_plt(_walk(3)).encode())
        assert read_trace(tmp_path / "a.plt").n_rows == 3

    def test_title_with_a_byte_that_ends_lines_elsewhere(self, tmp_path):
        # 0x85 is an ellipsis in Windows-1252 and a line end in Unicode.
        content = _plt(_walk(3)).replace("1,x,0", "1,more\u2026,0").encode("cp1252")
        (tmp_path / "a.plt").write_bytes(content)
        (tmp_path / "a.csv").write_bytes("na\u2026me,time,lat,lon\nx\u2026,1,40,7\n".encode("cp1252"))
        assert (read_trace(tmp_path / "a.plt").n_rows, read_trace(tmp_path / "a.csv").n_rows) == (3, 1)


class TestShapes:
    def test_one_point(self, read):  # movingpandas/movingpandas#77
        trace = read((_stamp(0), "50", "8"))
        assert (trace.n_points, trace.median_step_s, trace.step_m) == (1, 0.0, 0.0)

    def test_a_first_segment_of_one_point(self, tmp_path):  # organicmaps/organicmaps#9602: the whole track was lost
        text = _gpx([(_stamp(0), "50", "8"), *_walk(9)[2:]]).replace("</trkpt>\n", "</trkpt></trkseg><trkseg>", 1)
        (tmp_path / "a.gpx").write_text(text)
        assert _seconds(read_trace(tmp_path / "a.gpx")) == [0, *range(120, 540, 60)]

    def test_a_gap_keeps_its_length(self, read):  # Runalyze/Runalyze#2194: joined at 1,500 km/h
        trace = read(
            (_stamp(0), "50", "8"),
            (_stamp(60), "50.001", "8"),
            (_stamp(3840), "50.06", "8.03"),
            (_stamp(3900), "50.061", "8.03"),
        )
        assert _seconds(trace) == [0, 60, 3840, 3900]

    def test_row_labels_that_skip_numbers(self, tmp_path):  # scikit-mobility/scikit-mobility#191
        (tmp_path / "a.csv").write_text("id,time,lat,lon\n0,1,50,8\n3,2,50.1,8\n9,3,50.2,8\n")
        assert read_trace(tmp_path / "a.csv").latitude.tolist() == [50, 50.1, 50.2]

    def test_a_bad_first_fix_spoils_nothing(self, read):  # jchable/gpx-utility-analyzer#77
        rows = [(_stamp(0), "0", "0"), *_walk(2000, 1)[1:]]
        trace = read(*rows)
        assert (trace.n_rows, trace.cleaning.zero_fix) == (1999, 1)


@pytest.mark.parametrize("text", ["20240501", "20240501083000", "202405010830", "19991231"])
def test_dates_without_hyphens_are_not_numbers_of_seconds(text, tmp_path):
    (tmp_path / "a.csv").write_text(_csv([(text, "50", "8")]))
    with pytest.raises(InputError, match="row 2: the time is a number that may be a date"):
        read_trace(tmp_path / "a.csv")


@pytest.mark.parametrize("kind", sorted(WRITE))
def test_damaged_files_raise_nothing_but_input_errors(kind, tmp_path, rng):
    whole = WRITE[kind](_walk(6)).encode()
    path = tmp_path / f"a.{kind}"
    alphabet = b"0123456789.,-+:TZeE<>/\"'&; \n\r\0\xff\x85naN"
    read = refused = 0
    for _ in range(200):
        damaged = bytearray(whole)
        for _ in range(rng.integers(1, 3)):
            at = int(rng.integers(len(damaged)))
            match rng.integers(4):
                case 0:
                    damaged[at] = alphabet[rng.integers(len(alphabet))]
                case 1:
                    damaged.insert(at, alphabet[rng.integers(len(alphabet))])
                case 2:
                    del damaged[at : at + int(rng.integers(1, 30))]
                case _:
                    damaged[at:at] = damaged[at : at + int(rng.integers(1, 30))]
        path.write_bytes(bytes(damaged))
        try:
            trace = read_trace(path)
            assert np.all(np.diff(trace.time_us) > 0)
            assert np.all(np.isfinite(trace.latitude) & (np.abs(trace.longitude) <= 180))
            sanitised_text(trace, np.zeros(trace.n_points), np.zeros(trace.n_points), "")
            read += 1
        except InputError:
            refused += 1
    assert (read > 10, refused > 10) == (True, True)


@pytest.mark.slow
def test_every_real_file_gives_a_trace_or_a_reason(real_data, tmp_path):
    folders = {"gpx", "geolife", "taxi", "animals", "other"}
    read = refused = 0
    for path in sorted(real_data.glob("*/**/*")):
        if not path.is_file() or path.relative_to(real_data).parts[0] not in folders:
            continue
        try:
            trace = read_trace(path)
        except InputError:
            refused += 1
            continue
        assert np.all(np.diff(trace.time_us) > 0)
        assert np.all(np.isfinite(trace.latitude) & (np.abs(trace.latitude) <= 90))
        assert np.all(np.isfinite(trace.longitude) & (np.abs(trace.longitude) <= 180))
        assert trace.cleaning.rows_read == trace.cleaning.dropped + trace.n_rows
        text = sanitised_text(trace, np.zeros(trace.n_points), np.zeros(trace.n_points), "")
        written = tmp_path / f"again.{trace.style.kind}"
        written.write_text(text.replace("0.0000000", "1.0000000"), encoding="utf-8", newline="")
        again = read_trace(written)
        np.testing.assert_array_equal(again.time_us, trace.time_us)
        np.testing.assert_array_equal(again.point_of_row, trace.point_of_row)
        read += 1
    assert read > 1300
    assert refused > 20
