"""The explorer's job: every value is that of a design made by itself, and nothing is released."""

from __future__ import annotations

import json
import math
import re
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from jaxpriv.cli.app import app
from jaxpriv.errors import InfeasibleError, InputError
from jaxpriv.jobs.demo import run_demo
from jaxpriv.jobs.explore import LADDER, explore, explore_file, filling_order
from jaxpriv.jobs.explore_example import common_normals, example
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.protect import plan, protect
from jaxpriv.jobs.target import Target
from jaxpriv.mechanisms.gaussian import GaussianMechanism
from jaxpriv.traces.files import read_trace
from jaxpriv.traces.instants import parse_instant


PRIOR = PriorChoice("matern32", 300.0, 300.0, 1.0)
TARGET = Target(radius_m=200.0, epsilon=1.0)
SECRETS = [parse_instant(f"2024-05-06T08:{minute:02d}:00Z").us for minute in (3, 8)]
VALUES = (0.2, 0.5, 3.0)
N = 12


def _csv():
    rows = [
        f"2024-05-06T08:{i:02d}:00Z,{45 + math.sin(i / 3) * 4e-3:.7f},{-30 + math.cos(i / 4) * 4e-3:.7f}\n"
        for i in range(N)
    ]
    return "time,lat,lon\n" + "".join(rows)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "in.csv"
    path.write_text(_csv())
    return path


@pytest.fixture(scope="module")
def trace(path):
    return read_trace(path)


@pytest.fixture(scope="module")
def found(trace):
    return explore(trace, SECRETS, TARGET, PRIOR, ladder=VALUES)


def test_each_value_is_what_a_release_would_have(found, trace):
    assert [rung.epsilon for rung in found.rungs] == [0.2, 0.5, 1.0, 3.0]
    assert found.rungs[found.start].epsilon == 1.0
    for rung in found.rungs:
        released = protect(trace, SECRETS, replace(TARGET, epsilon=rung.epsilon), PRIOR, simulate_seed=1).report
        for name in (
            "epsilon",
            "rms_noise_m",
            "largest_noise_m",
            "rms_lower_bound_m",
            "odds",
            "by_secret",
            "independent",
        ):
            assert getattr(rung.report, name) == getattr(released, name), name
        assert rung.report.epsilon <= rung.epsilon
        assert rung.report.simulated
        # The profile is the noise of the points, grid included: its mean square is the error.
        assert math.sqrt(np.mean(rung.spread**2)) == pytest.approx(released.rms_noise_m, rel=1e-12)


def test_noise_falls_as_epsilon_grows(found):
    sizes = [rung.report.rms_noise_m for rung in found.rungs]
    assert np.all(np.diff(sizes) < 0)
    after = np.array([[secret.after_m for secret in rung.details.secrets] for rung in found.rungs])
    assert np.all(np.diff(after, axis=0) < 0)


def test_the_page_is_private_and_alone(path, tmp_path, state):
    out = tmp_path / "out"
    explore_file(path, out, SECRETS, TARGET, PRIOR, ladder=VALUES)
    assert [entry.relative_to(out).as_posix() for entry in out.rglob("*")] == ["private", "private/explorer.html"]
    assert stat.S_IMODE((out / "private").stat().st_mode) == 0o700
    assert stat.S_IMODE((out / "private/explorer.html").stat().st_mode) == 0o600
    assert list(state.rglob("*")) == []  # no record: nothing was released
    data = re.search(r'id="explorer-data">(.*?)</script>', (out / "private/explorer.html").read_text())
    assert len(json.loads(data[1])["spoken"]) == 4
    with pytest.raises(InputError, match="exists already"):
        explore_file(path, out, SECRETS, TARGET, PRIOR, ladder=VALUES)
    explore_file(path, out, SECRETS, TARGET, PRIOR, ladder=(1.0,), force=True)


def test_a_release_is_never_replaced(path, tmp_path):
    (tmp_path / "out/share").mkdir(parents=True)
    with pytest.raises(InputError, match="holds a release"):
        explore_file(path, tmp_path / "out", SECRETS, TARGET, PRIOR, force=True)


def test_when_time_is_up_the_rest_is_left_out_evenly(trace):
    moments = iter(range(0, 1000, 10))
    found = explore(
        trace, SECRETS, TARGET, PRIOR, ladder=(0.1, 0.3, 0.5, 0.7, 2.0), limit_s=25.0, clock=lambda: next(moments)
    )
    assert [rung.epsilon for rung in found.rungs] == [0.1, 1.0, 2.0]
    assert found.left_out == ("Left out for lack of time: ε = 0.3, 0.5, 0.7; a longer --limit has them, too.",)


def test_what_cannot_be_designed_is_left_out_with_its_reason(trace, monkeypatch):
    from jaxpriv.jobs import explore as job

    def fail(seconds, secrets, target, source, real=job.design_noise):
        if target.epsilon < 0.3:
            raise InfeasibleError("no noise is enough.", smallest_feasible=0.3)
        return real(seconds, secrets, target, source)

    monkeypatch.setattr(job, "design_noise", fail)
    found = explore(trace, SECRETS, TARGET, PRIOR, ladder=VALUES)
    assert [rung.epsilon for rung in found.rungs] == [0.5, 1.0, 3.0]
    assert found.left_out == ("Left out: ε = 0.2, no noise is enough.",)


@pytest.mark.parametrize(
    ("ladder", "words"),
    [((), "0 values"), ((0.0,), "epsilon is 0"), ((math.inf,), "is inf"), (tuple(range(1, 60)), "59 values")],
)
def test_ladders_that_are_none_are_refused(trace, ladder, words):
    with pytest.raises(InputError, match=words):
        explore(trace, SECRETS, TARGET, PRIOR, ladder=ladder)
    with pytest.raises(InputError, match="no --budget"):
        explore(trace, SECRETS, replace(TARGET, epsilon=None, budget_m=50.0), PRIOR)


def test_the_ladder_is_filled_from_the_start_and_both_ends():
    assert filling_order(11, 6) == [6, 10, 0, 3, 8, 1, 4, 2, 5, 7, 9]
    assert [filling_order(1, 0), filling_order(2, 1), filling_order(3, 0)] == [[0], [1, 0], [0, 2, 1]]


def test_the_default_ladder_is_sorted_and_has_the_default_start():
    assert list(LADDER) == sorted(LADDER)
    assert TARGET.epsilon in LADDER
    assert 9 <= len(LADDER) <= 15


class _Axis:
    """Noise with a given factor and floor."""

    def __init__(self, factor, floor_sd):
        mechanism = GaussianMechanism(factor, floor_sd)
        self.design = type("Made", (), {"mechanism": mechanism})()


def test_examples_have_the_law_of_the_noise_and_depend_on_the_covariance_alone():
    rng = np.random.default_rng(1)
    factor, floor = rng.normal(size=(5, 3)) * [30.0, 10.0, 3.0], 2.0
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    metres = rng.normal(size=(5, 2)) * 100
    axes = [_Axis(factor, floor), _Axis(factor @ turn, floor)]
    normals = common_normals(5, 2, seed=4)
    same = np.stack([normals[0], normals[0]])
    drawn = example(axes, metres, -10, same).metres - metres
    # Another factor of the same covariance gives the same noise, up to the grid of 1/1024 m.
    np.testing.assert_allclose(drawn[:, 0], drawn[:, 1], atol=2e-3)
    near = example([_Axis(factor * 1.001, floor)] * 2, metres, -10, same).metres - metres
    assert np.max(np.abs(near - drawn)) < 0.15
    draws = np.array([example(axes, metres, -10, common_normals(5, 2, seed)).metres - metres for seed in range(4000)])
    wanted = factor @ factor.T + floor**2 * np.eye(5)
    for i in (0, 1):
        # The error of an estimated covariance of 4,000 draws is 2.2 % of its scale; six of them.
        assert np.max(np.abs(np.cov(draws[:, :, i].T) - wanted)) < 0.13 * np.max(np.diag(wanted))
    assert abs(np.mean(draws[:, :, 0] * draws[:, :, 1])) < 0.1 * np.max(np.diag(wanted))


def test_an_example_that_does_not_fit_the_grid_is_refused():
    with pytest.raises(InfeasibleError, match="too large"):
        example([_Axis(np.zeros((1, 0)), 1e18)] * 2, np.zeros((1, 2)), 0, np.ones((2, 2, 1)))


def test_progress_counts_the_designs(trace):
    steps = []
    explore(trace, SECRETS, TARGET, PRIOR, ladder=VALUES, progress=steps.append)
    assert steps[0] == "Designing for ε = 1 (1 of 4)"
    assert steps[-1].endswith("(4 of 4)")


def test_the_command_writes_the_page_and_says_that_it_is_private(path, tmp_path):
    numbers = ("--kernel", "matern32", "--lengthscale", "5min", "--sd", "0.3km", "--nugget", "1m", "--radius", "200m")
    arguments = ("explore", str(path), "--secret", "2024-05-06T08:05:00Z", *numbers, "--out", str(tmp_path / "out"))
    done = CliRunner().invoke(app, [*arguments, "--epsilons", "0.5,2"])
    assert done.exit_code == 0, done.output
    assert "private" in done.output
    assert (tmp_path / "out/private/explorer.html").is_file()
    wrong = CliRunner().invoke(app, [*arguments, "--epsilons", "half"])
    assert wrong.exit_code == 2
    assert "--epsilons" in wrong.output
    assert CliRunner().invoke(app, [*arguments]).exit_code == 2  # the folder exists


def test_the_document_names_every_section_and_its_command_runs(tmp_path, monkeypatch):
    document = (Path(__file__).parents[2] / "docs" / "reports.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"(?m)^    jaxpriv (explore (?:.*\\\n)*.*)", document)
    monkeypatch.chdir(tmp_path)
    run_demo(Path("jaxpriv-demo"), points=30)
    done = CliRunner().invoke(app, [*command.replace("\\\n", " ").split(), "--epsilons", "1"])
    assert done.exit_code == 0, done.output
    assert Path("look/private/explorer.html").is_file()
    page = Path("jaxpriv-demo/private/report.html").read_text(encoding="utf-8")
    for title in re.findall(r"<h2 [^>]*>(.*?)</h2>", page):
        assert f"| {title} |" in document, title
    read_out = re.findall(r"(?m)^\* \*([^*]+)\.\*", document)
    assert len(read_out) == 2
    for sentence in read_out:
        assert " ".join(sentence.split()) in page


def test_plans_are_not_changed_by_exploring(trace):
    before = plan(trace, SECRETS, TARGET, PRIOR).noise.cost
    explore(trace, SECRETS, TARGET, PRIOR, ladder=(0.5,))
    assert plan(trace, SECRETS, TARGET, PRIOR).noise.cost == before
