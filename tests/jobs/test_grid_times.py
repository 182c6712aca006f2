"""Publication on a regular grid: a function of the release and public numbers, whose law says nothing of the fixes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from jaxpriv.errors import InputError
from jaxpriv.jobs import grid_times, protect as protect_job
from jaxpriv.jobs.grid_times import GridRequest, drawing_prior, path_given_release
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.protect import protect, protect_file, share_texts
from jaxpriv.jobs.requests import SecretRequest
from jaxpriv.jobs.target import Target
from jaxpriv.jobs.verify import verify_folder
from jaxpriv.traces.files import read_trace
from jaxpriv.traces.instants import format_instant
from jaxpriv.traces.projection import LocalPlane


PRIOR = PriorChoice("matern32", 600.0, 300.0, 5.0)
TARGET = Target(200.0, epsilon=1.0)
START = 1_714_550_400 * 10**6  # 2024-05-01T08:00:00Z
SECRET = SecretRequest((format_instant(START + 240 * 10**6),))
GRID = GridRequest(90.0, START, START + 900 * 10**6)


def matern32(first, second):
    """The prior's kernel, written down again."""
    z = np.sqrt(3.0) * np.abs(first[:, None] - second[None, :]) / PRIOR.lengthscale_s
    return PRIOR.sd_m**2 * (1 + z) * np.exp(-z)


def problem(seed, n=9):
    """Times of fixes, a noise covariance, and the times of a grid that shares some with them and goes beyond them."""
    rng = np.random.default_rng(seed)
    seconds = np.concatenate([[0.0, 90.0], np.sort(rng.uniform(100, 800, n - 2))])
    factor = rng.normal(size=(n, 3)) * 80
    noise = factor @ factor.T + 4.0 * np.eye(n)
    return seconds, noise, np.arange(-180.0, 1000.0, 90.0)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_published_path_has_the_law_of_the_prior_whatever_the_fixes(seed):
    """Forward: the law of Z under the prior, pushed through the drawing, gives the prior's differences back."""
    seconds, noise, at = problem(seed)
    n, m = len(seconds), len(at)
    zero, left = path_given_release(PRIOR, noise, seconds, np.zeros(n), at, 0.25)
    columns = [path_given_release(PRIOR, noise, seconds, unit, at, 0.25)[0] for unit in np.eye(n)]
    linear = np.stack(columns, axis=1)
    law_of_z = matern32(seconds, seconds) + noise + (PRIOR.nugget_m**2 + 0.25) * np.eye(n)
    law = linear @ law_of_z @ linear.T + left
    differences = np.eye(m) - np.ones((m, m)) / m
    # Sums of about ten products of 1e5 m² in double precision.
    np.testing.assert_allclose(
        differences @ law @ differences, differences @ matern32(at, at) @ differences, atol=1e-6 * PRIOR.sd_m**2
    )
    np.testing.assert_allclose(
        linear @ np.ones(n), np.ones(m), atol=1e-9
    )  # a shift of the trace is a shift of the path
    assert np.allclose(zero, 0.0)


def test_the_path_is_the_posterior_under_a_very_vague_mean():
    seconds, noise, at = problem(3)
    n = len(seconds)
    released = np.random.default_rng(5).normal(size=n) * 300 + 1000
    vague = 1e9
    seen = matern32(seconds, seconds) + noise + (PRIOR.nugget_m**2 + 0.25) * np.eye(n) + vague
    cross = matern32(at, seconds) + vague
    mean, left = path_given_release(PRIOR, noise, seconds, released, at, 0.25)
    # The vague mean's variance is 1e4 times the prior's: relative errors of that order, and of 1e9 · 2^-52.
    np.testing.assert_allclose(mean, cross @ np.linalg.solve(seen, released), atol=0.3)
    expected = matern32(at, at) + vague - cross @ np.linalg.solve(seen, cross.T)
    np.testing.assert_allclose(left, expected, atol=2e-3 * PRIOR.sd_m**2)


def trace_file(folder, name, metres, seconds):
    lines = ["time,lat,lon"]
    for t, (east, north) in zip(seconds, metres, strict=True):
        lines.append(
            f"{format_instant(START + int(t) * 10**6)},{north / 111_320 + 0.05:.7f},{east / 111_320 + 0.05:.7f}"
        )
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """Two traces of different places at the same times."""
    folder = tmp_path_factory.mktemp("grid")
    seconds = np.array([0, 60, 130, 240, 300, 420, 500, 610, 700, 840])
    rng = np.random.default_rng(7)
    return [trace_file(folder, f"{i}.csv", rng.normal(size=(10, 2)) * 300, seconds) for i in (0, 1)]


def test_nothing_but_the_release_reaches_what_is_published(traces, monkeypatch):
    """Two traces, one and the same draw of Z and of the grid: the shared files are equal, byte for byte."""
    fixed = []

    def same_release(mechanisms, metres, resolution):
        if not fixed:
            fixed.append(draw(mechanisms, metres, resolution))
        return fixed[0]

    draw = protect_job.draw_release
    monkeypatch.setattr(protect_job, "draw_release", same_release)
    monkeypatch.setattr(grid_times.secrets, "randbits", lambda count: 12345)
    shared = []
    for path in traces:
        trace = read_trace(path)
        shared.append(share_texts(trace, protect(trace, SECRET, TARGET, PRIOR, grid=GRID)))
    assert shared[0] == shared[1]
    assert shared[0]["trace.csv"].count("\n") == 1 + 11  # a header, and every 90 s of 900 s


def test_a_folder_on_a_grid_verifies_and_keeps_the_times_of_the_fixes_private(traces, tmp_path):
    done = protect_file(traces[0], tmp_path / "out", SECRET, TARGET, PRIOR, grid=GRID)
    assert verify_folder(tmp_path / "out").verified
    shared = "".join(path.read_text() for path in (tmp_path / "out" / "share").iterdir())
    assert format_instant(START + 130 * 10**6) not in shared
    assert format_instant(START + 180 * 10**6) in shared
    assert done.report.rows_written == 11 and done.report.points == 10
    assert any("every 90 s" in text for text in done.report.cleaning)
    assert not any("rounded outward" in text for text in done.report.cleaning)
    assert not any("published in clear" in text for text in done.report.not_claimed)
    share = tmp_path / "out" / "share"
    for name in ("trace.csv", "release.json"):  # an irregular time in both of them
        text = (share / name).read_text()
        (share / name).write_text(
            text.replace(format_instant(START + 180 * 10**6), format_instant(START + 181 * 10**6))
        )
    failed = [check.name for check in verify_folder(tmp_path / "out").checks if check.passed is False]
    assert failed == ["regular times"]


def test_the_number_of_fixes_is_not_in_what_is_shared(traces, tmp_path):
    """Twice as many fixes in the same window: release.json states the same numbers, τ among them."""
    seconds = np.arange(0, 860, 43)
    dense = trace_file(tmp_path, "dense.csv", np.random.default_rng(3).normal(size=(len(seconds), 2)) * 300, seconds)
    said, exact = [], []
    for name, path in (("a", traces[0]), ("b", dense)):
        done = protect_file(path, tmp_path / name, SECRET, TARGET, PRIOR, grid=GRID, origin=LocalPlane(0.0, 0.0))
        shared = json.loads((tmp_path / name / "share" / "release.json").read_text())
        said.append({key: value for key, value in shared.items() if key not in ("east", "north")})
        exact.append(done.released.tau)
        assert verify_folder(tmp_path / name).verified
    assert exact[0] != exact[1]
    assert said[0] == said[1] and said[0]["tau"] >= max(exact)


def test_the_prior_that_draws_follows_from_the_set_alone():
    scales = (300.0, 600.0, 150.0, 600.0)
    members = [PriorChoice("matern32", scale, 300.0, float(i)) for i, scale in enumerate(scales)]
    assert drawing_prior(members) == members[1]
    assert drawing_prior(members[:1]) == members[0]


def test_the_window_is_public_or_rounded_outward():
    named = GridRequest(60.0, START, START + 3600 * 10**6)
    assert np.array_equal(named.times(START + 7, START + 100), named.times(START + 10**9, START + 2 * 10**9))
    assert len(named.times(START, START)) == 61
    found = GridRequest(60.0).times(START + 61 * 10**6, START + 299 * 10**6)
    assert found[0] == START + 60 * 10**6 and found[-1] == START + 300 * 10**6 and set(np.diff(found)) == {60 * 10**6}


@pytest.mark.parametrize(
    ("request_of", "text"),
    [
        (lambda: GridRequest(0.0), "positive"),
        (lambda: GridRequest(1e-7), "positive"),
        (lambda: GridRequest(float("nan")), "positive"),
        (lambda: GridRequest(60.0, START, START), "not after"),
        (lambda: GridRequest(60.0, START, START + 10**7).times(START, START + 10**7), "fewer than two"),
        (lambda: GridRequest(0.001).times(START, START + 10**8), "more than 5000"),
    ],
)
def test_windows_that_make_no_grid_are_refused(request_of, text):
    with pytest.raises(InputError, match=text):
        request_of()
