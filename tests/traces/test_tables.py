"""Tables of many shapes: columns found or named, several people never mixed, typed tables like the text they hold."""

from __future__ import annotations

import gzip
import struct
from decimal import Decimal

import numpy as np
import pytest

from jaxpriv.cli.columns import parse_columns
from jaxpriv.errors import InputError
from jaxpriv.traces.contents import ColumnNames, ReadOptions, shown_name
from jaxpriv.traces.csv_format import csv_contents
from jaxpriv.traces.files import file_contents, read_trace, sanitised_text
from jaxpriv.traces.typed_tables import wkb_positions


NEW_YEAR = 1577836800_000000


def _read(tmp_path, text, name="a.csv", columns=None, **options):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8", newline="")
    return read_trace(path, options=ReadOptions(parse_columns(columns), **options))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", "40.5 116.5 0 1577836800\n40.6 116.6 1 1577836860\n"),  # Cabspotting
        ("a.txt", "1,2020-01-01 00:00:00,116.5,40.5\n1,2020-01-01 00:01:00,116.6,40.6\n"),  # T-Drive
        ("a.tsv", "when\tx\ty\n2020-01-01T00:00:00Z\t116.5\t40.5\n2020-01-01T00:01:00Z\t116.6\t40.6\n"),
        ("a.csv", "t;y;x\n2020-01-01;40,5;116,5\n2020-01-01T00:01;40,6;116,6\n"),
        ("a.txt", "t y x\n1577836800 40.5 116.5\n1577836860 40.6 116.6\n"),
    ],
)
def test_shapes(name, text, tmp_path):
    columns = "time=when" if "when" in text else None
    trace = _read(tmp_path, text, name, columns)
    assert trace.time_us.tolist() == [NEW_YEAR, NEW_YEAR + 60_000_000]
    assert trace.latitude.tolist() == [40.5, 40.6]
    assert trace.longitude.tolist() == [116.5, 116.6]
    # What is written is read again without any options.
    written = sanitised_text(trace, trace.latitude, trace.longitude, "")
    again = _read(tmp_path, written, "again.csv")
    np.testing.assert_array_equal(again.time_us, trace.time_us)
    np.testing.assert_array_equal(again.latitude, trace.latitude)
    assert "when" not in written


def test_decimal_commas_are_counted(tmp_path):
    trace = _read(tmp_path, "t;y;x\n0;40,5;116\n60;41;116\n120;40,25;116,75\n")
    assert (trace.latitude.tolist(), trace.longitude.tolist()) == ([40.5, 41, 40.25], [116, 116, 116.75])
    assert trace.cleaning.decimal_commas == 2
    with pytest.raises(InputError, match=r"strict reading repairs nothing.*2 rows with a decimal comma"):
        read_trace(tmp_path / "a.csv", strict=True)


@pytest.mark.parametrize("columns", ["time=2,lat=4,lon=3", "time=2,lat=4,lon=3,who=1", "who=1,lon=3,lat=4,time=2"])
def test_columns_by_number(columns, tmp_path):
    trace = _read(tmp_path, "7,1577836800,116.5,40.5,extra\n", columns=columns)
    assert (trace.latitude.tolist(), trace.longitude.tolist()) == ([40.5], [116.5])
    # With a header the same numbers count its columns.
    again = _read(tmp_path, "cab,when,east,north,rest\n7,1577836800,116.5,40.5,extra\n", columns=columns)
    assert again.latitude.tolist() == [40.5]


def test_a_first_row_with_values_is_never_taken_for_a_header(tmp_path):
    for first in ("1577836800;;7,25", "1577836800;40,5;7,25", ";40,5;7,25", "01/01/2020 00:00;NA;NA"):
        text = f"{first}\n1577836860;40,6;7,5\n".replace("1577836860", "02/01/2020" if "/" in first else "1577836860")
        trace = _read(tmp_path, text, columns="time=1,lat=2,lon=3" + ",dates=dmy" * ("/" in first))
        assert trace.cleaning.rows_read == 2


def test_columns_by_name_come_before_known_names(tmp_path):
    text = 'time,real time,lat,lon,"true, lat"\nx,1577836800,1,116.5,40.5\n'
    trace = _read(tmp_path, text, columns="time=Real Time,lat=true, lat")
    assert (trace.time_us.tolist(), trace.latitude.tolist()) == ([NEW_YEAR], [40.5])


@pytest.mark.parametrize("text", ["", "time", "time=", "when=x", "time=a,time=b", "lat=1;lon=2", "dates=mdy"])
def test_columns_that_say_nothing(text):
    if text == "lat=1;lon=2":  # one column of an odd name: allowed, and not found later
        assert parse_columns(text) == ColumnNames(latitude="1;lon=2")
        return
    with pytest.raises(InputError, match="--columns"):
        parse_columns(text)


def test_day_first_is_said_and_never_guessed(tmp_path):
    text = "ID,time,lat,lon\n1,20/03/2021 00:22,40.5,7\n1,01/04/2021 00:23:30,40.6,7\n"
    with pytest.raises(InputError, match=r"row 2: the time is not ISO 8601.*dates=dmy"):
        _read(tmp_path, text)
    trace = _read(tmp_path, text, columns="dates=dmy")
    stamps = [line.split(",")[0] for line in sanitised_text(trace, np.ones(2), np.ones(2), "").splitlines()[1:]]
    assert stamps == ["2021-03-20T00:22:00Z", "2021-04-01T00:23:30Z"]
    with pytest.raises(InputError, match="row 2: the time is not ISO"):
        _read(tmp_path, text.replace("20/03", "03/20"), columns="dates=dmy")


@pytest.mark.parametrize(
    ("stamp", "us"),
    [
        ("1577836800123456", NEW_YEAR + 123456),
        ("1577836800123456789", NEW_YEAR + 123456),
        ("1577836800123", NEW_YEAR + 123000),
        ("1577836800.5", NEW_YEAR + 500000),
    ],
)
def test_epochs_in_every_unit(stamp, us, tmp_path):
    trace = _read(tmp_path, f"time,lat,lon\n{stamp},40.5,7\n")
    assert trace.time_us.tolist() == [us]
    assert _read(tmp_path, sanitised_text(trace, np.ones(1), np.ones(1), "")).time_us.tolist() == [us]


CABS = "time,cab_id,lat,lon\n" + "".join(
    f"{60 * i},{'red' if i % 2 else 'blue'},{40 + i / 100 + (i % 2):.3f},7\n" for i in range(10)
)


def test_several_people_are_listed_and_never_mixed(tmp_path):
    with pytest.raises(InputError, match=r"holds 2 people .*column 2 .*: blue, red\. .*--who NAME"):
        _read(tmp_path, CABS)
    red = _read(tmp_path, CABS, who="red")
    assert (red.n_rows, red.seconds.tolist(), red.cleaning.other_rows) == (5, [0, 120, 240, 360, 480], 5)
    assert min(red.latitude) > 41
    assert red.cleaning.rows_read == red.n_rows
    assert "5 rows of other people" in " ".join(red.cleaning.sentences())
    with pytest.raises(InputError, match="--who: nobody of that name") as problem:
        _read(tmp_path, CABS, who="green")
    assert "blue" not in str(problem.value)


def test_all_people_of_a_file_are_there_once(tmp_path):
    contents = csv_contents(CABS.splitlines(keepends=True), ReadOptions())
    assert [(person.name, len(person.raw.time_us)) for person in contents.people] == [("blue", 5), ("red", 5)]


def test_a_broken_row_of_another_person_does_not_matter(tmp_path):
    text = CABS.replace("0,blue,40.000", "0,blue,broken")
    assert _read(tmp_path, text, who="red").n_rows == 5
    with pytest.raises(InputError, match="row 2: the latitude"):
        _read(tmp_path, text, who="blue")


def test_rows_of_nobody_are_left_out_when_a_person_is_chosen(tmp_path):
    text = CABS + "600,,49,7\n660,NA,49,7\n"
    assert _read(tmp_path, text, who="red").cleaning.other_rows == 7
    with pytest.raises(InputError, match="holds 2 people"):
        _read(tmp_path, text)


def test_a_name_that_stands_for_several_devices_is_refused(tmp_path):
    text = "time,user,device,lat,lon\n0,ann,1,40,7\n1,ann,2,41,7\n2,bob,3,42,7\n"
    with pytest.raises(InputError, match=r"of 2 people or devices .column 3"):
        _read(tmp_path, text, who="ann")
    assert _read(tmp_path, text, columns="who=user", who="ann").n_rows == 2
    assert _read(tmp_path, text, who="3").latitude.tolist() == [42]


def test_trips_are_one_trace_only_when_a_person_is_known(tmp_path):
    text = "time,trip_id,lat,lon\n0,a,40,7\n60,a,40.1,7\n9000,b,41,7\n"
    with pytest.raises(InputError, match=r"2 trips .*: a, b\. .*--track all"):
        _read(tmp_path, text)
    assert _read(tmp_path, text, who="a").n_rows == 2
    assert _read(tmp_path, text, track="all").seconds.tolist() == [0, 60, 9000]
    known = "user," + text.replace("\n", "\nann,").removesuffix("ann,")
    assert _read(tmp_path, known).n_rows == 3


def test_names_are_printed_without_control_characters():
    assert shown_name("a\x1b[31m\n") == "a\\x1b[31m\\n"
    assert len(shown_name("x" * 1000)) == 40


def test_who_needs_a_column(tmp_path):
    with pytest.raises(InputError, match="no column of the file tells people apart"):
        _read(tmp_path, "time,lat,lon\n1,40,7\n", who="ann")
    (tmp_path / "a.gpx").write_text("<gpx/>")
    with pytest.raises(InputError, match="only tables have columns"):
        read_trace(tmp_path / "a.gpx", options=ReadOptions(who="ann"))


def _table(tmp_path, kind, **columns):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / f"a.{kind}"
    parquet.write_table(pa.table(columns), path)
    return path


def test_parquet_is_read_like_the_table_it_holds(tmp_path):
    pa = pytest.importorskip("pyarrow")
    times = pa.array([NEW_YEAR * 1000 + 789, NEW_YEAR * 1000 + 60 * 10**9, None], pa.timestamp("ns"))
    path = _table(
        tmp_path, "parquet", lat=[40.5, None, 41.0], secret=["SENTINEL"] * 3, time=times, lon=[7.25, 7.5, 7.5]
    )
    trace = read_trace(path)
    assert (trace.time_us.tolist(), trace.latitude.tolist(), trace.longitude.tolist()) == ([NEW_YEAR], [40.5], [7.25])
    done = trace.cleaning
    assert (done.missing_position, done.missing_time, done.naive_times) == (1, 1, 2)
    assert sanitised_text(trace, np.ones(1), np.ones(1), "").startswith("time,lat,lon\n2020-01-01T00:00:00Z,")
    (tmp_path / "b.parquet.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert read_trace(tmp_path / "b.parquet.gz").n_rows == 1


def test_parquet_with_zones_numbers_single_precision_and_people(tmp_path):
    pa = pytest.importorskip("pyarrow")
    zoned = pa.array([NEW_YEAR, NEW_YEAR + 10**6], pa.timestamp("us", "Europe/Vienna"))
    single = pa.array([40.5, 40.1], pa.float32())
    path = _table(tmp_path, "parquet", user=[1, 2], t=zoned, lat=single, lon=[7.0, 8.0])
    with pytest.raises(InputError, match=r"2 people .*column user.*: 1, 2\."):
        read_trace(path)
    trace = read_trace(path, options=ReadOptions(who="2"))
    assert (trace.time_us.tolist(), trace.cleaning.offset_times) == ([NEW_YEAR + 10**6], 0)
    assert trace.latitude.tolist() == [40.1]  # the shortest digits of the single precision number


def _wkb(lon, lat):
    return struct.pack("<BI2d", 1, 1, lon, lat)


def test_geoparquet_points(tmp_path):
    path = _table(tmp_path, "parquet", time=[0, 60], geometry=[_wkb(7.5, 40.5), _wkb(7.6, 40.6)])
    trace = read_trace(path)
    assert (trace.latitude.tolist(), trace.longitude.tolist()) == ([40.5, 40.6], [7.5, 7.6])


def test_values_that_are_no_cells_are_refused(tmp_path):
    path = _table(tmp_path, "parquet", time=[1, 2], lat=[Decimal("40.50"), None], lon=[7.0, 7.5], deep=[[1], [2]])
    assert read_trace(path).latitude.tolist() == [40.5]
    with pytest.raises(InputError, match="neither text, numbers nor times"):
        read_trace(path, options=ReadOptions(ColumnNames(who="deep")))


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"\0" * 100 + b"PAR1"])
def test_broken_parquet(content, tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(InputError, match="not readable as Parquet"):
        read_trace(tmp_path / "a.parquet")
    with pytest.raises(InputError, match="does not name a time"):
        read_trace(_table(tmp_path, "parquet", a=[1]))


def test_well_known_binary():
    big = struct.pack(">BI2d", 0, 1, 7.0, 40.0)
    extended = struct.pack("<BII3d", 1, 0x80000000 | 0x20000000 | 1, 4326, 8.0, 41.0, 3.0)
    empty = _wkb(float("nan"), float("nan"))
    assert wkb_positions([big, extended, struct.pack("<BI3d", 1, 1001, 9, 42, 1), empty, None]) == [
        ("40.0", "7.0"), ("41.0", "8.0"), ("42.0", "9.0"), ("", ""), ("", ""),
    ]  # fmt: skip
    for broken in (b"", b"\x01", big[:-1]):
        with pytest.raises(InputError, match="row 1: its geometry is not readable"):
            wkb_positions([broken])
    with pytest.raises(InputError, match="no point"):
        wkb_positions([struct.pack("<BII2d", 1, 2, 1, 7.0, 40.0)])


def test_geopackage_needs_its_reader_or_is_refused(tmp_path):
    (tmp_path / "a.gpkg").write_bytes(b"SQLite format 3\0" + b"\0" * 100)
    with pytest.raises(InputError, match=r"pip install pyogrio|not readable as a GeoPackage"):
        read_trace(tmp_path / "a.gpkg")


def test_geopackage_layer(tmp_path):
    pyogrio = pytest.importorskip("pyogrio")
    times = np.array(["2020-01-01T00:00:00.250", "2020-01-01T00:01:00"], dtype="datetime64[ms]")
    for crs, name in (("EPSG:4326", "a"), ("EPSG:3857", "b")):
        pyogrio.raw.write(
            tmp_path / f"{name}.gpkg",
            geometry=np.array([_wkb(7.5, 40.5), _wkb(7.6, 40.6)], dtype=object),
            field_data=[times, np.array(["a/b", "a/b"], dtype=object)],
            fields=["time", "user"],
            geometry_type="Point",
            crs=crs,
            driver="GPKG",
            layer="x",
        )
    trace = read_trace(tmp_path / "a.gpkg")
    assert trace.time_us.tolist() == [NEW_YEAR + 250_000, NEW_YEAR + 60_000_000]
    assert (trace.latitude.tolist(), trace.longitude.tolist()) == ([40.5, 40.6], [7.5, 7.6])
    assert read_trace(tmp_path / "a.gpkg", options=ReadOptions(who="a/b")).n_rows == 2
    with pytest.raises(InputError, match="reference system"):
        read_trace(tmp_path / "b.gpkg")


@pytest.mark.slow
def test_real_tables_of_every_kind(real_data):
    cab = file_contents(real_data / "taxi/cabspotting/new_ugthfu.txt", ReadOptions())
    assert (cab.kind, len(cab.people)) == ("text (spaces), no header", 1)
    taxis = file_contents(real_data / "taxi/Beijing_taxi.csv", ReadOptions())
    assert len(taxis.people) == 72
    boats = file_contents(real_data / "other/boat-positions.csv", ReadOptions(ColumnNames(day_first=True)))
    rows = [len(person.raw.time_us) for person in boats.people]
    lines = (real_data / "other/boat-positions.csv").read_text(encoding="utf-8-sig").splitlines()
    assert sum(rows) == len([line for line in lines if line.strip(", ")]) - 1
    points = file_contents(real_data / "geolife/skmob_geolife_sample.txt.gz", ReadOptions())
    assert points.names == ("001", "005")
