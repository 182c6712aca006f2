"""`jaxpriv obfuscate`: the folder it writes, what its audit says, and what it refuses."""

from __future__ import annotations

import csv
import json
import math

import numpy as np
import pytest
from typer.testing import CliRunner

from jaxpriv.cli.app import app


runner = CliRunner()
SIDE = 5


def map_text(rng=None):
    rng = np.random.default_rng(0) if rng is None else rng
    lines = ["lat,lon,count"]
    for i in range(SIDE):
        for j in range(SIDE):
            lines.append(f"{48.0 + 0.01 * i:.4f},{16.0 + 0.015 * j:.4f},{rng.integers(1, 50)}")
    return "\n".join(lines) + "\n"


@pytest.fixture
def run(tmp_path):
    def call(*flags, text=None, checkins=None):
        (tmp_path / "map.csv").write_text(map_text() if text is None else text)
        arguments = ["obfuscate", str(tmp_path / "map.csv"), "--out", str(tmp_path / "out"), *flags]
        if checkins is not None:
            (tmp_path / "checkins.csv").write_text(checkins)
            arguments += ["--apply", str(tmp_path / "checkins.csv")]
        return runner.invoke(app, arguments)

    return call


def weights(folder):
    with np.load(folder / "share" / "channel.npz", allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


@pytest.mark.parametrize("method", ["personalized", "uniform"])
def test_protection_sets(run, tmp_path, method):
    found = run("--epsilon", "1", "--min-error", "300m", "--method", method)
    assert found.exit_code == 0, found.output
    stored = weights(tmp_path / "out")
    assert stored["weights"].shape == (25, 25) and np.all(stored["weights"].sum(axis=1) == 2**62)
    document = json.loads((tmp_path / "out" / "share" / "audit.json").read_text())
    assert document["real_level"] <= 1.0
    if method == "personalized":
        assert document["audit"]["least_conditional_error"] >= 300.0
    # An independent look at the table: the level over the whole map, and the mean distance moved.
    matrix = stored["weights"] / 2.0**62
    level = np.max(np.log(matrix.max(axis=0) / matrix.min(axis=0)))
    assert document["audit"]["map_level"]["value"] == pytest.approx(level, rel=1e-6)
    north = (stored["latitude"] - 48.0) * 111_200.0
    east = (stored["longitude"] - 16.0) * 111_200.0 * math.cos(math.radians(48.02))
    distance = np.hypot(north[:, None] - north, east[:, None] - east)
    loss = stored["probabilities"] @ (matrix * distance).sum(axis=1)
    # A sphere against the ellipsoid: a few parts in a thousand.
    assert document["audit"]["quality_loss"] == pytest.approx(loss, rel=5e-3)
    assert (tmp_path / "out" / "share" / "map.png").read_bytes().startswith(b"\x89PNG")


def test_optimal_keeps_its_level_and_costs_least(run, tmp_path):
    found = run("--epsilon", "1", "--radius", "1km", "--method", "optimal", "--json")
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)
    assert document["audit"]["geo_level"]["value"] * 1000.0 <= 1.0
    assert document["quality_loss_lower_bound"] <= document["audit"]["quality_loss"]
    assert document["quality_loss_lower_bound"] == pytest.approx(document["audit"]["quality_loss"], rel=1e-5)


def test_checkins_are_released_as_places_of_the_map_and_nothing_else(run, tmp_path):
    rows = ["time,lat,lon,name", "2024-05-06 10:00+02:00,48.0003,16.0002,clinic", ",48.0201,16.0301,=2+3"]
    found = run("--epsilon", "1", "--min-error", "300m", checkins="\n".join(rows) + "\n")
    assert found.exit_code == 0, found.output
    with (tmp_path / "out" / "share" / "released.csv").open() as file:
        released = list(csv.DictReader(file))
    assert [row["time"] for row in released] == ["2024-05-06T08:00:00Z", ""]
    stored = weights(tmp_path / "out")
    for row in released:
        assert set(row) == {"time", "latitude", "longitude"}
        distance = np.abs(stored["latitude"] - float(row["latitude"])) + np.abs(
            stored["longitude"] - float(row["longitude"])
        )
        assert distance.min() < 1e-6
    for path in (tmp_path / "out" / "share").iterdir():
        assert b"clinic" not in path.read_bytes() and b"48.0003" not in path.read_bytes()
    applied = (tmp_path / "out" / "private" / "applied.csv").read_text().splitlines()
    assert [line.split(",")[1] for line in applied[1:]] == ["0", "12"]
    assert (tmp_path / "out" / "private" / "applied.csv").stat().st_mode & 0o077 == 0
    assert "add up" in found.stdout


def test_what_is_out_of_reach_names_the_largest_error(run, tmp_path):
    found = run("--epsilon", "1", "--min-error", "50km")
    assert found.exit_code == 3 and "the largest possible" in found.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--epsilon", "1", "--method", "best"], "expected one of personalized"),
        (["--epsilon", "1", "--method", "optimal"], "--radius"),
        (["--epsilon", "1", "--radius", "1km"], "--radius"),
        (["--epsilon", "-1", "--min-error", "300m"], "epsilon"),
        (["--epsilon", "1", "--min-error", "300"], "unit is missing"),
        (["--epsilon", "1", "--min-error", "300m", "--places", "99"], "99"),
        (["--epsilon", "1", "--min-error", "300m", "--count", "visits"], "visits"),
        (["--epsilon", "1", "--min-error", "300m", "--time-limit", "1s"], "--method gradient"),
    ],
)
def test_refusals(run, tmp_path, flags, message):
    found = run(*flags)
    assert found.exit_code == 2 and message in found.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lat,lon\n", "no rows"),
        ("a,b\n1,2\n", "lat and lon"),
        ("lat,lon\n48,1,2\n", "row 2 has 3 cells"),
        ("lat,lon\n48.0,north\n", "row 2"),
        ("lat,lon\n95.0,16.0\n", "row 2"),
        ("time,lat,lon\n=2+3,48.0,16.0\n", "row 2: the time is not ISO 8601"),
        ("time,lat,lon\nat the clinic,48.0,16.0\n", "row 2: the time is not ISO 8601"),
        (f"lat,lon\n48.0,16.0{'0' * 200_000}\n", "cannot be read as a text table"),
        ("lat,lon\n48.0,16.0\n49.0,17.0\n", "row 3"),
    ],
)
def test_wrong_checkins(run, tmp_path, text, message):
    found = run("--epsilon", "1", "--min-error", "300m", checkins=text)
    assert found.exit_code == 2 and message in found.output
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_gradient(run, tmp_path):
    found = run("--epsilon", "1", "--radius", "1km", "--method", "gradient", "--json")
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)
    assert document["audit"]["geo_level"]["value"] * 1000.0 <= 1.0
    gap = 1.0 - document["quality_loss_lower_bound"] / document["audit"]["quality_loss"]
    assert gap < 0.01
