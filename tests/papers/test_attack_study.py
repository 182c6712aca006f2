"""The attacker of the studies against direct simulation, and the measures of what a trace is still good for."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.studies import adversary
from benchmarks.studies._attack import attacked, guessed
from benchmarks.studies._calibration import simulated
from benchmarks.studies.utility import measures


@pytest.fixture
def case():
    lags = np.abs(np.subtract.outer(np.arange(20), np.arange(20)))
    believed = np.exp(-lags / 5.0) + 0.01 * np.eye(20)
    rng = np.random.default_rng(0)
    values = np.linalg.cholesky(believed) @ rng.normal(size=20)
    return values, believed, 0.3 * np.exp(-lags / 3.0) + 0.1 * np.eye(20), rng


def test_error_and_coverage_are_those_of_simulated_releases(case):
    values, believed, noise, rng = case
    found = attacked(values, believed, noise, 9)
    sd = np.std(values)
    prior = believed + 1e2 * sd**2
    draws = 40_000
    released = values - values.mean() + rng.normal(size=(draws, 20)) @ np.linalg.cholesky(noise).T
    weights = np.linalg.solve(prior + noise, prior[:, 9])
    error = (released @ weights - (values - values.mean())[9]) / sd
    # Standard errors of a mean, of a standard deviation and of a share; four of each.
    assert np.mean(error) == pytest.approx(found.bias, abs=4 * found.spread / math.sqrt(draws))
    assert np.std(error) == pytest.approx(found.spread, rel=4 / math.sqrt(2 * draws))
    inside = np.mean(np.abs(error) <= 1.959964 * found.deviation)
    assert inside == pytest.approx(found.covered(0.95), abs=4 * math.sqrt(0.25 / draws))


def test_odds_are_those_of_simulated_releases(case):
    """The log-ratio of two places from the two conditional laws of the release, not from the posterior."""
    values, believed, noise, rng = case
    sd = float(np.std(values))
    found = attacked(values, believed, noise, 9)
    prior = believed + 1e2 * sd**2
    gain = prior[:, 9] / prior[9, 9]
    rest = prior - np.outer(gain, prior[:, 9]) + noise
    centred = values - values.mean()
    draws = 20_000
    released = centred + rng.normal(size=(draws, 20)) @ np.linalg.cholesky(noise).T
    shares = []
    for side in (-1.0, 1.0):
        logs = [
            -0.5 * np.sum((d := released - place * gain) * np.linalg.solve(rest, d.T).T, axis=1)
            for place in (centred[9], centred[9] + side * sd)
        ]
        shares.append(np.mean(np.abs(logs[0] - logs[1]) > 1.5))
    assert found.exceeded(1.0, 1.5) == pytest.approx(max(shares), abs=4 * math.sqrt(0.25 / draws))


def test_coverage_is_nominal_where_the_prior_is_right():
    lines = simulated(draws=3000, n=24)
    for line in lines[2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        for cell, level in zip(cells[1:3], (0.68, 0.95), strict=True):
            share = float(cell.split(" ± ")[0])
            # Four binomial standard errors.
            assert share == pytest.approx(level, abs=4 * math.sqrt(level * (1 - level) / 3000)), line
        for cell in cells[3:]:
            assert float(cell.split(" ± ")[0]) <= 0.01 + 4 * math.sqrt(0.0099 / 3000), line


def test_measures_of_simple_paths():
    times = np.arange(5.0)
    line = np.stack([np.arange(5.0), np.zeros(5)], axis=1)
    assert measures(times, line, line) == pytest.approx([0.0, 1.0, 0.0, 0.0])
    # Two metres beside it: same speed and length, two metres off.
    assert measures(times, line, line + np.array([0.0, 2.0])) == pytest.approx([0.0, 1.0, 2.0, 2.0])
    # Twice as fast along the same line: beyond the end by up to four metres.
    assert measures(times, line, 2 * line) == pytest.approx([1.0, 2.0, (2 + 4) / 5, 4.0])


def test_the_mixture_holds_the_best_fits_of_other_people_first(monkeypatch):
    """Person 1 is attacked: nothing of that person, all others' best kernels before the second best, 80 at most."""
    rng = np.random.default_rng(6)
    people = 30
    fits = {
        kernel: [SimpleNamespace(loglik=rng.normal(), name=(person, kernel)) for person in range(people)]
        for kernel in adversary.KERNELS
    }
    monkeypatch.setattr(adversary, "covariance_of", lambda fit, times: fit.name)
    chosen = adversary._others(fits, 1, np.arange(3.0))
    assert len(chosen) == adversary.MEMBERS == len(set(chosen))
    assert [name[0] for name in chosen[:29]] == [i for i in range(people) if i != 1]
    assert all(person != 1 for person, _ in chosen)
    for person, kernel in chosen[:29]:
        assert fits[kernel][person].loglik == max(fits[other][person].loglik for other in adversary.KERNELS)
    for person, kernel in chosen[29:58]:
        better = [other for other in adversary.KERNELS if fits[other][person].loglik > fits[kernel][person].loglik]
        assert len(better) == 1


def test_one_prior_in_the_table_of_three_attackers(case):
    values, believed, noise, _ = case
    found = attacked(values, believed, noise, 9)
    cells = guessed(found)
    assert (cells.deviation, cells.rms) == (found.deviation, found.rms)
    assert cells.covered == (found.covered(0.68), found.covered(0.95))
    lines = adversary._three_attackers({"name": ([], [0.25, 0.35], [])}, {"name": [[cells, cells, cells]] * 2})
    row = [cell.strip() for cell in lines[-1].strip("|").split("|")]
    assert row[:2] == ["name", "0.300"] and row[2:5] == row[5:8] == row[8:11]
    assert row[3] == f"{found.rms:.3f}"


@pytest.mark.slow
def test_the_whole_study_on_made_up_people(tmp_path, capsys):
    """Three people, one window each, 32 fixes ten seconds apart; the table has every design and all three attackers."""
    rng, rows = np.random.default_rng(4), ["trace_id,user,utc_epoch_s,lat,lon"]
    lags = np.abs(np.subtract.outer(np.arange(32), np.arange(32)))
    root = np.linalg.cholesky((1 + lags / 4) * np.exp(-lags / 4) + 1e-6 * np.eye(32))
    for person in range(3):
        east, north = 100.0 * (root @ rng.normal(size=(32, 2))).T / 111_000.0
        rows += [f"{person},{person},{9.2 * i},{40 + north[i]:.7f},{116 + east[i]:.7f}" for i in range(32)]
    table = tmp_path / "windows.csv"
    table.write_text("\n".join(rows) + "\n")
    assert adversary.main(["--geolife", str(table), "--people", "3", "--out", str(tmp_path)]) == 0
    text = (tmp_path / "adversary.md").read_text(encoding="utf-8")
    last = [line for line in text.splitlines() if line.startswith("|")][-9:]
    assert last[0].startswith("| independent") and last[-1].startswith("| default set, fitted to the window")
    for line in last:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert len(cells) == 11
        left = [float(cells[i].split(" [")[0]) for i in (2, 5, 8)]
        assert all(0.0 < value < 1.0 for value in left)
