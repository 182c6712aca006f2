"""The options of `jaxpriv protect`: secrets, priors, goals, dry runs; numbers against formulas on the written files."""

from __future__ import annotations

import json
import math
import os
from html.parser import HTMLParser

import numpy as np
import pytest
from typer.testing import CliRunner

from jaxpriv.cli.app import app
from jaxpriv.fitting.fit import Fit, Settings
from jaxpriv.fitting.prior_file import write_prior
from jaxpriv.traces.projection import STRETCH


runner = CliRunner()
N = 12
START = "2024-05-06T08:00:00Z"
NUMBERS = ("--kernel", "matern32", "--lengthscale", "5min", "--sd", "0.3km", "--nugget", "1m")
AT_FIVE = ("--secret", "2024-05-06T08:05:00Z")


def _rows(n=N):
    return [
        (
            f"2024-05-06T08:{i:02d}:00Z",
            45 + math.sin(i / 3) * 4e-3 + math.sin(i * i) * 1e-5,
            -30 + math.cos(i / 4) * 4e-3 + math.cos(i * i) * 1e-5,
        )
        for i in range(n)
    ]


def _csv(n=N):
    return "time,lat,lon\n" + "".join(f"{t},{lat:.7f},{lon:.7f}\n" for t, lat, lon in _rows(n))


@pytest.fixture
def run(tmp_path):
    def call(*arguments, text=None, name="in.csv", radius="200m"):
        path = tmp_path / name
        path.write_text(_csv() if text is None else text)
        return runner.invoke(
            app, ["protect", str(path), "--out", str(tmp_path / "out"), "--radius", radius, *map(str, arguments)]
        )

    return call


@pytest.fixture
def report(run, tmp_path):
    """Run, verify what was written, and return report.json."""

    def call(*arguments, **options):
        result = run(*arguments, **options)
        assert result.exit_code == 0, result.output
        if "--simulate" not in arguments:
            checked = runner.invoke(app, ["verify", str(tmp_path / "out")])
            assert checked.exit_code == 0, checked.output
        return json.loads((tmp_path / "out/private/report.json").read_text())

    return call


def _fit(kernel, length):
    parameters = {"sd": 300.0, "lengthscale": length, "noise_sd": 0.8}
    return Fit(Settings(kernel, units=("m", "s")), parameters, None, -100.0, (-100.0,), (), True, 40, 2400.0, 300.0)


@pytest.fixture
def prior_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("prior") / "prior.json"
    write_prior(path, ([_fit("matern32", 300.0)], [_fit("matern52", 240.0)]), "fitted elsewhere")
    return path


def _matern32(length=300.0, nugget=1.0):
    lag = math.sqrt(3) * np.abs(np.subtract.outer(np.arange(N), np.arange(N))) * 60.0 / length
    return 300.0**2 * (1 + lag) * np.exp(-lag) + nugget**2 * np.eye(N)


def _noises(tmp_path):
    stored = np.load(tmp_path / "out/private/mechanism.npz")
    return [
        stored[f"factor_{axis}"] @ stored[f"factor_{axis}"].T + float(stored[f"floor_sd_{axis}"]) ** 2 * np.eye(N)
        for axis in ("east", "north")
    ]


def _loss(sigma, noise, fixes):
    """The largest precision gain about some fixes, from the posterior covariance."""
    fixes = np.atleast_1d(fixes)
    own = sigma[np.ix_(fixes, fixes)]
    left = own - sigma[fixes] @ np.linalg.inv(sigma + noise) @ sigma[:, fixes]
    return float(np.linalg.eigvalsh(np.linalg.inv(left) - np.linalg.inv(own))[-1])


def test_a_window_and_a_time_are_each_protected(report, tmp_path):
    found = report("--secret", "2024-05-06T08:02:00Z/2024-05-06T08:04:00Z", *AT_FIVE, "--epsilon", "1", *NUMBERS)
    assert [one["fix_time"][14:16] for one in found["secrets"]] == ["02", "03", "04", "05"]
    sigma, noise = _matern32(), _noises(tmp_path)[0]
    for fix, one in zip((2, 3, 4, 5), found["by_secret"], strict=True):
        loss = _loss(sigma, noise, fix)
        # This inversion loses about six digits of sixteen.
        assert one["epsilon"] == pytest.approx(loss * (200 * STRETCH) ** 2, rel=1e-6)
        assert one["epsilon"] <= 1.0
        assert one["posterior_halfwidth_m"][0] == pytest.approx(1 / math.sqrt(1 / sigma[fix, fix] + loss), rel=1e-6)
        uniform = found["rms_noise_m"] ** 2 / 2 * np.eye(N)
        same_size = _loss(sigma, uniform, fix) * (200 * STRETCH) ** 2
        assert one["independent_epsilon"] == pytest.approx(same_size, rel=1e-6)
    # The least independent noise: the worst of the secrets reaches ε, and none exceeds it.
    even = found["independent"]["rms_noise_m"] ** 2 / 2 * np.eye(N)
    worst = max(_loss(sigma, even, fix) for fix in (2, 3, 4, 5)) * (200 * STRETCH) ** 2
    assert worst == pytest.approx(found["epsilon"], rel=1e-6)
    assert found["independent"]["rms_noise_m"] > found["rms_noise_m"]
    assert found["gap"] < 1e-5


def test_fixes_together_are_one_secret(report, tmp_path):
    found = report(
        "--secret", "2024-05-06T08:04:00Z/2024-05-06T08:05:00Z", "--compound", "--epsilon", "1", *NUMBERS
    )  # fmt: skip
    (secret,) = found["secrets"]
    assert secret["together"] == ["2024-05-06T08:04:00Z", "2024-05-06T08:05:00Z"]
    loss = _loss(_matern32(), _noises(tmp_path)[0], [4, 5])
    assert found["epsilon"] == pytest.approx(2 * loss * (200 * STRETCH) ** 2, rel=1e-5)  # two times: s = 2
    sigma, noise = _matern32(), _noises(tmp_path)[0]
    left = np.diag(sigma - sigma @ np.linalg.inv(sigma + noise) @ sigma)[[4, 5]]
    assert found["posterior_halfwidth_east_m"] == pytest.approx(math.sqrt(left.min()), rel=1e-6)
    assert any("takes far more noise" in one for one in found["warnings"])


def test_every_fix(report, tmp_path):
    found = report("--all", "--epsilon", "1", *NUMBERS, text=_csv())
    assert len(found["secrets"]) == len(found["by_secret"]) == N
    assert all(one["epsilon"] <= 1.0 for one in found["by_secret"])
    assert not any("Other times" in one for one in found["not_claimed"])
    page = _Page((tmp_path / "out/private/report.html").read_text())
    assert {f"secret-{i + 1}" for i in range(N)} <= page.ids


def test_ends_and_places(report, run):
    found = report("--hide-ends", "100m", "--epsilon", "2", *NUMBERS, "--simulate", "1")
    times = {one["fix_time"] for one in found["secrets"]}
    assert START in times and "2024-05-06T08:11:00Z" in times
    _, lat, lon = _rows()[7]
    found = report(
        "--secret", f"{lat:.5f},{lon:.5f}", "--match", "150m", "--epsilon", "2", *NUMBERS, "--simulate", "1", "--force"
    )
    assert "2024-05-06T08:07:00Z" in {one["fix_time"] for one in found["secrets"]}
    assert any("chosen by where the person was" in one for one in found["warnings"])
    refused = run("--secret", f"{lat:.5f},{lon:.5f}", "--epsilon", "2", *NUMBERS, "--force")
    assert refused.exit_code == 2 and "needs --match" in refused.stderr


def test_one_track_of_gpx(report, run):
    points = "".join(f'<trkpt lat="{lat:.7f}" lon="{lon:.7f}"><time>{t}</time></trkpt>' for t, lat, lon in _rows())
    track = f"<trk><trkseg>{points}</trkseg></trk>"
    text = f'<?xml version="1.0"?><gpx version="1.1" creator="x" xmlns="http://www.topografix.com/GPX/1/1">{track}'
    text += f"{track}</gpx>"
    which = run(*AT_FIVE, "--epsilon", "1", *NUMBERS, text=text, name="in.gpx")
    assert which.exit_code == 2 and "track" in which.stderr
    found = report(*AT_FIVE, "--epsilon", "1", *NUMBERS, "--track", "2", text=text, name="in.gpx")
    assert found["points"] == N
    wrong = run(*AT_FIVE, "--epsilon", "1", *NUMBERS, "--track", "first", text=text, name="in.gpx")
    assert wrong.exit_code == 2 and "--track" in wrong.stderr


@pytest.mark.parametrize("radius", ["200m", "50m"])
def test_a_budget_is_kept_and_used(report, tmp_path, radius):
    found = report(*AT_FIVE, "--budget", "50m", *NUMBERS, radius=radius)
    # Used to the solver's tolerance, never exceeded.
    assert 50 * (1 - 1e-5) < found["rms_noise_m"] <= 50
    noises = _noises(tmp_path)
    total = sum(np.trace(noise) for noise in noises) / N + found["grid_m"] ** 2 / 6
    assert math.sqrt(total) == pytest.approx(found["rms_noise_m"], rel=1e-12)
    assert found["rms_lower_bound_m"] is None
    assert found["epsilon"] * (1 - 1e-4) < found["epsilon_lower_bound"] <= found["epsilon"]
    assert found["epsilon_asked"] is None and found["budget_asked_m"] == 50.0


def test_an_uncertainty_is_left_under_every_prior(report, prior_file, tmp_path):
    found = report(*AT_FIVE, "--secret", START, "--uncertainty", "200m", "--prior", prior_file)
    for numbers in found["by_secret"]:
        assert min(numbers["posterior_halfwidth_m"]) >= 200 * (1 - 1e-12)
    # Under each prior of the file's set, Matérn-3/2 east, from the written noise.
    noise = _noises(tmp_path)[0]
    left = []
    for prior in found["axes"][0]["priors"]:
        assert prior["kernel"] == "matern32"
        sigma = _matern32(prior["lengthscale_s"], prior["nugget_m"])
        left += [1 / math.sqrt(1 / sigma[i, i] + _loss(sigma, noise, i)) for i in (0, 5)]
    assert len(left) == 12
    # Reached by the worst, with the rounding of the inversions here.
    assert min(left) == pytest.approx(200, rel=1e-5)
    assert found["uncertainty_asked_m"] == 200.0


def test_a_prior_file_and_its_sets(report, prior_file):
    found = report(*AT_FIVE, "--epsilon", "1", "--prior", prior_file)
    assert found["prior"]["source"].startswith("read from prior.json, fitted elsewhere")
    assert found["estimate"] is False
    lengths = [[one["lengthscale_s"] for one in axis["priors"]] for axis in found["axes"]]
    assert sorted(set(lengths[0])) == pytest.approx([150, 300, 600])
    assert sorted(set(lengths[1])) == pytest.approx([120, 240, 480])
    for axis in found["axes"]:
        # Each member with the fitted nugget of 0.8 m and with twice the resolution.
        assert sorted({one["nugget_m"] for one in axis["priors"]}) == pytest.approx([0.8, 1.0])
        assert axis["lattice"] == [one["nugget_m"] >= 1.0 for one in axis["priors"]]
        (row,) = axis["epsilons"]
        assert len(row) == 6 and row[axis["worst_prior"]] == max(row) <= 1.0
    exact = report(*AT_FIVE, "--epsilon", "1", "--prior", prior_file, "--prior-set", "exact", "--force", "--again")
    assert [len(axis["priors"]) for axis in exact["axes"]] == [2, 2]
    assert exact["rms_noise_m"] < found["rms_noise_m"]


def test_without_a_prior_it_is_fitted_and_an_estimate(run, tmp_path):
    result = run(*AT_FIVE, "--epsilon", "1", "--kernel", "matern32", text=_csv(24))
    assert result.exit_code == 0, result.output
    first = result.stdout.strip().splitlines()[0]
    assert first == "Prior: fitted on the trace itself: an estimate of what an attacker expects, not a guarantee"
    report = json.loads((tmp_path / "out/private/report.json").read_text())
    assert report["estimate"] is True
    assert {one["kernel"] for axis in report["axes"] for one in axis["priors"]} == {"matern32"}
    assert runner.invoke(app, ["verify", str(tmp_path / "out")]).exit_code == 0


def test_a_short_trace_needs_a_prior(run, tmp_path):
    result = run(*AT_FIVE, "--epsilon", "1")
    assert result.exit_code == 2 and "--prior FILE" in result.stderr
    assert os.listdir(tmp_path) == ["in.csv"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((*AT_FIVE, *NUMBERS), 2, "give exactly one goal"),
        ((*AT_FIVE, *NUMBERS, "--epsilon", "1", "--budget", "50m"), 2, "give exactly one goal"),
        ((*AT_FIVE, *NUMBERS, "--budget", "50"), 2, "--budget 50: the unit is missing"),
        ((*AT_FIVE, *NUMBERS, "--budget", "0m"), 2, "the budget is 0.0 m"),
        # A floor of 1 m in both coordinates and a grid of 1 m: sqrt(2 + 1/6) = 1.472.
        ((*AT_FIVE, *NUMBERS, "--budget", "1m"), 3, "not above the 1.48 m"),
        # sqrt(300² + 1²) = 300.0017.
        ((*AT_FIVE, *NUMBERS, "--uncertainty", "301m"), 3, "±300 m before any release"),
        (
            ("--secret", f"{START}/2024-05-06T08:01:00Z", "--compound", *NUMBERS, "--uncertainty", "10m"),
            2,
            "leave --compound out",
        ),
        ((*NUMBERS, "--epsilon", "1"), 2, "say what to protect"),
        ((*AT_FIVE, "--all", *NUMBERS, "--epsilon", "1"), 2, "--all already means every fix"),
        ((*AT_FIVE, *NUMBERS, "--epsilon", "1", "--effort", "most"), 2, "most"),
        ((*AT_FIVE, *NUMBERS, "--epsilon", "1", "--kernel", "rbf"), 2, "give one --kernel"),
        ((*AT_FIVE, *NUMBERS, "--epsilon", "1", "--prior-set", "wide"), 2, "--prior-set goes with fitted priors"),
        ((*AT_FIVE, *NUMBERS, "--epsilon", "1", "--prior", "nowhere.json"), 2, "--prior FILE has its own numbers"),
        ((*AT_FIVE, "--epsilon", "1", "--prior", "nowhere.json"), 2, "nowhere.json"),
        ((*AT_FIVE, "--epsilon", "1", "--sd", "300m"), 2, "a standard deviation alone is no prior"),
        ((*AT_FIVE, "--epsilon", "1", "--kernel", "periodic"), 2, "cannot be fitted here"),
    ],
)
def test_what_does_not_go_together(run, tmp_path, arguments, code, words):
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert words in " ".join(result.stderr.replace("│", " ").split())
    assert result.stdout == ""
    assert os.listdir(tmp_path) == ["in.csv"]


def test_a_dry_run_says_what_was_understood_and_writes_nothing(run, prior_file, tmp_path, state):
    result = run(*AT_FIVE, "--secret", f"{START}/2024-05-06T08:02:00Z", "--epsilon", "1", "--prior", prior_file,
                 "--dry-run")  # fmt: skip
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    for words in (
        "Prior: read from prior.json",
        "4 secrets, each protected by itself",
        "3 fixes from 2024-05-06T08:00:00Z to 2024-05-06T08:02:00Z, each by itself",
        "6 priors for east",
        "matern52, length scale x2, nugget 0.8 m",
        "with ε = 1.00 at order 2, certified",
        "Nothing was drawn, written or recorded",
    ):
        assert words in text, words
    assert os.listdir(tmp_path) == ["in.csv"]
    assert list(state.iterdir()) == []
    assert run(*AT_FIVE, "--budget", "1m", *NUMBERS, "--dry-run").exit_code == 3


class _Page(HTMLParser):
    def __init__(self, source):
        super().__init__()
        self.ids, self.text, self.depth = set(), "", 0
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.ids |= {value for name, value in attributes if name == "id"}

    def handle_data(self, data):
        self.text += data


def test_the_page_has_the_secrets_and_the_priors(report, prior_file, tmp_path):
    found = report(*AT_FIVE, "--secret", START, "--uncertainty", "100m", "--prior", prior_file)
    path = tmp_path / "out/private/report.html"
    assert path.stat().st_mode & 0o777 == 0o600
    page = _Page(path.read_text())
    assert {"prior", "result", "secret-1", "secret-2", "loss-table", "noise-figure", "map-figure"} <= page.ids
    assert "secret-3" not in page.ids
    for one in found["by_secret"]:
        assert one["label"] in page.text
    for axis in found["axes"]:
        assert f"{axis['name']}: {axis['labels'][axis['worst_prior']]}" in page.text
    assert "100 m left in each coordinate" in page.text


def test_many_secrets_are_summarised_in_the_text_only(report, tmp_path):
    text = _csv(20)
    found = report("--all", "--epsilon", "1", *NUMBERS, "--simulate", "1", text=text)
    said = " ".join((tmp_path / "out/private/report.txt").read_text().split())
    assert len(found["by_secret"]) == 20
    assert "20 secrets, each protected by itself" in said
    assert "The 5 with the largest ε" in said
    assert said.count("odds by at most") == 5
