"""The whole job, against formulas evaluated from its files."""

from __future__ import annotations

import json
import math
import os
import stat

import numpy as np
import pytest

from jaxpriv.errors import InfeasibleError, InputError
from jaxpriv.jobs import protect as job
from jaxpriv.jobs.noise import draw_release, grid_exponent, simulate_release
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.protect import protect, protect_file
from jaxpriv.jobs.target import Target
from jaxpriv.traces.files import read_trace
from jaxpriv.traces.instants import parse_instant
from jaxpriv.traces.projection import STRETCH, LocalPlane


PRIOR = PriorChoice("matern32", 60.0, 300.0, 1.0)
TARGET = Target(radius_m=200.0, epsilon=1.0)
START = parse_instant("2024-05-06T08:00:00Z").us
N, STEP, AT = 12, 20, 5
SECRET = START + AT * STEP * 10**6


def _metres():
    angle = np.linspace(0, 2, N)
    return np.stack([700 * np.cos(angle) - 350, 300 * np.sin(3 * angle) + 20], axis=1)


def _csv(seconds=None, rows=None):
    seconds = STEP * np.arange(N) if seconds is None else seconds
    lat, lon = LocalPlane(45.0, -30.0).to_degrees(_metres())
    lines = [
        f"{START // 10**6 + s},{a:.7f},{b:.7f},SENTINEL-{i},987.654"
        for i, (s, a, b) in enumerate(zip(seconds, lat, lon, strict=True))
    ]
    return "time,lat,lon,name,altitude\n" + "\n".join(rows or lines) + "\n"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("job")
    (folder / "in.csv").write_text(_csv())
    done = protect_file(folder / "in.csv", folder / "out", [SECRET], TARGET, PRIOR, simulate_seed=3)
    return folder / "out", done


def _matern32(seconds, lengthscale=60.0, sd=300.0):
    a = math.sqrt(3) * np.abs(seconds[:, None] - seconds[None, :]) / lengthscale
    return sd**2 * (1 + a) * np.exp(-a)


def _true_loss(sigma, noise, position):
    """t = Hᵀ (C + G)⁻¹ H by explicit inversion, with the row of the secret in C exactly zero."""
    h = sigma[:, position] / sigma[position, position]
    c = sigma - sigma[position, position] * np.outer(h, h)
    c[position, :] = c[:, position] = 0.0
    return float(h @ np.linalg.inv(c + noise) @ h)


def test_report_agrees_with_formulas_on_the_written_mechanism(finished):
    out, _ = finished
    report = json.loads((out / "private/report.json").read_text())
    stored = np.load(out / "private/mechanism.npz")
    sigma = _matern32(STEP * np.arange(N, dtype=float)) + np.eye(N)
    noises = [
        stored[f"factor_{axis}"] @ stored[f"factor_{axis}"].T + float(stored[f"floor_sd_{axis}"]) ** 2 * np.eye(N)
        for axis in ("east", "north")
    ]
    losses = [_true_loss(sigma, noise, AT) for noise in noises]
    epsilon = max(losses) * (200.0 * STRETCH) ** 2  # order 2: λ/2 = 1; one time: s = 1
    # The inversion in this test is itself good to about 1e-15.
    assert epsilon * (1 - 1e-13) <= report["epsilon"] <= 1.0
    # The certificate, the shading of the target and this inversion agree to far better than this.
    assert report["epsilon"] == pytest.approx(epsilon, rel=1e-6)
    for axis, loss in zip(("east", "north"), losses, strict=True):
        # Precision of the posterior: that of the prior plus the gain.
        expected = 1 / math.sqrt(1 / sigma[AT, AT] + loss)
        assert report[f"posterior_halfwidth_{axis}_m"] == pytest.approx(expected, rel=1e-9)
        assert report[f"prior_halfwidth_{axis}_m"] == pytest.approx(math.sqrt(sigma[AT, AT]), rel=1e-12)
    grid = 2.0 ** report["grid_exponent"]
    assert grid == report["grid_m"] <= report["floor_sd_m"] < 2 * grid
    power = [np.diag(noises[0])[i] + np.diag(noises[1])[i] + grid**2 / 6 for i in range(N)]
    assert report["rms_noise_m"] == pytest.approx(math.sqrt(np.mean(power)), rel=1e-9)
    assert report["largest_noise_m"] == pytest.approx(math.sqrt(max(power)), rel=1e-9)
    assert report["smallest_noise_m"] == pytest.approx(math.sqrt(min(power)), rel=1e-9)
    # The least noise: the positive part of H (v + 1/t) Hᵀ − Σ above the floor, by an eigenvalue decomposition.
    floor, v = report["floor_sd_m"] ** 2, sigma[AT, AT]
    h = sigma[:, AT] / v
    excess = (v + (200.0 * STRETCH) ** 2) * np.outer(h, h) - sigma - floor * np.eye(N)
    least = np.sum(np.maximum(np.linalg.eigvalsh(excess), 0)) + N * floor
    # The target is shaded by 1e-9 where the certificate allows it.
    assert report["rms_noise_m"] == pytest.approx(math.sqrt(2 * least / N + grid**2 / 6), rel=1e-6)
    assert report["rms_lower_bound_m"] <= math.sqrt(2 * least / N + grid**2 / 6)
    assert 0 <= report["gap"] < 1e-5

    independent = report["independent"]
    variance = independent["rms_noise_m"] ** 2 / 2
    at_same_epsilon = _true_loss(sigma, variance * np.eye(N), AT) * (200.0 * STRETCH) ** 2
    assert at_same_epsilon == pytest.approx(report["epsilon"], rel=1e-3)
    same_size = _true_loss(sigma, report["rms_noise_m"] ** 2 / 2 * np.eye(N), AT) * (200.0 * STRETCH) ** 2
    assert independent["epsilon"] == pytest.approx(same_size, rel=1e-6)
    assert independent["rms_noise_m"] > report["rms_noise_m"]


def test_released_integers_give_the_written_positions(finished):
    out, _ = finished
    release = json.loads((out / "share/release.SIMULATED.json").read_text())
    trace = read_trace(out / "share/trace.SIMULATED.csv")
    plane = LocalPlane(release["origin"]["latitude"], release["origin"]["longitude"])
    metres = np.stack([release["east"], release["north"]], axis=1) * 2.0 ** release["grid_exponent"]
    # Seven decimals of a degree are 1.1 cm.
    assert np.max(np.abs(plane.to_metres(trace.latitude, trace.longitude) - metres)) < 0.01
    assert release["simulated"] is True
    assert [parse_instant(text).us for text in release["times"]] == [START + i * STEP * 10**6 for i in range(N)]
    assert all(isinstance(value, int) for value in release["east"] + release["north"])


@pytest.mark.parametrize("drawn", ["simulated", "released"])
def test_noise_has_the_law_of_the_mechanism(finished, drawn):
    _, done = finished
    mechanisms = (done.noise.east.design.mechanism, done.noise.north.design.mechanism)
    if drawn == "simulated":
        draws = [simulate_release(mechanisms, np.zeros((N, 2)), 0.5, seed).metres for seed in range(400)]
    else:
        draws = [draw_release(mechanisms, np.zeros((N, 2)), 0.5).metres for _ in range(400)]
    draws = np.array(draws)
    for axis, mechanism in enumerate(mechanisms):
        whitened = np.linalg.solve(
            np.linalg.cholesky(
                np.asarray(mechanism.covariance) + np.eye(N) * 4.0 ** grid_exponent(float(mechanism.floor_sd)) / 12
            ),
            draws[:, :, axis].T,
        )
        # A χ² variable with 400 N degrees of freedom over its mean. Releases cannot be seeded, so the test is random:
        # eight standard deviations (0.16) fail once in 1e13 runs.
        assert abs(np.mean(whitened**2) - 1) < 8 * math.sqrt(2 / (400 * N))
    # East and north are drawn apart: correlation at the noisiest point within eight standard errors.
    assert abs(np.corrcoef(draws[:, AT, 0], draws[:, AT, 1])[0, 1]) < 8 / math.sqrt(400)


def test_folders_and_what_is_in_them(finished):
    out, _ = finished
    assert sorted(p.name for p in (out / "share").iterdir()) == ["release.SIMULATED.json", "trace.SIMULATED.csv"]
    private = ["mechanism.npz", "report.html", "report.json", "report.txt"]
    assert sorted(p.name for p in (out / "private").iterdir()) == private
    assert stat.S_IMODE((out / "private").stat().st_mode) == 0o700
    assert sorted(os.listdir(out.parent)) == ["in.csv", "out"]


def test_no_field_of_the_input_leaks(finished):
    out, _ = finished
    # The page is private and shows the true positions, as a drawing.
    texts = [path.read_bytes() for path in out.rglob("*") if path.is_file() and path.name != "report.html"]
    assert len(texts) == 5
    assert b"SENTINEL" not in (out / "private/report.html").read_bytes()
    patterns = [b"SENTINEL", b"987.65", b"987.6", b'altitude"', b"name,"]
    patterns += [value.tobytes() for value in _metres().ravel()]
    plane = LocalPlane(45.0, -30.0)
    lat, lon = plane.to_degrees(_metres())
    trace_values = np.concatenate([lat, lon, np.round(lat, 7), np.round(lon, 7)])
    patterns += [value.tobytes() for value in trace_values]
    patterns += [f"{value:.6f}".encode() for value in (lat[AT], lon[AT])]
    for content in texts:
        for pattern in patterns:
            assert pattern not in content
    with np.load(out / "private/mechanism.npz") as stored:
        plain = b"".join(stored[name].tobytes() for name in stored.files)
    assert not any(value.tobytes() in plain for value in np.concatenate([trace_values, _metres().ravel()]))


def test_report_says_what_it_must(finished):
    out, _ = finished
    text = (out / "private/report.txt").read_text()
    flat = " ".join(text.split())
    assert text.startswith("Prior: given by the user, not fitted to this trace (matern32 kernel, length scale 60")
    for words in (
        "SIMULATED, NOT PRIVATE",
        "any two places at most 200 m apart at that time change by at most a factor of",
        "except with probability 0.01 ",
        "Theorem 3.1",
        "that circle's diameter",
        "±",
        "68 % intervals",
        "Times are published in clear",
        "Facts outside the prior",
        "each is protected by itself, not all of them together",
        "a second release of the same trace",
        "Independent noise at every point would need",
    ):
        assert words in flat
    assert "nan" not in flat.lower().replace("nanjing", "")
    json.loads((out / "private/report.json").read_text(), parse_constant=pytest.fail)


def test_order_of_rows_changes_nothing(finished, tmp_path):
    out, _ = finished
    lines = _csv().splitlines()
    (tmp_path / "in.csv").write_text("\n".join([lines[0], *lines[:0:-1]]) + "\n")
    protect_file(tmp_path / "in.csv", tmp_path / "out", [SECRET], TARGET, PRIOR, simulate_seed=3)
    for name in ("trace.SIMULATED.csv", "release.SIMULATED.json"):
        assert (tmp_path / "out/share" / name).read_bytes() == (out / "share" / name).read_bytes()


def test_design_does_not_see_the_positions(finished, tmp_path):
    out, _ = finished
    rows = [f"{START // 10**6 + STEP * i},{45 + math.sin(i):.7f},{-30 + math.cos(i * i):.7f}" for i in range(N)]
    (tmp_path / "in.csv").write_text("time,lat,lon\n" + "\n".join(rows) + "\n")
    protect_file(tmp_path / "in.csv", tmp_path / "out", [SECRET], TARGET, PRIOR, simulate_seed=3)
    first, second = (np.load(folder / "private/mechanism.npz") for folder in (out, tmp_path / "out"))
    for name in first.files:
        np.testing.assert_array_equal(first[name], second[name])


def test_constant_coordinate_and_duplicates(tmp_path):
    rows = [f"{START // 10**6 + STEP * (i % N)},45.0000001,{-30 - math.sin(i * i) * 1e-3:.7f}" for i in range(N + 2)]
    (tmp_path / "in.csv").write_text("time,lat,lon\n" + "\n".join(rows) + "\n")
    done = protect(read_trace(tmp_path / "in.csv"), [SECRET], TARGET, PRIOR, simulate_seed=1)
    assert (done.report.points, done.report.rows_written, done.report.rows_read) == (N, N + 2, N + 2)
    assert any("never changes" in warning for warning in done.report.warnings)
    assert any("merged" in sentence for sentence in done.report.cleaning)


def test_one_point_trace_gets_noise_at_that_point(tmp_path):
    (tmp_path / "in.csv").write_text("time,lat,lon\n2024-05-06T08:00:00Z,45.0,-30.0\n")
    report = protect(read_trace(tmp_path / "in.csv"), [START], TARGET, PRIOR, simulate_seed=1).report
    # One recorded value with noise variance g tells 1/g: g = λ r²/(2 ε) on each axis.
    assert report.rms_noise_m == pytest.approx(math.sqrt(2) * 200 * STRETCH, rel=1e-4)
    assert any("single point" in warning for warning in report.warnings)


def test_secret_between_fixes(tmp_path):
    seconds = [*range(0, 6 * STEP, STEP), *range(600, 600 + 6 * STEP, STEP)]
    (tmp_path / "in.csv").write_text(_csv(seconds))
    when = 300.0
    target = Target(radius_m=200.0, epsilon=0.01)
    prior = PriorChoice("matern32", 200.0, 300.0, 1.0)
    done = protect(read_trace(tmp_path / "in.csv"), [START + int(when * 1e6)], target, prior, simulate_seed=1)
    assert done.report.secrets[0].fix_time is None
    # The secret as one more coordinate that is not released: its posterior from the conditional covariance.
    times = np.array([*seconds, when], dtype=float)
    sigma = _matern32(times, 200.0)
    noise = np.asarray(done.noise.east.design.mechanism.covariance) + np.eye(N)
    known = sigma[-1, :-1] @ np.linalg.inv(sigma[:-1, :-1] + noise) @ sigma[-1, :-1]
    assert done.report.posterior_halfwidth_east_m == pytest.approx(math.sqrt(sigma[-1, -1] - known), rel=1e-9)
    gain = 1 / (sigma[-1, -1] - known) - 1 / sigma[-1, -1]
    assert gain * (200 * STRETCH) ** 2 <= done.report.epsilon * (1 + 1e-9)
    assert any("between the fixes" in warning for warning in done.report.warnings)


def test_a_prior_that_leaves_nothing_to_protect_is_pointed_out(tmp_path):
    seconds = [*range(0, 6 * STEP, STEP), *range(6000, 6000 + 6 * STEP, STEP)]
    (tmp_path / "in.csv").write_text(_csv(seconds))
    done = protect(read_trace(tmp_path / "in.csv"), [START + 3000 * 10**6], TARGET, PRIOR, simulate_seed=1)
    assert done.report.epsilon < 1e-6
    assert done.report.independent.rms_noise_m is not None
    assert any("noise floor alone protects" in warning for warning in done.report.warnings)


def test_coarse_files_are_refused_with_the_step(tmp_path):
    rows = [f"{i},{45 + math.sin(i) * 1e-2:.5f},{-30 + math.cos(i * i) * 1e-2:.5f}" for i in range(30)]
    (tmp_path / "in.csv").write_text("time,lat,lon\n" + "\n".join(rows) + "\n")
    with pytest.raises(InputError, match=r"pass --resolution 1\.2m"):
        protect(read_trace(tmp_path / "in.csv"), [0], TARGET, PRIOR, simulate_seed=1)


def test_nothing_is_written_when_something_fails(tmp_path, monkeypatch):
    (tmp_path / "in.csv").write_text(_csv())

    def full_disk(folder, trace, protected):
        (folder / "share" / "half").write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(job, "write_release", full_disk)
    with pytest.raises(InputError, match="No space left"):
        protect_file(tmp_path / "in.csv", tmp_path / "out", [SECRET], TARGET, PRIOR, simulate_seed=3)
    assert os.listdir(tmp_path) == ["in.csv"]


def test_no_floor_no_grid():
    assert [grid_exponent(value) for value in (1.0, 1.99, 2.0, 0.3)] == [0, 0, 1, -2]
    with pytest.raises(InfeasibleError, match="no noise floor"):
        grid_exponent(0.0)
