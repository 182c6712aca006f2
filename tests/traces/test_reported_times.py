"""Times that broke other programs, rebuilt in each format that can have them; the public report is named at each."""

from __future__ import annotations

import calendar

import numpy as np
import pytest

from jaxpriv.errors import InputError
from jaxpriv.traces.files import read_trace, sanitised_text


def _us(*moment):
    return calendar.timegm((*moment, 0, 0, 0)[:6]) * 10**6


# What the file says, and the one instant that it means, in microseconds since 1970; other programs' results beside it.
INSTANTS = {
    # https://github.com/tkrajina/gpxpy/issues/190: written back as 10:36:53Z, six hours off
    "an offset without a colon": ("2018-04-04T10:36:53-0600", 1522859813_000000),
    # https://github.com/SamR1/FitTrackee/issues/156: counted on the 28th
    "the day on which summer time begins": ("2022-03-27T22:32:01.137+02:00", 1648413121_137000),
    # https://github.com/nim-lang/Nim/issues/6502, https://github.com/ThreeTen/threeten/issues/303: lost or refused
    "a leap second": ("2016-12-31T23:59:60+00:00", _us(2017, 1, 1)),
    "an offset of a quarter of an hour": ("2021-01-07T21:51:59.179+01:15", 1610051819_179000),
    "a time before 1970, too fine": ("1901-12-13T20:45:52.2073437Z", -(2**31) * 10**6 + 207343),
}


@pytest.mark.parametrize(("stamp", "us"), INSTANTS.values(), ids=INSTANTS)
@pytest.mark.parametrize("kind", ["csv", "gpx"])
def test_one_instant_however_it_is_written(stamp, us, kind, written, tmp_path):
    path = tmp_path / f"a.{kind}"
    path.write_text(written.write[kind]([(stamp, "50", "8")]))
    trace = read_trace(path)
    assert trace.time_us.tolist() == [us]
    assert trace.cleaning.leap_seconds == (":60" in stamp)
    path.write_text(sanitised_text(trace, trace.latitude, trace.longitude, ""))
    assert read_trace(path).time_us.tolist() == [us]


# Rows by their seconds after noon (None: no time), and the seconds of the points that are left, with the count that the
# named rule reports.
MINUTES = [60 * i for i in range(4)]
ORDERS = {
    # https://github.com/tkrajina/gpxpy/issues/197: division by zero in the speed
    "two places at one second": ([0, 1, 1], [0, 1], "duplicate_rows", 1),
    # https://github.com/movingpandas/qgis-trajectools/issues/8: drawn in the order of the file
    "stored by number, not by time": ([120, 0, 180, 60], MINUTES, "out_of_order", 2),
    # https://github.com/osmandapp/OsmAnd/pull/12850: a negative moving time, then its absolute value
    "the whole track backwards": (MINUTES[::-1], MINUTES, "out_of_order", 3),
    # https://github.com/remisalmon/gpx-interpolate/issues/4: an error far from the cause
    "only the last point has no time": ([*MINUTES, None], MINUTES, "missing_time", 1),
    # https://github.com/tumic0/GPXSee/issues/237: good points removed as outliers
    "only a few points have a time": ([None, 0, None, None, 420, None], [0, 420], "missing_time", 4),
}


@pytest.mark.parametrize(("rows", "left", "rule", "count"), ORDERS.values(), ids=ORDERS)
def test_order_and_missing_times(rows, left, rule, count, read, written):
    places = [(f"50.{i}", f"8.{i}") for i in range(len(rows))]
    trace = read(*((None if s is None else written.stamp(s), *p) for s, p in zip(rows, places, strict=True)))
    assert (written.seconds(trace), getattr(trace.cleaning, rule)) == (left, count)
    by_time = sorted((s, i) for i, s in enumerate(rows) if s is not None)
    np.testing.assert_array_equal(trace.latitude, [float(f"50.{i}") for _, i in by_time])
    with pytest.raises(InputError, match="strict reading"):
        read(*((None if s is None else written.stamp(s), *p) for s, p in zip(rows, places, strict=True)), strict=True)


def test_two_places_at_one_second_are_one_point_and_two_rows(read, written):
    # https://github.com/tkrajina/gpxpy/issues/197
    rows = ((written.stamp(0), "50", "8"), (written.stamp(1), "50.1", "8.1"), (written.stamp(1), "50.3", "8.3"))
    trace = read(*rows)
    place = trace.mean_by_point(np.stack([trace.latitude, trace.longitude], axis=1))
    np.testing.assert_allclose(place[1], [50.2, 8.2], rtol=1e-14)
    text = sanitised_text(trace, np.array([1.0, 2.0]), np.array([3.0, 4.0]), "")
    assert (text.count("1.0000000"), text.count("2.0000000")) == (1, 2)


def test_release_of_a_shuffled_trace_is_that_of_the_sorted_one(read, written, rng):
    # https://github.com/movingpandas/qgis-trajectools/issues/8, https://github.com/osmandapp/OsmAnd/pull/12850
    rows = written.walk(25, 7)
    plain = read(*rows)
    for order in (np.arange(25)[::-1], rng.permutation(25)):
        trace = read(*(rows[i] for i in order))
        np.testing.assert_array_equal(trace.time_us, plain.time_us)
        assert sanitised_text(trace, trace.latitude, trace.longitude, "") == sanitised_text(
            plain, plain.latitude, plain.longitude, ""
        )


def test_fractions_of_one_second_are_kept(read, written):
    # https://github.com/mapillary/mapillary_tools/pull/313: cut, and so made equal
    rows = [(f"2024-05-01T12:00:01.{f}Z", "50", f"8.{i}") for i, f in enumerate(("2", "6", "994", "9999999"))]
    trace = read(*rows)
    # Digits beyond the microsecond are cut, and counted.
    assert [us - written.start * 10**6 for us in trace.time_us] == [1_200_000, 1_600_000, 1_994_000, 1_999_999]
    assert (trace.cleaning.duplicate_rows, trace.cleaning.cut_times) == (0, 1)
    assert "12:00:01.994" in sanitised_text(trace, trace.latitude, trace.longitude, "")


def test_no_time_is_ever_made_up(read, written):
    # https://github.com/kf99916/gpx-parser-builder/issues/13: the clock's time filled in
    with pytest.raises(InputError, match=r"3 rows read.*3 rows dropped: no time"):
        read(*((None, lat, lon) for _, lat, lon in written.walk(3)))


@pytest.mark.parametrize("kind", ["csv", "gpx"])
def test_durations_stay_where_summer_time_begins(kind, written, tmp_path):
    # https://github.com/movingpandas/mobiml/issues/47: times no longer increasing
    stamps = [f"2018-03-25T{clock}" for clock in ("01:50:00+01:00", "01:55:00+01:00", "03:00:00+02:00", "03:05+02")]
    (tmp_path / f"a.{kind}").write_text(written.write[kind]([(s, "50", f"8.{i}") for i, s in enumerate(stamps)]))
    trace = read_trace(tmp_path / f"a.{kind}")
    assert (np.diff(trace.seconds).tolist(), trace.cleaning.out_of_order) == ([300, 300, 300], 0)


@pytest.mark.parametrize(
    ("file", "points", "untimed"),
    # https://github.com/tumic0/GPXSee/issues/237; counted with grep -c of trkpt and of time inside it
    [("gpxpy/korita-zbevnica.gpx", 871, 358), ("gpsbabel/trackfilter_discard.gpx", None, None)],
)
def test_recorded_files_with_points_without_a_time(file, points, untimed, real_data):
    cleaning = read_trace(real_data / "gpx" / file, track="all").cleaning
    if points is None:
        assert cleaning.missing_time > 0
    else:
        assert (cleaning.rows_read, cleaning.missing_time) == (points, untimed)


@pytest.mark.parametrize("kind", ["csv", "gpx"])
@pytest.mark.parametrize(
    "stamp", ["0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00", "9999-12-31T23:59:60Z", "12024-05-01"]
)
def test_instants_outside_the_calendar(stamp, kind, written, tmp_path):
    (tmp_path / f"a.{kind}").write_text(written.write[kind]([(stamp, "50", "8")]))
    with pytest.raises(InputError, match=r"the time is (a time outside|not ISO)"):
        read_trace(tmp_path / f"a.{kind}")


@pytest.mark.parametrize("stamp", ["1e17", "253402300800000", "99999999999999999999", "-1e15"])
def test_numbers_outside_the_calendar(stamp, written, tmp_path):
    (tmp_path / "a.csv").write_text(written.write["csv"]([(stamp, "50", "8")]))
    with pytest.raises(InputError, match="row 2: the time is a time outside the years 1 to 9999"):
        read_trace(tmp_path / "a.csv")


@pytest.mark.parametrize("text", ["20240501", "20240501083000", "202405010830", "19991231"])
def test_dates_without_hyphens_are_not_numbers_of_seconds(text, written, tmp_path):
    (tmp_path / "a.csv").write_text(written.write["csv"]([(text, "50", "8")]))
    with pytest.raises(InputError, match="row 2: the time is a number that may be a date"):
        read_trace(tmp_path / "a.csv")
