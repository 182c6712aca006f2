"""`jaxpriv fit`: what it writes, says and refuses, on made-up traces."""

from __future__ import annotations

import json
import os
import stat

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from jaxpriv.cli.fit import fit as command
from jaxpriv.fitting.fit import fit
from jaxpriv.fitting.population import fit_population
from jaxpriv.fitting.prior_file import read_prior
from jaxpriv.jobs import fit as job
from jaxpriv.jobs.fit_text import duration
from jaxpriv.jobs.prior_sources import find_priors
from jaxpriv.traces.instants import format_instant, parse_instant
from jaxpriv.traces.projection import LocalPlane


START = parse_instant("2024-05-06T08:00:00Z").us
PLANE = LocalPlane(45.1, -30.2)
N = 30


def metres_of(seed: int, n: int = N) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    times = np.concatenate([[0.0], np.cumsum(rng.integers(4, 13, n - 1))])
    lag = np.sqrt(3) * np.abs(times[:, None] - times[None, :]) / 70.0
    full = 90.0**2 * (1 + lag) * np.exp(-lag) + 2.0**2 * np.eye(n)
    return times, np.linalg.cholesky(full) @ rng.standard_normal((n, 2))


def write_csv(path, times, metres):
    lat, lon = PLANE.to_degrees(metres)
    rows = [
        f"{format_instant(START + round(t * 1e6))},{a:.9f},{b:.9f}" for t, a, b in zip(times, lat, lon, strict=True)
    ]
    path.write_text("time,lat,lon\n" + "\n".join(rows) + "\n")
    return str(path)


@pytest.fixture
def run(monkeypatch):
    # Comparing with other kernels compiles each of them; a slow test does it.
    monkeypatch.setattr(job, "ALTERNATIVES", ())
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(command)
    return lambda *arguments: CliRunner().invoke(app, [str(one) for one in arguments])


@pytest.fixture
def walk(tmp_path):
    times, metres = metres_of(3)
    return write_csv(tmp_path / "walk.csv", times, metres), times, metres


def test_one_person(run, walk, tmp_path):
    path, times, metres = walk
    result = run(path, "--out", tmp_path / "prior.json")
    assert result.exit_code == 0, result.output
    content = read_prior(tmp_path / "prior.json")
    assert content.provenance == "fitted elsewhere" and content.coordinates is not None
    assert [[one.family for one in axis] for axis in content.coordinates] == [["matern32", "matern52"]] * 2
    for i, axis in enumerate(content.coordinates):
        for one in axis:
            direct = fit(times, metres[:, i], kernel=one.family)
            # The file rounds positions to 1e-4 m, a thousandth of the smallest nugget.
            for name, value in one.parameters.items():
                assert value == pytest.approx(direct.parameters[name], rel=1e-3)
    assert stat.S_IMODE(os.stat(tmp_path / "prior.json").st_mode) == 0o600
    assert result.stdout.startswith("Fitted to 30 fixes over")
    for said in (
        "East (standard",
        "North (standard",
        "matern52: standard deviation",
        "Hidden windows, matern",
        "nugget",
    ):
        assert said in result.stdout
    assert "keep it private" in result.stderr
    assert "45.1" not in result.output and "30.2" not in result.output
    assert sorted(os.listdir(tmp_path)) == ["prior.json", "walk.csv"]


def test_the_file_protects_other_traces(run, walk, tmp_path):
    path, times, metres = walk
    assert run(path, "--out", tmp_path / "prior.json", "--kernel", "matern32", "--quiet").output == ""
    assert find_priors(times, metres, file=tmp_path / "prior.json").estimate  # its own trace
    assert not find_priors(*metres_of(4), file=tmp_path / "prior.json").estimate


def test_json_says_the_same(run, walk, tmp_path):
    path, _, _ = walk
    result = run(path, "--out", tmp_path / "prior.json", "--kernel", "matern32", "--json", "--quiet")
    assert result.exit_code == 0 and not result.stderr
    said = json.loads(result.stdout)
    content = read_prior(tmp_path / "prior.json")
    assert said["format"] == "jaxpriv-fit" and said["kind"] == "person" and said["points"] == N
    for axis, stored in zip(said["axes"], content.coordinates or (), strict=True):
        assert axis["fits"][0]["parameters"] == stored[0].parameters
        assert axis["fits"][0]["bound_hits"] == list(stored[0].bound_hits)
        assert 0 <= axis["hidden_windows"]["cover_95"] <= 1
        assert axis["hidden_windows"]["points"] > 0


def test_a_nugget_on_its_bound_is_said_to_be_a_limit(run, tmp_path):
    times = np.arange(0.0, 10.0 * N, 10.0)
    smooth = np.stack([200.0 * np.sin(times / 80.0), 150.0 * np.cos(times / 95.0)], axis=1)
    path = write_csv(tmp_path / "smooth.csv", times, smooth)
    result = run(path, "--out", tmp_path / "prior.json", "--kernel", "matern32")
    assert "nugget at most 0.0300 m (its lower bound)" in result.stdout
    assert "Note: noise_sd at its lower bound" in result.stdout


def test_a_long_gap_is_no_obstacle(run, tmp_path):
    times, metres = metres_of(3)
    late = times + np.where(np.arange(N) < N // 2, 0.0, 4_000.0)
    path = write_csv(tmp_path / "gap.csv", late, metres)
    result = run(path, "--out", tmp_path / "prior.json", "--kernel", "matern32")
    assert result.exit_code == 0, result.output
    # The windows lie at fixes, so that a gap does not keep the fit from being checked.
    assert "Not checked on hidden windows" not in result.stdout


def test_a_population_lists_what_it_skips(run, tmp_path):
    traces = {"a": metres_of(3), "b": metres_of(4), "short": metres_of(5, 12)}
    still = metres_of(6)
    still[1][:, 0] *= 0.3 / np.std(still[1][:, 0])
    traces["still"] = still
    paths = [write_csv(tmp_path / f"{name}.csv", *trace) for name, trace in traces.items()]
    (tmp_path / "broken.csv").write_text("time,lat\n")
    out = tmp_path / "people.json"
    result = run(*paths, tmp_path / "broken.csv", "--population", "--kernel", "matern32", "--out", out)
    assert result.exit_code == 0, result.output
    population = read_prior(out).population
    assert population is not None
    direct = fit_population(list(traces.values()), kernels=("matern32",))
    assert len(population.fits) == len(direct.fits) == 5
    for ours, theirs in zip(population.fits, direct.fits, strict=True):
        assert ours.parameters["lengthscale"] == pytest.approx(theirs.parameters["lengthscale"], rel=1e-2)
    assert population.groups == ("1", "1", "2", "2", "4")
    assert "a.csv" not in out.read_text()
    assert dict(population.skipped) == {
        "fewer than 20 fixes": 2,
        "a standard deviation of 0.5 m or less": 1,
        "unreadable": 2,
    }
    assert "Fitted to 3 of 5 traces" in result.stdout
    for line in ("short.csv: fewer than 20 fixes", "still.csv, east: a standard deviation", "broken.csv: "):
        assert line in result.stdout
    middle = float(np.exp(np.median([np.log(one.lengthscale) for one in population.fits])))
    assert f"length scale: {middle:.3g} s (×/÷" in result.stdout
    said = json.loads(run(*paths, "--population", "--kernel", "matern32", "--out", out, "--force", "--json").stdout)
    assert said["families"]["matern32"]["parameters"]["lengthscale"]["median"] == pytest.approx(middle)
    assert [(one["file"], one["coordinate"]) for one in said["skipped"]] == [("short.csv", None), ("still.csv", "east")]


def test_what_is_refused_and_that_nothing_is_written(run, walk, tmp_path):
    path, _, _ = walk
    short = write_csv(tmp_path / "short.csv", *metres_of(5, 12))
    other = write_csv(tmp_path / "other.csv", *metres_of(5, 13))
    (tmp_path / "old.json").write_text("old")
    out = tmp_path / "new.json"
    cases = [
        ([short, "--out", out], "fewer than 20 fixes"),
        ([path, short, "--out", out], "pass --population"),
        ([path, "--population", "--out", out], "at least two traces"),
        ([path, path, "--population", "--out", out], "named twice"),
        ([short, other, "--population", "--out", out], "none of the 2 files could be fitted"),
        ([path, "--kernel", "periodic", "--out", out], "'periodic' cannot be fitted to positions"),
        ([path, "--kernel", "rbf", "--kernel", "rbf", "--out", out], "a kernel is named twice"),
        ([path, "--out", tmp_path / "old.json"], "exists already"),
        ([path, "--out", tmp_path], "is a folder"),
        ([path, "--out", tmp_path / "no" / "new.json"], "create it first"),
        ([tmp_path / "none.csv", "--out", out], "cannot read"),
        ([path], "--out"),
    ]
    for arguments, message in cases:
        result = run(*arguments)
        assert result.exit_code == 2, arguments
        assert message in result.stderr, arguments
        assert not result.stdout
    assert not out.exists()
    assert (tmp_path / "old.json").read_text() == "old"


def test_durations_are_said_in_their_own_unit():
    assert [duration(seconds) for seconds in (90, 600, 8000, 300_000)] == ["90 s", "10 min", "2.22 h", "3.47 d"]


@pytest.mark.slow
def test_recorded_traces_compared_with_other_kernels(real_data, tmp_path):
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(command)
    folder = real_data / "geolife/raw_plt"
    result = CliRunner().invoke(
        app, [str(folder / "009/Trajectory/20081027121402.plt"), "--out", str(tmp_path / "p.json"), "--json"]
    )
    assert result.exit_code == 0, result.output
    for axis in json.loads(result.stdout)["axes"]:
        assert set(axis["gain_nats"]) == {"matern12", "matern32", "matern52", "iou"} - {axis["best"]}
        # The rough kernel is far from recorded positions, whoever walks.
        assert axis["gain_nats"]["matern12"] > 3.0
