"""Traces above 5,000 points: structured designs behind the same command, and what they cannot do."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import jaxpriv as jp
from jaxpriv.baselines import uniform
from jaxpriv.jobs import independent
from jaxpriv.jobs.axis import Axis
from jaxpriv.jobs.believed import believed_path, drawn_fixes
from jaxpriv.jobs.explore import explore
from jaxpriv.jobs.grid_times import GridRequest
from jaxpriv.jobs.prior_choice import PriorChoice
from jaxpriv.jobs.protect import protect, protect_file
from jaxpriv.jobs.requests import PriorRequest, SecretRequest
from jaxpriv.jobs.target import Target
from jaxpriv.jobs.verify import verify_folder
from jaxpriv.report.explorer import explorer_html
from jaxpriv.traces.files import read_trace


START, N, STEP = 1_714_982_400, 6_000, 30
CHOICE = PriorChoice("matern32", 120.0, 300.0, 2.0)
AT = [N // 3, 2 * N // 3]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    times = np.arange(N) * STEP
    metres = 400.0 * np.stack([np.sin(times / 2000.0), np.cos(times / 3100.0)])
    rows = [
        f"{START + t},{50 + y / 111_000:.7f},{-30 + x / 71_000:.7f}" for t, (x, y) in zip(times, metres.T, strict=True)
    ]
    file = tmp_path_factory.mktemp("long") / "long.csv"
    file.write_text("time,lat,lon\n" + "\n".join(rows) + "\n")
    return file


@pytest.fixture(scope="module")
def trace(path):
    return read_trace(path)


def secrets(*positions):
    return [(START + STEP * position) * 10**6 for position in positions]


def test_a_long_trace_is_protected_and_verified(path, tmp_path):
    done = protect_file(path, tmp_path / "out", secrets(*AT), Target(200.0, 1.0), CHOICE)
    assert verify_folder(tmp_path / "out").verified
    gap = done.report.gap
    assert done.report.points == N and done.report.epsilon <= 1.0 and gap is not None and gap <= 1e-2
    alone = done.report.independent.rms_noise_m
    assert alone is not None and alone > 10 * done.report.rms_noise_m
    # Each secret by the matrices of its own neighbourhood: beyond 200 fixes, or 50 length scales, nothing is correlated
    # above 1e-19, and it is independent of the rest.
    mechanism = done.noise.east.design.mechanism
    for j, position in enumerate(AT):
        near = np.arange(position - 200, position + 201)
        prior = np.asarray(CHOICE.process_prior(near * float(STEP)).covariance)
        factor = np.asarray(mechanism.factor)[near]
        total = prior + factor @ factor.T + float(mechanism.floor_sd) ** 2 * np.eye(len(near))
        left = prior[200, 200] - prior[200] @ np.linalg.solve(total, prior[200])
        loss = 1 / left - 1 / prior[200, 200]
        epsilon = loss * done.report.plane_radius_m**2  # order 2
        said = done.noise.east.design.certificate
        # float64 solves of matrices of condition 1e5: 1e-10.
        assert said.epsilon_lower[j, 0] <= epsilon * (1 + 1e-9) and epsilon <= said.epsilons[j, 0] * (1 + 1e-9)
        assert done.noise.east.after_m[j, 0] == pytest.approx(math.sqrt(left), rel=1e-6)
    page = (tmp_path / "out/private/report.html").read_text()
    assert "of the 6,000 times" in page and "of the 6000 fixes" in page
    assert len(page) < 1_000_000
    assert len(done.details.time_us) < 3_000
    for secret, position in zip(done.details.secrets, AT, strict=True):
        (index,) = secret.indices
        assert done.details.time_us[index] == (START + STEP * position) * 10**6


@pytest.mark.parametrize("columns", [0, 3])
def test_beliefs_by_structure_are_those_by_matrices(monkeypatch, columns):
    rng = np.random.default_rng(2)
    seconds = np.cumsum(rng.uniform(5.0, 60.0, 120))
    prior = CHOICE.process_prior(seconds)
    mechanism = jp.GaussianMechanism(50.0 * rng.standard_normal((120, columns)), 4.0)
    released = 1000.0 + 300.0 * rng.standard_normal(120)
    mean, halfwidth = believed_path(prior, mechanism, released)
    monkeypatch.setattr("jaxpriv.designs.long.dispatch.LARGEST_SIZE", 100)
    other, width = believed_path(prior, mechanism, released)
    # Matrices of condition up to 3e4 in float64, solved twice over.
    np.testing.assert_allclose(other, mean, rtol=1e-9)
    np.testing.assert_allclose(width, halfwidth, rtol=1e-7)


def test_what_is_left_of_a_secret_of_several_fixes_is_never_overstated(monkeypatch):
    rng = np.random.default_rng(3)
    prior = CHOICE.process_prior(np.cumsum(rng.uniform(5.0, 60.0, 120)))
    listed = [jp.Secret((40,), 150.0), jp.Secret((60, 62), 150.0)]
    design = jp.design(prior, listed, epsilon=1.0, resolution=0.5)
    exact = Axis.of(design, [prior], listed)
    monkeypatch.setattr("jaxpriv.designs.long.dispatch.LARGEST_SIZE", 100)
    long = Axis.of(design, [prior], listed)
    np.testing.assert_allclose(long.before_m, exact.before_m, rtol=1e-12)
    assert long.after_m[0, 0] == pytest.approx(exact.after_m[0, 0], rel=1e-12)
    assert 0.5 * exact.after_m[1, 0] < long.after_m[1, 0] <= exact.after_m[1, 0] * (1 + 1e-12)


def test_independent_noise_for_a_long_trace(monkeypatch):
    """The least one by certificates alone against the one by eigenvalues."""
    rng = np.random.default_rng(4)
    prior = CHOICE.process_prior(np.cumsum(rng.uniform(5.0, 60.0, 300)))
    listed = [jp.Secret((100,), 150.0), jp.Secret((200,), 150.0)]
    least = independent._smallest_sd([prior], listed, 1.0, 2.0)
    monkeypatch.setattr("jaxpriv.designs.long.dispatch.LARGEST_SIZE", 200)
    found = independent._smallest_sd_of_long([prior], listed, 1.0, 2.0)
    assert least * (1 - 1e-6) <= found <= least * (1 + 2e-3)
    assert jp.certify(prior, listed, uniform(300, 300 * found**2)).epsilon <= 1.0


def test_a_long_trace_is_explored(trace):
    found = explore(trace, secrets(*AT), Target(200.0, 1.0), CHOICE, ladder=(2.0,))
    assert [rung.epsilon for rung in found.rungs] == pytest.approx([1.0, 2.0])
    rung = found.rungs[0]
    # The spread is that of the fixes that are drawn: the diagonal of the noise, and the grid's rounding.
    own = sum(np.diag(one) for one in rung.details.covariances) + 2 * 4.0**rung.report.grid_exponent / 12
    np.testing.assert_allclose(rung.spread[rung.details.covariance_rows], np.sqrt(own), rtol=1e-12)
    assert 'id="epsilon"' in explorer_html(found)


def test_fixes_that_a_page_draws():
    assert drawn_fixes(5_000, [3]).tolist() == list(range(5_000))
    drawn = drawn_fixes(100_000, [0, 50_000, 99_999])
    assert len(drawn) < 3_000 and np.all(np.diff(drawn) > 0) and drawn[0] == 0 and drawn[-1] == 99_999
    assert set(range(49_900, 50_101)) <= set(drawn.tolist())
    many = drawn_fixes(100_000, list(range(0, 100_000, 50)))
    assert set(range(0, 100_000, 50)) <= set(many.tolist()) and len(many) < 15_000


@pytest.mark.parametrize(
    ("secret", "target", "prior", "words"),
    [
        (SecretRequest(every=True), Target(200.0, 1.0), PriorRequest(given=CHOICE), "not every fix can be protected"),
        (SecretRequest.at(secrets(9)), Target(200.0, uncertainty_m=50.0), PriorRequest(given=CHOICE), "--uncertainty"),
        (
            SecretRequest.at(secrets(9)),
            Target(200.0, 1.0),
            PriorRequest(given=replace(CHOICE, kernel="rbf")),
            "only Matern kernels can be used, not rbf",
        ),
        (SecretRequest.at(secrets(9)), Target(200.0, 1.0), PriorRequest(kernels=("rbf",)), "not rbf"),
    ],
)
def test_what_is_not_done_for_long_traces_is_said_before_any_work(trace, secret, target, prior, words, monkeypatch):
    monkeypatch.setattr("jaxpriv.jobs.prior_sources.find_priors", None)
    with pytest.raises(jp.InputError, match=f"6000 points, and above 5000 .*{words}"):
        protect(trace, secret, target, prior)


def test_a_place_between_fixes_is_not_done_for_long_traces(trace):
    kept = np.r_[:100, 120:N]
    with_gap = replace(trace, time_us=trace.time_us[kept])
    assert with_gap.n_points > 5_000
    with pytest.raises(jp.InputError, match="a place between fixes cannot be protected"):
        protect(with_gap, secrets(110), Target(200.0, 1.0), CHOICE)


def test_a_grid_of_times_is_not_done_for_long_traces(trace):
    grid = GridRequest(600.0)
    with pytest.raises(jp.InputError, match="--grid takes at most 5000 points, and the file has 6000"):
        protect(trace, secrets(9), Target(200.0, 1.0), CHOICE, grid=grid)
