"""PLT files, as GeoLife and OziExplorer write them."""

from __future__ import annotations

import calendar

import numpy as np
import pytest

from jaxpriv.errors import InputError
from jaxpriv.traces.cleaning import clean
from jaxpriv.traces.contents import ReadOptions
from jaxpriv.traces.files import read_trace, sanitised_text
from jaxpriv.traces.plt_format import read_plt


HEADER = [
    "Geolife trajectory",
    "WGS 84",
    "Altitude is in Feet",
    "Reserved 3",
    "0,2,255,SENTINEL NAME,0,0,2,8421376",
    "0",
]


def _plt(*rows, header=HEADER):
    return "\r\n".join([*header, *rows]) + "\r\n"


GEOLIFE = _plt(
    "40.001643,116.342712,0,354,39748.5097453704,2008-10-27,12:14:02",
    "40.001699,116.342861,0,-777,39748.5097685185,2008-10-27,12:14:04",
)
NOON = calendar.timegm((2008, 10, 27, 12, 14, 2)) * 10**6


def test_rows_are_read_though_the_header_counts_none():
    trace = clean(read_plt(GEOLIFE))
    assert trace.time_us.tolist() == [NOON, NOON + 2_000_000]
    np.testing.assert_array_equal(trace.latitude, [40.001643, 40.001699])


def test_day_number_serves_when_date_and_time_are_missing_or_in_words():
    rows = ["  47.466222,   3.747318,0, 1258.8,39307.3279977, 13-août-07, 07:52:19", "1.0,2.0,1,-777.0,39307.3280093,,"]
    raw = read_plt(_plt(*rows))
    base = calendar.timegm((2007, 8, 13, 7, 52, 19)) * 10**6
    # Seven decimals of a day are 8.64 ms.
    assert [abs(raw.time_us[i] - base - i * 1_000_000) <= 9_000 for i in (0, 1)] == [True, True]


def test_written_file_reads_back_and_copies_nothing():
    trace = clean(read_plt(GEOLIFE))
    written = sanitised_text(trace, np.array([39.0, -39.5]), np.array([116.0, 0.0]), "SIMULATED")
    assert "SENTINEL" not in written
    assert "354" not in written
    assert written.count("\r\n") == len(written.splitlines()) == 8
    assert written.splitlines()[6] == " 39.0000000, 116.0000000,0,-777,39748.5097453704,2008-10-27,12:14:02"
    again = clean(read_plt(written))
    np.testing.assert_array_equal(again.time_us, trace.time_us)
    np.testing.assert_array_equal(again.latitude, [39.0, -39.5])


def test_fractions_of_a_second_survive():
    trace = clean(read_plt(_plt("40,116,0,0,0,2008-10-27,12:14:02.25", "40,116,0,0,0,2008-10-27,12:14:02.75")))
    again = clean(read_plt(sanitised_text(trace, trace.latitude, trace.longitude, "")))
    assert again.time_us.tolist() == [NOON + 250_000, NOON + 750_000]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a\nb\n", "six header lines"),
        (_plt("40,116,0,0,1,2008-10-27,12:14:02", header=[*HEADER[:1], "Pulkovo 1942", *HEADER[2:]]), "datum"),
        (_plt("40,0016,116,3,0,0,39748.5,2008-10-27,12:14:02"), "row 7: 9 cells"),
        (_plt("40,116,0,0,1,2008-10-27,12:14:02", "x,116,0,0,1,2008-10-27,12:14:02"), "row 8: the latitude"),
        (_plt("40,116,0,0,later,27-Oct-08,12:14:02"), "row 7: the day number"),
        (_plt("40,0016,116.3,0,0,39748.5"), "row 7: the third cell is not 0 or 1"),
        (_plt("40,116,0,0,-5,,"), "row 7: the day number is out of range"),
        (_plt("40,116,0,0,sNaN,,"), "row 7: the day number is not a number"),
        (_plt(), "0 rows read"),
    ],
)
def test_refusals(text, words):
    with pytest.raises(InputError, match=words):
        clean(read_plt(text))


def test_latitude_400_is_dropped_and_counted():
    trace = clean(read_plt(GEOLIFE + "400.166666666667,116.21539,0,0,40797.1415972222,2011-09-11,03:23:54\r\n"))
    assert (trace.n_rows, trace.cleaning.out_of_range) == (2, 1)


def test_real_geolife_files(real_data):
    paths = sorted(real_data.glob("geolife/raw_plt/12*/Trajectory/*.plt"))[:40]
    paths += [real_data / "geolife/raw_plt/128/Trajectory/20090222093321.plt"]
    for path in paths:
        if path.stat().st_size > 250_000:
            continue
        trace = read_trace(path)
        written = sanitised_text(trace, trace.latitude, trace.longitude, "") if trace.n_rows == trace.n_points else None
        if written is not None:
            again = clean(read_plt(written))
            np.testing.assert_array_equal(again.time_us, trace.time_us)
            np.testing.assert_allclose(again.latitude, trace.latitude, rtol=0, atol=0.51e-7)


def test_real_tables(real_data):
    with pytest.raises(InputError, match="72 people"):
        read_trace(real_data / "taxi/Beijing_taxi.csv")
    with pytest.raises(InputError, match="3 people"):
        read_trace(real_data / "geolife/movingpandas_demodata_geolife.csv")
    with pytest.raises(InputError, match="256 people"):
        read_trace(real_data / "other/boat-positions.csv")
    with pytest.raises(InputError, match=r"row \d+: the time is not ISO 8601"):
        read_trace(real_data / "other/boat-positions.csv", options=ReadOptions(who="1"))


def test_real_animal_rows_without_position_are_dropped(real_data):
    trace = read_trace(real_data / "animals/leroy.csv.gz")
    assert (trace.cleaning.missing_position, trace.n_rows) == (1071, 919)
