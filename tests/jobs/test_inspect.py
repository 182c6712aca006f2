"""What `inspect` says of files: counts against an independent index, and nothing of the positions."""

from __future__ import annotations

import csv
import json
import math
import re

import pytest
from typer.testing import CliRunner

from jaxpriv.cli.app import app
from jaxpriv.errors import InputError
from jaxpriv.jobs.inspect import inspect_file
from jaxpriv.jobs.inspect_text import inspection_text
from jaxpriv.traces.contents import ReadOptions
from jaxpriv.traces.files import file_contents, read_trace
from jaxpriv.traces.instants import parse_instant
from jaxpriv.traces.trace import NO_TIME


runner = CliRunner()


def _write(tmp_path, text, name="a.csv"):
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    return tmp_path / name


def _csv(*rows):
    return "time,lat,lon\n" + "".join(f"{row}\n" for row in rows)


def test_a_clean_file_is_said_to_be_clean(tmp_path):
    path = _write(tmp_path, _csv(*(f"{60 * i},{40 + i / 1e4:.4f},{7 + i * i / 1e5:.5f}" for i in range(30))))
    found = inspect_file(path)
    (person,) = found.people
    assert (person.points, person.first, person.last) == (30, "1970-01-01T00:00:00Z", "1970-01-01T00:29:00Z")
    assert (person.median_step_s, person.decimals, person.dropped, found.problem) == (60, 5, 0, None)
    assert person.time_unit == "seconds since 1970"
    assert found.columns == {"time": "time", "latitude": "lat", "longitude": "lon"}
    text = inspection_text(found)
    assert "Nothing to clean and nothing odd." in text
    assert "protect can read this file." in text


def test_every_rule_is_counted_and_nothing_is_changed(tmp_path):
    rows = [
        "0,41.5,7",  # 167 km in a minute, as a receiver's first fix
        *(f"{60 * i},40.00{i},7" for i in range(1, 6)),
        "300,40.005,7",  # the same instant twice
        "290,40.0049,7",  # backwards
        ",40,7", "400,,7", "410,0,0", "420,91,7", "430,40.006,367",
        "9000,40.007,7",  # a gap
    ]  # fmt: skip
    (person,) = inspect_file(_write(tmp_path, _csv(*rows))).people
    done, odd = person.cleaning, person.odd
    assert (done.missing_time, done.missing_position, done.zero_fix, done.out_of_range) == (1, 1, 1, 1)
    assert (done.longitude_wrapped, done.duplicate_rows, done.out_of_order) == (1, 1, 1)
    assert (odd.duplicate_steps, odd.backward_steps, odd.gaps, odd.jumps, odd.first_fix) == (1, 1, 1, 1, True)
    assert (odd.constant_longitude, odd.constant_latitude) == (True, False)
    assert (done.rows_read, person.dropped, person.points) == (14, 4, 9)
    assert odd.longest_step_s == 9000 - 430
    assert len(odd.sentences()) >= 4


def test_date_line_poles_and_long_traces(tmp_path):
    (person,) = inspect_file(_write(tmp_path, _csv("0,0,179.9", "600,0,-179.9", "1200,0.1,-179.8"))).people
    assert (person.odd.date_line, person.odd.jumps, person.odd.near_pole) == (1, 0, 0)
    # 0.3 degrees of longitude at the equator, from a plane whose origin lies among the points.
    assert person.odd.extent_m < 34e3
    (person,) = inspect_file(_write(tmp_path, _csv("0,89.5,0", "6000,89.6,90"))).people
    assert person.odd.near_pole == 2
    (person,) = inspect_file(_write(tmp_path, _csv("0,0,0.1", "6000,0,1.1"))).people
    # Half of one degree of the equator is 55.66 km; the origin is rounded to a tenth of a degree.
    assert person.odd.extent_m == pytest.approx(math.radians(0.5) * 6378137, rel=1e-4)
    assert any("A long trace" in sentence for sentence in person.odd.sentences())
    found = inspect_file(_write(tmp_path, _csv("0,0,0.1", "60000,0,31.1")))
    assert any("cut the journey" in problem for problem in found.people[0].problems)


def test_people_are_described_one_by_one(tmp_path):
    rows = "".join(f"{60 * i},{'abcde'[i % 5]},{40 + i / 1e3},7\n" for i in range(50))
    path = _write(tmp_path, "time,cab_id,lat,lon\n" + rows)
    twice = inspect_file(_write(tmp_path, "time,cab_id,lat,lon\n" + rows + "0,a,40,7\n3000,b,,7\n60,c,40,7\n", "b.csv"))
    # Person c has no row at 60 s, where person b has one: other people's rows are no duplicates.
    assert "  - 1 row at the instant of another row" in inspection_text(twice)
    assert "  - 1 row dropped: no position." in inspection_text(twice)
    found = inspect_file(path)
    assert [(person.name, person.points, person.median_step_s) for person in found.people] == [
        (name, 10, 300) for name in "abcde"
    ]
    assert "5 people or devices" in found.problem
    text = inspection_text(found)
    assert len(re.findall(r"(?m)^[a-e] +10 +0 +10 +300 ", text)) == 5
    (one,) = inspect_file(path, ReadOptions(who="c")).people
    assert (one.name, one.cleaning.other_rows) == ("c", 40)


def test_files_without_a_usable_row_are_described(tmp_path):
    found = inspect_file(_write(tmp_path, _csv("1,NA,7", ",40,7")))
    assert (found.people[0].points, found.people[0].cleaning.dropped) == (0, 2)
    assert found.problem.startswith("no row of the file has a usable time and position (2 rows read)")
    assert "protect would refuse this file: no row" in inspection_text(found)


def test_more_points_than_can_be_protected_are_still_inspected(tmp_path, monkeypatch):
    monkeypatch.setattr("jaxpriv.jobs.inspect.MAX_POINTS", 5000)
    found = inspect_file(_write(tmp_path, _csv(*(f"{i},40,7" for i in range(5001)))))
    assert found.people[0].points == 5001
    assert any("More than 5000 points" in one for one in found.people[0].problems)


def test_the_command(tmp_path):
    path = _write(tmp_path, _csv("0,31.41592,27.18281", "60,31.41692,27.18381"))
    result = runner.invoke(app, ["inspect", str(path)])
    assert result.exit_code == 0, result.output
    assert "Rows: 2 read, 0 would be dropped; 2 points" in result.stdout
    as_json = runner.invoke(app, ["inspect", str(path), "--json"])
    data = json.loads(as_json.stdout)
    assert (data["format"], data["people"][0]["points"], data["people"][0]["name"]) == ("CSV", 2, None)
    assert not re.search(r"31\.41|27\.18", result.output + as_json.output)
    broken = runner.invoke(app, ["inspect", str(_write(tmp_path, _csv("0,31.41592,27,18281"), "b.csv"))])
    assert (broken.exit_code, broken.stdout) == (2, "")
    assert "row 2" in broken.stderr and not re.search(r"31\.4|18281", broken.stderr)
    named = _write(tmp_path, "when;cab;b;l\n01/02/2020 10:00;x;31,4;27,1\n01/02/2020 11:00;y;31,5;27,2\n", "c.csv")
    options = ["--columns", "time=when,lat=b,lon=l,who=cab,dates=dmy", "--who", "y", "--json"]
    data = json.loads(runner.invoke(app, ["inspect", str(named), *options]).stdout)
    assert data["people"][0]["first"] == "2020-02-01T11:00:00Z"
    assert data["columns"] == {"time": "when", "latitude": "b", "longitude": "l", "person": "cab"}


def test_protect_asks_whose_rows_and_reads_strictly(tmp_path):
    walk = [(40 + math.sin(i * i) * 1e-3, 7 + math.cos(i) * 1e-3) for i in range(24)]
    rows = "".join(f"{1577836800 + 60 * i},{'ab'[i % 2]},{lat:.7f},{lon:.7f}\n" for i, (lat, lon) in enumerate(walk))
    path = _write(tmp_path, "time,user,lat,lon\n" + rows)
    goal = {"--radius": "200m", "--epsilon": "1", "--kernel": "matern32", "--lengthscale": "5min", "--sd": "0.3km"}
    goal |= {"--nugget": "2m", "--secret": "2020-01-01T00:08:00Z", "--out": str(tmp_path / "out"), "--simulate": "1"}
    command = ["protect", str(path), *(part for pair in goal.items() for part in pair)]
    mixed = runner.invoke(app, command)
    assert (mixed.exit_code, "a, b" in mixed.stderr, "--who NAME" in mixed.stderr) == (2, True, True)
    done = runner.invoke(app, [*command, "--who", "a"])
    assert done.exit_code == 0, done.output
    written = (tmp_path / "out/share/trace.SIMULATED.csv").read_text().splitlines()
    assert [int(line.split(",")[0]) for line in written[1:]] == [1577836800 + 120 * i for i in range(12)]
    assert "12 rows of other people" in " ".join(done.stdout.split())
    path.write_text(path.read_text() + "1577838300,a,,7\n")
    strict = runner.invoke(app, [*command, "--who", "a", "--strict", "--force"])
    assert (strict.exit_code, "1 row dropped: no position" in strict.stderr) == (2, True)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (",40,7", "no time"),
        ("2020-01-01T00:02:00Z,,7", "no position"),
        ("2020-01-01T00:02:00Z,0,0", "exactly 0"),
        ("2020-01-01T00:02:00Z,91,7", "outside ±90"),
        ("2020-01-01T00:02:00Z,40,367", "brought back by one turn"),
        ("2019-01-01T00:02:00Z,40,7", "sorted by time"),
        ("2020-01-01T00:01:00Z,40,7", "merged into their mean"),
        ("2020-01-01T00:02:00,40,7", "taken as UTC"),
        ("2016-12-31T23:59:60Z,40,7", "first second of the next day"),
    ],
)
def test_strict_reading_refuses_what_is_repaired_otherwise(row, words, tmp_path):
    path = _write(tmp_path, _csv("2020-01-01T00:00:00Z,40,7", "2020-01-01T01:01:00+01:00,40,7"))
    assert read_trace(path, strict=True).cleaning.offset_times == 1
    path = _write(tmp_path, _csv("2020-01-01T00:00:00Z,40,7", "2020-01-01T00:01:00Z,40,7", row))
    assert words in " ".join(inspect_file(path).people[0].cleaning.sentences())
    with pytest.raises(InputError, match=f"strict reading repairs nothing.*{re.escape(words)}"):
        read_trace(path, strict=True)


def _index(folder):
    with (folder / "INDEX.csv").open(encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["file"].endswith(".gpx")]


def test_counts_of_the_index_of_recorded_gpx_files(real_data):
    folder = real_data / "gpx"
    rows = _index(folder)
    for row in rows:
        found = inspect_file(folder / row["file"])
        inspection_text(found)
        (person,) = found.people
        counts, odd, done = found.counts, person.odd, person.cleaning
        counted = {
            "segments": counts["segments"],
            "trkpts": done.rows_read,
            "empty_segments": counts["empty_segments"],
            "one_point_segments": counts["one_point_segments"],
            "points_without_time": done.missing_time,
            "points_without_elevation": counts["points_without_elevation"],
            "duplicate_time_steps": odd.duplicate_steps,
            "backward_time_steps": odd.backward_steps,
            "max_gap_s": f"{odd.longest_step_s:.3f}",
            "points_with_fractional_seconds": counts["points_with_fractional_seconds"],
            "out_of_range_coords": done.out_of_range,
            "waypoints": counts["waypoints"],
            "route_points": counts["route_points"],
        }
        assert {name: str(count) for name, count in counted.items()} == {name: row[name] for name in counted}, row
        (raw,) = (one.raw for one in file_contents(folder / row["file"], ReadOptions(), True).people)
        times = raw.time_us[raw.time_us != NO_TIME].tolist()
        if row["first_time"]:
            ends = (times[0], times[-1])
            assert ends == tuple(parse_instant(row[name]).us for name in ("first_time", "last_time"))
    assert len(rows) == 49


def test_every_other_recorded_file_is_inspected_or_refused(real_data):
    plt = sorted((real_data / "gpx").glob("*/*.plt"))
    assert len(plt) == 5
    for path in [
        *plt,
        *sorted(real_data.glob("taxi/cabspotting/*.txt"))[:1],
        real_data / "animals/leroy.csv.gz",
        real_data / "geolife/movingpandas_demodata_geolife.csv",
    ]:
        assert inspect_file(path).people[0].points > 0, path
    with pytest.raises(InputError, match="row 2: the time is not ISO"):
        inspect_file(real_data / "other/boat-positions.csv")
