"""What a release publishes: integers on a public grid, the original times, and nothing else of the input."""

from __future__ import annotations

import csv
import json
import math
import re
from fractions import Fraction

import numpy as np
import pyproj
import pytest

from jaxpriv.errors import InputError
from jaxpriv.jobs import protect as job
from jaxpriv.jobs.noise import draw_release, simulate_release
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.protect import protect, protect_file
from jaxpriv.jobs.target import Target
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.traces.files import read_trace


START, N = 1_714_982_400, 10
SECRET = (START + 100) * 10**6
PRIOR, TARGET = PriorChoice("matern32", 60.0, 300.0, 1.0), Target(200.0, 1.0)
# Digits that occur in no parameter, so that finding them means that something of the input came through.
LATITUDE, LONGITUDE = 31.4159265, 27.1828182


def _points(scale=1e-3):
    return [(20 * i, LATITUDE + math.sin(i * i) * scale, LONGITUDE + math.cos(i) * scale) for i in range(N)]


COLUMNS = (
    "time,lat,lon,name,ele,speed,course,hdop,accuracy,sat,battery,temperature,heart rate,note,segment,device model,"
    "created,url,activity"
)
FILLED = "SENTINEL,8848.86071,13.370713,271.90713,2.71,66.6,7,41,36.6,171,SENTINEL note,3,SENTINEL phone,2031-04-15,http://x,run"


def _csv():
    rows = [f"2024-05-06T08:00:{t % 60:02d}.{t // 60:03d}Z,{lat:.7f},{lon:.7f},{FILLED}" for t, lat, lon in _points()]
    return "\n".join([COLUMNS, *sorted(rows)]) + "\n"


def _plt():
    rows = [
        f"{lat:.7f},{lon:.7f},1,8848,{39748 + t / 86400:.10f},2008-10-27,00:{t // 60:02d}:{t % 60:02d}"
        for t, lat, lon in _points()
    ]
    header = ["SENTINEL header", "WGS 84", "Altitude is in Feet", "Reserved 3", "0,9,777216,SENTINEL,1,3,2,65280", "10"]
    return "\r\n".join([*header, *rows]) + "\r\n"


@pytest.fixture(scope="module")
def noise():
    """The design, which depends on the times alone, made once."""
    raw = "time,lat,lon\n" + "".join(f"{START + t},{lat},{lon}\n" for t, lat, lon in _points())
    from jaxpriv.traces.cleaning import clean
    from jaxpriv.traces.csv_format import read_csv

    return protect(clean(read_csv(raw)), [SECRET], TARGET, PRIOR, simulate_seed=1).noise


@pytest.fixture
def release(tmp_path):
    def call(text, name, secret, out="out", **options):
        path = tmp_path / name
        path.write_text(text, newline="")
        done = protect_file(path, tmp_path / out, [secret], TARGET, PRIOR, **options)
        return tmp_path / out, done

    return call


def test_every_optional_field_stays_behind_csv(release):
    out, done = release(_csv(), "in.csv", 1_714_982_400 * 10**6)
    before = list(csv.reader(_csv().splitlines()))
    after = list(csv.reader((out / "share/trace.csv").read_text().splitlines()))
    assert after[0] == ["time", "lat", "lon"]
    # The difference of input and output: columns that are gone, and positions.
    for old, new in zip(before[1:], after[1:], strict=True):
        assert np.datetime64(new[0].rstrip("Z")) == np.datetime64(old[0].rstrip("Z"))
        assert len(new) == 3
        assert all(re.fullmatch(r" *-?\d+\.\d{7}", cell) for cell in new[1:])
    _nothing_of_the_input(out, done)


def test_every_optional_field_stays_behind_plt(release):
    out, done = release(_plt(), "in.plt", 1_225_065_700 * 10**6)
    before, after = _plt().split("\r\n"), (out / "share/trace.plt").read_bytes().decode().split("\r\n")
    assert after[:6] == [
        "OziExplorer Track Point File Version 2.1", "WGS 84", "Altitude is in Feet", "Reserved 3",
        "0,2,255,jaxpriv,0,0,2,8421376", "0",
    ]  # fmt: skip
    for old, new in zip(before[6:-1], after[6:-1], strict=True):
        old, new = old.split(","), new.split(",")
        assert new[4:] == old[4:]  # day number, date, time of day
        assert new[2:4] == ["0", "-777"]
        assert all(re.fullmatch(r" *-?\d+\.\d{7}", cell) for cell in new[:2])
    _nothing_of_the_input(out, done)


def _gpx():
    points = "".join(
        f'<trkpt lat="{lat:.7f}" lon="{lon:.7f}"><ele>8848.86071</ele>'
        f"<time>2024-05-06T08:{t // 60:02d}:{t % 60:02d}Z</time>"
        "<course>271.90713</course><speed>13.370713</speed><name>SENTINEL</name><cmt>SENTINEL</cmt><hdop>1.1</hdop>"
        "<extensions><heart_rate>SENTINEL</heart_rate></extensions></trkpt>"
        for t, lat, lon in _points()
    )
    return (
        '<?xml version="1.0"?><gpx version="1.1" creator="SENTINEL" xmlns="http://www.topografix.com/GPX/1/1">'
        "<metadata><name>SENTINEL</name><author><name>SENTINEL</name></author></metadata>"
        f'<wpt lat="{LATITUDE}" lon="{LONGITUDE}"><name>SENTINEL</name></wpt>'
        f"<trk><name>SENTINEL</name><desc>SENTINEL</desc><trkseg>{points}</trkseg></trk></gpx>"
    )


def test_every_optional_field_stays_behind_gpx(release):
    out, done = release(_gpx(), "in.gpx", START * 10**6)
    after = (out / "share/trace.gpx").read_text()
    assert re.findall(r"<time>(.*?)</time>", after) == re.findall(r"<time>(.*?)</time>", _gpx())
    assert set(re.findall(r"<(\w+)", after)) == {"gpx", "trk", "name", "trkseg", "trkpt", "time"}
    assert re.findall(r"<name>(.*?)</name>", after) == ["jaxpriv"]
    _nothing_of_the_input(out, done)


def _nothing_of_the_input(out, done):
    shared = {path.name: path.read_bytes() for path in (out / "share").iterdir()}
    private = {path.name: path.read_bytes() for path in (out / "private").iterdir()}
    assert sorted(private) == ["mechanism.npz", "record.json", "report.html", "report.json", "report.txt"]
    metres = done.plane.to_metres(*(np.array(values) for values in list(zip(*_points(), strict=True))[1:]))
    # Long enough not to turn up in random digits; a pair of equal coordinates has a probability below 1e-6.
    patterns = [b"SENTINEL", b"8848.86071", b",8848,", b"13.370713", b"271.90713", b"heart", b"hdop", b"http://x"]
    patterns += [value.tobytes() for value in np.concatenate([metres.ravel(), np.array(_points())[:, 1:].ravel()])]
    patterns += [f"{lat:.7f},{lon:.7f}".encode() for _, lat, lon in _points()]
    patterns += [f"{lat:11.7f},{lon:12.7f}".encode() for _, lat, lon in _points()]
    for name, content in (shared | private).items():
        assert not [one for one in patterns if one in content], name
    # The report and the shared file say the same of the release; the secret times are in the private part only.
    release = json.loads(shared["release.json"])
    assert set(release) == {
        "format", "format_version", "simulated", "note", "projection", "origin", "grid_exponent", "tau", "times",
        "east", "north",
    }  # fmt: skip


def test_the_file_is_the_integers_brought_back(release):
    out, done = release(_csv(), "in.csv", START * 10**6)
    content = json.loads((out / "share/release.json").read_text())
    rows = list(csv.reader((out / "share/trace.csv").read_text().splitlines()))[1:]
    # The projection itself, without this package.
    plane = pyproj.Proj(
        proj="aeqd", lat_0=content["origin"]["latitude"], lon_0=content["origin"]["longitude"], ellps="WGS84"
    )
    step = 2.0 ** content["grid_exponent"]
    longitude, latitude = plane(step * np.array(content["east"]), step * np.array(content["north"]), inverse=True)
    assert [row[1:] for row in rows] == [[f"{a:11.7f}", f"{o:12.7f}"] for a, o in zip(latitude, longitude, strict=True)]
    assert [row[0] for row in rows] == content["times"]
    assert content["simulated"] is False and content["note"] == ""
    assert done.released.tau == content["tau"] == json.loads((out / "private/report.json").read_text())["tau"]


def test_tau_is_the_sum_over_both_coordinates(noise):
    mechanism = noise.east.design.mechanism
    points = draw_release((mechanism, mechanism), np.zeros((N, 2)), 0.5)
    factor, floor = np.asarray(mechanism.factor), Fraction(float(mechanism.floor_sd))
    # The bound of design.md, written again: pairs that fail, and draws within 2^-90 of a boundary of the grid.
    reach = max(sum(abs(Fraction(value)) for value in row) for row in factor.tolist()) + floor
    pairs = (factor.size // N + N + 1) // 2
    grid = Fraction(2) ** points.exponent
    one = pairs * Fraction(1, 2**68) + 2 * N * Fraction(1, 2**90) * reach * (1 / grid + Fraction(4, 10) / floor)
    assert 2 * one <= Fraction(points.tau) <= 2 * one * Fraction(1001, 1000)
    assert points.tau < 2**-49


def test_two_releases_of_one_trace_differ(release, tmp_path):
    first, _ = release(_csv(), "in.csv", START * 10**6)
    second, _ = release(_csv(), "in.csv", START * 10**6, out="more", again=True)
    one, two = (json.loads((out / "share/release.json").read_text()) for out in (first, second))
    # The floor is a step of the grid: two draws agree at a point and coordinate with probability below 0.3, at all
    # twenty with one below 1e-10.
    assert (one.pop("east"), one.pop("north")) != (two.pop("east"), two.pop("north"))
    assert one == two
    assert json.loads((second / "private/report.json").read_text())["releases"] == {"number": 2, "overlapping": 0}


def test_simulations_repeat_and_releases_have_no_seed(noise):
    mechanisms = (noise.east.design.mechanism,) * 2
    assert simulate_release(mechanisms, np.zeros((N, 2)), 0.5, 7) == simulate_release(
        mechanisms, np.zeros((N, 2)), 0.5, 7
    )
    drawn = {draw_release(mechanisms, np.zeros((N, 2)), 0.5) for _ in range(3)}
    assert len(drawn) == 3
    assert all(not one.simulated and one.tau is not None for one in drawn)


def test_both_coordinates_share_the_finer_grid(noise):
    wide = GaussianMechanism(np.zeros((N, 0)), 40.0)
    narrow = GaussianMechanism(np.zeros((N, 0)), 1.5)
    for points in (
        draw_release((wide, narrow), np.zeros((N, 2)), 0.5),
        simulate_release((wide, narrow), np.zeros((N, 2)), 0.5, 1),
    ):
        assert points.exponent == 0
        # Steps of one metre for both: noise of 40 m falls on odd multiples, too (all even: probability below 1e-3);
        # noise of 1.5 m stays below 40 m.
        assert max(abs(value) for value in points.north) < 40
        assert points.metres.dtype == np.float64


def test_the_grid_and_the_mechanism_do_not_depend_on_the_positions(noise):
    mechanism = noise.east.design.mechanism
    generator = np.random.default_rng(3)
    seen = set()
    for i in range(50):
        metres = generator.normal(size=(N, 2)) * 10.0 ** (i % 10 - 4)
        points = draw_release((mechanism, mechanism), metres, 0.5)
        seen.add((points.exponent, points.tau, len(points.east), len(points.north)))
        assert all(type(value) is int for value in points.east + points.north)
    assert len(seen) == 1


@pytest.mark.parametrize("draw", [draw_release, lambda *arguments: simulate_release(*arguments, 1)])
def test_a_floor_below_twice_the_resolution_is_refused(draw):
    mechanism = GaussianMechanism(np.zeros((N, 0)), 1.0)
    draw((mechanism, mechanism), np.zeros((N, 2)), 0.5)
    with pytest.raises(InputError, match="below twice the resolution"):
        draw((mechanism, mechanism), np.zeros((N, 2)), 0.51)


def test_data_coarser_than_declared_are_refused_for_a_release(tmp_path):
    rows = [f"{i},{45 + math.sin(i) * 1e-2:.5f},{-30 + math.cos(i * i) * 1e-2:.5f}" for i in range(30)]
    (tmp_path / "in.csv").write_text("time,lat,lon\n" + "\n".join(rows) + "\n")
    with pytest.raises(InputError, match=r"pass --resolution 1\.2m"):
        protect(read_trace(tmp_path / "in.csv"), [0], TARGET, PRIOR)


BAD = {
    "not a number": "{0}x",
    "a decimal comma": "{0}".replace(".", ","),
    "infinite": "{0}e999",
    "out of range": "9{0}",
    "missing": "",
    "far away": "-{0}",
    "two cells": "{0},{0}",
    "quoted": '"{0}',
}


@pytest.mark.parametrize("kind", list(BAD))
def test_messages_hold_nothing_of_the_positions(kind, noise, tmp_path, monkeypatch):
    """One text for a kind of bad input, whatever its digits."""
    monkeypatch.setattr(job, "design_noise", lambda *arguments: noise)
    texts, raised = set(), []
    for digits in ("31.4159265", "27.1828182"):
        rows = [f"{START + t},{lat:.7f},{lon:.7f}" for t, lat, lon in _points()]
        cell = BAD[kind].format(digits if kind != "a decimal comma" else digits.replace(".", ","))
        rows[3] = f"{START + 60},{cell},{LONGITUDE:.7f}"
        (tmp_path / "in.csv").write_text("time,lat,lon\n" + "\n".join(rows) + "\n")
        try:
            done = protect_file(tmp_path / "in.csv", tmp_path / "out", [SECRET], TARGET, PRIOR, force=True, again=True)
        except InputError as error:
            texts.add(str(error))
            raised.append(error)
        else:
            # Rows that are not positions are dropped, counted, and not quoted.
            texts.add(" ".join(done.report.cleaning))
    assert all(one.__cause__ is None and (one.__context__ is None or one.__suppress_context__) for one in raised)
    assert len(texts) == 1
    (text,) = texts
    assert not re.search(r"31|1415|9265|27\.|1828|2718|3141", text), text


def test_the_report_prints_what_it_must(release):
    out, _ = release(_csv(), "in.csv", START * 10**6)
    text = " ".join((out / "private/report.txt").read_text().split())
    report = json.loads((out / "private/report.json").read_text())
    tau = f"τ = {math.ceil(report['tau'] * 1e21) / 10:.1f}e-20"  # two digits, rounded up
    for words in (
        "Prior: given by the user, not fitted to this trace",  # source of the prior
        "noise floor 1 m at every point",
        "output grid Δ = 2^0 m = 1 m",
        tau,
        "order λ = 2",
        "radius r = 200 m",
        "The place at 2024-05-06T08:00:00Z",
        "ε = 1.00 nats at order 2",
        "loss (largest gain in precision): 2.50e-5 per m² east, 2.50e-5 per m² north",
        "within total variation τ",
        "cannot be told from uniform bytes and the attacker sees the output and nothing else",
        "rigorous upper bound for that exact release under each stated prior",
        "Nothing is claimed if the true law of the trace is none of the stated priors",
    ):
        assert words in text, words
    assert report["guarantee"].split() and " ".join(report["guarantee"].split()) in text
    # ε = λ/2 r² t: order 2, and the radius stretched for the plane.
    assert report["axes"][0]["loss_per_m2"] * report["plane_radius_m"] ** 2 == pytest.approx(report["epsilon"])


def test_a_simulated_report_claims_nothing(noise, tmp_path, monkeypatch):
    monkeypatch.setattr(job, "design_noise", lambda *arguments: noise)
    (tmp_path / "in.csv").write_text(_csv())
    done = protect_file(tmp_path / "in.csv", tmp_path / "out", [START * 10**6], TARGET, PRIOR, simulate_seed=1)
    text = " ".join((tmp_path / "out/private/report.txt").read_text().split())
    assert "Nothing is certified about this file" in text and "SIMULATED, NOT PRIVATE" in text
    assert (done.report.tau, done.report.releases) == (None, None)
    assert not (tmp_path / "out/private/record.json").exists()
