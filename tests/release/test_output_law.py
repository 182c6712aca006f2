"""The law of the published integers: cell probabilities of the normal law on the grid, and its far tails."""

from __future__ import annotations

import numpy as np
import pytest
from fixed_bytes import seeded
from scipy import stats

from jaxpriv.mechanisms.grid_release import _release


def integers(count: int, exponent: int, seed: int, x: float = 0.0) -> np.ndarray:
    """(count,) integers of one release of the constant x with noise of standard deviation 1."""
    trace, factor = np.full(count, x), np.zeros((count, 0))
    return _release(trace, factor, 1.0, resolution=0.0, exponent=exponent, _bytes=seeded(seed)).integers


def check_cells(count: int, seed: int) -> None:
    """χ² over 200 groups of grid cells, each with the exact probability of its cells; 1e-7 a test."""
    for x, exponent in ((0.0, -9), (1 / 3, -10), (-(2.0**20) - 0.7, -12)):
        step = 2.0**exponent
        found = integers(count, exponent, seed, x)
        # cell j is [(j - 1/2) step, (j + 1/2) step): group boundaries near the quantiles, but on the grid
        cuts = np.rint(x / step) + np.unique(np.rint(stats.norm.ppf(np.arange(1, 200) / 200) / step))
        edges = np.concatenate([[-np.inf], (cuts - 0.5) * step - x, [np.inf]])
        expected = count * np.diff(stats.norm.cdf(edges))
        counts = np.bincount(np.searchsorted(cuts, found, side="right"), minlength=len(expected))
        assert len(counts) > 190 and expected.min() > 50
        assert stats.chisquare(counts, expected).pvalue > 1e-7


def test_cells():
    check_cells(100_000, 1)


@pytest.mark.slow
def test_cells_of_a_million():
    check_cells(1_000_000, 2)


def test_fine_grid_is_normal():
    """With a step of 2^-30 the grid is invisible to the Kolmogorov-Smirnov statistic of 10^5 values."""
    assert stats.kstest(integers(100_000, -30, 3) * 2.0**-30, "norm").pvalue > 1e-7


@pytest.mark.slow
def test_tails_of_twenty_million():
    """Counts beyond 3, 4 and 5 within their Poisson limits; a sampler from float32 uniforms never passes 5.3."""
    beyond, largest = dict.fromkeys((3.0, 4.0, 5.0), 0), 0.0
    for seed in range(10):
        sizes = np.abs(integers(2_000_000, -20, 100 + seed)) * 2.0**-20
        largest = max(largest, float(sizes.max()))
        for threshold in beyond:
            beyond[threshold] += int(np.sum(sizes > threshold))
    for threshold, seen in beyond.items():
        low, high = stats.poisson.ppf([1e-7, 1 - 1e-7], 2e7 * 2 * stats.norm.sf(threshold))
        assert low <= seen <= high
    assert largest > 5.3
