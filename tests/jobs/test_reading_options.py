"""The same options of reading for every command that reads a trace, and tables larger than memory should hold."""

from __future__ import annotations

import json
import math
import struct
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from jaxpriv.channels.prior_files import read_prior_geojson
from jaxpriv.cli.app import app
from jaxpriv.cli.columns import parse_columns
from jaxpriv.errors import InputError
from jaxpriv.jobs.inspect import inspect_file
from jaxpriv.jobs.map_package import as_geojson
from jaxpriv.traces import distinct, sources, tables
from jaxpriv.traces.contents import ReadOptions
from jaxpriv.traces.files import read_trace


runner = CliRunner()


def _cabs(path, points=24, names=("ann", "bob")):
    """A table of several people whose columns have unusual names, one row with the same instant as another."""
    rows = ["when;cab;b;l"]
    for i in range(points):
        for k, name in enumerate(names):
            rows.append(f"{60 * i};{name};{48 + k + math.sin(i * i) * 2e-3:.7f};{16 + math.cos(2 * i) * 3e-3:.7f}")
    path.write_text("\n".join([rows[0], rows[1], *rows[1:]]) + "\n")
    return str(path)


NAMES = ["--columns", "time=when,lat=b,lon=l,who=cab"]


def test_fit_reads_as_protect_does(tmp_path):
    command = ["fit", _cabs(tmp_path / "a.csv"), "--out", str(tmp_path / "p.json"), "--kernel", "matern32"]
    for options, words in (
        ([], "does not name a time"),
        (NAMES, "holds 2 people"),
        ([*NAMES, "--who", "eve"], "nobody of that name"),
        ([*NAMES, "--who", "ann", "--strict"], "strict reading repairs nothing"),
        ([*NAMES, "--who", "ann", "--track", "2"], "only GPX files have numbered tracks"),
        (["--columns", "when=time"], "--columns"),
    ):
        refused = runner.invoke(app, [*command, *options])
        assert (refused.exit_code, words in refused.stderr) == (2, True), refused.stderr
    assert not (tmp_path / "p.json").exists()


def test_obfuscate_reads_as_protect_does(tmp_path):
    command = ["obfuscate", _cabs(tmp_path / "a.csv"), "--out", str(tmp_path / "out"), "--method", "uniform"]
    command += ["--epsilon", "1", "--min-error", "20m"]
    for options, words in (
        (["--cell", "100m", *NAMES], "holds 2 people"),
        (["--cell", "100m", *NAMES, "--who", "bob", "--strict", "--track", "3"], "only GPX"),
        ([*NAMES, "--who", "bob"], "they go with --cell"),
    ):
        refused = runner.invoke(app, [*command, *options])
        assert (refused.exit_code, words in refused.stderr) == (2, True), refused.stderr
    done = runner.invoke(app, [*command, "--cell", "200m", *NAMES, "--who", "bob", "--strict", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["places"] > 3


def test_inspect_says_what_a_strict_reading_would_refuse(tmp_path):
    command = ["inspect", _cabs(tmp_path / "a.csv"), *NAMES, "--who", "ann", "--json"]
    plain = json.loads(runner.invoke(app, command).stdout)
    strict = json.loads(runner.invoke(app, [*command, "--strict"]).stdout)
    noise = json.loads(runner.invoke(app, [*command, "--strict", "--duplicates", "noise"]).stdout)
    assert plain["protect_would_refuse"] is None and noise["protect_would_refuse"] is None
    assert "merged into their mean" in strict["protect_would_refuse"]
    counts = noise["people"][0]["cleaning"]
    # The same row twice: no scatter.
    assert (counts["repeated_rows"], counts["duplicate_rows"], counts["scatter_m"]) == (1, 0, 0.0)


def test_a_map_in_a_geopackage_needs_its_reader_or_is_read(tmp_path):
    (tmp_path / "m.gpkg").write_bytes(b"SQLite format 3\0" + b"\0" * 100)
    found = runner.invoke(app, ["obfuscate", str(tmp_path / "m.gpkg"), "--epsilon", "1", "--out", str(tmp_path / "o")])
    assert found.exit_code == 2
    assert any(words in found.stderr for words in ("pip install pyogrio", "not readable as a GeoPackage"))


def test_a_map_in_a_geopackage(tmp_path):
    pyogrio = pytest.importorskip("pyogrio")
    corners = ((0, 0), (1, 0), (1, 1), (0, 1), (0, 0))
    squares = [
        struct.pack("<BIII", 1, 3, 1, 5)
        + b"".join(struct.pack("<2d", 16 + 0.02 * i + 0.01 * x, 48 + 0.01 * y) for x, y in corners)
        for i in range(4)
    ]
    pyogrio.raw.write(
        tmp_path / "m.gpkg",
        geometry=np.array(squares, dtype=object),
        field_data=[np.array([5, 6, 7, 8])],
        fields=["population"],
        geometry_type="Polygon",
        crs="EPSG:4326",
        driver="GPKG",
        layer="x",
    )
    with as_geojson(tmp_path / "m.gpkg") as path:
        found = read_prior_geojson(path)
    np.testing.assert_allclose(np.asarray(found.probabilities), np.array([5, 6, 7, 8]) / 26)
    assert not path.exists()


@pytest.mark.parametrize("held", [1, 30, 10**6])
def test_people_read_in_parts_are_those_read_at_once(held, tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    _cabs(path, 20, ("ann", "bob", "cy", "dee"))
    options = ReadOptions(columns=read_columns())
    whole = inspect_file(path, options)
    monkeypatch.setattr(tables, "MAX_HELD", held)
    monkeypatch.setattr(sources, "_KEPT", 0)  # the file is read anew each time
    told = []
    monkeypatch.setattr(sources._Measured, "_STEP", 100)
    assert inspect_file(path, options, told.append) == whole
    assert [person.name for person in whole.people] == ["ann", "bob", "cy", "dee"]
    assert any(text.startswith("Reading the table: ") and text.endswith(" %") for text in told)


def read_columns():
    return parse_columns(NAMES[1])


def test_limits_are_said(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    _cabs(path)
    options = ReadOptions(columns=read_columns(), who="ann")
    monkeypatch.setattr(tables, "MAX_ROWS", 10)
    with pytest.raises(InputError, match="one person has more than 10 rows"):
        read_trace(path, options=options)
    monkeypatch.setattr(distinct, "MAX_VALUES", 1)
    with pytest.raises(InputError, match=r"more than 1 different values.*--columns who=COLUMN"):
        read_trace(path, options=options)
    # Numbers of rows, which only rise, need no room.
    (tmp_path / "b.csv").write_text("id,time,lat,lon\n" + "".join(f"{i},{60 * i},50,8.{i}\n" for i in range(9)))
    assert read_trace(tmp_path / "b.csv").n_rows == 9
    (tmp_path / "b.csv").write_text("id,time,lat,lon\n" + "".join(f"{i % 5},{60 * i},50,8.{i}\n" for i in range(9)))
    with pytest.raises(InputError, match="more than 1 different values"):
        read_trace(tmp_path / "b.csv")


@pytest.mark.slow
def test_a_table_of_100_megabytes_is_read_in_bounded_memory(tmp_path):
    path, minute, size = tmp_path / "big.csv", 0, 0
    with path.open("w") as file:
        size += file.write("time,vehicle_id,lat,lon,speed\n")
        while size < 100e6:
            rows = (
                f"{1_700_000_000 + 20 * minute},cab{k:04d},{40 + (7 * minute + 13 * k) % 1000 / 1e4:.6f},"
                f"{7 + (11 * minute + 17 * k) % 1000 / 1e4:.6f},{minute % 60}.25\n"
                for k in range(1000)
            )
            size += file.write("".join(rows))
            minute += 1
    for extra, points in ((["--who", "cab0007"], minute), ([], 1000)):
        code = (
            "import resource, sys; from typer.testing import CliRunner; from jaxpriv.cli.app import app; "
            "done = CliRunner().invoke(app, sys.argv[1:]); print(done.stdout, done.stderr); "
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, "inspect", str(path), *extra],
            capture_output=True, text=True, timeout=3000, check=True,
        )  # fmt: skip
        *text, peak = done.stdout.split("\n")[:-1]
        # Kilobytes on Linux, bytes on macOS.
        megabytes = int(peak) / (2**20 if sys.platform == "darwin" else 2**10)
        assert megabytes < 300
        said = f"; {points} points" if extra else f"People or devices: {points}"
        assert said in "\n".join(text)
