"""The covariance of what is published, against the one that certificates are about."""

from __future__ import annotations

import numpy as np
import pytest
from fixed_bytes import seeded
from scipy import stats

from jaxpriv.mechanisms.grid_release import _release


SIZE, FLOOR = 8, 0.75  # so the step is 0.5


def recover(rank: int, count: int) -> None:
    """Likelihood-ratio test of the covariance L Lᵀ + (floor_sd² + Δ²/12) I, and of its quiet directions."""
    rng = np.random.default_rng(rank)
    factor, x = 3 * rng.normal(size=(SIZE, rank)), np.linspace(-1, 1, SIZE)
    source = seeded(100 + rank)
    made = [_release(x, factor, FLOOR, resolution=0.0, exponent=None, _bytes=source) for _ in range(count)]
    noise = np.array([one.values for one in made]) - x
    variance = FLOOR**2 + made[0].step ** 2 / 12
    covariance = factor @ factor.T + variance * np.eye(SIZE)
    white = np.linalg.solve(np.linalg.cholesky(covariance), noise.T)
    sample = white @ white.T / count
    statistic = count * (np.trace(sample) - np.linalg.slogdet(sample)[1] - SIZE)
    degrees = SIZE * (SIZE + 1) // 2
    # Bartlett's correction makes the χ² limit accurate at a few thousand draws.
    correction = 1 + (2 * SIZE + 1 - 2 / (SIZE + 1)) / (6 * count)
    assert stats.chi2.isf(1 - 1e-7, degrees) < statistic / correction < stats.chi2.isf(1e-7, degrees)
    assert np.all(np.abs(noise.mean(0)) < 5.4 * np.sqrt(np.diag(covariance) / count))
    if rank < SIZE:
        quiet = np.linalg.svd(factor)[0][:, rank:]
        spread = np.mean((noise @ quiet) ** 2, axis=0) / variance
        assert np.all(spread <= 1 + 5.4 * np.sqrt(2 / count))


@pytest.mark.parametrize("rank", [0, 1, 3, SIZE])
def test_covariance(rank):
    recover(rank, 1_000)


@pytest.mark.slow
@pytest.mark.parametrize("rank", [1, 3, SIZE])
def test_covariance_at_length(rank):
    recover(rank, 20_000)
