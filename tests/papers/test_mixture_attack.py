"""The attacker who weighs several priors by what is seen: Bayes' rule by simulation, and coverage where it is due."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

import jaxpriv as jp
from benchmarks.studies._calibration import simulated_mixture
from benchmarks.studies._mixture import believed, draws_of
from jaxpriv.fitting.fit import covariance_of
from jaxpriv.fitting.population import Population


def density(covariance: np.ndarray) -> Any:
    return cast(Any, multivariate_normal)(cov=covariance)


def kernels(n: int, lengths: tuple[float, ...], sds: tuple[float, ...]) -> list[np.ndarray]:
    lags = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    return [sd**2 * np.exp(-lags / length) + 1e-4 * np.eye(n) for length in lengths for sd in sds]


def test_weights_mean_and_variance_are_those_of_bayes_rule_by_simulation():
    """Series are drawn from the mixture and weighed by the density of the noise: no Gaussian conditioning is used."""
    members = kernels(3, (0.5, 4.0), (0.5, 1.5))
    noise = np.array([[0.5, 0.2, 0.0], [0.2, 0.4, 0.1], [0.0, 0.1, 0.6]])
    seen = np.array([1.5, 1.8, 0.6])
    found = believed(members, noise, 1, seen[None])
    rng, draws = np.random.default_rng(5), 200_000
    series = np.stack([rng.normal(size=(draws, 3)) @ np.linalg.cholesky(one).T for one in members])
    likelihood = density(noise).pdf(seen - series)
    total = likelihood.sum()
    mean = np.sum(likelihood * series[..., 1]) / total
    variance = np.sum(likelihood * (series[..., 1] - mean) ** 2) / total
    # Standard errors of self-normalised estimates; four of each.
    error = math.sqrt(np.sum(likelihood**2 * (series[..., 1] - mean) ** 2)) / total
    assert found.mean[0] == pytest.approx(mean, abs=4 * error)
    error = math.sqrt(np.sum(likelihood**2 * ((series[..., 1] - mean) ** 2 - variance) ** 2)) / total
    assert found.deviation[0] ** 2 == pytest.approx(variance, abs=4 * error)
    share = likelihood.sum(axis=1) / total
    assert found.weights[0] == pytest.approx(share, abs=4 * 0.5 / math.sqrt(total**2 / np.sum(likelihood**2)))
    below = np.sum(likelihood * (series[..., 1] <= 0.4)) / total
    assert found.below(0.4)[0] == pytest.approx(below, abs=4 * 0.5 / math.sqrt(total**2 / np.sum(likelihood**2)))
    # The members disagree: without the spread between their means the variance would be far too small.
    within = np.sum(found.weights * found.variances, axis=1)[0]
    assert found.deviation[0] ** 2 - within > 20 * error


def test_weights_of_far_away_releases_do_not_underflow():
    members = kernels(4, (2.0,), (1.0, 1.001))
    seen = np.full((1, 4), 200.0)
    found = believed(members, 0.1 * np.eye(4), 0, seen)
    logs = [density(one + 0.1 * np.eye(4)).logpdf(seen[0]) for one in members]
    # Densities of e^-19000: their ratio is all that is left. Logarithms of 2e4 carry 1e-11 of absolute rounding.
    assert np.log(found.weights[0, 0]) == pytest.approx(logs[0] - logs[1], rel=1e-9)
    assert found.weights[0].sum() == pytest.approx(1.0, rel=1e-12)


def test_weights_are_the_librarys_when_the_mean_is_unknown():
    """A large constant in every covariance is the restricted likelihood of a population of fits."""
    times, rng = np.arange(24.0), np.random.default_rng(8)
    fit = cast(jp.Fit, jp.fit(times, np.cumsum(rng.normal(size=24)), kernel="matern32", confidence=None))
    fits = [fit.with_parameters({"sd": 5.0, "lengthscale": length}) for length in (3.0, 12.0)]
    noise = 4.0 * np.exp(-np.abs(np.subtract.outer(times, times)) / 3) + np.eye(24)
    seen = 3.0 + 8.0 * rng.normal(size=24)
    known = Population(tuple(fits), ("a", "b"), {}).weights(times, seen, noise)
    found = believed([covariance_of(one, times) + 1e8 for one in fits], noise, 12, seen[None])
    # 1e8 in place of infinity, against a series of variance 1e2, and rounding of 1e8 in the solves.
    assert found.weights[0] == pytest.approx(known, rel=1e-5)


def test_calibrated_when_the_truth_is_one_of_the_members():
    """Truth from each member equally often. Coverage, and the squared error that the variance announces."""
    members = kernels(12, (1.0, 5.0, 25.0), (0.5, 2.0))
    noise, secret, draws = 0.5 * members[3] + 0.1 * np.eye(12), 6, 6000
    rng = np.random.default_rng(2)
    series = np.concatenate([rng.normal(size=(draws // 6, 12)) @ np.linalg.cholesky(one).T for one in members])
    found = believed(members, noise, secret, series + draws_of(noise, draws, rng))
    truth = series[:, secret]
    for level in (0.5, 0.68, 0.95):
        # Four binomial standard errors.
        share = np.mean(found.covered(truth, level))
        assert share == pytest.approx(level, abs=4 * math.sqrt(level * (1 - level) / draws))
    squares = (found.mean - truth) ** 2 - found.deviation**2
    assert np.mean(squares) == pytest.approx(0.0, abs=4 * float(np.std(squares)) / math.sqrt(draws))
    # An attacker who believes in the most restless member alone is not calibrated: the test can fail.
    wrong = believed(members[:1], noise, secret, series + draws_of(noise, draws, rng))
    assert np.mean(wrong.covered(truth, 0.95)) < 0.9


def test_one_member_is_the_gaussian_posterior():
    (prior,) = kernels(6, (3.0,), (1.0,))
    noise, seen = 0.3 * np.eye(6), np.arange(6.0)[None]
    found = believed([prior], noise, 2, seen)
    gain = np.linalg.solve(prior + noise, prior[:, 2])
    left = math.sqrt(prior[2, 2] - prior[2] @ gain)
    assert found.mean[0] == pytest.approx(seen[0] @ gain, rel=1e-12)
    assert found.deviation[0] == pytest.approx(left, rel=1e-12)
    half = norm.ppf(0.84) * left
    assert found.covered(seen[0] @ gain + 0.999 * half, 0.68)[0]
    assert not found.covered(seen[0] @ gain - 1.001 * half, 0.68)[0]


def test_a_member_that_is_not_positive_definite_has_no_weight():
    good, bad = kernels(4, (2.0,), (1.0,))[0], -np.eye(4)
    found = believed([bad, good], np.zeros((4, 4)), 0, np.ones((3, 4)))
    assert found.weights.shape == (3, 1)
    with pytest.raises(ValueError, match="positive definite"):
        believed([bad], np.zeros((4, 4)), 0, np.ones((1, 4)))


def test_noise_may_be_singular():
    factor = np.array([[1.0], [2.0], [0.0]])
    drawn = draws_of(factor @ factor.T, 20_000, np.random.default_rng(0))
    assert np.all(np.abs(drawn[:, 2]) < 1e-6) and np.allclose(drawn[:, 1], 2 * drawn[:, 0], atol=1e-6)
    # Four standard errors of a standard deviation.
    assert np.std(drawn[:, 0]) == pytest.approx(1.0, rel=4 / math.sqrt(40_000))


def test_the_table_of_twelve_priors_is_calibrated_for_those_who_know_them():
    lines = [line for line in simulated_mixture(draws=2400, n=12)[2:] if "first" not in line]
    assert len(lines) == 4
    for line in lines:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        for cell, level in zip(cells[4:], (0.68, 0.95), strict=True):
            # Four binomial standard errors.
            assert float(cell.split(" ± ")[0]) == pytest.approx(level, abs=4 * math.sqrt(level * (1 - level) / 2400))
