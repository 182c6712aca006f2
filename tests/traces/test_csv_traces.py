"""Tables of positions: the defects that real exports have."""

from __future__ import annotations

import csv
import io
import math

import numpy as np
import pytest

from jaxpriv.errors import InputError
from jaxpriv.traces.cleaning import clean
from jaxpriv.traces.csv_format import read_csv
from jaxpriv.traces.files import read_trace, sanitised_text


HEADER = "time,lat,lon\n"


def _rows(*rows, header=HEADER):
    return header + "".join(f"{row}\n" for row in rows)


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("lat,lng,datetime,uid", "40.5,116.5,2020-01-01T00:00:00Z,001"),
        ("X;Y;fid;id;sequence;trajectory_id;tracker;t", "116.5;40.5;1;1;1;1;19;2020-01-01 00:00:00+00"),
        ("TaxiID,TimeStamp,Longitude,Latitude", "1,2020-01-01 00:00:00,116.5,40.5"),
        ("\ufeffID,ais_pos_timestamp,longitude,latitude", "1,2020-01-01T00:00:00Z,116.5,40.5"),
        ("MMSI,BaseDateTime,LAT,LON,SOG", "1,2020-01-01T00:00:00,40.5,116.5,3"),
        (
            '"event-id","timestamp","location-long","location-lat","ground.speed"',
            '1,"2020-01-01 00:00:00.000",116.5,40.5,2',
        ),
        ("trace_id,user,utc_epoch_s,lat,lon,alt_ft", "0,002,1577836800,40.5,116.5,492"),
        ("date\ttime\tlatitude\tlongitude", "2020-01-01\t00:00:00\t40.5\t116.5"),
        ("timestamp|LATITUDE (deg)|longitude_deg|lat", "2020-01-01T00:00:00Z|xx|116.5|40.5"),
    ],
)
def test_headers_of_common_exports(header, row, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f"{header}\n{row}\n", encoding="utf-8")
    trace = read_trace(path)
    assert trace.time_us.tolist() == [1577836800_000000]
    assert (trace.latitude[0], trace.longitude[0]) == (40.5, 116.5)


def test_utf16_and_windows_line_ends(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(_rows("2020-01-01T00:00:00Z,40.5,116.5").replace("\n", "\r\n").encode("utf-16"))
    assert read_trace(path).n_rows == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "first line"),
        ("a,b,c\n1,2,3\n", "name them time, lat and lon"),
        ("37.75 -122.39 0 1211033530\n", "name them time, lat and lon"),
        ("time,lat,lat,lon\n1,2,3,4\n", "same name"),
        (_rows("1,49.97"), "row 2: 2 cells where the header has 3"),
        (_rows("0,1,1", "1,49,97,7,93"), "row 3: 5 cells"),  # decimal commas are never read as 49 and 97
        (_rows('1,"49,97","7,93"'), "row 2: the latitude is not a number of degrees; write decimals with a point"),
        ("time;lat;lon\n1;49,97;7,93\n2;49.98;7.94\n", "row 3: the latitude has a decimal point where rows before"),
        ("time;lat;lon\n1;49.97;7.93\n2;49,98;7,94\n", "row 3: a decimal comma where rows before have"),
        ("time;lat;lon\n1;1.049,97;7,93\n", "row 2: the latitude is not a number of degrees"),
        (_rows("1,40,0x1F"), "row 2: the longitude"),
        (_rows("1,40,7", "20/03/2021 00:22,40,7"), "row 3: the time is not ISO 8601"),
        (_rows("1,40,7", "2020-01-01T00:00:00Z,40,7"), "row 3: the time is written in another way"),
        (_rows("1,40,7", "2016-06-30T10:59:60Z,40,7"), "row 3: the time is second 60"),
        (_rows('1,"40,7'), "quotation mark"),
        (HEADER, "0 rows read"),
        (_rows("1,NA,7", "2,,7", ",40,7", "3,0,0", "4,91,7"), "5 rows read"),
        ("user,time,lat,lon\na,1,40,7\nb,2,40,7\n", "2 people"),
        ("ID,time,lat,lon\n1,1,40,7\n1,2,40,7\n2,3,40,7\n", "split the file by that column"),
    ],
)
def test_refusals_say_where_and_what_to_do(text, words):
    with pytest.raises(InputError, match=words):
        clean(read_csv(text))


def test_a_column_that_numbers_the_rows_is_no_person():
    assert clean(read_csv("id,time,lat,lon\n1,1,40,7\n2,2,40,7\n3,3,40,7\n")).n_rows == 3


def test_small_numbers_with_exponents_are_read_and_written_plainly():
    trace = clean(read_csv(_rows("0,-2e-7,5.17E-4", "1,1e-7,6E-4")))
    np.testing.assert_array_equal(trace.latitude, [-2e-7, 1e-7])
    written = sanitised_text(trace, trace.latitude, trace.longitude, "")
    assert written == "time,lat,lon\n0, -0.0000002,   0.0005170\n1,  0.0000001,   0.0006000\n"


def test_written_table_has_the_same_format_and_nothing_else():
    text = (
        "name;Time;speed;LAT;Lon\nSENTINEL;2020-01-01T01:00:00.5+01:00;77.7;40.123456;116.2\n"
        "SENTINEL;2020-01-01T00:01:00Z;77.7;40.2;116.3\n"
    )
    trace = clean(read_csv(text))
    written = sanitised_text(trace, np.array([1.0, -1e-9]), np.array([2.0, -179.99999999]), "")
    rows = list(csv.reader(io.StringIO(written), delimiter=";"))
    assert rows == [
        ["Time", "LAT", "Lon"],
        ["2020-01-01T00:00:00.5Z", "  1.0000000", "   2.0000000"],
        ["2020-01-01T00:01:00Z", " -0.0000000", "-180.0000000"],
    ]


def test_missing_and_impossible_rows_are_dropped_and_counted():
    trace = clean(
        read_csv(
            _rows(
                "0,0,0",  # a receiver without a fix, first: it must not spoil the good rows after it
                "1,40,7",
                "2,nan,7",
                "3,91,7",
                "4,NaN,NaN",
                "5,40.1,7.1",
                "6,400.166,116",
                "7,40,",
                ",40,7",
                "8,40.2,367.2",
                "9,40,999",
            )
        )
    )
    done = trace.cleaning
    assert (done.zero_fix, done.missing_position, done.missing_time, done.out_of_range) == (1, 3, 1, 3)
    assert done.longitude_wrapped == 1
    assert (done.rows_read, done.dropped, trace.n_rows) == (11, 8, 3)
    np.testing.assert_allclose(trace.longitude, [7, 7.1, 7.2], rtol=1e-14)
    assert all(count in " ".join(done.sentences()) for count in ("1 row dropped", "3 rows dropped"))


def test_time_order_does_not_depend_on_file_order(rng):
    rows = [f"{60 * i + (i % 3)},{40 + i / 1e3:.6f},{7 - i / 1e3:.6f}" for i in range(20)]
    plain = clean(read_csv(_rows(*rows)))
    for order in (rng.permutation(20), np.arange(20)[::-1]):
        shuffled = clean(read_csv(_rows(*(rows[i] for i in order))))
        np.testing.assert_array_equal(shuffled.time_us, plain.time_us)
        np.testing.assert_array_equal(shuffled.latitude, plain.latitude)
        assert shuffled.cleaning.out_of_order > 0


def test_rows_of_one_instant_are_merged_and_written_to_each():
    trace = clean(read_csv(_rows("10,40,7", "20,42,9", "10,41,8", "20,42,9")))
    assert (trace.n_points, trace.n_rows, trace.cleaning.duplicate_rows) == (2, 4, 2)
    merged = trace.mean_by_point(np.stack([trace.latitude, trace.longitude], axis=1))
    np.testing.assert_array_equal(merged, [[40.5, 7.5], [42, 9]])
    written = sanitised_text(trace, np.array([1.0, 2.0]), np.array([3.0, 4.0]), "")
    assert [line.split(",")[0] for line in written.splitlines()[1:]] == ["10", "10", "20", "20"]
    assert written.count("1.0000000,   3.0000000") == 2


def test_gaps_keep_their_true_times():
    trace = clean(read_csv(_rows("0,40,7", "66,40,7", "70,40.01,7", "3850,40.06,7")))
    assert trace.seconds.tolist() == [0, 66, 70, 3850]
    assert trace.median_step_s == 66


def test_size_limit_is_named():
    text = _rows(*(f"{i},40,7" for i in range(5001)))
    with pytest.raises(InputError, match="5001 distinct times and at most 5000"):
        clean(read_csv(text), max_points=5000)
    assert clean(read_csv(text)).n_points == 5001


def test_one_point_trace_is_a_trace():
    trace = clean(read_csv(_rows("5,40,7")))
    assert (trace.n_points, trace.median_step_s, trace.step_m) == (1, 0.0, 0.0)


def test_positions_stay_out_of_representations():
    raw = read_csv(_rows("5,31.41592,27.18281"))
    assert "31.4" not in repr(raw) + repr(clean(raw))
    assert "27.1" not in repr(raw) + repr(clean(raw))


@pytest.mark.parametrize("name", ["trace.kml", "trace", "trace.gz", "trace.kml.gz", ".csv"])
def test_other_formats_are_named(name, tmp_path):
    (tmp_path / name).write_text(HEADER)
    with pytest.raises(InputError, match=r"\.csv, \.gpx or \.plt"):
        read_trace(tmp_path / name)


def test_unreadable_files(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_trace(tmp_path / "none.csv")
    (tmp_path / "binary.csv").write_bytes(b"\x00\x01time,lat,lon")
    with pytest.raises(InputError, match="not text"):
        read_trace(tmp_path / "binary.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="cannot read"):
        read_trace(tmp_path / "folder.csv")


def test_row_numbers_are_lines_of_the_file():
    with pytest.raises(InputError, match="row 5"):
        read_csv("time,lat,lon\n\n1,40,7\n\n2,40,bad\n")
    assert not math.isnan(read_csv("time,lat,lon\n\n1,40,7\n").latitude[0])
