"""The attacker of the studies against direct simulation, and the measures of what a trace is still good for."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.studies._attack import attacked
from benchmarks.studies.adversary import simulated
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
