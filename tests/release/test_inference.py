"""What an exact Bayesian adversary learns from the published integers, against the promise made for the design."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fixed_bytes import seeded
from scipy import stats

from jaxpriv import GaussianMechanism, GaussianPrior, Secret, certify
from jaxpriv.mechanisms.grid_release import _release


SIZE, SECRET, RADIUS, FLOOR, DELTA = 6, 3, 0.8, 0.125, 0.05


def certified_loss(prior: np.ndarray, factor: np.ndarray) -> float:
    """The verified upper bound of the precision gain that the library reports for this design."""
    secret = Secret((SECRET,), RADIUS)
    return float(certify(GaussianPrior(prior), secret, GaussianMechanism(factor, FLOOR)).losses[0, 0])


def check(count: int) -> None:
    """Posterior odds of two places RADIUS apart and the posterior error, over traces drawn from the prior."""
    times = np.arange(SIZE)
    prior = np.exp(-((times[:, None] - times) ** 2) / 8) + 1e-2 * np.eye(SIZE)
    u = np.linalg.solve(prior + 0.5 * np.eye(SIZE), prior[:, SECRET])
    factor = math.sqrt(0.5) * (u / np.linalg.norm(u))[:, None]
    variance = prior[SECRET, SECRET]
    h = prior[:, SECRET] / variance
    conditional = prior - variance * np.outer(h, h)

    def gain(extra: float) -> float:
        """hᵀ (C + G)⁻¹ h for the noise with `extra` added to the independent part."""
        return float(h @ np.linalg.solve(conditional + factor @ factor.T + (FLOOR**2 + extra) * np.eye(SIZE), h))

    rng, source = np.random.default_rng(5), seeded(6)
    traces = rng.normal(size=(count, SIZE)) @ np.linalg.cholesky(prior).T
    made = [_release(x, factor, FLOOR, resolution=0.0, exponent=None, _bytes=source) for x in traces]
    published = np.array([one.values for one in made])
    seen = prior + factor @ factor.T + (FLOOR**2 + made[0].step ** 2 / 12) * np.eye(SIZE)

    noise = conditional + seen - prior  # of the published trace given the secret
    direction = np.linalg.solve(noise, h)
    residual = published - traces[:, [SECRET]] * h
    # log of p(published | the true place) / p(published | the place RADIUS below it)
    log_odds = RADIUS * (residual @ direction) + RADIUS**2 * (h @ direction) / 2
    t = certified_loss(prior, factor)
    assert t == pytest.approx(gain(0.0), rel=1e-12)
    epsilon = RADIUS**2 * t / 2 + RADIUS * math.sqrt(t) * stats.norm.isf(DELTA)
    margin = 5.3 * math.sqrt(DELTA * (1 - DELTA) / count)  # one-sided 6e-8
    beyond = np.mean(log_odds > epsilon)
    assert beyond <= DELTA + made[0].tau + margin
    # and the noise is not larger than promised: the grid's Δ²/12 changes the exact odds by this much at most
    exact = gain(made[0].step ** 2 / 12)
    assert beyond >= stats.norm.sf((epsilon - RADIUS**2 * exact / 2) / (RADIUS * math.sqrt(exact))) - margin

    mean = published @ np.linalg.solve(seen, prior[:, SECRET])
    error = np.mean((mean - traces[:, SECRET]) ** 2)
    promised = 1 / (1 / variance + t)
    noise_of_estimate = 5.3 * math.sqrt(2 / count)
    assert error >= promised * (1 - noise_of_estimate)
    assert error <= (1 / (1 / variance + exact)) * (1 + noise_of_estimate)


def test_odds_and_error_of_the_exact_adversary():
    check(2_000)


@pytest.mark.slow
def test_odds_and_error_of_the_exact_adversary_at_length():
    check(20_000)
